"""OTLP: the span tree, the names and the metrics as they are documented, read by a real collector."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from importlib import metadata
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from compact import StructuredSummary, SummaryRequest
from compact.core.engine.events import CompactionEvent, NoticeEvent
from compact.core.errors import SummarizerUnavailable
from compact.summarizers.clients.model_client import CompletionRequest, ModelAnswer
from compact.summarizers.clients.observed import EventEmittingClient
from compact.telemetry.emitters import Dispatcher
from compact.telemetry.otlp import OtlpExporter
from compact.telemetry.worker import ExportWorker
from compact.testing import RecordingSink
from telemetry.event_samples import full_history, one_of_each, watched
from telemetry.otlp_collector import Collector, attributes, otlp_collector

SECRET = "api_key=sk-" + "abc123def456ghi789"
# As opentelemetry.proto numbers them.
INTERNAL, CLIENT = 1, 3
ERROR = 2


@pytest.fixture
def collector() -> Iterator[Collector]:
    with otlp_collector() as running:
        yield running


def to(collector: Collector, **more: Any) -> dict[str, Any]:
    return {"exporter": "otlp", "otlp_endpoint": collector.endpoint, **more}


def compacted(collector: Collector, *, secret: str = "", **more: Any) -> None:
    """A call below the trigger, one above, and a recall."""
    with watched(telemetry=to(collector, **more)) as manager:
        manager.preflight("s", full_history(secret)[:4])
        manager.preflight("s", full_history(secret))
        manager.recall("s", "migrations")
        assert manager.flush(30)


def test_a_call_is_a_span(collector: Collector) -> None:
    compacted(collector)
    idle, busy = collector.named("compact")
    assert idle.kind == busy.kind == INTERNAL
    told = attributes(busy)
    assert told["gen_ai.operation.name"] == "compact"
    assert told["gen_ai.conversation.id"] == told["session.id"] == "s"
    assert told["openinference.span.kind"] == "CHAIN"
    assert told["compaction.strategy"] == "task_state"
    assert told["compaction.triggered"] is True
    assert "of the window" in told["compaction.reason"] or "tokens" in told["compaction.reason"]
    assert told["compaction.before.tokens"] > told["compaction.after.tokens"] > 0
    assert told["compaction.before.messages"] > told["compaction.after.messages"] > 0
    assert told["compaction.duration_ms"] == pytest.approx(
        (busy.end_time_unix_nano - busy.start_time_unix_nano) / 1e6, abs=0.01
    )
    assert told["compaction.plan_version"] == 1
    assert told["output.value"]
    quiet = attributes(idle)
    assert quiet["compaction.triggered"] is False
    assert quiet["compaction.before.tokens"] > 0
    assert "compaction.after.tokens" not in quiet
    assert "gen_ai.conversation.compacted" not in quiet
    assert collector.resources[0]["service.name"] == "compact"


def test_what_happens_in_a_call_are_its_events(collector: Collector) -> None:
    """S1's events, with their properties, within the times of the span; what is inside it has no spans of its own."""
    compacted(collector)
    busy = collector.named("compact")[1]
    events = {event.name: attributes(event) for event in busy.events}
    assert {"compact.token_estimate", "compact.trigger_decision", "compact.summary_created"} <= set(events)
    assert {"compact.pruned_messages", "compact.completed", "compact.report"} <= set(events)
    assert events["compact.token_estimate"]["breakdown.messages"] > 0
    assert events["compact.trigger_decision"]["policy.trigger_pct"] == 0.85
    assert events["compact.trigger_decision"]["triggered"] is True
    assert events["compact.pruned_messages"]["pruned_count"] > 0
    for event in busy.events:
        assert busy.start_time_unix_nano <= event.time_unix_nano <= busy.end_time_unix_nano
    assert {span.name for span in collector.spans} == {"compact", "search_memory compact.log"}


def test_a_recall_searches_memory(collector: Collector) -> None:
    compacted(collector)
    (recall,) = collector.named("search_memory compact.log")
    told = attributes(recall)
    assert told["gen_ai.operation.name"] == "search_memory"
    assert told["gen_ai.memory.store.id"] == "compact.log"
    assert told["gen_ai.memory.record.count"] == len(told["gen_ai.memory.record.id"]) >= 1
    assert "input.value" not in told


def test_content_stays_here_unless_it_is_asked_for(collector: Collector) -> None:
    compacted(collector)
    assert b"COMPACT-SUMMARY" not in b"".join(collector.raw)
    assert b"migrations" not in b"".join(collector.raw)


