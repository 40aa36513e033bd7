"""Output of the commands: drawn for people on a terminal, aligned text in a pipe, JSON for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from collections.abc import Generator

    from rich.console import Console

    from compact.core.engine.events import CompactionEvent

Rows = Sequence[Sequence[object]]


def console(*, stderr: bool = False) -> Console:
    """Return a console on stdout or stderr; without a terminal it writes no control characters at all."""
    from rich.console import Console

    has_terminal = is_terminal(sys.stderr if stderr else sys.stdout)
    return Console(stderr=stderr, force_terminal=None if has_terminal else False, highlight=False, markup=False)


def is_terminal(stream: TextIO) -> bool:
    """Return True if a stream is shown on a terminal."""
    return stream.isatty()


# -- lines --------------------------------------------------------------------------------------------------------


def line(text: str = "", *, style: str = "") -> None:
    """Print one line on stdout, never wrapped by us."""
    if is_terminal(sys.stdout):
        console().print(printable(text), style=style or None, soft_wrap=True)
    else:
        write(printable(text) + "\n")


def notice(text: str, *, label: str = "", style: str = "") -> None:
    """Print one line for the person on stderr, so that stdout stays data."""
    from rich.text import Text

    labelled = Text.assemble((f"{label}: ", style) if label else "", printable(text))
    console(stderr=True).print(labelled, soft_wrap=True)


def heading(text: str) -> None:
    """Print an empty line and a title for the table below it."""
    line()
    line(text, style="bold")


def write(text: str) -> None:
    """Write text to stdout as it is."""
    sys.stdout.write(text)
    sys.stdout.flush()


def write_json(data: object) -> None:
    """Write data to stdout as indented JSON."""
    write(json_text(data, indent=2, encoding=sys.stdout.encoding) + "\n")


def json_text(data: object, *, indent: int | None = None, encoding: str | None = "utf-8") -> str:
    """Return JSON with letters as they are; escaped where the encoding (or a lone surrogate) does not allow them."""
    text = json.dumps(data, ensure_ascii=False, indent=indent)
    try:
        text.encode(encoding or "utf-8")
    except UnicodeEncodeError:
        return json.dumps(data, indent=indent)
    return text


@contextmanager
def spinner(text: str) -> Generator[None]:
    """Show a spinner on stderr while something takes its time; print nothing in a pipe."""
    if not is_terminal(sys.stderr):
        yield
        return
    with console(stderr=True).status(text):
        yield


def show_warnings(events: Sequence[CompactionEvent]) -> None:
    """Print what the manager had to assume, repair or do without."""
    from compact.core.engine.events import CompactionErrorEvent, HistoryRepairedEvent, NoticeEvent

    for event in events:
        match event:
            case NoticeEvent() if event.severity != "low":
                notice(event.message, label="note", style="yellow")
            case HistoryRepairedEvent():
                repairs = f"{quantity(len(event.repairs), 'repair')}: {event.repairs[0]}"
                notice(f"a provider would reject this history; {repairs}", label="note", style="yellow")
            case CompactionErrorEvent():
                notice(f"{event.message} (fallback: {event.fallback})", label="warning", style="yellow")
            case _:
                pass


# -- tables -------------------------------------------------------------------------------------------------------


def table(columns: Sequence[str], rows: Rows) -> None:
    """Print rows under their column names; numbers are right-aligned, the last column may be long."""
    cells = [[_cell(value) for value in row] for row in rows]
    right = [all(isinstance(row[place], int) for row in rows) for place in range(len(columns))]
    if is_terminal(sys.stdout):
        _draw_table(columns, cells, right)
    else:
        write("".join(text + "\n" for text in _table_lines(columns, cells, right)))


def _cell(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else printable(str(value))


def _table_lines(columns: Sequence[str], cells: Sequence[Sequence[str]], right: Sequence[bool]) -> Iterator[str]:
    rows = [columns, *cells]
    widths = [max(len(row[place]) for row in rows) for place in range(len(columns))]
    for row in rows:
        padded = [
            cell.rjust(width) if is_right else cell.ljust(width)
            for cell, width, is_right in zip(row, widths, right, strict=True)
        ]
        yield "  ".join(padded).rstrip()


def _draw_table(columns: Sequence[str], cells: Sequence[Sequence[str]], right: Sequence[bool]) -> None:
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


# -- words, numbers, times ----------------------------------------------------------------------------------------


def printable(text: str) -> str:
    """Return text without control characters: what a tool printed must not steer this terminal."""
    return "".join(char if char.isprintable() else " " for char in text)


def first_line(text: str, *, chars: int = 42) -> str:
    """Return the first line that is not empty, cut to fit."""
    found = next((row.strip() for row in text[:10_000].splitlines() if row.strip()), "")
    return truncate(" ".join(printable(found).split()), chars)


def truncate(text: str, chars: int) -> str:
    """Return at most so many characters of a text; an ellipsis marks the cut."""
    return text if len(text) <= chars else text[: chars - 1] + "…"


def percentage(part: int, whole: int) -> str:
    """Return a part of a whole in percent."""
    return f"{part / whole:.1%}" if whole else "0.0%"


def quantity(number: int, thing: str, things: str = "") -> str:
    """Return a number with its noun: 1 message, 2 messages."""
    return f"{number:,} {thing if number == 1 else things or thing + 's'}"


def local_time(at: float) -> str:
    """Return a time for people, on the clock of this machine."""
    return datetime.fromtimestamp(at).isoformat(" ", "seconds")


def iso_time(at: float) -> str:
    """Return a time for programs, with its offset from UTC."""
    return datetime.fromtimestamp(at).astimezone().isoformat(timespec="seconds")
