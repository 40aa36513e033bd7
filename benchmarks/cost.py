"""What whole sessions cost at a provider with a prompt cache, compacted one way or the other.

    python benchmarks/cost.py [--trigger 30000] [--json]

Every call of a recorded session is made again. What stands at the beginning of the prompt since the call before is read
from the cache (0.1x or 0.025x of an input token), the rest is written (1.25x). The figure is the input cost relative to
sending everything, as a mean over sessions and for all of them together: below 1 is cheaper. Sessions that never reach
the trigger are left out, because no way of compacting touches them.

The recordings are read from the folder that COMPACT_DATA names, or from shared/data beside this project.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from compact import CompactConfig
from compact.measuring.histories import MessageSizes, SessionHistory
from compact.measuring.policies import PLAIN_POLICIES, Policy, PolicyLimits, compact_policy
from compact.measuring.replay import replay_session
from compact.tokens import get_tokenizer

READS = (0.1, 0.025)
WRITE = 1.25
NOT_SESSIONS = ("natural_compactions", "sealed")


def recordings(folder: Path) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """All sessions in a folder, with their names."""
    for file in sorted(folder.glob("*.jsonl.gz")):
        if file.name.startswith(NOT_SESSIONS):
            continue
        with gzip.open(file, "rt", encoding="utf-8") as lines:
            for line in lines:
                session = json.loads(line)
                yield f"{file.name.partition('.')[0]}/{session['id']}", session["messages"]


def ways(trigger: int) -> dict[str, Policy]:
    """The policies that are compared; Compact as it comes, in a window whose trigger is there."""
    config = CompactConfig(
        model="gpt-4o",
        max_context_tokens=round(trigger / 0.85),
        state={"url": "memory:"},
        storage={"adapter": "none"},
        telemetry={"exporter": "none"},
    )
    return {
        "no compaction": PLAIN_POLICIES["none"],
        "window sliding at every call": PLAIN_POLICIES["window"],
        "rolling clear": PLAIN_POLICIES["clear"],
        "batched clear": PLAIN_POLICIES["clear-batched"],
        "Compact, default": compact_policy("compact", config),
    }


def measure(sessions: list[SessionHistory], trigger: int) -> dict[str, list[tuple[int, int, int]]]:
    """Every session in every way: the tokens that were read and written over all calls, and the largest prompt."""
    bar = Progress(
        TextColumn("{task.description:<30}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    policies = ways(trigger)
    figures: dict[str, list[tuple[int, int, int]]] = {name: [] for name in policies}
    with bar:
        work = bar.add_task("replaying sessions", total=len(sessions) * len(policies))
        for session in sessions:
            for name, policy in policies.items():
                bar.update(work, description=name)
                calls = replay_session(session, policy, PolicyLimits(round(trigger / 0.85), trigger)).calls
                read, written = sum(call.read_tokens for call in calls), sum(call.written_tokens for call in calls)
                figures[name].append((read, written, max(call.tokens for call in calls)))
                bar.advance(work)
    return figures


def relative(figures: list[tuple[int, int, int]], base: list[tuple[int, int, int]], read: float) -> tuple[float, float]:
    """The cost relative to sending everything: the mean of all sessions, and of all together."""
    own = [read * figure[0] + WRITE * figure[1] for figure in figures]
    whole = [read * figure[0] + WRITE * figure[1] for figure in base]
    return statistics.mean(one / other for one, other in zip(own, whole, strict=True)), sum(own) / sum(whole)


def main() -> None:
    """Replay, and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--trigger", type=int, default=30_000, metavar="TOKENS", help="where compaction starts")
    parser.add_argument("--json", action="store_true", help="print data instead of a table")
    options = parser.parse_args()
    folder = Path(os.environ.get("COMPACT_DATA") or Path(__file__).parents[2] / "shared" / "data")
    if not any(folder.glob("*.jsonl.gz")):
        parser.error(f"no recordings in {folder}; COMPACT_DATA names another folder")
    sizes = MessageSizes(get_tokenizer("gpt-4o"))
    recorded = [SessionHistory(name, name, tuple(messages), sizes) for name, messages in recordings(folder)]
    sessions = [session for session in recorded if session.calls and session.largest_tokens >= options.trigger]
    figures = measure(sessions, options.trigger)
    rows = {
        name: {
            **{f"read_{read}x": relative(own, figures["no compaction"], read) for read in READS},
            "largest_prompt": max(figure[2] for figure in own),
        }
        for name, own in figures.items()
    }
    if options.json:
        print(json.dumps({"sessions": len(sessions), "trigger": options.trigger, "rows": rows}))
        return
    print(f"{len(sessions)} sessions that reach {options.trigger:,} tokens; input cost relative to no compaction,")
    print("mean of the sessions (all together)\n")
    print(f"{'':<30} {'read 0.1x':>13} {'read 0.025x':>13} {'largest prompt':>15}")
    for name, row in rows.items():
        costs = [f"{mean:.2f} ({together:.2f})" for mean, together in (row[f"read_{read}x"] for read in READS)]
        print(f"{name:<30} {costs[0]:>13} {costs[1]:>13} {row['largest_prompt']:>15,}")


if __name__ == "__main__":
    main()
