"""What is left out, or cut to a bare stub, where nothing smaller can stand for it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import replace

from compact.core.plan.plan import ClearRecord, CompactionPlan, DropRecord, SpanReference
from compact.core.plan.strategy import PlanningContext
from compact.core.plan.stubs import SHORTEN, render_cleared
from compact.core.planning.squeeze import (
    beside_pointers,
    candidate_at,
    fits,
    last_group,
    newest_places,
    squeeze_summary,
)

# The name under which a plan says what was left out because nothing smaller could stand for it.
LAST_RESORT = "last_resort"
NO_ROOM_AT_ALL = "there is no room beside what is pinned and newest"


def with_last_resort(context: PlanningContext) -> PlanningContext:
    """Leave out what cannot be made smaller until the prompt fits: in the end all but what is pinned and the newest.

    The oldest goes first, what says what users asked to hold behind all others, then the summary, line by line; then
    the newest messages are cut to bare stubs, and at last what was asked goes, if that is not the newest message
    itself, or the newest that is shown.
    """
    if fits(context):
        return context
    newest, shown = newest_places(context), {*context.shown}
    stays = newest | context.layers.pinned
    holding = {
        context.places.get(constraint.source_id) for constraint in context.constraints.standing(context.messages)
    }
    groups = (g.indices for g in context.groups if shown.issuperset(g.indices) and stays.isdisjoint(g.indices))
    older = deque(sorted(groups, key=lambda indices: not holding.isdisjoint(indices)))
    while older and (excess := context.total_tokens() - context.goal.ceiling_tokens) > 0:
        gone: list[int] = []
        while older and excess > 0:
            gone += older[0]
            excess -= sum(context.weight(i) + context.repairs.get(i, 0) for i in older.popleft())
        context = _dropping(context, gone)
    context = squeeze_summary(context, 0)
    if not fits(context) and context.plan.summary:
        context = _dropping(context, [context.places[i] for i in context.plan.summary.span])
    for index in sorted(newest & shown - context.layers.pinned):
        context = context if fits(context) else _with_bare_stub(context, index)
    last = last_group(context)
    asked = newest & shown - context.layers.pinned - {*last}
    if fits(context) or not asked or shown.isdisjoint(last):
        return context
    return _dropping(context, sorted(asked))


def without_last_resort(plan: CompactionPlan) -> CompactionPlan:
    """Return a plan without what it left out for want of room: there may be some now."""
    records = tuple(record for record in plan.records if record.strategy != LAST_RESORT)
    return plan if len(records) == len(plan.records) else replace(plan, records=records)


def _dropping(context: PlanningContext, indices: Iterable[int]) -> PlanningContext:
    """Return the context with more messages left out: one record names all that are, the oldest first."""
    standing = [record for record in context.plan.drops if record.strategy == LAST_RESORT]
    places = {context.places[i] for record in standing for i in record.span} | {*indices}
    span = SpanReference(tuple(context.messages[place].id for place in sorted(places)))
    weighed = context.weigh(DropRecord(span=span, strategy=LAST_RESORT, reason=NO_ROOM_AT_ALL))
    freed = sum(record.tokens_before for record in standing)
    plan = context.plan.adding(replace(weighed, tokens_before=weighed.tokens_before + freed))
    # Nothing stands before a summary that is gone.
    return replace(context, plan=plan if plan.summary else replace(plan, pinned=()))


def _with_bare_stub(context: PlanningContext, index: int) -> PlanningContext:
    """Return the context with a message in its shortest form, if that is shorter."""
    message = context.messages[index]
    candidate = candidate_at(context, index)
    record = ClearRecord(
        span=SpanReference((message.id,)),
        strategy=SHORTEN,
        reason="too large",
        tokens_before=candidate.tokens,
        kept_arguments=() if message.tool_calls else None,
    )
    bare = beside_pointers(context, record)
    if isinstance(bare, ClearRecord):
        bare = replace(bare, tokens_after=context.count_message(render_cleared(message, bare)))
    is_shorter = bare.tokens_after < context.weight(index)
    return replace(context, plan=context.plan.adding(bare)) if is_shorter else context
