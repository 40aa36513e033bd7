"""Brings what a model adds together with what was known: nothing twice, nothing finished among the open."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from compact.core.facts.ledger import Fact, FactKind, Ledger
from compact.core.summary.summarizer import SummaryRequest
from compact.core.summary.summary import Decision, OpenItem, StructuredSummary, ToolOutcome
from compact.summarizers.llm_delta import Delta

Entry = TypeVar("Entry", Decision, OpenItem, ToolOutcome, str)
_WORD = re.compile(r"[\w./-]+")
_SAME_SHARE = 0.8
# The newest of what code found open; more would crowd out the record.
_MOST_LEDGER_ITEMS = 20
# What an older summary gives up first when there is no room for it and for what is new.
_GIVES_WAY = ("tool_outcomes", "facts", "decisions")


def told_parts(summary: StructuredSummary | None) -> StructuredSummary:
    """The part of a summary that was told; what code keeps is found anew each time."""
    if summary is None:
        return StructuredSummary()
    return StructuredSummary(
        decisions=summary.decisions,
        tool_outcomes=summary.tool_outcomes,
        open_items=summary.open_items,
        facts=summary.facts,
        narrative=summary.narrative,
    )


def is_told(summary: StructuredSummary) -> bool:
    """True if there is anything in it that was told."""
    return told_parts(summary) != StructuredSummary()


@dataclass(frozen=True, slots=True)
class Known:
    """What the model is told to be known, each entry with a handle, and what of it is found open by code."""

    told: StructuredSummary
    code_open: tuple[Fact, ...] = ()

    def handles(self) -> dict[str, str]:
        """Every entry by its handle."""
        named: dict[str, str] = {}
        for letter, texts in (
            ("D", [decision.decision for decision in self.told.decisions]),
            ("O", [item.item for item in self.told.open_items]),
            ("W", [f"{outcome.tool}: {outcome.outcome}" for outcome in self.told.tool_outcomes]),
            ("F", list(self.told.facts)),
            ("C", [fact.text for fact in self.code_open]),
        ):
            named |= {f"{letter}{number}": text for number, text in enumerate(texts, 1)}
        return named

    def text(self) -> str:
        """All of it, for a prompt."""
        lines = [f"{handle}: {text}" for handle, text in self.handles().items()]
        return "\n".join(filter(None, (*lines, self.told.narrative)))


def merged(known: Known, delta: Delta) -> Known:
    """What is known after the delta: closed entries gone, new ones at the end, the same thing said twice only once."""
    closed = _closed(known, delta.closed)
    told = known.told
    return Known(
        StructuredSummary(
            decisions=_joined(_left(told.decisions, "D", closed), delta.decisions, lambda d: d.decision),
            open_items=_joined(
                _left(told.open_items, "O", closed),
                [item for item in delta.open_items if not _is_among(item.item, delta.closed)],
                lambda item: item.item,
            ),
            tool_outcomes=_joined(
                _left(told.tool_outcomes, "W", closed), delta.tool_outcomes, lambda w: f"{w.tool}: {w.outcome}"
            ),
            facts=_joined(_left(told.facts, "F", closed), delta.facts, lambda fact: fact),
            narrative=delta.narrative or told.narrative,
        ),
        _left(known.code_open, "C", closed),
    )


def fitted(
    known: StructuredSummary, before: StructuredSummary, fits: Callable[[StructuredSummary], bool]
) -> StructuredSummary:
    """The summary with the oldest entries of the one before gone as far as needed; what is new stays as it is."""
    for part in _GIVES_WAY:
        older = set(_texts(getattr(before, part)))
        while not fits(known):
            entries: Sequence[Any] = getattr(known, part)
            old = [place for place, text in enumerate(_texts(entries)) if text in older]
            gone = set(old[: (len(old) + 3) // 4])
            if not gone:
                break
            left = tuple(entry for place, entry in enumerate(entries) if place not in gone)
            known = replace(known, **{part: left})
    return known


def code_open(request: SummaryRequest) -> tuple[Fact, ...]:
    """What code found open and nobody has closed: found in what is new, or still there in the summary before."""
    new = {message.id for message in request.messages}
    before = {fact.subject for fact in request.previous.ledger.of(FactKind.OPEN_ITEM)} if request.previous else set()
    found = request.ledger.of(FactKind.OPEN_ITEM)
    return tuple(fact for fact in found if fact.subject in before or new.intersection(fact.source_ids))


def newest(facts: tuple[Fact, ...]) -> tuple[Fact, ...]:
    """Those that are shown to a model."""
    return facts[-_MOST_LEDGER_ITEMS:]


def ledger_with(ledger: Ledger, still_open: Iterable[Fact]) -> Ledger:
    """The ledger with only these of its open items."""
    kept = {fact.subject for fact in still_open}
    return Ledger(tuple(fact for fact in ledger if fact.kind is not FactKind.OPEN_ITEM or fact.subject in kept))


def in_order(decisions: Iterable[Decision], places: Mapping[str, int]) -> tuple[Decision, ...]:
    """Decisions in the order of the messages they come from; those without a source stay where they are."""
    ordered: list[tuple[int, Decision]] = []
    last = -1
    for decision in decisions:
        known = [places[message_id] for message_id in decision.source_ids if message_id in places]
        last = min(known) if known else last
        ordered.append((last, decision))
    return tuple(decision for _, decision in sorted(ordered, key=lambda entry: entry[0]))


def _closed(known: Known, closed: Iterable[str]) -> frozenset[str]:
    """The handles that are named, or whose entry is told in other words; only what was open is known by its words."""
    handles = known.handles()
    named: set[str] = set()
    for text in closed:
        first = text.split(":", 1)[0].split(" ", 1)[0].strip("[]()").upper()
        if first in handles:
            named.add(first)
        else:
            named |= {h for h, entry in handles.items() if h[0] in "OC" and _is_same(entry, text)}
    return frozenset(named)


def _left(entries: tuple[Any, ...], letter: str, closed: frozenset[str]) -> tuple[Any, ...]:
    return tuple(entry for number, entry in enumerate(entries, 1) if f"{letter}{number}" not in closed)


def _joined(old: Sequence[Entry], new: Sequence[Entry], text: Callable[[Entry], str]) -> tuple[Entry, ...]:
    """Old and new; where both say the same, the new one takes the place of the old."""
    result = list(old)
    for entry in new:
        place = next((i for i, known in enumerate(result) if _is_same(text(known), text(entry))), None)
        if place is None:
            result.append(entry)
        else:
            result[place] = _with_sources_of(entry, result[place])
    return tuple(result)


def _with_sources_of(entry: Entry, other: Entry) -> Entry:
    if isinstance(entry, str) or isinstance(other, str):
        return entry
    return replace(entry, source_ids=tuple(dict.fromkeys((*other.source_ids, *entry.source_ids))))


def _is_among(text: str, others: Iterable[str]) -> bool:
    return any(_is_same(text, other) for other in others)


def _is_same(one: str, other: str) -> bool:
    """True if two texts have nearly all their words in common; a number or a name that differs makes them two."""
    a, b = set(_WORD.findall(one.lower())), set(_WORD.findall(other.lower()))
    if not a or not b:
        return a == b
    if any(not word.isalpha() for word in a ^ b):
        return False
    return len(a & b) >= _SAME_SHARE * len(a | b)


def _texts(entries: Sequence[Any]) -> list[str]:
    return [str(entry) for entry in entries]
