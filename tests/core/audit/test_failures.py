"""What failed in a session: of its compactions and of its calls."""

from __future__ import annotations

from compact.core.audit.call_details import CallDetails, reported_cache
from compact.core.audit.failures import SessionFailure, failures_of
from compact.core.audit.records import ModelCall, PlanVersion
from compact.core.plan.plan import CompactionPlan, CompactionRun, StepFailure

LATE = StepFailure(what="summary", error_type="TimeoutError", message="too late", instead="code wrote it")
BROKEN = StepFailure(what="strategy", error_type="KeyError", message="no x", instead="left unchanged")


def call(number: int, *failures: StepFailure) -> ModelCall:
    return ModelCall(
        turn_number=1,
        plan_version=0,
        summary_version=0,
        last_seq=1,
        messages=1,
        evicted=0,
        tokens_estimated=9,
        number=number,
        details=CallDetails(model="m", failures=failures).to_dict(),
    )


def test_each_failure_is_told_once_with_the_plan_or_the_call_that_it_belongs_to() -> None:
    plans = [CompactionPlan("s", 0, run=CompactionRun(failures=(BROKEN,))), CompactionPlan("s", 1)]
    plans.append(CompactionPlan("s", 2, run=CompactionRun(failures=(LATE,))))
    found = failures_of([call(1), call(2, BROKEN)], [PlanVersion(plan, 0.0) for plan in plans])
    assert found == (
        SessionFailure(BROKEN, plan_version=0),
        SessionFailure(LATE, plan_version=2),
        SessionFailure(BROKEN, call=2),
    )
    assert [failure.where for failure in found] == ["version 0", "version 2", "call 2"]


def test_what_a_provider_did_not_tell_of_its_cache_is_not_recorded_as_nothing() -> None:
    assert reported_cache(0, None) == {"cache_read_tokens": 0}
    assert reported_cache(None, 7) == {"cache_write_tokens": 7}
    assert CallDetails.from_dict(reported_cache(0, None)).cache_write_tokens is None
