"""Secrets whose name stands at the head of their column: `INSERT INTO users (…, password)`, CSV, tables in Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator

from compact.redaction.carrier import chosen, no_common_word
from compact.redaction.names import Kind, kind_of_name
from compact.redaction.values import looks_random

Span = tuple[int, int]

_INTO, _VERBS = b" into ", (b"insert", b"replace", b"ignore")
_INSERT = re.compile(
    rb" into[ ]{1,4}[^\s(]{1,128}\s{0,8}\((?P<columns>[^()]{1,2000})\)\s{0,8}values\s{0,8}\(", re.IGNORECASE
)
_SQL_VALUE = re.compile(
    rb"\s{0,8}(?:[NEB]?'(?P<text>(?:[^'\\]|\\.|''){0,8192}+)'|[^,()'\"]{0,200}+(?:\([^()]{0,200}\))?)\s{0,8}(?P<end>[,)])"
)
_NEXT_ROW = re.compile(rb"\s{0,8},\s{0,8}\(")

_NAME = rb"[ \"`*]{0,4}\w[\w \"`*-]{0,60}"
_HEAD = re.compile(
    rb"\|?" + _NAME + rb"(?P<sign>[,;|\t])" + _NAME + rb"(?:(?P=sign)" + _NAME + rb"){0,40}\|?[ ]{0,4}\r?\n"
)
_FIELDS = {
    sign: re.compile(
        rb"[ ]{0,40}+(?:\"(?P<quoted>(?:[^\"\n]|\"\"){0,1000}+)\"|(?P<bare>[^\"\n%b]{0,1000}+))"
        rb"[ ]{0,40}(?P<end>[%b]|\r?\n|$)" % (re.escape(sign), re.escape(sign))
    )
    for sign in (b",", b";", b"|", b"\t")
}
# Chosen: longer lines are no heads of tables that people look at.
_HEAD_BYTES = 400


def find_columns(data: bytes, low: bytes) -> Iterator[Span]:
    """Yield where in `data` a value stands in the column of a secret; `low` is `data` in lower case."""
    yield from _inserted(data, low)
    for needle in (b"passw", b"secret"):
        yield from _listed(data, low, needle)


def _inserted(data: bytes, low: bytes) -> Iterator[Span]:
    at = low.find(_INTO)
    while at >= 0:
        head = _INSERT.match(data, at) if low.endswith(_VERBS, 0, at) else None
        after = at + len(_INTO)
        if head:
            kinds = [_kind(name) for name in head["columns"].split(b",")]
            after = head.end()
            if Kind.SURE in kinds or Kind.LIKELY in kinds:
                spans, after = _rows_of_sql(data, after, kinds)
                yield from spans
        at = low.find(_INTO, after)


def _rows_of_sql(data: bytes, at: int, kinds: list[Kind]) -> tuple[list[Span], int]:
    """Return the secrets in the rows that begin at `at`, and where these end."""
    spans: list[Span] = []
    column = 0
    while value := _SQL_VALUE.match(data, at):
        kind = kinds[column] if column < len(kinds) else Kind.NONE
        if value["text"] and _is_secret(value["text"], kind):
            spans.append(value.span("text"))
        at, column = value.end(), column + 1
        if value["end"] == b")":
            following = _NEXT_ROW.match(data, at)
            if not following:
                break
            at, column = following.end(), 0
    return spans, at


def _is_secret(value: bytes, kind: Kind) -> bool:
    return no_common_word(value) and (kind is Kind.SURE or (kind is Kind.LIKELY and looks_random(value)))


def _listed(data: bytes, low: bytes, needle: bytes) -> Iterator[Span]:
    at = low.find(needle)
    while at >= 0:
        start = max(data.rfind(b"\n", max(0, at - _HEAD_BYTES), at) + 1, at - _HEAD_BYTES, 0)
        head = _HEAD.match(data, start)
        after = at + len(needle)
        if head:
            sign = head["sign"]
            kinds = [_kind(name) for name in head[0].split(sign)]
            after = head.end()
            if Kind.SURE in kinds:
                spans, after = _rows_of_list(data, after, kinds, _FIELDS[sign])
                yield from spans
        at = low.find(needle, max(after, at + len(needle)))


def _rows_of_list(data: bytes, at: int, kinds: list[Kind], field: re.Pattern[bytes]) -> tuple[list[Span], int]:
    """Return the secrets in the lines that have as many fields as the head, and where these lines end."""
    spans: list[Span] = []
    while at < len(data):
        line, end = _line(data, at, field, len(kinds))
        if len(line) != len(kinds):
            break
        in_column = (span for span, kind in zip(line, kinds, strict=True) if kind is Kind.SURE)
        spans += [(start, stop) for start, stop in in_column if chosen(data[start:stop])]
        at = end
    return spans, at


def _line(data: bytes, at: int, field: re.Pattern[bytes], most: int) -> tuple[list[Span], int]:
    fields: list[Span] = []
    while len(fields) <= most and (found := field.match(data, at)):
        part = "quoted" if found["quoted"] is not None else "bare"
        start, end = found.span(part)
        fields.append((start, start + len(data[start:end].rstrip())))
        at = found.end()
        if found["end"][-1:] in (b"\n", b""):
            break
    return fields, at


def _kind(name: bytes) -> Kind:
    return kind_of_name(name.decode("utf-8", "replace"))
