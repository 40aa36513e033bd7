"""Sends traces and metrics over OTLP/HTTP, with providers of its own: the application's are left alone."""

from __future__ import annotations

import logging
import os
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from opentelemetry import trace
from opentelemetry.context import (
    _SUPPRESS_INSTRUMENTATION_KEY,  # pyright: ignore[reportPrivateUsage]  (the SDK's own exporters use it, too)
    attach,
    detach,
    set_value,
)
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.metrics import MeterProvider as AnyMeterProvider
from opentelemetry.metrics import NoOpMeterProvider
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import SERVICE_INSTANCE_ID, SERVICE_NAME, Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SpanExportResult

from compact.core.engine.events import CompactionCompletedEvent, CompactionEvent
from compact.telemetry.complaints import Complaints
from compact.telemetry.otlp_metrics import Instruments
from compact.telemetry.otlp_spans import SpanTree, is_model_call, mark_compacted
from compact.telemetry.worker import Outgoing, Undelivered

_log = logging.getLogger("compact")
_SCOPE = "compact"
_TIMEOUT_SECONDS = 3.0
_CLOSE_SECONDS = 5.0
_MOST_SPANS = 4096
# A server that says no to the same spans for so long will not take them at all.
_PATIENCE_SECONDS = 600.0


class OtlpExporter:
    """Turns events into spans and metrics, and sends them; the usual `OTEL_*` variables are heeded.

    `tracer_provider` and `meter_provider` are the application's own, if it wants all in one place: then they send.
    """

    name = "otlp"

    def __init__(
        self,
        endpoint: str = "",
        *,
        content: bool = False,
        tracer_provider: trace.TracerProvider | None = None,
        meter_provider: AnyMeterProvider | None = None,
    ) -> None:
        self._endpoint = endpoint.rstrip("/")
        self._finished: deque[ReadableSpan] = deque(maxlen=_MOST_SPANS)
        self._spans = None if tracer_provider else self._span_exporter()
        is_wanted = os.environ.get("OTEL_METRICS_EXPORTER") != "none"
        self._metrics = self._metric_exporter() if is_wanted and not meter_provider else None
        self._own_metrics = _meter_provider(self._metrics) if self._metrics else None
        tracer = (tracer_provider or self._tracer_provider()).get_tracer(_SCOPE)
        self._tree = SpanTree(tracer, content=content)
        self._instruments = Instruments((meter_provider or self._own_metrics or NoOpMeterProvider()).get_meter(_SCOPE))
        self._refused_since: float | None = None
        self._lost = 0
        self.complain = Complaints("[OTLP]", write=_log.warning)

    def see(self, event: CompactionEvent) -> object:
        """The agent's own span, which what happens now is a part of."""
        if isinstance(event, CompactionCompletedEvent) and is_model_call(trace.get_current_span()):
            mark_compacted(trace.get_current_span())
        return None if event.parent_id else trace.get_current_span().get_span_context()

    def take(self, batch: Sequence[Outgoing]) -> None:
        """Start, end and count."""
        for outgoing in batch:
            try:
                self._tree.add(outgoing)
                self._instruments.record(outgoing)
            except Exception as error:  # one event that cannot be told keeps no other from being sent
                self.complain(f"{outgoing.event.name} could not be told: {type(error).__name__}")
                self._lost += 1

    def send(self) -> int:
        """Send the spans that have ended, and say how much was lost; metrics go out by themselves."""
        if self._spans is not None and self._finished:
            self._export(self._spans)
        lost, self._lost = self._lost, 0
        return lost

    def _export(self, exporter: OTLPSpanExporter) -> None:
        spans = list(self._finished)
        token = attach(set_value(_SUPPRESS_INSTRUMENTATION_KEY, True))
        try:
            is_sent = exporter.export(spans) is SpanExportResult.SUCCESS
        finally:
            detach(token)
        if not is_sent:
            self._keep_or_lose(len(spans))
        self._refused_since = None
        for _ in spans:
            self._finished.popleft()

    def _keep_or_lose(self, count: int) -> None:
        """Why they were refused is in the SDK's own log; this only says what becomes of them."""
        self._refused_since = self._refused_since or time.monotonic()
        if time.monotonic() - self._refused_since < _PATIENCE_SECONDS:
            raise Undelivered(f"{count} spans were not taken; trying again later")
        self.complain(f"{count} spans were refused for {_PATIENCE_SECONDS / 60:.0f} minutes, and are lost")
        self._lost += count

    def flush(self, timeout_seconds: float) -> bool:
        """Send the metrics, too; False if that failed, or took longer."""
        metrics = self._own_metrics
        if metrics is None:
            return True
        return self._within(timeout_seconds, lambda: bool(metrics.force_flush(timeout_seconds * 1000)))

    def forget_connections(self) -> None:
        """In a copy of the process, connections are the original's."""
        self._finished.clear()
        self._lost = 0
        if self._spans:
            self._spans = self._span_exporter()
        if self._metrics:  # its provider cannot be given another one
            self._metrics._session = self._metric_exporter()._session  # pyright: ignore[reportPrivateUsage]

    def close(self) -> None:
        """Send what is left, and stop; what takes longer than a moment is left."""
        self._within(_CLOSE_SECONDS, self._stop)

    def _stop(self) -> bool:
        self._tree.close()
        if self._spans:
            if self._refused_since is None:
                self._send_the_last()
            self._spans.shutdown()
        if self._own_metrics:
            self._own_metrics.shutdown(_TIMEOUT_SECONDS * 1000)
        return True

    def _within(self, seconds: float, work: Callable[[], bool]) -> bool:
        """What it says, or False: the SDK heeds no limits, and may raise."""
        results: list[bool] = []

        def run() -> None:
            try:
                results.append(work())
            except Exception as error:
                self.complain(f"the SDK failed: {type(error).__name__}")

        thread = threading.Thread(target=run, name="compact-otlp-sdk", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # some versions of Python start none at the end of the process
            run()
        else:
            thread.join(seconds)
        return bool(results and results[0])

    def _send_the_last(self) -> None:
        try:
            self.send()
        except Undelivered as error:
            self.complain(f"closed all the same: {error}")

    # -- providers of its own -------------------------------------------------------------------------------------

    def _span_exporter(self) -> OTLPSpanExporter:
        return OTLPSpanExporter(self._place("traces"), timeout=_timeout())

    def _tracer_provider(self) -> TracerProvider:
        provider = TracerProvider(resource=_resource(), shutdown_on_exit=False)
        provider.add_span_processor(_Collected(self._finished))
        return provider

    def _metric_exporter(self) -> OTLPMetricExporter:
        return OTLPMetricExporter(self._place("metrics"), timeout=_timeout())

    def _place(self, signal: str) -> str | None:
        """Where a signal goes; None leaves it to the usual variables, and localhost:4318."""
        return f"{self._endpoint.removesuffix('/v1/traces')}/v1/{signal}" if self._endpoint else None


class _Collected(SpanProcessor):
    """Keeps spans that have ended until they are sent."""

    def __init__(self, finished: deque[ReadableSpan]) -> None:
        self._finished = finished

    def on_end(self, span: ReadableSpan) -> None:
        context = span.context
        if context and context.trace_flags.sampled:
            self._finished.append(span)


def _meter_provider(exporter: OTLPMetricExporter) -> MeterProvider:
    """Two of the same name and instance would overwrite each other's counts, so each is an instance of its own."""
    resource = _resource()
    if SERVICE_INSTANCE_ID not in os.environ.get("OTEL_RESOURCE_ATTRIBUTES", ""):
        resource = resource.merge(Resource({SERVICE_INSTANCE_ID: str(uuid.uuid4())}))
    return MeterProvider([PeriodicExportingMetricReader(exporter)], resource, shutdown_on_exit=False)


def _resource() -> Resource:
    resource = Resource.create()
    name: Any = resource.attributes.get(SERVICE_NAME, "")
    return resource.merge(Resource({SERVICE_NAME: "compact"})) if str(name).startswith("unknown_service") else resource


def _timeout() -> float | None:
    """None leaves it to the usual variable."""
    return None if "OTEL_EXPORTER_OTLP_TIMEOUT" in os.environ else _TIMEOUT_SECONDS
