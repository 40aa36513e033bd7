"""Events as traces and spans: what a store keeps of each, how an update changes one, and what is known of a trace.

The form is that of Ariadne's wire: a trace, or a span of one, as JSON data.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

TraceEvent: TypeAlias = Mapping[str, Any]
# The type, trace and span that an event has in common with its updates.
EventKey: TypeAlias = tuple[str, str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredEvent:
    """An event as JSON text, with the fields that it is found by.

    `number` comes from the store and goes up with every event and every update, so that a reader can go on from it.
    """

    text: str
    type: str
    trace_id: str
    span_id: str = ""
    kind: str = ""
    session_id: str = ""
    is_error: bool = False
    started_at: float | None = None
    ended_at: float | None = None
    received_at: float = 0.0
    number: int = 0

    @property
    def at(self) -> float:
        """When it happened, as far as is known."""
        return self.ended_at or self.started_at or self.received_at

    @property
    def key(self) -> EventKey:
        """What an update of it has in common with it."""
        return self.type, self.trace_id, self.span_id

    def event(self) -> dict[str, Any]:
        """Return the event as it was sent, with all updates."""
        return json.loads(self.text)

    def has_name(self, name: str) -> bool:
        """Return True if it is a span of this name."""
        return self.type == "span" and self.event().get("name") == name

    def to_dict(self) -> dict[str, Any]:
        """Return the event, and when it was received."""
        return {**self.event(), "received_at": self.received_at}


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceInfo:
    """A trace in a list; one that never sent its end ended with its last span."""

    trace_id: str
    name: str = ""
    group_id: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    started_at: float | None = None
    ended_at: float | None = None
    updated_at: float = 0.0
    sessions: tuple[str, ...] = ()
    spans: int = 0
    errors: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Return the same as data."""
        return {name: getattr(self, name) for name in TraceInfo.__dataclass_fields__} | {
            "metadata": dict(self.metadata),
            "sessions": list(self.sessions),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanTotals:
    """What the spans of a trace come to."""

    spans: int = 0
    errors: int = 0
    open_spans: int = 0
    first_start: float | None = None
    last_end: float | None = None
    updated_at: float = 0.0


def trace_info(trace_id: str, own_event: StoredEvent | None, totals: SpanTotals, sessions: Sequence[str]) -> TraceInfo:
    """Return what is known of a trace: from its own event, if there is one, and from its spans."""
    event = own_event.event() if own_event else {}
    has_ended = totals.spans > 0 and not totals.open_spans
    starts = [at for at in (own_event.started_at if own_event else None, totals.first_start) if at is not None]
    return TraceInfo(
        trace_id=trace_id,
        name=_text(event, "name"),
        group_id=_text(event, "group_id"),
        metadata=event.get("metadata") or {},
        # Whoever goes on with a session in another process introduces its trace again, with a later start.
        started_at=min(starts, default=None),
        ended_at=(own_event.ended_at if own_event else None) or (totals.last_end if has_ended else None),
        updated_at=totals.updated_at,
        sessions=tuple(sorted(sessions)),
        spans=totals.spans,
        errors=totals.errors,
    )


def key_of(event: TraceEvent) -> EventKey:
    """Return what an event has in common with its updates."""
    return event["type"], event["trace_id"], event.get("span_id", "")


def joined(events: Sequence[TraceEvent]) -> dict[EventKey, TraceEvent]:
    """Return the last state of each event, in the order in which they were last changed."""
    newest: dict[EventKey, TraceEvent] = {}
    for event in events:
        key = key_of(event)
        before = newest.pop(key, None)
        newest[key] = updated(before, event) if before is not None else event
    return newest


def updated(before: TraceEvent, event: TraceEvent) -> TraceEvent:
    """Return an event with its update; fields of `data` that the update does not name stay."""
    merged = {**before, **event}
    if "data" in before and "data" in event:
        merged["data"] = {**before["data"], **event["data"]}
    return merged


def _text(data: Mapping[str, Any], name: str) -> str:
    value = data.get(name, "")
    return value if isinstance(value, str) else ""
