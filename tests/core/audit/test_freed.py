"""What each action of a compaction freed."""

from __future__ import annotations

from compact import SpanReference
from compact.core.audit.freed import content_changes, shares_of
from compact.core.plan.plan import (
    AttachmentPointer,
    ClearRecord,
    CompactionAction,
    CompactionPlan,
    ExternalizationRecord,
    SummarizationRecord,
)


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


def test_only_those_that_had_been_changed_before_count_as_changed_again() -> None:
    before = CompactionPlan("s", version=1, records=(cleared("m1", 12),))
    summary = SummarizationRecord(span=SpanReference(("m1", "m2", "m3")), strategy="summarize", reason="old")
    after = CompactionPlan("s", version=2, records=(summary,))
    (change,) = content_changes(("m1", "m2", "m3"), before, after, message_tokens=lambda _: 100, tokens_freed=212)
    assert (change.changed_again, change.tokens_before) == (1, 212)


def test_a_summary_that_is_written_anew_takes_the_place_of_the_one_before() -> None:
    first = SummarizationRecord(span=SpanReference(("m1",)), strategy="summarize", reason="old", tokens_after=30)
    second = SummarizationRecord(
        span=SpanReference(("m1", "m2")), strategy="summarize", reason="old", version=2, tokens_after=40
    )
    before, after = CompactionPlan("s", version=1, records=(first,)), CompactionPlan("s", version=2, records=(second,))
    (change,) = content_changes(("m2",), before, after, message_tokens=lambda _: 100, tokens_freed=90)
    assert (change.message_ids, change.tokens_before, change.tokens_after) == (("m2",), 130, 40)


def test_a_summary_that_stays_is_not_told_of_again() -> None:
    summary = SummarizationRecord(span=SpanReference(("m1",)), strategy="summarize", reason="old", tokens_after=30)
    before = CompactionPlan("s", version=1, records=(summary,))
    after = CompactionPlan("s", version=2, records=(summary, cleared("m2", 8)))
    (change,) = content_changes(("m2",), before, after, message_tokens=lambda _: 100, tokens_freed=92)
    assert change.action is CompactionAction.CLEAR


def test_what_was_moved_is_named_by_its_artifacts() -> None:
    pointers = tuple(AttachmentPointer(f"art-{number}", "photo.png", "photo.png, 3 KB") for number in range(2))
    moved = ExternalizationRecord(
        span=SpanReference(("m1",)), strategy="externalize", reason="large", artifact_id="art-0", attachments=pointers
    )
    after = CompactionPlan("s", version=1, records=(moved,))
    (change,) = content_changes(("m1",), CompactionPlan("s"), after, message_tokens=lambda _: 100, tokens_freed=100)
    assert change.artifact_ids == ("art-0", "art-1")


def test_a_change_that_made_the_prompt_longer_is_taken_off_those_that_freed_most() -> None:
    summary = SummarizationRecord(span=SpanReference(("m2",)), strategy="summarize", reason="old", tokens_after=120)
    moved = ExternalizationRecord(
        span=SpanReference(("m3",)), strategy="externalize", reason="large", artifact_id="art-0", tokens_after=90
    )
    after = CompactionPlan("s", version=1, records=(cleared("m1", 8), summary, moved))
    changes = content_changes(
        ("m1", "m2", "m3"), CompactionPlan("s"), after, message_tokens=lambda _: 100, tokens_freed=82
    )
    assert {change.strategy: change.tokens_freed for change in changes} == {
        "clear": 72,
        "summarize": 0,
        "externalize": 10,
    }
    assert shares_of([10, 50, -20, 40], 80) == [10, 30, 0, 40]
    assert shares_of([10, 50, 40], 35) == [10, 0, 25], "the next one, where the first has nothing left"


def test_shares_add_up_to_what_the_whole_freed() -> None:
    assert shares_of([10, 50, 40], 103) == [10, 53, 40], "what is missing goes to the first"
    assert shares_of([10, 50], -5) == [0, 0], "a prompt that grew freed nothing"
    assert shares_of([0, 0], 0) == [0, 0]
    assert shares_of([], 7) == []
