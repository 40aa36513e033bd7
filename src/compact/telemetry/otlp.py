"""Send traces and metrics over OTLP/HTTP, with providers of its own: the application's are left alone."""

from __future__ import annotations

import logging
import os
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from importlib import metadata
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
from opentelemetry.metrics import Meter, NoOpMeterProvider
from opentelemetry.metrics import MeterProvider as AnyMeterProvider
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import SERVICE_INSTANCE_ID, SERVICE_NAME, Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SpanExportResult

from compact.core.engine.event_spec import EventData, EventSpec, Metric
from compact.core.engine.events import CompactionCompletedEvent, CompactionEvent
from compact.core.facts.text import encodable
from compact.core.plurals import quantity
from compact.telemetry.metrics import METRICS
from compact.telemetry.otlp_spans import SpanTree, is_model_call, mark_compacted
from compact.telemetry.worker import DeliveryFailed, OutgoingEvent, ThrottledWarnings

_log = logging.getLogger("compact")
_SCOPE = "compact"
_PACKAGE = "compact-context"
# Chosen: a collector is near; one that takes longer is away, and is tried again.
_TIMEOUT_SECONDS = 3.0
# Chosen: what a person waits for when a program ends.
_CLOSE_SECONDS = 5.0
# Chosen: as many as events wait in the queue by default.
_MAX_SPANS = 4096
# Chosen: a server that refuses the same spans for ten minutes will not take them at all.
_PATIENCE_SECONDS = 600.0


