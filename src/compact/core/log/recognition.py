"""Recognise a caller's list: which known list it goes on from, and which of its items are entries in other forms."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from compact.core.log.alignment import Alignment, align, following_places
from compact.core.log.formed_entries import FormedEntries
from compact.core.log.forms import differs_in_time, fingerprint, identity_of, is_reduced, unmarked, what_is_said
from compact.core.log.known_list import KnownList
from compact.core.log.left_entries import LeftEntries
from compact.core.messages.message import Message
from compact.core.messages.turn_order import LEFT_OUT

# How every summary of ours begins.
SUMMARY_MARK = "<COMPACT-SUMMARY v"


@dataclass(frozen=True, slots=True)
class Shown:
    """What a plan shows of the log: which entries as they are, and whether a summary stands for others.

    `always_as_is` is true for an entry that every plan so far has shown as it is.
    """

    as_is: Callable[[str], bool] = lambda message_id: True
    always_as_is: Callable[[str], bool] = lambda message_id: True
    has_summary: bool = False


@dataclass(frozen=True, slots=True)
class IncomingList:
    """A caller's list, how an item of it is read as a message, and what the plan in force shows of the log."""

    items: Sequence[object]
    read_item: Callable[[object, str], Message]
    shown: Shown

    def read(self, place: int) -> Message:
        """Read the item at a place."""
        return self.read_item(self.items[place], f"messages[{place}]")

    def may_be_other_results(self) -> Callable[[int], bool]:
        """Return what says of a place whether a short text there may be another result, and not a known one, cleared.

        Nobody clears the newest results, which the model has not seen yet: they may be those of another try. Where an
        id is used for several calls, the result may be that of another one.
        """
        identities = list(map(identity_of, self.items))
        newest, used = len(identities), Counter(identities)
        while newest and (identities[newest - 1] or ("",))[0] == "tool":
            newest -= 1
        return lambda place: place >= newest or used[identities[place]] > 1


@dataclass(frozen=True, slots=True)
class Recognised:
    """A known list, and where the items of a caller's list are in it."""

    sent: KnownList
    alignment: Alignment
    # How many texts of ours it has, and the places of the known list that it lacks.
    ours: int
    missing: Sequence[int]

    @property
    def weight(self) -> tuple[int, ...]:
        """How much speaks for this list: text of ours is in no other, and whatever was said is known by its content."""
        return self.ours, self.alignment.unchanged, self.alignment.matched, -len(self.missing)


