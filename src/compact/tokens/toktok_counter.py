"""The default plug behind exact counts: toktok, whose vocabularies are inside its wheel."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

_PROBE = "hello world <|endoftext|> naïve 中文\n"


def load(encoding: str) -> Callable[[str], int]:
    """Load the vocabulary and return its counter; ImportError if toktok is not there."""
    toktok: Any = import_module("toktok")

    def count(text: str) -> int:
        return toktok.batch_count([text], encoding, threads=1)[0]

    expected = count(_PROBE)
    # The public call sets up a batch, 12 µs for a short text; the object behind it needs 0.2 µs. It is not promised
    # to stay, so it is used only while it is there and agrees.
    try:
        direct = toktok._encoding(encoding).count
        return direct if direct(_PROBE) == expected else count
    except (AttributeError, TypeError, KeyError):
        return count
