"""The picture of a window that fills and is compacted, drawn anew for each step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter

from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.table import Table
from rich.text import Text

from compact.cli.demo_replay import Round, Step
from compact.core.plan.budget import TokenBudget

_LABEL_COLUMNS = 16
_MOST_COLUMNS = 120
_CHART_ROWS = 6
_EIGHTHS = " ▁▂▃▄▅▆▇█"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """A threshold of the window, with its colour."""

    name: str
    tokens: int
    style: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """One moment: the steps so far, and what the window holds right now."""

    steps: Sequence[Step]
    calls: int
    messages: int
    budget: TokenBudget
    used_tokens: int
    rounds: Sequence[Round]
    is_compacting: bool = False

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        columns = max(30, min(options.max_width, _MOST_COLUMNS) - _LABEL_COLUMNS - 1)
        painter = _Painter(columns, options.ascii_only, self.budget)
        yield Group(
            self._position(),
            Text(),
            painter.bar(self.used_tokens, self.is_compacting),
            painter.marks(self.is_compacting),
            Text(),
            *painter.chart([step.sent_tokens for step in self.steps], self.calls),
            Text("the size of each prompt that was sent", style="dim"),
            Text(),
            _rounds_table(self.rounds, options.ascii_only),
        )

    def _position(self) -> Text:
        step = self.steps[-1]
        windows = step.seen_tokens / self.budget.max_context_tokens
        return Text.assemble(
            ("message ", "dim"),
            (f"{step.message + 1:,}", "bold"),
            (f" of {self.messages:,}   turn ", "dim"),
            (f"{step.turn}", "bold"),
            ("   history so far ", "dim"),
            (f"{step.seen_tokens:,}", "bold"),
            (f" tokens, {windows:.1f} windows", "dim"),
        )


class _Painter:
    """Draws token counts to the scale of one window."""

    def __init__(self, columns: int, ascii_only: bool, budget: TokenBudget) -> None:
        self.columns = columns
        self.ascii_only = ascii_only
        self.window_tokens = budget.max_context_tokens
        self.limits = (
            Limit(name="trigger", tokens=budget.trigger_tokens, style="red"),
            Limit(name="prefetch", tokens=budget.prefetch_tokens, style="yellow"),
            Limit(name="target", tokens=budget.target_tokens, style="green"),
        )

    def bar(self, used_tokens: int, is_compacting: bool) -> Text:
        """The window as one line, filled as far as it is used."""
        filled = self._column(used_tokens)
        full, empty, line = ("#", ".", "|") if self.ascii_only else ("█", "░", "│")
        limits = {self._column(limit.tokens): limit.style for limit in self.limits}
        text = Text.assemble((full * filled, self._style(used_tokens)))
        for column in range(filled, self.columns):
            text.append(*((line, limits[column]) if column in limits else (empty, "dim")))
        share = used_tokens / self.window_tokens
        text.append(f" {used_tokens:>9,} {share:>4.0%}", "bold reverse" if is_compacting else "bold")
        return text

    def marks(self, is_compacting: bool) -> Text:
        """The thresholds under the bar, and what is going on."""
        arrow = "^" if self.ascii_only else "▲"
        line = ""
        for limit in reversed(self.limits):
            column = self._column(limit.tokens)
            if column >= len(line):  # in a small window the thresholds fall together
                line = f"{line:<{column}}{arrow} {limit.tokens / self.window_tokens:.0%}"
        doing = "compacting" if is_compacting else ""
        return Text.assemble((line.ljust(self.columns), "dim"), (f"{doing:>{_LABEL_COLUMNS - 1}}", "bold red"))

    def chart(self, sizes: Sequence[int], calls: int) -> Iterator[Text]:
        """Every prompt so far as a column; the thresholds as dotted lines across."""
        heights = self._heights(sizes, calls)
        names = {self._row(limit.tokens): limit for limit in reversed(self.limits)}
        for row in reversed(range(_CHART_ROWS)):
            limit = names.get(row)
            text = Text()
            for style, cells in groupby((self._cell(size, row, limit) for size in heights), key=itemgetter(1)):
                text.append("".join(char for char, _ in cells), style)
            if limit:
                text.append(f" {limit.name} {limit.tokens / self.window_tokens:.0%}", limit.style)
            yield text

    def _heights(self, sizes: Sequence[int], calls: int) -> list[int]:
        """For each column the largest prompt among the calls that share it; 0 for calls still to come."""
        heights = [0] * self.columns
        for call, size in enumerate(sizes):
            first = call * self.columns // calls
            for column in range(first, max(first + 1, (call + 1) * self.columns // calls)):
                heights[column] = max(heights[column], size)
        return heights

    def _cell(self, size: int, row: int, limit: Limit | None) -> tuple[str, str]:
        eighths = round(size * _CHART_ROWS * 8 / self.window_tokens) - 8 * row
        if eighths > 0:
            char = "#" if self.ascii_only else _EIGHTHS[min(eighths, 8)]
            return char, self._style(size)
        if limit:
            return "-" if self.ascii_only else "┄", f"dim {limit.style}"
        return " ", ""

    def _style(self, tokens: int) -> str:
        return next((limit.style for limit in self.limits[:2] if tokens >= limit.tokens), "cyan")

    def _column(self, tokens: int) -> int:
        return min(self.columns, round(self.columns * tokens / self.window_tokens))

    def _row(self, tokens: int) -> int:
        return min(_CHART_ROWS - 1, int(_CHART_ROWS * tokens / self.window_tokens))


def _rounds_table(rounds: Sequence[Round], ascii_only: bool) -> Table:
    arrow = "->" if ascii_only else "→"
    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="dim")
    for name in ("round", "message", f"tokens before {arrow} after"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("what was done", no_wrap=True, min_width=26, overflow="ellipsis")
    table.add_column("ms", justify="right", no_wrap=True)
    for done in rounds:
        tokens = f"{done.tokens_before:,} {arrow} {done.tokens_after:,}"
        table.add_row(str(done.number), f"{done.message + 1:,}", tokens, done.work, f"{done.milliseconds:.0f}")
    return table