class Recognition:
    """Compares a caller's list with known ones; nothing is changed by it."""

    def __init__(self, incoming: IncomingList, entries: FormedEntries, left: LeftEntries) -> None:
        self._incoming, self._entries, self._left = incoming, entries, left

    def best(self, lists: Iterable[KnownList], earlier: Callable[[], Iterable[KnownList] | None]) -> Recognised | None:
        """Return the known list that most of the caller's list is in; None if `earlier` must be known first.

        Where all of one is there, and only new items behind it, it is not compared with others, item by item.
        """
        # A mark for a cache that has moved is no new message.
        said = [unmarked(item) for item in self._incoming.items]
        found = list[Recognised]()
        for sent in lists:
            found.append(self._compared(sent, said))
            if self._is_whole(found[-1], said):
                return _heaviest(found)
        others = earlier()
        if others is None:
            return None
        looks = set(map(fingerprint, self._incoming.items))
        for sent in others:
            if sent.left and looks.isdisjoint(fingerprint(sent.originals[n]) for n in self._places_of_ours(sent)):
                continue  # entries that were left are known by their content
            found.append(self._compared(sent, said))
            if self._is_whole(found[-1], said):
                break
        return _heaviest(found)

    def forms(self, found: Recognised) -> dict[int, Message]:
        """Return the items of the list that are entries of the log in another form, as these entries."""
        forms: dict[int, Message] = {}
        alignment, sent, items = found.alignment, found.sent, self._incoming.items
        may_be_other = self._incoming.may_be_other_results()
        for n, place in enumerate(alignment.places):
            place = alignment.changed.get(n, place)
            if place is None or len(sent.ids[place]) != 1 or items[n] == sent.originals[place]:
                continue
            entry, item = self._entries.recorded[sent.ids[place][0]], self._incoming.read(n)
            if n in alignment.changed:
                is_form = (
                    self._is_form(entry, item, may_be_other=may_be_other(n))
                    and (entry.role != "tool" or self._is_answer(entry, n, found, forms))
                    and not self._was_left(item, entry.line)
                )
            else:
                is_form = bool(sent.owners[place])  # only a mark for a cache has moved
            if is_form:
                forms[n] = replace(item, id=entry.id, line=entry.line)
        return forms

    def _compared(self, sent: KnownList, said: Sequence[object]) -> Recognised:
        """Return where the items are in a known list, and how much speaks for that."""
        known = [unmarked(item) for item in sent.originals]
        alignment = align(known, said, lambda item: self._is_hidden(item, sent))
        # Only one entry has another form: nothing takes the place of a summary, or of a line that we wrote.
        changed = {n: place for n, place in alignment.changed.items() if len(sent.ids[place]) == 1}
        alignment = replace(alignment, changed=changed)
        ours = len(self._places_of_ours(sent).intersection(alignment.places))
        alignment = self._with_whole(alignment, sent, said)
        # A summary goes on standing for the oldest items that a list has lost.
        stay = {n for n in alignment.lost if self._incoming.shown.has_summary and sent.owners[n]}
        return Recognised(sent, alignment, ours, [n for n in alignment.missing if n not in stay])

    def _is_whole(self, found: Recognised, said: Sequence[object]) -> bool:
        """Return True if the list can be no other known one."""
        alignment, sent, shown = found.alignment, found.sent, self._incoming.shown
        if alignment.matched < alignment.known_until:
            return False  # there is something unknown between what is known: perhaps another list has it
        edits = [(said[n], sent.owners[place]) for n, place in alignment.changed.items()]
        if not all(owner and shown.always_as_is(owner) and not _looks_like_ours(one) for one, owner in edits):
            return False  # perhaps it is what an earlier plan has put in its place
        last = alignment.known_until - 1
        if last in alignment.changed and last not in self.forms(found):
            return False  # nothing known follows it: perhaps an earlier plan has shown another message there
        missing = found.missing
        if missing and (found.ours or not all(shown.always_as_is(i) for place in missing for i in sent.ids[place])):
            return False  # perhaps it is the prompt of an earlier plan, or of a line that had them not yet
        has_all = alignment.matched + len(alignment.lost) >= len(sent.originals)
        return has_all or alignment.matched == len(said)

    def _with_whole(self, alignment: Alignment, sent: KnownList, said: Sequence[object]) -> Alignment:
        """Return an alignment with items that say what entries say for which the known list has something shorter.

        A caller may go on with the beginning of a prompt and the end of its own list.
        """
        stubs: dict[str, list[int]] = {}
        for place in sent.ours if None in alignment.places else ():
            if len(ids := sent.ids[place]) == 1:
                stubs.setdefault(what_is_said(self._entries.now(ids[0]).original), []).append(place)
        if not stubs:
            return alignment
        places, last = list[int | None](), -1
        for n, following in enumerate(following_places(alignment.places, len(sent.ids))):
            place, own = alignment.places[n], alignment.changed.get(n)
            if place is None:
                between = range(last + 1, following) if own is None else (own,)
                place = next((at for at in stubs.get(what_is_said(said[n]), ()) if at in between), None)
            places.append(place)
            last = last if place is None else place
        changed = {n: at for n, at in alignment.changed.items() if places[n] is None}
        return replace(alignment, places=places, changed=changed)

    def _is_hidden(self, item: object, sent: KnownList) -> bool:
        """Return True if an item says what an entry says that the summary of a known list stands for."""
        said = fingerprint(item)
        hidden = (i for ids in sent.ids if len(ids) > 1 for i in ids)
        return any(fingerprint(unmarked(self._entries.now(i).original)) == said for i in hidden)

    def _places_of_ours(self, sent: KnownList) -> set[int]:
        """Return the places of a known list that have text of ours alone: not what an entry says, written anew."""

        def is_entry(place: int) -> bool:
            ids = sent.ids[place]
            if not ids:
                return True  # a line where a turn was left out says the same in every prompt
            # The caller's own form of an entry is no text of ours either, even if the prompt does not show it.
            entries = [self._entries.now(ids[0]), self._entries.unseen.get(ids[0])] if len(ids) == 1 else []
            return any(entry is not None and sent.originals[place] == entry.original for entry in entries)

        return {place for place in sent.ours if not is_entry(place)}

    def _is_form(self, entry: Message, item: Message, *, may_be_other: bool) -> bool:
        """Return True if an item says nothing that its entry does not say, or only another time."""
        # Where something else stands for an entry, a new time would not be seen.
        has_other_time = self._incoming.shown.as_is(entry.id) and differs_in_time(entry, item)
        return has_other_time or is_reduced(entry, item, may_be_other=may_be_other)

    def _is_answer(self, entry: Message, n: int, found: Recognised, forms: Mapping[int, Message]) -> bool:
        """Return True if the call of a result is known too: some agents number their calls in each conversation."""
        for before in range(n - 1, -1, -1):
            place = found.alignment.places[before]
            ids = found.sent.ids[place] if place is not None else (forms[before].id,) if before in forms else ()
            calls = self._entries.recorded[ids[0]].tool_calls if len(ids) == 1 else ()
            if any(call.id == entry.tool_call_id for call in calls):
                return True
            if not ids:
                return False
        return False

    def _was_left(self, item: Message, line: int) -> bool:
        """Return True for what an entry of a line said that the caller has left: it may be back at that."""
        return any(entry.line == line for entry in self._left.saying_what(item.original))


