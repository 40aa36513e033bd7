"""Stubs, cuts, summaries and pointers: what stands for content that left the prompt."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compact.constraints import LearnedConstraints
from compact.core.facts.ledger import Fact, FactKind, Ledger
from compact.core.messages.message import Message, ToolCall
from compact.core.messages.turn_order import LEFT_OUT
from compact.core.plan.plan import (
    ClearRecord,
    CompactionAction,
    CompactionPlan,
    DropRecord,
    ExternalizationRecord,
    Record,
    SpanReference,
    SummarizationRecord,
)
from compact.core.plan.renderer import PromptRenderer, summary_message, with_lines
from compact.core.plan.stubs import keep_in_arguments, render_cleared
from compact.core.planning.shortening import Candidate, Shortener
from compact.core.summary.fitting import fit_summary
from compact.core.summary.summary import Decision, Excerpt, OpenItem, StructuredSummary, render_summary_text, rounded
from compact.testing import WordTokenizer


def span(*ids: str) -> SpanReference:
    return SpanReference(ids)


def _lines(count: int) -> str:
    return "\n".join(f"line {n} of a long text that has ten words" for n in range(count))


def messages(count: int) -> list[Message]:
    return [Message("user", f"text {n}", id=f"m{n}") for n in range(count)]


def test_a_stub_is_one_informative_line() -> None:
    record = ClearRecord(span=span("m1"), strategy="clear", reason="old bash result", tokens_before=4_120)
    stub = render_cleared(Message("tool", "line\n" * 900, id="m1", tool_call_id="a"), record)
    assert stub.text == "[cleared: 4.1k tokens; old bash result; recall m1]"
    assert (stub.role, stub.tool_call_id) == ("tool", "a")


def test_kept_lines_and_key_fields_stay_below_the_stub() -> None:
    text = "building\nerror: no such berth\nmore\nfailed 3 of 7"
    pieces = tuple(
        (text.index(line), text.index(line) + len(line)) for line in ("error: no such berth", "failed 3 of 7")
    )
    record = ClearRecord(
        span=span("m1"), strategy="clear", reason="old", tokens_before=50, kept=pieces, preserved_fields={"id": "b-7"}
    )
    assert render_cleared(Message("tool", text, id="m1"), record).text.splitlines() == [
        "[shortened: 50 tokens; old; id=b-7; recall m1]",
        "error: no such berth",
        "…",
        "failed 3 of 7",
    ]


def test_head_and_tail_stand_around_the_stub() -> None:
    record = ClearRecord(
        span=span("m1"), strategy="shorten", reason="too large", tokens_before=10, kept=((0, 5), (15, 20))
    )
    lines = render_cleared(Message("user", "HEAD.middle-part-TAIL", id="m1"), record).text.splitlines()
    assert lines[0] == "HEAD."
    assert lines[1].startswith("[shortened")
    assert lines[2] == "t-TAI"
    head = render_cleared(Message("user", "HEAD.middle-part-TAIL", id="m1"), replace(record, kept=((0, 5),)))
    assert head.text == "HEAD.\n[shortened: 10 tokens; too large; recall m1]"


@given(
    st.recursive(
        st.text(max_size=200) | st.integers() | st.none(),
        lambda x: st.lists(x, max_size=8) | st.dictionaries(st.text(max_size=5), x, max_size=5),
        max_leaves=40,
    )
)
def test_arguments_that_must_shrink_stay_valid_json(arguments: object) -> None:
    call = ToolCall("a", "write", json.dumps(arguments))
    record = ClearRecord(span=span("m1"), strategy="shorten", reason="too large", kept_arguments=((0, 9), (30, 50)))
    shortened = render_cleared(Message("assistant", None, (call,), id="m1"), record).tool_calls[0].arguments
    json.loads(shortened)


def test_arguments_that_are_no_json_become_json() -> None:
    call = ToolCall("a", "write", "not json " * 100)
    record = ClearRecord(span=span("m1"), strategy="shorten", reason="too large", kept_arguments=((4, 8),))
    shortened = render_cleared(Message("assistant", None, (call,), id="m1"), record).tool_calls[0].arguments
    assert json.loads(shortened)["shortened"] == "…\njson\n…"


def test_of_long_arguments_the_chosen_parts_stay_and_short_ones_whole() -> None:
    text = "\n".join(f"line {n} of a new file" for n in range(30))
    calls = (ToolCall("a", "write", json.dumps({"path": "src/a.py", "mode": 7, "content": text})),)
    start = len("src/a.py\n7\n") + text.index("line 7 ")
    record = ClearRecord(span=span("m1"), strategy="s", reason="r", kept_arguments=((start, start + 20),))
    cut = json.loads(render_cleared(Message("assistant", None, calls, id="m1"), record).tool_calls[0].arguments)
    assert cut == {"path": "src/a.py", "mode": 7, "content": "…\nline 7 of a new file\n…"}


@pytest.mark.parametrize(
    ("ranges", "left"),
    [
        (((0, 4),), "0001\n…"),
        (((1, 4),), "…\n001\n…"),
        (((0, 4), (4, 8), (20, 22)), "0001\n0203\n…\n10\n…"),
        (((90, 101),), "…\n4546474849"),
    ],
)
def test_of_a_long_argument_only_what_is_left_out_is_marked(ranges: tuple[tuple[int, int], ...], left: str) -> None:
    text = "".join(f"{n:02}" for n in range(50))
    call = ToolCall("a", "write", json.dumps({"first": text, "second": text, "third": text[:80], "É": text[:81]}))
    (cut,) = keep_in_arguments([call], ranges)
    assert json.loads(cut.arguments) == {"first": left, "second": "…", "third": text[:80], "É": "…"}
    assert "É" in cut.arguments


def test_what_is_left_of_arguments_is_counted_through_those_of_all_calls() -> None:
    text = "".join(f"{n:02}" for n in range(50))
    calls = [ToolCall(name, "write", json.dumps({"content": text})) for name in "abc"]
    cut = keep_in_arguments(calls, ((0, 2), (105, 109), (208, 212)))
    left = [json.loads(call.arguments)["content"] for call in cut]
    assert left == ["00\n…", "…\n0203\n…", "…\n0304\n…"]


def test_pinned_then_the_summary_then_the_rest_in_the_order_of_the_log() -> None:
    records: tuple[Record, ...] = (
        SummarizationRecord(span=span("m0", "m2"), strategy="s", reason="r", summary=StructuredSummary(facts=("a",))),
        DropRecord(span=span("m4"), strategy="drop", reason="r"),
        ExternalizationRecord(span=span("m5"), strategy="e", reason="big", artifact_id="a-1", preview="first lines"),
    )
    prompt = PromptRenderer().render(messages(7), CompactionPlan("t", records=records, pinned=("m3",)))
    assert [slot.ids for slot in prompt.slots] == [("m3",), ("m0", "m2"), ("m1",), ("m5",), ("m6",)]
    assert prompt.hidden == ("m4",)
    assert prompt.messages[3].text.startswith("[moved to artifact a-1")
    assert prompt.messages[3].text.endswith("first lines")
    assert prompt.format_version == "v1.0"


def test_extending_is_rendering_the_longer_log() -> None:
    plan = CompactionPlan("t", records=(ClearRecord(span=span("m1"), strategy="c", reason="r"),))
    renderer = PromptRenderer()
    grown = renderer.extend(renderer.render(messages(3), plan), messages(5)[3:])
    assert grown == renderer.render(messages(5), plan)


def test_a_summary_shows_only_sections_that_have_something_in_them() -> None:
    summary = StructuredSummary(
        ledger=Ledger((Fact(FactKind.TASK, "build it"),)),
        decisions=(Decision("use sqlite", "it is there"),),
        open_items=(OpenItem("write docs"),),
    )
    text = render_summary_text(summary, version=3, messages=1234)
    assert text.startswith("<COMPACT-SUMMARY v3>\n(1.2k earlier messages; recall finds them")
    assert text.endswith("</COMPACT-SUMMARY>")
    assert "## Task\nbuild it" in text
    assert "- use sqlite (because it is there)" in text
    assert "Facts" not in text


def test_what_does_not_fit_gives_way_excerpts_first_constraints_last() -> None:
    ledger = Ledger((Fact(FactKind.TASK, "the task"), Fact(FactKind.CONSTRAINT, "never on a Friday")))
    excerpts = tuple(Excerpt("agent:", "a long story " * 5) for _ in range(4))
    summary = StructuredSummary(ledger=ledger, facts=tuple("abcdefgh"), excerpts=excerpts)

    def fits(limit: int) -> StructuredSummary:
        return fit_summary(summary, lambda s: len(render_summary_text(s, version=1, messages=2)) <= limit)

    assert fits(10_000) == summary
    assert fits(220) == StructuredSummary(ledger=ledger, facts=tuple("abcdefgh"))
    assert fits(175).facts == ("d", "e", "f", "g", "h")
    assert fits(140).ledger.facts == ledger.facts[1:]
    assert fits(0) == StructuredSummary()


def test_what_happened_is_told_anew_with_every_other_excerpt_or_narrative() -> None:
    """It is written out once where other facts are tried with it, and no other summary may get it."""

    def told(summary: StructuredSummary) -> str:
        return render_summary_text(summary, version=1, messages=2)

    excerpts = (Excerpt("agent:", "read the file"), Excerpt("→", "it is empty"))
    summary = StructuredSummary(excerpts=excerpts)
    fuller = summary.with_ledger(Ledger((Fact(FactKind.FILE, "a.py", "modified"),)))
    assert fuller == replace(summary, ledger=fuller.ledger)
    assert told(summary).partition("## What happened")[2] == told(fuller).partition("## What happened")[2]
    assert "- a.py" in told(fuller)
    assert "- a.py" not in told(summary)
    for number in range(9):
        other = replace(fuller, excerpts=(*excerpts, Excerpt("agent:", f"wrote line {number}")))
        assert f"wrote line {number}\n" in told(other)
        assert f"story {number}\n" in told(replace(fuller, narrative=f"story {number}"))
    assert "wrote" not in told(StructuredSummary(excerpts=(excerpts[0], excerpts[1])))
    assert "happened" not in told(StructuredSummary())


def test_sizes_are_short() -> None:
    assert [rounded(n) for n in (7, 99, 100, 4_120, 99_949, 99_950)] == ["7", "99", "0.1k", "4.1k", "99.9k", "0.1M"]
    assert rounded(1_250_000) == "1.2M"


def test_the_largest_message_is_cut_first_and_only_as_far_as_needed() -> None:
    count = WordTokenizer().count_message
    big, small = Message("user", _lines(100), id="big"), Message("user", _lines(10), id="small")
    candidates = [Candidate(small, 100, 100), Candidate(big, 1_000, 1_000)]
    records = Shortener([small, big], count, LearnedConstraints()).shorten(candidates, 300)
    assert [record.span.first for record in records] == ["big"]
    assert 600 <= records[0].tokens_after <= 700
    assert count(render_cleared(big, records[0])) == records[0].tokens_after


def test_images_leave_a_word_behind() -> None:
    parts = ({"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": "data:…"}})
    record = ClearRecord(span=span("m1"), strategy="c", reason="old", tokens_before=900)
    text = render_cleared(Message("user", parts, id="m1"), record).text
    assert text == "[cleared: 0.9k tokens, 1 × image_url; old; recall m1]"


def test_a_plan_shows_the_same_with_and_without_what_it_leaves_out() -> None:
    """The line for a turn that was left out is the plan's; readers that never load dropped messages see it as well."""
    log = [Message(role, f"turn {place}", id=f"m{place}") for place, role in enumerate(("user", "assistant") * 3)]
    drop = DropRecord(span=span("m0"), strategy="mine", reason="an example")
    plan = with_lines(CompactionPlan("s").adding(drop), log)
    whole = PromptRenderer().render(log, plan)
    assert [message.content for message in whole.messages[:2]] == [LEFT_OUT, "turn 1"]
    assert PromptRenderer().render(log[1:], plan).slots == whole.slots


