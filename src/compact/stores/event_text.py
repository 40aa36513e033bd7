"""An event as a store keeps it: its JSON text, and the fields that it is found by."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from compact.core.audit.trace_events import StoredEvent, TraceEvent

# The year 2106.
_MAX_SECONDS = 2.0**32


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


def shortened(event: StoredEvent) -> str:
    """Return the text of an event with marks for what its columns say already: `restored` puts it back."""
    text = event.text
    for mark, value in _marked(event.trace_id, event.session_id, event.span_id, event.started_at, event.ended_at):
        text = text.replace(value, mark)
    return text


def restored(
    body: str, trace_id: str, session_id: str, span_id: str, started_at: float | None, ended_at: float | None
) -> str:
    """Return the text that `shortened` made a body of; one without marks, of a former version, is the text."""
    for mark, value in _marked(trace_id, session_id, span_id, started_at, ended_at):
        body = body.replace(mark, value)
    return body


def _marked(
    trace_id: str, session_id: str, span_id: str, started_at: float | None, ended_at: float | None
) -> Iterator[tuple[str, str]]:
    """Yield each mark, and the JSON that it stands for: no JSON has such a character as it is, so none is mistaken."""
    for mark, text in (("\x02", trace_id), ("\x03", session_id), ("\x04", span_id)):
        if text:
            yield mark, json.dumps(text)
    for mark, seconds in (("\x05", started_at), ("\x06", ended_at)):
        # Whoever sends a time beyond these has no clock, and dates end somewhere.
        if seconds is not None and 0 <= seconds < _MAX_SECONDS:
            at = datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds")
            yield mark, f'"{at.replace("+00:00", "Z")}"'


def _text(data: Mapping[str, Any], name: str) -> str:
    value = data.get(name, "")
    return value if isinstance(value, str) else ""


def _seconds(event: TraceEvent, name: str) -> float | None:
    """Return a time of an event, which is in ISO 8601, in seconds since 1970."""
    text = _text(event, name)
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() if text else None
