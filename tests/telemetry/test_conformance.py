"""Every event sink passes the suite that we give to others."""

from __future__ import annotations

import io
import logging
from collections.abc import Sequence

import pytest

from compact.core.engine.events import (
    CompactionEvent,
    CompactionEventType,
    OperationEndedEvent,
    OperationStartedEvent,
)
from compact.telemetry.emitters import CompositeEventEmitter
from compact.telemetry.log import ConsoleEmitter, LoggingEventEmitter
from compact.telemetry.metrics import MetricsCollector
from compact.telemetry.worker import ExportWorker, OutgoingEvent
from compact.testing import RecordingSink, check_event_sink, sample_events
from telemetry.ariadne_double import ariadne_server
from telemetry.otlp_collector import otlp_collector


class CountingExporter:
    """Counts what it is to send."""

    name = "counting"

    def __init__(self) -> None:
        self.sent = 0

    def capture_context(self, event: CompactionEvent) -> object:
        return None

    def add(self, batch: Sequence[OutgoingEvent]) -> None:
        self.sent += sum(bool(outgoing.data) for outgoing in batch)

    def send(self) -> int | None:
        return None

    def warn(self, text: str) -> None:
        raise AssertionError(text)

    def reset_after_fork(self) -> None:
        """Nothing is open."""

    def close(self) -> None:
        """Nothing is open."""


def test_every_kind_of_event_is_in_the_sample() -> None:
    assert {event.type for event in sample_events()} == set(CompactionEventType)


def test_a_recording_sink_conforms() -> None:
    check_event_sink(RecordingSink, delivered=lambda sink: len(sink.events))


@pytest.mark.parametrize("is_terminal", [True, False])
def test_the_console_conforms(is_terminal: bool) -> None:
    class Stream(io.StringIO):
        def isatty(self) -> bool:
            return is_terminal

    check_event_sink(lambda: ConsoleEmitter(level="debug", stream=Stream()))


def test_the_log_conforms() -> None:
    logger = logging.getLogger("conformance")
    logger.addHandler(logging.NullHandler())
    logger.propagate = False
    check_event_sink(lambda: LoggingEventEmitter(log=logger))


def test_metrics_conform() -> None:
    check_event_sink(MetricsCollector)


def test_several_sinks_in_one_conform() -> None:
    check_event_sink(lambda: CompositeEventEmitter([RecordingSink(), MetricsCollector()]))


def test_a_worker_loses_nothing() -> None:
    check_event_sink(
        lambda: ExportWorker(CountingExporter(), max_queued=100_000), delivered=lambda sink: sink.exporter.sent
    )


def test_ariadne_gets_every_event() -> None:
    from compact.telemetry.ariadne import AriadneExporter

    with ariadne_server() as server:
        operations = (OperationStartedEvent, OperationEndedEvent)  # these are spans, named by what is done
        names = {event.name for event in sample_events() if not isinstance(event, operations)}
        check_event_sink(lambda: ExportWorker(AriadneExporter(server.url), max_queued=100_000))
        assert all(server.of(name) for name in names)


def test_otlp_conforms(caplog: pytest.LogCaptureFixture) -> None:
    """And nothing is left out: the SDK logs an error for an attribute that it cannot encode."""
    pytest.importorskip("opentelemetry.sdk", reason="pip install 'compact-context[otlp]'")
    from compact.telemetry.otlp import OtlpExporter

    with otlp_collector() as collector:
        check_event_sink(lambda: ExportWorker(OtlpExporter(collector.endpoint), max_queued=100_000))
    assert [record.name for record in caplog.records if record.levelno >= logging.ERROR] == []


def test_the_agents_sdk_conforms() -> None:
    pytest.importorskip("agents", reason="pip install 'compact-context[openai-agents]'")
    from agents.tracing import set_trace_processors, trace

    from compact.telemetry.agents_tracing import AgentsTracing

    set_trace_processors([])
    with trace("conformance"):
        check_event_sink(AgentsTracing)
