"""Each strategy on its own: what it proposes, in which order, and what it leaves alone."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given

from compact.core.messages.entries import read_entry
from compact.core.messages.message import Message
from compact.core.messages.turn_order import LEFT_OUT
from compact.core.plan.durability import DeterminismMetadata, ToolDurability, ToolDurabilityPolicy, envelope, policy_for
from compact.core.plan.layers import KeepRules
from compact.core.plan.plan import ClearRecord, CompactionPlan, SpanReference, SummarizationRecord
from compact.core.plan.strategy import CompactionProposal, CompactionStrategy, Goal, PlanningContext
from compact.core.plan.turn import TurnContext
from compact.core.planning.coordinator import CompactionCoordinator, CompactionResult, ProposalCount
from compact.strategies import ClearStrategy, DeduplicateStrategy, DropStrategy, SummarizeStrategy, WindowStrategy
from compact.strategies.clear import head_range, outcome_lines
from compact.testing import WordTokenizer, check_strategy, dialogue, tool_exchange, tool_run, user
from conversations import Wire, histories

FLOOR = KeepRules(recent_turns=1, tool_io_pairs=1)
ALL = [
    DeduplicateStrategy(min_tokens=1),
    ClearStrategy(min_tokens=1),
    WindowStrategy(max_turns=1),
    SummarizeStrategy(),
    DropStrategy(),
]


def read(history: Sequence[Wire]) -> list[Message]:
    return [
        Message(m.role, m.content, m.tool_calls, m.tool_call_id, m.name, f"m{place}", m.meta)
        for place, m in enumerate((read_entry(item, "x") for item in history), 1)
    ]


def run(
    history: Sequence[Wire], *strategies: CompactionStrategy, rules: KeepRules = FLOOR, **goal: Any
) -> CompactionResult:
    messages, count = read(history), WordTokenizer().count_message
    return CompactionCoordinator(strategies).coordinate(
        messages,
        CompactionPlan("t"),
        tokens=[count(message) for message in messages],
        count_message=count,
        rules=rules,
        goal=Goal(**{"target_tokens": 0, "settle_tokens": 10**9, "ceiling_tokens": 10**9, **goal}),
        turn=goal.pop("turn", None),
    )


def cleared(result: CompactionResult) -> dict[str, str]:
    return {record.span.first: record.reason for record in result.plan.clearings}


@pytest.mark.parametrize("strategy", ALL, ids=lambda strategy: strategy.name)
@given(history=histories(max_size=20))
def test_every_strategy_passes_the_suite(strategy: CompactionStrategy, history: list[Wire]) -> None:
    check_strategy(strategy, read(history))


# -- deduplicate ---------------------------------------------------------------------------------------------------


def reads(*paths: str, tool: str = "read_file") -> list[Wire]:
    history: list[Wire] = [user("go")]
    for number, path in enumerate(paths):
        history += tool_exchange(f"c{number}", "word " * 100, tool=tool, path=path)
    return history


def test_a_read_that_was_repeated_is_stale() -> None:
    result = run(reads("a.py", "b.py", "a.py", "c.py"), DeduplicateStrategy())
    assert cleared(result) == {"m3": "read_file was called again, see m7"}


def test_a_read_whose_file_was_edited_later_is_stale() -> None:
    history = [
        *reads("a.py", "b.py"),
        *tool_exchange("e", "done", tool="edit_file", file_path="a.py"),
        *reads("z.py")[1:],
    ]
    assert cleared(run(history, DeduplicateStrategy())) == {"m3": "a.py was edited later, in m7"}


def test_an_edit_before_the_read_proves_nothing() -> None:
    history = [*tool_exchange("e", "done", tool="edit_file", path="a.py"), *reads("a.py", "b.py")]
    assert cleared(run(history, DeduplicateStrategy())) == {}


def test_what_only_looks_like_a_later_edit_or_read_makes_nothing_stale() -> None:
    """An editor that views, an edit that failed, and a read that failed."""
    view = {"command": "view", "path": "a.py"}
    viewed = tool_exchange("b", "1: x", tool="str_replace_based_edit_tool", **view)
    failed_edit = tool_exchange("b", "Error: no match found", tool="edit_file", path="a.py")
    failed_read = tool_exchange("b", "Error: permission denied", path="a.py")
    for later in (viewed, failed_edit, failed_read):
        history = [user("go"), *tool_exchange("a", "word " * 80, path="a.py"), *later, *tool_run(2), user("on")]
        assert cleared(run(history, DeduplicateStrategy())) == {}


def test_a_patch_is_an_edit_of_the_files_it_names() -> None:
    patch = "*** Begin Patch\n*** Update File: a.py\n@@\n-x\n+y\n*** End Patch"
    patched = tool_exchange("b", "Done", tool="apply_patch", input=patch)
    history = [user("go"), *tool_exchange("a", "word " * 80, path="a.py"), *patched, *tool_run(2), user("on")]
    assert list(cleared(run(history, DeduplicateStrategy())).values()) == ["a.py was edited later, in m5"]


def test_commands_run_twice_are_two_events() -> None:
    assert cleared(run(reads("a", "a", "b", tool="bash"), DeduplicateStrategy())) == {}


# -- clear ---------------------------------------------------------------------------------------------------------


def test_old_results_go_oldest_first_and_only_as_many_as_needed() -> None:
    result = run(tool_run(10, words=200), ClearStrategy(keep_head_chars=0), target_tokens=1_700)
    assert list(cleared(result)) == ["m3", "m5"]


def test_the_last_results_of_a_tool_stay() -> None:
    history = [*tool_run(5, words=200), *tool_run(5, words=200, tool="search")]
    result = run(history, ClearStrategy(keep_last=2))
    assert list(cleared(result)) == ["m3", "m5", "m7", "m14", "m16", "m18"]


def test_young_results_stay() -> None:
    history = [m for _ in range(4) for m in tool_run(1, words=200)]
    assert list(cleared(run(history, ClearStrategy(keep_turns=2)))) == ["m3", "m6"]


def test_a_tools_own_policy_overrules_the_default() -> None:
    history = [*tool_run(4, words=200), *tool_run(4, words=200, tool="weather"), *tool_run(2, words=200, tool="facts")]
    policies = {"weather*": ToolDurabilityPolicy(keep_last=3)}
    result = run(history, ClearStrategy(policies=policies, never_evict=("facts",)))
    assert list(cleared(result)) == ["m3", "m5", "m7", "m9", "m12"]


def test_what_cannot_be_had_again_is_never_cleared() -> None:
    history = [*tool_run(3, words=200, tool="ask_user"), *tool_run(1)]
    assert cleared(run(history, ClearStrategy())) == {}


def test_anchoring_results_keep_their_key_fields() -> None:
    result = json.dumps({"id": "b-7", "status": "open", "body": "word " * 300})
    history = [user("go"), *tool_exchange("c", result, tool="create_booking"), *tool_run(2)]
    record = run(history, ClearStrategy()).plan.clearings[0]
    assert record.preserved_fields == {"id": "b-7", "status": "open"}


def test_lines_that_tell_how_it_went_stay() -> None:
    text = "collecting\n" + "dots\n" * 300 + "FAILED tests/test_a.py\nnote\n1 failed, 3 passed"
    assert [text[a:b] for a, b in outcome_lines(text, 2)] == ["FAILED tests/test_a.py", "1 failed, 3 passed"]
    assert outcome_lines("error " * 400, 2) == ()
    assert outcome_lines("an error", 0) == ()


def test_a_cleared_result_keeps_the_lines_that_say_how_it_went() -> None:
    text = "word " * 200 + "\nfatal: the disk is full\n" + "word " * 200
    history = [*tool_exchange("a", text), *tool_exchange("b", "read", path="b.py"), *dialogue(1)]
    (record,) = run(history, ClearStrategy(min_tokens=100, keep_head_chars=0)).plan.clearings
    assert [text[start:end] for start, end in record.kept] == ["fatal: the disk is full"]


def test_a_cleared_result_keeps_how_it_begins() -> None:
    text = "\n".join(f"line {number} of the file" for number in range(200))
    history = [*tool_exchange("a", text), *tool_exchange("b", "read", path="b.py"), *dialogue(1)]
    (record,) = run(history, ClearStrategy(min_tokens=100), target_tokens=1, settle_tokens=500).plan.clearings
    ((start, end),) = record.kept
    assert text[start:end].startswith("line 0 of the file\nline 1")
    assert text[end] == "\n"
    assert 200 < end <= 300
    assert head_range("short text without much in it", 300) == ((0, 10),)
    assert head_range("x" * 900, 300) == ((0, 300),)
    assert head_range("", 300) == head_range(text, 0) == ()


def test_where_nothing_else_fits_a_stub_alone_stands_for_a_result() -> None:
    """Without a summary to take them in; the newest keep how they begin, as far as there is room."""
    text = "\n".join(f"line {number} of the file" for number in range(200))
    history = [m for n in range(40) for m in tool_exchange(f"c{n}", text, path=f"{n}.py")] + dialogue(1)
    with_heads = run(history, ClearStrategy(min_tokens=100))
    limit = with_heads.tokens_after - 600
    result = run(history, ClearStrategy(min_tokens=100), target_tokens=limit, settle_tokens=limit, ceiling_tokens=limit)
    assert limit - 60 < result.tokens_after <= limit
    in_order = sorted(result.plan.clearings, key=lambda record: int(record.span.first.removeprefix("m")))
    kept = [bool(record.kept) for record in in_order]
    assert kept == sorted(kept)
    assert len(set(kept)) == 2


def test_the_stub_says_if_calling_again_gives_the_same() -> None:
    exchange = tool_exchange("c", "word " * 200)
    exchange[1]["meta"] = {"determinism": {"etag": "abc"}}
    assert (
        "calling it again gives the same" in cleared(run([user("go"), *exchange, *tool_run(2)], ClearStrategy()))["m3"]
    )


def test_a_message_may_say_how_durable_it_is() -> None:
    exchange = tool_exchange("c", "word " * 200)
    exchange[1]["meta"] = {"durability": "non_replayable"}
    assert cleared(run([user("go"), *exchange, *tool_run(1)], ClearStrategy())) == {}


def test_a_message_that_says_how_durable_it_is_keeps_the_fields_of_its_tool_or_the_usual_ones() -> None:
    fields = {"id": "b-7", "seat": {"row": "Ä"}, "body": "word"}
    message = Message("tool", json.dumps(fields), meta={"durability": "anchoring"})
    for policies, kept in (
        ({}, {"id": "b-7"}),
        ({"look": ToolDurabilityPolicy(preserve_fields=("seat",))}, {"seat": '{"row": "Ä"}'}),
    ):
        wrapped = envelope(message, tool_name="look", arguments="", policies=policies)
        assert wrapped.policy.durability is ToolDurability.ANCHORING
        assert wrapped.preserved_fields() == kept


def test_default_durabilities() -> None:
    expected = {
        "ask_user": ToolDurability.NON_REPLAYABLE,
        "Think": ToolDurability.EPHEMERAL,
        "create_ticket": ToolDurability.ANCHORING,
        "read_file": ToolDurability.REPLAYABLE,
    }
    assert {name: policy_for(name, {}).durability for name in expected} == expected
    assert not DeterminismMetadata().is_verifiable
    assert (
        envelope(Message("tool", "no json"), tool_name="create_x", arguments="", policies={}).preserved_fields() == {}
    )


# -- window, summarize, drop ---------------------------------------------------------------------------------------


def test_the_window_drops_old_dialogue_and_leaves_tools_alone() -> None:
    history = [*dialogue(5, words=20), *tool_exchange("c", "word " * 50), user("now")]
    result = run(history, WindowStrategy(max_turns=2))
    assert [record.span.first for record in result.plan.drops] == [f"m{n}" for n in range(1, 9)]
    assert result.plan.drops[0].reason == "outside the dialogue window of 2 turns"


def test_the_window_can_be_a_number_of_tokens() -> None:
    result = run(dialogue(5, words=20), WindowStrategy(max_tokens=100))
    assert [record.span.first for record in result.plan.drops] == [f"m{n}" for n in range(1, 6)]


def test_the_remainder_is_one_span_and_the_summary_weighs_its_most_until_written() -> None:
    result = run(dialogue(20, words=100), SummarizeStrategy(max_tokens=500))
    record = result.pending_summary
    assert record is not None
    assert len(record.span) == 38
    assert record.tokens_after == record.max_tokens == 500
    assert result.tokens_after == 200 + 500 + len(LEFT_OUT.split())


def test_a_summary_never_takes_more_than_a_share_of_what_it_replaces() -> None:
    record = run(dialogue(20, words=20), SummarizeStrategy(max_tokens=5_000, target_token_ratio=0.25)).pending_summary
    assert record is not None
    assert record.max_tokens == 38 * 20 // 4


def test_nothing_is_summarised_in_a_turn_that_brought_something_back() -> None:
    turn = TurnContext(1).with_rehydrated("a-1")
    messages, count = read(dialogue(20, words=100)), WordTokenizer().count_message
    result = CompactionCoordinator([SummarizeStrategy()]).coordinate(
        messages,
        CompactionPlan("t"),
        tokens=[count(m) for m in messages],
        count_message=count,
        rules=FLOOR,
        goal=Goal(target_tokens=0, settle_tokens=10**9, ceiling_tokens=10**9),
        turn=turn,
    )
    assert result.plan.records == ()


def test_only_cleared_ephemeral_exchanges_are_dropped_and_whole() -> None:
    history = [*tool_run(3, words=200, tool="think"), *tool_run(3, words=200)]
    result = run(history, ClearStrategy(), DropStrategy())
    assert [record.span.message_ids for record in result.plan.drops] == [("m2", "m3"), ("m4", "m5"), ("m6", "m7")]
    assert run(history, DropStrategy()).plan.records == ()


# -- the coordinator -----------------------------------------------------------------------------------------------


class Lying:
    """Claims to free a lot."""

    name = "lying"

    def propose(self, context: PlanningContext) -> list[CompactionProposal]:
        ids = [context.messages[i].id for i in sorted(context.layers.remainder)]
        record = ClearRecord(
            span=SpanReference((ids[0],)), strategy=self.name, reason="x", tokens_before=10**6, kept=((0, 10**6),)
        )
        return [CompactionProposal(record)]


class Failing:
    name = "failing"

    def propose(self, context: PlanningContext) -> list[CompactionProposal]:
        raise RuntimeError("a bug in a plug-in")


def test_what_the_agent_said_is_not_dropped_with_its_call() -> None:
    def spoken(text: str | None) -> CompactionResult:
        first, *rest = tool_exchange("a", "word " * 200, tool="progress_note")
        history = [user("go"), {**first, "content": text}, *rest, *tool_run(2), *dialogue(2)]
        return run(history, ClearStrategy(), DropStrategy())

    assert spoken(None).plan.drops
    assert not spoken("I keep the legacy API because of ACME.").plan.drops


def test_savings_are_measured_not_believed() -> None:
    result = run(dialogue(5, words=50), Lying())
    assert result.plan.records == ()
    assert result.tokens_freed == 0
    assert result.counts == (ProposalCount("lying", accepted=0, rejected=1, tokens_freed=0),)


def test_a_strategy_that_fails_is_left_out_and_named() -> None:
    result = run(tool_run(10, words=200), Failing(), ClearStrategy())
    assert [failure.strategy for failure in result.failures] == ["failing"]
    assert len(result.plan.clearings) == 9


def test_cheap_before_expensive_stops_at_the_target() -> None:
    history = [*reads("a.py", "a.py", "b.py", "c.py", "d.py", "e.py"), *dialogue(5, words=100)]
    all_of_them = (DeduplicateStrategy(), ClearStrategy(keep_head_chars=0), SummarizeStrategy(), DropStrategy())
    before = run(history).tokens_before
    strategies = lambda saving: dict(run(history, *all_of_them, target_tokens=before - saving).proposals)  # noqa: E731
    assert strategies(50) == {"deduplicate": 1}
    assert strategies(150) == {"deduplicate": 1, "clear": 1}
    assert strategies(900)["summarize"] == 1


def test_a_summary_makes_the_stubs_below_it_superfluous() -> None:
    result = run([*tool_run(10, words=200), *dialogue(5, words=100)], ClearStrategy(), SummarizeStrategy())
    assert dict(result.proposals) == {"summarize": 1}
    assert {type(record) for record in result.plan.records} == {SummarizationRecord}
