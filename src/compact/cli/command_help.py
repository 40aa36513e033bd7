"""Help texts in words: typer writes `{FILE}` and `FILE <str>` for FILE, and `x>=1` for at least 1."""

from __future__ import annotations

import re
from typing import Any

from typer.core import TyperCommand

# A required argument in the usage, and the Python type behind the name of one. Optional ones are [FILE], and stay so.
_BRACES = re.compile(r"^\{(.*)\}(\.\.\.)?$")
_TYPE = re.compile(r"^([A-Z]\S*) <.*>$")
# That a number may not be below 0 goes without saying; what else it may be stands in the brackets at the end of a text.
_NOT_NEGATIVE = re.compile(r"\s*\[x>=0\]$|; x>=0(?=\]$)")
_RANGE = re.compile(r"(?:(?P<least>[\d.]+)<=)?x(?:<=(?P<most>[\d.]+)|>=(?P<only_least>[\d.]+))(?=\]$)")


class PlainCommand(TyperCommand):
    """A command whose help has no braces, Python types and formulas; what may be repeated ends in dots, once."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the pieces of the usage line."""
        return [_without_braces(piece) for piece in super().collect_usage_pieces(ctx)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the lists of arguments and options."""
        write = formatter.write_dl

        def write_plain(rows: list[tuple[str, str]], *args: Any, **options: Any) -> None:
            plain = [(_TYPE.sub(r"\1", name), _with_words(text)) for name, text in rows]
            write(plain, *args, **options)

        formatter.write_dl = write_plain
        super().format_options(ctx, formatter)


def _with_words(text: str) -> str:
    return _RANGE.sub(_in_words, _NOT_NEGATIVE.sub("", text))


def _in_words(found: re.Match[str]) -> str:
    """Return what a number may be in words."""
    if found["only_least"]:
        return f"at least {found['only_least']}"
    return f"{found['least']} to {found['most']}" if found["least"] else f"at most {found['most']}"


def _without_braces(piece: str) -> str:
    found = _BRACES.match(piece)
    if not found:
        return piece
    name, dots = found[1], found[2] or ""
    return name if name.endswith("...") else name + dots
