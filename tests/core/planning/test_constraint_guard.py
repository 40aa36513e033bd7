"""However a constraint gets lost on the way into a prompt, it is put back before the prompt is returned, if it fits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compact import CompactConfig, CompactManager, InsufficientBudget, StructuredSummary, SummaryRequest
from compact.constraints import LearnedConstraints
from compact.core.engine.events import NoticeEvent
from compact.core.facts.ledger import Fact, FactKind, Ledger
from compact.core.messages.message import Message
from compact.core.plan.plan import (
    ClearRecord,
    CompactionPlan,
    DropRecord,
    ExternalizationRecord,
    Record,
    SpanReference,
    SummarizationRecord,
)
from compact.core.plan.renderer import PromptRenderer
from compact.core.planning.constraint_guard import ConstraintGuard
from compact.core.summary.summary import Excerpt
from compact.testing import RecordingSink, WordTokenizer, assistant, dialogue, tool_run, user
from conversations import Wire, histories
from numbered import numbered

CONSTRAINT = "From now on, never touch the table tide_log."
OTHER = "Always answer in French."
count = WordTokenizer().count_message
guard = ConstraintGuard(LearnedConstraints(), count, PromptRenderer())
HISTORY = numbered(
    [
        user(f"Sort the berths. {CONSTRAINT} Thanks."),
        assistant("I will"),
        user(f"Go on. {OTHER}"),
        assistant("D'accord"),
        user("and now the rates"),
    ]
)


def shown(plan: CompactionPlan, messages: Sequence[Message] = HISTORY) -> str:
    return "\n".join(message.text for message in PromptRenderer().render(messages, plan).messages)


def plan_of(*records: Record) -> CompactionPlan:
    return CompactionPlan("s", records=records)


def summary_of(*ids: str, max_tokens: int = 60, **parts: Any) -> SummarizationRecord:
    summary = StructuredSummary(**parts)
    record = SummarizationRecord(
        span=SpanReference(ids), strategy="summarize", reason="old", max_tokens=max_tokens, summary=summary
    )
    return replace(record, tokens_after=40)


def span(*ids: str) -> dict[str, Any]:
    return {"span": SpanReference(ids), "strategy": "x", "reason": "r", "tokens_before": 20}


LOSSES: dict[str, Record] = {
    "a summary without it": summary_of("m0", "m1", narrative="They sorted berths."),
    "an empty summary": summary_of("m0", "m1"),
    "a drop": DropRecord(**span("m0", "m1")),
    "a drop of it alone": DropRecord(**span("m0")),
    "a stub": ClearRecord(**span("m0")),
    "a cut in the middle of it": ClearRecord(**span("m0"), kept=((0, 30),)),
    "a pointer": ExternalizationRecord(**span("m0"), artifact_id="art-1"),
}


@pytest.mark.parametrize("record", LOSSES.values(), ids=LOSSES)
def test_a_lost_constraint_is_seen_and_put_back_word_for_word(record: Record) -> None:
    plan = plan_of(record)
    lost = guard.lost(HISTORY, plan)
    assert [constraint.text for constraint in lost] == [CONSTRAINT]
    repaired = guard.repaired(HISTORY, plan, lost)
    assert CONSTRAINT in shown(repaired)
    assert guard.lost(HISTORY, repaired) == ()
    assert CompactionPlan.from_dict(repaired.to_dict()) == repaired


def test_a_plan_that_shows_every_constraint_is_not_touched() -> None:
    told = Ledger((Fact(FactKind.CONSTRAINT, CONSTRAINT, source_ids=("m0",)),))
    for plan in (
        plan_of(),
        plan_of(DropRecord(**span("m1", "m3"))),
        plan_of(summary_of("m0", "m1", ledger=told)),
        plan_of(summary_of("m0", "m1", excerpts=(Excerpt("user:", f"Sort. {CONSTRAINT}", "m0"),))),
        plan_of(ClearRecord(**span("m0"), kept=((0, len(HISTORY[0].text)),))),
    ):
        assert guard.lost(HISTORY, plan) == ()


def test_a_constraint_that_was_taken_back_may_go() -> None:
    messages = numbered([*HISTORY, user("Forget the rule about tide_log.")])
    plan = plan_of(DropRecord(**span("m0", "m1")))
    assert guard.lost(messages, plan) == ()


def test_what_else_is_in_a_record_stays_out() -> None:
    plan = plan_of(DropRecord(**span("m0", "m1"), tokens_after=0), ClearRecord(**span("m3")))
    repaired = guard.repaired(HISTORY, plan, guard.lost(HISTORY, plan))
    drop, cleared = repaired.records
    assert drop.span.message_ids == ("m1",)
    assert drop.tokens_before == 20 - count(HISTORY[0])  # what came back is not freed
    assert cleared == plan.records[1]


def test_a_message_that_was_cut_keeps_its_cut_and_gets_the_constraint() -> None:
    record = ClearRecord(**span("m0"), kept=((0, 4),))
    repaired = guard.repaired(HISTORY, plan_of(record), guard.lost(HISTORY, plan_of(record)))
    (cleared,) = repaired.clearings
    assert "Thanks" not in shown(repaired)
    assert cleared.tokens_after == count(PromptRenderer().render(HISTORY, repaired).messages[0])


def test_in_a_summary_the_story_gives_way_and_the_size_stays() -> None:
    story = tuple(Excerpt("agent:", f"line {n} of a long story about berths", "m1") for n in range(6))
    plan = plan_of(summary_of("m0", "m1", excerpts=story, max_tokens=70))
    repaired = guard.repaired(HISTORY, plan, guard.lost(HISTORY, plan))
    assert repaired.summary is not None
    assert 50 < repaired.summary.tokens_after <= 70
    assert repaired.summary.summary is not None
    assert 0 < len(repaired.summary.summary.excerpts) < 6
    assert guard.growth(HISTORY, plan, repaired) <= 0


def test_a_summary_too_small_for_the_constraints_grows_as_far_as_it_may() -> None:
    plan = plan_of(summary_of("m0", "m1", "m2", "m3", max_tokens=14))
    lost = guard.lost(HISTORY, plan)
    assert [constraint.text for constraint in lost] == [CONSTRAINT, OTHER]
    grown = guard.repaired(HISTORY, plan, lost)
    assert guard.lost(HISTORY, grown) == ()
    kept_small = guard.repaired(HISTORY, replace_after(plan, 14), lost, spare_tokens=10)
    assert kept_small.summary is not None
    assert kept_small.summary.tokens_after <= 24
    assert [constraint.text for constraint in guard.lost(HISTORY, kept_small)] == [CONSTRAINT]


def replace_after(plan: CompactionPlan, tokens: int) -> CompactionPlan:
    return replace(plan, records=tuple(replace(record, tokens_after=tokens) for record in plan.records))


_ids = st.sampled_from(["m0", "m1", "m2", "m3"])


@settings(max_examples=60)
@given(st.lists(_ids, min_size=1, unique=True), st.sampled_from(["drop", "clear", "summary"]))
def test_whatever_is_left_out_every_constraint_is_there_after_the_repair(ids: list[str], how: str) -> None:
    records: list[Record] = [ClearRecord(**span(message_id)) for message_id in ids]
    if how == "drop":
        records = [DropRecord(**span(*sorted(ids)))]
    elif how == "summary":
        records = [summary_of(*sorted(ids), narrative="a story")]
    plan = plan_of(*records)
    repaired = guard.repaired(HISTORY, plan, guard.lost(HISTORY, plan))
    assert all(constraint.text in shown(repaired) for constraint in LearnedConstraints().standing(HISTORY))


# -- from the outside -----------------------------------------------------------------------------------------------


def manager_for(window: int, asks: Any = None, **configured: Any) -> tuple[CompactManager, RecordingSink]:
    sink = RecordingSink()
    policy = {"hard_cap_buffer": 10, "keep_recent_turns": 2, "keep_tool_io_pairs": 1}
    config = CompactConfig(max_context_tokens=window, policy=policy, telemetry={"exporter": "none"}, **configured)
    return CompactManager(config, tokenizer=WordTokenizer(), on_event=sink, summarizer=asks), sink


def text_of(prompt: list[Wire]) -> str:
    return "\n".join(str(message["content"]) for message in prompt)


def notices(sink: RecordingSink) -> list[NoticeEvent]:
    return [event for event in sink.of(NoticeEvent) if "put back into the prompt" in event.message]


def told_nothing(request: SummaryRequest) -> StructuredSummary:
    return StructuredSummary()


def told_a_story(request: SummaryRequest) -> StructuredSummary:
    return StructuredSummary(narrative="They talked. " * 3)


def chose_other_facts(request: SummaryRequest) -> StructuredSummary:
    return StructuredSummary(ledger=Ledger((Fact(FactKind.MENTION, "word"),)))


def fails(request: SummaryRequest) -> StructuredSummary:
    raise RuntimeError("no connection")


@pytest.mark.parametrize("summarizer", [told_nothing, told_a_story, chose_other_facts, fails])
def test_a_summariser_that_forgets_a_constraint_does_not_lose_it(summarizer: Any) -> None:
    manager, _ = manager_for(400, summarizer)
    history = [user(f"Sort the berths. {CONSTRAINT}"), *dialogue(30, words=12), user("go on")]
    prompt = manager.preflight("s", history)
    assert manager.current_plan("s").summary is not None
    assert CONSTRAINT in text_of(prompt)


def test_a_window_that_drops_the_message_of_a_constraint_gives_it_back_and_says_so() -> None:
    manager, sink = manager_for(
        400, strategies={"enabled": ["deduplicate", "clear", "window", "drop"], "window": {"max_turns": 2}}
    )
    history = [user(f"Sort the berths. {CONSTRAINT}"), *dialogue(30, words=12), user("go on")]
    prompt = manager.preflight("s", history)
    plan = manager.current_plan("s")
    assert plan.drops
    assert plan.get_action(manager.history("s")[0].id)[1] is None
    assert text_of(prompt).count(CONSTRAINT) == 1
    (notice,) = notices(sink)
    assert (notice.message, notice.severity) == ("1 constraint was put back into the prompt", "normal")


def test_a_message_that_is_cut_keeps_the_constraint_in_its_middle() -> None:
    manager, _ = manager_for(400)
    pasted = "\n".join(f"berth {n} is taken by ship {n} until further notice" for n in range(100))
    prompt = manager.preflight("s", [user(f"{pasted}\n\n{CONSTRAINT}\n\n{pasted}")])
    assert manager.current_plan("s").clearings
    assert CONSTRAINT in text_of(prompt)


def test_the_budget_wins_over_constraints_that_do_not_fit_and_that_is_said_loudly() -> None:
    """Constraints larger than the window cannot be kept; a prompt that is too large cannot be sent."""
    constraints = [f"From now on, never touch tide_log_{n} nor berth_{n} nor any ship of fleet {n}." for n in range(60)]
    manager, sink = manager_for(300)
    history = [message for constraint in constraints for message in (user(constraint), assistant("noted"))]
    prompt = manager.preflight("s", [*history, user("go on")])
    assert sum(WordTokenizer().count_text(str(message["content"])) for message in prompt) <= 290
    (notice,) = notices(sink)
    assert notice.severity == "high"
    assert "found no room" in notice.message
    assert manager.report("s")[-1].missing_constraints


@settings(max_examples=25)
@given(histories(legal=True, min_size=6, max_size=25), st.integers(0, 60), st.sampled_from([400, 900]))
def test_a_constraint_anywhere_in_a_session_is_in_its_prompt(history: list[Wire], place: int, window: int) -> None:
    place = min(place, len(history))
    while place < len(history) and history[place]["role"] == "tool":
        place += 1
    manager, sink = manager_for(window)
    try:
        prompt = manager.preflight("s", [*history[:place], user(CONSTRAINT), *history[place:]])
    except InsufficientBudget:
        return
    assert CONSTRAINT in text_of(prompt) or [notice for notice in notices(sink) if notice.severity == "high"]


def test_a_long_run_of_tools_does_not_push_a_constraint_out() -> None:
    manager, sink = manager_for(2000)
    prompt = manager.preflight("s", [user(CONSTRAINT), *tool_run(40, words=100)])
    assert CONSTRAINT in text_of(prompt)
    assert not notices(sink)
