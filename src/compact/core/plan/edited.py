"""What is left of a plan when the caller has edited the past that it stands on.

A record of which a message is gone goes with it. Only a summary stays where a few of its messages have changed and the
list goes on behind it as before: it stands for the others then, and what it says on the word of those that are gone
alone is taken out. The new messages are shown as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import replace
from operator import is_

from compact.core.messages.groups import group_messages
from compact.core.messages.message import Message
from compact.core.plan.plan import CompactionAction, CompactionPlan, Record, SpanReference, SummarizationRecord
from compact.core.plan.renderer import summary_message
from compact.core.plan.stubs import SHORTEN

# Chosen: a summary of which more has changed tells another story.
_MAX_GONE = 0.25
# What a message is not seen for.
_HIDING = (CompactionAction.SUMMARIZE, CompactionAction.DROP)


def after_edit(
    plan: CompactionPlan,
    view: Sequence[Message],
    count_message: Callable[[Message], int],
    *,
    before: Sequence[Message],
    known: Container[str],
    pins: Callable[[Message], bool] = lambda message: False,
) -> CompactionPlan:
    """Return the part of a plan that stands on these messages; the same plan if all of it does.

    `before` is the list as it was. `known` are the messages that the plan was made for: each stays on the side of the
    summary that it was on. Of the others, what `pins` says True for stands before the summary, and so does what comes
    before all that it stands for.
    """
    present = {message.id for message in view}
    # A message that was left out or cleared far back may be the newest one now, or one that equals it: the model must
    # see that. If it was the newest before, too, it was cut because it is too large, and would be cut again.
    newest = _newest(view)
    standing = present - newest
    standing_if_cut = present - (newest - _newest(before))
    kept: list[Record] = []
    for record in plan.records:
        if (standing_if_cut if record.strategy == SHORTEN else standing).issuperset(record.span):
            kept.append(record)
        elif isinstance(record, SummarizationRecord):
            left = _without_changed(record, view, standing, count_message)
            kept += [left] if left else []
    left = replace(plan, records=tuple(kept))
    is_whole = len(kept) == len(plan.records) and all(map(is_, kept, plan.records))
    # Without a summary there is nothing to stand before: every message is in its place.
    pinned = _standing_before(left.summary, plan, view, known, pins) if left.summary else ()
    return plan if is_whole and pinned == plan.pinned else replace(left, pinned=pinned)


def _newest(view: Sequence[Message]) -> set[str]:
    """Return the newest message of a list, with the call and the other results if it is a result."""
    groups = group_messages(view)
    return {view[place].id for place in groups[-1].indices} if groups else set()


def _standing_before(
    summary: SummarizationRecord,
    plan: CompactionPlan,
    view: Sequence[Message],
    known: Container[str],
    pins: Callable[[Message], bool],
) -> tuple[str, ...]:
    """Return what stands before what is left of a plan's summary; a call and its results stand together."""
    covered, stood = frozenset(summary.span), frozenset(plan.pinned)
    places = [place for place, message in enumerate(view) if message.id in covered]

    def stands_before(group: Sequence[Message], place: int) -> bool:
        shown = [m.id for m in group if m.id in known and plan.get_action(m.id)[0] not in _HIDING]
        is_first = place < places[0] and not has_other_behind
        return not stood.isdisjoint(shown) if shown else is_first or any(map(pins, group))

    before: list[str] = []
    has_pin_behind = has_other_behind = False
    for indices in (group.indices for group in group_messages(view) if group.indices[0] < places[-1]):
        group = [view[place] for place in indices]
        if not covered.isdisjoint(m.id for m in group):
            continue
        # Messages stay in order: what follows one that stands behind the summary stands there too. A pinned one may
        # stand before others that are not.
        if not has_pin_behind and stands_before(group, indices[0]):
            before += [message.id for message in group]
        else:
            has_other_behind = True
            has_pin_behind = has_pin_behind or any(map(pins, group))
    return tuple(before)


def _without_changed(
    record: SummarizationRecord, view: Sequence[Message], present: set[str], count_message: Callable[[Message], int]
) -> SummarizationRecord | None:
    """Return a summary for those of its messages that are still there; None if too many are gone."""
    summary, span = record.summary, record.span
    if summary is None or span.last not in present:
        return None
    covered = present.intersection(span)
    for group in group_messages(view):
        ids = {view[place].id for place in group.indices}
        if not ids <= covered:  # a call stays with its results: none of them is summarised without the others
            covered -= ids
    gone = frozenset(span) - covered
    if len(gone) > _MAX_GONE * len(span):
        return None
    left = replace(
        record, span=SpanReference(tuple(i for i in span if i in covered)), summary=summary.without_sources(gone)
    )
    return replace(left, tokens_after=count_message(summary_message(left)))
