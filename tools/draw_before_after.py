"""Draws docs/before-after.svg: the demo session as it grows, and the prompts that were sent instead.

python tools/draw_before_after.py [OUT]
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from compact import CompactConfig
from compact.cli.demo.replay import DemoCall, Replay, load_session

WINDOW = 64_000
WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 860, 300, 64, 34, 40
INK, RAW, SENT, LIMIT = "#57606a", "#d1242f", "#0969da", "#8250df"


def main() -> None:
    """Replay the demo session and write the picture."""
    out = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[1] / "docs" / "before-after.svg"
    settings = {"state": {"url": "memory:"}, "storage": {"adapter": "none"}, "telemetry": {"exporter": "none"}}
    replay = Replay(CompactConfig(max_context_tokens=WINDOW, **settings), load_session(), with_failure=False)
    calls = list(replay)
    out.write_text(picture(calls, replay.budget.max_context_tokens), encoding="utf-8")
    print(f"{out.name}: {len(calls)} model calls, largest prompt {max(call.sent_tokens for call in calls):,} tokens")


def picture(calls: Sequence[DemoCall], window: int) -> str:
    """Two lines over the model calls: the raw history, and what the model was sent."""
    top = max(call.history_tokens for call in calls) * 1.05
    places = [(call.history_tokens, call.sent_tokens) for call in calls]

    def x(call: int) -> float:
        return LEFT + call / (len(calls) - 1) * (WIDTH - LEFT - 16)

    def y(tokens: float) -> float:
        return HEIGHT - BOTTOM - tokens / top * (HEIGHT - TOP - BOTTOM)

    raw = " ".join(f"{x(call):.1f},{y(seen):.1f}" for call, (seen, _) in enumerate(places))
    sent = " ".join(f"{x(call):.1f},{y(tokens):.1f}" for call, (_, tokens) in enumerate(places))
    floor = f"{x(len(calls) - 1):.1f},{y(0):.1f} {x(0):.1f},{y(0):.1f}"
    title = "A session six times longer than its window: the raw history, and the prompts Compact sent"
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{title}">',
            f"<style>text{{font:12px system-ui,sans-serif;fill:{INK}}} .b{{font-weight:600}}</style>",
            f'<polygon points="{sent} {floor}" fill="{SENT}" fill-opacity=".18"/>',
            f'<polyline points="{raw}" fill="none" stroke="{RAW}" stroke-width="2" stroke-dasharray="5 4"/>',
            f'<polyline points="{sent}" fill="none" stroke="{SENT}" stroke-width="2"/>',
            *_gridlines(top, y),
            f'<line x1="{LEFT}" x2="{WIDTH - 16}" y1="{y(window):.1f}" y2="{y(window):.1f}" stroke="{LIMIT}"/>',
            _label(LEFT + 6, y(window) - 6, f"window {window // 1000}k", LIMIT),
            _label(x(len(calls) * 0.60), y(top * 0.84), "before: the raw history", RAW),
            _label(x(len(calls) * 0.44), y(window * 0.1), "after: what the model is sent", SENT),
            f'<text x="{LEFT}" y="20" class="b">{title}</text>',
            f'<text x="{WIDTH - 16}" y="{HEIGHT - 12}" text-anchor="end">{len(calls)} model calls →</text>',
            "</svg>\n",
        ]
    )


def _gridlines(top: float, y: Callable[[float], float]) -> list[str]:
    lines: list[str] = []
    for tokens in range(0, int(top), 100_000):
        height = y(tokens)
        lines.append(
            f'<line x1="{LEFT}" x2="{WIDTH - 16}" y1="{height:.1f}" y2="{height:.1f}" stroke="{INK}" opacity=".2"/>'
        )
        lines.append(f'<text x="{LEFT - 8}" y="{height + 4:.1f}" text-anchor="end">{tokens // 1000}k</text>')
    return lines


def _label(x: float, y: float, text: str, colour: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" class="b" style="fill:{colour}">{text}</text>'


if __name__ == "__main__":
    main()
