"""The append-only log of one session, and the matching of a caller's list with it.

A caller may send the full raw history every time, or the prompt we returned last time plus new messages, or a past it
has edited. Entries are matched in order and by content, never by position alone; equal entries stay distinct.

A list that has nothing in common with the log is another conversation under a session id that was used before: it
starts a new line. System and developer messages do not count: agents send the same ones in all conversations.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher

from compact.core.log.messages import Message

# Comparing two long, repetitive middles costs the product of their lengths; beyond this, repeats count as new. Chosen.
_MAX_PAIRINGS = 4_000_000
# How every summary of ours begins.
SUMMARY_MARK = "<COMPACT-SUMMARY v"


@dataclass(frozen=True, slots=True)
class KnownList:
    """A list that the caller may send back: its items, and the log entries each item stands for.

    `owners` has the id of the entry where an item is that entry unchanged, and "" where the text is ours.
    """

    originals: list[object] = field(default_factory=list[object])
    ids: list[tuple[str, ...]] = field(default_factory=list[tuple[str, ...]])
    owners: list[str] = field(default_factory=list[str])

    def copy(self) -> KnownList:
        """Return a list of its own with the same items."""
        return KnownList(list(self.originals), list(self.ids), list(self.owners))

    def add(self, original: object, ids: tuple[str, ...], owner: str) -> None:
        """Append one item."""
        self.originals.append(original)
        self.ids.append(ids)
        self.owners.append(owner)

    def add_entries(self, entries: Iterable[Message]) -> None:
        """Append log entries that are shown unchanged."""
        for entry in entries:
            self.add(entry.original, (entry.id,), entry.id)


@dataclass(frozen=True, slots=True)
class Match:
    """The result of matching a caller's list: the entries new to its line, and whether the past was edited.

    `owners` names the log entry of each item of the caller's list ("" for text that we made). `rejoined` is set when
    the caller returns to entries it had left: they are new to its line, but not to the log. `is_new_line` is set when
    the list is another conversation than any that the log has.
    """

    new: tuple[Message, ...]
    owners: list[str]
    branched: bool = False
    rejoined: bool = False
    left_ids: tuple[str, ...] = ()
    is_new_line: bool = False


class Log:
    """Everything that ever arrived (`entries`), and the line of it that the caller is on (`view`)."""

    def __init__(self) -> None:
        self.entries: list[Message] = []
        self.view: list[Message] = []
        # The conversation that the caller is in.
        self.line = 0
        self._raw = KnownList()
        self._by_id: dict[str, Message] = {}
        # Entries that the caller has left and may return to, by fingerprint.
        self._left: dict[str, list[Message]] = {}

    @classmethod
    def restored(cls, entries: Sequence[Message], view_ids: Iterable[str]) -> Log:
        """Return the log as a store has written it down."""
        log = cls()
        log.entries = list(entries)
        log._by_id = {message.id: message for message in entries}
        log._extend_view([log._by_id[message_id] for message_id in view_ids])
        on_the_line = {message.id for message in log.view}
        log._leave(message for message in entries if message.id not in on_the_line)
        log.line = next((message.line for message in reversed(log.view) if not _is_instruction(message)), 0)
        return log

    def fork(self) -> Log:
        """Return a copy to try things on; the entries themselves are shared, since they never change."""
        twin = Log()
        twin.entries, twin.view, twin.line = list(self.entries), list(self.view), self.line
        twin._raw, twin._by_id = self._raw.copy(), dict(self._by_id)
        twin._left = {fingerprint: list(entries) for fingerprint, entries in self._left.items()}
        return twin

    def __len__(self) -> int:
        return len(self.entries)

    @property
    def view_ids(self) -> list[str]:
        """The ids of the current line, in order."""
        return [message.id for message in self.view]

    def get(self, message_id: str) -> Message | None:
        """Return an entry of the log by its id."""
        return self._by_id.get(message_id)

    def match(
        self,
        incoming: Sequence[object],
        *,
        output: KnownList,
        read: Callable[[object, str], Message],
        earlier: KnownList | None = None,
    ) -> Match:
        """Find what is new in a caller's list and append it; on an edited past, start a branch.

        `output` is the newest prompt, `earlier` the one that a compaction has just replaced: a caller that retries
        sends it once more.
        """
        lists = (self._raw, output, earlier) if earlier else (self._raw, output)
        # The longer one first: a repaired prompt is the raw history with a little more behind it.
        for shown in sorted(lists, key=lambda shown: -len(shown.originals)):
            known = len(shown.originals)
            if not known and self.view:
                continue  # nothing was shown yet: that is no prefix of anything
            # One comparison in C covers the same objects, equal copies, and objects changed in place.
            if known <= len(incoming) and list(incoming[:known]) == shown.originals:
                owners = list(shown.owners)
                before = len(self.entries)
                items = self._read_new(incoming, range(known, len(incoming)), read, line=self.line)
                new = self._append(items)
                self._extend_view(new)
                has_rejoined = len(self.entries) - before < len(new)
                return Match(new, owners + [message.id for message in new], rejoined=has_rejoined)
        return self._branch(incoming, output, read)

    def _read_new(
        self,
        incoming: Sequence[object],
        places: Iterable[int],
        read: Callable[[object, str], Message],
        *,
        line: int | None = None,
    ) -> list[tuple[Message, bool]]:
        """Return the entries at these places, and whether the log has them: those that the caller had left.

        With `line`, only entries of that line are used again.
        """
        items = [(place, incoming[place]) for place in places]
        back = [self._take_left(item, line) for _, item in items]
        try:
            # Read everything first: a bad entry must not leave half a list in the log.
            return [
                (known or read(item, f"messages[{n}]"), known is not None)
                for (n, item), known in zip(items, back, strict=True)
            ]
        except Exception:
            self._leave(entry for entry in back if entry)
            raise

    def _append(self, items: Iterable[tuple[Message, bool]]) -> tuple[Message, ...]:
        """Record the entries that are new, and return all of them."""
        return tuple(entry if is_known else self._record(entry) for entry, is_known in items)

    def _take_left(self, item: object, line: int | None) -> Message | None:
        """Return an entry, of this line if one is named, that the caller had left and sends again now; the oldest."""
        fingerprint = _fingerprint(item) if self._left else ""
        entries = self._left.get(fingerprint, [])
        place = next((n for n, entry in enumerate(entries) if line in (None, entry.line)), None)
        if place is None:
            return None
        entry = entries.pop(place)
        if not entries:
            del self._left[fingerprint]
        return entry

    def _leave(self, entries: Iterable[Message]) -> None:
        for entry in entries:
            self._left.setdefault(_fingerprint(entry.original), []).append(entry)

    def _record(self, message: Message) -> Message:
        """Append an entry under its own id, or under a new one if it has none or the id is taken."""
        own, number = message.id or f"m{len(self.entries) + 1}", 2
        while own in self._by_id:
            own, number = f"{message.id or 'm'}-{number}", number + 1
        entry = replace(message, id=own, line=self.line)
        self.entries.append(entry)
        self._by_id[own] = entry
        return entry

    def _extend_view(self, new: Sequence[Message]) -> None:
        self.view.extend(new)
        self._raw.add_entries(new)

    def _branch(self, incoming: Sequence[object], output: KnownList, read: Callable[[object, str], Message]) -> Match:
        """Keep what is still there, append what is new; what the caller left out stays in the log."""
        pairings = [(_align(shown.originals, incoming), shown) for shown in (self._raw, output)]
        pairs, shown = max(pairings, key=lambda pairing: sum(place is not None for place in pairing[0]))
        items = self._read_new(incoming, [i for i, place in enumerate(pairs) if place is None], read)
        matched = [self._by_id[i] for place in pairs if place is not None for i in shown.ids[place]]
        line = self._line_of(matched, items)
        is_new_line = line > max((entry.line for entry in self.entries), default=0)
        self.line = line
        fresh = iter(self._append(items))
        left, new, view, owners = self.view, list[Message](), list[Message](), list[str]()
        for place in pairs:
            if place is None:
                new.append(next(fresh))
                view.append(new[-1])
                owners.append(new[-1].id)
            else:
                view.extend(self._by_id[i] for i in shown.ids[place])
                owners.append(shown.owners[place])
        self.view, self._raw = [], KnownList()
        self._extend_view(view)
        present = set(self.view_ids)
        gone = [message for message in left if message.id not in present]
        self._leave(gone)
        left_ids = tuple(message.id for message in gone)
        return Match(tuple(new), owners, branched=True, left_ids=left_ids, is_new_line=is_new_line)

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


def _align(known: Sequence[object], incoming: Sequence[object]) -> list[int | None]:
    """Return for each incoming item its place in `known`, in order; None if it is new."""
    start = 0
    while start < min(len(known), len(incoming)) and known[start] == incoming[start]:
        start += 1
    end = 0
    while end < min(len(known), len(incoming)) - start and known[-1 - end] == incoming[-1 - end]:
        end += 1
    places: list[int | None] = [*range(start), *([None] * (len(incoming) - start - end))]
    places.extend(range(len(known) - end, len(known)))
    left = [_fingerprint(entry) for entry in known[start : len(known) - end]]
    right = [_fingerprint(entry) for entry in incoming[start : len(incoming) - end]]
    matcher = SequenceMatcher(None, left, right, autojunk=len(left) * len(right) > _MAX_PAIRINGS)
    for block in matcher.get_matching_blocks():
        for offset in range(block.size):
            places[start + block.b + offset] = start + block.a + offset
    return places


def _is_instruction(message: Message) -> bool:
    return message.role in ("system", "developer")


def _words(message: Message) -> str:
    """Return what a message says, whoever wrote it down and how; "" for instructions and for what has no words."""
    return "" if _is_instruction(message) else " ".join(message.text.split())


def _fingerprint(entry: object) -> str:
    if isinstance(entry, Message):
        return repr((entry.role, entry.content, entry.tool_calls, entry.tool_call_id, entry.name, entry.meta))
    try:
        return json.dumps(entry, sort_keys=True, default=repr)
    except TypeError:  # keys of several types, which cannot be sorted
        return repr(entry)
