"""The log of one session: append-only, and able to tell what in a caller's list is new.

A caller may send the full raw history every time, or what we returned last time plus new messages, or a past it
has edited. Entries are matched in order, by what they are, never by position alone; equal entries stay distinct.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher

from compact.core.log.messages import Message

# Comparing two long, repetitive middles costs the product of their lengths; beyond this, repeats count as new.
_MAX_PAIRINGS = 4_000_000


@dataclass(frozen=True, slots=True)
class Shown:
    """A list the caller may send back: each entry as it looked, and the log entries it stands for.

    `owners` has the id of an entry that is shown as it came, and nothing where the text is ours.
    """

    originals: list[object] = field(default_factory=list[object])
    ids: list[tuple[str, ...]] = field(default_factory=list[tuple[str, ...]])
    owners: list[str] = field(default_factory=list[str])

    def copy(self) -> Shown:
        """A list of its own with the same entries."""
        return Shown(list(self.originals), list(self.ids), list(self.owners))


@dataclass(frozen=True, slots=True)
class Match:
    """What a caller's list came to: entries new to its line, and whether the past was edited.

    `owners` names, for each entry of the caller's list, the log entry it is (nothing for text that we made). A caller
    that comes back to what it had left has `rejoined`: those entries are new to its line, but not to the log.
    """

    new: tuple[Message, ...]
    owners: list[str]
    branched: bool = False
    rejoined: bool = False
    left_ids: tuple[str, ...] = ()


class Thread:
    """Everything that ever arrived (`log`), and the line of it that the caller is on (`view`)."""

    def __init__(self, thread_id: str) -> None:
        self.thread_id = thread_id
        self.log: list[Message] = []
        self.view: list[Message] = []
        self._raw = Shown()
        self._by_id: dict[str, Message] = {}
        # What the caller has left behind and may come back to, by how it looks.
        self._left: dict[str, list[Message]] = {}

    @classmethod
    def restored(cls, thread_id: str, log: Sequence[Message], view_ids: Iterable[str]) -> Thread:
        """The thread as it was when a store wrote it down."""
        thread = cls(thread_id)
        thread.log = list(log)
        thread._by_id = {message.id: message for message in log}
        thread._continue_with([thread._by_id[message_id] for message_id in view_ids])
        on_the_line = {message.id for message in thread.view}
        thread._leave(message for message in log if message.id not in on_the_line)
        return thread

    def fork(self) -> Thread:
        """A copy that can be tried things on; entries are shared, they never change."""
        twin = Thread(self.thread_id)
        twin.log, twin.view = list(self.log), list(self.view)
        twin._raw, twin._by_id = self._raw.copy(), dict(self._by_id)
        twin._left = {look: list(entries) for look, entries in self._left.items()}
        return twin

    def __len__(self) -> int:
        return len(self.log)

    @property
    def view_ids(self) -> list[str]:
        """The ids of the current line, in order."""
        return [message.id for message in self.view]

    def get(self, message_id: str) -> Message | None:
        """An entry of the log by its id."""
        return self._by_id.get(message_id)

    def match(
        self,
        incoming: Sequence[object],
        *,
        output: Shown,
        read: Callable[[object, str], Message],
        earlier: Shown | None = None,
    ) -> Match:
        """Find what is new in a caller's list and append it; on an edited past, start a branch.

        `earlier` is the prompt that a compaction has just replaced: a caller that tries again sends it once more.
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
                before = len(self.log)
                new = self._append(incoming, range(known, len(incoming)), read)
                self._continue_with(new)
                is_back = len(self.log) - before < len(new)
                return Match(new, owners + [message.id for message in new], rejoined=is_back)
        return self._branch(incoming, output, read)

    def _append(
        self, incoming: Sequence[object], places: Iterable[int], read: Callable[[object, str], Message]
    ) -> tuple[Message, ...]:
        """The entries at these places: new ones are recorded, those that were left behind are taken up again."""
        items = [(place, incoming[place]) for place in places]
        back = [self._left_like(item) for _, item in items]
        try:
            # Read everything first: a bad entry must not leave half a list in the log.
            fresh = [known or read(item, f"messages[{n}]") for (n, item), known in zip(items, back, strict=True)]
        except Exception:
            self._leave(entry for entry in back if entry)
            raise
        return tuple(entry if known else self._record(entry) for entry, known in zip(fresh, back, strict=True))

    def _left_like(self, item: object) -> Message | None:
        """An entry that the caller had left behind and sends again now; the oldest of equal ones."""
        look = _fingerprint(item) if self._left else ""
        entries = self._left.get(look)
        if not entries:
            return None
        entry = entries.pop(0)
        if not entries:
            del self._left[look]
        return entry

    def _leave(self, entries: Iterable[Message]) -> None:
        for entry in entries:
            self._left.setdefault(_fingerprint(entry.original), []).append(entry)

    def _record(self, message: Message) -> Message:
        """Give an entry its id (its own, if it has one that is free) and put it at the end of the log."""
        own, number = message.id or f"m{len(self.log) + 1}", 2
        while own in self._by_id:
            own, number = f"{message.id or 'm'}-{number}", number + 1
        entry = replace(message, id=own)
        self.log.append(entry)
        self._by_id[own] = entry
        return entry

    def _continue_with(self, new: Sequence[Message]) -> None:
        self.view.extend(new)
        self._raw.originals.extend(message.original for message in new)
        self._raw.ids.extend((message.id,) for message in new)
        self._raw.owners.extend(message.id for message in new)

    def _branch(self, incoming: Sequence[object], output: Shown, read: Callable[[object, str], Message]) -> Match:
        """Keep what is still there, append what is not; what the caller left out stays in the log."""
        pairings = [(_align(shown.originals, incoming), shown) for shown in (self._raw, output)]
        pairs, shown = max(pairings, key=lambda pairing: sum(place is not None for place in pairing[0]))
        fresh = iter(self._append(incoming, [i for i, place in enumerate(pairs) if place is None], read))
        left, new, view, owners = self.view, list[Message](), list[Message](), list[str]()
        for place in pairs:
            if place is None:
                new.append(next(fresh))
                view.append(new[-1])
                owners.append(new[-1].id)
            else:
                view.extend(self._by_id[i] for i in shown.ids[place])
                owners.append(shown.owners[place])
        self.view, self._raw = [], Shown()
        self._continue_with(view)
        present = set(self.view_ids)
        gone = [message for message in left if message.id not in present]
        self._leave(gone)
        return Match(tuple(new), owners, branched=True, left_ids=tuple(message.id for message in gone))


def _align(known: Sequence[object], incoming: Sequence[object]) -> list[int | None]:
    """For each incoming entry, the place in `known` that it continues, in order; None if it is new."""
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


def _fingerprint(entry: object) -> str:
    if isinstance(entry, Message):
        return repr(replace(entry, id=""))
    return json.dumps(entry, sort_keys=True, default=repr)
