"""Numbers with their nouns: 1 message, 2 messages."""

from __future__ import annotations


def quantity(number: int, thing: str, things: str = "") -> str:
    """Return a number with its noun; `things` is the plural, unless it is the noun and an s."""
    return f"{number:,} {noun(number, thing, things)}"


def noun(number: int, thing: str, things: str = "") -> str:
    """Return the noun that goes with a number."""
    return thing if number == 1 else things or thing + "s"
