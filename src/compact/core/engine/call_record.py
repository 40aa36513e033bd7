"""The record of a model call: what its prompt consists of, and within which limits."""

from __future__ import annotations

from collections.abc import Mapping

from compact.core.audit.records import ModelCall
from compact.core.engine.session import Session
from compact.core.plan.parts import in_order
from compact.core.plan.plan import CompactionAction


def model_call(session: Session, estimated_tokens: int) -> ModelCall:
    """Return the record of the call that a session is about to make."""
    actions, summary = session.prompt.rendered.actions, session.plan.summary
    return ModelCall(
        turn_number=session.turn_number,
        plan_version=session.plan.version,
        summary_version=summary.version if summary else 0,
        last_seq=len(session.log.entries),
        messages=len(session.prompt),
        evicted=actions.total() - actions[CompactionAction.INCLUDE],
        tokens_estimated=estimated_tokens,
        parts=in_order(session.tokens_by_part()),
        branch=session.stored.head.branch + session.stored.has_branched,
        limits=_limits(session),
        reason=session.decision.reason if session.decision else "",
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
