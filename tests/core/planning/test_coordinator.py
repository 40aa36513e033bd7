"""Planning meets its goal or says what is too large; what is asked and what was not read yet stay to the last."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compact.core.errors import InsufficientBudget
from compact.core.messages.legality import MISSING_RESULT, repair_chat
from compact.core.messages.message import Message, Slot
from compact.core.messages.turn_order import LEFT_OUT
from compact.core.plan.layers import KeepRules
from compact.core.plan.parts import PromptPart
from compact.core.plan.plan import ClearRecord, CompactionPlan, DropRecord, Record, SpanReference, SummarizationRecord
from compact.core.plan.renderer import PromptRenderer, summary_message
from compact.core.plan.strategy import CompactionProposal, Goal, PlanningContext
from compact.core.plan.stubs import render_cleared
from compact.core.planning.coordinator import CompactionCoordinator, CompactionResult
from compact.core.summary.summary import StructuredSummary
from compact.strategies import ClearStrategy, DeduplicateStrategy, DropStrategy, SummarizeStrategy
from compact.testing import WordTokenizer, dialogue, system, tool_exchange, tool_run, user
from conversations import Wire, histories
from numbered import numbered

count = WordTokenizer().count_message
STRATEGIES = (
    DeduplicateStrategy(min_tokens=20),
    ClearStrategy(min_tokens=20),
    SummarizeStrategy(fills_target=True),
    DropStrategy(),
)


def plan(messages: Sequence[Message], limit: int, **goal: Any) -> CompactionResult:
    limits = {"target_tokens": limit, "settle_tokens": limit, "ceiling_tokens": limit, **goal}
    return CompactionCoordinator(STRATEGIES).coordinate(
        messages,
        CompactionPlan("t"),
        tokens=[count(message) for message in messages],
        count_message=count,
        rules=KeepRules(recent_turns=3, tool_io_pairs=2),
        goal=Goal(**limits),
    )


def shown(messages: Sequence[Message], result: CompactionResult) -> str:
    return "\n".join(message.text for message in PromptRenderer().render(messages, result.plan).messages)


def refused(messages: Sequence[Message], limit: int) -> InsufficientBudget | CompactionResult:
    try:
        return plan(messages, limit)
    except InsufficientBudget as error:
        return error


@settings(max_examples=80)
@given(histories(max_size=25), st.integers(0, 400))
def test_any_target_is_met_or_the_error_has_the_parts(history: list[Wire], limit: int) -> None:
    messages = numbered(history)
    result = refused(messages, limit)
    if isinstance(result, InsufficientBudget):
        assert result.budget_tokens == limit
        assert sum(result.parts.values()) == result.needed_tokens > limit
        return
    assert result.tokens_after <= limit
    pending = result.pending_summary
    rendered = [m for m in PromptRenderer().render(messages, result.plan).messages if not m.id.startswith("compact-")]
    assert sum(map(count, rendered)) + (pending.max_tokens if pending else 0) <= limit


def test_a_stub_that_keeps_nothing_any_more_is_counted_as_it_is_written() -> None:
    """It says what the result took ("0.3k"), not what stood for it before ("80"): that is longer."""
    kept = "Error: not there\n"
    runs = [tool_exchange(f"c{n}", f"{n} reads as follows\n" * 12 + kept) for n in range(30)]
    messages = numbered([user("begin"), *(item for run in runs for item in run), user("go on")])

    def characters(message: Message) -> int:
        return len(message.text)

    result = CompactionCoordinator((ClearStrategy(min_tokens=20, keep_last=1, keep_head_chars=0),)).coordinate(
        messages,
        CompactionPlan("t"),
        tokens=list(map(characters, messages)),
        count_message=characters,
        rules=KeepRules(recent_turns=1, tool_io_pairs=1),
        goal=Goal(target_tokens=2_400, settle_tokens=2_400, ceiling_tokens=2_400),
    )
    rendered = PromptRenderer().render(messages, result.plan).messages
    assert any("Error: not" in message.text for message in rendered[:-2])
    assert result.tokens_after == sum(map(characters, rendered)) <= 2_400


@settings(max_examples=40)
@given(histories(legal=True, min_size=4, max_size=25), st.integers(60, 400))
def test_what_was_asked_last_is_there(history: list[Wire], limit: int) -> None:
    messages = numbered([*history, user("what about BERTH-77 now?")])
    result = refused(messages, limit)
    assert isinstance(result, InsufficientBudget) or "BERTH-77" in shown(messages, result)


def unread(words: int) -> tuple[Message, ...]:
    """A history that ends with a result the model has not seen yet."""
    last = tool_exchange("last", "\n".join(f"finding {n} at berth_{n}" for n in range(words // 4)), path="new.py")
    return numbered([user("survey the harbour"), *tool_run(30, words=200)[1:], *last])


def test_a_result_nobody_has_read_yet_stays_in_the_prompt() -> None:
    messages = unread(1200)
    result = plan(messages, 3000)
    assert result.plan.get_action(messages[-1].id)[1] is None
    assert "finding 299" in shown(messages, result)


def test_one_that_is_too_large_is_cut_but_stays() -> None:
    messages = unread(6000)
    result = plan(messages, 2500)
    (record,) = [r for r in result.plan.clearings if r.span.first == messages[-1].id]
    assert record.strategy == "shorten"
    assert record.kept
    assert messages[-2].id not in result.plan.actions([m.id for m in messages if m.role == "user"])
    assert result.plan.get_action(messages[-2].id)[1] is None


def test_in_a_tiny_prompt_the_summary_may_have_it() -> None:
    messages = unread(1200)
    result = plan(messages, 150, is_exact=True)
    assert result.rules.unread_results is False
    assert result.tokens_after <= 150
    smaller = plan(messages, 40, is_exact=True).rules
    assert (smaller.unread_results, smaller.recent_turns, smaller.tool_io_pairs) == (False, 0, 0)


def test_an_agent_that_goes_on_sees_something_of_its_newest_result_however_small_the_prompt() -> None:
    messages = unread(1200)
    result = plan(messages, 150)
    assert result.rules.unread_results is True
    assert result.plan.shows(messages[-1].id)
    assert result.tokens_after <= 150


def older_reply(reply: int, result: int) -> list[Message]:
    """A question, a reply to it, and a call whose result the agent has not read, beside many rules."""
    said = "I will look at berth and quay in turn and then report. " * (reply // 12)
    found = "\n".join(f"finding {n} about ship_{n}" for n in range(result // 4))
    wires = [system("rule " * 1_000), user("Which ships are late?"), {"role": "assistant", "content": said}]
    return numbered([*wires, *tool_exchange("c1", found, path="ships.txt")])


def test_an_older_reply_is_cut_before_the_newest_result() -> None:
    messages = older_reply(240, 200)
    result = plan(messages, 1_350, settle_tokens=2_000)
    reply, newest = messages[2].id, messages[-1].id
    assert result.plan.get_action(reply)[1] is not None
    assert result.plan.get_action(newest)[1] is None


def test_an_older_reply_is_cut_before_a_newest_result_that_is_longer() -> None:
    messages = older_reply(240, 400)
    result = plan(messages, sum(map(count, messages)) - 100, settle_tokens=3_000)
    assert [record.span.first for record in result.plan.clearings] == [messages[2].id]


def test_what_the_agent_said_is_cut_before_what_the_user_said() -> None:
    asked, said = "I was at berth and quay in turn and saw this there. " * 20, "I will look at berth and quay. " * 20
    wires = [system("rule " * 1_000), user(asked), {"role": "assistant", "content": said}, user("Which?")]
    messages = numbered([*wires, *tool_exchange("c1", "late\n" * 100)])
    result = plan(messages, sum(map(count, messages)) - 50, settle_tokens=3_000)
    assert [record.span.first for record in result.plan.clearings] == [messages[2].id]


def test_a_newest_result_above_a_large_share_is_cut_to_it_before_what_the_user_said() -> None:
    """Only then, and no further: the rest of it can be had again."""
    asked = user("I was at berth and quay in turn and saw this there. " * 20)
    messages = numbered(
        [system("rule " * 1_000), asked, user("Which are late?"), *tool_exchange("c1", "late\n" * 1_200)]
    )
    result = plan(messages, 2_300, settle_tokens=3_000)
    assert result.plan.get_action(messages[1].id)[1] is None
    record = result.plan.get_action(messages[-1].id)[1]
    assert isinstance(record, ClearRecord)
    assert record.tokens_after > 2_300 // 4


def test_a_newest_call_above_a_large_share_is_cut_to_it_before_what_the_agent_said() -> None:
    """It was made, and its answer is there."""
    said = {"role": "assistant", "content": "You may take the first berth, or the second, or the quay. " * 20}
    call = tool_exchange("c1", "done", content="line of the file\n" * 400)
    messages = numbered([system("rule " * 1_000), user("Where?"), said, *call])
    result = plan(messages, 2_300, settle_tokens=3_000)
    assert result.plan.get_action(messages[2].id)[1] is None
    assert isinstance(result.plan.get_action(messages[-2].id)[1], ClearRecord)


def test_a_large_newest_call_is_cut_to_a_large_share_and_what_was_said_gives_the_rest() -> None:
    said = {"role": "assistant", "content": "You may take the first berth, or the second, or the quay. " * 150}
    call = tool_exchange("c1", "done", content="line of the file\n" * 225)
    messages = numbered([system("rule " * 100), user("Where?"), said, *call])
    result = plan(messages, 2_000, settle_tokens=3_500)
    records = [result.plan.get_action(message.id)[1] for message in messages[2:4]]
    assert all(isinstance(record, ClearRecord) for record in records)
    assert [record.tokens_after for record in records if record] == pytest.approx([1_400, 500], abs=10)


def test_what_is_small_and_older_is_cut_before_the_newest_result() -> None:
    """In a window where all that is older is small already."""
    small = [wire for n in range(12) for wire in tool_exchange(f"c{n}", f"berth {n} is free " * 6, path=f"{n}.txt")]
    newest = tool_exchange("last", "the ship is late " * 11, path="ships.txt")
    messages = numbered([system("rule " * 100), user("Which ships are late?"), *small, *newest])
    keeps = KeepRules(recent_turns=3, tool_io_pairs=13)
    context = {"tokens": [count(message) for message in messages], "count_message": count, "rules": keeps}
    goal = Goal(
        target_tokens=330, settle_tokens=330, ceiling_tokens=330, skip=frozenset({"clear", "summarize", "drop"})
    )
    result = CompactionCoordinator(STRATEGIES).coordinate(messages, CompactionPlan("t"), goal=goal, **context)
    assert result.tokens_after <= 330
    assert result.plan.get_action(messages[-1].id)[1] is None


def test_a_result_that_takes_a_large_share_is_cut_and_what_is_small_beside_it_stays() -> None:
    messages = older_reply(60, 4_000)
    result = plan(messages, 2_500)
    assert result.plan.get_action(messages[2].id)[1] is None
    assert result.plan.get_action(messages[-1].id)[1] is not None
    assert result.tokens_after > 2_300


def summarizing(messages: Sequence[Message], narrative: str, *, version: int) -> SummarizationRecord:
    """A summary of an earlier plan that stands for these messages."""
    written = StructuredSummary(narrative=narrative)
    span = SpanReference(tuple(message.id for message in messages))
    record = SummarizationRecord(span=span, strategy="summarize", reason="before", version=version, summary=written)
    return replace(record, tokens_after=count(summary_message(record)))


def test_a_summary_of_an_earlier_plan_gives_way_where_there_is_no_room_for_it() -> None:
    messages = numbered([system("rule " * 100), *dialogue(30, words=20)])
    record = summarizing(messages[1:-2], "The harbour was surveyed. " * 60, version=3)
    before = CompactionPlan("t", version=3, records=(record,))
    result = CompactionCoordinator(STRATEGIES).coordinate(
        messages,
        before,
        tokens=[count(message) for message in messages],
        count_message=count,
        rules=KeepRules(),
        goal=Goal(target_tokens=220, settle_tokens=220, ceiling_tokens=220),
    )
    summary = result.plan.summary
    assert summary
    assert summary.summary
    assert "The harbour was surveyed." in summary.summary.narrative
    assert summary.version == 4
    assert result.tokens_after <= 220


def test_a_summary_stays_whole_where_cutting_a_large_question_makes_room() -> None:
    question = user("please look into the berth and the quay " * 500)
    messages = numbered([system("rule " * 100), *dialogue(30, words=20), question])
    record = summarizing(messages[1:-1], "The harbour was surveyed. " * 200, version=3)
    result = CompactionCoordinator(()).coordinate(
        messages,
        CompactionPlan("t", version=3, records=(record,)),
        tokens=[count(message) for message in messages],
        count_message=count,
        rules=KeepRules(),
        goal=Goal(target_tokens=1_800, settle_tokens=1_800, ceiling_tokens=1_800),
    )
    assert result.plan.summary == record
    assert result.tokens_after <= 1_800
    assert isinstance(result.plan.get_action(messages[-1].id)[1], ClearRecord)


def test_what_is_left_out_at_last_says_what_it_took_though_the_summary_goes_after_it() -> None:
    messages = numbered([system("rule " * 100), *dialogue(10, words=20), user("What now?")])
    record = summarizing(messages[1:11], "The harbour was surveyed. " * 10, version=1)
    result = CompactionCoordinator(()).coordinate(
        messages,
        CompactionPlan("t", version=1, records=(record,)),
        tokens=[count(message) for message in messages],
        count_message=count,
        rules=KeepRules(),
        goal=Goal(target_tokens=115, settle_tokens=115, ceiling_tokens=115),
    )
    (dropped,) = result.plan.drops
    assert dropped.span.message_ids == tuple(message.id for message in messages[1:-1])
    assert dropped.tokens_before >= sum(map(count, messages[11:-1]))


def test_a_large_prompt_never_gives_up_what_was_not_read() -> None:
    for is_exact in (False, True):
        result = plan(unread(1200), 150, settle_tokens=2000, is_exact=is_exact)
        assert result.rules.unread_results is True


def test_pinned_messages_that_do_not_fit_are_named() -> None:
    messages = numbered([system("word " * 300), *dialogue(3)])
    with pytest.raises(InsufficientBudget) as caught:
        plan(messages, 200, fixed={PromptPart.TOOLS: 50})
    assert caught.value.parts["system"] == 300
    assert caught.value.parts["tools"] == 50
    assert caught.value.budget_tokens == 250


def test_kept_messages_give_way_to_a_summary_of_its_share() -> None:
    """A summary squeezed in beside what is kept would say nothing: for its share, kept messages go."""
    messages = numbered([*dialogue(40, words=30), user("go on")])
    sizes: list[int] = []
    for share in (0.1, 0.3, 0.6):
        pending = plan(messages, 400, summary_share=share, ceiling_tokens=450).pending_summary
        assert pending is not None
        assert pending.max_tokens >= int(share * (400 - 0.35 * 400))
        sizes.append(pending.max_tokens)
    assert sizes == sorted(sizes)
    assert sizes[0] < sizes[-1]


def test_a_summary_that_is_still_to_be_written_gives_way_to_what_was_said() -> None:
    messages = numbered([*dialogue(40, words=30), *dialogue(3, words=22), user("go on")])
    result = plan(messages, 160, settle_tokens=400, target_tokens=400)
    assert result.pending_summary is not None
    assert 40 <= result.pending_summary.max_tokens < 100
    assert not result.plan.clearings
    assert result.tokens_after <= 160


def test_where_an_exact_size_is_asked_for_it_is_used() -> None:
    messages = numbered([*dialogue(40, words=30), user("go on")])
    exact = plan(messages, 400, summary_share=0.1)
    assert exact.pending_summary is not None
    assert exact.pending_summary.max_tokens >= int(0.1 * 400)
    assert 380 <= exact.tokens_after <= 400


def test_what_fills_the_room_is_chosen_from_several_results_that_were_cleared() -> None:
    """The newest of them says nothing that the prompt does not say anyway."""
    known = "\n".join(f"berth {n} is free" for n in range(60))
    new = "\n".join(f"quay_{n} lies dry until noon" for n in range(48))
    run = [wire for n in range(8) for wire in tool_exchange(f"c{n}", new if n == 2 else known, path=f"{n}.log")]
    messages = numbered([user("Which are free?"), *run])
    result = plan(messages, 1_400, settle_tokens=2_500, ceiling_tokens=4_000, skip=frozenset({"deduplicate"}))
    stubs = {record.span.first for record in result.plan.clearings}
    assert {"m6", "m8"} <= stubs
    assert 1_300 < result.tokens_after <= 1_400
    assert sum(f"quay_{n} lies dry" in shown(messages, result) for n in range(48)) > 20


def test_the_newest_request_is_cut_but_never_emptied() -> None:
    messages = numbered([*dialogue(5, words=30), user("please look into the berth and the quay " * 60)])
    assert "please look into the berth" in shown(messages, plan(messages, 150))


def test_without_summaries_what_is_cut_keeps_its_best_lines() -> None:
    """Old messages that no strategy may touch are cut like others, not emptied."""
    messages = numbered([user("mind ship_41"), *[m for n in range(4) for m in _said(n)], user("go on")])
    result = plan(messages, 300, skip=frozenset({"summarize", "clear", "drop", "deduplicate"}))
    assert result.tokens_after <= 300
    cut = [record for record in result.plan.clearings if record.strategy == "shorten"]
    assert cut
    assert result.tokens_after > 200
    assert sum(bool(record.kept) for record in cut) > 1


def _said(number: int) -> list[Wire]:
    text = "\n".join(f"ship_{number}{n} lies at berth_{number}{n} until noon" for n in range(30))
    return [user(f"round {number}"), {"role": "assistant", "content": text}]


class Looking:
    """Proposes nothing, and keeps the contexts that it sees."""

    name = "look"

    def __init__(self) -> None:
        self.seen: list[PlanningContext] = []

    def propose(self, context: PlanningContext) -> list[CompactionProposal]:
        self.seen.append(context)
        return []


@settings(max_examples=40)
@given(histories(max_size=25), st.integers(20, 400))
def test_a_context_knows_what_its_plan_shows(history: list[Wire], limit: int) -> None:
    log, looking = numbered(history), Looking()
    strategies = [step for strategy in STRATEGIES for step in (strategy, looking)]
    goal = Goal(target_tokens=limit, settle_tokens=limit, ceiling_tokens=10_000)
    CompactionCoordinator(strategies).coordinate(
        log, CompactionPlan("t"), tokens=[count(m) for m in log], count_message=count, rules=KeepRules(), goal=goal
    )
    for context in looking.seen:
        assert list(context.shown) == [i for i, message in enumerate(log) if context.plan.shows(message.id)]
        summary = context.plan.summary.tokens_after if context.plan.summary else 0
        others = summary + context.line_tokens() + context.repair_tokens()
        assert context.total_tokens() == sum(map(context.weight, range(len(log)))) + others


def test_what_a_summary_stands_for_is_weighed_with_the_summary_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """How large a prompt is goes by what it shows, however often that is asked: not by all that was ever said."""
    log = numbered(dialogue(500, words=5))
    goal = Goal(target_tokens=200, settle_tokens=200, ceiling_tokens=400)
    tokens = [count(message) for message in log]
    coordinator = CompactionCoordinator(STRATEGIES)
    before = coordinator.coordinate(
        log[:960], CompactionPlan("t"), tokens=tokens[:960], count_message=count, rules=KeepRules(), goal=goal
    ).plan
    assert before.summary
    assert len(before.summary.span) > 900
    weighed, weight = list[int](), PlanningContext.weight
    monkeypatch.setattr(PlanningContext, "weight", lambda self, index: weighed.append(index) or weight(self, index))
    coordinator.coordinate(log, before, tokens=tokens, count_message=count, rules=KeepRules(), goal=goal)
    inside = [index for index in weighed if log[index].id in before.summary.span]
    assert len(inside) <= 3 * len(before.summary.span), "for its size, for what it replaces, and for what that was"


# -- at last ---------------------------------------------------------------------------------------------------------


def fitted(
    messages: Sequence[Message],
    limit: int,
    *records: Record,
    pinned: tuple[str, ...] = (),
    count_message: Callable[[Message], int] = count,
    **goal: Any,
) -> CompactionResult:
    """The plan after one with these records, for which no strategy proposes anything."""
    limits = {"target_tokens": limit, "settle_tokens": limit, "ceiling_tokens": limit, **goal}
    return CompactionCoordinator(()).coordinate(
        messages,
        CompactionPlan("t", version=1, records=records, pinned=pinned),
        tokens=[count_message(message) for message in messages],
        count_message=count_message,
        rules=KeepRules(),
        goal=Goal(**limits),
    )


@pytest.mark.parametrize(("limit", "left_out"), [(122, 20), (123, 19), (141, 19), (142, 18)])
def test_no_more_is_left_out_than_what_does_not_fit_to_the_last_token(limit: int, left_out: int) -> None:
    messages = numbered([system("rule " * 100), *dialogue(10, words=20), user("What now?")])
    (dropped,) = fitted(messages, limit).plan.drops
    assert dropped.span.message_ids == tuple(message.id for message in messages[1 : left_out + 1])


def test_the_newest_is_cut_to_a_bare_stub_and_what_was_asked_goes_before_it() -> None:
    asked = user("berth " * 200)
    alone = numbered([system("rule " * 100), asked])
    assert fitted(alone, 107).tokens_after == 107
    messages = numbered([system("rule " * 100), asked, *tool_exchange("c", "quay " * 200, path="ship " * 300)])
    assert not fitted(messages, 116).plan.drops
    for limit in (110, 115):
        (dropped,) = fitted(messages, limit).plan.drops
        assert dropped.span.message_ids == ("m1",)
    with pytest.raises(InsufficientBudget):
        fitted(messages, 109)


def test_a_newest_message_for_which_a_stub_would_be_as_long_stays() -> None:
    asked = user("Where does the ship lie by now?")
    messages = numbered([system("rule " * 100), asked, *tool_exchange("c", "quay " * 200, path="ship")])
    result = fitted(messages, 100 + 7 + 2 + 7)
    assert [record.span.first for record in result.plan.clearings] == ["m3"]


@pytest.mark.parametrize(("limit", "pinned"), [(250, ("m0",)), (120, ())])
def test_what_stands_before_a_summary_stays_before_it_as_long_as_there_is_one(
    limit: int, pinned: tuple[str, ...]
) -> None:
    messages = numbered([system("rule " * 100), *dialogue(10, words=20), user("What now?")])
    record = summarizing(messages[1:11], "The harbour was surveyed. " * 10, version=1)
    plan = fitted(messages, limit, record, pinned=("m0",)).plan
    assert plan.drops
    assert bool(plan.summary) == bool(pinned)
    assert plan.pinned == pinned


def test_a_summary_gives_way_to_what_was_said_down_to_a_third_of_the_prompt() -> None:
    messages = numbered([*dialogue(20, words=20), *dialogue(4, words=100), user("What now? " * 10)])
    record = summarizing(messages[:40], "The harbour was surveyed. " * 120, version=1)
    plan = fitted(messages, 600, record).plan
    assert plan.summary
    assert 180 <= plan.summary.tokens_after <= 200
    assert plan.clearings


def test_a_summary_that_can_give_nothing_is_left_as_it_is() -> None:
    messages = numbered([system("rule " * 100), *dialogue(10, words=20), user("look at the berth " * 100)])
    record = summarizing(messages[1:-1], "The harbour was surveyed. " * 4, version=1)
    assert fitted(messages, 200, record).plan.summary == record
    messages = numbered([system("rule " * 300), *dialogue(10, words=20), user("look at the berth " * 24)])
    record = summarizing(messages[1:-1], "ok", version=1)
    assert fitted(messages, 400, record).plan.summary == record, "another version of it would be as long"


@pytest.mark.parametrize("version", [8, 9])
def test_a_summary_that_is_cut_is_counted_with_its_next_version(version: int) -> None:
    def characters(message: Message) -> int:
        return len(message.text)

    messages = numbered([*dialogue(10, words=20), user("What now?")])
    record = summarizing(messages[:-1], "The harbour was surveyed. " * 40, version=version)
    record = replace(record, tokens_after=characters(summary_message(record)))
    goal = Goal(target_tokens=600, settle_tokens=600, ceiling_tokens=600)
    summary = (
        CompactionCoordinator(())
        .coordinate(
            messages,
            CompactionPlan("t", version=version, records=(record,)),
            tokens=list(map(characters, messages)),
            count_message=characters,
            rules=KeepRules(),
            goal=goal,
        )
        .plan.summary
    )
    assert summary
    assert summary.version == version + 1
    assert summary.tokens_after == characters(summary_message(summary))


def test_one_token_too_many_is_taken_from_a_message_or_a_summary_and_nothing_is_left_out() -> None:
    messages = numbered([system("rule " * 100), *dialogue(10, words=20), user("look at the berth " * 20)])
    record = summarizing(messages[1:-1], "The harbour was surveyed. " * 40, version=1)
    whole = fitted(messages, 10_000, record).tokens_after
    exact, shorter = (fitted(messages, limit, record) for limit in (whole, whole - 1))
    assert exact.plan.records == (record,)
    assert exact.rules == KeepRules()
    assert shorter.tokens_after < whole
    assert not shorter.plan.drops
    alone = numbered([system("rule " * 100), user("look at the berth " * 100)])
    assert fitted(alone, 500).plan.records == ()
    cut = fitted(alone, 499)
    assert [record.span.first for record in cut.plan.clearings] == ["m1"]
    assert cut.tokens_after > 400
    told = numbered([system("rule " * 100), *dialogue(10, words=20), user("And?")])
    whole = fitted(told, 10_000, record).tokens_after
    shorter = fitted(told, whole - 1, record)
    assert shorter.plan.summary
    assert shorter.plan.summary.version == 2
    assert not shorter.plan.drops


def test_the_parts_of_what_does_not_fit_are_what_it_needs_together() -> None:
    messages = numbered([system("rule " * 100), *dialogue(10, words=20), *tool_exchange("c", "ok")[:1], user("And?")])
    record = summarizing(messages[1:11], "The harbour was surveyed. " * 10, version=1)
    for limit in (20, 110):
        with pytest.raises(InsufficientBudget) as caught:
            fitted(messages, limit, record, may_drop=False)
        assert sum(caught.value.parts.values()) == caught.value.needed_tokens
        assert caught.value.parts["summary"] == 40
        assert caught.value.parts["overhead"] >= count(Message("tool", MISSING_RESULT))


def test_what_does_not_fit_is_told_by_part_as_the_prompt_takes_it() -> None:
    result = tool_exchange("c", "berth " * 30)
    messages = numbered([system("rule " * 3_000), *dialogue(3, words=20), *result, user("And now?")])
    dropped = DropRecord(span=SpanReference(("m2",)), strategy="mine", reason="old")
    stub = ClearRecord(span=SpanReference(("m8",)), strategy="clear", reason="old", tokens_after=9)
    with pytest.raises(InsufficientBudget) as caught:
        fitted(messages, 2_500, dropped, stub, may_drop=False)
    said = sum(count(messages[place]) for place in (1, 3, 4, 5, 6, 7, 9))
    line = count(Message("assistant", LEFT_OUT))
    assert caught.value.parts == {"system": 3_000, "dialogue": said, "stubs": 9 + line}


def _characters(message: Message) -> int:
    return len(message.text)


CALL, ANSWER = tool_exchange("c1", "one")


@pytest.mark.parametrize(
    ("items", "counted"),
    [([CALL], _characters), ([ANSWER], count), ([user("look"), CALL, user("and?"), ANSWER, user("more")], count)],
    ids=["a result is missing", "a result without its call", "both"],
)
def test_a_history_that_is_not_legal_takes_what_its_repairs_take(
    items: list[Wire], counted: Callable[[Message], int]
) -> None:
    messages = numbered([*dialogue(2), *items, user("What now?")])
    repaired, repairs = repair_chat([Slot(message, (message.id,)) for message in messages])
    needed = sum(counted(slot.message) for slot in repaired)
    result = fitted(messages, 10_000, count_message=counted)
    assert needed <= result.tokens_before <= needed + 20 * len(repairs)


@pytest.mark.parametrize("before", [dialogue(1), [*dialogue(2), *tool_exchange("c0", "zero")]])
def test_of_what_a_summary_stands_for_nothing_is_repaired(before: list[Wire]) -> None:
    messages = numbered([*before, CALL, user("and?"), *dialogue(2), user("What now?")])
    place = len(before)
    inside = summarizing(messages[place : place + 2], "They looked.", version=1)
    behind = summarizing(messages[place + 2 :], "They looked.", version=1)
    for record, repaired in ((inside, 0), (behind, 1)):
        result = fitted(messages, 10_000, record)
        shown = sum(count(message) for message in messages if message.id not in record.span.message_ids)
        repairs = result.tokens_before - shown - record.tokens_after - result.line_tokens
        assert (repairs >= count(Message("tool", MISSING_RESULT))) is bool(repaired)
        assert bool(repairs) is bool(repaired)


def test_stubs_keep_nothing_one_after_the_other_until_the_prompt_fits_to_the_last_token() -> None:
    """The oldest first; nothing else is cut for that."""
    text = "the berth is free " * 40
    runs = [tool_exchange(f"c{number}", text) for number in range(3)]
    messages = numbered([user("begin"), *(item for run in runs for item in run), user("What now?")])
    records = list[ClearRecord]()
    for place in (2, 4, 6):
        span = SpanReference((messages[place].id,))
        record = ClearRecord(span=span, strategy="clear", reason="old", kept=((0, 180),))
        records.append(replace(record, tokens_after=count(render_cleared(messages[place], record))))
    whole = fitted(messages, 10_000, *records).tokens_after
    bare = count(render_cleared(messages[2], replace(records[0], kept=())))
    freed = records[0].tokens_after - bare
    assert freed > 20
    limits = {whole: 0, whole - 1: 1, whole - freed: 1, whole - freed - 1: 2, whole - 2 * freed: 2}
    for limit, expected in limits.items():
        plan = fitted(messages, limit, *records).plan
        kept = {record.span.first: bool(record.kept) for record in plan.clearings}
        assert kept == {messages[place].id: place > 2 * expected for place in (2, 4, 6)}


# -- what is accepted ------------------------------------------------------------------------------------------------


class Proposing:
    """Proposes to drop messages, one after the other."""

    name = "propose"

    def __init__(self, *indices: int) -> None:
        self.indices = indices

    def propose(self, context: PlanningContext) -> list[CompactionProposal]:
        ids = [context.messages[index].id for index in self.indices]
        return [
            CompactionProposal(DropRecord(span=SpanReference((one,)), strategy=self.name, reason="old")) for one in ids
        ]


def accepted(limit: int, *indices: int, max_proposals: int = 100) -> tuple[list[str], list[tuple[int, int]]]:
    """What is dropped of six messages, the second of which is empty, and how many proposals were taken and refused."""
    messages = numbered(
        [user("berth " * 10), {"role": "assistant", "content": ""}, *[user("quay " * 10)] * 3, user("Go")]
    )
    result = CompactionCoordinator([Proposing(*indices)], max_proposals_per_run=max_proposals).coordinate(
        messages,
        CompactionPlan("t"),
        tokens=[len(message.text.split()) for message in messages],
        count_message=lambda message: len(message.text.split()),
        rules=KeepRules(),
        goal=Goal(target_tokens=limit, settle_tokens=10_000, ceiling_tokens=10_000),
    )
    dropped = [record.span.first for record in result.plan.drops]
    return dropped, [(made.accepted, made.rejected) for made in result.counts]


def test_proposals_are_taken_until_enough_is_freed_and_those_that_free_nothing_are_refused() -> None:
    assert accepted(41, 1, 0, 2, 3) == ([], [])
    assert accepted(40, 1, 0, 2, 3) == (["m0"], [(1, 1)])
    assert accepted(31, 1, 0, 2, 3) == (["m0"], [(1, 1)])
    assert accepted(30, 1, 0, 2, 3) == (["m0", "m2"], [(2, 1)])
    assert accepted(0, 1, 0, 2, 3, max_proposals=2) == (["m0", "m2"], [(2, 1)])
    assert accepted(0, 5) == (["m5"], [(1, 0)])
