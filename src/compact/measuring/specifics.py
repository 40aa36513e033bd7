"""Finds the specific strings of a text: what an agent cannot guess and must have read somewhere.

Written for measuring alone: the product has its own, and neither knows the other.
"""

from __future__ import annotations

import re

LONGEST = 200
SHORTEST = 3

# Each shape is looked for on its own: a file name inside a path is a string of its own.
_NAMES = tuple(
    re.compile(shape)
    for shape in (
        r"https?://[^\s\"'`<>()\[\]{}|\\]+",  # addresses
        r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+",
        r"[A-Za-z]:\\[\w.\\-]*\w",  # paths
        r"(?<![\w/])(?:~|\.{1,2})?/?(?:[\w@.+-]+/)+[\w@.+-]*\w|(?<![\w/])/[\w@.+-]*[A-Za-z][\w@.+-]*",
        r"(?<![\w./-])[\w-]+(?:\.[\w-]+)*\.(?:[a-z]{1,5}\d?)(?!\w)",
        r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2})?)?|\d{1,2}:\d{2}(?::\d{2})?|\d{1,2}/\d{1,2}/\d{2,4}",
        r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}",  # ids
        r"(?<![\w-])(?=[A-Za-z0-9-]*\d)(?=[A-Za-z0-9-]*[A-Za-z])[A-Za-z0-9]+(?:-[A-Za-z0-9]+)*(?![\w-])",
        r"(?<![\w.])(?<!\d-)(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d{3,}(?:\.\d+)?)(?!\w|-\d)",  # numbers
        r"(?<![\w-])--[a-z][\w-]+",  # flags
        r"(?<![\w\\])_*[A-Za-z][A-Za-z0-9]*(?:_+[A-Za-z0-9]+)+_*(?!\w)",  # identifiers, error names among them
        r"(?<![\w\\])[a-z]+[a-z0-9]*(?:[A-Z][A-Za-z0-9]*)+(?!\w)",
        r"(?<![\w\\])(?:(?:[A-Z][a-z0-9]+){2,}[A-Z]*|[A-Z]{2,}[a-z]+[A-Za-z0-9]*)(?!\w)",
    )
)
# Quoted phrases: of two words or more, or set as code.
_PHRASES = tuple(
    re.compile(shape)
    for shape in (
        r"`([^`\s][^`\n]{2,58}[^`\s])`",
        r"(?<!\w)\"(?=[^\"\n]* )([A-Za-z0-9][^\"\n]{2,58}[A-Za-z0-9.!?)])\"(?!\w)",
        r"(?<!\w)'(?=[^'\n]* )([A-Za-z0-9][^'\n]{2,58}[A-Za-z0-9.!?)])'(?!\w)",
    )
)


def specific_names(text: str) -> set[str]:
    """Every path, address, identifier, id, number, date and flag of a text."""
    return _found(_NAMES, text)


def specific_strings(text: str) -> set[str]:
    """Every specific string of a text, quoted phrases among them."""
    return _found(_NAMES + _PHRASES, text)


def _found(shapes: tuple[re.Pattern[str], ...], text: str) -> set[str]:
    strings = {
        match.group(match.lastindex or 0).strip().rstrip(".,:;") for shape in shapes for match in shape.finditer(text)
    }
    return {string for string in strings if SHORTEST <= len(string) <= LONGEST}


def find_bounded(string: str, text: str, start: int = 0) -> int:
    """Where a string stands in a text with no word running into it, or -1."""
    place = text.find(string, start)
    while place >= 0 and not _is_bounded(string, text, place):
        place = text.find(string, place + 1)
    return place


def _is_bounded(string: str, text: str, place: int) -> bool:
    end = place + len(string)
    if place and _is_wordy(string[0]) and _is_wordy(text[place - 1]):
        return False
    return not (end < len(text) and _is_wordy(string[-1]) and _is_wordy(text[end]))


def _is_wordy(letter: str) -> bool:
    return letter.isalnum() or letter == "_"
