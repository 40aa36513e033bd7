"""Charts as inline SVG: what a policy costs against what it keeps, prompts call by call, and bars."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log10

COLOURS = 8
_WIDTH, _HEIGHT = 480.0, 300.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 52.0, 20.0, 14.0, 40.0
_BAR, _GAP = 20.0, 12.0
_LABEL_CHARS = 19


@dataclass(frozen=True, slots=True)
class Dot:
    """A policy in a chart of two figures, with a short label; `text` says both figures."""

    label: str
    colour: int
    x: float
    y: float
    text: str


@dataclass(frozen=True, slots=True)
class Run:
    """The sizes of the prompts of one policy, call by call."""

    label: str
    colour: int
    values: Sequence[int]


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar, with its value in words."""

    label: str
    colour: int
    value: float
    text: str


def colour(number: int) -> str:
    """Return the colour of a policy, as CSS has it."""
    return f"var(--c{number % COLOURS})"


def ticks(highest: float, most: int = 5) -> list[float]:
    """Return round values from 0 to at least the highest."""
    if highest <= 0:
        return [0.0, 1.0]
    raw = highest / most
    unit = 10.0 ** floor(log10(raw))
    step = next(factor * unit for factor in (1, 2, 2.5, 5, 10) if factor * unit >= raw * 0.999)
    return [number * step for number in range(ceil(highest / step - 1e-9) + 1)]


def dot_chart(dots: Sequence[Dot], *, x_title: str, y_title: str, money: bool) -> str:
    """Draw policies by cost (to the right) and by a share that they keep (upwards)."""
    x_ticks = ticks(max((dot.x for dot in dots), default=1.0))
    right, low = x_ticks[-1] or 1.0, _WIDTH - _RIGHT

    def across(value: float) -> float:
        return _LEFT + (low - _LEFT) * value / right

    def up(value: float) -> float:
        return _HEIGHT - _BOTTOM - (_HEIGHT - _BOTTOM - _TOP) * value

    parts = [_horizontal(up(n / 4), f"{n * 25}%") for n in range(5)]
    parts += [_text(across(tick), _HEIGHT - _BOTTOM + 18, _short(tick, money=money), "middle") for tick in x_ticks]
    parts.append(_text((_LEFT + low) / 2, _HEIGHT - 4, x_title, "middle"))
    for dot in dots:
        x, y = across(dot.x), up(dot.y)
        circle = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="9" style="fill:{colour(dot.colour)}"/>'
        parts.append(f"<g><title>{escape(dot.text)}</title>{circle}{_text(x, y + 4, dot.label, 'middle', 'in')}</g>")
    return _svg(_WIDTH, _HEIGHT, f"{y_title} against {x_title}", parts)


def run_chart(runs: Sequence[Run], *, window: int, trigger: int) -> str:
    """Draw the size of each prompt, with lines at the window and at the trigger."""
    width, height = 2 * _WIDTH, _HEIGHT
    highest = max([trigger, *(max(run.values, default=0) for run in runs)])
    y_ticks = ticks(highest)
    calls = max((len(run.values) for run in runs), default=1)
    right = width - 70

    def up(value: float) -> float:
        return height - _BOTTOM - (height - _BOTTOM - _TOP) * value / y_ticks[-1]

    def across(call: int) -> float:
        return _LEFT + (right - _LEFT) * call / max(1, calls - 1)

    parts = [_horizontal(up(tick), _short(tick, money=False), right=right) for tick in y_ticks]
    for value, name, kind in ((window, "window", "limit"), (trigger, "trigger", "trigger")):
        if value <= y_ticks[-1]:
            y = up(value)
            parts.append(f'<line class="{kind}" x1="{_LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"/>')
            parts.append(_text(right + 6, y + 4, name))
    for run in runs:
        points = " ".join(f"{across(call):.1f},{up(value):.1f}" for call, value in enumerate(run.values))
        parts.append(
            f'<polyline class="run" points="{points}" style="stroke:{colour(run.colour)}">'
            f"<title>{escape(run.label)}</title></polyline>"
        )
    for call in sorted({0, calls // 4, calls // 2, 3 * calls // 4, calls - 1}):
        parts.append(_text(across(call), height - _BOTTOM + 18, f"{call + 1:,}", "middle"))
    parts.append(_text((_LEFT + right) / 2, height - 4, "model call", "middle"))
    return _svg(width, height, "tokens of each prompt, call by call", parts)


def bar_chart(bars: Sequence[Bar], *, title: str) -> str:
    """Draw bars, one below the other."""
    label, end = 150.0, _WIDTH - 78
    highest = max((bar.value for bar in bars), default=0.0) or 1.0
    parts: list[str] = []
    for number, bar in enumerate(bars):
        y = number * (_BAR + _GAP) + 4
        size = max(1.0, (end - label) * bar.value / highest)
        parts.append(_text(label - 10, y + _BAR / 2 + 4, _cut(bar.label), "end", "name"))
        box = f'x="{label}" y="{y:.1f}" width="{size:.1f}" height="{_BAR}" rx="4"'
        parts.append(f'<rect {box} style="fill:{colour(bar.colour)}"/>')
        parts.append(_text(label + size + 8, y + _BAR / 2 + 4, bar.text))
    return _svg(_WIDTH, max(1, len(bars)) * (_BAR + _GAP) + 4, title, parts)


def _svg(width: float, height: float, title: str, parts: Sequence[str]) -> str:
    return (
        f'<svg viewBox="0 0 {width:g} {height:g}" role="img" aria-label="{escape(title)}">'
        f"<title>{escape(title)}</title>{''.join(parts)}</svg>"
    )


def _horizontal(y: float, text: str, right: float = _WIDTH - _RIGHT) -> str:
    line = f'<line class="grid" x1="{_LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"/>'
    return line + _text(_LEFT - 8, y + 4, text, "end")


def _text(x: float, y: float, text: str, anchor: str = "start", kind: str = "") -> str:
    named = f' class="{kind}"' if kind else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{named}>{escape(text)}</text>'


def _cut(text: str) -> str:
    return text if len(text) <= _LABEL_CHARS else text[: _LABEL_CHARS - 1] + "…"


def _short(value: float, *, money: bool) -> str:
    """Return a figure for an axis."""
    if money:
        return f"${value:,.2f}" if value < 10 else f"${value:,.0f}"
    for size, letter in ((1_000_000, "M"), (1_000, "k")):
        if value >= size:
            return f"{value / size:g}{letter}"
    return f"{value:g}"
