"""Charts as inline SVG: what a policy costs against what it keeps, prompts call by call, and bars."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, dist, floor, log10

COLOURS = 8
_WIDTH, _HEIGHT = 480.0, 300.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 52.0, 20.0, 14.0, 40.0
_BAR, _GAP = 20.0, 12.0
# Chosen: a label of two digits fits into a disc, and two discs do not touch.
_RADIUS, _APART = 9.0, 20.0
# Where a disc moves that would cover another one: to the right first, then around its place, further and further out.
_ASIDE = ((1, 0), (-1, 0), (0, 1), (0, -1), (0.8, 0.8), (-0.8, 0.8), (0.8, -0.8), (-0.8, -0.8))
_RINGS = 6
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
    named = _prices(x_ticks) if money else [_short(tick) for tick in x_ticks]
    parts += [_text(across(x), _HEIGHT - _BOTTOM + 18, name, "middle") for x, name in zip(x_ticks, named, strict=True)]
    parts.append(_text((_LEFT + low) / 2, _HEIGHT - 4, x_title, "middle"))
    places = [(across(dot.x), up(dot.y)) for dot in dots]
    drawn = places_apart(places)
    # Below all discs: a line from each that was moved to its own place.
    parts += [
        f'<line class="aside" x1="{own[0]:.1f}" y1="{own[1]:.1f}" x2="{moved[0]:.1f}" y2="{moved[1]:.1f}"/>'
        for own, moved in zip(places, drawn, strict=True)
        if own != moved
    ]
    for dot, (x, y) in zip(dots, drawn, strict=True):
        circle = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{_RADIUS:g}" style="fill:{colour(dot.colour)}"/>'
        parts.append(f"<g><title>{escape(dot.text)}</title>{circle}{_text(x, y + 4, dot.label, 'middle', 'in')}</g>")
    return _svg(_WIDTH, _HEIGHT, f"{y_title} against {x_title}", parts)


def places_apart(places: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return where discs are drawn so that none covers another: at their places, or beside them."""
    drawn: list[tuple[float, float]] = []
    for place in places:
        free = (one for one in _beside(place) if all(dist(one, other) >= _APART for other in drawn))
        drawn.append(next(free, place))
    return drawn


def _beside(place: tuple[float, float]) -> Iterator[tuple[float, float]]:
    """Yield a place, and those around it that are in the chart."""
    yield place
    for ring in range(1, _RINGS + 1):
        for right, down in _ASIDE:
            x, y = place[0] + right * ring * _APART * 1.1, place[1] + down * ring * _APART * 1.1
            if _LEFT <= x <= _WIDTH - _RIGHT and _TOP <= y <= _HEIGHT - _BOTTOM:
                yield x, y


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

    parts = [_horizontal(up(tick), _short(tick), right=right) for tick in y_ticks]
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


def _prices(values: Sequence[float]) -> list[str]:
    """Return the prices of an axis, all with as many digits as the one that needs most, and cents as two."""
    most = max((len(f"{value:.6f}".rstrip("0").partition(".")[2]) for value in values), default=0)
    digits = max(2, most) if most else 0
    return [f"${value:,.{digits}f}" for value in values]


def _short(value: float) -> str:
    """Return a figure for an axis."""
    for size, letter in ((1_000_000, "M"), (1_000, "k")):
        if value >= size:
            return f"{value / size:g}{letter}"
    return f"{value:g}"
