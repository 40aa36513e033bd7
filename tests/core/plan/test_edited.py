"""What is left of a plan once the caller has edited the past."""

from __future__ import annotations

from collections.abc import Sequence

from compact.core.messages.message import Message, ToolCall
from compact.core.plan.edited import after_edit
from compact.core.plan.plan import ClearRecord, CompactionPlan, DropRecord, SpanReference, SummarizationRecord
from compact.core.plan.stubs import SHORTEN
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


def edited(plan: CompactionPlan, view: Sequence[Message], before: Sequence[Message] = ()) -> CompactionPlan:
    known = {message.id for message in view if not message.id.startswith("new")}
    count = WordTokenizer().count_message
    return after_edit(plan, view, count, before=before, known=known, pins=lambda m: bool(m.meta))


def test_a_plan_whose_messages_are_all_there_stays() -> None:
    plan = summarised(["a", "b"])
    assert edited(plan, messages("a", "b", "new", "c")) is plan


def test_what_is_the_newest_message_now_is_not_left_out() -> None:
    """A rewind after which the newest message equals one that was summarised, or dropped."""
    left = edited(summarised(list("abcdefgh")), messages("a", "b", "c", "d", "e", "f", "g", "new", "h"))
    assert left.summary is None or "h" not in left.summary.span
    dropped = CompactionPlan("s", 1).adding(DropRecord(span=SpanReference(("b",)), strategy="drop", reason=""))
    assert edited(dropped, messages("a", "new", "b")).records == ()


def test_a_message_that_was_cut_far_back_is_whole_when_it_is_the_newest() -> None:
    """It was cut to make room for what came after it; one that was the newest then is too large by itself."""
    cut = ClearRecord(span=SpanReference(("b",)), strategy=SHORTEN, reason="too large")
    plan = CompactionPlan("s", 1).adding(cut)
    assert edited(plan, messages("a", "b"), before=messages("a", "b", "c")).records == ()
    assert edited(plan, messages("new", "b"), before=messages("a", "b")).records == (cut,)


def test_a_message_that_is_new_stands_behind_one_that_stands_behind_the_summary() -> None:
    """Messages that nobody has pinned are in order, wherever the summary stands."""
    plan = summarised(["c", "d", "e", "f"])
    assert edited(plan, messages("a", "new", "c", "d", "e", "f", "g")).pinned == ()
    assert edited(plan, messages("new", "a", "c", "d", "e", "f", "g")).pinned == ("new",)


def test_a_pinned_message_that_was_edited_stands_before_the_summary() -> None:
    view = messages("a", "b", "c", "d", "e", "f", "g", "h", "i")
    view[2] = Message("user", "Never touch the migrations.", id="new", meta={"protected": True})
    left = edited(summarised(["a", "b", "c", "d", "e", "f", "g", "h"], pinned=()), view)
    assert left.summary is not None
    assert "new" in left.pinned


def test_a_message_that_is_gone_is_not_pinned_any_more() -> None:
    assert edited(summarised(["b", "c"], pinned=("a",)), messages("b", "c", "d", "e")).pinned == ()


def test_without_a_summary_every_message_is_in_its_place() -> None:
    """A rewind to before what was summarised: a pin that stood before the summary is the newest message now."""
    assert edited(summarised(["c", "d"], pinned=("a", "b")), messages("a", "b")).pinned == ()


def test_a_pin_that_was_put_into_the_past_stands_before_the_summary_with_the_others() -> None:
    view = messages("a", "b", "c", "d", "e")
    view.insert(1, Message("user", "Never touch the migrations.", id="new", meta={"protected": True}))
    assert edited(summarised(["a", "b", "d"], pinned=("c",)), view).pinned == ("new", "c")


def test_what_a_plan_knew_stays_on_its_side_of_the_summary() -> None:
    """What was asked, and a pin behind it, stand behind a summary of what came later: an undo gives just that back."""
    view = messages("asked", "pin", "a", "b", "c")
    view[1] = Message("assistant", "Never touch the migrations.", id="pin", meta={"protected": True})
    plan = summarised(["a", "b"])
    assert edited(plan, view) is plan
    assert edited(plan, [Message("user", "text", id="new"), *view]).pinned == ("new",)


def test_a_call_and_its_results_stand_on_one_side_of_the_summary() -> None:
    """The result was edited, and its caller has protected it: the call is shown again, and stands before it."""
    view = messages(*"abcdefghi")
    call = Message("assistant", "", id="call", tool_calls=(ToolCall("c1", "read_file", "{}"),))
    view[3:3] = [call, Message("tool", "42", id="new", tool_call_id="c1", meta={"protected": True})]
    left = edited(summarised([*"abc", "call", "old", *"defgh"]), view)
    assert left.summary is not None
    assert left.pinned == ("call", "new")


def test_a_summary_of_which_little_has_changed_stays_beside_records_that_are_whole() -> None:
    cut = ClearRecord(span=SpanReference(("i",)), strategy="clear", reason="old")
    plan = summarised(list("abcdefgh")).adding(cut)
    left = edited(plan, messages("a", "b", "new", "d", "e", "f", "g", "h", "i", "j"))
    assert left.summary is not None
    assert list(left.summary.span) == [*"abdefgh"]
    assert cut in left.records


def test_a_summary_that_nobody_has_written_yet_stands_for_all_of_its_messages_or_for_none() -> None:
    planned = SummarizationRecord(span=SpanReference(tuple("abcdefgh")), strategy="summarize", reason="")
    plan = CompactionPlan("s", 1).summarizing(planned, pinned=())
    assert edited(plan, messages(*"abdefgh", "new", "i")).records == ()


def test_what_comes_between_summarised_messages_does_not_stand_before_them() -> None:
    assert edited(summarised(["a", "b", "c"]), messages("a", "new", "b", "c", "d")).pinned == ()


def test_a_pin_stands_behind_another_that_does() -> None:
    """The other one is a call of which only the result is pinned: messages stay in their order."""
    pin = Message("user", "Never touch the migrations.", id="new", meta={"protected": True})
    call = Message("assistant", "", id="call", tool_calls=(ToolCall("c1", "read_file", "{}"),))
    result = Message("tool", "42", id="result", tool_call_id="c1", meta={"protected": True})
    a, b, c, d = messages(*"abcd")
    assert edited(summarised(["a", "b", "c"]), [a, call, result, b, pin, c, d]).pinned == ()
    assert edited(summarised(["a", "b", "c"]), [a, b, pin, c, d]).pinned == ("new",)


def test_a_summary_of_one_call_and_its_results_is_left_whole() -> None:
    calls = tuple(ToolCall(f"c{n}", "read_file", "{}") for n in range(3))
    results = [Message("tool", "42", id=f"r{n}", tool_call_id=f"c{n}") for n in range(3)]
    view = [Message("assistant", "", id="call", tool_calls=calls), *results, *messages("y", "z")]
    left = edited(summarised(["gone", "call", "r0", "r1", "r2"]), view)
    assert left.summary is not None
    assert list(left.summary.span) == ["call", "r0", "r1", "r2"]
