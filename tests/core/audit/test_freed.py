"""What each action of a compaction freed."""

from __future__ import annotations

from compact import SpanReference
from compact.core.audit.freed import content_changes
from compact.core.plan.plan import ClearRecord, CompactionPlan, SummarizationRecord


def cleared(message_id: str, tokens: int) -> ClearRecord:
    return ClearRecord(
        span=SpanReference((message_id,)), strategy="clear", reason="old", tokens_before=100, tokens_after=tokens
    )


def test_what_was_cleared_before_gave_a_summary_no_more_than_its_stub() -> None:
    before = CompactionPlan("s", version=1, records=(cleared("m1", 12),))
    summary = SummarizationRecord(
        span=SpanReference(("m1", "m2")), strategy="summarize", reason="old", tokens_before=112, tokens_after=30
    )
    after = CompactionPlan("s", version=2, records=(summary,))
    (change,) = content_changes(("m1", "m2", "m3"), before, after, message_tokens=lambda _: 100, tokens_freed=82)
    assert change.message_ids == ("m1", "m2")
    assert change.changed_again == 1
    assert (change.tokens_before, change.tokens_after, change.tokens_freed) == (112, 30, 82)


def test_a_message_that_stays_cleared_is_not_told_of_again() -> None:
    stub = cleared("m1", 12)
    before = CompactionPlan("s", version=1, records=(stub,))
    after = CompactionPlan("s", version=2, records=(stub, cleared("m2", 8)))
    (change,) = content_changes(("m1", "m2"), before, after, message_tokens=lambda _: 100, tokens_freed=92)
    assert change.message_ids == ("m2",)
    assert (change.tokens_before, change.tokens_after) == (100, 8)
