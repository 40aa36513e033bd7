"""The command: which tasks under which policies, and what is printed."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.progress import track

from tasks import model_run
from tasks.domains import analysis, coding, operations, support, travel
from tasks.loop import Outcome, Run, run_task
from tasks.policies import REFERENCE, WINDOW_TOKENS, WITH_RECALL, policies
from tasks.prompts import message_text
from tasks.results import Outcomes, as_data, missed, tables
from tasks.steps import Task
from tasks.writer import FILLERS, Domain, write_task

DOMAINS: dict[str, Domain] = {one.NAME: one for one in (coding, support, analysis, operations, travel)}
# Chosen: 200 tasks; the interval of 99 % is then three points wide.
TASKS_PER_DOMAIN = 40


def task_of(name: str, fillers: int = FILLERS) -> Task:
    """Return a task by its name, such as `travel-7`."""
    domain, _, seed = name.rpartition("-")
    return write_task(DOMAINS[domain], int(seed), fillers)


def measure(
    names: Sequence[str],
    chosen: Sequence[str],
    *,
    window_tokens: int = WINDOW_TOKENS,
    fillers: int = FILLERS,
    jobs: int = 1,
) -> Outcomes:
    """Run tasks under policies."""
    runs = [(policy, name) for policy in chosen for name in names]
    one = partial(_run, window_tokens=window_tokens, fillers=fillers)
    console = Console(stderr=True)
    if jobs == 1:
        done = [one(run) for run in track(runs, "tasks", console=console, transient=True)]
    else:
        with ProcessPoolExecutor(jobs) as pool:
            done = list(track(pool.map(one, runs), "tasks", len(runs), console=console, transient=True))
    return {policy: [found for (of, _), found in zip(runs, done, strict=True) if of == policy] for policy in chosen}


def _run(run: tuple[str, str], *, window_tokens: int, fillers: int) -> Outcome:
    policy, name = run
    return run_task(task_of(name, fillers), policies()[policy](window_tokens))


def show(name: str, policy: str, window_tokens: int) -> str:
    """Return a task step by step, its checks with what the agent was shown."""
    run = Run(task_of(name), policies()[policy](window_tokens))
    outcome = run.finish()
    lines = [f"{message['role']}: {message_text(message)}" for message in run.history]
    lines += [
        f"{'right' if check.is_right else 'WRONG'}  {check.kind}: wanted {check.wanted}, used {check.used}, "
        f"{check.recalls} recalls"
        for check in outcome.checks
    ]
    return "\n".join([*lines, f"{outcome.compactions} compactions, largest prompt {outcome.largest_prompt:,} tokens"])


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments[:1] == ["model"]:
        return model_run.main(arguments[1:], list(DOMAINS.values()))
    parser = argparse.ArgumentParser(
        prog="tasks", description="Whether an agent reaches the end of its task when its prompts are compacted."
    )
    parser.add_argument("--tasks", type=int, default=TASKS_PER_DOMAIN, help="how many of each domain")
    parser.add_argument("--window", type=int, default=WINDOW_TOKENS, help="tokens of the window")
    parser.add_argument(
        "--policies", default="", help="only those whose name holds one of these words, separated by commas"
    )
    parser.add_argument("--jobs", type=int, default=1, help="how many processes")
    parser.add_argument("--json", type=Path, help="write the figures into a file")
    parser.add_argument("--check", action="store_true", help="fail if a floor is missed")
    parser.add_argument("--show", metavar="TASK", help="print one task step by step instead, such as travel-7")
    options = parser.parse_args(arguments)
    words = [word for word in options.policies.split(",") if word]
    chosen = [name for name in policies() if not words or name == REFERENCE or any(word in name for word in words)]
    if options.show:
        print(show(options.show, chosen[-1] if words else WITH_RECALL, options.window))
        return 0
    names = [f"{domain}-{seed}" for domain in DOMAINS for seed in range(options.tasks)]
    outcomes = measure(names, chosen, window_tokens=options.window, jobs=options.jobs)
    data = as_data(outcomes, options.window)
    print(f"{data['tasks']} tasks with {data['checks']} checks, window {data['window_tokens']:,} tokens; shares in %\n")
    print(tables(data, outcomes))
    if options.json:
        options.json.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    short = missed(data)
    print("\n" + ("\n".join(f"below the floor: {line}" for line in short) or "all floors reached"))
    return 1 if options.check and short else 0
