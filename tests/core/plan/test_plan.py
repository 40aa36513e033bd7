"""A plan is pure data: one action per message, precedence where records overlap, exact round trips."""

from __future__ import annotations

import json
from dataclasses import replace
from sys import maxsize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compact.core.facts.ledger import Fact, FactKind, Ledger
from compact.core.messages.message import Message
from compact.core.messages.structure import HistoryStructure
from compact.core.plan.economics import USUAL_RATIOS, PromptChange, price_change
from compact.core.plan.plan import (
    COMPACTION_PRECEDENCE,
    AttachmentPointer,
    ClearRecord,
    CompactionAction,
    CompactionPlan,
    CompactionRun,
    DropRecord,
    ExternalizationRecord,
    Record,
    SpanReference,
    StepFailure,
    SummarizationRecord,
)
from compact.core.plan.regret import Regrets
from compact.core.summary.summary import Decision, Excerpt, OpenItem, StructuredSummary, SummaryCheck, ToolOutcome
from compact.core.summary.writing import SummaryWriting

texts = st.text(max_size=8)
ids = st.lists(st.sampled_from([f"m{n}" for n in range(12)]), min_size=1, max_size=4, unique=True).map(tuple)
spans = ids.map(SpanReference)
common = {
    "span": spans,
    "strategy": texts,
    "reason": texts,
    "tokens_before": st.integers(0, 99),
    "tokens_after": st.integers(0, 99),
}
sources = st.lists(texts, max_size=2).map(tuple)
summaries = st.builds(
    StructuredSummary,
    ledger=st.lists(st.builds(Fact, st.sampled_from(FactKind), texts, texts, sources), max_size=3).map(
        lambda facts: Ledger(tuple(facts))
    ),
    facts=sources,
    decisions=st.lists(st.builds(Decision, texts, texts, sources), max_size=2).map(tuple),
    tool_outcomes=st.lists(st.builds(ToolOutcome, texts, texts, sources), max_size=2).map(tuple),
    open_items=st.lists(st.builds(OpenItem, texts, texts, sources), max_size=2).map(tuple),
    narrative=texts,
    excerpts=st.lists(st.builds(Excerpt, texts, texts, texts), max_size=2).map(tuple),
    check=st.none() | st.builds(SummaryCheck, st.integers(0, 9), sources, sources, sources),
)
pieces = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=3).map(tuple)
pointers = st.builds(ExternalizationRecord, **common, artifact_id=texts, preview=texts)
records: st.SearchStrategy[Record] = st.one_of(
    st.builds(ClearRecord, **common, kept=pieces, preserved_fields=st.dictionaries(texts, texts, max_size=2)),
    st.builds(
        SummarizationRecord,
        **common,
        version=st.integers(1, 9),
        summary=st.none() | summaries,
        artifacts=st.lists(pointers, max_size=2).map(tuple),
    ),
    pointers,
    st.builds(DropRecord, **common),
)
plans = st.builds(CompactionPlan, texts, st.integers(0, 9), st.lists(records, max_size=5).map(tuple), ids, texts)


def record(kind: type[Record], *message_ids: str) -> Record:
    extra = {"artifact_id": "a1"} if kind is ExternalizationRecord else {}
    return kind(span=SpanReference(message_ids), strategy="test", reason="why", **extra)


@given(plans)
def test_a_plan_survives_json_exactly(plan: CompactionPlan) -> None:
    assert CompactionPlan.from_dict(json.loads(json.dumps(plan.to_dict()))) == plan


CHANGE = PromptChange(tokens_before=100, tokens_after=40, cached_tokens=90, kept_tokens=10)
KEPT = ((1, 5), (9, 12))
FULL = CompactionPlan(
    "s",
    4,
    (
        ClearRecord(
            span=SpanReference(("m1",)),
            strategy="clear",
            reason="old",
            tokens_before=50,
            tokens_after=8,
            kept=KEPT,
            preserved_fields={"id": "7"},
            kept_arguments=KEPT,
        ),
        SummarizationRecord(
            span=SpanReference(("m2", "m3")),
            strategy="summarize",
            reason="old",
            version=2,
            max_tokens=90,
            summary=StructuredSummary(
                ledger=Ledger((Fact(FactKind.TASK, "Paint it.", "open", ("m2",)),)),
                facts=("It is red.",),
                decisions=(Decision("Use paint", "it lasts", ("m2",)),),
                tool_outcomes=(ToolOutcome("bash", "it ran", ("m3",)),),
                open_items=(OpenItem("Dry it", "high", ("m2",)),),
                narrative="We painted.",
                excerpts=(Excerpt("tool", "done", "m3"),),
                check=SummaryCheck(3, ("asked",), ("added",), ("invented",)),
                writing=SummaryWriting(summarizer="cheap", calls=1, input_tokens=5),
            ),
            artifacts=(
                ExternalizationRecord(span=SpanReference(("m3",)), strategy="e", reason="", artifact_id="art-1"),
            ),
        ),
        ExternalizationRecord(
            span=SpanReference(("m4",)),
            strategy="externalize",
            reason="large",
            artifact_id="art-2",
            preview="first lines",
            sensitivity="restricted",
            attachments=(AttachmentPointer("art-2", "photo.png", "photo.png, 3 KB"),),
            kept=KEPT,
        ),
        DropRecord(span=SpanReference(("m5",)), strategy="drop", reason="empty"),
    ),
    ("m0",),
    "full",
    900,
    100,
    origin=2,
    held=True,
    shows_gaps=True,
    lines={"m6": "user"},
    regrets=Regrets((), 9),
    run=CompactionRun(
        seconds=1.5,
        failures=(StepFailure(what="summary", error_type="KeyError", message="x", instead="by code"),),
        model="dear",
        change=CHANGE,
        economics=price_change(CHANGE, USUAL_RATIOS, notes=("no money",)),
        prices=USUAL_RATIOS,
        prices_after=USUAL_RATIOS,
        summary_model="cheap",
        summary_prices=USUAL_RATIOS,
    ),
    archived=3,
    dialect="openai",
)


