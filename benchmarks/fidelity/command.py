"""The command line: what to run, where the figures go, and what counts as failing."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from compact.measuring.needs import SessionNeeds
from fidelity import tables
from fidelity.baselines import BASELINES
from fidelity.cache import cached_facts
from fidelity.chained import chains_of
from fidelity.floors import NATURAL_FLOORS, RECALL_FLOORS, SAMPLE_FLOORS, shortfalls
from fidelity.means import mean_scores
from fidelity.natural import MODEL_SUMMARY, SYSTEMS, NaturalTask, load_compactions, natural_means
from fidelity.product import Failure
from fidelity.running import PRODUCT, Outcome, Task, load, longest_first, map_tasks
from fidelity.sample.rows import sample_folder
from fidelity.transcripts import data_folder

BUDGETS = (25.0, 12.5, 6.25)
DEFAULT_SYSTEMS = (PRODUCT, "recency", "clear-keep-3", "mask", "head-tail", "coverage", "prototype")
SAMPLE_SYSTEMS = (PRODUCT, "recency", "clear-keep-3", "mask")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what was asked for; 0 if every gate held."""
    options = parse(arguments)
    folder = sample_folder() if options.sample else data_folder()
    if not any(folder.glob("*.jsonl.gz")):
        hint = "set COMPACT_DATA to the folder that holds *.jsonl.gz, or measure with --sample"
        print(f"no transcripts in {folder}\nhint: {hint}", file=sys.stderr)
        return 2
    _prepare(folder)
    parts = {"recall": measure_recall, "natural": measure_natural, "chained": measure_chained}
    figures, failures, short = parts[options.part](folder, options)
    tables.print_failures(failures)
    if options.json:
        data = {options.part: figures, "gates": dict(Counter(failure.gate for failure in failures))}
        options.json.write_text(json.dumps(data, indent=1), encoding="utf-8")
    if options.check:
        print("\n".join(f"below the floor: {line}" for line in short) or "all floors reached")
    return 1 if failures or (options.check and short) else 0


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(prog="fidelity", description="what survives a compaction")
    parser.add_argument("part", nargs="?", choices=("recall", "natural", "chained"), default="recall")
    parser.add_argument(
        "--sample", action="store_true", help="measure on conversations that the project makes itself; needs no data"
    )
    parser.add_argument("--budget", type=float, action="append", help="percent of the prefix; may be repeated")
    parser.add_argument("--only", metavar="SOURCE", help="transcripts whose id starts with this")
    parser.add_argument("--limit", type=int, metavar="N", help="at most N transcripts of each source, or N chains")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="processes (default: 2)")
    parser.add_argument("--systems", help=f"comma-separated, of: {', '.join((PRODUCT, *BASELINES))}")
    parser.add_argument(
        "--chars-per-token", type=float, metavar="N", help="measure the budget by a rule of thumb, not by the tokenizer"
    )
    parser.add_argument("--worst", type=int, default=0, metavar="N", help="list the N transcripts kept worst")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    parser.add_argument("--check", action="store_true", help="exit with 1 if a floor is not reached")
    options = parser.parse_args(arguments)
    options.systems = options.systems.split(",") if options.systems else None
    if options.sample and options.part == "natural":
        parser.error("the sample has no summaries that a model wrote: leave out natural or --sample")
    unknown = set(options.systems or ()) - {PRODUCT, MODEL_SUMMARY, *BASELINES}
    if unknown:
        parser.error(f"unknown systems: {', '.join(sorted(unknown))}")
    return options


R = TypeVar("R")
Measured = tuple[Mapping[Any, Any], list[Failure], list[str]]


def measure_recall(folder: Path, options: argparse.Namespace) -> Measured:
    """Score systems at several budgets on every transcript."""
    facts = load(folder)[1]
    floors = SAMPLE_FLOORS if options.sample else RECALL_FLOORS
    budgets = options.budget or list(SAMPLE_FLOORS if options.sample else BUDGETS)
    systems = options.systems or list(SAMPLE_SYSTEMS if options.sample else DEFAULT_SYSTEMS)
    places = _chosen(facts, options)
    tasks = longest_first(
        Task(folder, system, place, budget, options.chars_per_token)
        for system in systems
        for budget in budgets
        for place in places
    )
    outcomes = _run("measuring", tasks, options.jobs)
    figures = {budget: {system: _means(outcomes, system, budget) for system in systems} for budget in budgets}
    tables.print_scores(figures)
    if options.worst:
        first = [o for o in outcomes if o.task.system == systems[0] and o.task.budget_pct == budgets[0]]
        tables.print_worst(first, options.worst)
    failures = [failure for outcome in outcomes for failure in outcome.failures]
    short = [
        f"at {budget:g} %: {line}"
        for budget, wanted in floors.items()
        if (measured := figures.get(budget, {}).get(PRODUCT))
        for line in shortfalls(measured["mean"], wanted)
    ]
    return figures, failures, short


def measure_natural(folder: Path, options: argparse.Namespace) -> Measured:
    """Score systems against real summaries, at their size."""
    facts = [compaction.facts for compaction in load_compactions(folder)]
    places = _chosen(facts, options)
    tasks = [NaturalTask(folder, system, place) for place in places for system in options.systems or SYSTEMS]
    outcomes = _run("measuring", tasks, options.jobs)
    figures = natural_means(outcomes)
    tables.print_natural(figures, [outcome for outcome in outcomes if options.worst])
    failures = [failure for outcome in outcomes for failure in outcome.failures]
    return figures, failures, shortfalls(figures[PRODUCT], NATURAL_FLOORS) if PRODUCT in figures else []


def measure_chained(folder: Path, options: argparse.Namespace) -> Measured:
    """Compact the longest transcripts eight times over in one session."""
    chains = _run("eight rounds each", chains_of(folder)[: options.limit], options.jobs)
    figures = tables.print_chained(chains)
    return figures, [failure for rounds in chains for one in rounds for failure in one.failures], []


def _means(outcomes: Sequence[Outcome], system: str, budget: float) -> dict[str, dict[str, float | None]]:
    wanted = [o for o in outcomes if (o.task.system, o.task.budget_pct) == (system, budget)]
    return mean_scores([(outcome.source, outcome.scores) for outcome in wanted])


def _run(title: str, tasks: Sequence[Callable[[], R]], jobs: int) -> list[R]:
    with progress() as bar:
        line = bar.add_task(title, total=len(tasks))
        return map_tasks(tasks, jobs, lambda: bar.advance(line))


def _chosen(facts: Sequence[SessionNeeds], options: argparse.Namespace) -> list[int]:
    """The places that `--only` and `--limit` leave."""
    seen: Counter[str] = Counter()
    places: list[int] = []
    for place, one in enumerate(facts):
        if options.only and not one.id.startswith(options.only):
            continue
        seen[one.source] += 1
        if options.limit is None or seen[one.source] <= options.limit:
            places.append(place)
    if not places:
        raise SystemExit(f"no transcript's id starts with {options.only!r}")
    return places


def _prepare(folder: Path) -> None:
    """Find the facts if they are not on disk yet: it takes a minute or two, once."""
    with progress() as bar:
        line = bar.add_task("finding what each future needs", total=None)
        cached_facts(folder, lambda share: bar.update(line, total=100, completed=100 * share))


def progress() -> Progress:
    """A bar on a terminal, nothing in a pipe."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
