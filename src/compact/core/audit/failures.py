"""What failed in a session, and what was done instead: as recorded with its plans and calls."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from compact.core.audit.call_details import CallDetails
from compact.core.audit.records import ModelCall, PlanVersion
from compact.core.plan.plan import CompactionPlan, StepFailure


@dataclass(frozen=True, slots=True)
class SessionFailure:
    """One failure: of the compaction that made a plan, or of a call that was left uncompacted by it."""

    failure: StepFailure
    plan_version: int | None = None
    call: int | None = None

    @property
    def where(self) -> str:
        """The plan version or the call that it belongs to."""
        return f"version {self.plan_version}" if self.plan_version is not None else f"call {self.call}"


def failures_of(calls: Sequence[ModelCall], plans: Sequence[PlanVersion]) -> tuple[SessionFailure, ...]:
    """Return everything that failed, compactions first; each failure once."""
    of_plans = (SessionFailure(one, plan_version=e.plan.version) for e in plans for one in plan_failures(e.plan))
    of_calls = (SessionFailure(one, call=call.number) for call in calls for one in call_failures(call))
    return (*of_plans, *of_calls)


def plan_failures(plan: CompactionPlan) -> tuple[StepFailure, ...]:
    """Return what failed in the compaction that made a plan."""
    return plan.run.failures if plan.run else ()


def call_failures(call: ModelCall) -> tuple[StepFailure, ...]:
    """Return what failed on the way to a prompt and is in no plan: the prompt stayed as it was."""
    return CallDetails.from_dict(call.details).failures if call.details.get("failures") else ()


def failures_data(failures: Iterable[StepFailure]) -> list[dict[str, Any]]:
    """Return failures as plain data, each with a sentence for people."""
    return [{**failure.to_dict(), "text": str(failure)} for failure in failures]