class OtlpExporter:
    """Turns events into spans and metrics, and sends them; the usual `OTEL_*` variables hold.

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
        self._finished: deque[ReadableSpan] = deque(maxlen=_MAX_SPANS)
        self._spans = None if tracer_provider else self._span_exporter()
        is_wanted = os.environ.get("OTEL_METRICS_EXPORTER") != "none"
        self._metrics = self._metric_exporter() if is_wanted and not meter_provider else None
        self._own_metrics = _meter_provider(self._metrics) if self._metrics else None
        tracer = (tracer_provider or self._tracer_provider()).get_tracer(_SCOPE, _version())
        self._tree = SpanTree(tracer, content=content)
        meter = (meter_provider or self._own_metrics or NoOpMeterProvider()).get_meter(_SCOPE, _version())
        self._instruments = Instruments(meter)
        self._refused_since: float | None = None
        self._lost = 0
        self.warn = ThrottledWarnings("[OTLP]", write=_log.warning)

    def capture_context(self, event: CompactionEvent) -> object:
        """Return the agent's own span, which the event is a part of."""
        if isinstance(event, CompactionCompletedEvent) and is_model_call(trace.get_current_span()):
            mark_compacted(trace.get_current_span())
        return None if event.parent_id else trace.get_current_span().get_span_context()

    def add(self, batch: Sequence[OutgoingEvent]) -> None:
        """Start and end spans, and count."""
        for outgoing in batch:
            try:
                self._tree.add(outgoing)
                self._instruments.record(outgoing.event.spec, outgoing.data)
            except Exception as error:  # noqa: BLE001
                # An event may hold anything; one that cannot be encoded keeps no other from being sent.
                self.warn(f"{outgoing.event.name} could not be encoded: {type(error).__name__}")
                self._lost += 1

    def send(self) -> int:
        """Send the spans that have ended; return how much was lost. Metrics are sent by the SDK."""
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
            self._keep_or_drop(len(spans))
        self._refused_since = None
        for _ in spans:
            self._finished.popleft()

    def _keep_or_drop(self, count: int) -> None:
        """Raise to try again, or drop them if the server refuses for too long; the SDK's own log has the reason."""
        self._refused_since = self._refused_since or time.monotonic()
        if time.monotonic() - self._refused_since < _PATIENCE_SECONDS:
            raise DeliveryFailed(f"{quantity(count, 'span was', 'spans were')} not taken; trying again later")
        self.warn(
            f"{quantity(count, 'span was', 'spans were')} refused for {_PATIENCE_SECONDS / 60:.0f} minutes, and lost"
        )
        self._lost += count

    def flush(self, timeout_seconds: float) -> bool:
        """Send the metrics, too; return False if that failed or took longer."""
        metrics = self._own_metrics
        if metrics is None:
            return True
        return self._run_within(timeout_seconds, lambda: bool(metrics.force_flush(timeout_seconds * 1000)))

    def reset_after_fork(self) -> None:
        """Drop connections and what waits: they belong to the original process."""
        self._finished.clear()
        self._lost = 0
        if self._spans:
            self._spans = self._span_exporter()
        if self._metrics:  # its provider cannot be given another one
            self._metrics._session = self._metric_exporter()._session  # pyright: ignore[reportPrivateUsage]

    def close(self) -> None:
        """Send what is left, as far as that takes no longer than `_CLOSE_SECONDS`, and stop."""
        self._run_within(_CLOSE_SECONDS, self._stop)

    def _stop(self) -> bool:
        self._tree.close()
        if self._spans:
            if self._refused_since is None:
                self._send_last()
            self._spans.shutdown()
        if self._own_metrics:
            self._own_metrics.shutdown(_TIMEOUT_SECONDS * 1000)
        return True

    def _run_within(self, seconds: float, work: Callable[[], bool]) -> bool:
        """Return what the work returns, or False if it takes longer or raises: the SDK keeps to no limit."""
        results: list[bool] = []

        def run() -> None:
            try:
                results.append(work())
            except Exception as error:  # noqa: BLE001 - the SDK is not ours
                self.warn(f"the SDK failed: {type(error).__name__}")

        thread = threading.Thread(target=run, name="compact-otlp-sdk", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # some versions of Python start none at the end of the process
            run()
        else:
            thread.join(seconds)
        return bool(results and results[0])

    def _send_last(self) -> None:
        try:
            self.send()
        except DeliveryFailed as error:
            self.warn(f"closed all the same: {error}")

    # -- providers of its own -------------------------------------------------------------------------------------

    def _span_exporter(self) -> OTLPSpanExporter:
        return OTLPSpanExporter(self._endpoint_of("traces"), timeout=_timeout())

    def _tracer_provider(self) -> TracerProvider:
        provider = TracerProvider(resource=_resource(), shutdown_on_exit=False)
        provider.add_span_processor(_FinishedSpans(self._finished))
        return provider

    def _metric_exporter(self) -> OTLPMetricExporter:
        return OTLPMetricExporter(self._endpoint_of("metrics"), timeout=_timeout())

    def _endpoint_of(self, signal: str) -> str | None:
        """Return where a signal goes; None leaves it to the usual variables, and localhost:4318."""
        return f"{self._endpoint.removesuffix('/v1/traces')}/v1/{signal}" if self._endpoint else None


class Instruments:
    """The metrics as instruments of OpenTelemetry; sessions are no attribute, because there is no end to them."""

    def __init__(self, meter: Meter) -> None:
        self._recorders = {metric: _recorder(metric, meter) for metric in METRICS if metric.name}

    def record(self, spec: EventSpec, data: EventData) -> None:
        """Count one event."""
        for metric in spec.metrics:
            if record := self._recorders.get(metric):
                for measurement in metric.measure(data):
                    attributes = {name: encodable(value) for name, value in measurement.attributes.items()}
                    record(measurement.value, attributes)


def _recorder(metric: Metric, meter: Meter) -> Callable[[float, Mapping[str, str]], None]:
    """Return the function of a new instrument that takes a value and its attributes."""
    match metric.kind:
        case "counter":
            counter = meter.create_counter(metric.name, metric.unit, metric.help)
            return lambda value, attributes: counter.add(value, attributes) if value else None
        case "gauge":
            return meter.create_gauge(metric.name, metric.unit, metric.help).set
        case "histogram":
            return meter.create_histogram(
                metric.name, metric.unit, metric.help, explicit_bucket_boundaries_advisory=metric.buckets
            ).record


class _FinishedSpans(SpanProcessor):
    """Keeps spans that have ended until they are sent."""

    def __init__(self, finished: deque[ReadableSpan]) -> None:
        self._finished = finished

    def on_end(self, span: ReadableSpan) -> None:
        context = span.context
        if context and context.trace_flags.sampled:
            self._finished.append(span)


def _meter_provider(exporter: OTLPMetricExporter) -> MeterProvider:
    """Return a provider with its own instance id: two with the same would overwrite each other's counts."""
    resource = _resource()
    if SERVICE_INSTANCE_ID not in os.environ.get("OTEL_RESOURCE_ATTRIBUTES", ""):
        resource = resource.merge(Resource({SERVICE_INSTANCE_ID: str(uuid.uuid4())}))
    return MeterProvider([PeriodicExportingMetricReader(exporter)], resource, shutdown_on_exit=False)


def _version() -> str:
    """Return the version of this package; from a checkout that was never installed it is not known."""
    try:
        return metadata.version(_PACKAGE)
    except metadata.PackageNotFoundError:
        return "0"


def _resource() -> Resource:
    resource = Resource.create()
    name: Any = resource.attributes.get(SERVICE_NAME, "")
    return resource.merge(Resource({SERVICE_NAME: "compact"})) if str(name).startswith("unknown_service") else resource


def _timeout() -> float | None:
    """Return the timeout; None leaves it to the usual variable."""
    return None if "OTEL_EXPORTER_OTLP_TIMEOUT" in os.environ else _TIMEOUT_SECONDS
