"""The append-only log of one session, and the matching of a caller's list with it.

A caller may send the full raw history every time, or the prompt we returned last time plus new messages, or a past it
has edited. Entries are matched in order and by content, never by position alone; equal entries stay distinct.

Callers also change what they have sent: what says nothing new is the same entry in another form (`forms`). A list that
has only lost its oldest messages was trimmed: if there is a summary, they stay.

A list that has nothing in common with the log is another conversation under a session id that was used before: it
starts a new line. System and developer messages do not count: agents send the same ones in all conversations.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import dropwhile, takewhile
from typing import cast

from compact.core.log.alignment import Alignment, align, following_places
from compact.core.log.forms import differs_in_time, fingerprint, is_reduced, unmarked, what_is_said
from compact.core.messages.message import Message, SettledItems, list_start, with_id
from compact.core.messages.turn_order import LEFT_OUT

# How every summary of ours begins.
SUMMARY_MARK = "<COMPACT-SUMMARY v"


@dataclass(frozen=True, slots=True)
class LeftLine:
    """A line that the caller has left by an edit of the past, and the plan that a prompt of it was made with."""

    ids: tuple[str, ...]
    plan_version: int


@dataclass(frozen=True, slots=True)
class KnownList:
    """A list that the caller may send back: its items, and the log entries each item stands for.

    `owners` has the id of the entry where an item is that entry unchanged, and "" where the text is ours; `ours` are
    the places of those. `left` is the line that it is of, if that is not the line of now.
    """

    originals: list[object] = field(default_factory=list[object])
    ids: list[tuple[str, ...]] = field(default_factory=list[tuple[str, ...]])
    owners: list[str] = field(default_factory=list[str])
    ours: list[int] = field(default_factory=list[int])
    left: LeftLine | None = None

    def copy(self) -> KnownList:
        """Return a list of its own with the same items."""
        return KnownList(list(self.originals), list(self.ids), list(self.owners), list(self.ours), self.left)

    def is_start_of(self, incoming: Sequence[object]) -> bool:
        """Return True if a caller's list begins with this one: the same objects, or equal ones."""
        known = len(self.originals)
        # One comparison in C covers the same objects, equal copies, and objects changed in place.
        return known <= len(incoming) and list_start(incoming, known) == self.originals

    def take_objects(self, incoming: Sequence[object]) -> None:
        """Hold a caller's objects in place of the equal ones here, if nobody changes them any more.

        The caller's list begins with this one. Next time its items are the same objects, which is quick to see.
        """
        known = len(self.originals)
        if known and isinstance(incoming, SettledItems) and self.originals[0] is not incoming[0]:
            self.originals[:] = list_start(incoming, known)

    def add(self, original: object, ids: tuple[str, ...], owner: str) -> None:
        """Append one item."""
        if not owner:
            self.ours.append(len(self.owners))
        self.originals.append(original)
        self.ids.append(ids)
        self.owners.append(owner)

    def take_owner(self, entry: Message) -> None:
        """Note that an item is an entry unchanged: it is shown in the form that the caller has."""
        places = [n for n in self.ours if self.ids[n] == (entry.id,) and self.originals[n] == entry.original]
        for place in places:
            self.owners[place] = entry.id
            self.ours.remove(place)

    def add_entries(self, entries: Iterable[Message]) -> None:
        """Append log entries that are shown unchanged."""
        for entry in entries:
            self.add(entry.original, (entry.id,), entry.id)


@dataclass(frozen=True, slots=True)
class Match:
    """The result of matching a caller's list: the entries new to its line, and whether the past was edited.

    `owners` names the log entry of each item of the caller's list ("" for text that we made, and for a form that is not
    taken). It may be a list of the log's, which is too long to copy at each call: it is read only, and by the call that
    made it, since the next one makes it longer. `rejoined` is set when the caller returns to entries it had left: they
    are new to its line, but not to the log. `is_new_line` is set when the list is another conversation than any that
    the log has. `formed` are the entries that the caller has in a new form, `unseen` those of which the log has another
    unseen form now, or none any more. `returned_to` is the line that the caller returns to with a prompt of it.
    """

    new: tuple[Message, ...]
    owners: Sequence[str]
    branched: bool = False
    rejoined: bool = False
    left_ids: tuple[str, ...] = ()
    is_new_line: bool = False
    formed: tuple[str, ...] = ()
    unseen: tuple[str, ...] = ()
    returned_to: LeftLine | None = None