def test_content_that_is_asked_for_is_redacted(collector: Collector) -> None:
    compacted(collector, content=True, secret=SECRET)
    told = attributes(collector.named("compact")[1])
    assert "<COMPACT-SUMMARY" in told["output.value"]
    (message,) = json.loads(told["gen_ai.input.messages"])
    assert "gen_ai.output.messages" not in told
    assert message["parts"][0]["type"] == "compaction"
    assert message["parts"][0]["id"]
    assert message["parts"][0]["content"] == told["output.value"]
    assert attributes(collector.named("search_memory compact.log")[0])["input.value"] == "migrations"
    assert b"sk-abc123" not in b"".join(collector.raw)
    assert b"<REDACTED>" in b"".join(collector.raw)


def asked(error: Exception | None = None) -> Any:
    """A summariser's client that answers, or fails."""

    def client(request: CompletionRequest) -> ModelAnswer:
        if error:
            raise error
        return ModelAnswer(text="fine", input_tokens=800, output_tokens=90)

    return client


def tell(dispatcher: Dispatcher, *, error: Exception | None = None) -> None:
    """A call with a question to a model in it."""
    from compact.core.engine.emitter import EventEmitter
    from compact.core.session.session import Session

    emitter, session = EventEmitter(dispatcher), Session("s")
    observed = EventEmittingClient(client=asked(error), emit=dispatcher, model="small", provider="openai")
    with emitter.operation(session, "preflight"), emitter.operation(session, "summary"):
        try:
            observed(CompletionRequest(system="", prompt="", timeout_seconds=1))
        except SummarizerUnavailable as failure:
            emitter.error(session, failure, fallback="pruning-only")


def test_the_summarisers_call_is_a_client_span_below(collector: Collector) -> None:
    dispatcher = Dispatcher([ExportWorker(OtlpExporter(collector.endpoint))])
    tell(dispatcher)
    dispatcher.close()
    (above,), (chat,) = collector.named("compact"), collector.named("chat small")
    assert chat.kind == CLIENT
    assert chat.parent_span_id == above.span_id
    assert chat.trace_id == above.trace_id
    told = attributes(chat)
    assert told["gen_ai.operation.name"] == "chat"
    assert told["gen_ai.provider.name"] == "openai"
    assert told["gen_ai.request.model"] == "small"
    assert (told["gen_ai.usage.input_tokens"], told["gen_ai.usage.output_tokens"]) == (800, 90)
    assert told["openinference.span.kind"] == "LLM"
    assert "error.type" not in told
    assert chat.status.code != ERROR


def test_a_call_that_fails_is_an_error(collector: Collector) -> None:
    dispatcher = Dispatcher([ExportWorker(OtlpExporter(collector.endpoint))])
    tell(dispatcher, error=SummarizerUnavailable("no answer"))
    dispatcher.close()
    (chat,) = collector.named("chat small")
    assert attributes(chat)["error.type"] == "SummarizerUnavailable"
    assert chat.status.code == ERROR
    (above,) = collector.named("compact")
    (error,) = [event for event in above.events if event.name == "compact.error"]
    assert attributes(error)["status"] == "error"
    assert above.status.code != ERROR, "the question was asked again, or answered otherwise"
    failures = collector.metrics["compact.summarizer.failures"]
    assert failures[0][1] == 1
    assert failures[0][0]["error.type"] == "SummarizerUnavailable"


def test_a_summary_that_failed_marks_its_call(collector: Collector) -> None:
    """The turn goes on with what code chooses, and the span says that the summary was not written."""

    def broken(request: SummaryRequest) -> StructuredSummary:
        raise SummarizerUnavailable("no answer")

    with watched(telemetry=to(collector), summarizer=broken) as manager:
        manager.preflight("s", full_history())
        assert manager.current_plan("s").version == 1
    (call,) = collector.named("compact")
    assert call.status.code == ERROR
    assert call.status.message == "summary: SummarizerUnavailable"
    assert attributes(call)["error.type"] == "SummarizerUnavailable"
    assert attributes(call)["compaction.after.tokens"] > 0


def test_spans_and_metrics_name_the_version_that_made_them(collector: Collector) -> None:
    compacted(collector)
    assert collector.scopes == {("compact", metadata.version("compact-context"))}


