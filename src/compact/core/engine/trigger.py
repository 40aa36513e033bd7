"""Decide whether to compact, why, and how far: the thresholds of a budget, in the tokens of one session."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from compact.core.engine.session import Session, TriggerDecision
from compact.core.plan.budget import TokenBudget
from compact.core.plan.parts import PromptPart
from compact.core.plan.strategy import SUMMARIZE, Goal

# Chosen: a caller that names a target wants the best of the history in it, not the newest of it.
_SUMMARY_SHARE_OF_TARGET = 0.62
# Chosen: how much a prompt must have grown before a compaction that did not pay is looked at again.
_GROWN = 1.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Trigger:
    """Decides by policy; `injects` says that injectors add content behind every prompt."""

    enabled: bool = True
    every_call: bool = False
    injects: bool = False

    def estimated_tokens(self, session: Session, budget: TokenBudget) -> int:
        """Return what the next request takes by our own estimate."""
        return session.prompt_tokens + session.rehydrated_tokens + session.injected_tokens + budget.fixed_tokens

    def used_tokens(self, session: Session, budget: TokenBudget) -> int:
        """Return the most that the next request may count for the provider."""
        return session.calibration.upper_bound(self.estimated_tokens(session, budget))

    def decide(self, session: Session, budget: TokenBudget, used_tokens: int) -> tuple[TriggerDecision, Goal]:
        """Return whether to compact and why, and the goal of the compaction."""
        goal = self.goal(session, budget)
        usage = f"{used_tokens:,} tokens, {budget.usage_pct(used_tokens):.1%} of {budget.max_context_tokens:,}"
        if not self.enabled:
            return TriggerDecision(False, f"{usage}; compaction is switched off"), goal
        if session.is_exhausted and used_tokens <= budget.ceiling_tokens:
            return TriggerDecision(False, f"{usage}; nothing has changed since the last compaction"), goal
        if session.plan.held and used_tokens <= budget.ceiling_tokens:
            return TriggerDecision(False, f"{usage}; held, because version {session.plan.origin} was restored"), goal
        if budget.is_triggered(used_tokens):
            return TriggerDecision(True, f"{usage}; trigger is {budget.trigger_tokens:,}"), goal
        return self._decide_below_trigger(session, budget, goal, usage)

    def _decide_below_trigger(
        self, session: Session, budget: TokenBudget, goal: Goal, usage: str
    ) -> tuple[TriggerDecision, Goal]:
        """Decide below the trigger: only the free strategies run, and only if that pays."""
        declined = session.declined
        is_same_plan = declined is not None and declined.plan_version == session.plan.version
        if declined and is_same_plan and session.prompt_tokens <= _GROWN * declined.prompt_tokens:
            return TriggerDecision(False, f"{usage}; {declined.reason}"), goal
        free_only = replace(goal, target_tokens=0, skip=frozenset({SUMMARIZE}))
        if over := _over_cap(session, budget.part_caps):
            free_only = replace(free_only, target_tokens=max(0, session.prompt_tokens - max(over.values())))
            caps = ", ".join(f"{part} is over its cap of {budget.part_caps[part]:,}" for part in over)
            return TriggerDecision(True, f"{usage}; {caps}", is_optional=True), free_only
        if self.every_call:
            return TriggerDecision(True, f"{usage}; cadence is every call", is_optional=True), free_only
        return TriggerDecision(False, f"{usage}; below the trigger of {budget.trigger_tokens:,}"), goal

    def goal(self, session: Session, budget: TokenBudget) -> Goal:
        """Return the thresholds in estimated tokens of messages alone."""
        repair_tokens = session.prompt.repair_tokens

        def messages_only(limit_tokens: int) -> int:
            estimate = session.calibration.largest_estimate(limit_tokens)
            return estimate - budget.fixed_tokens - repair_tokens - session.rehydrated_tokens

        return Goal(
            target_tokens=messages_only(budget.target_tokens),
            settle_tokens=messages_only(budget.prefetch_tokens),
            ceiling_tokens=messages_only(budget.ceiling_tokens),
            fixed={
                PromptPart.SYSTEM: budget.system_tokens,
                PromptPart.TOOLS: budget.tool_schema_tokens,
                PromptPart.OVERHEAD: budget.formatting_overhead + repair_tokens,
                PromptPart.REHYDRATED: session.rehydrated_tokens,
                PromptPart.RESERVED: budget.injection_reserve,
            },
        )

    def manual_goal(self, session: Session, budget: TokenBudget, target_tokens: int | None) -> Goal:
        """Return the same thresholds with a summary in any case; a target overrules them all."""
        goal = replace(self.goal(session, budget), must_run=frozenset({SUMMARIZE}))
        if target_tokens is None:
            return goal
        reserve, repair_tokens = budget.injection_reserve if self.injects else 0, session.prompt.repair_tokens
        limit = min(target_tokens - repair_tokens - reserve, goal.ceiling_tokens)
        fixed = {PromptPart.OVERHEAD: repair_tokens, PromptPart.RESERVED: reserve}
        goal = replace(goal, summary_share=_SUMMARY_SHARE_OF_TARGET, fixed=fixed)
        return replace(goal, target_tokens=limit, settle_tokens=limit, ceiling_tokens=limit)


def _over_cap(session: Session, caps: Mapping[str, int]) -> dict[str, int]:
    """Return for each part of the prompt above its cap the tokens over half the cap: what a compaction should free."""
    tokens = session.prompt.tokens_by_part
    return {part: tokens[PromptPart(part)] - cap // 2 for part, cap in caps.items() if tokens[PromptPart(part)] > cap}
