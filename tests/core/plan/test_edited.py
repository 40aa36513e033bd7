"""What is left of a plan once the caller has edited the past."""

from __future__ import annotations

from collections.abc import Sequence

from compact.core.log.messages import Message
from compact.core.plan.edited import after_edit
from compact.core.plan.plan import CompactionPlan, DropRecord, SpanReference, SummarizationRecord
from compact.core.summary.summary import StructuredSummary
from compact.testing import WordTokenizer


def messages(*ids: str) -> list[Message]:
    return [Message("user" if n % 2 == 0 else "assistant", f"text {i}", id=i) for n, i in enumerate(ids)]


def summarised(ids: Sequence[str], pinned: tuple[str, ...] = ()) -> CompactionPlan:
    span = SpanReference(tuple(ids))
    record = SummarizationRecord(
        span=span, strategy="summarize", reason="", summary=StructuredSummary(narrative="done")
    )
    return CompactionPlan("s", 1).summarizing(record, pinned=pinned)


def edited(plan: CompactionPlan, view: Sequence[Message]) -> CompactionPlan:
    return after_edit(plan, view, WordTokenizer().count_message, lambda message: bool(message.meta.get("protected")))


def test_a_plan_whose_messages_are_all_there_stays() -> None:
    plan = summarised(["a", "b"])
    assert edited(plan, messages("a", "b", "new", "c")) is plan


def test_what_is_the_newest_message_now_is_not_left_out() -> None:
    """A rewind after which the newest message equals one that was summarised, or dropped."""
    left = edited(summarised(list("abcdefgh")), messages("a", "b", "c", "d", "e", "f", "g", "new", "h"))
    assert left.summary is None or "h" not in left.summary.span
    dropped = CompactionPlan("s", 1).adding(DropRecord(span=SpanReference(("b",)), strategy="drop", reason=""))
    assert edited(dropped, messages("a", "new", "b")).records == ()


def test_a_pinned_message_that_was_edited_stands_before_the_summary() -> None:
    view = messages("a", "b", "c", "d", "e", "f", "g", "h", "i")
    view[2] = Message("user", "Never touch the migrations.", id="new", meta={"protected": True})
    left = edited(summarised(["a", "b", "c", "d", "e", "f", "g", "h"], pinned=()), view)
    assert left.summary is not None
    assert "new" in left.pinned


def test_a_message_that_is_gone_is_not_pinned_any_more() -> None:
    assert edited(summarised(["b", "c"], pinned=("a",)), messages("b", "c", "d", "e")).pinned == ()
