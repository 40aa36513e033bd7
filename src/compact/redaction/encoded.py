"""Texts in base64 that hold a secret once they are decoded: files, JSON, URLs; pictures and hashes are left alone."""

from __future__ import annotations

import binascii
from collections.abc import Callable, Iterator

Span = tuple[int, int]

# Chosen: shorter ones hold hardly a name and a value.
_RUN = b"x" * 32
_ALPHABET = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_"
_IN_RUN = bytes(ord("x") if c in _ALPHABET else ord(" ") for c in range(256))
_URL_SAFE = bytes.maketrans(b"-_", b"+/")
# What text consists of: everything printable, line breaks and tabs, and the bytes of other alphabets in UTF-8.
_TEXT = bytes(range(32, 127)) + b"\t\r\n"
_PROBE = 48
# Chosen: of other bytes there may be one in ten, as in German or French.
_MAX_OTHER_SHARE = 0.1


def find_encoded(data: bytes, find: Callable[[bytes], list[Span]]) -> Iterator[Span]:
    """Yield the runs of base64 in `data` in whose text `find` finds a secret; they go whole."""
    classes = data.translate(_IN_RUN)
    start = classes.find(_RUN)
    while start >= 0:
        end = classes.find(b" ", start)
        end = len(data) if end < 0 else end
        text = _decoded(data[start:end])
        if text and find(text):
            yield start, _with_padding(data, end)
        start = classes.find(_RUN, end)


def _decoded(run: bytes) -> bytes:
    """Return the text that a run stands for; nothing if it is no text, as is seen at its beginning."""
    run = run.translate(_URL_SAFE)
    if not _is_text(_bytes_of(run[:_PROBE])):
        return b""
    text = _bytes_of(run)
    return text if _is_text(text) else b""


def _bytes_of(run: bytes) -> bytes:
    whole = run[: len(run) - len(run) % 4] if len(run) % 4 == 1 else run
    try:
        return binascii.a2b_base64(whole + b"=" * (-len(whole) % 4))
    except binascii.Error:
        return b""


def _is_text(data: bytes) -> bool:
    return bool(data) and len(data.translate(None, _TEXT)) <= _MAX_OTHER_SHARE * len(data)


def _with_padding(data: bytes, end: int) -> int:
    while data[end : end + 1] == b"=":
        end += 1
    return end
