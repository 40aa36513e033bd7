"""The ledger: facts of a history that code keeps without any model, verbatim, each with the messages it is from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, TypeAlias

from compact.core.facts.text import first_half


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
    # Facts are found by their kind and subject, thousands at a time; what Enum has would be called for each.
    __hash__ = object.__hash__


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
        """Return the facts of one kind."""
        return tuple(fact for fact in self.facts if fact.kind is kind)

    def subject_of(self, kind: FactKind) -> str:
        """Return the text of the one fact of a kind (task, latest ask), or ""."""
        return next((fact.subject for fact in self.facts if fact.kind is kind), "")

    def without(self, kinds: Iterable[FactKind]) -> Ledger:
        """Return the same facts but for some kinds."""
        left_out = frozenset(kinds)
        return Ledger(tuple(fact for fact in self.facts if fact.kind not in left_out))

    def __iter__(self) -> Iterator[Fact]:
        return iter(self.facts)

    def __len__(self) -> int:
        return len(self.facts)

    def fitting(self, fits: Callable[[Ledger], bool]) -> Ledger:
        """Return this ledger cut until it fits: oldest facts of the least needed kind first, constraints last."""
        ledger = self
        for kind in _GIVES_WAY:
            if fits(ledger):
                break
            ledger = ledger._without_oldest(kind, fits)
            while kind in REQUIRED and not fits(ledger) and ledger.of(kind):
                ledger = ledger._with_half(kind)
        return ledger

    def _without_oldest(self, kind: FactKind, fits: Callable[[Ledger], bool]) -> Ledger:
        """Return it without as many of the oldest facts of a kind as it takes; of a required kind the newest stays."""
        facts = self.of(kind)
        too_few, enough = 0, len(facts) - (kind in REQUIRED)
        while enough - too_few > 1:
            middle = (too_few + enough) // 2
            if fits(self._without(facts[:middle])):
                enough = middle
            else:
                too_few = middle
        return self._without(facts[: max(enough, 0)])

    def _without(self, facts: Iterable[Fact]) -> Ledger:
        gone = {id(fact) for fact in facts}
        return Ledger(tuple(fact for fact in self.facts if id(fact) not in gone))

    def _with_half(self, kind: FactKind) -> Ledger:
        """Return it with half of the one fact of a kind, cut between words; a single word goes altogether."""
        (only,) = self.of(kind)
        subject = first_half(only.subject)
        if not subject:
            return self._without((only,))
        return Ledger(tuple(replace(fact, subject=subject) if fact is only else fact for fact in self.facts))

    def to_list(self) -> list[list[Any]]:
        """Return plain data; `from_list` gives back an equal ledger."""
        return [[fact.kind.value, fact.subject, fact.detail, list(fact.source_ids)] for fact in self.facts]

    @classmethod
    def from_list(cls, data: Iterable[Iterable[Any]]) -> Ledger:
        """Return the ledger that `to_list` made plain data of."""
        return cls(tuple(Fact(FactKind(kind), subject, detail, tuple(ids)) for kind, subject, detail, ids in data))


# Facts by kind and subject, in the order in which they were found first.
FactsBySubject: TypeAlias = dict[tuple[FactKind, str], Fact]


class MergedFacts:
    """Facts that are found one by one: a subject that was found twice keeps its place and has its newest detail."""

    def __init__(self) -> None:
        self._details: dict[tuple[FactKind, str], str] = {}
        # Each source once, in order: what a long session comes back to again and again has thousands.
        self._sources: dict[tuple[FactKind, str], dict[str, None]] = {}
        self._facts: FactsBySubject = {}
        # Those that are not in `_facts` as they are now.
        self._changed: dict[tuple[FactKind, str], None] = {}

    def add(self, fact: Fact) -> None:
        """Add a fact."""
        key = (fact.kind, fact.subject)
        self._details[key] = fact.detail or self._details.get(key, "")
        self._sources.setdefault(key, {}).update(dict.fromkeys(fact.source_ids))
        self._changed[key] = None

    def facts(self) -> FactsBySubject:
        """Return the facts so far."""
        for key in self._changed:
            self._facts[key] = Fact(*key, self._details[key], tuple(self._sources[key]))
        self._changed.clear()
        return self._facts

    def with_others(self, later: MergedFacts) -> FactsBySubject:
        """Return the facts so far with some that were found after them."""
        found = dict(self.facts())
        for key, new in later.facts().items():
            known = found.get(key)
            if known is None:
                found[key] = new
            else:
                ids = (one for one in new.source_ids if one not in self._sources[key])
                found[key] = Fact(*key, new.detail or known.detail, (*known.source_ids, *ids))
        return found


def by_subject(facts: Iterable[Fact]) -> FactsBySubject:
    """Return facts by kind and subject, each once."""
    found = MergedFacts()
    for fact in facts:
        found.add(fact)
    return found.facts()


def merged(facts: Iterable[Fact]) -> Ledger:
    """Return one ledger: a subject that was found twice keeps its place and has its newest detail."""
    return Ledger(tuple(by_subject(facts).values()))


def by_kind(facts: Iterable[Fact]) -> Mapping[FactKind, tuple[Fact, ...]]:
    """Return facts by kind, in the order of a prompt."""
    ledger = Ledger(tuple(facts))
    return {kind: ledger.of(kind) for kind in FactKind if ledger.of(kind)}
