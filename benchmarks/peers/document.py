"""The results as tables of Markdown, in docs/why.md between two marks."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from peers.speed import LIMIT_SECONDS, TICK_SECONDS

ROOT = Path(__file__).resolve().parents[2]
RESULTS = Path(__file__).with_name("results.json")
PAGE = ROOT / "docs" / "why.md"
OURS = "compact"
_TIMES = (
    "CPU time of the first call, which compacts a history of so many turns, and of the next call; reading the messages "
    "into the framework's own is part of it, a summary that stands in for a model's is not. Memory is the peak beyond "
    "the history itself, with what such a summary takes."
)
SHARES = ("recall", "linked", "user_text", "lines")
BEGIN, END = "<!-- peers: begin, written by `python benchmarks/peers --document` -->", "<!-- peers: end -->"


def tables(results: Mapping[str, Any]) -> str:
    """Both tables, where others are ahead of us, and what was not measured."""
    peers = results["peers"]
    speed = {name: peer for name, peer in peers.items() if "speed" in peer}
    parts = [_kept_table(peers), _ahead(peers), *([_speed_table(speed), _faster(speed)] if speed else [])]
    missing = [f"- **{name}**: {why}." for name, why in results["not_measured"].items()]
    return "\n\n".join([*parts, *(["Not measured:\n\n" + "\n".join(missing)] if missing else [])])


def _kept_table(peers: Mapping[str, Any]) -> str:
    head = "| | recall | linked | user text | lines | constraints | size | cost | illegal prompts | too large |"
    most = max(peer["kept"]["sessions"] for peer in peers.values())
    rows = [_kept_row(name, peer["kept"], most) for name, peer in peers.items()]
    return "\n".join([head, "|---" * 10 + "|", *rows])


def _kept_row(name: str, figures: Mapping[str, Any], most: int) -> str:
    sessions = "" if figures["sessions"] == most else f" ({figures['sessions']} of {most} sessions)"
    cells = [
        _label(name) + sessions,
        *(_share(figures[column]) for column in SHARES),
        f"{figures['constraints_kept']} of {figures['constraints']}",
        _share(figures["size"]),
        _cost(figures["cost"]),
        *(f"{figures[column]:,} of {figures['calls']:,}" for column in ("illegal", "too_large")),
    ]
    return f"| {' | '.join(cells)} |"


def _label(name: str) -> str:
    return f"**{name}**" if name == OURS else f"`{name}`"


def _ahead(peers: Mapping[str, Any]) -> str:
    """The methods whose mean is better than ours, column by column, and how many of their prompts do not fit."""
    columns = [*((name, _point, False) for name in SHARES), ("cost", lambda mean: f"{mean:.2f}", True)]
    lines = [_ahead_in(column, tell, is_cost, peers) for column, tell, is_cost in columns]
    return "Better than Compact, by the mean:\n\n" + "\n".join(lines)


def _ahead_in(column: str, tell: Callable[[float], str], less_is_better: bool, peers: Mapping[str, Any]) -> str:
    sign = -1 if less_is_better else 1
    means = {name: peer["kept"][column][0] for name, peer in peers.items() if peer["kept"][column]}
    own = means.get(OURS, 0.0)
    better = sorted((name for name in means if sign * means[name] > sign * own), key=lambda name: -sign * means[name])
    named = [f"`{name}` {tell(means[name])}{_refused(peers[name]['kept'])}" for name in better]
    return f"- **{column.replace('_', ' ')}** ({tell(own)}): {', '.join(named) or 'none'}"


def _refused(figures: Mapping[str, Any]) -> str:
    """How many of its prompts a provider would refuse."""
    refused = (figures["illegal"] + figures["too_large"]) / max(1, figures["calls"])
    return f" ({100 * refused:.2g} % refused)" if refused else ""


def _point(mean: float) -> str:
    return f"{100 * mean:.0f}"


def _share(value: list[float] | None) -> str:
    return "–" if value is None else f"{100 * value[0]:.0f} ({100 * value[1]:.0f}–{100 * value[2]:.0f})"


def _cost(value: list[float] | None) -> str:
    return "–" if value is None else f"{value[0]:.2f} ({value[1]:.2f}–{value[2]:.2f})"


def _speed_table(peers: Mapping[str, Any]) -> str:
    turns = list(next(iter(peers.values()))["speed"])
    head = [f"{int(number):,} turns" for number in turns]
    lines = [_TIMES, "", f"| | version | {' | '.join(head)} | memory | import |", "|---" * (len(turns) + 4) + "|"]
    for name, peer in peers.items():
        speeds = [_speed(peer["speed"][number]) for number in turns]
        measured = [number for number in turns if peer["speed"][number]]
        memory = f"{peer['speed'][measured[-1]]['memory_mb']:,.0f} MB" if measured else "–"
        if measured and measured[-1] != turns[-1]:
            memory += f" ({int(measured[-1]):,} turns)"
        version = f"{peer['package']} {peer['version']}"
        lines.append(f"| {_label(name)} | {version} | {' | '.join(speeds)} | {memory} | {peer['import_s']:.2f} s |")
    return "\n".join(lines)


def _faster(peers: Mapping[str, Any]) -> str:
    """How many methods take less time than ours, for each length; one that took too long counts as endless."""

    def seconds(name: str, turns: str, call: str) -> float:
        return (peers[name]["speed"][turns] or {}).get(call, math.inf)

    told: list[str] = []
    others = [name for name in peers if name != OURS]
    for turns in peers[OURS]["speed"] if OURS in peers else ():
        first, following = (
            sum(seconds(name, turns, call) < seconds(OURS, turns, call) for name in others)
            for call in ("first_s", "next_s")
        )
        told.append(f"- **{int(turns):,} turns**: {first} at the first call, {following} at the next")
    return f"Faster than Compact, of {len(others)} methods:\n\n" + "\n".join(told)


def _speed(speed: Mapping[str, float] | None) -> str:
    return f"over {LIMIT_SECONDS:.0f} s" if speed is None else f"{_time(speed['first_s'])}, {_time(speed['next_s'])}"


def _time(seconds: float) -> str:
    if seconds < TICK_SECONDS:
        return f"< {1000 * TICK_SECONDS:.0f} ms"
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
