"""Prometheus text: what the events that came in tell, and how the viewer itself is doing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from compact.core.engine.events import CompactionEventType
from compact.telemetry.metrics import MetricsCollector
from compact.telemetry.prometheus import CONTENT_TYPE, render_prometheus
from compact.viewer.ingest import moment

if TYPE_CHECKING:
    from compact.viewer.live import Live

__all__ = ["CONTENT_TYPE", "Numbers"]

_NAMES = frozenset(kind.value for kind in CompactionEventType)
_MOST_CHARS = 200
_MOST_NUMBER = 2**53


class Numbers:
    """Counts the compaction events among the spans that come in."""

    def __init__(self) -> None:
        self.collector = MetricsCollector()
        self.unreadable = 0

    def take_in(self, event: Mapping[str, Any]) -> None:
        """Count a span whose data is one of our events; one that says something else is left alone."""
        data = event.get("data")
        if not isinstance(data, Mapping) or str(data.get("event", "")) not in _NAMES:
            return
        times = {name: moment(event[name]) for name in ("started_at", "ended_at") if name in event}
        try:
            self.collector.record({**{name: _bounded(value) for name, value in data.items()}, **times})
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
            # Anybody may send anything: what has our name and not our fields is counted as that.
            self.unreadable += 1

    def render(self, live: Live) -> str:
        """Everything as text."""
        own = {
            "compact_viewer_events_received_total": ("counter", "Events that came in.", live.ring.received),
            "compact_viewer_events_evicted_total": ("counter", "Events that made room.", live.ring.evicted),
            "compact_viewer_events_unreadable_total": ("counter", "Events without their fields.", self.unreadable),
            "compact_viewer_events_kept": ("gauge", "Events in memory.", len(live.ring)),
            "compact_viewer_events_kept_bytes": ("gauge", "What they take.", live.ring.bytes),
            "compact_viewer_subscribers": ("gauge", "Who listens.", len(live.events) + len(live.pages)),
            "compact_viewer_subscribers_dropped_total": (
                "counter",
                "Who was too slow.",
                live.events.dropped + live.pages.dropped,
            ),
        }
        lines = [
            line
            for name, (kind, text, value) in own.items()
            for line in (f"# HELP {name} {text}", f"# TYPE {name} {kind}", f"{name} {value}")
        ]
        return render_prometheus(self.collector) + "\n".join(lines) + "\n"


def _bounded(value: Any) -> Any:
    """What is counted by stays in memory: long texts are cut, and numbers that nothing can have are refused."""
    if isinstance(value, str):
        return value[:_MOST_CHARS]
    if isinstance(value, int | float) and abs(value) > _MOST_NUMBER:
        raise ValueError("larger than anything that is counted")
    return value