def test_an_operation_that_fails_is_an_error(collector: Collector) -> None:
    with watched(telemetry=to(collector)) as manager, pytest.raises(Exception, match="tokens"):
        manager.manual_compact("s", full_history(), target_tokens=1)
    (span,) = collector.named("compact")
    assert span.status.code == ERROR
    assert attributes(span)["error.type"] == "InsufficientBudget"
    assert attributes(span)["compaction.operation"] == "manual_compact"


def test_metrics(collector: Collector) -> None:
    compacted(collector)
    found = collector.metrics
    assert found["compact.compactions"] == [({"reason": "threshold"}, 1)]
    ((_, (count, tokens)),) = found["compact.tokens.before"]
    ((_, (_, after)),) = found["compact.tokens.after"]
    assert count == 1
    assert tokens > after > 0
    actions = {point["action"] for point, _ in found["compact.tokens.freed"]}
    assert actions
    assert actions <= {"clear", "summarize", "externalize", "drop"}
    ((_, (calls, seconds)),) = found["compact.preflight.duration"]
    assert calls == 2
    assert seconds > 0
    assert {point["state"] for point, _ in found["compact.entities"]} <= {"kept", "in_ledger", "retrievable", "lost"}
    assert found["compact.recalls"] == [({}, 1)]
    assert collector.units["compact.preflight.duration"] == "s"
    assert collector.units["compact.tokens.before"] == "{token}"
    assert not any("s" in point.values() for points in found.values() for point, _ in points)


def test_it_joins_the_agents_own_trace(collector: Collector) -> None:
    """Where a span is current, ours is below it; its own provider sees nothing of ours."""
    theirs = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(theirs))
    with watched(telemetry=to(collector)) as manager:
        tracer = provider.get_tracer("agent")
        with tracer.start_as_current_span("turn") as turn:
            manager.preflight("s", full_history()[:4])
        with tracer.start_as_current_span("chat gpt-4o", attributes={"gen_ai.operation.name": "chat"}):
            manager.preflight("s", full_history())
    first, second = collector.named("compact")
    assert first.parent_span_id == turn.get_span_context().span_id.to_bytes(8, "big")
    assert first.trace_id == turn.get_span_context().trace_id.to_bytes(16, "big")
    chat = next(span for span in theirs.get_finished_spans() if span.name == "chat gpt-4o")
    assert (chat.attributes or {})["gen_ai.conversation.compacted"] is True
    assert second.parent_span_id == chat.get_span_context().span_id.to_bytes(8, "big")
    assert {span.name for span in theirs.get_finished_spans()} == {"turn", "chat gpt-4o"}
    turn_span = next(span for span in theirs.get_finished_spans() if span.name == "turn")
    assert "gen_ai.conversation.compacted" not in (turn_span.attributes or {})


def test_the_global_providers_are_left_alone(collector: Collector) -> None:
    before = trace.get_tracer_provider()
    compacted(collector)
    assert trace.get_tracer_provider() is before
    assert not trace.get_current_span().get_span_context().is_valid


def test_the_applications_providers_if_it_passes_them() -> None:
    theirs = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(theirs))
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader

    reader = InMemoryMetricReader()
    exporter = OtlpExporter(tracer_provider=provider, meter_provider=MeterProvider([reader]))
    with watched(on_event=ExportWorker(exporter)) as manager:
        manager.preflight("s", full_history())
    assert [span.name for span in theirs.get_finished_spans()] == ["compact"]
    data = reader.get_metrics_data()
    assert data
    names = {metric.name for metric in data.resource_metrics[0].scope_metrics[0].metrics}
    assert "compact.compactions" in names


@pytest.mark.parametrize("event", one_of_each(), ids=lambda event: event.name)
def test_every_event_can_be_told(
    event: CompactionEvent, collector: Collector, caplog: pytest.LogCaptureFixture
) -> None:
    from contextvars import Context

    dispatcher = Dispatcher([ExportWorker(OtlpExporter(collector.endpoint, content=True))])
    Context().run(dispatcher, event)
    dispatcher.close()
    assert len(collector.spans) == (0 if event.name == "compact.operation_ended" else 1)
    assert not caplog.records


def test_a_server_that_refuses_stops_nobody(collector: Collector, caplog: pytest.LogCaptureFixture) -> None:
    """What was not taken is sent when it is, in order, and once."""
    collector.status = 400
    with watched(telemetry=to(collector)) as manager:
        manager.preflight("s", full_history()[:4])
        assert not manager.flush(1)
        assert any("[OTLP]" in record.getMessage() for record in caplog.records)
        collector.status = 200
        manager.preflight("s", full_history()[:5])
        assert manager.flush(30)
        assert len(collector.named("compact")) == 2


