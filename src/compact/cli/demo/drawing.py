"""Draws a window that fills and is compacted: one frame for each call."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter

from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.text import Text

from compact.cli.demo.replay import DemoCall, DemoCompaction, DemoUndo
from compact.cli.screen import fitted_lines, list_lines
from compact.core.plan.budget import TokenBudget

# Chosen: what fits on a terminal of 80 columns and does not get lost on a wide one.
_LABEL_COLUMNS = 16
_MOST_COLUMNS = 120
_CHART_ROWS = 6
_LEAST_COLUMNS = 10
# Where the number of a compaction stands in its line.
_NUMBER_COLUMNS = 3
_EIGHTHS = " ▁▂▃▄▅▆▇█"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Threshold:
    """A threshold of the window, with its colour."""

    name: str
    tokens: int
    style: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """One moment: the calls so far, and how full the window is."""

    calls: Sequence[DemoCall]
    total_calls: int
    messages: int
    budget: TokenBudget
    used_tokens: int
    changes: Sequence[DemoCompaction | DemoUndo]
    is_compacting: bool = False

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        columns = max(_LEAST_COLUMNS, min(options.max_width, _MOST_COLUMNS) - _LABEL_COLUMNS - 1)
        drawing = _WindowDrawing(columns, options.ascii_only, self.budget)
        yield Group(
            self._position(),
            Text(),
            drawing.bar(self.used_tokens, self.is_compacting),
            drawing.marks(self.is_compacting),
            Text(),
            *drawing.chart([call.sent_tokens for call in self.calls], self.total_calls),
            Text("the tokens of each prompt", style="dim"),
            Text(),
            *_changes(self.changes, options.max_width, options.ascii_only),
        )

    def _position(self) -> Text:
        call = self.calls[-1]
        windows = call.history_tokens / self.budget.max_context_tokens
        return Text.assemble(
            ("message ", "dim"),
            (f"{call.message + 1:,}", "bold"),
            (f" of {self.messages:,}   turn ", "dim"),
            (f"{call.turn}", "bold"),
            ("   history so far ", "dim"),
            (f"{call.history_tokens:,}", "bold"),
            (f" tokens, {windows:.1f} windows", "dim"),
        )


class _WindowDrawing:
    """Token counts drawn to the scale of one window."""

    def __init__(self, columns: int, ascii_only: bool, budget: TokenBudget) -> None:
        self.columns = columns
        self.ascii_only = ascii_only
        self.window_tokens = budget.max_context_tokens
        self.thresholds = (
            _Threshold(name="trigger", tokens=budget.trigger_tokens, style="red"),
            _Threshold(name="prefetch", tokens=budget.prefetch_tokens, style="yellow"),
            _Threshold(name="target", tokens=budget.target_tokens, style="green"),
        )

    def bar(self, used_tokens: int, is_compacting: bool) -> Text:
        """Return the window as one line, filled as far as it is used."""
        filled = self._column(used_tokens)
        full, empty, line = ("#", ".", "|") if self.ascii_only else ("█", "░", "│")
        styles = {self._column(threshold.tokens): threshold.style for threshold in self.thresholds}
        text = Text.assemble((full * filled, self._style(used_tokens)))
        for column in range(filled, self.columns):
            text.append(*((line, styles[column]) if column in styles else (empty, "dim")))
        share = used_tokens / self.window_tokens
        text.append(f" {used_tokens:>9,} {share:>4.0%}", "bold reverse" if is_compacting else "bold")
        return text

    def marks(self, is_compacting: bool) -> Text:
        """Return the thresholds under the bar, and whether it is compacting."""
        arrow = "^" if self.ascii_only else "▲"
        line = ""
        for threshold in reversed(self.thresholds):
            column = self._column(threshold.tokens)
            if column >= len(line):  # in a small window the thresholds overlap
                line = f"{line:<{column}}{arrow} {threshold.tokens / self.window_tokens:.0%}"
        state = "compacting" if is_compacting else ""
        return Text.assemble((line.ljust(self.columns), "dim"), (f"{state:>{_LABEL_COLUMNS - 1}}", "bold red"))

    def chart(self, sizes: Sequence[int], calls: int) -> Iterator[Text]:
        """Yield the rows of a chart: every prompt so far as a column, the thresholds as dotted lines."""
        heights = self._heights(sizes, calls)
        at_rows = {self._row(threshold.tokens): threshold for threshold in reversed(self.thresholds)}
        for row in reversed(range(_CHART_ROWS)):
            threshold = at_rows.get(row)
            text = Text()
            for style, cells in groupby((self._cell(size, row, threshold) for size in heights), key=itemgetter(1)):
                text.append("".join(char for char, _ in cells), style)
            if threshold:
                text.append(f" {threshold.name} {threshold.tokens / self.window_tokens:.0%}", threshold.style)
            yield text

    def _heights(self, sizes: Sequence[int], calls: int) -> list[int]:
        """Return for each column the largest prompt among the calls that share it; 0 for calls still to come."""
        heights = [0] * self.columns
        for call, size in enumerate(sizes):
            first = call * self.columns // calls
            for column in range(first, max(first + 1, (call + 1) * self.columns // calls)):
                heights[column] = max(heights[column], size)
        return heights

    def _cell(self, size: int, row: int, threshold: _Threshold | None) -> tuple[str, str]:
        eighths = round(size * _CHART_ROWS * 8 / self.window_tokens) - 8 * row
        if eighths > 0:
            char = "#" if self.ascii_only else _EIGHTHS[min(eighths, 8)]
            return char, self._style(size)
        if threshold:
            return "-" if self.ascii_only else "┄", f"dim {threshold.style}"
        return " ", ""

    def _style(self, tokens: int) -> str:
        return next((threshold.style for threshold in self.thresholds[:2] if tokens >= threshold.tokens), "cyan")

    def _column(self, tokens: int) -> int:
        return min(self.columns, round(self.columns * tokens / self.window_tokens))

    def _row(self, tokens: int) -> int:
        return min(_CHART_ROWS - 1, int(_CHART_ROWS * tokens / self.window_tokens))


def _changes(changes: Sequence[DemoCompaction | DemoUndo], max_columns: int, ascii_only: bool) -> Iterator[Text]:
    """Yield the compactions as a table, or as a list where the table would not fit: no figure is ever cut."""
    arrow = "->" if ascii_only else "→"
    columns = ("#", "message", f"tokens before {arrow} after", "ms", "what was done")
    rows = [_change_row(change, arrow) for change in changes]
    lines = fitted_lines(columns, rows, (True, True, True, True, False), min(max_columns, _MOST_COLUMNS))
    if lines is None:
        yield from map(Text, list_lines(columns, rows))
        return
    header, *drawn = lines
    yield Text(header, style="dim")
    place = -1
    for line in drawn:
        place += bool(line[:_NUMBER_COLUMNS].strip())  # a line without a number goes on with the one above
        yield Text(line, style=_change_style(changes[place]))


def _change_row(change: DemoCompaction | DemoUndo, arrow: str) -> tuple[str, ...]:
    tokens = f"{change.tokens_before:,} {arrow} {change.tokens_after:,}"
    place = str(change.number), f"{change.message + 1:,}", tokens
    if isinstance(change, DemoUndo):
        return *place, "", "undone"
    work = f"{change.failure.what} FAILED: by code instead" if change.failure else change.work
    return *place, f"{change.milliseconds:.0f}", work


def _change_style(change: DemoCompaction | DemoUndo) -> str:
    return "yellow" if isinstance(change, DemoUndo) else "bold red" if change.failure else ""
