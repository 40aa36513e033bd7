"""Sends traces and metrics over OTLP/HTTP, with providers of its own: the application's are left alone."""

from __future__ import annotations

import logging
import os
import time
from collections import deque
from collections.abc import Sequence
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
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SpanExportResult

from compact.core.events import CompactionCompletedEvent, CompactionEvent
from compact.telemetry.complaints import Complaints
from compact.telemetry.otlp_metrics import Instruments
from compact.telemetry.otlp_spans import SpanTree, mark_compacted
from compact.telemetry.worker import Outgoing, Undelivered

_log = logging.getLogger("compact")
_SCOPE = "compact"
_TIMEOUT_SECONDS = 3.0
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
        self._own_metrics = self._meter_provider() if is_wanted and not meter_provider else None
        tracer = (tracer_provider or self._tracer_provider()).get_tracer(_SCOPE)
        self._tree = SpanTree(tracer, content=content)
        self._instruments = Instruments((meter_provider or self._own_metrics or NoOpMeterProvider()).get_meter(_SCOPE))
        self._refused_since: float | None = None
        self.complain = Complaints("[OTLP]", write=_log.warning)

    def see(self, event: CompactionEvent) -> object:
        """The agent's own span, which what happens now is a part of."""
        if isinstance(event, CompactionCompletedEvent):
            mark_compacted(trace.get_current_span())
        return None if event.parent_id else trace.get_current_span().get_span_context()

    def take(self, batch: Sequence[Outgoing]) -> None:
        """Start, end and count."""
        for outgoing in batch:
            try:
                self._tree.add(outgoing)
                self._instruments.record(outgoing)
            except Exception as error:  # one event that cannot be told keeps no other from being sent
                self.complain(f"{outgoing.event.name} could not be told: {type(error).__name__}: {error}")

    def send(self) -> None:
        """Send the spans that have ended; metrics go out by themselves."""
        if self._spans is None or not self._finished:
            return
        spans = list(self._finished)
        token = attach(set_value(_SUPPRESS_INSTRUMENTATION_KEY, True))
        try:
            is_sent = self._spans.export(spans) is SpanExportResult.SUCCESS
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

    def flush(self, timeout_seconds: float) -> bool:
        """Send the metrics, too."""
        if self._own_metrics is None:
            return True
        return bool(self._own_metrics.force_flush(timeout_seconds * 1000))

    def forget_connections(self) -> None:
        """In a copy of the process, connections are the original's."""
        self._finished.clear()
        if self._spans:
            self._spans = self._span_exporter()

    def close(self) -> None:
        """Send what is left, and stop."""
        self._tree.close()
        if self._spans:
            if self._refused_since is None:
                self._send_the_last()
            self._spans.shutdown()
        if self._own_metrics:
            self._own_metrics.shutdown(_TIMEOUT_SECONDS * 1000)

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

    def _meter_provider(self) -> MeterProvider:
        exporter = OTLPMetricExporter(self._place("metrics"), timeout=_timeout())
        return MeterProvider([PeriodicExportingMetricReader(exporter)], _resource(), shutdown_on_exit=False)

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


def _resource() -> Resource:
    resource = Resource.create()
    name: Any = resource.attributes.get(SERVICE_NAME, "")
    return resource.merge(Resource({SERVICE_NAME: "compact"})) if str(name).startswith("unknown_service") else resource


def _timeout() -> float | None:
    """None leaves it to the usual variable."""
    return None if "OTEL_EXPORTER_OTLP_TIMEOUT" in os.environ else _TIMEOUT_SECONDS
