"""Where events go: emitters, exporters and metrics, and every event; loaded when they are asked for."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

_HOMES = {
    "compact.core.engine.events": (
        "ArchivalEvent CompactionCheckStartedEvent CompactionCompletedEvent CompactionErrorEvent CompactionEvent "
        "CompactionEventType CompactionReportEvent EventsDroppedEvent HistoryBranchedEvent HistoryRepairedEvent "
        "NoticeEvent OperationEndedEvent OperationStartedEvent PrunedMessagesEvent SummarizerCallEvent "
        "SummaryCreatedEvent TokenEstimateEvent TriggerDecisionEvent VersionConflictEvent "
        "ContentChangedEvent ContentClearedEvent ContentDroppedEvent ContentExternalizedEvent ContentRecalledEvent "
        "ContentRehydratedEvent ContentSummarizedEvent ProposalGeneratedEvent ProposalRejectedEvent "
        "RehydrationBlockedEvent"
    ),
    "compact.telemetry.agents_tracing": "AgentsTracing",
    "compact.telemetry.ariadne": "AriadneExporter",
    "compact.telemetry.console": "ConsoleEmitter",
    "compact.telemetry.emitters": "CompactionEventEmitter CompositeEventEmitter",
    "compact.telemetry.log": "LoggingEventEmitter",
    "compact.telemetry.metrics": "CompactionMetrics MetricsCollector",
    "compact.telemetry.otlp": "OtlpExporter",
    "compact.telemetry.otlp_spans": "mark_compacted",
    "compact.telemetry.prometheus": "render_prometheus",
    "compact.telemetry.worker": "Exporter ExportWorker Outgoing Undelivered",
}
_MODULE_OF = {name: module for module, names in _HOMES.items() for name in names.split()}

if TYPE_CHECKING:  # the same names, for those who read types
    from compact.core.engine.events import ArchivalEvent as ArchivalEvent
    from compact.core.engine.events import CompactionCheckStartedEvent as CompactionCheckStartedEvent
    from compact.core.engine.events import CompactionCompletedEvent as CompactionCompletedEvent
    from compact.core.engine.events import CompactionErrorEvent as CompactionErrorEvent
    from compact.core.engine.events import CompactionEvent as CompactionEvent
    from compact.core.engine.events import CompactionEventType as CompactionEventType
    from compact.core.engine.events import CompactionReportEvent as CompactionReportEvent
    from compact.core.engine.events import ContentChangedEvent as ContentChangedEvent
    from compact.core.engine.events import ContentClearedEvent as ContentClearedEvent
    from compact.core.engine.events import ContentDroppedEvent as ContentDroppedEvent
    from compact.core.engine.events import ContentExternalizedEvent as ContentExternalizedEvent
    from compact.core.engine.events import ContentRecalledEvent as ContentRecalledEvent
    from compact.core.engine.events import ContentRehydratedEvent as ContentRehydratedEvent
    from compact.core.engine.events import ContentSummarizedEvent as ContentSummarizedEvent
    from compact.core.engine.events import EventsDroppedEvent as EventsDroppedEvent
    from compact.core.engine.events import HistoryBranchedEvent as HistoryBranchedEvent
    from compact.core.engine.events import HistoryRepairedEvent as HistoryRepairedEvent
    from compact.core.engine.events import NoticeEvent as NoticeEvent
    from compact.core.engine.events import OperationEndedEvent as OperationEndedEvent
    from compact.core.engine.events import OperationStartedEvent as OperationStartedEvent
    from compact.core.engine.events import ProposalGeneratedEvent as ProposalGeneratedEvent
    from compact.core.engine.events import ProposalRejectedEvent as ProposalRejectedEvent
    from compact.core.engine.events import PrunedMessagesEvent as PrunedMessagesEvent
    from compact.core.engine.events import RehydrationBlockedEvent as RehydrationBlockedEvent
    from compact.core.engine.events import SummarizerCallEvent as SummarizerCallEvent
    from compact.core.engine.events import SummaryCreatedEvent as SummaryCreatedEvent
    from compact.core.engine.events import TokenEstimateEvent as TokenEstimateEvent
    from compact.core.engine.events import TriggerDecisionEvent as TriggerDecisionEvent
    from compact.core.engine.events import VersionConflictEvent as VersionConflictEvent
    from compact.telemetry.agents_tracing import AgentsTracing as AgentsTracing
    from compact.telemetry.ariadne import AriadneExporter as AriadneExporter
    from compact.telemetry.console import ConsoleEmitter as ConsoleEmitter
    from compact.telemetry.emitters import CompactionEventEmitter as CompactionEventEmitter
    from compact.telemetry.emitters import CompositeEventEmitter as CompositeEventEmitter
    from compact.telemetry.log import LoggingEventEmitter as LoggingEventEmitter
    from compact.telemetry.metrics import CompactionMetrics as CompactionMetrics
    from compact.telemetry.metrics import MetricsCollector as MetricsCollector
    from compact.telemetry.otlp import OtlpExporter as OtlpExporter
    from compact.telemetry.otlp_spans import mark_compacted as mark_compacted
    from compact.telemetry.prometheus import render_prometheus as render_prometheus
    from compact.telemetry.worker import Exporter as Exporter
    from compact.telemetry.worker import ExportWorker as ExportWorker
    from compact.telemetry.worker import Outgoing as Outgoing
    from compact.telemetry.worker import Undelivered as Undelivered


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULE_OF[name]), name)


def __dir__() -> list[str]:
    return sorted(_MODULE_OF)
