"""Chooses pieces of a history for a budget: always the one that adds most for its tokens, given what is there."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import fsum

from compact.core.facts.pieces import Voice, cut_into_pieces
from compact.core.facts.score import Worth, line_need
from compact.core.log.messages import Message


@dataclass(frozen=True, slots=True)
class Aim:
    """What counts how much: each part is a share of all there is, so that they can be added."""

    strings: float = 2.0
    words: float = 0.65
    typed: float = 0.8
    lines: float = 0.2


class Selection:
    """A history in pieces, and what has been chosen of it; what a piece adds only shrinks as others are chosen."""

    def __init__(
        self, messages: Sequence[Message], *, count_text: Callable[[str], int], aim: Aim | None = None
    ) -> None:
        self.pieces = cut_into_pieces(messages)
        self._worth = Worth(self.pieces)
        self._count_text = count_text
        ages = _ages(messages)
        self._lines = [line_need(piece, ages[piece.place]) for piece in self.pieces]
        self._seen: set[str] = set()
        self._told: set[str] = set()
        self._texts: set[str] = set()
        self._weights = self._weigh(aim or Aim())
        self._costs: dict[int, int] = {}

    def _cost(self, index: int) -> int:
        """The tokens of a piece and what parts it from the next, counted once."""
        if index not in self._costs:
            self._costs[index] = self._count_text(self.pieces[index].text) + 1
        return self._costs[index]

    def _weigh(self, aim: Aim) -> Aim:
        """What one unit of each part adds to the whole."""
        typed = sum(len(piece.text) for piece in self.pieces if piece.voice is Voice.TYPED)
        return Aim(
            aim.strings / (fsum(self._worth.string_need.values()) or 1.0),
            aim.words / (fsum(self._worth.word_need.values()) or 1.0),
            aim.typed / (typed or 1.0),
            aim.lines / (fsum(self._lines) or 1.0),
        )

    def start_over(self, shown: Iterable[int] = ()) -> None:
        """Forget what was chosen, and take note of what is in the prompt anyway."""
        for noted in (self._seen, self._told, self._texts):
            noted.clear()
        self.show(shown)

    def show(self, indices: Iterable[int]) -> None:
        """Take note of pieces that are in the prompt anyway: what they say need not be said again."""
        for index in indices:
            self._seen |= self._worth.strings[index]
            self._told |= self._worth.words[index]
            self._texts.add(self.pieces[index].text)

    def gain(self, index: int) -> float:
        """What a piece adds to what is there."""
        piece, worth, weights = self.pieces[index], self._worth, self._weights
        if piece.text in self._texts:
            return 0.0
        need, word_need = worth.string_need, worth.word_need
        # Sets have no order that lasts from one process to the next: only an exact sum is always the same.
        strings = fsum(need[text] for text in worth.strings[index] if text not in self._seen)
        words = fsum(word_need[word] for word in worth.words[index] if word not in self._told)
        typed = len(piece.text) if piece.voice is Voice.TYPED else 0
        lines = self._lines[index]
        return strings * weights.strings + words * weights.words + typed * weights.typed + lines * weights.lines

    def choose(self, candidates: Iterable[int], max_tokens: int, *, speaker_tokens: int = 0) -> list[int]:
        """Pieces that fit, the most valuable for their tokens first; the first of a message brings its speaker."""
        costs = {index: cost for index in candidates if (cost := self._cost(index)) <= max_tokens}
        open_messages: set[int] = set()

        def density(index: int) -> float:
            is_first = self.pieces[index].place not in open_messages
            return self.gain(index) / (costs[index] + speaker_tokens * is_first)

        heap = [(-density(index), index) for index in costs]
        heapq.heapify(heap)
        chosen: list[int] = []
        while heap:
            _, index = heapq.heappop(heap)
            place = self.pieces[index].place
            cost = costs[index] + speaker_tokens * (place not in open_messages)
            if cost > max_tokens:
                continue
            now = density(index)
            if heap and now < -heap[0][0]:
                heapq.heappush(heap, (-now, index))
            elif now > 0:
                self.show((index,))
                open_messages.add(place)
                chosen.append(index)
                max_tokens -= cost
        return chosen


def _ages(messages: Sequence[Message]) -> list[float]:
    """How far back each message lies, in tokens, roughly."""
    sizes = [(len(message.text) + sum(len(call.arguments) for call in message.tool_calls)) / 4 for message in messages]
    ends = list(accumulate(sizes))
    return [ends[-1] - end for end in ends]