@dataclass(frozen=True, slots=True)
class Shown:
    """What a plan shows of the log: which entries as they are, and whether a summary stands for others.

    `always_as_is` is true for an entry that every plan so far has shown as it is.
    """

    as_is: Callable[[str], bool] = lambda message_id: True
    always_as_is: Callable[[str], bool] = lambda message_id: True
    has_summary: bool = False


_ALL = Shown()


class Log:
    """Everything that ever arrived (`entries`), and the line of it that the caller is on (`view`).

    The view has entries in the form that the caller has them in now, as far as the prompt shows them as they are; these
    are `forms`. An entry that something else stands for keeps the form that this was made from; the caller's form is
    `unseen` until the entry is shown again.
    """

    def __init__(self) -> None:
        self.entries: list[Message] = []
        self.view: list[Message] = []
        # The conversation that the caller is in.
        self.line = 0
        self.forms: dict[str, Message] = {}
        self.unseen: dict[str, Message] = {}
        # The list that the caller has of its own: the last one of these, and what came since.
        self._raw = KnownList()
        # The last list, if it was a prompt with something behind it: the next prompt may be another one.
        self._sent_back = KnownList()
        # The oldest entries of the view, if the caller's list has lost these: a summary stands for them.
        self._trimmed: frozenset[str] = frozenset()
        self._by_id: dict[str, Message] = {}
        # Entries that the caller has left and may return to, by what they say.
        self._left: dict[str, list[Message]] = {}
        # The last number that was put behind an id that is taken.
        self._last_number: dict[str, int] = {}

    @classmethod
    def restored(
        cls,
        entries: Sequence[Message],
        view_ids: Iterable[str],
        forms: Mapping[str, Message] | None = None,
        unseen: Mapping[str, Message] | None = None,
    ) -> Log:
        """Return the log as a store has written it down."""
        log = cls()
        log.entries = list(entries)
        log._by_id = {message.id: message for message in entries}
        log.forms, log.unseen = dict(forms or {}), dict(unseen or {})
        log.view = [log.now(message_id) for message_id in view_ids]
        for entry in log.view:
            is_unseen = entry.id in log.unseen
            log._raw.add(log.unseen.get(entry.id, entry).original, (entry.id,), "" if is_unseen else entry.id)
        on_the_line = {message.id for message in log.view}
        log._leave(message for message in entries if message.id not in on_the_line)
        log.line = next((message.line for message in reversed(log.view) if not _is_instruction(message)), 0)
        return log

    def fork(self) -> Log:
        """Return a copy to try things on; the entries themselves are shared, since they never change."""
        twin = Log()
        twin.entries, twin.view, twin.line = list(self.entries), list(self.view), self.line
        twin._raw, twin._sent_back, twin._trimmed = self._raw.copy(), self._sent_back.copy(), self._trimmed
        twin._by_id, twin.forms = dict(self._by_id), dict(self.forms)
        twin.unseen = dict(self.unseen)
        twin._last_number = dict(self._last_number)
        twin._left = {said: list(entries) for said, entries in self._left.items()}
        return twin

    def __len__(self) -> int:
        return len(self.entries)

    @property
    def view_ids(self) -> list[str]:
        """The ids of the current line, in order."""
        return [message.id for message in self.view]

    def ids_until(self, length: int) -> frozenset[str]:
        """Return the ids of the first entries, which are all there were when the log was so long."""
        return frozenset(entry.id for entry in self.entries[:length])

    def get(self, message_id: str) -> Message | None:
        """Return an entry of the log by its id, in the form that it has now."""
        return self.forms.get(message_id) or self._by_id.get(message_id)

    def recorded(self, message_id: str) -> Message:
        """Return an entry of the log as it came."""
        return self._by_id[message_id]

    def now(self, message_id: str) -> Message:
        """Return an entry that the log has, in the form that it has now."""
        return self.forms.get(message_id) or self._by_id[message_id]

    def match(
        self,
        incoming: Sequence[object],
        *,
        output: KnownList,
        read: Callable[[object, str], Message],
        earlier: Callable[[], Iterable[KnownList] | None] = tuple,
        shown: Shown = _ALL,
    ) -> Match | None:
        """Find what is new in a caller's list and append it; on an edited past, start a branch.

        `output` is the newest prompt. `earlier` gives the prompts of earlier plans, those of this line first: a caller
        that retries, or goes back, may send one of them. It is asked only if the list is none of the others, and may
        answer None if it cannot tell yet: then nothing is changed, and None returned. `shown` is what the plan shows.
        """
        # The longer one first: a repaired prompt is the raw history with a little more behind it.
        for sent in sorted((self._raw, output, self._sent_back), key=lambda sent: -len(sent.originals)):
            known = len(sent.originals)
            if not known and self.view:
                continue  # nothing was shown yet: that is no prefix of anything
            if sent.is_start_of(incoming):
                return self._longer(incoming, sent, read)
        found = self._best_alignment(incoming, output, earlier, read, shown)
        if found is None:
            return None
        alignment, sent = found
        if sent.left:
            return self._returned(sent.left, incoming, alignment, sent, read, shown)
        return self._changed(incoming, alignment, sent, output, read, shown)

    def _longer(self, incoming: Sequence[object], sent: KnownList, read: Callable[[object, str], Message]) -> Match:
        """Match a list that begins with a known one: what follows is new."""
        if sent is not self._raw and not sent.ours and len(sent.owners) == len(self.view):
            # A prompt of all messages is a list of the caller's own: it may have been a prompt with a summary before.
            self._raw = sent = sent.copy()
        sent.take_objects(incoming)
        before = len(self.entries)
        items = self._read_new(incoming, range(len(sent.originals), len(incoming)), read, line=self.line)
        new = self._append(items)
        owners = [*sent.owners, *(message.id for message in new)] if new else sent.owners
        self._sent_back = KnownList() if sent is self._raw else sent.copy()
        if sent is not self._raw:
            self._sent_back.add_entries(new)
        self._extend_view(new)
        has_rejoined = len(self.entries) - before < len(new)
        return Match(new, owners, rejoined=has_rejoined, formed=self._formed_in(items))

    def known_start(self, incoming: Sequence[object], output: KnownList) -> int:
        """Return how many items a list begins with that are known: all of the last list or prompt, or none."""
        lists = (self._raw, output, self._sent_back)
        return max((len(sent.originals) for sent in lists if sent.is_start_of(incoming)), default=0)

    def _read_new(
        self,
        incoming: Sequence[object],
        places: Iterable[int],
        read: Callable[[object, str], Message],
        *,
        line: int | None = None,
        bare_until: int = 0,
    ) -> list[tuple[Message, bool]]:
        """Return the entries at these places, and whether the log has them: those that the caller had left.

        With `line`, only entries of that line are used again. Up to `bare_until` an entry may have lost its `meta`, as
        it does in a prompt.
        """
        # Read everything first: a bad entry must not leave half a list in the log.
        messages = [(place, read(incoming[place], f"messages[{place}]")) for place in places]
        found = list[tuple[Message, bool]]()
        # Where in the log the calls are that come back, by their ids.
        calls, in_log = dict[str, int](), dict[str, int]()
        for n, message in messages:
            known = self._take_left(message, line, may_be_bare=n < bare_until)
            if known is None and message.tool_call_id in calls:
                known = self._take_cut(message, calls[message.tool_call_id])
            if known is not None and known.tool_calls:
                in_log = in_log or {entry.id: place for place, entry in enumerate(self.entries)}
                calls |= {call.id: in_log[known.id] for call in known.tool_calls}
            found.append((known or message, known is not None))
        return found

    def _append(self, items: Iterable[tuple[Message, bool]]) -> tuple[Message, ...]:
        """Record the entries that are new, and return all of them."""
        return tuple(entry if is_known else self._record(entry) for entry, is_known in items)

    def _take_left(self, message: Message, line: int | None, *, may_be_bare: bool) -> Message | None:
        """Return an entry, of this line if one is named, that the caller had left and sends again now; the oldest.

        It is in the form that the caller has it in now, but keeps its `meta`.
        """
        said = what_is_said(message.original) if self._left else ""
        entries = self._left.get(said, [])

        def first(is_it: Callable[[Message], bool]) -> int | None:
            return next((n for n, entry in enumerate(entries) if line in (None, entry.line) and is_it(entry)), None)

        place = first(lambda entry: entry.meta == message.meta)
        if place is None and may_be_bare and not message.meta:
            place = first(lambda entry: True)
        if place is None:
            return None
        entry = self._pop_left(said, place)
        if entry.meta != message.meta:
            return replace(entry, original=message.original)
        return self._in_form_of(message, entry)

    def _take_cut(self, message: Message, call: int) -> Message | None:
        """Return the result of a call at a place of the log if the caller had left it and a message says less of it."""
        behind = (self.entries[place] for place in range(call, len(self.entries)))
        result = next((entry for entry in behind if entry.tool_call_id == message.tool_call_id), None)
        if result is None or not is_reduced(result, message):
            return None
        said = what_is_said(result.original)
        place = next((n for n, entry in enumerate(self._left.get(said, ())) if entry.id == result.id), None)
        return None if place is None else self._in_form_of(message, self._pop_left(said, place))

    def _pop_left(self, said: str, place: int) -> Message:
        entries = self._left[said]
        entry = entries.pop(place)
        if not entries:
            del self._left[said]
        return entry

    def _in_form_of(self, message: Message, entry: Message) -> Message:
        """Return an entry in the form that a message has, from now on."""
        form = replace(message, id=entry.id, line=entry.line)
        return form if self._take_form(form) else entry

    def _formed_in(self, items: Iterable[tuple[Message, bool]]) -> tuple[str, ...]:
        """Return the entries that came back in another form than they were recorded in."""
        return tuple(entry.id for entry, is_known in items if is_known and entry.id in self.forms)

    def _leave(self, entries: Iterable[Message]) -> None:
        for entry in entries:
            self._left.setdefault(what_is_said(entry.original), []).append(entry)

    def _record(self, message: Message) -> Message:
        """Append an entry under its own id, or under a new one if it has none or the id is taken."""
        own = message.id or f"m{len(self.entries) + 1}"
        while own in self._by_id:
            number = self._last_number[message.id] = self._last_number.get(message.id, 1) + 1
            own = f"{message.id or 'm'}-{number}"
        entry = with_id(message, own, self.line)
        self.entries.append(entry)
        self._by_id[own] = entry
        return entry

    def _extend_view(self, new: Sequence[Message]) -> None:
        self.view.extend(new)
        self._raw.add_entries(new)

    def _changed(
        self,
        incoming: Sequence[object],
        alignment: Alignment,
        sent: KnownList,
        output: KnownList,
        read: Callable[[object, str], Message],
        shown: Shown,
    ) -> Match:
        """Match a list that does not begin with a known one: keep what is still there, append what is new."""
        forms = self._forms_in(incoming, alignment, sent, read, shown)
        places = [alignment.changed.get(n, place) if n in forms else place for n, place in enumerate(alignment.places)]
        matched = [self._by_id[i] for place in places if place is not None for i in sent.ids[place]]
        lines = _lines_in(incoming, places[: alignment.known_until])
        fresh = [n for n, place in enumerate(places) if place is None and n not in lines]
        conversation = self._conversation_of(incoming, matched)
        items = self._read_new(incoming, fresh, read, line=conversation, bare_until=alignment.known_until)
        line = self._line_of(matched, items)
        is_new_line = line > max(entry.line for entry in self.entries)
        self.line = line
        formed = [form.id for form in forms.values() if shown.as_is(form.id) and self._take_form(form)]
        unseen = [form.id for form in forms.values() if not shown.as_is(form.id) and self._take_unseen(form)]
        new, own = self._append(items), KnownList()
        added = iter(new)
        for n, place in enumerate(places):
            if n in lines:
                own.add(read(incoming[n], f"messages[{n}]").original, (), "")
            elif place is None:
                own.add_entries([next(added)])
            elif n in forms:
                own.add(forms[n].original, sent.ids[place], forms[n].id if shown.as_is(forms[n].id) else "")
            else:
                # Where we have a text of ours, the list may have the whole of what that goes on standing for.
                is_entry = bool(sent.owners[place])
                original = sent.originals[place] if is_entry else read(incoming[n], f"messages[{n}]").original
                own.add(original, sent.ids[place], sent.owners[place])
                unseen += self._forgotten_unseen(incoming[n], sent.ids[place])
        kept = {i for place in places if place is not None for i in sent.ids[place]}
        if is_new_line:
            gone = {entry.id for entry in self.view} - kept
        else:
            lost = self._lost_by(alignment, sent, kept) if shown.has_summary else set[str]()
            self._trimmed = (self._trimmed | lost) - kept
            gone = {i for ids in sent.ids for i in ids} - kept - self._trimmed
            gone |= self._marked_anew(own, sent) | self._hidden_behind_lost(places, sent, own)
        line_end = self.view[-1].id if self.view else ""
        left_ids, branched = self._change_view(gone, _places_of_new(places, sent, own, line_end))
        if sent is output and not branched:
            self._raw.add_entries(new)
            self._sent_back = own
        else:
            self._raw, self._sent_back = own, KnownList()
        has_rejoined = any(is_known for _, is_known in items)
        formed += self._formed_in(items)
        return Match(new, own.owners, branched, has_rejoined, left_ids, is_new_line, tuple(formed), tuple(unseen))

    def _take_unseen(self, form: Message) -> bool:
        """Keep the form of an entry that something else stands for; return False if it is known."""
        before = self.unseen.get(form.id)
        self.unseen[form.id] = form
        return before is None or before.original != form.original

    def _forgotten_unseen(self, item: object, ids: tuple[str, ...]) -> tuple[str, ...]:
        """Forget in which form the caller had an entry, and return its id, if it has the whole of it now."""
        if ids and ids[0] in self.unseen and what_is_said(item) == what_is_said(self.now(ids[0]).original):
            del self.unseen[ids[0]]
            return ids[:1]
        return ()

    def leave_trimmed(self) -> tuple[str, ...]:
        """Leave the entries that the caller's list has lost, since no summary stands for them now; return them."""
        return self._change_view(set(self._trimmed), {})[0] if self._trimmed else ()

    def _lost_by(self, alignment: Alignment, sent: KnownList, kept: Container[str]) -> set[str]:
        """Return the oldest entries of the line that a list has lost; not what lies behind something that it has."""
        lost = {i for place in alignment.lost for i in sent.ids[place]}
        return lost.intersection(entry.id for entry in _before_known(self.view, kept)) if lost else lost

    def _marked_anew(self, own: KnownList, sent: KnownList) -> set[str]:
        """Return the oldest entries, lost by the known list, that a list has again with other marks."""
        listed = {message_id for ids in sent.ids for message_id in ids}
        older = _before_known(self.view, listed)
        new = _before_known((self._by_id[i] for ids in own.ids for i in ids), listed) if older else []
        said = {what_is_said(entry.original) for entry in new}
        return {entry.id for entry in older if what_is_said(entry.original) in said}

    def _hidden_behind_lost(self, places: Sequence[int | None], sent: KnownList, own: KnownList) -> set[str]:
        """Return what a prompt hides behind its newest items, if a list has lost these: it goes back to before that.

        What is hidden before the first of them stays if that was the user's, and the list has other words there.
        """
        last = max((n for n, place in enumerate(places) if place is not None), default=-1)
        last_place = places[last] if places else None
        if last_place is None:
            return set()
        lost = next((ids[0] for ids in sent.ids[last_place + 1 :] if ids), None)
        new = next((self._by_id[ids[0]] for ids in own.ids[last + 1 :] if ids), None)
        if lost is None:
            return set()
        is_edit = new is not None and new.role == self._by_id[lost].role == "user"
        kept = sent.ids[last_place]
        start = lost if is_edit or not kept else kept[-1]
        shown = {ids[0] for ids in sent.ids if len(ids) == 1}
        behind = dropwhile(lambda entry: entry.id != start, self.view)
        return {entry.id for entry in behind if entry.id not in shown and entry.id != start}

    def _returned(
        self,
        left: LeftLine,
        incoming: Sequence[object],
        alignment: Alignment,
        sent: KnownList,
        read: Callable[[object, str], Message],
        shown: Shown,
    ) -> Match:
        """Match a list that goes on with a prompt of a line that was left: be on that line again."""
        there = self.fork()  # an item that cannot be read must leave the log as it is
        on_the_line = set(left.ids)
        there.forms = {i: form for i, form in self.forms.items() if i in on_the_line}
        there.unseen = {i: form for i, form in self.unseen.items() if i in on_the_line}
        there.view, there._left = [there.now(message_id) for message_id in left.ids], {}
        there._leave(entry for entry in self.entries if entry.id not in on_the_line)
        match = there._changed(incoming, alignment, sent, KnownList(), read, shown)
        before, now = dict.fromkeys(self.view_ids), set(there.view_ids)
        is_same_line = there.view_ids == self.view_ids  # a call that went back there is made again
        new = tuple(entry for entry in there.view if entry.id not in before)
        self.entries += there.entries[len(self.entries) :]
        there.entries = self.entries
        vars(self).update(vars(there))
        if is_same_line:
            return replace(match, new=(), branched=False, rejoined=False, left_ids=())
        left_ids = tuple(message_id for message_id in before if message_id not in now)
        return replace(match, new=new, branched=True, rejoined=True, left_ids=left_ids, returned_to=left)

    def show_unseen(self, ids: Iterable[str]) -> tuple[str, ...]:
        """Show entries in the forms that the caller has, since nothing else stands for them now; return the changed."""
        shown = [self.unseen.pop(message_id) for message_id in ids]
        taken = tuple(form.id for form in shown if self._take_form(form))
        for form in shown:
            self._raw.take_owner(form)
        if taken:
            self.view = [self.forms.get(entry.id, entry) for entry in self.view]
        return taken

    def _change_view(self, gone: set[str], behind: dict[str, list[str]]) -> tuple[tuple[str, ...], bool]:
        """Take entries out of the view, and put new ones behind what they follow, or in the place of what is gone.

        Return the entries that were left, and whether this is a branch: new entries at the end make none.
        """
        before = self.view
        ids = behind.pop("", [])
        for entry in before:
            ids += [] if entry.id in gone else [entry.id]
            ids += behind.pop(entry.id, ())
        ids += [message_id for others in behind.values() for message_id in others]
        self.view = [self.now(message_id) for message_id in ids]
        left = [self._by_id[entry.id] for entry in before if entry.id in gone]
        self._leave(left)
        self._trimmed = self._trimmed.difference(entry.id for entry in left)
        for entry in left:
            self.forms.pop(entry.id, None)
            self.unseen.pop(entry.id, None)
        is_longer = not left and ids[: len(before)] == [entry.id for entry in before]
        return tuple(entry.id for entry in left), not is_longer

    def _best_alignment(
        self,
        incoming: Sequence[object],
        output: KnownList,
        earlier: Callable[[], Iterable[KnownList] | None],
        read: Callable[[object, str], Message],
        shown: Shown,
    ) -> tuple[Alignment, KnownList] | None:
        """Return the known list that most of a caller's list is in, and where its items are there; None without one."""
        lists = [self._raw, output]
        if self._raw.owners != self.view_ids:  # a trimmed list, or a prompt: the next may be whole again
            lists.append(KnownList())
            lists[-1].add_entries(self.view)
        found: list[tuple[Alignment, KnownList, tuple[int, ...]]] = []
        looks = set[str]()
        # A mark for a cache that has moved is no new message.
        said = [unmarked(item) for item in incoming]

        def is_whole(sent: KnownList) -> bool:
            if sent.left and looks.isdisjoint(fingerprint(sent.originals[n]) for n in self._places_of_ours(sent)):
                return False  # entries that were left are known by their content
            alignment = align([unmarked(item) for item in sent.originals], said)
            # Only one entry has another form: nothing takes the place of a summary, or of a line that we wrote.
            changed = {n: place for n, place in alignment.changed.items() if len(sent.ids[place]) == 1}
            alignment = replace(alignment, changed=changed)
            ours = len(self._places_of_ours(sent).intersection(alignment.places))
            alignment = self._with_whole(alignment, sent, said)
            # A summary goes on standing for the oldest items if a list has lost these.
            stay = {n for n in alignment.lost if shown.has_summary and sent.owners[n]}
            places = [n for n in alignment.missing if n not in stay]
            # Text of ours is in no other list; whatever was said is known by its content.
            found.append((alignment, sent, (ours, alignment.unchanged, alignment.matched, -len(places))))
            if alignment.matched < alignment.known_until:
                return False  # there is something unknown between what is known: perhaps another list has it
            edits = [(said[n], sent.owners[place]) for n, place in alignment.changed.items()]
            if not all(owner and shown.always_as_is(owner) and not _looks_like_ours(one) for one, owner in edits):
                return False  # perhaps it is what an earlier plan has put in its place
            last = alignment.known_until - 1
            if last in alignment.changed and last not in self._forms_in(incoming, alignment, sent, read, shown):
                return False  # nothing known follows it: perhaps an earlier plan has shown another message there
            if places and (ours or not all(shown.always_as_is(i) for place in places for i in sent.ids[place])):
                return False  # perhaps it is the prompt of an earlier plan, or of a line that had them not yet
            has_all = alignment.matched + len(alignment.lost) >= len(sent.originals)
            return has_all or alignment.matched == len(incoming)

        # Where all of one is there, and only new items behind it, it is not compared with others, item by item.
        if not any(map(is_whole, lists)):
            others = earlier()
            if others is None:
                return None
            looks.update(map(fingerprint, incoming))
            any(map(is_whole, others))
        alignment, sent, _ = max(found, key=lambda one: one[2])
        return alignment, sent

    def _with_whole(self, alignment: Alignment, sent: KnownList, said: Sequence[object]) -> Alignment:
        """Return an alignment with items that say what entries say for which the known list has something shorter.

        A caller may go on with the beginning of a prompt and the end of its own list.
        """
        stubs: dict[str, list[int]] = {}
        for place in sent.ours if None in alignment.places else ():
            if len(ids := sent.ids[place]) == 1:
                stubs.setdefault(what_is_said(self.now(ids[0]).original), []).append(place)
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

    def _places_of_ours(self, sent: KnownList) -> set[int]:
        """Return the places of a known list that have text of ours alone: not what an entry says, written anew."""

        def is_entry(place: int) -> bool:
            ids = sent.ids[place]
            if not ids:
                return True  # a line where a turn was left out says the same in every prompt
            # The caller's own form of an entry is no text of ours either, even if the prompt does not show it.
            entries = [self.now(ids[0]), self.unseen.get(ids[0])] if len(ids) == 1 else []
            return any(entry is not None and sent.originals[place] == entry.original for entry in entries)

        return {place for place in sent.ours if not is_entry(place)}

    def _forms_in(
        self,
        incoming: Sequence[object],
        alignment: Alignment,
        sent: KnownList,
        read: Callable[[object, str], Message],
        shown: Shown,
    ) -> dict[int, Message]:
        """Return the items of a list that are entries of the log in another form, as these entries."""
        forms: dict[int, Message] = {}
        for n, place in enumerate(alignment.places):
            place = alignment.changed.get(n, place)
            if place is None or len(sent.ids[place]) != 1 or incoming[n] == sent.originals[place]:
                continue
            entry, item = self._by_id[sent.ids[place][0]], read(incoming[n], f"messages[{n}]")
            if n in alignment.changed:
                is_form = (
                    self._is_form(entry, item, shown)
                    and (entry.role != "tool" or self._is_answer(entry, n, alignment, sent, forms))
                    and not self._was_left(item, entry.line)
                )
            else:
                is_form = bool(sent.owners[place])  # only a mark for a cache has moved
            if is_form:
                forms[n] = replace(item, id=entry.id, line=entry.line)
        return forms

    def _is_form(self, entry: Message, item: Message, shown: Shown) -> bool:
        """Return True if an item says nothing that its entry does not say, or only another time."""
        # Where something else stands for an entry, a new time would not be seen.
        return is_reduced(entry, item) or (shown.as_is(entry.id) and differs_in_time(entry, item))

    def _is_answer(
        self, entry: Message, n: int, alignment: Alignment, sent: KnownList, forms: Mapping[int, Message]
    ) -> bool:
        """Return True if the call of a result is known too: some agents number their calls in each conversation."""
        for before in range(n - 1, -1, -1):
            place = alignment.places[before]
            ids = sent.ids[place] if place is not None else (forms[before].id,) if before in forms else ()
            if len(ids) == 1 and any(call.id == entry.tool_call_id for call in self._by_id[ids[0]].tool_calls):
                return True
            if not ids:
                return False
        return False

    def _was_left(self, item: Message, line: int) -> bool:
        """Return True for what an entry of a line said that the caller has left: it may be back at that."""
        return any(entry.line == line for entry in self._left.get(what_is_said(item.original), ()))

    def _take_form(self, form: Message) -> bool:
        """Show an entry in this form from now on; return False if it has it."""
        if form.original == self.now(form.id).original:
            return False
        self.forms[form.id] = form
        return True

    def _conversation_of(self, incoming: Sequence[object], matched: Sequence[Message]) -> int | None:
        """Return the line that has most of a list, since others may have said the same words; None if there is one."""
        if not any(entry.line for entry in self.entries):
            return None
        lines = Counter(entry.line for entry in matched if not _is_instruction(entry))
        for item in incoming:
            left = self._left.get(what_is_said(item), ())
            lines.update({entry.line for entry in left if not _is_instruction(entry)})
        return max(lines, key=lambda line: lines[line], default=None)

    def conversation(self) -> Callable[[Message], bool]:
        """Return what says of an entry whether it belongs to the conversation that the caller is in.

        After an edit of its first words a list may go on with entries of the conversation that it was before.
        """
        line = self.line
        met_again = frozenset(message.id for message in tuple(self.view) if message.line != line)
        return lambda message: message.line == line or message.id in met_again

    def _line_of(self, matched: Sequence[Message], items: Sequence[tuple[Message, bool]]) -> int:
        """Return the line that a list goes on with: that of its newest entry that the log has, or else a new one.

        What was only rewritten (another dialect, other white space) is known by its words, and so is a summary of ours.
        """
        known = [*matched, *(entry for entry, is_known in items if is_known)]
        lines = [entry.line for entry in known if not _is_instruction(entry)]
        fresh = [entry for entry, is_known in items if not (is_known or _is_instruction(entry))]
        if lines or not fresh:
            return lines[-1] if lines else self.line
        by_words = {words: entry.line for entry in self.entries if (words := _words(entry))}
        same = [by_words[words] for entry in fresh if (words := _words(entry)) in by_words]
        if same or not by_words or any(SUMMARY_MARK in entry.text for entry in fresh):
            return same[-1] if same else self.line
        return max(entry.line for entry in self.entries) + 1


