"""Writes a task: chooses words, numbers and ids, and puts facts far away from the steps that need them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, Protocol, TypeVar

from tasks.steps import Planted, Say, Step, Task, Work

T = TypeVar("T")

# Chosen: routine steps of some 350 tokens each, so that a task is several windows long.
FILLERS = 78
# Where in the task facts come up, change and are needed, as shares of the routine work.
_TOLD, _CHANGED, _NEEDED = (0.02, 0.34), (0.38, 0.52), (0.72, 0.99)
_PLANTED, _RULES = 4, 1

_FIRST = [
    "Amara",
    "Boris",
    "Celia",
    "Dario",
    "Elin",
    "Farid",
    "Greta",
    "Hugo",
    "Ines",
    "Jonas",
    "Kemal",
    "Lena",
    "Mateo",
    "Nadia",
    "Oskar",
    "Priya",
    "Quinn",
    "Rosa",
    "Sven",
    "Tilda",
]
_LAST = [
    "Albrecht",
    "Bakker",
    "Castell",
    "Dreyer",
    "Eklund",
    "Fontane",
    "Grimaldi",
    "Hartog",
    "Ibsen",
    "Jansen",
    "Keller",
    "Lindqvist",
    "Moreau",
    "Nowak",
    "Okafor",
    "Petrov",
    "Quist",
    "Romero",
    "Sandoval",
    "Tanaka",
]
_LETTERS, _HEX = "ABCDEFGHJKLMNPRSTUVWXYZ", "0123456789abcdef"


class Domain(Protocol):
    """What a domain brings: its system prompt, what the agent does all day, and the facts that it may need."""

    NAME: str
    SYSTEM: str
    OPENING: Sequence[str]
    ASIDES: Sequence[str]
    FILLERS: Sequence[Callable[[Writer], Work]]
    FACTS: Sequence[Callable[[Writer], Planted]]
    RULES: Sequence[Callable[[Writer], Planted]]


class Writer:
    """Chance with a seed, and what is often needed of it; no code or number comes twice."""

    def __init__(self, seed: str) -> None:
        self.random = Random(seed)
        self._used: set[str] = set()

    def one(self, choices: Sequence[T]) -> T:
        """Return any of them."""
        return self.random.choice(choices)

    def some(self, choices: Sequence[T], count: int) -> list[T]:
        """Return several different ones."""
        return self.random.sample(list(choices), count)

    def number(self, low: int, high: int) -> int:
        """Return a number that was not there before."""
        return int(self._new(lambda: str(self.random.randint(low, high))))

    def any(self, low: int, high: int) -> int:
        """Return a number that may have been there before."""
        return self.random.randint(low, high)

    def code(self, letters: int, digits: int, between: str = "") -> str:
        """Return an id such as `KTR-4471`."""
        return self._new(lambda: self._letters(letters) + between + "".join(str(self.any(0, 9)) for _ in range(digits)))

    def hash(self, length: int = 7) -> str:
        """Return a short hash with a digit and a letter in it."""
        return self._new(
            lambda: f"{self.any(1, 9)}{self.one('abcdef')}" + "".join(self.one(_HEX) for _ in range(length - 2))
        )

    def person(self) -> str:
        """Return a first and a last name."""
        return self._new(lambda: f"{self.one(_FIRST)} {self.one(_LAST)}")

    def date(self) -> str:
        """Return a day."""
        return self._new(lambda: f"2027-{self.any(1, 12):02}-{self.any(1, 28):02}")

    def amount(self, low: int = 40, high: int = 900) -> str:
        """Return an amount with two decimals."""
        return self._new(lambda: f"{self.any(low, high)}.{self.any(11, 98)}")

    def _letters(self, count: int) -> str:
        return "".join(self.one(_LETTERS) for _ in range(count))

    def _new(self, make: Callable[[], str]) -> str:
        while (made := make()) in self._used:
            pass
        self._used.add(made)
        return made


def table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Return rows as a Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def data(value: Any) -> str:
    """Return JSON as tools print it."""
    return json.dumps(value, indent=2)


def write_task(domain: Domain, seed: int, fillers: int = FILLERS) -> Task:
    """Write the task of a seed, with so many routine steps."""
    writer = Writer(f"{domain.NAME}-{seed}")
    planted = [make(writer) for make in writer.some(domain.FACTS, _PLANTED)]
    planted += [make(writer) for make in writer.some(domain.RULES, _RULES)]
    placed: list[tuple[float, int, Sequence[Step]]] = []
    for number, one in enumerate(planted):
        for span, steps in ((_TOLD, one.told), (_CHANGED, one.changed), (_NEEDED, (one.check,))):
            placed += [(writer.random.uniform(*span), number, steps)] if steps else []
    for place in range(fillers):
        placed.append((place / fillers, -1, _routine(domain, writer, place)))
    placed.sort(key=lambda step: step[:2])
    steps = [step for _, _, group in placed for step in group]
    return Task(f"{domain.NAME}-{seed}", domain.NAME, domain.SYSTEM, tuple(steps))


def _routine(domain: Domain, writer: Writer, place: int) -> list[Step]:
    """Return a piece of routine work, now and then with a person's word before it."""
    steps: list[Step] = []
    if place % 7 == 0:
        said = writer.one(domain.OPENING) if place == 0 else writer.one(domain.ASIDES)
        steps.append(
            Say(said, writer.one(("On it.", "Sure, I will go on with that.", "All right, next one.", "Will do.")))
        )
    return [*steps, writer.one(domain.FILLERS)(writer)]
