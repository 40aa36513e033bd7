"""Outcomes of many tasks as tables and data."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from tasks.intervals import difference, wilson
from tasks.loop import Outcome
from tasks.policies import REFERENCE, REMINDED, WITH_RECALL, WITHOUT_RECALL

Outcomes = Mapping[str, Sequence[Outcome]]

# In percent of the tasks; a little below what was measured, but for the goal of 99 % with recall.
FLOORS: Mapping[str, float] = {REFERENCE: 100, WITH_RECALL: 99, WITHOUT_RECALL: 50, REMINDED: 99}
MAX_DIFFERENCE = 3
MIN_COMPACTIONS = 3


def as_data(outcomes: Outcomes, window_tokens: int) -> dict[str, Any]:
    """Return what was measured but for times: the same in every run."""
    return {
        "tasks": len(outcomes[REFERENCE]),
        "checks": sum(len(outcome.checks) for outcome in outcomes[REFERENCE]),
        "window_tokens": window_tokens,
        "policies": {name: _policy(found, outcomes[REFERENCE]) for name, found in outcomes.items()},
    }


def _policy(found: Sequence[Outcome], reference: Sequence[Outcome]) -> dict[str, Any]:
    hits, total = _successes(found), len(found)
    low, high = wilson(hits, total)
    change, least, most = difference(hits, _successes(reference), total)
    return {
        "success": _pct(hits / total),
        "success_interval": [_pct(low), _pct(high)],
        "difference": _pct(change),
        "difference_interval": [_pct(least), _pct(most)],
        "domains": {name: _pct(_share(found, name)) for name in dict.fromkeys(one.domain for one in found)},
        "checks_right": {kind: f"{right} of {all_}" for kind, (right, all_) in sorted(by_kind(found).items())},
        "wrong_value": sum(check.used is not None and not check.is_right for one in found for check in one.checks),
        "recalls": sum(check.recalls for one in found for check in one.checks),
        "found_by_recall": dict(
            sorted(Counter(c.recalls for one in found for c in one.checks if c.recalls and c.is_right).items())
        ),
        "compactions": {
            "least": min(one.compactions for one in found),
            "mean": round(statistics.mean(one.compactions for one in found), 1),
        },
        "prompt_tokens": round(statistics.mean(one.prompt_tokens for one in found)),
        "largest_prompt": max(one.largest_prompt for one in found),
        "failed": [one.task for one in found if not one.is_success],
    }


def by_kind(found: Sequence[Outcome]) -> dict[str, tuple[int, int]]:
    """Return of each kind of check how many came out right, of how many."""
    counted: dict[str, tuple[int, int]] = {}
    for check in (check for one in found for check in one.checks):
        right, total = counted.get(check.kind, (0, 0))
        counted[check.kind] = right + check.is_right, total + 1
    return counted


def tables(data: Mapping[str, Any], outcomes: Outcomes) -> str:
    """Return the tables that are printed, in Markdown."""
    rows = data["policies"]
    domains, kinds = list(rows[REFERENCE]["domains"]), list(rows[REFERENCE]["checks_right"])
    success = [
        (
            name,
            row["success"],
            _range(row["success_interval"]),
            f"{row['difference']:+.1f}",
            _range(row["difference_interval"], "+"),
            *(row["domains"][domain] for domain in domains),
        )
        for name, row in rows.items()
    ]
    checks = [(name, *(row["checks_right"][kind] for kind in kinds)) for name, row in rows.items()]
    effort = [(name, *_effort(row, data["tasks"]), _milliseconds(outcomes[name])) for name, row in rows.items()]
    return "\n\n".join(
        (
            _table(("", "success", "95 %", "difference", "95 %", *domains), success),
            _table(("checks that came out right", *kinds), checks),
            _table(("for a task", *_EFFORT, "ms for a call"), effort),
        )
    )


_EFFORT = ("compactions, least", "mean", "tokens sent", "largest prompt", "recalls", "wrong values")


def _effort(row: Mapping[str, Any], tasks: int) -> tuple[str, ...]:
    compactions = row["compactions"]
    return (
        str(compactions["least"]),
        str(compactions["mean"]),
        f"{row['prompt_tokens']:,}",
        f"{row['largest_prompt']:,}",
        f"{row['recalls'] / tasks:.2f}",
        f"{row['wrong_value'] / tasks:.2f}",
    )


def _milliseconds(found: Sequence[Outcome]) -> str:
    return f"{1000 * sum(one.seconds for one in found) / sum(one.calls for one in found):.1f}"


def missed(data: Mapping[str, Any]) -> list[str]:
    """Return which floors were not reached, in words."""
    rows = data["policies"]
    found = [
        f"{name}: {rows[name]['success']:.1f} % of the tasks succeed, floor {floor:g}"
        for name, floor in FLOORS.items()
        if name in rows and rows[name]["success"] < floor
    ]
    if WITH_RECALL in rows:
        row = rows[WITH_RECALL]
        if row["difference"] < -MAX_DIFFERENCE:
            found.append(
                f"{WITH_RECALL}: {row['difference']:+.1f} points to the uncompacted run, "
                f"at most {MAX_DIFFERENCE} are allowed"
            )
        if row["compactions"]["least"] < MIN_COMPACTIONS:
            found.append(f"a task had only {row['compactions']['least']} compactions, {MIN_COMPACTIONS} are wanted")
    return found


def _successes(found: Sequence[Outcome]) -> int:
    return sum(one.is_success for one in found)


def _share(found: Sequence[Outcome], domain: str) -> float:
    return statistics.mean(one.is_success for one in found if one.domain == domain)


def _pct(share: float) -> float:
    return round(100 * float(share), 1)


def _range(interval: Sequence[float], sign: str = "") -> str:
    return f"{interval[0]:{sign}.1f} to {interval[1]:{sign}.1f}"


def _table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)