def test_metrics_can_be_switched_off(collector: Collector, monkeypatch: pytest.MonkeyPatch) -> None:
    """As everywhere in OpenTelemetry, by a variable: some backends take traces alone."""
    monkeypatch.setenv("OTEL_METRICS_EXPORTER", "none")
    compacted(collector)
    assert len(collector.named("compact")) == 2
    assert not collector.metrics


def test_metadata_becomes_attributes(collector: Collector) -> None:
    with watched(telemetry=to(collector), event_metadata={"team": "harbour"}) as manager:
        manager.preflight("s", full_history()[:4])
    assert attributes(collector.named("compact")[0])["metadata.team"] == "harbour"


def test_operations_whose_end_was_dropped_are_let_go(collector: Collector) -> None:
    from compact.core.engine.events import OperationStartedEvent

    exporter = OtlpExporter(collector.endpoint)
    worker = ExportWorker(exporter, max_queued=10_000)
    for number in range(1_100):
        worker(OperationStartedEvent(session_id="s", operation="x", event_id=str(number), started_at=1, ended_at=1))
    assert worker.flush(30)
    assert len(exporter._tree._open) == 1_000
    assert len(collector.named("compact")) == 100
    worker.close()


def test_several_exporters_at_once(collector: Collector) -> None:
    from telemetry.ariadne_double import ariadne_server

    sink = RecordingSink()
    with ariadne_server() as server:
        telemetry = {**to(collector), "exporter": ["otlp", "ariadne", "console"], "ariadne_url": server.url}
        with watched(telemetry=telemetry, on_event=sink) as manager:
            manager.preflight("s", full_history())
        assert len(server.of("compact.preflight")) == len(collector.named("compact")) == 1
    assert not sink.of(NoticeEvent)


def test_an_application_can_mark_its_own_call() -> None:
    """For one whose span begins after the preflight."""
    from compact.telemetry import mark_compacted

    theirs = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(theirs))
    with provider.get_tracer("agent").start_as_current_span("chat") as span:
        mark_compacted(span)
    mark_compacted(span)  # it has ended: nothing happens
    (chat,) = theirs.get_finished_spans()
    assert dict(chat.attributes or {}) == {"gen_ai.conversation.compacted": True}


def test_each_manager_is_an_instance_of_its_own(collector: Collector, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts of two in one process would overwrite each other; what the operator sets is left."""
    for _ in range(2):
        compacted(collector)
    instances = {found["service.instance.id"] for found in collector.metric_resources}
    assert len(instances) == 2
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "service.instance.id=mine")
    compacted(collector)
    assert collector.metric_resources[-1]["service.instance.id"] == "mine"
    assert collector.metric_resources[-1]["service.name"] == "compact"


def test_flush_and_close_keep_their_limits_and_never_raise(
    collector: Collector, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from opentelemetry.sdk.metrics import MeterProvider

    released = threading.Event()

    def hang(self: MeterProvider, timeout_millis: float = 0) -> bool:
        return released.wait(60)

    def fail(self: MeterProvider, timeout_millis: float = 0) -> bool:
        raise RuntimeError("t0ken")

    monkeypatch.setattr("compact.telemetry.otlp._CLOSE_SECONDS", 0.2)
    exporter = OtlpExporter(collector.endpoint)
    start = time.monotonic()
    with monkeypatch.context() as patched:
        patched.setattr(MeterProvider, "force_flush", hang)
        assert not exporter.flush(0.2)
        patched.setattr(MeterProvider, "force_flush", fail)
        assert not exporter.flush(10)
        patched.setattr(MeterProvider, "shutdown", hang)
        exporter.close()
        patched.setattr(MeterProvider, "shutdown", fail)
        exporter.close()
    assert time.monotonic() - start < 30
    released.set()
    exporter.close()
    assert "the SDK failed: RuntimeError" in caplog.text
    assert "t0ken" not in caplog.text


def test_spans_that_are_given_up_are_counted(
    collector: Collector, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("compact.telemetry.otlp._PATIENCE_SECONDS", 0.0)
    collector.status = 400
    worker = ExportWorker(OtlpExporter(collector.endpoint))
    Dispatcher([worker])(NoticeEvent(session_id="s", message="x"))
    assert not worker.flush(30)
    assert worker.dropped == 1
    collector.status = 200
    worker.close()
    assert "and lost" in caplog.text
