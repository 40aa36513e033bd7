"""Where events go. `compact.core.engine.events` is the table of them: every file here reads it, none has its own.

emitters        hands each event to every sink; what a sink is
operations      ids, times and the parent operation of an event
log             lines for people: `logging`, or stderr
metrics         counts of each session and of all
prometheus      those as text for Prometheus
worker          a queue and a thread for exporters that wait for a network; the `Exporter` protocol
ariadne         spans for Ariadne's trace viewer and `compact view`
otlp            OpenTelemetry: the exporter and its metrics
otlp_spans      OpenTelemetry: the span tree, by the GenAI conventions
agents_tracing  spans of the OpenAI Agents SDK
event_store     events in the store of the sessions
event_archive   events beside the archived transcripts
truncation      texts and lists that fit a wire or a line
exporters       the sinks that a configuration asks for
"""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import TYPE_CHECKING, Any

from compact.core.engine.events import EVENTS
from compact.core.engine.events import CompactionEvent as CompactionEvent
from compact.core.engine.events import CompactionEventType as CompactionEventType
from compact.core.engine.events import ContentChangedEvent as ContentChangedEvent
from compact.telemetry.emitters import CompactionEventEmitter as CompactionEventEmitter
from compact.telemetry.emitters import CompositeEventEmitter as CompositeEventEmitter
from compact.telemetry.log import ConsoleEmitter as ConsoleEmitter
from compact.telemetry.log import LoggingEventEmitter as LoggingEventEmitter
from compact.telemetry.metrics import CompactionMetrics as CompactionMetrics
from compact.telemetry.metrics import MetricsCollector as MetricsCollector
from compact.telemetry.prometheus import render_prometheus as render_prometheus
from compact.telemetry.worker import DeliveryFailed as DeliveryFailed
from compact.telemetry.worker import Exporter as Exporter
from compact.telemetry.worker import ExportWorker as ExportWorker
from compact.telemetry.worker import OutgoingEvent as OutgoingEvent

if TYPE_CHECKING:  # what `__getattr__` finds, for type checkers
    from compact.core.engine.events import *  # noqa: F403
    from compact.telemetry.agents_tracing import AgentsTracing as AgentsTracing
    from compact.telemetry.ariadne import AriadneExporter as AriadneExporter
    from compact.telemetry.otlp import OtlpExporter as OtlpExporter
    from compact.telemetry.otlp_spans import mark_compacted as mark_compacted

_EVENTS = {kind.__name__: kind for kind in EVENTS.values()}
# What needs a package of its own, or loads much, is imported when it is asked for.
_LAZY = {
    "AgentsTracing": "compact.telemetry.agents_tracing",
    "AriadneExporter": "compact.telemetry.ariadne",
    "OtlpExporter": "compact.telemetry.otlp",
    "mark_compacted": "compact.telemetry.otlp_spans",
}
_FORMER = {"Outgoing": "OutgoingEvent", "Undelivered": "DeliveryFailed"}


def __getattr__(name: str) -> Any:
    if name in _FORMER:
        warnings.warn(f"{__name__}.{name} is now {_FORMER[name]}", DeprecationWarning, stacklevel=2)
        return globals()[_FORMER[name]]
    if name in _EVENTS:
        return _EVENTS[name]
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_EVENTS, *_LAZY})
