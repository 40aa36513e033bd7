"""Choose pieces of a history for a budget: always the one that adds most for its tokens, given what is shown."""

from __future__ import annotations

import heapq
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import fsum

from compact.core.facts.pieces import Origin, Piece, Step, cut_into_pieces
from compact.core.facts.score import HistoryScores
from compact.core.facts.value import AGES, content_kind, value
from compact.core.facts.value_table import VALUES
from compact.core.messages.message import Message, text_chars

# A field of a record, as JSON, TOML, YAML and headers have them, what some have above them, and the row of a table.
_FIELD = re.compile(r"""["']?[\w .-]{1,40}["']?\s*[:=]\s*\S""")
_HEADING = re.compile(r"\[[\w .-]{1,40}\]|[\w .-]{1,40}:")
_ROW = re.compile(r"\|.*\|")


@dataclass(frozen=True, slots=True)
class ScoreWeights:
    """What each part of a piece's gain counts; each is a share of all there is, so that they can be added.

    Chosen, and measured by `python benchmarks/fidelity`: names gain most in recall, `value` keeps the dialogue.
    """

    strings: float = 3.5
    words: float = 0.65
    value: float = 1.5


class _Costs(dict[int, int]):
    """The tokens of each piece and of the line end behind it, counted when they are first asked for."""

    def __init__(self, pieces: Sequence[Piece], count_text: Callable[[str], int]) -> None:
        super().__init__()
        self._pieces, self._count_text = pieces, count_text

    def __missing__(self, index: int) -> int:
        tokens = self[index] = self._count_text(self._pieces[index].text) + 1
        return tokens


class Selection:
    """A history in pieces, and which of them are shown; what a piece adds only shrinks as others are shown."""

    def __init__(
        self,
        messages: Sequence[Message],
        *,
        count_text: Callable[[str], int],
        weights: ScoreWeights | None = None,
        places: Collection[int] | None = None,
    ) -> None:
        self.pieces = cut_into_pieces(messages, places)
        self._scores = HistoryScores(self.pieces)
        ages = _ages(messages)
        self._values = [
            value(content_kind(piece), ages[piece.place], VALUES) * len(piece.text) for piece in self.pieces
        ]
        self._shown_strings: set[str] = set()
        self._shown_words: set[str] = set()
        self._shown_texts: set[str] = set()
        self._unit_weights = self._per_unit(weights or ScoreWeights())
        self._factors: Sequence[float] = ()
        self.costs = _Costs(self.pieces, count_text)
        # What one label stands before: all pieces of one step that have one origin. In numbers, which hash quickly.
        numbers: dict[tuple[Step, str], int] = {}
        self.labels = [numbers.setdefault((piece.step, piece.origin.value), len(numbers)) for piece in self.pieces]

    def _per_unit(self, weights: ScoreWeights) -> ScoreWeights:
        """Return what one unit of each part adds to the whole."""
        return ScoreWeights(
            weights.strings / (fsum(self._scores.string_scores.values()) or 1.0),
            weights.words / (fsum(self._scores.word_scores.values()) or 1.0),
            weights.value / (fsum(self._values) or 1.0),
        )

    def favour(self, factors: Sequence[float]) -> None:
        """Let what each piece gains count so many times."""
        self._factors = factors

    def reset(self, shown: Iterable[int] = ()) -> None:
        """Forget what was chosen, and note what is in the prompt anyway."""
        for texts in (self._shown_strings, self._shown_words, self._shown_texts):
            texts.clear()
        self.mark_shown(shown)

    def mark_shown(self, indices: Iterable[int]) -> None:
        """Note pieces that are in the prompt anyway: what they have need not be shown again."""
        for index in indices:
            self._shown_strings |= self.pieces[index].strings
            self._shown_words |= self.pieces[index].words
            self._shown_texts.add(self.pieces[index].text)

    def gain(self, index: int) -> float:
        """Return what a piece adds to what is shown."""
        piece, scores, weights = self.pieces[index], self._scores, self._unit_weights
        if piece.text in self._shown_texts:
            return 0.0
        # Sets have no order that lasts from one process to the next: only an exact sum is always the same.
        strings = fsum(map(scores.string_scores.__getitem__, piece.strings - self._shown_strings))
        words = fsum(map(scores.word_scores.__getitem__, piece.words - self._shown_words))
        gain = strings * weights.strings + words * weights.words + self._values[index] * weights.value
        return gain * self._factors[index] if self._factors else gain

    def choose(
        self,
        candidates: Iterable[int],
        max_tokens: int,
        *,
        label_tokens: int = 0,
        leads: Mapping[int, int] | None = None,
        few_lines: int = 0,
        units: Mapping[int, tuple[int, ...]] | None = None,
    ) -> list[int]:
        """Choose pieces that fit, those that gain most for their tokens first; the first of a text brings its label.

        `leads` names for a piece the one that it cannot be understood without, and `units` those that are chosen
        with it or not at all: all are paid for. The lines of a result behind its best `few_lines` count half and less.
        """
        fitting = [index for index in candidates if self.costs[index] <= max_tokens]
        shares = self._shares(fitting, few_lines) if few_lines else {}
        choice = _Choice(self, label_tokens, leads or {}, units or {}, shares)
        return choice.made_of(fitting, max_tokens)

    def units(self, indices: Iterable[int], max_tokens: int) -> dict[int, tuple[int, ...]]:
        """Return for each line of a record or of a table in a result all of its lines, if they take no more tokens.

        Fields of two records side by side would say what is not so.
        """
        units: dict[int, tuple[int, ...]] = {}
        for lines in self._by_result(indices):
            for unit in self._records_and_tables(lines):
                if len(unit) > 1 and sum([self.costs[index] for index in unit]) <= max_tokens:
                    units |= dict.fromkeys(unit, tuple(unit))
        return units

    def _by_result(self, indices: Iterable[int]) -> Iterable[list[int]]:
        """Return those of some pieces that are lines of results, result by result."""
        found: dict[Step, list[int]] = {}
        for index in indices:
            if self.pieces[index].origin is Origin.RESULT:
                found.setdefault(self.pieces[index].step, []).append(index)
        return found.values()

    def _records_and_tables(self, lines: Sequence[int]) -> Iterator[list[int]]:
        """Yield lines of a result that belong together: fields or rows with nothing between them, and their heading."""
        unit: list[int] = []
        shape: re.Pattern[str] | None = None
        for index in lines:
            piece = self.pieces[index]
            here = next((known for known in (_FIELD, _ROW) if known.match(piece.text)), None)
            # Between the head of a table and its rows is a line without words.
            most = 2 if here is _ROW else 1
            is_next = bool(unit) and piece.line <= self.pieces[unit[-1]].line + most
            if not is_next or here is None or shape not in (None, here):
                yield unit
                unit = []
            unit = [*unit, index] if here or _HEADING.fullmatch(piece.text) else []
            shape = here
        yield unit

    def _shares(self, indices: Iterable[int], few_lines: int) -> dict[int, float]:
        """Return what the lines of results count: the best of each in full, the others less and less.

        By their rank at the beginning, not by what is chosen meanwhile: that would have to be looked at after each.
        """
        shares: dict[int, float] = {}
        for lines in self._by_result(index for index in indices if self.pieces[index].place < self._scores.last_answer):
            lines.sort(key=lambda index: (-self.gain(index) / self.costs[index], index))
            shares |= {index: few_lines / (few_lines + rank) for rank, index in enumerate(lines)}
        return shares