def through_json(plan: CompactionPlan) -> CompactionPlan:
    return CompactionPlan.from_dict(json.loads(json.dumps(plan.to_dict())))


def test_everything_that_a_plan_says_survives_json() -> None:
    again = through_json(FULL)
    assert again == FULL
    assert (again.run, again.archived, again.dialect) == (FULL.run, 3, "openai")


def test_a_plan_of_which_little_is_known_survives_json() -> None:
    bare = tuple(record(kind, f"m{n}") for n, kind in enumerate((ClearRecord, SummarizationRecord, DropRecord)))
    moved = replace(FULL.externalizations[0], span=SpanReference(("m8",)), kept=None)
    plan = CompactionPlan("s", 1, (*bare, moved), run=CompactionRun())
    again = through_json(plan)
    assert (again, again.run) == (plan, plan.run)
    data = CompactionPlan("s").to_dict()
    assert (data["run"], data["lines"]) == (None, None)
    assert not {"archived", "dialect"} & set(data), "most plans have neither"
    summary = StructuredSummary(narrative="short")
    assert StructuredSummary.from_dict(json.loads(json.dumps(summary.to_dict()))) == summary


def test_a_plan_of_an_older_version_is_read() -> None:
    """It does not say how long its log was: no regret counts under it."""
    data = FULL.to_dict()
    for name in ("shows_gaps", "lines", "regrets", "run", "archived", "dialect"):
        del data[name]
    old = CompactionPlan.from_dict(data)
    assert (old.records, old.shows_gaps, old.lines, old.run) == (FULL.records, False, None, None)
    assert (old.archived, old.dialect, old.regrets) == (0, "", Regrets(log_length=maxsize))
    known = {name: value for name, value in (FULL.run or CompactionRun()).to_dict().items() if name != "prices_after"}
    assert CompactionRun.from_dict(known) == replace(FULL.run or CompactionRun(), prices_after=None)


def test_lists_are_taken_for_what_they_hold() -> None:
    drop = record(DropRecord, "m1")
    assert SpanReference(["m1", "m2"]) == SpanReference(("m1", "m2"))  # type: ignore[arg-type]
    listed = CompactionPlan("s", records=[drop], pinned=["m0"])  # type: ignore[arg-type]
    assert listed == CompactionPlan("s", records=(drop,), pinned=("m0",))


def test_a_failure_reads_as_a_sentence() -> None:
    failed = StepFailure(what="summary", error_type="KeyError", message="first line\nsecond", instead="code wrote it")
    assert str(failed) == "the summary failed (KeyError: first line); code wrote it"
    silent = replace(failed, what="clear_results", message="")
    assert str(silent) == "the strategy clear_results failed (KeyError); code wrote it"


def test_a_record_frees_what_its_messages_took_but_for_what_stands_for_them() -> None:
    assert FULL.clearings[0].tokens_freed == 42


def test_outside_a_summary_are_the_places_that_it_does_not_stand_for() -> None:
    history = HistoryStructure([Message("user", f"text {n}", id=f"m{n}") for n in range(6)])
    summary = record(SummarizationRecord, "m1", "m2", "m3", "gone")
    assert list(CompactionPlan("s", records=(summary,)).places_outside(history)) == [0, 4, 5]
    pointers = (record(ExternalizationRecord, "m2"), record(ExternalizationRecord, "m5"), record(DropRecord, "gone"))
    assert list(CompactionPlan("s", records=(*pointers, summary)).places_outside(history)) == [0, 2, 4, 5]


def test_a_summary_of_which_others_decide_for_every_message_leaves_the_plan() -> None:
    pointers = tuple(record(ExternalizationRecord, one) for one in ("m1", "m2"))
    plan = CompactionPlan("s", records=(record(SummarizationRecord, "m1", "m2"),))
    assert plan.adding(pointers[0]).records == (*plan.records, pointers[0])
    assert plan.adding(*pointers).records == pointers


