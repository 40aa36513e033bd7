"""Tails: what stood behind the log in earlier prompts, which a caller may send back.

A reminder, an injected text or a rehydrated result is ours, though it comes back in the caller's list.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

from compact.core.log.forms import plain
from compact.core.log.known_list import KnownList
from compact.core.log.log import Log
from compact.core.messages.entries import read_entry
from compact.core.plan.turn import is_added

# How many earlier prompts are recognised when they come back; a call may be retried again and again. Chosen.
_REMEMBERED = 32
# How many items may be behind what was added to a prompt, if it has moved: it comes back with an answer or two. Chosen.
_MOST_BEHIND = 32


@dataclass(frozen=True, slots=True)
class PromptTail:
    """What stood behind the log in an earlier prompt: from which place on, the items, and what was before them.

    Items are known as `plain` ones: a caller may put its mark for a cache behind them.
    """

    start: int
    items: tuple[object, ...]
    before: object = None

    @classmethod
    def of(cls, items: Iterable[object], start: int, before: object = None) -> PromptTail:
        """Return the tail that some items are."""
        return cls(start, tuple(map(plain, items)), plain(before))

    @property
    def end(self) -> int:
        """The place behind it."""
        return self.start + len(self.items)

    def is_in(self, incoming: Sequence[object]) -> bool:
        """Return True if a list has it at its place."""
        return tuple(map(plain, incoming[self.start : self.end])) == self.items

    def found_in(self, incoming: Sequence[object], start: int) -> Iterator[PromptTail]:
        """Yield it wherever it stands in a list, from a place on."""
        places = (n for n in range(max(1, start), len(incoming)) if plain(incoming[n]) == self.items[0])
        return (tail for n in places if (tail := replace(self, start=n)).is_in(incoming))

    def is_behind_the_same(self, incoming: Sequence[object]) -> bool:
        """Return True if a list has before it what was before it in its prompt."""
        return plain(incoming[self.start - 1]) == self.before


@dataclass(frozen=True, slots=True)
class PromptTails:
    """The tails of the newest prompts of this process, the newest first.

    With `has_others`, a prompt may come back whose tail is not among them: of another process, or of long ago.
    """

    tails: tuple[PromptTail, ...] = ()
    has_others: bool = False

    def with_tail(self, tail: PromptTail) -> PromptTails:
        """Return the same with one more, or with one that has come back in front."""
        tails = (tail, *(other for other in self.tails if other != tail))
        return PromptTails(tails[:_REMEMBERED], self.has_others or len(tails) > _REMEMBERED)

    def found_in(self, incoming: Sequence[object], log: Log, output: KnownList) -> PromptTail | None:
        """Return the tail that a list has: at its place, or where it is now; `output` is the newest prompt."""
        tail = next((tail for tail in self.tails if tail.is_in(incoming)), None)
        if tail or not self.tails:
            return tail
        newest = [plain(item) for item in incoming[-_MOST_BEHIND:]]
        if not any(tail.items[0] in newest for tail in self.tails):
            return None
        start = max(log.known_start(incoming, output), len(incoming) - _MOST_BEHIND)
        found = [moved for tail in self.tails for moved in tail.found_in(incoming, start)]
        in_place = next((tail for tail in found if tail.is_behind_the_same(incoming)), None)
        return in_place or next((tail for tail in found if _is_told_by_label(tail, incoming, log)), None)


def labelled_tail(incoming: Sequence[object], log: Log, output: KnownList) -> PromptTail | None:
    """Return the first that a list has of what is labelled as added to a prompt, behind what is known of it."""
    known = log.known_start(incoming, output)
    ours = {n: _is_labelled(incoming[n], f"messages[{n}]", log) for n in range(known, len(incoming))}
    start = next((place for place, is_ours in ours.items() if is_ours), len(incoming))
    added = takewhile(lambda place: ours[place], range(start, len(incoming)))
    tail = PromptTail.of([incoming[place] for place in added], start)
    return tail if tail.items else None


def _is_told_by_label(tail: PromptTail, incoming: Sequence[object], log: Log) -> bool:
    """Return True for what has a label of ours and something behind it, though not what was before it any more."""
    return tail.end < len(incoming) and _is_labelled(incoming[tail.start], f"messages[{tail.start}]", log)


def _is_labelled(item: object, place: str, log: Log) -> bool:
    """Return True for what was added behind the log, by its label; not for a message of the log that quotes one."""
    message = read_entry(item, place)
    return is_added(message) and all(entry.text != message.text for entry in log.entries)
