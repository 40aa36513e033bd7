"""What a step of a task needs from far back, and the rule by which an agent finds it in a prompt.

The rule is all that a scripted agent knows: which words stand beside the value, and what a value looks like. It is
applied to the text of the prompt and to nothing else. Of several values the newest counts, as for a person who reads:
facts are corrected on the way.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from tasks.prompts import Passage

_SENTENCE_END = re.compile(r"(?<=[.!?;])\s+|\n")


@dataclass(frozen=True, slots=True)
class Fact:
    """A value that a later step needs.

    A sentence or line tells it if it holds every cue (a regular expression each) and something of the shape; with
    several of the shape, the first behind the cues counts. Where a record has several lines (a section of a file),
    `patterns` say how it is read there: their group is the value.
    """

    value: str
    shape: str
    cues: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()

    def read(self, passages: Sequence[Passage]) -> str | None:
        """Return the newest value that the passages tell, or None."""
        newest = max(
            ((passage.age, place, value) for passage in passages for place, value in self._told(passage.text)),
            default=None,
        )
        return newest[2] if newest else None

    def _told(self, text: str) -> Iterator[tuple[int, str]]:
        for pattern in self.patterns:
            for match in re.finditer(pattern, text):
                yield match.start(1), match.group(1)
        if self.cues:
            yield from self._in_sentences(text)

    def _in_sentences(self, text: str) -> Iterator[tuple[int, str]]:
        if not all(re.search(cue, text, re.IGNORECASE) for cue in self.cues):
            return
        for start, sentence in sentences(text):
            held = [re.search(cue, sentence, re.IGNORECASE) for cue in self.cues]
            ends = [match.end() for match in held if match]
            if len(ends) < len(held):
                continue
            values = [match for match in re.finditer(self.shape, sentence) if not _is_in_cue(match, held)]
            behind = [match for match in values if match.start() >= max(ends)]
            for match in (behind or values[-1:])[:1]:
                yield start + match.start(), match.group()


def sentences(text: str) -> Iterator[tuple[int, str]]:
    """Yield the sentences and lines of a text, each with its place."""
    start = 0
    for end in _SENTENCE_END.finditer(text):
        yield start, text[start : end.start()]
        start = end.end()
    yield start, text[start:]


def _is_in_cue(value: re.Match[str], cues: Iterable[re.Match[str] | None]) -> bool:
    """Return True if what looks like a value is part of a word that only leads to it: the 2 in `invoices_v2`."""
    return any(cue and cue.start() <= value.start() < cue.end() for cue in cues)
