"""The OpenAI Agents SDK: our spans are custom spans, nested under the turn, without secrets."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextvars import copy_context
from typing import Any

import pytest
from agents.tracing import Span, Trace, TracingProcessor, agent_span, set_trace_processors, trace

from compact.core.engine.events import CompactionEvent
from compact.telemetry.agents_tracing import AgentsTracing
from compact.telemetry.emitters import Dispatcher
from compact.testing import RecordingSink
from telemetry.event_samples import full_history, one_of_each, watched

SECRET = "api_key=sk-" + "abc123def456ghi789"


class Recorder(TracingProcessor):
    """Keeps what ended."""

    def __init__(self) -> None:
        self.spans: list[Span[Any]] = []
        self.open: set[str] = set()

    def on_trace_start(self, trace: Trace) -> None:
        """Nothing to keep."""

    def on_trace_end(self, trace: Trace) -> None:
        """Nothing to keep."""

    def on_span_start(self, span: Span[Any]) -> None:
        self.open.add(span.span_id)

    def on_span_end(self, span: Span[Any]) -> None:
        self.open.discard(span.span_id)
        self.spans.append(span)

    def shutdown(self) -> None:
        """Nothing to do."""

    def force_flush(self) -> None:
        """Nothing waits."""

    def of(self, name: str) -> list[Span[Any]]:
        """The custom spans of a name."""
        return [span for span in self.spans if getattr(span.span_data, "name", "") == name]


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    found = Recorder()
    set_trace_processors([found])
    yield found
    set_trace_processors([])


def test_spans_are_nested_under_the_turn(recorder: Recorder) -> None:
    with watched(telemetry={"exporter": "agents"}) as manager, trace("run"), agent_span("turn") as turn:
        manager.preflight("s", full_history())
    (preflight,), (compaction,) = recorder.of("compact.preflight"), recorder.of("compact.compaction")
    (summary,), (estimate,) = recorder.of("compact.summary"), recorder.of("compact.token_estimate")
    assert preflight.parent_id == turn.span_id
    assert preflight.trace_id == turn.trace_id
    assert compaction.parent_id == estimate.parent_id == preflight.span_id
    assert summary.parent_id == compaction.span_id
    assert preflight.span_data.type == "custom"
    assert preflight.span_data.data["status"] == "ok"
    assert preflight.started_at <= compaction.started_at <= compaction.ended_at <= preflight.ended_at
    assert estimate.span_data.data["t_est"] > 0
    assert not recorder.open


def test_the_same_in_a_loop(recorder: Recorder) -> None:
    async def run() -> str:
        with trace("run"), agent_span("turn") as turn:
            await manager.apreflight("s", full_history())
        return turn.span_id

    with watched(telemetry={"exporter": "agents"}) as manager:
        turn_id = asyncio.run(run())
    assert [span.parent_id for span in recorder.of("compact.preflight")] == [turn_id]
    assert recorder.of("compact.summary")


def test_without_a_trace_nothing_is_made(recorder: Recorder) -> None:
    sink = RecordingSink()
    with watched(telemetry={"exporter": "agents"}, on_event=sink) as manager:
        manager.preflight("s", full_history())
    assert sink.events
    assert not recorder.spans


def test_no_secret_and_no_content_leaves(recorder: Recorder) -> None:
    with watched(telemetry={"exporter": "agents"}) as manager, trace("run"):
        manager.preflight("s", full_history(SECRET))
    everything = repr([span.export() for span in recorder.spans])
    assert "compact.summary_created" in everything
    assert "COMPACT-SUMMARY" not in everything
    assert "sk-abc123" not in everything


def test_content_that_is_asked_for_is_redacted(recorder: Recorder) -> None:
    with watched(telemetry={"exporter": "agents", "content": True}) as manager, trace("run"):
        manager.preflight("s", full_history(SECRET))
    (created,) = recorder.of("compact.summary_created")
    assert "<COMPACT-SUMMARY" in created.span_data.data["summary"]
    assert "<REDACTED>" in created.span_data.data["summary"]
    assert "sk-abc123" not in repr([span.export() for span in recorder.spans])


def test_a_failure_is_an_error(recorder: Recorder) -> None:
    with (
        watched(telemetry={"exporter": "agents"}) as manager,
        trace("run"),
        pytest.raises(Exception, match="tokens"),
    ):
        manager.manual_compact("s", full_history(), target_tokens=1)
    (operation,), (error,) = recorder.of("compact.manual_compact"), recorder.of("compact.error")
    assert operation.error
    assert operation.error["message"] == "InsufficientBudget"
    assert error.error
    assert error.error["message"].startswith("InsufficientBudget: ")
    assert not recorder.open


@pytest.mark.parametrize("event", one_of_each(), ids=lambda event: event.name)
def test_every_event_can_be_told(event: CompactionEvent, recorder: Recorder) -> None:
    """But for what would have to be worked out while the agent waits."""
    dispatcher = Dispatcher([AgentsTracing(content=True)])
    with trace("run"):
        copy_context().run(dispatcher, event)
    is_told = event.name not in ("compact.report", "compact.operation_ended")
    assert len(recorder.spans) + len(recorder.open) == is_told
