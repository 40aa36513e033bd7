"""The record of a model call: what its prompt consists of, and within which limits; and that of an import."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from compact.core.audit.call_details import CallDetails
from compact.core.audit.records import ImportedHistory, ModelCall
from compact.core.messages.message import Slot
from compact.core.plan.economics import ModelPrices, shared_slots
from compact.core.plan.parts import in_order
from compact.core.plan.plan import CompactionAction
from compact.core.session.session import Session


def model_call(session: Session, sent_before: Sequence[Slot], estimated_tokens: int, prices: ModelPrices) -> ModelCall:
    """Return the record of the call that a session is about to make, with the prices of this moment.

    `sent_before` is the prompt of the call before it.
    """
    actions, summary = session.prompt.rendered.actions, session.plan.summary
    return ModelCall(
        turn_number=session.turn_number,
        plan_version=session.plan.version,
        summary_version=summary.version if summary else 0,
        last_seq=len(session.log.entries),
        messages=len(session.prompt),
        evicted=actions[CompactionAction.SUMMARIZE] + actions[CompactionAction.DROP],
        tokens_estimated=estimated_tokens,
        parts=in_order(session.tokens_by_part()),
        branch=session.stored.head.branch + session.stored.is_new_branch,
        limits=_limits(session),
        reason=session.decision.reason if session.decision else "",
        details=_details(session, sent_before, estimated_tokens, prices).to_dict(),
    )


def _details(session: Session, sent_before: Sequence[Slot], estimated_tokens: int, prices: ModelPrices) -> CallDetails:
    # Rehydrated artifacts would still stand where they were.
    uncompacted = estimated_tokens - session.prompt_tokens + session.prompt.view_tokens - session.rehydrated_tokens
    now, without = prices.of(estimated_tokens), prices.of(uncompacted)
    return CallDetails(
        model=prices.model,
        prices=now,
        prices_uncompacted=without if without != now else None,
        tokens_uncompacted=uncompacted,
        tokens_cached=_cached_tokens(session, sent_before),
        contents=session.prompt.contents,
        failures=() if _is_told_by_plan(session) else session.failures,
    )


def _is_told_by_plan(session: Session) -> bool:
    """Return True if what failed was in the compaction that made the plan: there it is on record already."""
    return session.plan.run is not None and session.plan.run.failures is session.failures


def _cached_tokens(session: Session, sent_before: Sequence[Slot]) -> int:
    """Return the tokens at the beginning of the prompt that went out with the call before, instructions included."""
    shared = shared_slots(session.prompt.slots, sent_before)
    fixed_tokens = session.budget.fixed_tokens if session.budget else 0
    return fixed_tokens + session.prompt.leading_tokens(shared) if shared else 0


def imported_history(session: Session, tokens: int) -> ImportedHistory:
    """Return the record of a history that was written into the log, where no call is made with it."""
    return ImportedHistory(
        turn_number=session.turn_number,
        tokens=tokens,
        parts=in_order(session.tokens_by_part()),
        contents=session.prompt.contents,
        limits=_limits(session),
    )


def _limits(session: Session) -> Mapping[str, int]:
    budget = session.budget
    if budget is None:
        return {}
    return {
        "window": budget.max_context_tokens,
        "ceiling": budget.ceiling_tokens,
        "trigger": budget.trigger_tokens,
        "prefetch": budget.prefetch_tokens,
        "target": budget.target_tokens,
    }
