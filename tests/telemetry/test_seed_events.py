"""Events as they were specified: emitted by every call, one that fails included, and with all that they promise."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from compact import CompactConfig, CompactManager, InsufficientBudget, StructuredSummary, SummaryRequest
from compact.core.engine.events import (
    CompactionErrorEvent,
    CompactionEvent,
    ContentSummarizedEvent,
    NoticeEvent,
    OperationEndedEvent,
    PromptReadyEvent,
    PrunedMessagesEvent,
    TokenEstimateEvent,
    TriggerDecisionEvent,
)
from compact.core.errors import SummarizerUnavailable
from compact.telemetry import CompositeEventEmitter, MetricsCollector
from compact.testing import RecordingSink, Wire, WordTokenizer, dialogue, system, tool_exchange, user
from telemetry.event_samples import full_history, watched


def broken(request: SummaryRequest) -> StructuredSummary:
    raise SummarizerUnavailable("no answer")


def policy_text() -> Wire:
    return {
        "role": "developer",
        "content": "never log personal data",
        "id": "policy-1",
        "meta": {"protected": True, "label": "Security Policy"},
    }


def test_a_budget_that_cannot_be_met_is_decided_too() -> None:
    """The decision stands before the error, and names what had to stay."""
    sink = RecordingSink()
    with watched(on_event=sink) as manager:
        history = [policy_text(), {**user("word " * 5_000), "meta": {"protected": True}}, *dialogue(2)]
        with pytest.raises(InsufficientBudget):
            manager.preflight("s", history)
        status = manager.status("s").decision
    (decision,) = sink.of(TriggerDecisionEvent)
    (error,) = sink.of(CompactionErrorEvent)
    assert decision.triggered
    assert decision.reason.endswith("even the smallest prompt does not fit")
    assert decision.kept["pinned"] == 2
    assert decision.protected_labels == {"policy-1": "Security Policy"}
    assert set(decision.protected_ids) > {"policy-1"}
    assert (error.error_type, error.status) == ("InsufficientBudget", "error")
    assert sink.events.index(decision) < sink.events.index(error)
    assert status is not None
    assert status.reason == decision.reason
    assert sink.of(PromptReadyEvent) == []


def test_a_summary_that_raises_is_decided_too() -> None:
    sink = RecordingSink()
    config = CompactConfig(max_context_tokens=4_000, summarizer={"on_failure": "raise"}, telemetry={"exporter": "none"})
    manager = CompactManager(config, tokenizer=WordTokenizer(), on_event=sink, summarizer=broken)
    with manager, pytest.raises(SummarizerUnavailable):
        manager.preflight("s", full_history())
    (decision,) = sink.of(TriggerDecisionEvent)
    assert decision.reason.endswith("the summary failed and on_failure is raise")
    (error,) = sink.of(CompactionErrorEvent)
    assert error.fallback == "none: on_failure is raise"
    assert error.instead == "nothing, the error is raised, as on_failure says"


def test_every_call_measures_and_decides() -> None:
    sink = RecordingSink()
    with watched(on_event=sink) as manager:
        manager.preflight("s", full_history()[:4])
        manager.manual_compact("s", full_history(), "tidy")
        manager.preflight("s", full_history())
    ended = [event.operation for event in sink.of(OperationEndedEvent) if not event.parent_id]
    assert ended == ["preflight", "manual_compact", "preflight"]
    assert len(sink.of(TokenEstimateEvent)) == len(sink.of(TriggerDecisionEvent)) == len(sink.of(PromptReadyEvent)) == 3
    manual = sink.of(TokenEstimateEvent)[1]
    assert manual.t_est > 3_000
    assert sum(manual.breakdown.values()) == manual.t_est - 3  # what primes the reply is nobody's


def test_what_is_returned_is_measured_after_the_compaction() -> None:
    """The window is never exceeded, so the ratio never says so."""
    sink, metrics = RecordingSink(), MetricsCollector()
    with watched(on_event=CompositeEventEmitter([sink, metrics])) as manager:
        manager.preflight("s", full_history() + dialogue(20, words=60))
        (call,) = manager.model_calls("s")
    assert sink.of(TokenEstimateEvent)[0].usage_pct > 1
    (ready,) = sink.of(PromptReadyEvent)
    assert ready.tokens == call.tokens_estimated
    assert ready.messages == call.messages
    assert metrics.global_metrics.last_usage_pct == ready.usage_pct < 0.85


def test_a_summary_is_told_of_with_the_messages_that_are_new_to_it() -> None:
    """Each message is summarised once, however often the summary is written anew."""
    sink = RecordingSink()
    with watched(on_event=sink) as manager:
        history = full_history()
        for number in range(4):
            manager.preflight("s", history)
            history += tool_exchange(f"later-{number}", "word " * 1_500) + dialogue(1, words=60)
        span = manager.current_plan("s").summary
    told = sink.of(ContentSummarizedEvent)
    assert len(told) >= 3
    ids = [message_id for event in told for message_id in event.message_ids]
    assert span
    assert sorted(ids) == sorted(span.span)


def test_pruned_messages_tell_what_was_kept_and_what_is_protected() -> None:
    sink = RecordingSink()
    with watched(on_event=sink) as manager:
        manager.preflight("s", [policy_text(), *full_history()])
    (pruned,), (decision,) = sink.of(PrunedMessagesEvent), sink.of(TriggerDecisionEvent)
    assert pruned.kept == decision.kept
    assert set(pruned.kept) == {"pinned", "recent_turns", "tool_pairs"}
    assert pruned.kept["pinned"] == len(pruned.protected_ids) == 2
    assert pruned.protected_ids[0] == "policy-1"
    assert pruned.protected_labels == decision.protected_labels == {"policy-1": "Security Policy"}
    assert pruned.pruned_count == decision.pruned_count == len(pruned.message_ids)


@pytest.mark.parametrize(
    "large",
    [
        user("x" * 262_145),
        user("ü" * 131_073),
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:;base64," + "A" * 262_145}}]},
    ],
    ids=["ascii", "utf-8", "image"],
)
def test_an_input_above_256_kb_is_warned_of_once(large: Wire) -> None:
    sink = RecordingSink()
    with watched(on_event=sink, window=2_000_000) as manager:
        manager.preflight("s", [system("be careful"), large])
        manager.preflight("s", [system("be careful"), large, *dialogue(1)])
    (notice,) = sink.of(NoticeEvent)
    assert notice.spec.severity == "warning"
    assert "more than 262,144 (256 KB)" in notice.message


def test_an_input_of_256_kb_is_not_warned_of() -> None:
    sink = RecordingSink()
    with watched(on_event=sink, window=2_000_000) as manager:
        manager.preflight("s", [user("x" * 262_144)])
        manager.preflight("s", [user("x" * 262_144), user("x" * 262_144)])
    assert sink.of(NoticeEvent) == []


def archived_events(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "s" / "events.jsonl").read_text().splitlines()]


def test_the_archive_has_every_event_of_the_session(tmp_path: Path) -> None:
    """Quiet calls, compactions, failures, recalls: what a sink got is what stands there, in the same order."""
    sink = RecordingSink()
    storage = {"adapter": "fs", "path": str(tmp_path)}
    with watched(on_event=sink, storage=storage, summarizer=broken) as manager:
        manager.preflight("s", full_history()[:4])
        manager.preflight("s", full_history())
        manager.recall("s", "migrations")
        with pytest.raises(InsufficientBudget):
            manager.manual_compact("s", full_history(), target_tokens=1)
        manager.undo("s")
        assert manager.flush(30)
    lines = archived_events(tmp_path)
    assert [(line["event"], line["event_id"]) for line in lines] == [(e.name, e.event_id) for e in sink.events]
    assert {line["event"] for line in lines} >= {"compact.token_estimate", "compact.trigger_decision", "compact.error"}
    assert all(line["status"] == _status(event) for line, event in zip(lines, sink.events, strict=True))
    assert {line["error_type"] for line in lines if line["status"] == "error"} == {
        "SummarizerUnavailable",
        "InsufficientBudget",
    }


def _status(event: CompactionEvent) -> str:
    is_failure = isinstance(event, CompactionErrorEvent) or bool(getattr(event, "error_type", ""))
    return "error" if is_failure else "ok"


def test_events_that_wait_at_the_end_of_a_program_are_written(tmp_path: Path) -> None:
    """A script that never closes its manager has its audit all the same."""
    code = f"""
from compact import CompactConfig, CompactManager
from compact.testing import WordTokenizer, dialogue
config = CompactConfig(max_context_tokens=4_000, storage={{"adapter": "fs", "path": {str(tmp_path)!r}}},
    telemetry={{"exporter": "none"}}, state={{"url": "memory:"}})
manager = CompactManager(config, tokenizer=WordTokenizer())
manager.manual_compact("s", dialogue(20, words=50))
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
    names = [line["event"] for line in archived_events(tmp_path)]
    assert names[0] == "compact.check_started"
    assert names[-1] == "compact.operation_ended"
    assert "compact.report" in names