def clearing(*ids: str) -> ClearRecord:
    return ClearRecord(span=span(*ids), strategy="clear", reason="old")


def test_a_prompt_counts_what_became_of_each_message_in_their_order() -> None:
    summary = SummarizationRecord(span=span("m1", "m2"), strategy="summarize", reason="old")
    drop = DropRecord(span=span("m3"), strategy="mine", reason="an example")
    plan = CompactionPlan("s", records=(summary, drop, clearing("m4")))
    actions = PromptRenderer().render(messages(7), plan).actions
    assert list(actions.items()) == [
        (CompactionAction.INCLUDE, 3),
        (CompactionAction.SUMMARIZE, 2),
        (CompactionAction.DROP, 1),
        (CompactionAction.CLEAR, 1),
    ]
    first = replace(plan, records=(replace(summary, span=span("m0", "m1")),))
    assert list(PromptRenderer().render(messages(7), first).actions) == [
        CompactionAction.SUMMARIZE,
        CompactionAction.INCLUDE,
    ]
    assert list(PromptRenderer().render(messages(2), CompactionPlan("s")).actions) == [CompactionAction.INCLUDE]


def test_a_place_that_the_summary_stands_for_adds_nothing() -> None:
    """Whoever renders may name more places than are outside the summary."""
    summary = SummarizationRecord(span=span("m1", "m2"), strategy="summarize", reason="old")
    plan = CompactionPlan("s", records=(summary,))
    whole, log = PromptRenderer().render(messages(5), plan), messages(5)
    for places in (range(5), [0, 2, 3, 4]):
        again = PromptRenderer().render(log, plan, places)
        assert (again, list(again.actions.items())) == (whole, list(whole.actions.items()))


