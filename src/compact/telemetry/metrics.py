"""Counts what events tell, session by session and in all."""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from compact.core.engine.events import CompactionEvent

# A process may see any number of sessions; the oldest are only in the totals.
_MOST_THREADS = 1000
# What others send may be called anything; beyond so many names it is counted as `other`.
_MOST_NAMES, _MOST_NAMES_IN_THREAD = 200, 50
_LONGEST_NAME = 200
# The same words in every exporter.
ACTIONS = {
    "compact.content_cleared": "clear",
    "compact.content_summarized": "summarize",
    "compact.content_externalized": "externalize",
    "compact.content_dropped": "drop",
}
# Upper bounds in seconds; the last bucket has everything.
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


@dataclass(slots=True)
class Histogram:
    """How often something took at most so many seconds, how often in all, and how long together."""

    counts: list[int] = field(default_factory=lambda: [0] * len(BUCKETS))
    count: int = 0
    total: float = 0.0

    def observe(self, seconds: float) -> None:
        """Count one."""
        self.count += 1
        self.total += seconds
        for place, bound in enumerate(BUCKETS):
            self.counts[place] += seconds <= bound


@dataclass(slots=True)
class CompactionMetrics:
    """Aggregated statistics of one session, or of all."""

    most_names: int = _MOST_NAMES
    events: Counter[str] = field(default_factory=Counter[str])
    checks: int = 0
    compactions: int = 0
    compactions_by_reason: Counter[str] = field(default_factory=Counter[str])
    tokens_before: int = 0
    tokens_after: int = 0
    tokens_freed_by_action: Counter[str] = field(default_factory=Counter[str])
    messages_by_action: Counter[str] = field(default_factory=Counter[str])
    errors: int = 0
    errors_by_type: Counter[str] = field(default_factory=Counter[str])
    conflicts: int = 0
    recalls: int = 0
    rehydrations: int = 0
    blocked_rehydrations: int = 0
    dropped_by_exporter: Counter[str] = field(default_factory=Counter[str])
    entities: Counter[str] = field(default_factory=Counter[str])
    missing_constraints: int = 0
    summarizer_calls: int = 0
    summarizer_failures: int = 0
    summarizer_input_tokens: int = 0
    summarizer_output_tokens: int = 0
    last_tokens: int = 0
    last_usage_pct: float = 0.0
    preflight_seconds: Histogram = field(default_factory=Histogram)
    compaction_seconds: Histogram = field(default_factory=Histogram)
    summarizer_seconds: Histogram = field(default_factory=Histogram)

    @property
    def tokens_freed(self) -> int:
        """What all compactions freed."""
        return self.tokens_before - self.tokens_after

    def add(self, counter: Counter[str], name: str, amount: int) -> None:
        """Count by a name that somebody else chose: it may be long, and there may be many."""
        name = name[:_LONGEST_NAME]
        counter[name if name in counter or len(counter) < self.most_names else "other"] += amount

    def record(self, data: Mapping[str, Any]) -> None:
        """Count one event, given as `CompactionEvent.to_dict()`."""
        name = str(data.get("event", ""))
        self.add(self.events, name, 1)
        count = _COUNTERS.get(name)
        if count:
            count(self, data)
        elif name in ACTIONS:
            freed = max(0, int(data["tokens_before"]) - int(data["tokens_after"]))  # a counter never falls
            self.tokens_freed_by_action[ACTIONS[name]] += freed
            self.messages_by_action[ACTIONS[name]] += int(data["message_count"])


