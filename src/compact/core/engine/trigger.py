"""Decide whether to compact, why, and how far: the thresholds of a budget, in the tokens of one session."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from compact.core.plan.budget import TokenBudget
from compact.core.plan.parts import PromptPart
from compact.core.plan.strategy import SUMMARIZE, Goal
from compact.core.session.decisions import TriggerDecision
from compact.core.session.session import Session

# Chosen: a caller that names a target wants the best of the history in it, not the newest of it.
_SUMMARY_SHARE_OF_TARGET = 0.62
# Chosen: how much a prompt must have grown before a compaction that did not pay is looked at again.
_GROWN = 1.05
# Chosen: the share of a cap that must be freed for it to be worth a new prefix; less would be a new plan at every call.
_SMALLEST_TRIM = 0.25


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
            return TriggerDecision(True, f"{usage}; trigger is {_trigger_text(budget)}"), goal
        return self._decide_below_trigger(session, budget, goal, usage)

    def _decide_below_trigger(
        self, session: Session, budget: TokenBudget, goal: Goal, usage: str
    ) -> tuple[TriggerDecision, Goal]:
        """Decide below the trigger: for a cap, or by the cadence, and only if that pays."""
        why_not: list[str] = []
        for part, cap in _over_cap(session, budget.part_caps):
            reason = f"{part} is over its cap of {cap:,}"
            if declined := _declined(session, part):
                why_not.append(f"{reason}; {declined}")
                continue
            return TriggerDecision(True, f"{usage}; {reason}", is_optional=True), _cap_goal(session, goal, part, cap)
        if self.every_call:
            if not (declined := _declined(session, None)):
                free_only = replace(goal, target_tokens=0, skip=frozenset({SUMMARIZE}))
                return TriggerDecision(True, f"{usage}; cadence is every call", is_optional=True), free_only
            why_not.append(declined)
        below = f"below the trigger of {_trigger_text(budget)}"
        return TriggerDecision(False, "; ".join((usage, *(why_not or (below,))))), goal

    def goal(self, session: Session, budget: TokenBudget) -> Goal:
        """Return the thresholds in estimated tokens of messages alone."""

        def messages_only(limit_tokens: int) -> int:
            estimate = session.calibration.largest_estimate(limit_tokens)
            return estimate - budget.fixed_tokens - session.rehydrated_tokens

        return Goal(
            target_tokens=messages_only(budget.target_tokens),
            settle_tokens=messages_only(budget.prefetch_tokens),
            ceiling_tokens=messages_only(budget.ceiling_tokens),
            fixed={
                PromptPart.SYSTEM: budget.system_tokens,
                PromptPart.TOOLS: budget.tool_schema_tokens,
                PromptPart.OVERHEAD: budget.formatting_overhead,
                PromptPart.REHYDRATED: session.rehydrated_tokens,
                PromptPart.RESERVED: budget.injection_reserve,
            },
        )

    def manual_goal(self, session: Session, budget: TokenBudget, target_tokens: int | None, *, focus: str = "") -> Goal:
        """Return the same thresholds with a summary in any case; a target overrules them all."""
        goal = replace(self.goal(session, budget), must_run=frozenset({SUMMARIZE}), focus=focus)
        if target_tokens is None:
            return goal
        reserve = budget.injection_reserve if self.injects else 0
        limit = min(target_tokens - reserve, goal.ceiling_tokens)
        fixed = {PromptPart.RESERVED: reserve}
        goal = replace(goal, summary_share=_SUMMARY_SHARE_OF_TARGET, fixed=fixed, is_exact=True)
        return replace(goal, target_tokens=limit, settle_tokens=limit, ceiling_tokens=limit)


def _trigger_text(budget: TokenBudget) -> str:
    """Return the trigger, and why it is there if that is not plain."""
    return f"{budget.trigger_tokens:,}" + (f" ({budget.trigger_reason})" if budget.trigger_reason else "")


def _over_cap(session: Session, caps: Mapping[str, int]) -> list[tuple[PromptPart, int]]:
    """Return the parts of the prompt that are above their cap, each with its cap; the furthest above it first."""
    tokens = session.prompt.tokens_by_part
    over = [(PromptPart(part), cap) for part, cap in caps.items() if tokens[PromptPart(part)] > cap]
    return sorted(over, key=lambda entry: entry[1] - tokens[entry[0]])


def _cap_goal(session: Session, goal: Goal, part: PromptPart, cap: int) -> Goal:
    """Return the goal that only one part has to meet: half its cap, or the next message would be over it again.

    What is newest is not given up for a cap, and results go without a summary: clearing them is free.
    """
    excess = session.prompt.tokens_by_part[part] - cap // 2
    return replace(
        goal,
        target_tokens=max(0, session.prompt_tokens - excess),
        settle_tokens=goal.ceiling_tokens,
        skip=frozenset({SUMMARIZE}) if part is PromptPart.TOOL_RESULTS else frozenset[str](),
        part=part,
        part_tokens=cap // 2,
        min_freed_tokens=max(1, int(_SMALLEST_TRIM * cap)),
    )


def _declined(session: Session, part: PromptPart | None) -> str:
    """Return why a compaction that nothing forces was declined, as long as another look would find the same."""
    if session.is_as_stored:
        # What was declined is not stored: looked at again, the same list could give another prompt.
        return "nothing is new since the last call"
    declined = session.declined.get(part)
    if declined is None or declined.plan_version != session.plan.version:
        return ""
    return declined.reason if session.prompt_tokens <= _GROWN * declined.prompt_tokens else ""
