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
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from compact.core.log.formed_entries import FormedEntries
from compact.core.log.forms import is_reduced
from compact.core.log.known_list import KnownList, LeftLine
from compact.core.log.left_entries import LeftEntries
from compact.core.log.list_change import ListChange
from compact.core.log.recognition import (
    SUMMARY_MARK,
    IncomingList,
    Recognised,
    Recognition,
    Shown,
    hidden_in,
    lines_in,
)
from compact.core.messages.message import Message, with_id


@dataclass(frozen=True, slots=True)
class Match:
    """The result of matching a caller's list: the entries new to its line, and whether the past was edited.

    `owners` names the log entry of each item of the caller's list ("" for text that we made, and for a form that is not
    taken), but for those at the places in `added`, which were added behind an earlier prompt. It may be a list of the
    log's, which is too long to copy at each call: it is read only, and by the call that made it, since the next one
    makes it longer, and it has the entry of a form as soon as that is shown. `rejoined` is set when the caller returns
    to entries it had left: they are new to its line, but not to the log. `is_new_line` is set when the list is another
    conversation than any that the log has. `formed` are the entries that the caller has in a new form, `unseen` those
    of which the log has another unseen form now, or none any more. `returned_to` is the line that the caller returns to
    with a prompt of it.
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
    added: range = range(0)


_ALL = Shown()


class Log:
    """Everything that ever arrived (`entries`), and the line of it that the caller is on (`view`).

    The view has entries in the form that the caller has them in now, as far as the prompt shows them as they are.
    """

    def __init__(self) -> None:
        self.entries: list[Message] = []
        self.view: list[Message] = []
        # The conversation that the caller is in.
        self.line = 0
        self._known = FormedEntries()
        # The list that the caller has of its own: the last one of these, and what came since.
        self._raw = KnownList()
        # The last list, if it was a prompt with something behind it: the next prompt may be another one.
        self._sent_back = KnownList()
        # The oldest entries of the view, if the caller's list has lost these: a summary stands for them.
        self._trimmed: frozenset[str] = frozenset()
        self._left = LeftEntries()
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
        log._known = FormedEntries(entries, forms, unseen)
        log.view = [log.now(message_id) for message_id in view_ids]
        for entry in log.view:
            is_unseen = entry.id in log.unseen
            log._raw.add(log.unseen.get(entry.id, entry).original, (entry.id,), "" if is_unseen else entry.id)
        on_the_line = {message.id for message in log.view}
        log._left = LeftEntries(message for message in entries if message.id not in on_the_line)
        log.line = next((message.line for message in reversed(log.view) if not message.is_instruction), 0)
        return log

    def fork(self) -> Log:
        """Return a copy to try things on; the entries themselves are shared, since they never change."""
        twin = Log()
        twin.entries, twin.view, twin.line = list(self.entries), list(self.view), self.line
        twin._raw, twin._sent_back, twin._trimmed = self._raw.copy(), self._sent_back.copy(), self._trimmed
        twin._known, twin._left, twin._last_number = self._known.copy(), self._left.copy(), dict(self._last_number)
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

    @property
    def forms(self) -> Mapping[str, Message]:
        """The forms of entries that the caller has in another one than they came in."""
        return self._known.forms

    @property
    def unseen(self) -> Mapping[str, Message]:
        """The forms in which the caller has entries that something else stands for."""
        return self._known.unseen

    def get(self, message_id: str) -> Message | None:
        """Return an entry of the log by its id, in the form that it has now."""
        return self._known.now(message_id) if message_id in self._known else None

    def recorded(self, message_id: str) -> Message:
        """Return an entry of the log as it came."""
        return self._known.recorded[message_id]

    @property
    def recorded_by_id(self) -> Mapping[str, Message]:
        """The entries as they came, by their ids."""
        return self._known.recorded

    def now(self, message_id: str) -> Message:
        """Return an entry that the log has, in the form that it has now."""
        return self._known.now(message_id)

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
                return self._longer(IncomingList(incoming, read, shown), sent)
        changed = IncomingList(incoming, read, shown)
        found = Recognition(changed, self._known, self._left).best(self._lists(output), earlier)
        if found is None:
            return None
        left = found.sent.left
        return self._returned(left, changed, found) if left else self._changed(changed, found, output)

    def _lists(self, output: KnownList) -> list[KnownList]:
        """Return what a list may go on from: the caller's own, the newest prompt, and the whole line."""
        lists = [self._raw, output]
        if self._raw.owners != self.view_ids:  # a trimmed list, or a prompt: the next may be whole again
            lists.append(KnownList())
            lists[-1].add_entries(self.view)
        return lists

    def _longer(self, incoming: IncomingList, sent: KnownList) -> Match:
        """Match a list that begins with a known one: what follows is new."""
        if sent is not self._raw and not sent.ours and len(sent.owners) == len(self.view):
            # A prompt of all messages is a list of the caller's own: it may have been a prompt with a summary before.
            self._raw = sent = sent.copy()
        sent.take_objects(incoming.items)
        before = len(self.entries)
        items = self._read_new(incoming, range(len(sent.originals), len(incoming.items)), line=self.line)
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
        self, incoming: IncomingList, places: Iterable[int], *, line: int | None = None, bare_until: int = 0
    ) -> list[tuple[Message, bool]]:
        """Return the entries at these places, and whether the log has them: those that the caller had left.

        With `line`, only entries of that line are used again. Up to `bare_until` an entry may have lost its `meta`, as
        it does in a prompt.
        """
        # Read everything first: a bad entry must not leave half a list in the log.
        messages = [(place, incoming.read(place)) for place in places]
        found = list[tuple[Message, bool]]()
        # Where in the log the calls are that come back, by their ids.
        calls, may_be_other = dict[str, int](), None
        for n, message in messages:
            known = self._take_left(message, line, may_be_bare=n < bare_until)
            if known is None and message.tool_call_id in calls:
                may_be_other = may_be_other or incoming.may_be_other_results()
                known = self._take_cut(message, calls[message.tool_call_id], may_be_other=may_be_other(n))
            if known is not None and known.tool_calls:
                calls |= {call.id: self._known.places[known.id] for call in known.tool_calls}
            found.append((known or message, known is not None))
        return found

    def _append(self, items: Iterable[tuple[Message, bool]]) -> tuple[Message, ...]:
        """Record the entries that are new, and return all of them."""
        return tuple(entry if is_known else self._record(entry) for entry, is_known in items)

    def _take_left(self, message: Message, line: int | None, *, may_be_bare: bool) -> Message | None:
        """Return an entry, of this line if one is named, that the caller had left and sends again now; the oldest.

        It is in the form that the caller has it in now, but keeps its `meta`.
        """

        def is_on_line(entry: Message) -> bool:
            return line in (None, entry.line)

        def is_the_same(entry: Message) -> bool:
            return is_on_line(entry) and entry.meta == message.meta

        conditions = (is_the_same, is_on_line) if may_be_bare and not message.meta else (is_the_same,)
        entry = self._left.take(message.original, *conditions)
        if entry is None:
            return None
        if entry.meta != message.meta:
            return replace(entry, original=message.original)
        return self._in_form_of(message, entry)

    def _take_cut(self, message: Message, call: int, *, may_be_other: bool) -> Message | None:
        """Return the result of a call at a place of the log if the caller had left it and a message says less of it."""
        behind = (self.entries[place] for place in range(call, len(self.entries)))
        result = next((entry for entry in behind if entry.tool_call_id == message.tool_call_id), None)
        if result is None or not is_reduced(result, message, may_be_other=may_be_other):
            return None
        left = self._left.take(result.original, lambda entry: entry.id == result.id)
        return None if left is None else self._in_form_of(message, left)

    def _in_form_of(self, message: Message, entry: Message) -> Message:
        """Return an entry in the form that a message has, from now on."""
        form = replace(message, id=entry.id, line=entry.line)
        return form if self._known.take_form(form) else entry

    def _formed_in(self, items: Iterable[tuple[Message, bool]]) -> tuple[str, ...]:
        """Return the entries that came back in another form than they were recorded in."""
        return tuple(entry.id for entry, is_known in items if is_known and entry.id in self.forms)

    def _record(self, message: Message) -> Message:
        """Append an entry under its own id, or under a new one if it has none or the id is taken."""
        own = message.id or f"m{len(self.entries) + 1}"
        while own in self._known:
            number = self._last_number[message.id] = self._last_number.get(message.id, 1) + 1
            own = f"{message.id or 'm'}-{number}"
        entry = with_id(message, own, self.line)
        self.entries.append(entry)
        self._known.record(entry)
        return entry

    def _extend_view(self, new: Sequence[Message]) -> None:
        self.view.extend(new)
        self._raw.add_entries(new)

    def _changed(self, incoming: IncomingList, found: Recognised, output: KnownList) -> Match:
        """Match a list that does not begin with a known one: keep what is still there, append what is new."""
        alignment, sent, shown = found.alignment, found.sent, incoming.shown
        forms = Recognition(incoming, self._known, self._left).forms(found)
        places = [alignment.changed.get(n, place) if n in forms else place for n, place in enumerate(alignment.places)]
        matched = [self.recorded(i) for place in places if place is not None for i in sent.ids[place]]
        lines = lines_in(incoming.items, places[: alignment.known_until])
        own_forms = [self.unseen.get(entry.id, entry) for entry in self.view]
        ours = lines | hidden_in(incoming.items, places, sent, own_forms)
        fresh = [n for n, place in enumerate(places) if place is None and n not in ours]
        conversation = self._conversation_of(incoming.items, matched)
        items = self._read_new(incoming, fresh, line=conversation, bare_until=alignment.known_until)
        line = self._line_of(matched, items)
        is_new_line = line > max(entry.line for entry in self.entries)
        self.line = line
        formed = [form.id for form in forms.values() if shown.as_is(form.id) and self._known.take_form(form)]
        unseen = [form.id for form in forms.values() if not shown.as_is(form.id) and self._known.take_unseen(form)]
        new, own = self._append(items), KnownList()
        added = iter(new)
        for n, place in enumerate(places):
            if n in ours:
                own.add(incoming.read(n).original, (), "")
            elif place is None:
                own.add_entries([next(added)])
            elif n in forms:
                own.add(forms[n].original, sent.ids[place], forms[n].id if shown.as_is(forms[n].id) else "")
            else:
                # Where we have a text of ours, the list may have the whole of what that goes on standing for.
                original = sent.originals[place] if sent.owners[place] else incoming.read(n).original
                own.add(original, sent.ids[place], sent.owners[place])
                unseen += [i for i in sent.ids[place] if self._known.forget_unseen(incoming.items[n], i)]
        change = ListChange(sent, places, own, self.view, self.recorded)
        if is_new_line:
            gone = {entry.id for entry in self.view} - change.kept
        else:
            gone = self._gone_by(change, alignment.lost if shown.has_summary else ())
        left_ids, branched = self._change_view(gone, change.places_of_new(gone))
        if sent is output and not branched:
            self._raw.add_entries(new)
            self._sent_back = own
        else:
            self._raw, self._sent_back = own, KnownList()
        has_rejoined = any(is_known for _, is_known in items)
        formed += self._formed_in(items)
        return Match(new, own.owners, branched, has_rejoined, left_ids, is_new_line, tuple(formed), tuple(unseen))

    def _gone_by(self, change: ListChange, lost: Iterable[int]) -> set[str]:
        """Return what leaves the line; what a list has lost at its beginning stays while a summary stands for it."""
        self._trimmed = frozenset(change.trimmed(lost, self._trimmed))
        return (change.missing() - self._trimmed) | change.marked_anew() | change.hidden_behind_lost()

    def leave_trimmed(self) -> tuple[str, ...]:
        """Leave the entries that the caller's list has lost, since no summary stands for them now; return them."""
        return self._change_view(set(self._trimmed), {})[0] if self._trimmed else ()

    def _returned(self, left: LeftLine, incoming: IncomingList, found: Recognised) -> Match:
        """Match a list that goes on with a prompt of a line that was left: be on that line again."""
        there = self.fork()  # an item that cannot be read must leave the log as it is
        on_the_line = frozenset(left.ids)
        there._known.keep_forms(on_the_line)
        there.view = [there.now(message_id) for message_id in left.ids]
        there._left = LeftEntries(entry for entry in self.entries if entry.id not in on_the_line)
        match = there._changed(incoming, found, KnownList())
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
        shown = [self._known.unseen.pop(message_id) for message_id in ids]
        taken = tuple(form.id for form in shown if self._known.take_form(form))
        for form in shown:
            self._raw.take_owner(form)
            self._sent_back.take_owner(form)
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
        left = [self.recorded(entry.id) for entry in before if entry.id in gone]
        self._left.add(left, self._known.places)
        self._trimmed = self._trimmed.difference(entry.id for entry in left)
        self._known.forget_forms(entry.id for entry in left)
        is_longer = not left and ids[: len(before)] == [entry.id for entry in before]
        return tuple(entry.id for entry in left), not is_longer

    def _conversation_of(self, incoming: Sequence[object], matched: Sequence[Message]) -> int | None:
        """Return the line that has most of a list, since others may have said the same words; None if there is one."""
        if not any(entry.line for entry in self.entries):
            return None
        lines = Counter(entry.line for entry in matched if not entry.is_instruction)
        for item in incoming:
            lines.update({entry.line for entry in self._left.saying_what(item) if not entry.is_instruction})
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
        lines = [entry.line for entry in known if not entry.is_instruction]
        fresh = [entry for entry, is_known in items if not (is_known or entry.is_instruction)]
        if lines or not fresh:
            return lines[-1] if lines else self.line
        by_words = {words: entry.line for entry in self.entries if (words := _words(entry))}
        same = [by_words[words] for entry in fresh if (words := _words(entry)) in by_words]
        if same or not by_words or any(SUMMARY_MARK in entry.text for entry in fresh):
            return same[-1] if same else self.line
        return max(entry.line for entry in self.entries) + 1


def _words(message: Message) -> str:
    """Return what a message says, whoever wrote it down and how; "" for instructions and for what has no words."""
    return "" if message.is_instruction else " ".join(message.text.split())
