"""Find the later text that says nearly the same, and the lines in which the older one differs; no model is asked.

Lines are compared in their order, as `diff` does: two texts with the same lines in another order are not the same. The
later text may go on before and behind what they share, but not between: there the older one was a choice of lines, and
that is something else. A long line is taken apart at its commas, so that JSON on one line is compared field by field.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from compact.core.facts.text import joined_ranges

# Chosen: a longer line is taken apart at its commas.
_LONG_LINE_CHARS = 160
# Chosen: how many of the newest texts are remembered for each line; a line that more of them have tells nothing.
_MAX_TEXTS_PER_LINE = 8
_LINE = re.compile(r"[^\n]+")
_FIELD = re.compile(r"[^,;\n]+[,;]?")


@dataclass(frozen=True, slots=True)
class NearDuplicate:
    """A later text that says nearly the same: whose it is, what of the older one it lacks, and what stands between."""

    later_id: str
    differing: tuple[tuple[int, int], ...]
    added_pieces: int


@dataclass(frozen=True, slots=True)
class _Text:
    """A text in pieces: lines, or fields of a long line, without the blanks behind them."""

    message_id: str
    pieces: tuple[str, ...]
    ranges: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, message_id: str, text: str) -> _Text:
        ranges = tuple(_piece_ranges(text))
        return cls(message_id, tuple(text[start:end] for start, end in ranges), ranges)


@dataclass(slots=True)
class LaterTexts:
    """The texts after the one in hand, by the pieces they have; add them from the newest backwards."""

    min_similarity: float
    _texts: list[_Text] = field(default_factory=list[_Text])
    _places: dict[str, list[int]] = field(default_factory=dict[str, list[int]])

    def add(self, message_id: str, text: str) -> None:
        """Remember a text."""
        place = len(self._texts)
        self._texts.append(_Text.of(message_id, text))
        for piece in set(self._texts[place].pieces):
            places = self._places.setdefault(piece, [])
            if len(places) < _MAX_TEXTS_PER_LINE:
                places.append(place)

    def find(self, text: str) -> NearDuplicate | None:
        """Return the later text that is most like this one, if it is nearly the same."""
        old = _Text.of("", text)
        later = self._most_alike(old)
        if later is None:
            return None
        matched = aligned(old.pieces, later.pieces)
        shared = sum(len(old.pieces[index]) for index in matched)
        stretch = later.pieces[min(matched.values(), default=0) : max(matched.values(), default=-1) + 1]
        if shared < self.min_similarity * max(sum(map(len, old.pieces)), sum(map(len, stretch)), 1):
            return None
        return NearDuplicate(later.message_id, _differing(old, matched), len(stretch) - len(matched))

    def _most_alike(self, old: _Text) -> _Text | None:
        """Return the text that shares the most pieces, by their length; the newest of equals."""
        votes: Counter[int] = Counter()
        for piece in set(old.pieces):
            for place in self._places.get(piece, ()):
                votes[place] += len(piece)
        best = min(votes, key=lambda place: (-votes[place], place), default=None)
        is_enough = best is not None and votes[best] >= self.min_similarity * sum(map(len, set(old.pieces)))
        return self._texts[best] if best is not None and is_enough else None


def aligned(old: Sequence[str], new: Sequence[str]) -> dict[int, int]:
    """Return the places of `old` that `new` has too, in the same order, each with its place there.

    Those are the start and the end that both share, and what stands around pieces that each of them has once. Linear
    but for the sorting; a place that it misses is taken for a difference, which is safe.
    """
    start, shorter = 0, min(len(old), len(new))
    while start < shorter and old[start] == new[start]:
        start += 1
    end = 0
    while end < shorter - start and old[-1 - end] == new[-1 - end]:
        end += 1
    matched = {place: place for place in range(start)}
    matched |= {len(old) - n: len(new) - n for n in range(1, end + 1)}
    first, last = (start, start), (len(old) - end, len(new) - end)
    before = first
    for place, other in (*_anchors(old, new, first, last), last):
        # From each side towards the other, as far as the lines are the same.
        while before[0] < place and before[1] < other and old[before[0]] == new[before[1]]:
            matched[before[0]] = before[1]
            before = before[0] + 1, before[1] + 1
        back = place - 1, other - 1
        while back[0] >= before[0] and back[1] >= before[1] and old[back[0]] == new[back[1]]:
            matched[back[0]] = back[1]
            back = back[0] - 1, back[1] - 1
        before = place, other
    return matched


def _anchors(
    old: Sequence[str], new: Sequence[str], first: tuple[int, int], last: tuple[int, int]
) -> Iterator[tuple[int, int]]:
    """Yield places of pieces that both have once, in an order that is the same in both: as many as there are."""
    once_old = {piece for piece, count in Counter(old[first[0] : last[0]]).items() if count == 1}
    once_new = {piece for piece, count in Counter(new[first[1] : last[1]]).items() if count == 1}
    places = {new[index]: index for index in range(first[1], last[1]) if new[index] in once_new}
    pairs = [(i, places[old[i]]) for i in range(first[0], last[0]) if old[i] in once_old and old[i] in places]
    # The longest rising sequence of places in the new text: for each length the pair that ends it at the lowest place.
    lowest: list[int] = []
    ending: list[int] = []
    before: list[int] = []
    for number, (_, place) in enumerate(pairs):
        length = bisect_left(lowest, place)
        before.append(ending[length - 1] if length else -1)
        if length == len(lowest):
            lowest.append(place)
            ending.append(number)
        else:
            lowest[length], ending[length] = place, number
    number, chosen = ending[-1] if ending else -1, list[tuple[int, int]]()
    while number >= 0:
        chosen.append(pairs[number])
        number = before[number]
    yield from reversed(chosen)


def _differing(old: _Text, matched: Mapping[int, int]) -> tuple[tuple[int, int], ...]:
    """Return the ranges of what is not matched, each with the piece before it: it says where it was."""
    ranges: list[tuple[int, int]] = []
    for index in range(len(old.pieces)):
        if index not in matched:
            ranges.append((old.ranges[max(0, index - 1)][0], old.ranges[index][1]))
    return joined_ranges(ranges)


def _piece_ranges(text: str) -> Iterator[tuple[int, int]]:
    for line in _LINE.finditer(text):
        is_long = line.end() - line.start() > _LONG_LINE_CHARS
        for piece in _FIELD.finditer(text, line.start(), line.end()) if is_long else (line,):
            content = piece[0].rstrip()
            if content:
                yield piece.start(), piece.start() + len(content)