class MetricsCollector:
    """A sink that keeps statistics of each session and of all; safe between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._all = CompactionMetrics()
        self._threads: OrderedDict[str, CompactionMetrics] = OrderedDict()

    def __call__(self, event: CompactionEvent) -> None:
        self.record(event.to_dict())

    def emit(self, event: CompactionEvent) -> None:
        """The same, by its other name."""
        self(event)

    def record(self, data: Mapping[str, Any]) -> None:
        """Count an event that is plain data already."""
        with self._lock:
            self._all.record(data)
            session_id = str(data.get("session_id", ""))
            if not session_id:
                return
            if session_id not in self._threads:
                self._threads[session_id] = CompactionMetrics(most_names=_MOST_NAMES_IN_THREAD)
            self._threads[session_id].record(data)
            self._threads.move_to_end(session_id)
            if len(self._threads) > _MOST_THREADS:
                self._threads.popitem(last=False)

    def snapshot(self) -> CompactionMetrics:
        """A copy of the statistics of all sessions, which nobody counts on."""
        with self._lock:
            return deepcopy(self._all)

    @property
    def global_metrics(self) -> CompactionMetrics:
        """The statistics of all sessions."""
        return self._all

    def thread_metrics(self, session_id: str) -> CompactionMetrics:
        """The statistics of one session; empty for one that is not known."""
        with self._lock:
            return self._threads.get(session_id) or CompactionMetrics()

    def threads(self) -> tuple[str, ...]:
        """The sessions that are known, the most recent last."""
        with self._lock:
            return tuple(self._threads)

    def reset(self) -> None:
        """Start anew."""
        with self._lock:
            self._all, self._threads = CompactionMetrics(), OrderedDict()


def reason_of(reason: str) -> str:
    """The kind of reason, of which there are few: it may be a label."""
    return "manual" if reason.startswith("manual") else "threshold"


def _seconds(data: Mapping[str, Any]) -> float:
    if "duration_seconds" in data:
        return max(0.0, float(data["duration_seconds"]))
    return max(0.0, float(data.get("ended_at", 0)) - float(data.get("started_at", 0)))


def _operation(metrics: CompactionMetrics, data: Mapping[str, Any]) -> None:
    if data["operation"] in ("preflight", "manual_compact"):
        metrics.checks += 1
        metrics.preflight_seconds.observe(_seconds(data))


def _estimate(metrics: CompactionMetrics, data: Mapping[str, Any]) -> None:
    metrics.last_tokens, metrics.last_usage_pct = int(data["t_est"]), float(data["usage_pct"])


def _completed(metrics: CompactionMetrics, data: Mapping[str, Any]) -> None:
    metrics.compactions += 1
    metrics.compactions_by_reason[reason_of(str(data["reason"]))] += 1
    metrics.tokens_before += int(data["tokens_before"])
    metrics.tokens_after += int(data["tokens_after"])
    metrics.compaction_seconds.observe(_seconds(data))


def _error(metrics: CompactionMetrics, data: Mapping[str, Any]) -> None:
    metrics.errors += 1
    metrics.add(metrics.errors_by_type, str(data["error_type"]), 1)


def _report(metrics: CompactionMetrics, data: Mapping[str, Any]) -> None:
    for states in data["counts"].values():
        for state, count in states.items():
            metrics.add(metrics.entities, str(state), int(count))
    metrics.missing_constraints += len(data["missing_constraints"])


def _summarizer(metrics: CompactionMetrics, data: Mapping[str, Any]) -> None:
    metrics.summarizer_calls += 1
    metrics.summarizer_failures += bool(data["error_type"])
    metrics.summarizer_input_tokens += int(data["input_tokens"])
    metrics.summarizer_output_tokens += int(data["output_tokens"])
    metrics.summarizer_seconds.observe(_seconds(data))


def _conflict(metrics: CompactionMetrics, data: Mapping[str, Any]) -> None:
    metrics.conflicts += 1


def _recall(metrics: CompactionMetrics, data: Mapping[str, Any]) -> None:
    metrics.recalls += 1


def _rehydrated(metrics: CompactionMetrics, data: Mapping[str, Any]) -> None:
    metrics.rehydrations += 1


def _blocked(metrics: CompactionMetrics, data: Mapping[str, Any]) -> None:
    metrics.blocked_rehydrations += 1


def _dropped(metrics: CompactionMetrics, data: Mapping[str, Any]) -> None:
    metrics.add(metrics.dropped_by_exporter, str(data["exporter"]), int(data["count"]))


_COUNTERS = {
    "compact.operation_ended": _operation,
    "compact.token_estimate": _estimate,
    "compact.completed": _completed,
    "compact.error": _error,
    "compact.report": _report,
    "compact.summarizer_call": _summarizer,
    "compact.version_conflict": _conflict,
    "compact.content_recalled": _recall,
    "compact.content_rehydrated": _rehydrated,
    "compact.rehydration_blocked": _blocked,
    "compact.events_dropped": _dropped,
}
