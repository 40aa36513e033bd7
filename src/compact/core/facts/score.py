"""Score the strings and words of a history: how likely each is to be needed for the rest of the task.

What people and agents named themselves, more than once and in answer to a tool, is needed again; what only a tool
printed seldom is. The weights were fitted once to what the agents of real transcripts wrote again after a cut, and
rounded; no command fits them again, but `python benchmarks/fidelity` measures how much of it they keep.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from compact.core.facts.common_words import COMMON_WORDS
from compact.core.facts.entities import EntityKind
from compact.core.facts.pieces import Origin, Piece

_NAME_PART = re.compile(r"[A-Z]?[a-z]{3,}|[A-Z]{3,}")
# More mentions than these add nothing.
_MAX_MENTIONS = 8
# What a common word counts against another one.
_COMMON_WORD_SHARE = 0.15
_TYPED, _INSERTED, _AGENT, _CALL, _RESULT = (1 << number for number in range(5))
_BITS = {
    Origin.TYPED: _TYPED,
    Origin.INSERTED: _INSERTED,
    Origin.AGENT: _AGENT,
    Origin.CALL: _CALL,
    Origin.RESULT: _RESULT,
}
_NOT_WRITTEN_IN_DIALOGUE = _RESULT | _INSERTED


@dataclass(slots=True)
class Mentions:
    """Where a string comes from, and how often and when it was used.

    `origins` has a bit for each: there are thousands of these, and the garbage collector does not walk numbers.
    """

    kind: EntityKind | None
    first_place: int
    origins: int = 0
    in_dialogue: int = 0
    printed: int = 0
    last_place: int = -1
    last_result_place: int = -1

    def add(self, place: int, origin: int) -> None:
        """Count a message, once for each origin in it."""
        if place == self.last_place and self.origins & origin:
            return
        self.origins |= origin
        if origin == _RESULT:
            self.last_result_place = place
        if origin & _NOT_WRITTEN_IN_DIALOGUE:
            self.printed += 1
        else:
            self.in_dialogue += 1
        self.last_place = place

    def is_from(self, origin: int) -> bool:
        """Return True if an origin has it."""
        return bool(self.origins & origin)


class Dialogue:
    """What people and the agent write about: where the turns are, and the parts of all names and words they use."""

    def __init__(self, pieces: Sequence[Piece]) -> None:
        asks = [piece.place for piece in pieces if piece.origin is Origin.TYPED]
        answers = [piece.place for piece in pieces if piece.origin in (Origin.AGENT, Origin.CALL)]
        self.first_ask, self.newest_ask = (asks[0], asks[-1]) if asks else (-1, -1)
        self.last_answer = answers[-1] if answers else -1
        self._name_parts: set[str] = set()
        self._asked_name_parts: set[str] = set()
        for piece in pieces:
            if _BITS[piece.origin] & _NOT_WRITTEN_IN_DIALOGUE:
                continue
            parts = _name_parts(piece.text)
            self._name_parts |= parts
            if piece.origin is Origin.TYPED and piece.place in (self.first_ask, self.newest_ask):
                self._asked_name_parts |= parts

    def affinity(self, text: str) -> float:
        """Return how much a string that nobody has written has to do with the dialogue, and with what is asked."""
        parts = _name_parts(text)
        if not parts:
            return -0.4
        return (1.0 * len(parts & self._name_parts) + 0.3 * len(parts & self._asked_name_parts)) / len(parts)


def _name_parts(text: str) -> set[str]:
    return {part.lower() for part in _NAME_PART.findall(text)}


class HistoryScores:
    """The score of every string and word in a history: how likely it is to be needed again."""

    def __init__(self, pieces: Sequence[Piece]) -> None:
        strings: dict[str, Mentions] = {}
        words: dict[str, Mentions] = {}
        for piece in pieces:
            place, origin, kinds = piece.place, _BITS[piece.origin], piece.kinds
            for text in piece.strings:
                (strings.get(text) or strings.setdefault(text, Mentions(kinds[text], place))).add(place, origin)
            for word in piece.words:
                (words.get(word) or words.setdefault(word, Mentions(None, place))).add(place, origin)
        dialogue = Dialogue(pieces)
        self.last_answer = dialogue.last_answer
        self.string_scores = {text: _string_score(text, known, dialogue) for text, known in strings.items()}
        self.word_scores = {word: _word_score(word, known) for word, known in words.items()}


def _string_score(text: str, mentions: Mentions, dialogue: Dialogue) -> float:
    is_from, is_in_dialogue = mentions.is_from, mentions.in_dialogue > 0
    score = (
        -3.7
        - 1.0 * is_from(_TYPED)
        - 0.4 * is_from(_INSERTED)
        - 0.1 * is_from(_AGENT)
        - 0.35 * is_from(_CALL)
        - 1.1 * is_from(_RESULT)
        + 1.3 * (is_from(_RESULT) and is_in_dialogue)
        + 1.4 * math.log1p(min(mentions.in_dialogue, _MAX_MENTIONS))
        - 0.25 * math.log1p(min(mentions.printed, _MAX_MENTIONS))
        + 0.55 * (mentions.last_result_place > dialogue.last_answer)
        + 0.5 * (mentions.last_place >= dialogue.newest_ask)
        + 1.0 * (mentions.first_place == dialogue.first_ask)
        + (0.0 if is_in_dialogue else 0.8 * dialogue.affinity(text))
        + 0.5 * math.log(len(text))
        + _KIND_WEIGHTS[mentions.kind]
    )
    return 1 / (1 + math.exp(-score))


def _word_score(word: str, mentions: Mentions) -> float:
    score = (
        -4.9
        + 0.4 * mentions.is_from(_TYPED)
        + 0.95 * mentions.is_from(_CALL)
        + 0.5 * math.log1p(min(mentions.in_dialogue, _MAX_MENTIONS))
        - 0.4 * math.log1p(mentions.printed)
        + 0.13 * min(len(word), 14)
    )
    return (_COMMON_WORD_SHARE if word in COMMON_WORDS else 1.0) / (1 + math.exp(-score))


_KIND_WEIGHTS: dict[EntityKind | None, float] = {
    None: 0.0,
    EntityKind.URL: -0.6,
    EntityKind.PATH: -0.6,
    EntityKind.ERROR: -0.2,
    EntityKind.FLAG: -1.0,
    EntityKind.DATE: -0.45,
    EntityKind.NUMBER: -0.2,
    EntityKind.IDENTIFIER: -0.4,
    EntityKind.ID: 0.6,
    EntityKind.QUOTED: -1.25,
}
