"""Whether to compact, why, and how far: the thresholds of a budget, in the tokens of one session."""

from __future__ import annotations

from dataclasses import dataclass, replace

from compact.core.engine.session import Decision, Session
from compact.core.plan.budget import TokenBudget
from compact.core.plan.strategy import SUMMARIZE, Goal

_SUMMARY_SHARE_OF_TARGET = 0.55
# How much a prompt must have grown before a compaction that did not pay is looked at again.
_GROWN = 1.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Decider:
    """Knows the policy; `injects` tells that something is added behind every prompt."""

    enabled: bool = True
    every_call: bool = False
    injects: bool = False

    def estimated_tokens(self, session: Session, budget: TokenBudget) -> int:
        """What the next request counts by our own estimate."""
        return session.prompt_tokens + session.brought_tokens + session.injected_tokens + budget.fixed_tokens

    def used_tokens(self, session: Session, budget: TokenBudget) -> int:
        """The most that the next request may count for the provider."""
        return session.calibration.upper_bound(self.estimated_tokens(session, budget))

    def decide(self, session: Session, budget: TokenBudget, used_tokens: int) -> tuple[Decision, Goal]:
        """Whether to compact, why, and how far."""
        goal = self.goal(session, budget)
        usage = f"{used_tokens:,} tokens, {budget.usage_pct(used_tokens):.1%} of {budget.max_context_tokens:,}"
        if not self.enabled:
            return Decision(False, f"{usage}; compaction is switched off"), goal
        if session.exhausted_at == session.state and used_tokens <= budget.ceiling_tokens:
            return Decision(False, f"{usage}; nothing has changed since the last compaction"), goal
        if session.plan.held and used_tokens <= budget.ceiling_tokens:
            return Decision(False, f"{usage}; held, because version {session.plan.origin} was brought back"), goal
        if budget.is_triggered(used_tokens):
            return Decision(True, f"{usage}; trigger is {budget.trigger_tokens:,}"), goal
        version, looked_at_tokens, why_not = session.declined
        if version == session.plan.version and session.prompt_tokens <= _GROWN * looked_at_tokens:
            return Decision(False, f"{usage}; {why_not}"), goal
        free_only = replace(goal, target_tokens=0, skip=frozenset({SUMMARIZE}))
        for tier, excess in session.tier_excess(budget.tier_caps).items():
            free_only = replace(free_only, target_tokens=max(0, session.prompt_tokens - excess))
            return Decision(True, f"{usage}; {tier} over their cap of {budget.tier_caps[tier]:,}", True), free_only
        if self.every_call:
            return Decision(True, f"{usage}; cadence is every call", True), free_only
        return Decision(False, f"{usage}; below the trigger of {budget.trigger_tokens:,}"), goal

    def goal(self, session: Session, budget: TokenBudget) -> Goal:
        """The thresholds in estimated tokens of messages alone."""

        def messages_only(limit_tokens: int) -> int:
            estimate = session.calibration.largest_estimate(limit_tokens)
            return estimate - budget.fixed_tokens - session.repair_tokens - session.brought_tokens

        return Goal(
            target_tokens=messages_only(budget.target_tokens),
            settle_tokens=messages_only(budget.prefetch_tokens),
            ceiling_tokens=messages_only(budget.ceiling_tokens),
            fixed={
                "instructions": budget.system_tokens,
                "tools": budget.tool_schema_tokens,
                "wire overhead": budget.formatting_overhead + session.repair_tokens,
                "brought back": session.brought_tokens,
                **_reserved(budget.injection_reserve),
            },
        )

    def manual_goal(self, session: Session, budget: TokenBudget, target_tokens: int | None) -> Goal:
        """The same thresholds with a summary in any case; a target overrules them all."""
        goal = replace(self.goal(session, budget), must_run=frozenset({SUMMARIZE}))
        if target_tokens is None:
            return goal
        reserve = budget.injection_reserve if self.injects else 0
        limit = min(target_tokens - session.repair_tokens - reserve, goal.ceiling_tokens)
        fixed = {"wire overhead": session.repair_tokens, **_reserved(reserve)}
        # Who asks for so many tokens and no more wants the best of the history in them, not the newest of it.
        goal = replace(goal, summary_share=_SUMMARY_SHARE_OF_TARGET, fixed=fixed)
        return replace(goal, target_tokens=limit, settle_tokens=limit, ceiling_tokens=limit)


def _reserved(tokens: int) -> dict[str, int]:
    return {"injection reserve": tokens} if tokens else {}
