"""An event as a store keeps it: its JSON text, and the fields that it is found by."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from compact.core.audit.trace_events import StoredEvent, TraceEvent


def read_event(event: TraceEvent, *, received_at: float) -> StoredEvent:
    """Return an event as a store keeps it; `session_id` of the event itself, or else of its data, is its session."""
    data = event.get("data", {})
    # Whoever wrote a trace for one session says so beside the wire's own fields, which have no room for it.
    session_id = _text(event, "session_id") or _text(data, "session_id")
    wire = {name: value for name, value in event.items() if name != "session_id"}
    return StoredEvent(
        text=json.dumps(wire, separators=(",", ":"), allow_nan=False),
        type=event["type"],
        trace_id=event["trace_id"],
        span_id=event.get("span_id", ""),
        kind=_text(event, "kind"),
        session_id=session_id,
        is_error=event.get("status") == "error",
        started_at=_seconds(event, "started_at"),
        ended_at=_seconds(event, "ended_at"),
        received_at=received_at,
    )


def _text(data: Mapping[str, Any], name: str) -> str:
    value = data.get(name, "")
    return value if isinstance(value, str) else ""


def _seconds(event: TraceEvent, name: str) -> float | None:
    """Return a time of an event, which is in ISO 8601, in seconds since 1970."""
    text = _text(event, name)
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() if text else None
