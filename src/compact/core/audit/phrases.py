"""A phrase that somebody looks for: how it is compared with texts, and the excerpt that shows it.

Upper and lower case are alike, and so is all white space: words that a line break separates are found.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from compact.core.messages.attachments import text_with_attachments
from compact.core.messages.message import Message

# Chosen: an excerpt fits on two lines of a page, with a little of what stands before the phrase.
_CHARS_BEFORE = 48
_CHARS_AFTER = 112
_MAX_PHRASE_CHARS = 240
# Chosen: how far an excerpt goes further, or less far, to end between two words; less than what stands around a phrase.
_WORD_CHARS = 16
_DOTS_BEFORE, _DOTS_BEHIND = "… ", " …"
# No folded text has it inside a field, so that no phrase is found across two of them.
_BETWEEN_FIELDS = "\n"
_SPACES = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class PhraseExcerpt:
    """A piece of a text on one line, and where the phrase stands in it (character ranges)."""

    text: str
    marks: tuple[tuple[int, int], ...] = ()


def fold(text: str) -> str:
    """Return a text as phrases are compared with it."""
    if not text or text.isspace():
        return " " if text else ""
    inner = " ".join(text.split()).casefold()
    return f"{' ' if text[0].isspace() else ''}{inner}{' ' if text[-1].isspace() else ''}"


def fold_message(message: Message) -> str:
    """Return everything that a model reads in a message, as phrases are compared with it."""
    if not message.tool_calls:
        return fold(text_with_attachments(message))
    return _BETWEEN_FIELDS.join(fold(field) for field in _fields(message))


def _fields(message: Message) -> Iterator[str]:
    """Yield the text of a message, and the name and the arguments of each call it makes."""
    yield text_with_attachments(message)
    for call in message.tool_calls:
        yield call.name
        yield call.arguments


class Phrase:
    """Words to look for; a space before or behind them counts, so that `run-2 ` is not found in `run-20`."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.folded = fold(text)
        pieces = [re.escape(piece) for piece in _SPACES.split(text)]
        self._pattern = re.compile(r"\s+".join(pieces), re.IGNORECASE)

    @property
    def is_empty(self) -> bool:
        """True if there are no words in it."""
        return not self.folded.strip()

    def excerpt(self, message: Message) -> PhraseExcerpt:
        """Return the first piece of a message that has the phrase, cut between words; without marks if none has it."""
        for field in _fields(message):
            place = self._find(field)
            if place:
                return self._cut(field, *place)
        text = next((field for field in _fields(message) if field.strip()), "")
        return PhraseExcerpt(_one_line(text, 0, _end_of_word(text, _CHARS_BEFORE + _CHARS_AFTER)))

    def _find(self, text: str) -> tuple[int, int] | None:
        """Return where the phrase begins and ends in a text."""
        same = text.casefold()
        # Folding makes no text shorter: with the same length, each character is at its old place.
        if len(same) == len(text) and (start := same.find(self.folded)) >= 0:
            return start, start + len(self.folded)
        if self.folded not in fold(text):
            return None
        found = self._pattern.search(text)
        # What only folding finds (ß for ss) is shown from the beginning of the text.
        return found.span() if found else (0, 0)

    def _cut(self, text: str, start: int, end: int) -> PhraseExcerpt:
        stop = _end_of_word(text, min(end, start + _MAX_PHRASE_CHARS) + _CHARS_AFTER)
        piece = _one_line(text, _start_of_word(text, max(0, start - _CHARS_BEFORE)), stop)
        marks = tuple(match.span() for match in self._pattern.finditer(piece))
        if not marks and end > start:  # The phrase goes on behind the excerpt.
            behind = _one_line(text, start, stop).removeprefix(_DOTS_BEFORE)
            marks = ((len(piece) - len(behind), len(piece.removesuffix(_DOTS_BEHIND))),)
        return PhraseExcerpt(piece, marks)


def _start_of_word(text: str, place: int) -> int:
    """Return a place near this one where a word begins."""
    if place == 0:
        return 0
    for near in range(place, place + _WORD_CHARS):
        if text[near - 1].isspace():
            return near
    return place


def _end_of_word(text: str, place: int) -> int:
    """Return a place near this one where a word ends."""
    if place >= len(text):
        return len(text)
    for near in range(place, place - _WORD_CHARS, -1):
        if text[near].isspace():
            return near
    return place


def _one_line(text: str, start: int, end: int) -> str:
    """Return a piece of a text with single spaces; dots stand where it was cut."""
    piece = " ".join(text[start:end].split())
    before = _DOTS_BEFORE if text[:start].strip() else ""
    behind = _DOTS_BEHIND if text[end:].strip() else ""
    return f"{before}{piece}{behind}"
