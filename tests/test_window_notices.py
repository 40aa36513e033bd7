"""What a manager says about its window when it is made, and why its trigger is where it is."""

from __future__ import annotations

from typing import Any

import pytest

from compact import CompactConfig, CompactManager
from compact.assembly.budget import build_budget
from compact.assembly.summaries import summary_window
from compact.core.engine.events import NoticeEvent
from compact.model_engines.window_notices import model_notices, threshold_notices
from compact.testing import RecordingSink

QUIET: dict[str, Any] = {"telemetry": {"exporter": "none"}, "state": {"url": "memory:"}, "storage": {"adapter": "none"}}


def notices(**settings: Any) -> list[str]:
    config = CompactConfig(**settings)
    return [*model_notices(config), *threshold_notices(config, build_budget(config))]


@pytest.mark.parametrize("model", ["gpt-4o", "gpt-5", "claude-sonnet-4-5", "claude-opus-4-6", "gemini-2.5-pro"])
def test_a_known_model_at_its_defaults_is_made_without_a_word(model: str) -> None:
    sink = RecordingSink()
    CompactManager(CompactConfig(model=model, **QUIET), on_event=sink).close()
    assert sink.of(NoticeEvent) == []


def test_a_manager_tells_what_is_not_known() -> None:
    sink = RecordingSink()
    CompactManager(CompactConfig(model="gtp-4o", **QUIET), on_event=sink).close()
    first, *_ = [event.message for event in sink.of(NoticeEvent)]
    assert first == (
        "the context window of model 'gtp-4o' is not known: using 32,000 tokens; set max_context_tokens to its window; "
        "did you mean 'gpt-4o'?"
    )


def test_a_window_that_is_set_is_not_asked_for() -> None:
    assert not any("window" in notice for notice in notices(model="my-model", max_context_tokens=64_000))
    assert notices(model="qwen3:32b", max_context_tokens=16_384) == []


def test_a_small_window_says_that_its_buffer_moves_the_trigger() -> None:
    assert notices(max_context_tokens=4_000) == [
        "policy.hard_cap_buffer (1,500) leaves 2,500 of 4,000 tokens: compaction starts there, and not at "
        "policy.trigger_pct (3,400 tokens)"
    ]
    sink = RecordingSink()
    CompactManager(CompactConfig(max_context_tokens=4_000, **QUIET), on_event=sink).close()
    assert [event.message for event in sink.of(NoticeEvent)] == notices(max_context_tokens=4_000)
    assert notices(max_context_tokens=10_000) == []
    assert notices(max_context_tokens=4_000, policy={"hard_cap_buffer": 600}) == []
    assert notices(max_context_tokens=4_000, policy={"trigger_tokens": 1_000}) == []


@pytest.mark.parametrize(
    ("policy", "trigger", "says"),
    [
        ({}, 200_000, []),
        ({"trigger_pct": 0.85}, 200_000, []),
        ({"trigger_pct": 0.1}, 100_000, []),
        ({"trigger_pct": 0.5}, 200_000, ["policy.trigger_pct (0.5) would be 500,000 tokens"]),
        ({"trigger_tokens": 400_000}, 400_000, []),
        ({"trigger_tokens": 900_000}, 850_000, ["policy.trigger_tokens (900,000) is not reached"]),
        ({"trigger_tokens": 1_000_000}, 850_000, []),
        ({"target_tokens": 50_000}, 200_000, []),
        ({"target_tokens": 300_000}, 200_000, ["policy.target_tokens (300,000) is not below"]),
    ],
)
def test_a_large_window(policy: dict[str, Any], trigger: int, says: list[str]) -> None:
    """Compacted at 200,000 tokens unless `trigger_tokens` says otherwise; a setting that does not decide is named."""
    settings: dict[str, Any] = {"model": "claude-opus-4-6", "policy": policy}
    assert build_budget(CompactConfig(**settings)).trigger_tokens == trigger
    found = notices(**settings)
    assert len(found) == len(says)
    assert all(text.startswith(start) for text, start in zip(found, says, strict=True))


@pytest.mark.parametrize("window", [1_000, 8_192, 128_000, 200_000, 256_000])
def test_windows_up_to_256k_have_their_share(window: int) -> None:
    config = CompactConfig(max_context_tokens=window, policy={"hard_cap_buffer": 0})
    budget = build_budget(config)
    shares = (round(0.85 * window), round(0.7 * window), round(0.5 * window))
    assert (budget.trigger_tokens, budget.prefetch_tokens, budget.target_tokens) == shares
    assert budget.trigger_reason == ""


def test_the_largest_input_can_be_set() -> None:
    budget = build_budget(CompactConfig(max_context_tokens=200_000, max_input_tokens=100_000))
    assert (budget.trigger_tokens, budget.ceiling_tokens) == (85_000, 98_500)
    unknown = build_budget(CompactConfig(model="my-model", max_input_tokens=100_000))
    assert (unknown.max_context_tokens, unknown.trigger_tokens) == (100_000, 85_000)


def test_a_window_above_the_known_one_is_believed() -> None:
    """Whoever sends a beta header knows more than the table."""
    assert build_budget(CompactConfig(model="gpt-5", max_context_tokens=300_000)).input_tokens == 272_000
    assert build_budget(CompactConfig(model="gpt-5", max_context_tokens=800_000)).input_tokens == 800_000


def test_a_summariser_reads_no_more_than_its_model_takes() -> None:
    assert summary_window(CompactConfig(summarizer={"model": "gpt-5"}), "gpt-5", lambda _: None) == 272_000


def test_status_and_decision_say_why_the_trigger_is_there() -> None:
    manager = CompactManager(CompactConfig(model="claude-opus-4-6", **QUIET))
    manager.preflight("s", [{"role": "user", "content": "hello"}])
    status = manager.status("s")
    assert status.trigger_reason == "the default for windows above 256,000 tokens"
    assert "trigger the default for windows above 256,000 tokens" in str(status)
    assert status.decision is not None
    assert "trigger of 200,000 (the default for windows above 256,000 tokens)" in status.decision.reason
    manager.close()


def test_a_plain_trigger_needs_no_reason() -> None:
    manager = CompactManager(CompactConfig(**QUIET))
    manager.preflight("s", [{"role": "user", "content": "hello"}])
    decision = manager.status("s").decision
    assert decision is not None
    assert decision.reason.endswith("below the trigger of 108,800")
    manager.close()
