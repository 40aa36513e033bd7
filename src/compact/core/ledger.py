"""What code keeps of a history without any model: facts in their own words, each with the messages it came from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any


class FactKind(Enum):
    """What a fact is; the order is the order in which they stand in a prompt."""

    TASK = "task"
    CONSTRAINT = "constraint"
    LATEST_ASK = "latest_ask"
    DECISION = "decision"
    OPEN_ITEM = "open_item"
    FILE = "file"
    COMMAND = "command"
    ERROR = "error"
    ARTIFACT = "artifact"
    MENTION = "mention"


# What goes first when there is not enough room; what users asked to hold goes last, after everything else.
_GIVES_WAY = (
    FactKind.MENTION,
    FactKind.COMMAND,
    FactKind.ERROR,
    FactKind.DECISION,
    FactKind.FILE,
    FactKind.OPEN_ITEM,
    FactKind.ARTIFACT,
    FactKind.LATEST_ASK,
    FactKind.TASK,
    FactKind.CONSTRAINT,
)
# Facts that a summary may not lack.
REQUIRED = (FactKind.CONSTRAINT, FactKind.TASK, FactKind.LATEST_ASK)


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing that was so: `subject` is verbatim, `detail` says what became of it."""

    kind: FactKind
    subject: str
    detail: str = ""
    source_ids: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The fact in a line."""
        return f"{self.subject} ({self.detail})" if self.detail else self.subject


@dataclass(frozen=True, slots=True)
class Ledger:
    """The facts of a history, oldest first; the same subject stands once, with what is known of it by now."""

    facts: tuple[Fact, ...] = ()

    def of(self, kind: FactKind) -> tuple[Fact, ...]:
        """The facts of one kind."""
        return tuple(fact for fact in self.facts if fact.kind is kind)

    def subject_of(self, kind: FactKind) -> str:
        """The text of the one fact of a kind (task, latest ask), or nothing."""
        return next((fact.subject for fact in self.facts if fact.kind is kind), "")

    def without(self, kinds: Iterable[FactKind]) -> Ledger:
        """The same facts but for some kinds."""
        left_out = frozenset(kinds)
        return Ledger(tuple(fact for fact in self.facts if fact.kind not in left_out))

    def __iter__(self) -> Iterator[Fact]:
        return iter(self.facts)

    def __len__(self) -> int:
        return len(self.facts)

    def fitting(self, fits: Callable[[Ledger], bool]) -> Ledger:
        """This ledger cut down until it fits: oldest facts of the least needed kind first, constraints last of all."""
        ledger = self
        for kind in _GIVES_WAY:
            while not fits(ledger) and ledger.of(kind):
                ledger = ledger._smaller(kind)
        return ledger

    def _smaller(self, kind: FactKind) -> Ledger:
        """Half of the facts of a kind, the older half gone; one that stands alone is cut in half itself."""
        facts = list(self.of(kind))
        if len(facts) > 1:
            gone = {id(fact) for fact in facts[: (len(facts) + 1) // 2]}
            return Ledger(tuple(fact for fact in self.facts if id(fact) not in gone))
        only = facts[0]
        subject = only.subject[: len(only.subject) // 2].rstrip()
        cut = tuple(replace(fact, subject=subject) if fact is only else fact for fact in self.facts)
        return Ledger(cut if subject else tuple(fact for fact in self.facts if fact is not only))

    def to_list(self) -> list[list[Any]]:
        """Plain data; `from_list` gives back an equal ledger."""
        return [[fact.kind.value, fact.subject, fact.detail, list(fact.source_ids)] for fact in self.facts]

    @classmethod
    def from_list(cls, data: Iterable[Iterable[Any]]) -> Ledger:
        """The inverse of `to_list`."""
        return cls(tuple(Fact(FactKind(kind), subject, detail, tuple(ids)) for kind, subject, detail, ids in data))


def merged(facts: Iterable[Fact]) -> Ledger:
    """One ledger of facts in the order they were found: a subject told twice keeps its place and its newest detail."""
    found: dict[tuple[FactKind, str], Fact] = {}
    for fact in facts:
        key = (fact.kind, fact.subject)
        known = found.get(key)
        if known:
            ids = tuple(dict.fromkeys((*known.source_ids, *fact.source_ids)))
            fact = replace(fact, detail=fact.detail or known.detail, source_ids=ids)
        found[key] = fact
    return Ledger(tuple(found.values()))


def by_kind(facts: Iterable[Fact]) -> Mapping[FactKind, tuple[Fact, ...]]:
    """Facts sorted by what they are, in the order of a prompt."""
    ledger = Ledger(tuple(facts))
    return {kind: ledger.of(kind) for kind in FactKind if ledger.of(kind)}
