"""Fit a summary into the room there is: what must stay has its place first, and the oldest of the rest goes first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import dropwhile
from math import ceil
from typing import TypeVar

from compact.core.facts.ledger import REQUIRED, Ledger
from compact.core.facts.text import first_half, whole_sentences
from compact.core.summary.summary import RESULT_LABEL, Excerpt, StructuredSummary

T = TypeVar("T")
Fits = Callable[[StructuredSummary], bool]
# Chosen: a summary that is too long gives up a sixteenth of each part at a time.
_STEPS = 16


def required_facts(ledger: Ledger, fits: Fits) -> Ledger:
    """Return the facts that a summary may not lack, cut down to their share of the room."""
    must = Ledger(tuple(fact for fact in ledger if fact.kind in REQUIRED))
    return must.fitting(lambda candidate: fits(StructuredSummary(ledger=candidate)))


def joined(summary: StructuredSummary, ledger: Ledger, required: Ledger, fits: Fits) -> StructuredSummary | None:
    """Return a summary with as much of the ledger as there is room for; None if not even the required facts fit."""
    if not fits(replace(summary, ledger=required)):
        return None
    fitting = ledger.fitting(lambda candidate: fits(summary.with_ledger(candidate)))
    return replace(summary, ledger=fitting)


def shortened(summary: StructuredSummary, fits: Fits) -> StructuredSummary:
    """Return a summary with as much less of its own text as is needed; its facts give way only when none is left."""
    for step in range(_STEPS, 0, -1):
        candidate = _share_of(summary, step)
        if fits(candidate):
            return candidate
    return fit_summary(_share_of(summary, 0), fits)


def cut_to(summary: StructuredSummary, fits: Fits) -> StructuredSummary:
    """Return a summary cut to the room there is: facts that are not required go first, then its text, then the rest."""
    if fits(summary):
        return summary
    required = Ledger(tuple(fact for fact in summary.ledger if fact.kind in REQUIRED))
    whole = joined(summary, summary.ledger, required, fits)
    return whole or shortened(replace(summary, ledger=required), fits)


def _share_of(summary: StructuredSummary, step: int) -> StructuredSummary:
    """Return the newest of each list, and the beginning of the narrative up to the end of a sentence."""
    if step == _STEPS:
        return summary
    return replace(
        summary,
        narrative=whole_sentences(summary.narrative[: len(summary.narrative) * step // _STEPS]).strip(),
        decisions=_newest(summary.decisions, step),
        open_items=_newest(summary.open_items, step),
        tool_outcomes=_newest(summary.tool_outcomes, step),
        facts=_newest(summary.facts, step),
        excerpts=whole_steps(_newest(summary.excerpts, step)),
    )


def whole_steps(excerpts: tuple[Excerpt, ...]) -> tuple[Excerpt, ...]:
    """Return excerpts without results at the beginning whose calls are gone: no line of a result without its step."""
    return tuple(dropwhile(lambda excerpt: excerpt.label == RESULT_LABEL, excerpts))


def _newest(items: tuple[T, ...], step: int) -> tuple[T, ...]:
    return items[len(items) - ceil(len(items) * step / _STEPS) :]


def _without_oldest(summary: StructuredSummary, part: str, fits: Fits) -> StructuredSummary:
    """Return the summary without as many of the oldest entries of a part as it takes, found by halving."""
    items = getattr(summary, part)
    too_few, enough = 0, len(items)
    while enough - too_few > 1:
        middle = (too_few + enough) // 2
        if fits(replace(summary, **{part: items[middle:]})):
            enough = middle
        else:
            too_few = middle
    return replace(summary, **{part: items[enough:]})


# What goes first when there is not enough room.
_GIVES_WAY = ("excerpts", "tool_outcomes", "facts", "decisions", "open_items")


def fit_summary(summary: StructuredSummary, fits: Fits) -> StructuredSummary:
    """Return the summary cut until it fits: excerpts and narrative first, then the ledger, constraints last of all."""
    for part in _GIVES_WAY:
        if fits(summary):
            return summary
        summary = _without_oldest(summary, part, fits)
        summary = replace(summary, excerpts=whole_steps(summary.excerpts))
    while not fits(summary) and summary.narrative:
        summary = replace(summary, narrative=first_half(summary.narrative))
    ledger = summary.ledger.fitting(lambda candidate: fits(summary.with_ledger(candidate)))
    return replace(summary, ledger=ledger)
