"""Secrets whose name stands on a line before them: YAML blocks and lists, Kubernetes secrets, Terraform variables.

A line break may be an escape (`\\n`): such files are often found as text in JSON.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from compact.redaction import values
from compact.redaction.carrier import chosen
from compact.redaction.names import Kind, kind_of_name

Span = tuple[int, int]

_BREAK = rb"(?:\r?\n|\\{1,4}n)"
# The end of `name:` or `name: |`, with nothing else on its line.
_OPENING = re.compile(rb":[ \t]{0,4}([|>][+\-0-9]{0,2})?[ \t]{0,8}(?:#[^\n]{0,80})?" + _BREAK)
_NAME_BYTES = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-."
_LINE = re.compile(rb"([ ]{1,40}|\t{1,10})([^\s\\][^\n\\]{0,4096})" + rb"(?:" + _BREAK + rb"|$)")
_ITEM = re.compile(
    rb"[ \t]{0,40}- [ ]{0,4}[\"']?(?P<secret>[^\s\"'\\:#]{6,4096})[\"']?[ \t]{0,8}(?:" + _BREAK + rb"|$)"
)
# Chosen: a key of 8,192 bits has 100 lines.
_MAX_LINES = 128

# A value on the line behind its name, alone there and deeper than it: a further name would have a colon.
_PLAIN = re.compile(
    rb"[ ]{1,40}[\"']?(?P<secret>[^\s\"'\\:#-][^\s\"'\\]{5,4096})[\"']?[ \t]{0,8}(?:" + _BREAK + rb"|$)"
)

_START = rb"(?:(?<![A-Za-z])|(?<=\\n))"
_SECRET_KIND = re.compile(_START + rb"kind\\{0,4}[\"']?[ \t]{0,4}:[ \t]{0,4}\\{0,4}[\"']?Secret\b")
# Chosen: larger than most manifests; a second one begins after `---`.
_MANIFEST_BYTES = 20_000
_DATA = re.compile(_START + rb"(?:stringData|data)\\{0,4}[\"']?[ \t]{0,4}:[ \t]{0,4}(?:\{|" + _BREAK + rb")")
_ENTRY = re.compile(
    rb"(?:[ \t]{1,40}|[,\s]{0,8})\\{0,4}[\"']?[\w.-]{1,128}\\{0,4}[\"']?[ \t]{0,4}:[ \t]{0,4}"
    rb"(?:[|>][+-]?[ \t]{0,4}" + _BREAK + rb"[ \t]{1,40})?\\{0,4}[\"']?"
    rb"(?P<secret>[^\s\"'\\,{}]{1,8192})\\{0,4}[\"']?[ \t]{0,8}(?:" + _BREAK + rb"|,|(?=\})|$)"
)

_VARIABLE = re.compile(rb"variable[ \t]{1,4}\\?\"([\w-]{1,64})\\?\"[ \t]{0,4}\{")
_SENSITIVE = re.compile(rb"sensitive[ \t]{0,12}=[ \t]{0,4}true")
_DEFAULT = re.compile(rb"default[ \t]{0,12}=[ \t]{0,4}\\{0,4}\"(?P<secret>[^\"\\\n]{3,4096})")
# Chosen: descriptions and checks stand in it, too.
_VARIABLE_BYTES = 1_000


def find_blocks(data: bytes, low: bytes) -> Iterator[Span]:
    """Yield where in `data` a secret stands on a line behind its name; `low` is `data` in lower case."""
    yield from _named_blocks(data)
    yield from _manifests(data, low)
    yield from _variables(data, low)


def _named_blocks(data: bytes) -> Iterator[Span]:
    opening = _OPENING.search(data)
    while opening:
        after = opening.end()
        if _kind_before(data, opening.start()) in (Kind.SURE, Kind.LIKELY):
            # What was read is not read again, secret or not: the time is that of the text.
            spans, after = _block(data, after) if opening[1] else _items(data, after)
            yield from spans
        opening = _OPENING.search(data, after)


def _kind_before(data: bytes, end: int) -> Kind:
    closed = end - 1 if data[end - 1 : end] in (b'"', b"'") else end
    floor = max(0, closed - 64)
    start = floor + len(data[floor:closed].rstrip(_NAME_BYTES))
    return kind_of_name(data[start:closed].decode("latin-1"))


def _block(data: bytes, at: int) -> tuple[list[Span], int]:
    """Return the lines of a block scalar, which are indented as its first is, or deeper; and where it ends."""
    spans: list[Span] = []
    depth = 0
    for _ in range(_MAX_LINES):
        line = _LINE.match(data, at)
        if not line or len(line[1]) < depth:
            break
        depth = depth or len(line[1])
        if not values.is_placeholder(line[2]) and not values.is_prose(line[2]):
            spans.append((line.start(2), line.start(2) + len(line[2].rstrip())))
        at = line.end()
    return spans, at


def _items(data: bytes, at: int) -> tuple[list[Span], int]:
    """Return the items of a list that are secrets, or a value that stands there alone; and where it ends."""
    spans: list[Span] = []
    for _ in range(_MAX_LINES):
        item = _ITEM.match(data, at)
        if not item:
            plain = None if spans else _PLAIN.match(data, at)
            if plain and chosen(plain["secret"]):
                return [plain.span("secret")], plain.end()
            break
        if values.looks_random(item["secret"]) and not values.is_placeholder(item["secret"]):
            spans.append(item.span("secret"))
        at = item.end()
    return spans, at


def _manifests(data: bytes, low: bytes) -> Iterator[Span]:
    """Yield all values of a Kubernetes secret, whatever their names; the kind may stand before them or behind."""
    at = low.find(b"secret")
    while at >= 0:
        kind = _SECRET_KIND.search(data, max(0, at - 24), at + 8)
        after = at + 6
        if kind:
            start = max(low.rfind(b"\n---", max(0, at - _MANIFEST_BYTES), at), at - _MANIFEST_BYTES, 0)
            end = low.find(b"\n---", at, at + _MANIFEST_BYTES)
            after = end if end >= 0 else min(len(data), at + _MANIFEST_BYTES)
            yield from _entries(data, start, after)
        at = low.find(b"secret", after)


def _entries(data: bytes, start: int, end: int) -> Iterator[Span]:
    head = _DATA.search(data, start, end)
    while head:
        at = head.end()
        entry = _ENTRY.match(data, at, end)
        while entry:
            if not values.is_placeholder(entry["secret"]):
                yield entry.span("secret")
            at = entry.end()
            entry = _ENTRY.match(data, at, end) if data[at : at + 1] in (b" ", b"\t", b'"', b"\\", b",") else None
        head = _DATA.search(data, at, end)


def _variables(data: bytes, low: bytes) -> Iterator[Span]:
    """Yield the defaults of Terraform variables that are secrets by their name, or are said to be sensitive."""
    at = low.find(b"variable")
    while at >= 0:
        head = _VARIABLE.match(data, at)
        after = head.end() if head else at + 8
        if head:
            stop = data.find(b"}", after, after + _VARIABLE_BYTES)
            stop = stop if stop >= 0 else min(len(data), after + _VARIABLE_BYTES)
            is_named = kind_of_name(head[1].decode("latin-1")) in (Kind.SURE, Kind.LIKELY)
            default = _DEFAULT.search(data, after, stop)
            is_secret = is_named or _SENSITIVE.search(data, after, stop)
            if default and is_secret and not values.is_placeholder(default["secret"]):
                yield default.span("secret")
            after = stop
        at = low.find(b"variable", after)
