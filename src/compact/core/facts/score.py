"""What a piece of a history is worth for the rest of the task: how likely it is that what only it says is needed.

The weights are fitted to what real agents used again after a cut. What people and agents named themselves, more than
once and in answer to a tool, is needed again; what only a tool printed seldom is.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from compact.core.facts.common_words import COMMON_WORDS
from compact.core.facts.entities import EntityKind, entity_kinds
from compact.core.facts.pieces import Piece, Voice

_WORD = re.compile(r"[^\W\d_]{4,}")
_NAME_PART = re.compile(r"[A-Z]?[a-z]{3,}|[A-Z]{3,}")
_OFTEN = 8
_COMMON_SHARE = 0.15
_PRINTED = (Voice.RESULT, Voice.INSERTED)


@dataclass(slots=True)
class Mentions:
    """Who has used a string, how often, and when."""

    kind: EntityKind | None
    first_place: int
    voices: list[Voice] = field(default_factory=list[Voice])
    dialogue: int = 0
    printed: int = 0
    last_place: int = -1
    last_printed: int = -1

    def note(self, place: int, voice: Voice) -> None:
        """Count a message, once for each voice in it."""
        is_new_voice = voice not in self.voices
        if place == self.last_place and not is_new_voice:
            return
        if is_new_voice:
            self.voices.append(voice)
        if voice is Voice.RESULT:
            self.last_printed = place
        if voice in _PRINTED:
            self.printed += 1
        else:
            self.dialogue += 1
        self.last_place = place


class Dialogue:
    """What people and the agent talk about: where the turns are, and the parts of all names and words they use."""

    def __init__(self, pieces: Sequence[Piece]) -> None:
        asks = [piece.place for piece in pieces if piece.voice is Voice.TYPED]
        answers = [piece.place for piece in pieces if piece.voice in (Voice.AGENT, Voice.CALL)]
        self.first_ask, self.newest_ask = (asks[0], asks[-1]) if asks else (-1, -1)
        self.last_answer = answers[-1] if answers else -1
        self._parts: set[str] = set()
        self._asked: set[str] = set()
        for piece in pieces:
            if piece.voice in _PRINTED:
                continue
            parts = _name_parts(piece.text)
            self._parts |= parts
            if piece.voice is Voice.TYPED and piece.place in (self.first_ask, self.newest_ask):
                self._asked |= parts

    def affinity(self, text: str) -> float:
        """How much a string that nobody has used has to do with what is talked about, and with what is asked."""
        parts = _name_parts(text)
        if not parts:
            return -0.4
        return (1.0 * len(parts & self._parts) + 0.3 * len(parts & self._asked)) / len(parts)


def _name_parts(text: str) -> set[str]:
    return {part.lower() for part in _NAME_PART.findall(text)}


class Worth:
    """Knows of every string and word in a history how likely it is to be needed again."""

    def __init__(self, pieces: Sequence[Piece]) -> None:
        self.strings: list[frozenset[str]] = []
        self.words: list[frozenset[str]] = []
        strings: dict[str, Mentions] = {}
        words: dict[str, Mentions] = {}
        for piece in pieces:
            found = entity_kinds(piece.text)
            plain = {word.lower() for word in _WORD.findall(piece.text)}
            self.strings.append(frozenset(found))
            self.words.append(frozenset(plain))
            place, voice = piece.place, piece.voice
            for text, kind in found.items():
                (strings.get(text) or strings.setdefault(text, Mentions(kind, place))).note(place, voice)
            for word in plain:
                (words.get(word) or words.setdefault(word, Mentions(None, place))).note(place, voice)
        dialogue = Dialogue(pieces)
        self.string_need = {text: _string_need(text, known, dialogue) for text, known in strings.items()}
        self.word_need = {word: _word_need(word, known) for word, known in words.items()}


def _string_need(text: str, known: Mentions, dialogue: Dialogue) -> float:
    voices, is_spoken = known.voices, known.dialogue > 0
    score = (
        -3.7
        - 1.0 * (Voice.TYPED in voices)
        - 0.4 * (Voice.INSERTED in voices)
        - 0.1 * (Voice.AGENT in voices)
        - 0.35 * (Voice.CALL in voices)
        - 1.1 * (Voice.RESULT in voices)
        + 1.3 * (Voice.RESULT in voices and is_spoken)
        + 1.4 * math.log1p(min(known.dialogue, _OFTEN))
        - 0.25 * math.log1p(min(known.printed, _OFTEN))
        + 0.55 * (known.last_printed > dialogue.last_answer)
        + 0.5 * (known.last_place >= dialogue.newest_ask)
        + 1.0 * (known.first_place == dialogue.first_ask)
        + (0.0 if is_spoken else 0.8 * dialogue.affinity(text))
        + 0.5 * math.log(len(text))
        + _KIND_SCORES[known.kind]
    )
    return 1 / (1 + math.exp(-score))


def _word_need(word: str, known: Mentions) -> float:
    score = (
        -4.9
        + 0.4 * (Voice.TYPED in known.voices)
        + 0.95 * (Voice.CALL in known.voices)
        + 0.5 * math.log1p(min(known.dialogue, _OFTEN))
        - 0.4 * math.log1p(known.printed)
        + 0.13 * min(len(word), 14)
    )
    return (_COMMON_SHARE if word in COMMON_WORDS else 1.0) / (1 + math.exp(-score))


_KIND_SCORES: dict[EntityKind | None, float] = {
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

_AGAIN = {Voice.CALL: 1.0, Voice.RESULT: 0.35, Voice.AGENT: 0.3, Voice.TYPED: 0.3, Voice.INSERTED: 0.1}


def line_need(piece: Piece, age_tokens: float) -> float:
    """How likely an agent is to write a line again as it stands: its own, and what it has just read."""
    if not 15 <= len(piece.text) <= 300:
        return 0.0
    return _AGAIN[piece.voice] / (1 + age_tokens / 8000)
