"""Output of the commands: drawn for people on a terminal, aligned text in a pipe, JSON for programs."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, TextIO

from compact.cli.ascii_text import shown_in
from compact.core.control_characters import STEERING
from compact.core.plurals import quantity as quantity

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from rich.console import Console

    from compact.core.engine.events import CompactionEvent

Rows = Sequence[Sequence[object]]
# Chosen: blanks between two columns, and the least that the last one of a table has.
_GAP = 2
# Outside of its strings JSON has none of them; the first 32 characters it escapes by itself.
_STEERING = re.compile(f"[{STEERING}]")
_MIN_LAST_COLUMNS = 20


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
    """Return JSON with letters as they are; escaped where the encoding (or a lone surrogate) does not allow them.

    What steers a terminal is escaped, too: JSON itself does so only with the first 32 characters.
    """
    text = json.dumps(data, ensure_ascii=False, indent=indent)
    text = _STEERING.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
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


@contextmanager
def progress(text: str, steps: int) -> Generator[Callable[[int, str], None]]:
    """Show a bar on stderr while something takes its time: report how many steps are done, and with what it goes on.

    Nothing is shown in a pipe.
    """
    if not is_terminal(sys.stderr):
        yield lambda done, text: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console(stderr=True), transient=True) as bar:
        task = bar.add_task(text, total=steps)
        yield lambda done, text: bar.update(task, description=text, advance=done)


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
                notice(f"{event.message} (instead: {event.instead})", label="warning", style="yellow")
            case _:
                pass


# -- tables -------------------------------------------------------------------------------------------------------


def table(columns: Sequence[str], rows: Rows) -> None:
    """Print rows under their column names; numbers are right-aligned, the last column may be long.

    Nothing is ever cut: on a terminal that is too narrow for a table, each row is a list of `name: value`.
    """
    cells = [[_cell(value) for value in row] for row in rows]
    right = [all(isinstance(row[place], int) for row in rows) for place in range(len(columns))]
    names = [printable(name) for name in columns]
    if not is_terminal(sys.stdout):
        write("".join(text + "\n" for text in table_lines(names, cells, right)))
        return
    width = console().width
    lines = fitted_lines(names, cells, right, width)
    if lines is None:
        for text in list_lines(names, cells):
            line(text)
        return
    header, *drawn = lines
    line(header, style="dim")
    line(printable("─" * min(width, max(map(display_width, lines)))), style="dim")
    for text in drawn:
        line(text)


def _cell(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else printable(str(value))


def table_lines(columns: Sequence[str], cells: Sequence[Sequence[str]], right: Sequence[bool]) -> list[str]:
    """Return a table as aligned text, as wide as it is."""
    rows = [columns, *cells]
    widths = _widths(rows)
    return [_aligned(row, widths, right) for row in rows]


def fitted_lines(
    columns: Sequence[str], cells: Sequence[Sequence[str]], right: Sequence[bool], width: int
) -> list[str] | None:
    """Return a table with lines of at most so many columns, the last cell wrapped between words; None if it cannot."""
    rows = [columns, *cells]
    widths = _widths(rows)
    room = width - sum(widths[:-1]) - _GAP * (len(columns) - 1)
    if widths[-1] > room:
        longest_word = max((display_width(word) for row in rows for word in row[-1].split()), default=0)
        if right[-1] or room < max(longest_word, _MIN_LAST_COLUMNS):
            return None
        widths[-1] = room
    lines: list[str] = []
    for row in rows:
        for number, part in enumerate(_wrapped(row[-1], widths[-1])):
            before = row[:-1] if number == 0 else [""] * (len(row) - 1)
            lines.append(_aligned([*before, part], widths, right))
    return lines


def list_lines(columns: Sequence[str], cells: Sequence[Sequence[str]]) -> list[str]:
    """Return rows as `name: value`, with an empty line between two rows; values that are empty are left out."""
    lines: list[str] = []
    for number, row in enumerate(cells):
        lines += [""] if number else []
        lines += [f"{name}: {cell}" for name, cell in zip(columns, row, strict=True) if cell]
    return lines


def display_width(text: str) -> int:
    """Return the columns that a text takes on a terminal."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def _widths(rows: Sequence[Sequence[str]]) -> list[int]:
    return [max(display_width(row[place]) for row in rows) for place in range(len(rows[0]))]


def _aligned(row: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    padded: list[str] = []
    for cell, width, is_right in zip(row, widths, right, strict=True):
        blanks = " " * (width - display_width(cell))
        padded.append(blanks + cell if is_right else cell + blanks)
    return (" " * _GAP).join(padded).rstrip()


def _wrapped(text: str, width: int) -> list[str]:
    """Return a text in lines of at most so many columns, cut between words."""
    lines = [""]
    for word in text.split(" "):
        longer = f"{lines[-1]} {word}" if lines[-1] else word
        if display_width(longer) <= width:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


# -- words, numbers, times ----------------------------------------------------------------------------------------


def printable(text: str) -> str:
    """Return text as stdout can show it, without control characters: no tool's output must steer this terminal."""
    plain = "".join(char if char.isprintable() else " " for char in text)
    return shown_in(plain, sys.stdout.encoding)


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


def local_time(at: float) -> str:
    """Return a time for people, on the clock of this machine."""
    return datetime.fromtimestamp(at).isoformat(" ", "seconds")


def iso_time(at: float) -> str:
    """Return a time for programs, with its offset from UTC."""
    return datetime.fromtimestamp(at).astimezone().isoformat(timespec="seconds")
