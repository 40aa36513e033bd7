"""The results as tables of Markdown, in docs/why.md between two marks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
RESULTS = Path(__file__).with_name("results.json")
PAGE = ROOT / "docs" / "why.md"
BEGIN, END = "<!-- peers: begin, written by `python benchmarks/peers --document` -->", "<!-- peers: end -->"


def tables(results: Mapping[str, Any]) -> str:
    """Both tables, and what was not measured."""
    missing = [f"- **{name}**: {why}." for name, why in results["not_measured"].items()]
    parts = [_kept_table(results["peers"]), _speed_table(results["peers"]), "Not measured:\n\n" + "\n".join(missing)]
    return "\n\n".join(parts)


def _kept_table(peers: Mapping[str, Any]) -> str:
    head = "| | sessions | recall | linked | user text | lines | constraints | cost | illegal prompts | too large |"
    rows = [_kept_row(name, peer) for name, peer in peers.items()]
    return "\n".join([head, "|---" * 10 + "|", *rows])


def _kept_row(name: str, peer: Mapping[str, Any]) -> str:
    figures = peer["kept"]
    shares = [_share(figures[column]) for column in ("recall", "linked", "user_text", "lines")]
    cells = [
        f"**{name}**" if name == "compact" else f"`{name}`",
        str(figures["sessions"]),
        *shares,
        f"{figures['constraints_kept']} of {figures['constraints']}",
        _cost(figures["cost"]),
        f"{figures['illegal']:,} of {figures['calls']:,}",
        f"{figures['too_large']:,}",
    ]
    return f"| {' | '.join(cells)} |"


def _share(value: list[float] | None) -> str:
    return "–" if value is None else f"{100 * value[0]:.0f} ({100 * value[1]:.0f}–{100 * value[2]:.0f})"


def _cost(value: list[float] | None) -> str:
    return "–" if value is None else f"{value[0]:.2f} ({value[1]:.2f}–{value[2]:.2f})"


def _speed_table(peers: Mapping[str, Any]) -> str:
    turns = list(next(iter(peers.values()))["speed"])
    head = [f"{int(number):,} turns" for number in turns]
    lines = [f"| | version | {' | '.join(head)} | memory | import |", "|---" * (len(turns) + 4) + "|"]
    for name, peer in peers.items():
        speeds = [_speed(peer["speed"][number]) for number in turns]
        longest = peer["speed"][turns[-1]]
        memory = f"{longest['memory_mb']:,.0f} MB" if longest else "–"
        label = f"**{name}**" if name == "compact" else f"`{name}`"
        lines.append(f"| {label} | {peer['version']} | {' | '.join(speeds)} | {memory} | {peer['import_s']:.2f} s |")
    return "\n".join(lines)


def _speed(speed: Mapping[str, float] | None) -> str:
    return "over 30 s" if speed is None else f"{_time(speed['first_s'])}, {_time(speed['next_s'])}"


def _time(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds >= 1 else f"{1000 * seconds:.3g} ms"


def with_tables(page: str, results: Mapping[str, Any]) -> str:
    """The page with the tables of these results."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    if not rest or END not in rest:
        raise ValueError(f"the page has no marks: {BEGIN} … {END}")
    return f"{before}{BEGIN}\n\n{tables(results)}\n\n{END}{after}"


def write_document() -> None:
    """Write the tables of results.json into the page."""
    results = json.loads(RESULTS.read_text(encoding="utf-8"))
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8"), results), encoding="utf-8")
