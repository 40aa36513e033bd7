"""Events as OpenTelemetry metrics; sessions are no attribute, since there is no end to them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opentelemetry.metrics import Meter

from compact.core.engine.events import (
    CompactionCompletedEvent,
    CompactionErrorEvent,
    CompactionReportEvent,
    ContentChangedEvent,
    ContentRecalledEvent,
    ContentRehydratedEvent,
    EventsDroppedEvent,
    OperationEndedEvent,
    RehydrationBlockedEvent,
    SummarizerCallEvent,
    TokenEstimateEvent,
    VersionConflictEvent,
)
from compact.telemetry.metrics import ACTIONS, BUCKETS, reason_of
from compact.telemetry.worker import Outgoing

_COUNTERS = {
    "compact.compactions": ("{compaction}", "Plans that were put in force."),
    "compact.tokens.freed": ("{token}", "Tokens that left prompts, by what was done."),
    "compact.summarizer.failures": ("{call}", "Questions to a model without an answer."),
    "compact.entities": ("{entity}", "Specific strings in what left prompts, by where they are now."),
    "compact.constraints.missing": ("{constraint}", "Standing wishes that a prompt lacks."),
    "compact.recalls": ("{recall}", "Questions for what had left a prompt: regret."),
    "compact.rehydrations": ("{artifact}", "Artifacts that were shown again."),
    "compact.rehydrations.blocked": ("{artifact}", "Artifacts that were asked for in vain."),
    "compact.errors": ("{error}", "Failures that were survived."),
    "compact.version_conflicts": ("{conflict}", "Races between processes."),
    "compact.events.dropped": ("{event}", "Events that were never sent."),
}
_TOKENS = (1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 128_000, 256_000, 512_000, 1_000_000, 2_000_000)
_HISTOGRAMS = {
    "compact.prompt.tokens": ("{token}", "Tokens of prompts as they are measured.", _TOKENS),
    "compact.tokens.before": ("{token}", "Tokens of a prompt before it was compacted.", _TOKENS),
    "compact.tokens.after": ("{token}", "Tokens of a prompt afterwards.", _TOKENS),
    "compact.preflight.duration": ("s", "How long a preflight took.", BUCKETS),
    "compact.compaction.duration": ("s", "How long a compaction took.", BUCKETS),
    "compact.summarizer.duration": ("s", "How long a model took to answer.", BUCKETS),
}


class Instruments:
    """Counts and measures what events tell."""

    def __init__(self, meter: Meter) -> None:
        self._counters = {name: meter.create_counter(name, unit, text) for name, (unit, text) in _COUNTERS.items()}
        self._histograms = {
            name: meter.create_histogram(name, unit, text, explicit_bucket_boundaries_advisory=bounds)
            for name, (unit, text, bounds) in _HISTOGRAMS.items()
        }

    def record(self, outgoing: Outgoing) -> None:
        """Count one event."""
        match outgoing.event:
            case OperationEndedEvent() as event if event.operation in ("preflight", "manual_compact"):
                self._measure("compact.preflight.duration", event.duration_seconds, operation=event.operation)
            case TokenEstimateEvent() as event:
                self._measure("compact.prompt.tokens", event.t_est, **{"gen_ai.request.model": event.model})
            case CompactionCompletedEvent() as event:
                self._completed(event)
            case SummarizerCallEvent() as event:
                self._asked(event)
            case CompactionReportEvent():
                self._reported(outgoing.data)
            case event if isinstance(event, ContentChangedEvent):
                self._count("compact.tokens.freed", max(0, event.tokens_freed), action=ACTIONS[event.name])
            case event:
                self._counted(event)

    def _completed(self, event: CompactionCompletedEvent) -> None:
        self._count("compact.compactions", 1, reason=reason_of(event.reason))
        self._measure("compact.tokens.before", event.tokens_before)
        self._measure("compact.tokens.after", event.tokens_after)
        self._measure("compact.compaction.duration", event.duration_seconds)

    def _asked(self, event: SummarizerCallEvent) -> None:
        failed = {"error.type": event.error_type} if event.error_type else {}
        about = {"gen_ai.request.model": event.model, "gen_ai.provider.name": event.provider, **failed}
        self._measure("compact.summarizer.duration", event.duration_seconds, **about)
        if failed:
            self._count("compact.summarizer.failures", 1, **about)

    def _reported(self, data: Mapping[str, Any]) -> None:
        for kind, states in data["counts"].items():
            for state, count in states.items():
                self._count("compact.entities", count, state=str(state), kind=str(kind))
        self._count("compact.constraints.missing", len(data["missing_constraints"]))

    def _counted(self, event: object) -> None:
        """What only has to be counted."""
        match event:
            case CompactionErrorEvent():
                self._count("compact.errors", 1, **{"error.type": event.error_type})
            case ContentRecalledEvent():
                self._count("compact.recalls", 1)
            case ContentRehydratedEvent():
                self._count("compact.rehydrations", 1)
            case RehydrationBlockedEvent():
                self._count("compact.rehydrations.blocked", 1)
            case VersionConflictEvent():
                self._count("compact.version_conflicts", 1)
            case EventsDroppedEvent():
                self._count("compact.events.dropped", event.count, exporter=event.exporter)
            case _:
                return

    def _count(self, name: str, amount: int, **attributes: str) -> None:
        if amount:
            self._counters[name].add(amount, attributes)

    def _measure(self, name: str, value: float, **attributes: str) -> None:
        self._histograms[name].record(value, attributes)
