"""Puts together what was told and what code knows, within the room there is: what must stay has its place first."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from math import ceil
from typing import TypeVar

from compact.core.ledger import REQUIRED, Ledger
from compact.core.summary import StructuredSummary, fit_summary

T = TypeVar("T")
Fits = Callable[[StructuredSummary], bool]
_STEPS = 16
_LAST_SENTENCE = re.compile(r"(?s:.*)(?:[.!?…](?=\s|$)|\n)")


def required_facts(ledger: Ledger, fits: Fits) -> Ledger:
    """The facts that a summary may not lack, cut down to their share of the room."""
    must = Ledger(tuple(fact for fact in ledger if fact.kind in REQUIRED))
    return must.fitting(lambda candidate: fits(StructuredSummary(ledger=candidate)))


def joined(told: StructuredSummary, ledger: Ledger, required: Ledger, fits: Fits) -> StructuredSummary | None:
    """All that was told with as much of the ledger as there is room for; None if not even the required facts fit."""
    if not fits(replace(told, ledger=required)):
        return None
    fitting = ledger.fitting(lambda candidate: fits(replace(told, ledger=candidate)))
    return replace(told, ledger=fitting)


def shortened(summary: StructuredSummary, fits: Fits) -> StructuredSummary:
    """A summary that tells as much less as is needed; its facts give way only when nothing is told any more."""
    for step in range(_STEPS, 0, -1):
        candidate = _share_of(summary, step)
        if fits(candidate):
            return candidate
    return fit_summary(_share_of(summary, 0), fits)


def cut_to(summary: StructuredSummary, fits: Fits) -> StructuredSummary:
    """A summary cut down to the room there is: what code found in passing first, then the story, then the rest."""
    if fits(summary):
        return summary
    required = Ledger(tuple(fact for fact in summary.ledger if fact.kind in REQUIRED))
    whole = joined(summary, summary.ledger, required, fits)
    return whole or shortened(replace(summary, ledger=required), fits)


def _share_of(summary: StructuredSummary, step: int) -> StructuredSummary:
    """The newest of each list, and the beginning of the story up to the end of a sentence."""
    if step == _STEPS:
        return summary
    length = len(summary.narrative) * step // _STEPS
    cut = summary.narrative[:length]
    sentences = _LAST_SENTENCE.match(cut)
    return replace(
        summary,
        narrative=(sentences.group() if sentences else cut).strip(),
        decisions=_newest(summary.decisions, step),
        open_items=_newest(summary.open_items, step),
        tool_outcomes=_newest(summary.tool_outcomes, step),
        facts=_newest(summary.facts, step),
        excerpts=_newest(summary.excerpts, step),
    )


def _newest(items: tuple[T, ...], step: int) -> tuple[T, ...]:
    return items[len(items) - ceil(len(items) * step / _STEPS) :]