def test_a_summary_that_is_not_written_yet_says_so() -> None:
    summary = SummarizationRecord(span=span("m1"), strategy="summarize", reason="old")
    assert "(not written yet)" in summary_message(summary).text
    written = replace(summary, summary=StructuredSummary(narrative="We went on."))
    assert "We went on." in summary_message(written).text
    assert "(not written yet)" not in summary_message(written).text


def test_a_plan_knows_its_lines_where_a_summary_or_a_dropped_turn_leaves_a_gap() -> None:
    log = [Message(role, f"turn {n}", id=f"m{n}") for n, role in enumerate(("user", "assistant") * 4)]
    gaps = (
        DropRecord(span=span("m0"), strategy="mine", reason=""),
        DropRecord(span=span("m3"), strategy="mine", reason=""),
    )
    plan = CompactionPlan("s", records=gaps)
    assert with_lines(plan, log).lines == {"m1": "user"}, "the one that makes the user begin"
    assert with_lines(replace(plan, shows_gaps=True), log).lines == {"m1": "user", "m4": "assistant"}
    summary = SummarizationRecord(span=span("m0", "m1", "m2"), strategy="summarize", reason="old")
    summarised = with_lines(CompactionPlan("s", records=(summary,), shows_gaps=True), log)
    assert set((summarised.lines or {}).values()) == {"user"}
    assert with_lines(CompactionPlan("s"), [log[1], log[3]]).lines == {}, "what was never there is not left out"
