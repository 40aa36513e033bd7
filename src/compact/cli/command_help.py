"""Help texts in which an argument is called what it is: typer writes `{FILE}` and `FILE <str>` for FILE."""

from __future__ import annotations

import re
from typing import Any

from typer.core import TyperCommand

# A required argument in the usage, and the Python type behind the name of one. Optional ones are [FILE], and stay so.
_BRACES = re.compile(r"^\{(.*)\}(\.\.\.)?$")
_TYPE = re.compile(r"^([A-Z]\S*) <.*>$")


class PlainCommand(TyperCommand):
    """A command whose help has no braces and no Python types; what may be repeated ends in dots, once."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the pieces of the usage line."""
        return [_without_braces(piece) for piece in super().collect_usage_pieces(ctx)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the lists of arguments and options."""
        write = formatter.write_dl

        def write_plain(rows: list[tuple[str, str]], *args: Any, **options: Any) -> None:
            write([(_TYPE.sub(r"\1", name), text) for name, text in rows], *args, **options)

        formatter.write_dl = write_plain
        super().format_options(ctx, formatter)


def _without_braces(piece: str) -> str:
    found = _BRACES.match(piece)
    if not found:
        return piece
    name, dots = found[1], found[2] or ""
    return name if name.endswith("...") else name + dots
