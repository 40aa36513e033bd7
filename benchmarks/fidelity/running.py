"""Runs systems over transcripts, on several processes, and collects scores, failures and what was missed."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

from compact import InsufficientBudget
from compact.measuring.needs import Need, SessionNeeds
from compact.measuring.recordings import Recording, Wire, text_of
from compact.measuring.scores import Scores, missed, score
from fidelity.baselines import BASELINES, Job
from fidelity.cache import cached_facts
from fidelity.product import Failure, check_output, check_repeatable, compact_once
from fidelity.transcripts import load_transcripts

PRODUCT = "compact"
# One in so many outputs is made again, to see that it comes out the same.
REPEAT_EVERY = 10
SMALLEST_PROMPT_TOKENS = 100

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a task."""

    task: Task
    id: str
    source: str
    scores: Scores
    failures: tuple[Failure, ...]
    missed: tuple[Need, ...]


@dataclass(frozen=True, slots=True)
class Task:
    """One system on one transcript at one budget."""

    folder: Path
    system: str
    place: int
    budget_pct: float
    chars_per_token: float | None = None

    def __call__(self) -> Outcome:
        transcripts, all_facts = load(self.folder)
        facts = all_facts[self.place]
        prefix = transcripts[self.place].messages[: facts.cut]
        room = room_of(prefix, facts.prefix_tokens, self.budget_pct / 100, chars_per_token=self.chars_per_token)
        kept, failures = keep(self.system, prefix, room, facts, repeat=self.place % REPEAT_EVERY == 0)
        return Outcome(self, facts.id, facts.source, score(facts, kept), tuple(failures), tuple(missed(facts, kept)))


@lru_cache(maxsize=1)
def load(folder: Path) -> tuple[list[Recording], list[SessionNeeds]]:
    """Transcripts and their facts, once per process."""
    return load_transcripts(folder), cached_facts(folder)[0]


def longest_first(tasks: Iterable[Task]) -> list[Task]:
    """An order in which no process is left alone with a long one at the end."""
    return sorted(tasks, key=lambda task: -load(task.folder)[1][task.place].prefix_tokens)


def map_tasks(tasks: Sequence[Callable[[], R]], jobs: int, done: Callable[[], None]) -> list[R]:
    """What every task comes to, in their order."""
    results: list[R] = []
    for result in _perform_all(tasks, jobs):
        results.append(result)
        done()
    return results


def _perform_all(tasks: Sequence[Callable[[], R]], jobs: int) -> Iterator[R]:
    if jobs <= 1:
        yield from map(_perform, tasks)
        return
    # Forked where that is possible: the transcripts are in memory already.
    methods = multiprocessing.get_all_start_methods()
    context = multiprocessing.get_context("fork" if "fork" in methods else None)
    with context.Pool(jobs) as pool:
        yield from pool.imap(_perform, tasks)


def _perform(task: Callable[[], R]) -> R:
    return task()


@dataclass(frozen=True, slots=True)
class Room:
    """How much may be kept: the product is told in tokens, baselines cut characters."""

    tokens: int
    chars: int


def room_of(messages: Sequence[Wire], tokens: int, share: float, *, chars_per_token: float | None = None) -> Room:
    """A share of some messages; with a rate, tokens are taken to be that many characters."""
    chars = len(text_of(messages))
    return Room(int(share * (chars / chars_per_token if chars_per_token else tokens)), int(share * chars))


def keep(
    system: str, messages: Sequence[Wire], room: Room, facts: SessionNeeds, *, repeat: bool = False
) -> tuple[str, list[Failure]]:
    """The text that a system keeps of some messages, and the gates it failed on the way."""
    if system != PRODUCT:
        return BASELINES[system](Job(messages, room.chars, facts)), []
    try:
        output = compact_once(messages, room.tokens)
        failures = check_output(facts.id, messages, output, room.tokens)
        if repeat:
            failures += check_repeatable(facts.id, messages, output, room.tokens)
    except InsufficientBudget as error:
        # A few dozen tokens do not hold a question and a frame: saying so is the right answer.
        too_small = room.tokens < SMALLEST_PROMPT_TOKENS
        return "", [] if too_small else [Failure("survives", facts.id, str(error).partition("\n")[0])]
    except Exception as error:  # noqa: BLE001 - a compactor under test may raise anything
        return "", [Failure("survives", facts.id, f"{type(error).__name__}: {error}".partition("\n")[0])]
    return text_of(output), failures
