"""Metrics as Prometheus text: what the received events say, and how the viewer itself is doing."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, cast

from compact.core.audit.trace_events import EventKey, key_of
from compact.core.engine.events import CompactionEventType
from compact.telemetry.metrics import MetricsCollector
from compact.telemetry.prometheus import CONTENT_TYPE, render_prometheus
from compact.viewer.live.broadcast import Broadcaster
from compact.viewer.live.ingest import unix_seconds

__all__ = ["CONTENT_TYPE", "ViewerMetrics"]

_EVENT_NAMES = frozenset(kind.value for kind in CompactionEventType)
# Chosen: labels stay short, and no count is larger than what a float holds exactly.
_MAX_CHARS = 200
_MAX_NUMBER = 2**53
# Chosen: an update comes soon after what it updates.
_MAX_COUNTED = 10_000


class ViewerMetrics:
    """Counts the Compact events among the spans that agents send."""

    def __init__(self) -> None:
        self.collector = MetricsCollector()
        self.received = self.unreadable = 0
        # The name that each event was last counted under: one that is sent again still happened once.
        self._counted: OrderedDict[EventKey, str] = OrderedDict()

    def record(self, event: Mapping[str, Any]) -> None:
        """Count an event, and what it says if its data is a Compact event; an update that names no other is none."""
        self.received += 1
        key = key_of(event)
        before, name = self._counted.pop(key, None), _event_name(event)
        self._counted[key] = name or before or ""
        while len(self._counted) > _MAX_COUNTED:
            self._counted.popitem(last=False)
        if name and name != before:
            self._record(event)

    def _record(self, event: Mapping[str, Any]) -> None:
        data = event.get("data")
        if not isinstance(data, Mapping):
            return
        fields = cast(Mapping[str, Any], data)
        if str(fields.get("event", "")) not in _EVENT_NAMES:
            return
        times = {name: unix_seconds(event[name]) for name in ("started_at", "ended_at") if name in event}
        try:
            self.collector.record({**{name: _bounded(value) for name, value in fields.items()}, **times})
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
            # Anybody may send anything: an event with our name and other fields is counted as unreadable.
            self.unreadable += 1

    def render(self, streams: tuple[Broadcaster, ...]) -> str:
        """Return every metric as text."""
        subscribers, dropped = sum(map(len, streams)), sum(stream.dropped for stream in streams)
        own = {
            "compact_viewer_events_received_total": ("counter", "Events that were received.", self.received),
            "compact_viewer_events_unreadable_total": ("counter", "Events with missing fields.", self.unreadable),
            "compact_viewer_subscribers": ("gauge", "Clients that follow a stream.", subscribers),
            "compact_viewer_subscribers_dropped_total": ("counter", "Clients that read too slowly.", dropped),
        }
        lines = [
            line
            for name, (kind, text, value) in own.items()
            for line in (f"# HELP {name} {text}", f"# TYPE {name} {kind}", f"{name} {value}")
        ]
        return render_prometheus(self.collector) + "\n".join(lines) + "\n"


def _event_name(event: Mapping[str, Any]) -> str:
    """Return the name of a Compact event that our exporter sent; an empty text for the events of others."""
    data = event.get("data")
    name = cast(Mapping[str, Any], data).get("event", "") if isinstance(data, Mapping) else ""
    return name if isinstance(name, str) else ""


def _bounded(value: Any) -> Any:
    """Return a value that is safe to count by: long texts are cut, impossible numbers raise."""
    if isinstance(value, str):
        return value[:_MAX_CHARS]
    if isinstance(value, int | float) and abs(value) > _MAX_NUMBER:
        raise ValueError("larger than anything that is counted")
    return value
