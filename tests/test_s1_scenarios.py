"""The specification's scenarios for budget, trigger, protection, pruning, layers, configuration and manual compaction,
each test named after its scenario and using its numbers."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from compact import CompactConfig, CompactManager, ConfigError, InsufficientBudget, StructuredSummary, SummaryRequest
from compact.assembly.budget import build_budget
from compact.core.engine.events import (
    CompactionCompletedEvent,
    CompactionErrorEvent,
    PrunedMessagesEvent,
    SummaryCreatedEvent,
    TokenEstimateEvent,
    TriggerDecisionEvent,
)
from compact.core.facts.ledger import FactKind
from compact.core.messages.message import Message
from compact.summarizers.extractive import extractive_summary
from compact.testing import (
    RecordingSink,
    Wire,
    WordTokenizer,
    assistant,
    dialogue,
    system,
    tool_exchange,
    tool_run,
    user,
)
from sizes import SCALE
from soak_counts import SoakCounts

OVERHEAD = 3  # what primes the reply


def words(count: int) -> str:
    return " ".join(["word"] * count)


def watched(window: int = 128_000, **plugs: Any) -> tuple[CompactManager, RecordingSink]:
    sink = RecordingSink()
    settings = {"max_context_tokens": window, **plugs.pop("settings", {})}
    config = CompactConfig(model="gpt-4", **settings)
    return CompactManager(config, **{"tokenizer": WordTokenizer(), "on_event": sink, **plugs}), sink


def conversation_of(tokens: int) -> list[Wire]:
    """Ten pairs that together with the overhead take exactly so many tokens."""
    share, rest = divmod(tokens - OVERHEAD, 20)
    sizes = [share + (place < rest) for place in range(20)]
    return [(user if place % 2 == 0 else assistant)(words(size)) for place, size in enumerate(sizes)]


# -- Token Budget Monitoring -------------------------------------------------------------------------------------


def test_accurate_token_estimation_using_tiktoken() -> None:
    tiktoken = pytest.importorskip("tiktoken")
    assert tiktoken
    sink = RecordingSink()
    manager = CompactManager(CompactConfig(model="gpt-4", max_context_tokens=128_000), on_event=sink)
    tools = [{"type": "function", "function": {"name": "read_file", "description": "Read", "parameters": {}}}]
    history = [system("be careful"), {"role": "developer", "content": "never guess"}, *dialogue(10, words=30)]
    for number in range(5):
        history += tool_exchange(f"c{number}", words(40))
    manager.preflight("s", history, tools=tools)
    start = time.thread_time()
    manager.preflight("s", [*history, user("and now?")], tools=tools)
    assert time.thread_time() - start < 0.1  # 10 ms by the specification; some machines are slow
    estimate = sink.of(TokenEstimateEvent)[-1]
    assert estimate.breakdown["system"] > 2
    assert estimate.breakdown["developer"] > 2
    assert estimate.breakdown["tools_schema"] > 0
    assert sum(estimate.breakdown.values()) + OVERHEAD == estimate.t_est


def test_budget_calculation_with_buffer_reserve() -> None:
    budget = build_budget(CompactConfig(max_context_tokens=128_000, policy={"hard_cap_buffer": 1_500}))
    assert budget.available_tokens == budget.ceiling_tokens == 126_500


# -- Compaction Trigger Thresholds -------------------------------------------------------------------------------


def test_automatic_trigger_at_85_percent_threshold() -> None:
    manager, sink = watched()
    manager.preflight("s", conversation_of(108_800))
    assert sink.of(TokenEstimateEvent)[0].t_est == 108_800
    assert sink.of(TriggerDecisionEvent)[0].triggered is True
    assert manager.status("s").thresholds["trigger"] == 108_800


def test_one_token_below_the_threshold_does_not_trigger() -> None:
    manager, sink = watched()
    manager.preflight("s", conversation_of(108_799))
    assert sink.of(TriggerDecisionEvent)[0].triggered is False


def test_no_trigger_below_threshold() -> None:
    manager, sink = watched()
    history = conversation_of(96_000)
    assert manager.preflight("s", history) == history
    decision = sink.of(TriggerDecisionEvent)[0]
    assert decision.triggered is False
    assert decision.policy["trigger_pct"] == 0.85
    assert "96,000 tokens, 75.0%" in decision.reason


# -- Manual Compaction Command -----------------------------------------------------------------------------------


def test_manual_compaction_via_api() -> None:
    manager, sink = watched()
    history = dialogue(20, words=50)
    out = manager.manual_compact("s", history, note="user-requested")
    assert len(out) < len(history)
    assert sink.of(TriggerDecisionEvent)[-1].note == "user-requested"
    assert "user-requested" in sink.of(CompactionCompletedEvent)[-1].reason


# -- Protected Memory --------------------------------------------------------------------------------------------


def test_protected_message_never_pruned() -> None:
    given: list[Message] = []

    def summarizer(request: SummaryRequest) -> StructuredSummary:
        given.extend(request.messages)
        return extractive_summary(request)

    manager, _ = watched(summarizer=summarizer)
    criteria = user("never delete a booking", protected=True)
    history = [*dialogue(10, words=50), criteria, *dialogue(10, words=50)]
    out = manager.manual_compact("s", history)
    assert user("never delete a booking") in out, "as it came, but for our own mark"
    assert given
    assert "never delete a booking" not in [message.text for message in given]


@pytest.mark.parametrize("role", ["system", "developer"])
def test_role_based_protection(role: str) -> None:
    manager, _ = watched()
    rule = {"role": role, "content": "be careful"}
    out = manager.manual_compact("s", [rule, *dialogue(20, words=50)])
    assert out[0] is rule


def test_budget_exhaustion_with_protected_only_messages() -> None:
    manager, sink = watched(window=1_000, settings={"policy": {"hard_cap_buffer": 100}})
    with pytest.raises(InsufficientBudget) as caught:
        manager.preflight("s", [system(words(2_000)), user("hello there")])
    assert "reduce protected memory" in str(caught.value)
    assert "increase the model context limit" in str(caught.value)
    assert caught.value.parts["system"] == 2_000
    assert caught.value.budget_tokens == 900
    assert sink.of(CompactionErrorEvent)[0].error_type == "InsufficientBudget"


# -- History Pruning Policies ------------------------------------------------------------------------------------


def test_keep_recent_turns_policy() -> None:
    manager, _ = watched()
    history = dialogue(20, words=50)
    out = manager.manual_compact("s", history)
    assert out[-12:] == history[-12:]
    assert all(mine is theirs for mine, theirs in zip(out[-12:], history[-12:], strict=True))
    summary = manager.current_plan("s").summary
    assert summary is not None
    assert len(summary.span) == 28  # 14 pairs


def test_keep_tool_io_pairs_policy() -> None:
    manager, _ = watched()
    history = tool_run(10, words=50)
    out = manager.manual_compact("s", history)
    assert out[-8:] == history[-8:]
    summary = manager.current_plan("s").summary
    assert summary is not None
    assert len(summary.span) == 12  # 6 calls with their results


def test_incremental_reduction_on_budget_overflow() -> None:
    manager, sink = watched(window=1_000, settings={"policy": {"hard_cap_buffer": 0}})
    manager.preflight("s", dialogue(6, words=100))  # 1,200 tokens, all of them recent
    kept = sink.of(TriggerDecisionEvent)[-1].kept
    assert 1 <= kept["recent_turns"] < 6
    assert manager.status("s").used_tokens <= 1_000


def test_reduction_goes_one_by_one_and_in_turn_to_the_floor() -> None:
    from compact.core.plan.layers import KeepRules

    steps = [(r.recent_turns, r.tool_io_pairs) for r in KeepRules(recent_turns=3, tool_io_pairs=4).reductions()]
    assert steps == [(3, 4), (2, 4), (2, 3), (1, 3), (1, 2), (1, 1)]


def test_at_the_floor_an_oversized_message_is_cut_to_its_best_lines() -> None:
    manager, sink = watched(window=1_000, settings={"policy": {"hard_cap_buffer": 0}})
    text = "START " + words(2_500) + "\nberth_42 is under repair\n" + words(2_500) + " END"
    out = manager.preflight("s", [system("be careful"), user(text)])
    assert out[-1]["content"].startswith("START")
    assert out[-1]["content"].endswith("END")
    assert "berth_42 is under repair" in out[-1]["content"]
    assert "[shortened: " in out[-1]["content"]
    assert manager.status("s").used_tokens <= 1_000
    assert sink.of(CompactionErrorEvent) == []


def test_at_the_floor_what_cannot_be_cut_raises() -> None:
    manager, _ = watched(window=1_000, settings={"policy": {"hard_cap_buffer": 0}})
    with pytest.raises(InsufficientBudget):
        manager.preflight("s", [user(words(5_000), protected=True)])


# -- Memory Layers -----------------------------------------------------------------------------------------------


def test_three_layer_output_structure() -> None:
    manager, sink = watched()
    criteria = user("never delete a booking", protected=True)
    history = [system("be careful"), *dialogue(10, words=50), criteria, *dialogue(10, words=50)]
    out = manager.manual_compact("s", history)
    assert out[0] is history[0]
    assert out[1] == user("never delete a booking")
    assert out[2]["role"] == "assistant"
    assert out[2]["content"].startswith("<COMPACT-SUMMARY v1>")
    assert out[3:] == history[-12:]
    assert sink.of(PrunedMessagesEvent)[-1].layers == {"pinned": 2, "summary": 1, "recent": 12}


def test_rolling_session_summary_replacement() -> None:
    requests: list[SummaryRequest] = []

    def summarizer(request: SummaryRequest) -> StructuredSummary:
        requests.append(request)
        return extractive_summary(request)

    manager, _ = watched(summarizer=summarizer)
    history = [user("the original task"), *dialogue(20, words=50)]
    first = manager.manual_compact("s", history)
    second = manager.manual_compact("s", [*first, *dialogue(20, words=60)])
    summaries = [m["content"] for m in second if "<COMPACT-SUMMARY" in m["content"]]
    assert len(summaries) == 1
    assert summaries[0].startswith("<COMPACT-SUMMARY v2>")
    assert "the original task" in summaries[0]
    assert requests[1].previous is not None
    assert requests[1].previous.ledger.subject_of(FactKind.TASK) == "the original task"


# -- Configuration System ----------------------------------------------------------------------------------------


def test_yaml_configuration_loading(tmp_path: Path) -> None:
    file = tmp_path / "compact.yaml"
    file.write_text("model: gpt-4\nmax_context_tokens: 128000\npolicy:\n  trigger_pct: 0.9\n")
    assert CompactConfig.load(file).policy.trigger_pct == 0.9
    file.write_text("policy:\n  trigger_pct: 1.5\n")
    with pytest.raises(ConfigError, match=r"policy\.trigger_pct must be 0\.0-1\.0"):
        CompactConfig.load(file)


def test_environment_variable_overrides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "compact.yaml"
    file.write_text("policy:\n  trigger_pct: 0.85\n  keep_recent_turns: 3\n")
    monkeypatch.setenv("COMPACT_TRIGGER_PCT", "0.9")
    policy = CompactConfig.load(file).policy
    assert policy.trigger_pct == 0.9
    assert policy.keep_recent_turns == 3


def test_sensible_defaults() -> None:
    policy = CompactConfig().policy
    assert policy.trigger_pct == 0.85
    assert policy.hard_cap_buffer == 1500
    assert policy.keep_recent_turns == 6
    assert policy.keep_tool_io_pairs == 4
    assert list(policy.roles_never_prune) == ["system", "developer"]
    assert policy.summary_form == "task_state"


# -- Failure Mode Handling, Deterministic Testing, Coverage -------------------------------------------------------


def test_summarization_api_failure_fallback() -> None:
    def summarizer(request: SummaryRequest) -> StructuredSummary:
        raise ConnectionError("no route to the model")

    manager, sink = watched(summarizer=summarizer)
    history = [user("the original task"), *dialogue(20, words=50)]
    out = manager.manual_compact("s", history)
    error = sink.of(CompactionErrorEvent)[0]
    assert (error.error_type, error.fallback) == ("ConnectionError", "pruning-only")
    assert len(out) < len(history)
    assert "the original task" in out[1]["content"]
    assert sink.of(SummaryCreatedEvent) == []


def test_property_test_invariants() -> None:
    """A hundred runs of ever different sizes: protected items stay, and the result is within the budget."""
    for run in range(100):
        manager, _ = watched(window=2_000 + 37 * run)
        rule = user(f"rule {run}", protected=True)
        out = manager.preflight("s", [*dialogue(run % 17 + 5, words=60 + run), rule, *tool_run(run % 11 + 3, words=70)])
        assert user(f"rule {run}") in out
        assert manager.status("s").used_tokens <= 500 + 37 * run


def test_synthetic_long_session_test() -> None:
    """Three times the window, one call after the other: several rounds, never an error, never over the budget."""
    manager, sink = watched(window=128_000)
    history: list[Wire] = [system("be careful")]
    total = 0
    while total < 384_000:
        history += [user(words(500)), *tool_exchange(f"c{total}", words(1_500)), assistant(words(200))]
        total += 2_200
        manager.preflight("s", history)
        assert manager.status("s").used_tokens <= 126_500
    assert len(sink.of(CompactionCompletedEvent)) >= 3
    assert sink.of(CompactionErrorEvent) == []


@pytest.mark.soak
def test_soak_a_thousand_runs_without_a_context_error(soak: SoakCounts) -> None:
    manager, sink = watched(window=1_500, settings={"policy": {"hard_cap_buffer": 50}})
    for run in range(1_000 * SCALE):
        session = f"s{run % 40}"
        density = run % 7
        manager.preflight(session, [user(words(30 + run % 90)), *tool_run(density, words=run % 300 + 1)])
        soak.add()
    assert sink.of(CompactionErrorEvent) == []
    assert len(sink.of(CompactionCompletedEvent)) > 50
