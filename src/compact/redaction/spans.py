"""Finds the places of all secrets in a text, and puts the mark in their stead."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from itertools import groupby

from compact.redaction.assignments import ASCII_NEEDLES, NEEDLES, find_assignments
from compact.redaction.blocks import find_blocks
from compact.redaction.carriers import CARRIER_NEEDLES, find_carried
from compact.redaction.custom import CustomPattern
from compact.redaction.encoded import find_encoded
from compact.redaction.shapes import find_shapes
from compact.redaction.tables import find_columns

Span = tuple[int, int]

MARK = "<REDACTED>"
_MARK = MARK.encode()
_ANY_MARK = re.compile(rb"<REDACTED(?:: [a-z ]{1,40})?>")
# Chosen: every round takes in more; two have always been enough.
_MAX_ROUNDS = 5
_NAME_PARTS = tuple(needle.decode() for needle in (*NEEDLES, b"cookie"))
_ONLY_NAME = re.compile(rb"[\w.\-\"' ]{1,80}[:=][\"' ]{0,4}")


def _any_of(needles: Collection[bytes]) -> bytes:
    """Return a pattern that matches any of the needles; what they begin with alike is in it once."""
    if b"" in needles:
        return b""
    by_first = groupby(sorted(needles), key=lambda needle: needle[:1])
    branches = [re.escape(first) + _any_of([needle[1:] for needle in same]) for first, same in by_first]
    return branches[0] if len(branches) == 1 else b"(?:" + b"|".join(branches) + b")"


# Measured: in texts up to this length one search for all needles is faster than one for each. Most of them have none.
_SHORT_BYTES = 1_000
ANY_NEEDLE = re.compile(_any_of({*ASCII_NEEDLES, *CARRIER_NEEDLES}))


def replaced(text: str, patterns: Sequence[CustomPattern] = ()) -> str:
    """Return `text` with every secret replaced by the mark; the same object if there is none."""
    # Bytes, because finding and lower-casing them is an order of magnitude faster than for text beyond ASCII.
    data = text.encode("utf-8", "surrogatepass")
    result = _replaced_once(data, patterns)
    if result == data:
        return text
    # A mark may let a rule find what it passed over before; another round makes twice the same as once.
    for _ in range(_MAX_ROUNDS):
        before, result = result, _replaced_once(result, patterns)
        if result == before:
            break
    return result.decode("utf-8", "surrogatepass")


def _replaced_once(data: bytes, patterns: Sequence[CustomPattern]) -> bytes:
    found = find_secrets(data)
    if patterns:
        found += _custom_spans(data, patterns, found)
    return _with_marks(data, found) if found else data


def find_secrets(data: bytes) -> list[Span]:
    """Return the places that the default rules find; they may overlap."""
    return [*_plain_secrets(data), *find_encoded(data, _plain_secrets)]


def _plain_secrets(data: bytes) -> list[Span]:
    low = data.lower()
    found = [*find_shapes(data), *find_blocks(data, low)]
    # Which names a character beyond ASCII may belong to is found out faster by the rules themselves.
    if len(data) > _SHORT_BYTES or not data.isascii() or ANY_NEEDLE.search(low):
        found += (*find_assignments(data, low), *find_carried(data, low), *find_columns(data, low))
    return found


def may_name_secret(text: str) -> bool:
    """Return True if one of the words is in `text` of which the names of secrets are made; cheap."""
    low = text.lower()
    return any(needle in low for needle in _NAME_PARTS)


def _custom_spans(data: bytes, patterns: Sequence[CustomPattern], found: Iterable[Span]) -> list[Span]:
    """Return what the user's patterns find, save where a default rule has already taken the secret and left its name.

    `api_key=…` stays `api_key=<REDACTED>` even if a pattern takes in the name.
    """
    done = sorted([*found, *(mark.span() for mark in _ANY_MARK.finditer(data))])
    spans: list[Span] = []
    for pattern in patterns:
        at = 0
        for start, end in pattern.find(data):
            while at < len(done) and done[at][1] < end:
                at += 1
            inside = done[at] if at < len(done) else (0, 0)
            is_named = start < inside[0] and inside[1] == end and _ONLY_NAME.fullmatch(data, start, inside[0])
            if not is_named:
                spans.append((start, end))
    return spans


def _with_marks(data: bytes, found: Iterable[Span]) -> bytes:
    """Put one mark for each stretch of touching places; marks that are there count, so that twice is once."""
    marks = {mark.span() for mark in _ANY_MARK.finditer(data)} if _MARK[:-1] in data else set[Span]()
    pieces: list[bytes] = []
    copied = 0
    for start, end in _merged([*found, *marks]):
        pieces.append(data[copied:start])
        pieces.append(data[start:end] if (start, end) in marks else _MARK)
        copied = end
    pieces.append(data[copied:])
    return b"".join(pieces)


def _merged(spans: Iterable[Span]) -> list[Span]:
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged
