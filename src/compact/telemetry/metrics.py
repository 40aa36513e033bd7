"""Count what events say, session by session and in all."""

from __future__ import annotations

import threading
import warnings
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from compact.core.engine.event_spec import Measurement, Metric
from compact.core.engine.events import EVENTS, CompactionEvent

# Chosen: a process may see any number of sessions; of more than these, the oldest are in the totals only.
_MAX_SESSIONS = 1000
# Chosen: whoever sends events chooses their names; beyond so many, a name is counted as `other`.
_MAX_NAMES, _MAX_NAMES_OF_SESSION, _MAX_NAME_CHARS = 200, 50, 200

EVENT_COUNT = Metric(
    "", "Events, by name.", unit="{event}", prometheus="compact_events_total", label=("event", "event")
)
SESSION_COUNT = Metric("", "Sessions that are known.", unit="{session}", prometheus="compact_sessions", kind="gauge")
# Every metric there is: what events feed, how many events there were, and how many sessions.
METRICS: tuple[Metric, ...] = (
    EVENT_COUNT,
    *dict.fromkeys(metric for event in EVENTS.values() for metric in event.spec.metrics),
    SESSION_COUNT,
)
_BY_NAME = {metric.prometheus_name: metric for metric in METRICS}
_Value = TypeVar("_Value")


@dataclass(slots=True)
class Histogram:
    """How often a value was at most each bound, how often there was one, and the sum of all."""

    bounds: tuple[float, ...]
    counts: list[int] = field(init=False)
    count: int = 0
    total: float = 0.0

    def __post_init__(self) -> None:
        self.counts = [0] * len(self.bounds)

    def observe(self, value: float) -> None:
        """Count one value."""
        self.count += 1
        self.total += value
        for index, bound in enumerate(self.bounds):
            self.counts[index] += value <= bound


class _Figure(Generic[_Value]):
    """A read-only attribute of `CompactionMetrics`, read from the metric of this Prometheus name."""

    def __init__(self, read: Callable[[CompactionMetrics, Metric], _Value], name: str) -> None:
        self._read, self._metric = read, _BY_NAME[name]

    def __get__(self, metrics: CompactionMetrics, owner: type[CompactionMetrics] | None = None) -> _Value:
        return self._read(metrics, self._metric)


def _total(metrics: CompactionMetrics, metric: Metric) -> int:
    return metrics.counter(metric).total()


def _by_label(metrics: CompactionMetrics, metric: Metric) -> Counter[str]:
    return metrics.counter(metric)


def _last(metrics: CompactionMetrics, metric: Metric) -> float:
    return metrics.gauge(metric)


def _durations(metrics: CompactionMetrics, metric: Metric) -> Histogram:
    return metrics.histogram(metric)


@dataclass(slots=True)
class CompactionMetrics:
    """Aggregated statistics of one session, or of all; a metric without an attribute here is read by its `Metric`."""

    most_names: int = _MAX_NAMES
    # By the name of the metric in Prometheus.
    _counters: dict[str, Counter[str]] = field(default_factory=dict[str, Counter[str]])
    _gauges: dict[str, float] = field(default_factory=dict[str, float])
    _histograms: dict[str, Histogram] = field(default_factory=dict[str, Histogram])

    events = _Figure(_by_label, "compact_events_total")
    checks = _Figure(_total, "compact_preflights_total")
    compactions = _Figure(_total, "compact_compactions_total")
    compactions_by_reason = _Figure(_by_label, "compact_compactions_total")
    tokens_before = _Figure(_total, "compact_tokens_before_total")
    tokens_after = _Figure(_total, "compact_tokens_after_total")
    tokens_freed_by_action = _Figure(_by_label, "compact_tokens_freed_total")
    messages_by_action = _Figure(_by_label, "compact_messages_changed_total")
    errors = _Figure(_total, "compact_errors_total")
    errors_by_type = _Figure(_by_label, "compact_errors_total")
    conflicts = _Figure(_total, "compact_version_conflicts_total")
    recalls = _Figure(_total, "compact_recalls_total")
    rehydrations = _Figure(_total, "compact_rehydrations_total")
    blocked_rehydrations = _Figure(_total, "compact_rehydrations_blocked_total")
    dropped_by_exporter = _Figure(_by_label, "compact_events_dropped_total")
    entities = _Figure(_by_label, "compact_entities_total")
    missing_constraints = _Figure(_total, "compact_missing_constraints_total")
    summarizer_calls = _Figure(_total, "compact_summarizer_calls_total")
    summarizer_failures = _Figure(_total, "compact_summarizer_failures_total")
    summarizer_input_tokens = _Figure(_total, "compact_summarizer_input_tokens_total")
    summarizer_output_tokens = _Figure(_total, "compact_summarizer_output_tokens_total")
    last_tokens = _Figure(_last, "compact_last_prompt_tokens")
    last_usage_pct = _Figure(_last, "compact_last_prompt_usage_ratio")
    preflight_seconds = _Figure(_durations, "compact_preflight_seconds")
    compaction_seconds = _Figure(_durations, "compact_compaction_seconds")
    summarizer_seconds = _Figure(_durations, "compact_summarizer_seconds")

    @property
    def tokens_freed(self) -> int:
        """What all compactions freed."""
        return self.tokens_before - self.tokens_after

    def counter(self, metric: Metric) -> Counter[str]:
        """Return a counter by its label; one without a label has the empty one."""
        return self._counters.get(metric.prometheus_name) or Counter()

    def gauge(self, metric: Metric) -> float:
        """Return the last value."""
        return self._gauges.get(metric.prometheus_name, 0)

    def histogram(self, metric: Metric) -> Histogram:
        """Return how values are distributed."""
        return self._histograms.get(metric.prometheus_name) or Histogram(metric.buckets)

    def record(self, data: Mapping[str, Any]) -> None:
        """Count one event, given as `CompactionEvent.to_dict()`."""
        name = str(data.get("event", ""))
        self._count(EVENT_COUNT, name, 1)
        for metric in EVENTS[name].spec.metrics if name in EVENTS else ():
            for measurement in metric.measure(data):
                self._add(measurement)

    def _add(self, measurement: Measurement) -> None:
        metric = measurement.metric
        match metric.prometheus_kind or metric.kind:
            case "counter":
                self._count(metric, measurement.label, int(measurement.value))
            case "gauge":
                self._gauges[metric.prometheus_name] = measurement.value
            case "histogram":
                self._histograms.setdefault(metric.prometheus_name, Histogram(metric.buckets)).observe(
                    measurement.value
                )

    def _count(self, metric: Metric, label: str, amount: int) -> None:
        """Add to a counter; a label that somebody else chose may be long, and there may be many."""
        counter = self._counters.setdefault(metric.prometheus_name, Counter())
        label = label[:_MAX_NAME_CHARS]
        counter[label if label in counter or len(counter) < self.most_names else "other"] += amount


class MetricsCollector:
    """A sink that keeps statistics of each session and of all; safe between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._all = CompactionMetrics()
        self._sessions: OrderedDict[str, CompactionMetrics] = OrderedDict()

    def __call__(self, event: CompactionEvent) -> None:
        self.record(event.to_dict())

    def emit(self, event: CompactionEvent) -> None:
        """Do the same as a call."""
        self(event)

    def record(self, data: Mapping[str, Any]) -> None:
        """Count one event, given as `CompactionEvent.to_dict()`."""
        with self._lock:
            self._all.record(data)
            session_id = str(data.get("session_id", ""))
            if not session_id:
                return
            if session_id not in self._sessions:
                self._sessions[session_id] = CompactionMetrics(most_names=_MAX_NAMES_OF_SESSION)
            self._sessions[session_id].record(data)
            self._sessions.move_to_end(session_id)
            if len(self._sessions) > _MAX_SESSIONS:
                self._sessions.popitem(last=False)

    def snapshot(self) -> CompactionMetrics:
        """Return a copy of the statistics of all sessions that does not change any more."""
        with self._lock:
            return deepcopy(self._all)

    @property
    def global_metrics(self) -> CompactionMetrics:
        """The statistics of all sessions."""
        return self._all

    def session_metrics(self, session_id: str) -> CompactionMetrics:
        """Return the statistics of one session; empty for one that is not known."""
        with self._lock:
            return self._sessions.get(session_id) or CompactionMetrics()

    def sessions(self) -> tuple[str, ...]:
        """Return the ids of the sessions that are known, the most recent last."""
        with self._lock:
            return tuple(self._sessions)

    def thread_metrics(self, session_id: str) -> CompactionMetrics:
        """Deprecated: use `session_metrics`."""
        warnings.warn("thread_metrics is now session_metrics", DeprecationWarning, stacklevel=2)
        return self.session_metrics(session_id)

    def threads(self) -> tuple[str, ...]:
        """Deprecated: use `sessions`."""
        warnings.warn("threads is now sessions", DeprecationWarning, stacklevel=2)
        return self.sessions()

    def reset(self) -> None:
        """Forget everything that was counted."""
        with self._lock:
            self._all, self._sessions = CompactionMetrics(), OrderedDict()