@dataclass(frozen=True, slots=True)
class _Choice:
    """One choice among the pieces of a selection: what comes with each of them, and what that adds for its tokens."""

    selection: Selection
    label_tokens: int
    leads: Mapping[int, int]
    units: Mapping[int, tuple[int, ...]]
    shares: Mapping[int, float]
    labelled: set[int] = field(default_factory=set[int])
    taken: set[int] = field(default_factory=set[int])

    def made_of(self, fitting: Iterable[int], room: int) -> list[int]:
        """Return the pieces that are chosen, the first of them first."""
        heap = [(-self._density(index, self._brings(index)), index) for index in fitting]
        heapq.heapify(heap)
        chosen: list[int] = []
        while heap:
            _, index = heapq.heappop(heap)
            if index in self.taken:
                continue
            needed = self._brings(index)
            tokens = self._cost(needed)
            if tokens > room:
                continue
            now = self._density(index, needed)
            if heap and now < -heap[0][0]:
                heapq.heappush(heap, (-now, index))
            elif now > 0:
                room -= tokens
                self.selection.mark_shown(needed)
                self.labelled.update(self.selection.labels[index] for index in needed)
                self.taken.update(needed)
                chosen += needed
        return chosen

    def _brings(self, index: int) -> tuple[int, ...]:
        """Return what a piece is chosen with: its unit, and the one that this cannot be understood without."""
        lead, unit = self.leads.get(index, index), self.units.get(index, (index,))
        return unit if lead == index or lead in self.taken else (lead, *unit)

    def _cost(self, indices: tuple[int, ...]) -> int:
        """Return the tokens of some pieces, and of the labels that are not there yet."""
        costs, labels = self.selection.costs, self.selection.labels
        if len(indices) == 1:  # nearly all
            (index,) = indices
            return costs[index] + (0 if labels[index] in self.labelled else self.label_tokens)
        new_labels = {labels[index] for index in indices} - self.labelled
        return sum([costs[index] for index in indices]) + self.label_tokens * len(new_labels)

    def _density(self, index: int, needed: tuple[int, ...]) -> float:
        """Return what a piece adds for each token of what it is chosen with."""
        gain, share = self.selection.gain, 1.0 if index in self.units else self.shares.get(index, 1.0)
        return (gain(index) if len(needed) == 1 else fsum(map(gain, needed))) * share / self._cost(needed)


def _ages(messages: Sequence[Message]) -> list[float]:
    """Return how far back each message lies, in tokens, roughly; beyond the oldest age with a value it is that age."""
    ages, age = [float(AGES[-1])] * len(messages), 0.0
    for place in reversed(range(len(messages))):
        if age >= AGES[-1]:
            break
        ages[place] = age
        age += text_chars(messages[place]) / 4
    return ages
