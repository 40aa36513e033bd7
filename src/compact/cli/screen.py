"""What reaches the screen: drawn for people on a terminal, plain aligned lines in a pipe."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from rich.console import Console

Rows = Sequence[Sequence[object]]


def console(*, stderr: bool = False) -> Console:
    """A console on today's stdout or stderr; one without a live terminal gets no control characters at all."""
    from rich.console import Console

    live = is_live(sys.stderr if stderr else sys.stdout)
    return Console(stderr=stderr, force_terminal=None if live else False, highlight=False, markup=False)


def is_live(stream: TextIO) -> bool:
    """True if a person looks at it."""
    return stream.isatty()


def line(text: str = "", *, style: str = "") -> None:
    """One line on stdout, never wrapped by us."""
    if is_live(sys.stdout):
        console().print(printable(text), style=style or None, soft_wrap=True)
    else:
        write(printable(text) + "\n")


def remark(text: str, *, label: str = "", style: str = "") -> None:
    """One line for the person, on stderr, so that stdout stays data."""
    from rich.text import Text

    marked = Text.assemble((f"{label}: ", style) if label else "", printable(text))
    console(stderr=True).print(marked, soft_wrap=True)


def write(text: str) -> None:
    """Text on stdout as it is."""
    sys.stdout.write(text)
    sys.stdout.flush()


def write_json(data: object) -> None:
    """Data on stdout, indented."""
    write(json_text(data, indent=2, encoding=sys.stdout.encoding) + "\n")


def json_text(data: object, *, indent: int | None = None, encoding: str | None = "utf-8") -> str:
    """JSON in plain letters; escaped where the encoding (or a lone surrogate) does not allow them."""
    text = json.dumps(data, ensure_ascii=False, indent=indent)
    try:
        text.encode(encoding or "utf-8")
    except UnicodeEncodeError:
        return json.dumps(data, indent=indent)
    return text


def heading(text: str) -> None:
    """A line above a table, with room before it."""
    line()
    line(text, style="bold")


def table(columns: Sequence[str], rows: Rows) -> None:
    """Rows under their headings; numbers stand right, the last column may be long."""
    cells = [[_cell(value) for value in row] for row in rows]
    right = [all(isinstance(row[place], int) for row in rows) for place in range(len(columns))]
    if is_live(sys.stdout):
        _drawn_table(columns, cells, right)
    else:
        write("".join(text + "\n" for text in _plain_table(columns, cells, right)))


def _cell(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else printable(str(value))


def _plain_table(columns: Sequence[str], cells: Sequence[Sequence[str]], right: Sequence[bool]) -> Iterator[str]:
    lines = [columns, *cells]
    widths = [max(len(row[place]) for row in lines) for place in range(len(columns))]
    for row in lines:
        padded = [
            cell.rjust(width) if is_right else cell.ljust(width)
            for cell, width, is_right in zip(row, widths, right, strict=True)
        ]
        yield "  ".join(padded).rstrip()


def _drawn_table(columns: Sequence[str], cells: Sequence[Sequence[str]], right: Sequence[bool]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    drawn = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="dim")
    for place, name in enumerate(columns):
        is_last = place == len(columns) - 1
        drawn.add_column(name, justify="right" if right[place] else "left", no_wrap=not is_last, overflow="fold")
    for row in cells:
        drawn.add_row(*(Text(cell) for cell in row))
    console().print(drawn)


@contextmanager
def working(text: str) -> Iterator[None]:
    """A spinner on stderr while something takes its time; nothing at all in a pipe."""
    if not is_live(sys.stderr):
        yield
        return
    with console(stderr=True).status(text):
        yield


def printable(text: str) -> str:
    """Text without control characters: what a tool printed must not steer this terminal."""
    return "".join(char if char.isprintable() else " " for char in text)


def first_line(text: str, *, chars: int = 42) -> str:
    """The first line that says something, cut to fit."""
    found = next((row.strip() for row in text[:10_000].splitlines() if row.strip()), "")
    return clipped(" ".join(printable(found).split()), chars)


def clipped(text: str, chars: int) -> str:
    """Text of at most so many characters; the cut is shown."""
    return text if len(text) <= chars else text[: chars - 1] + "…"


def share(part: int, whole: int) -> str:
    """A part as a percentage."""
    return f"{part / whole:.1%}" if whole else "0.0%"


def counted(number: int, thing: str, things: str = "") -> str:
    """A number with its noun: 1 message, 2 messages."""
    return f"{number:,} {thing if number == 1 else things or thing + 's'}"


def warn_about(events: Sequence[Any]) -> None:
    """Say what the manager had to assume, repair or do without."""
    from compact.core.engine.events import CompactionErrorEvent, HistoryRepairedEvent, NoticeEvent

    for event in events:
        match event:
            case NoticeEvent():
                remark(event.message, label="note", style="yellow")
            case HistoryRepairedEvent():
                text = f"the history is not legal as it is; {counted(len(event.repairs), 'repair')}: {event.repairs[0]}"
                remark(text, label="note", style="yellow")
            case CompactionErrorEvent():
                remark(f"{event.message} (fallback: {event.fallback})", label="warning", style="yellow")
            case _:
                pass
