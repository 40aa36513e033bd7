"""What a call decided on compacting, and when the next one would come to the same."""

from __future__ import annotations

from dataclasses import dataclass

from compact.core.plan.budget import TokenBudget


@dataclass(frozen=True, slots=True)
class TriggerDecision:
    """Whether a call compacted, and why or why not; an optional compaction is only done if it pays."""

    triggered: bool
    reason: str
    is_optional: bool = False


@dataclass(frozen=True, slots=True)
class DeclinedCompaction:
    """A compaction that would not have paid: not looked at again until the plan changes or the prompt has grown."""

    plan_version: int
    prompt_tokens: int
    reason: str


@dataclass(frozen=True, slots=True)
class CompactionInputs:
    """What must change for another compaction to come out differently; without a budget, whatever it was."""

    plan_version: int
    log_length: int
    view_length: int
    budget: TokenBudget | None