@given(plans)
def test_each_message_has_the_action_of_the_highest_record_that_claims_it(plan: CompactionPlan) -> None:
    for message_id in [f"m{n}" for n in range(12)]:
        action, record = plan.get_action(message_id)
        claims = [r for r in plan.records if message_id in r.span.message_ids]
        if not claims:
            assert (action, record) == (CompactionAction.INCLUDE, None)
        else:
            assert action is max((r.action for r in claims), key=COMPACTION_PRECEDENCE.__getitem__)


@given(plans)
def test_hidden_are_the_messages_that_the_prompt_does_not_show(plan: CompactionPlan) -> None:
    assert plan.hidden_ids() == {f"m{n}" for n in range(12) if not plan.shows(f"m{n}")}


@given(plans, plans)
def test_named_since_another_plan_is_all_but_what_both_summarise(plan: CompactionPlan, before: CompactionPlan) -> None:
    in_both = plan.summarized_ids() & before.summarized_ids()
    assert plan.named_since(before) == plan.named_ids() - in_both


@given(plans, records)
def test_adding_leaves_no_record_that_decides_nothing(plan: CompactionPlan, extra: Record) -> None:
    grown = plan.adding(extra)
    deciding = [grown.get_action(i)[1] for r in grown.records for i in r.span]
    assert all(any(r is d for d in deciding) for r in grown.records)


def test_the_order_of_precedence() -> None:
    order = sorted(COMPACTION_PRECEDENCE, key=lambda action: -COMPACTION_PRECEDENCE[action])
    assert [action.name for action in order] == ["DROP", "EXTERNALIZE", "SUMMARIZE", "CLEAR", "INCLUDE"]


def test_overlaps_are_told_and_the_newer_of_equals_decides() -> None:
    older, newer = record(ClearRecord, "m1", "m2"), record(ClearRecord, "m2", "m3")
    plan = CompactionPlan("t", records=(older, newer))
    assert plan.overlapping_ids() == ("m2",)
    assert plan.get_action("m2")[1] is newer


def test_a_wider_summary_takes_the_place_of_the_one_before() -> None:
    first = record(SummarizationRecord, "m1", "m2")
    plan = CompactionPlan("t", records=(first, record(ClearRecord, "m3")))
    second = record(SummarizationRecord, "m1", "m2", "m3")
    assert plan.adding(second).records == (second,)


def test_a_record_that_is_added_again_stands_in_the_plan_once() -> None:
    summary, clearing = record(SummarizationRecord, "m1", "m2"), record(ClearRecord, "m3")
    plan = CompactionPlan("t", records=(summary, clearing))
    assert plan.adding(summary).records == (clearing, summary)
    assert plan.adding(clearing, clearing).records == (summary, clearing)


def test_a_summary_takes_in_the_pointers_it_covers_and_keeps_those_of_the_summary_before() -> None:
    pointers = [
        replace(record(ExternalizationRecord, m), artifact_id=f"art-{m}", preview="x") for m in ("m1", "m3", "m5")
    ]
    plan = CompactionPlan("t", records=(pointers[0],)).summarizing(record(SummarizationRecord, "m0", "m1"), ())
    plan = plan.adding(*pointers[1:]).summarizing(record(SummarizationRecord, "m0", "m1", "m3"), ())
    assert plan.summary is not None
    assert [pointer.artifact_id for pointer in plan.summary.artifacts] == ["art-m1", "art-m3"]
    assert [pointer.artifact_id for pointer in plan.artifacts] == ["art-m1", "art-m3", "art-m5"]
    assert plan.get_action("m3")[0] is CompactionAction.SUMMARIZE
    assert plan.get_action("m5")[0] is CompactionAction.EXTERNALIZE


def test_only_what_still_stands_is_left_after_an_edit() -> None:
    plan = CompactionPlan(
        "t", records=(record(SummarizationRecord, "m1", "m2"), record(ClearRecord, "m3")), pinned=("m0",)
    )
    standing = plan.standing_on(["m0", "m2", "m3"])
    assert [r.action for r in standing.records] == [CompactionAction.CLEAR]
    assert (standing.pinned, plan.standing_on(["m2", "m3"]).pinned) == (("m0",), ())
    assert plan.standing_on(["m0", "m1", "m2", "m3"]) is plan


def test_spans_are_not_empty_and_name_each_message_once() -> None:
    with pytest.raises(ValueError, match="at least one"):
        SpanReference(())
    with pytest.raises(ValueError, match="once"):
        SpanReference(("m1", "m1"))
    span = SpanReference(("m1", "m2"))
    assert (span.first, span.last, len(span)) == ("m1", "m2", 2)


def test_records_by_kind() -> None:
    kinds = (ClearRecord, SummarizationRecord, ExternalizationRecord, DropRecord)
    plan = CompactionPlan("t", records=tuple(record(kind, f"m{n}") for n, kind in enumerate(kinds)))
    assert [len(part) for part in (plan.clearings, plan.summarizations, plan.externalizations, plan.drops)] == [1] * 4
    assert list(plan.actions(["m0", "m9"]).values()) == [CompactionAction.CLEAR, CompactionAction.INCLUDE]
