"""Attachments in a plan: those in use stay while there is room, and the others are moved out of the prompt."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from compact.core.facts.constraints import ConstraintFinder
from compact.core.messages.attachment_use import messages_in_use, repeated_attachments
from compact.core.messages.attachments import attachments_of
from compact.core.messages.message import Message
from compact.core.plan.layers import KeepRules
from compact.core.plan.plan import CompactionPlan, ExternalizationRecord, SummarizationRecord
from compact.core.plan.strategy import CompactionProposal, Goal, PlanningContext
from compact.core.plan.stubs import attachments_record

# Chosen: the most that attachments in use may take of the ceiling together; and from which share of the target on the
# rest is not made smaller for them.
_ATTACHED_SHARE = 0.75
_HEAVY_SHARE = 0.5
# Why attachments were moved; the last is told to whoever operates the agent.
_NOT_IN_USE, _SENT_AGAIN, NO_ROOM = "not in use any more", "sent again later", "in use, but there is no room for it"


def keep_attached(
    messages: Sequence[Message],
    plan: CompactionPlan,
    tokens: Sequence[int],
    rules: KeepRules,
    goal: Goal,
    constraints: ConstraintFinder,
) -> KeepRules:
    """Return the rules with the attachments that are in use; the oldest give way where they take too much."""
    asked = ((constraint.source_id, constraint.text) for constraint in constraints.standing(messages))
    used = messages_in_use(messages, recent_turns=rules.attachment_turns, instructions=asked)
    weights = {message.id: weight for message, weight in zip(messages, tokens, strict=True)}
    room, kept = int(_ATTACHED_SHARE * goal.ceiling_tokens), set[str]()
    for message_id in reversed(used):
        room -= weights[message_id]
        if plan.get_action(message_id)[1] is not None:
            continue
        if room < 0 and kept:
            break
        kept.add(message_id)
    return replace(rules, attached=frozenset(kept))


def beside_attachments(goal: Goal, attached_tokens: int) -> Goal:
    """Return the goal for a prompt with large attachments in use: what is beside them has its usual share of the rest.

    Otherwise everything else would be given up for a document, although there is room for both.
    """
    ceiling = goal.ceiling_tokens
    is_heavy = _HEAVY_SHARE * goal.target_tokens < attached_tokens < ceiling
    if goal.is_exact or goal.part or not is_heavy:
        return goal

    def beside(tokens: int) -> int:
        return attached_tokens + (ceiling - attached_tokens) * tokens // ceiling

    return replace(goal, target_tokens=beside(goal.target_tokens), settle_tokens=beside(goal.settle_tokens))


def taking(context: PlanningContext, proposals: Sequence[CompactionProposal]) -> PlanningContext:
    """Return the context with proposals in its plan."""
    plan = context.plan
    for proposal in proposals:
        if isinstance(proposal.record, SummarizationRecord):
            # What the summary takes in is named in it, attachments that were too small to be moved included.
            taken_in = [one for one in _attached_messages(context) if one.id in proposal.record.span.ids]
            plan = plan.adding(*_moved(context, taken_in, _NOT_IN_USE))
            plan = plan.summarizing(proposal.record, proposal.pinned)
    others = [p.record for p in proposals if not isinstance(p.record, SummarizationRecord)]
    return replace(context, plan=plan.adding(*others) if others else plan)


def without_attachments(context: PlanningContext) -> PlanningContext:
    """Move attachments that are not in use: of messages that may leave, and those that were sent again later."""
    again, layers = repeated_attachments(_attached_messages(context)), context.layers
    attached = [(index, context.messages[index]) for index in context.attached]
    free = [message for index, message in attached if index in layers.remainder and message.id not in again]
    repeated = [message for index, message in attached if message.id in again and index not in layers.pinned]
    moved = (*_moved(context, repeated, _SENT_AGAIN), *_moved(context, free, _NOT_IN_USE))
    return taking(context, [CompactionProposal(record) for record in moved if record.tokens_freed > 0])


def with_attachments_that_fit(context: PlanningContext) -> PlanningContext:
    """Move attachments that are in use, the oldest first, until the prompt fits its ceiling."""
    excess = context.total_tokens() - context.goal.ceiling_tokens
    moved: list[CompactionProposal] = []
    free = (index for index in context.attached if index not in context.layers.pinned)
    standing = [context.messages[index] for index in free] if excess > 0 else ()
    for record in _moved(context, standing, NO_ROOM):
        if excess > 0 and record.tokens_freed > 0:
            excess -= record.tokens_freed
            moved.append(CompactionProposal(record))
    return taking(context, moved)


def _moved(context: PlanningContext, messages: Iterable[Message], reason: str) -> list[ExternalizationRecord]:
    """Return records that move the attachments of users' messages that are still in the prompt."""
    records = [
        attachments_record(message, context.plan.session_id, reason=reason)
        for message in messages
        if message.role == "user" and attachments_of(message) and context.plan.get_action(message.id)[1] is None
    ]
    return [record for record in map(context.weigh, records) if isinstance(record, ExternalizationRecord)]


def _attached_messages(context: PlanningContext) -> list[Message]:
    return [context.messages[index] for index in context.attached]


def shows_attachments(context: PlanningContext, message: Message) -> bool:
    """Return True for a message of a user whose attachments are in the prompt."""
    is_whole = context.plan.get_action(message.id)[1] is None
    return is_whole and message.role == "user" and bool(attachments_of(message))


def pointers_of(context: PlanningContext, message: Message) -> ExternalizationRecord | None:
    """Return the record with the pointers that stand, or would stand, for the attachments of a user's message."""
    if message.role != "user" or not attachments_of(message):
        return None
    record = context.plan.get_action(message.id)[1]
    if isinstance(record, ExternalizationRecord):
        return record
    fresh = attachments_record(message, context.plan.session_id, reason=NO_ROOM)
    return replace(fresh, tokens_before=context.tokens[context.places[message.id]])
