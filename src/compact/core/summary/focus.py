"""What a person wants kept first when compacting by hand, and how much of a text is about it."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from compact.core.facts.pieces import Piece
from compact.core.facts.text import WordBag
from compact.core.facts.tool_calls import argument_texts
from compact.core.messages.message import Message

# Chosen: how much more a text counts that is about the focus in full; such texts come before nearly all others.
FOCUS_GAIN = 50.0
# Chosen: of that, what counts for the other lines of the same message: they are about the same, in other words.
_NEAR_SHARE = 0.1
# Chosen: from this share of the focus on, a message is about it.
ABOUT_SHARE = 0.5
# Numbers and names with digits are looked for as they are, and so are short names in capitals: "DB", "CI".
_EXACT = re.compile(r"[^\W_]*\d[^\W_]*|\b[A-Z]{2}\b")
# What people say to name a focus, not the focus itself.
_ASKING = WordBag("focus focused concentrate keep kept preserve retain important everything").stems
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


@dataclass(frozen=True, slots=True)
class Focus:
    """The terms of a focus: the beginnings of its words, and its numbers and names with digits as they are."""

    terms: tuple[str, ...]
    _pattern: re.Pattern[str] | None = field(repr=False, compare=False)

    @classmethod
    def of(cls, text: str) -> Focus:
        """Return the focus that a text names; one without any term is about nothing."""
        stems = WordBag(text).stems - _ASKING
        exact = {found.lower() for found in _EXACT.findall(text)}
        patterns = [
            re.escape(stem) if _UNSPACED.match(stem) else rf"(?<![^\W_]){re.escape(stem)}[^\W\d_]*" for stem in stems
        ]
        patterns += [rf"(?<![^\W_]){re.escape(name)}(?![^\W_])" for name in exact]
        terms = tuple(sorted({*stems, *exact}))
        # The longest first: of two words of which one is the beginning of the other, both are found.
        pattern = re.compile("|".join(sorted(patterns, key=lambda one: (-len(one), one)))) if terms else None
        return cls(terms, pattern)

    def found_in(self, text: str) -> frozenset[str]:
        """Return the terms that a text has."""
        if self._pattern is None:
            return frozenset()
        words = set(self._pattern.findall(text.lower()))
        return frozenset(term for term in self.terms if any(word.startswith(term) for word in words))

    def shares(self, texts: Iterable[str]) -> list[float]:
        """Return for each text how much of the focus it has, from 0 to 1; a term counts more, the fewer have it."""
        found = [self.found_in(text) for text in texts]
        having = Counter(term for terms in found for term in terms)
        weights = {term: math.log1p(len(found) / count) for term, count in having.items()}
        total = math.fsum(weights.values())
        return [math.fsum(weights[term] for term in sorted(terms)) / total if terms else 0.0 for terms in found]


def message_shares(focus: str, messages: Sequence[Message]) -> list[float]:
    """Return for each message how much of a focus its best line has."""
    read = Focus.of(focus)
    places: list[int] = []
    lines: list[str] = []
    for place, message in enumerate(messages):
        for text in (message.text, *(text for call in message.tool_calls for text in argument_texts(call))):
            if read.found_in(text):
                own = [line for line in text.splitlines() if line.strip()]
                places += [place] * len(own)
                lines += own
    shares = [0.0] * len(messages)
    for place, share in zip(places, read.shares(lines), strict=True):
        shares[place] = max(shares[place], share)
    return shares


def piece_factors(focus: str, pieces: Sequence[Piece], factors: Sequence[float] = ()) -> list[float]:
    """Return what each piece counts for a focus, times what it counts anyway; a piece about it is never left out."""
    shares = Focus.of(focus).shares(piece.text for piece in pieces)
    near: dict[int, float] = {}
    for piece, share in zip(pieces, shares, strict=True):
        near[piece.place] = max(near.get(piece.place, 0.0), share)
    result: list[float] = []
    for piece, share, factor in zip(pieces, shares, factors or [1.0] * len(pieces), strict=True):
        raised = 1 + FOCUS_GAIN * max(share, _NEAR_SHARE * near[piece.place])
        result.append((max(1.0, factor) if share else factor) * raised)
    return result