def lines_in(incoming: Sequence[object], places: Sequence[int | None]) -> set[int]:
    """Return where a prompt that comes back has lines for turns that were left out, which the known list has not.

    An older prompt has others than the newest. Behind what is known a user may say the same.
    """
    found = {n for n, place in enumerate(places) if place is None and _text_of(incoming[n]) == LEFT_OUT}
    return found if found and any(_text_of(item).startswith(SUMMARY_MARK) for item in incoming) else set()


def hidden_in(
    incoming: Sequence[object], places: Sequence[int | None], sent: KnownList, view: Sequence[Message]
) -> set[int]:
    """Return the items that say what a prompt hides between two entries that it shows.

    A caller may go on with the beginning of a prompt and the end of its own list, which has what the prompt's summary
    stands for as well. `view` has the entries of the line in the forms that the caller has.
    """
    at = {entry.id: place for place, entry in enumerate(view)}
    shown = {n: at[ids[0]] for n, ids in enumerate(sent.ids) if len(ids) == 1 and ids[0] in at}
    is_shown = frozenset(shown.values())
    found, start = set[int](), len(view)
    hidden: dict[str, list[int]] | None = None
    for n, (place, following) in enumerate(zip(places, following_places(places, len(sent.ids)), strict=True)):
        if place is not None:
            start, hidden = shown.get(place, len(view)), None
            continue
        if hidden is None:
            between = range(start, shown.get(following, start))
            hidden = _by_fingerprint(view, (k for k in between if k not in is_shown))
        if not hidden:
            continue
        saying_it = hidden.get(fingerprint(unmarked(incoming[n]))) or ()
        first = bisect_right(saying_it, start)
        if first < len(saying_it):
            found.add(n)
            start = saying_it[first]
    return found


def _by_fingerprint(messages: Sequence[Message], places: Iterable[int]) -> dict[str, list[int]]:
    """Return the places of messages that say the same, in their order."""
    found: dict[str, list[int]] = {}
    for place in places:
        found.setdefault(fingerprint(unmarked(messages[place].original)), []).append(place)
    return found


def _heaviest(found: Iterable[Recognised]) -> Recognised:
    return max(found, key=lambda one: one.weight)


def _looks_like_ours(item: object) -> bool:
    """Return True for a summary, and for the line where a turn was left out."""
    text = _text_of(item)
    return text == LEFT_OUT or text.startswith(SUMMARY_MARK)


def _text_of(item: object) -> str:
    said = unmarked(item)
    text = said.text if isinstance(said, Message) else cast(Mapping[str, object], said).get("content")
    return text if isinstance(text, str) else ""
