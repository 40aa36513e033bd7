"""Add what a model answers to what was known: nothing twice, nothing finished among the open."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from compact.core.facts.ledger import Fact, FactKind, Ledger
from compact.core.facts.text import is_same_statement
from compact.core.summary.summarizer import SummaryRequest
from compact.core.summary.summary import Decision, OpenItem, StructuredSummary, ToolOutcome
from compact.summarizers.llm.delta import SummaryDelta

Entry = TypeVar("Entry", Decision, OpenItem, ToolOutcome, str)
# Chosen: the newest of what code found open; more would leave no room for the transcript.
_MAX_OPEN_FACTS = 20
# What an older summary gives up first when there is no room for it and for what is new.
_GIVES_WAY = ("tool_outcomes", "facts", "decisions")


def written_parts(summary: StructuredSummary | None) -> StructuredSummary:
    """Return the parts of a summary that a model wrote; what code keeps is found anew each time."""
    if summary is None:
        return StructuredSummary()
    return StructuredSummary(
        decisions=summary.decisions,
        tool_outcomes=summary.tool_outcomes,
        open_items=summary.open_items,
        facts=summary.facts,
        narrative=summary.narrative,
    )


def has_written_parts(summary: StructuredSummary) -> bool:
    """Return True if there is anything in it that a model wrote."""
    return written_parts(summary) != StructuredSummary()


@dataclass(frozen=True, slots=True)
class KnownSummary:
    """What a model is shown as known: what was written so far, and what code found open."""

    written: StructuredSummary
    open_facts: tuple[Fact, ...] = ()

    def handles(self) -> dict[str, str]:
        """Return every entry by the handle under which a model may close it."""
        named: dict[str, str] = {}
        for letter, texts in (
            ("D", [decision.decision for decision in self.written.decisions]),
            ("O", [item.item for item in self.written.open_items]),
            ("W", [f"{outcome.tool}: {outcome.outcome}" for outcome in self.written.tool_outcomes]),
            ("F", list(self.written.facts)),
            ("C", [fact.text for fact in self.open_facts]),
        ):
            named |= {f"{letter}{number}": text for number, text in enumerate(texts, 1)}
        return named

    def text(self) -> str:
        """Return all of it, for a prompt."""
        lines = [f"{handle}: {text}" for handle, text in self.handles().items()]
        return "\n".join(filter(None, (*lines, self.written.narrative)))


def merged(known: KnownSummary, delta: SummaryDelta) -> KnownSummary:
    """Return what is known after a delta: closed entries gone, new ones at the end, the same statement only once."""
    closed = _closed_handles(known, delta.closed)
    written = known.written
    return KnownSummary(
        StructuredSummary(
            decisions=_joined(_remaining(written.decisions, "D", closed), delta.decisions, lambda d: d.decision),
            open_items=_joined(
                _remaining(written.open_items, "O", closed),
                [item for item in delta.open_items if not _is_among(item.item, delta.closed)],
                lambda item: item.item,
            ),
            tool_outcomes=_joined(
                _remaining(written.tool_outcomes, "W", closed), delta.tool_outcomes, lambda w: f"{w.tool}: {w.outcome}"
            ),
            facts=_joined(_remaining(written.facts, "F", closed), delta.facts, lambda fact: fact),
            narrative=delta.narrative or written.narrative,
        ),
        _remaining(known.open_facts, "C", closed),
    )


def fit_by_age(
    summary: StructuredSummary, before: StructuredSummary, fits: Callable[[StructuredSummary], bool]
) -> StructuredSummary:
    """Return a summary without as many of the oldest entries of the one before as needed; what is new stays."""
    for part in _GIVES_WAY:
        older = set(_texts(getattr(before, part)))
        while not fits(summary):
            entries: Sequence[Any] = getattr(summary, part)
            old = [place for place, text in enumerate(_texts(entries)) if text in older]
            gone = set(old[: (len(old) + 3) // 4])
            if not gone:
                break
            remaining = tuple(entry for place, entry in enumerate(entries) if place not in gone)
            summary = replace(summary, **{part: remaining})
    return summary


def open_facts(request: SummaryRequest) -> tuple[Fact, ...]:
    """Return what code found open and nobody has closed: found in what is new, or still in the summary before."""
    new = {message.id for message in request.messages}
    older = request.previous.ledger.of(FactKind.OPEN_ITEM) if request.previous else ()
    before = {fact.subject for fact in older}
    found = request.ledger.of(FactKind.OPEN_ITEM)
    return tuple(fact for fact in found if fact.subject in before or new.intersection(fact.source_ids))


def newest_facts(facts: tuple[Fact, ...]) -> tuple[Fact, ...]:
    """Return those that are shown to a model."""
    return facts[-_MAX_OPEN_FACTS:]


def with_open_items(ledger: Ledger, still_open: Iterable[Fact]) -> Ledger:
    """Return the ledger with only these of its open items."""
    kept = {fact.subject for fact in still_open}
    return Ledger(tuple(fact for fact in ledger if fact.kind is not FactKind.OPEN_ITEM or fact.subject in kept))


def in_order_of_messages(decisions: Iterable[Decision], places: Mapping[str, int]) -> tuple[Decision, ...]:
    """Return decisions in the order of the messages they are from; those without a source stay where they are."""
    ordered: list[tuple[int, Decision]] = []
    last = -1
    for decision in decisions:
        known = [places[message_id] for message_id in decision.source_ids if message_id in places]
        last = min(known) if known else last
        ordered.append((last, decision))
    return tuple(decision for _, decision in sorted(ordered, key=lambda entry: entry[0]))


def _closed_handles(known: KnownSummary, closed: Iterable[str]) -> frozenset[str]:
    """Return the handles that are named, or whose entry is repeated; only open entries are known by their words."""
    handles = known.handles()
    named: set[str] = set()
    for text in closed:
        first = text.split(":", 1)[0].split(" ", 1)[0].strip("[]()").upper()
        if first in handles:
            named.add(first)
        else:
            named |= {h for h, entry in handles.items() if h[0] in "OC" and is_same_statement(entry, text)}
    return frozenset(named)


def _remaining(entries: tuple[Any, ...], letter: str, closed: frozenset[str]) -> tuple[Any, ...]:
    return tuple(entry for number, entry in enumerate(entries, 1) if f"{letter}{number}" not in closed)


def _joined(old: Sequence[Entry], new: Sequence[Entry], text: Callable[[Entry], str]) -> tuple[Entry, ...]:
    """Return old and new; where both say the same, the new one takes the place of the old."""
    result = list(old)
    for entry in new:
        place = next((i for i, known in enumerate(result) if is_same_statement(text(known), text(entry))), None)
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
    return any(is_same_statement(text, other) for other in others)


def _texts(entries: Sequence[Any]) -> list[str]:
    return [str(entry) for entry in entries]
