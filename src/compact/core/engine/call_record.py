"""What is written down of a model call: what its prompt consists of, within which limits, and what stood beside it."""

from __future__ import annotations

from collections.abc import Mapping

from compact.core.audit.records import Beside, ModelCall
from compact.core.engine.session import Session
from compact.core.plan.layers import KeepRules
from compact.core.plan.plan import CompactionAction, SummarizationRecord

# The parts of a prompt, from its beginning to its end.
TIERS = ("system", "tools", "pinned", "ledger", "summary", "tail", "injected")
_SYSTEM_ROLES = ("system", "developer")


def model_call(session: Session, estimated_tokens: int, rules: KeepRules) -> ModelCall:
    """The call that a session is about to make."""
    actions, summary = session.prompt.actions, session.plan.summary
    return ModelCall(
        turn_number=session.turn_number,
        plan_version=session.plan.version,
        summary_version=summary.version if summary else 0,
        last_seq=len(session.thread.log),
        messages=len(session.prompt),
        evicted=actions.total() - actions[CompactionAction.INCLUDE],
        tokens_estimated=estimated_tokens,
        tiers=tiers_of(session, rules),
        branch=session.head.branch + session.has_branched,
        limits=_limits(session),
        reason=session.decision.reason if session.decision else "",
    )


def beside_log(session: Session) -> tuple[Beside, ...]:
    """What stands behind the log in the newest prompt, in its order."""
    brought = (Beside("rehydrated", message) for message in session.brought)
    return (*brought, *(Beside("injected", entry.message) for entry in session.injected))


def tiers_of(session: Session, rules: KeepRules) -> dict[str, int]:
    """The tokens of each part of the newest prompt that there is; together they are what was estimated."""
    budget, by_role = session.budget, session.tokens_by_role
    system = sum(by_role[role] for role in _SYSTEM_ROLES)
    pinned = sum(
        tokens
        for slot, tokens in zip(session.prompt.slots, session.slot_tokens(), strict=True)
        if slot.message.meta and slot.message.role not in _SYSTEM_ROLES and rules.pins(slot.message)
    )
    summary = session.plan.summary
    told = summary.tokens_after if summary else 0
    ledger = round(told * _ledger_share(summary)) if summary else 0
    tokens = {
        "system": system + (budget.system_tokens + budget.formatting_overhead if budget else 0),
        "tools": budget.tool_schema_tokens if budget else 0,
        "pinned": pinned,
        "ledger": ledger,
        "summary": told - ledger,
        "tail": session.prompt_tokens - system - pinned - told,
        "injected": session.brought_tokens + session.injected_tokens,
    }
    return {tier: tokens[tier] for tier in TIERS if tokens[tier]}


def _ledger_share(record: SummarizationRecord) -> float:
    """How much of a summary is the facts that code keeps: by characters, for it is asked at every call."""
    summary = record.summary
    if summary is None:
        return 0.0
    kept = sum(len(fact.subject) + len(fact.detail) for fact in summary.ledger)
    told = len(summary.narrative) + sum(len(excerpt.text) for excerpt in summary.excerpts)
    told += sum(len(outcome.outcome) for outcome in summary.tool_outcomes) + sum(map(len, summary.facts))
    told += sum(len(choice.decision) + len(choice.rationale) for choice in summary.decisions)
    told += sum(len(item.item) for item in summary.open_items)
    return kept / (kept + told) if kept else 0.0


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