def _places_of_new(
    places: Sequence[int | None], sent: KnownList, own: KnownList, line_end: str
) -> dict[str, list[str]]:
    """Return the new entries of a list, by the entry that each is put behind.

    That is the one that it takes the place of, if something is gone there: what is hidden before that stays before it.
    What follows all that is known is at the end of the line, behind what is hidden there.
    """
    behind, last, start, following = dict[str, list[str]](), "", 0, following_places(places, len(sent.ids))
    for n, place in enumerate(places):
        if place is None and own.ids[n]:
            gone = (ids[0] for ids in sent.ids[start : following[n]] if ids)
            before = line_end if following[n] == len(sent.ids) else next(gone, last)
            behind.setdefault(before, []).append(own.ids[n][-1])
        elif place is not None:
            start, last = place + 1, sent.ids[place][-1] if sent.ids[place] else last
    return behind


def _looks_like_ours(item: object) -> bool:
    """Return True for a summary, and for the line where a turn was left out."""
    text = _text_of(item)
    return text == LEFT_OUT or text.startswith(SUMMARY_MARK)


def _lines_in(incoming: Sequence[object], places: Sequence[int | None]) -> set[int]:
    """Return where a prompt that comes back has lines for turns that were left out, which the known list has not.

    An older prompt has others than the newest. Behind what is known a user may say the same.
    """
    found = {n for n, place in enumerate(places) if place is None and _text_of(incoming[n]) == LEFT_OUT}
    return found if found and any(_text_of(item).startswith(SUMMARY_MARK) for item in incoming) else set()


def _text_of(item: object) -> str:
    said = unmarked(item)
    text = said.text if isinstance(said, Message) else cast(Mapping[str, object], said).get("content")
    return text if isinstance(text, str) else ""


def _before_known(entries: Iterable[Message], known: Container[str]) -> list[Message]:
    """Return the entries before the first known one; known instructions are passed over."""
    older = takewhile(lambda entry: entry.id not in known or _is_instruction(entry), entries)
    return [entry for entry in older if entry.id not in known]


def _is_instruction(message: Message) -> bool:
    return message.role in ("system", "developer")


def _words(message: Message) -> str:
    """Return what a message says, whoever wrote it down and how; "" for instructions and for what has no words."""
    return "" if _is_instruction(message) else " ".join(message.text.split())
