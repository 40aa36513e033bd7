"""Small tasks for a small real model: what it is shown is a few thousand tokens, what it answers a line.

    needle   a fact from the beginning of a conversation, asked for at its end
    rule     a person's rule from the beginning, to be kept in what the model writes at the end
    lookup   two facts: one says where to look, the other one what is there

The conversations are those of the scripted tasks, shorter.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tasks.steps import Say, Step, Work
from tasks.writer import Domain, Writer, table

# Chosen: some 2,500 tokens, twice what fits the window.
_FILLERS = 9
_BEFORE = 1


@dataclass(frozen=True, slots=True)
class ModelTask:
    """A conversation, what is asked at its end, and what the answer must hold."""

    name: str
    kind: str
    system: str
    steps: tuple[Step, ...]
    ask: str
    value: str
    shape: str

    def is_right(self, reply: str) -> bool:
        """Return True if the reply gives the value, and no other one that looks like it."""
        given = {match.group() for match in re.finditer(self.shape, reply)} | (
            {self.value} if self.value in reply else set()
        )
        return given == {self.value}


def model_tasks(domains: Sequence[Domain], count: int) -> list[ModelTask]:
    """Return as many tasks of each kind, in turn, so that the first ones of a run that is cut off are of every kind."""
    makers: Sequence[Callable[[Domain, int], ModelTask]] = (_needle, _rule, _lookup)
    return [make(domains[seed % len(domains)], seed) for seed in range(count) for make in makers]


def _needle(domain: Domain, seed: int) -> ModelTask:
    writer = Writer(f"needle-{domain.NAME}-{seed}")
    planted = writer.one(domain.FACTS)(writer)
    told = [*planted.told, *planted.changed]
    ask = f"One question: {planted.check.queries[0]}? Reply with the value only."
    return _task("needle", domain, seed, writer, told, ask, planted.check.fact.value, planted.check.fact.shape)


def _rule(domain: Domain, seed: int) -> ModelTask:
    writer = Writer(f"rule-{domain.NAME}-{seed}")
    check = (planted := writer.one(domain.RULES)(writer)).check
    names = ", ".join(check.arguments)
    reply = f"Reply with the arguments of {check.tool} as JSON: {names}."
    ask = f"{check.ask} Keep to every rule that I gave you. {reply}"
    return _task("rule", domain, seed, writer, planted.told, ask, check.fact.value, check.fact.shape)


def _lookup(domain: Domain, seed: int) -> ModelTask:
    writer = Writer(f"lookup-{domain.NAME}-{seed}")
    name, projects = (
        writer.person(),
        [
            f"{word}-{writer.number(11, 98)}"
            for word in writer.some(("Helix", "Orchid", "Granite", "Comet", "Willow"), 4)
        ],
    )
    codes = {project: f"X{writer.number(1000, 9999)}" for project in projects}
    mine = writer.one(projects)
    told = [
        Say(
            writer.one(
                (f"By the way, {name} works on project {mine}.", f"{name} has moved to project {mine}, for your notes.")
            ),
            "Noted.",
        ),
        Work("list_projects", {"with": "cost codes"}, table(("project", "cost code"), list(codes.items()))),
    ]
    ask = f"What is the cost code of the project that {name} works on? Reply with the code only."
    return _task("lookup", domain, seed, writer, told, ask, codes[mine], r"\bX\d{4}\b")


def _task(
    kind: str, domain: Domain, seed: int, writer: Writer, told: Sequence[Step], ask: str, value: str, shape: str
) -> ModelTask:
    routine = [writer.one(domain.FILLERS)(writer) for _ in range(_FILLERS)]
    opening = Say(writer.one(domain.OPENING), "Ready.")
    steps = (opening, *routine[:_BEFORE], *told, *routine[_BEFORE:])
    return ModelTask(f"{kind}-{seed}", kind, domain.SYSTEM, steps, ask, value, shape)
