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
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from compact import CompactConfig, CompactManager
from compact.core.log.entries import read_entry
from compact.core.log.groups import group_messages
from compact.core.log.messages import Message
from compact.tokens import get_tokenizer

Wire = dict[str, Any]
Prompt = list[Wire]
# Given the history of a call, the prompt that is sent.
Way = Callable[[Prompt], Prompt]

READS = (0.1, 0.025)
WRITE = 1.25
KEPT_RESULTS = 3
STUB = "[result cleared]"
NOT_SESSIONS = ("natural_compactions", "sealed")


class Scale:
    """Counts tokens of messages, each once."""

    def __init__(self) -> None:
        self._count = get_tokenizer("gpt-4o").count_message
        self._read = read_entry
        self._known: dict[str, int] = {}
        self._own: dict[int, int] = {}

    def weigh(self, history: Prompt) -> int:
        """Count a session that is kept: its messages are known by who they are from now on."""
        self._own = {}
        self._own = {id(message): self(message) for message in history}
        return sum(map(self, history))

    def __call__(self, message: Wire) -> int:
        if id(message) in self._own:
            return self._own[id(message)]
        look = json.dumps(message, sort_keys=True, default=repr)
        if look not in self._known:
            self._known[look] = self._count(self._read(message, "message"))
        return self._known[look]

    def read(self, history: Prompt) -> list[Message]:
        """The history as the grouping wants it."""
        return [self._read(message, "message") for message in history]


def recordings(folder: Path) -> Iterator[tuple[str, Prompt]]:
    """All sessions in a folder, with their names."""
    for file in sorted(folder.glob("*.jsonl.gz")):
        if file.name.startswith(NOT_SESSIONS):
            continue
        with gzip.open(file, "rt", encoding="utf-8") as lines:
            for line in lines:
                session = json.loads(line)
                yield f"{file.name.partition('.')[0]}/{session['id']}", session["messages"]


def calls(history: Prompt) -> list[int]:
    """How much history each call had: all that stood before a reply."""
    roles = ["", *(message["role"] for message in history)]
    return [end for end in range(1, len(history)) if roles[end + 1] == "assistant" != roles[end]]


# -- the ways --------------------------------------------------------------------------------------------------------


def everything(scale: Scale, trigger: int) -> Way:
    """No compaction."""
    return lambda history: history


def sliding_window(scale: Scale, trigger: int) -> Way:
    """At every call the newest messages that fit, and the system prompt."""

    def prompt(history: Prompt) -> Prompt:
        if sum(map(scale, history)) < trigger:
            return history
        kept = {place for place, message in enumerate(history) if message["role"] in ("system", "developer")}
        room = trigger - sum(scale(history[place]) for place in kept)
        for group in reversed(group_messages(scale.read(history))):
            room -= sum(scale(history[place]) for place in group.indices if place not in kept)
            if room < 0:
                break
            kept.update(group.indices)
        return [message for place, message in enumerate(history) if place in kept]

    return prompt


def rolling_clear(scale: Scale, trigger: int) -> Way:
    """From the trigger on, at every call all tool results but the newest few are stubs."""

    def prompt(history: Prompt) -> Prompt:
        return history if sum(map(scale, history)) < trigger else _cleared(history, _results(history)[:-KEPT_RESULTS])

    return prompt


def batched_clear(scale: Scale, trigger: int) -> Way:
    """The same, but only when the prompt has reached the trigger again."""
    gone: set[int] = set()

    def prompt(history: Prompt) -> Prompt:
        if sum(map(scale, _cleared(history, gone))) >= trigger:
            gone.update(_results(history)[:-KEPT_RESULTS])
        return _cleared(history, gone)

    return prompt


def compact_default(scale: Scale, trigger: int) -> Way:
    """Compact as it comes, in a window whose trigger is there."""
    config = CompactConfig(
        model="gpt-4o",
        max_context_tokens=round(trigger / 0.85),
        state={"url": "memory:"},
        storage={"adapter": "none"},
        telemetry={"exporter": "none"},
    )
    manager = CompactManager(config)
    return lambda history: manager.preflight("session", history)


def _results(history: Prompt) -> list[int]:
    return [place for place, message in enumerate(history) if message["role"] == "tool"]


def _cleared(history: Prompt, places: Sequence[int] | set[int]) -> Prompt:
    gone = set(places)
    return [{**message, "content": STUB} if place in gone else message for place, message in enumerate(history)]


WAYS: dict[str, Callable[[Scale, int], Way]] = {
    "no compaction": everything,
    "window sliding at every call": sliding_window,
    "rolling clear": rolling_clear,
    "batched clear": batched_clear,
    "Compact, default": compact_default,
}


# -- replaying -------------------------------------------------------------------------------------------------------


def replay(history: Prompt, way: Way, scale: Scale) -> tuple[int, int, int]:
    """The tokens that were read and written over all calls, and the largest prompt."""
    read = written = largest = 0
    before: Prompt = []
    for end in calls(history):
        prompt = way(history[:end])
        same = next((n for n, pair in enumerate(zip(before, prompt, strict=False)) if pair[0] != pair[1]), None)
        same = min(len(before), len(prompt)) if same is None else same
        tokens = list(map(scale, prompt))
        read += sum(tokens[:same])
        written += sum(tokens[same:])
        largest = max(largest, sum(tokens))
        before = prompt
    return read, written, largest


def measure(sessions: list[tuple[str, Prompt]], trigger: int) -> dict[str, list[tuple[int, int, int]]]:
    """Every session in every way."""
    bar = Progress(
        TextColumn("{task.description:<30}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    figures: dict[str, list[tuple[int, int, int]]] = {name: [] for name in WAYS}
    scale = Scale()
    with bar:
        work = bar.add_task("replaying sessions", total=len(sessions) * len(WAYS))
        for _, history in sessions:
            scale.weigh(history)
            for name, build in WAYS.items():
                bar.update(work, description=name)
                figures[name].append(replay(history, build(scale, trigger), scale))
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
    scale = Scale()
    sessions = [
        (name, history)
        for name, history in recordings(folder)
        if (ends := calls(history)) and sum(map(scale, history[: ends[-1]])) >= options.trigger
    ]
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
