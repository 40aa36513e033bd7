"""Keeps the newest events in memory, up to a number and a size, and the traces that they belong to."""

from __future__ import annotations

import json
from collections import Counter, OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from compact.viewer.json_http import to_json
from compact.viewer.live.ingest import TraceEvent, unix_seconds

# The type, trace and span that an event has in common with its updates.
EventKey: TypeAlias = tuple[str, str, str]

# Chosen: some hours of a busy agent, in memory that any machine has.
CAPACITY = 10_000
CAPACITY_BYTES = 64 * 1024 * 1024
TRACE_CAPACITY = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class BufferedEvent:
    """An event as JSON text, which is what is sent on, with the fields that it is found by."""

    text: str
    type: str
    trace_id: str
    span_id: str
    kind: str
    session_id: str
    event_name: str
    is_error: bool
    started_at: float | None
    ended_at: float | None
    received_at: float

    @property
    def at(self) -> float:
        """When it happened, as far as is known."""
        return self.ended_at or self.started_at or self.received_at

    @property
    def key(self) -> EventKey:
        """What an update of it has in common with it."""
        return self.type, self.trace_id, self.span_id

    @property
    def size(self) -> int:
        """Its size in bytes, at most: text that is not ASCII takes up to four a character."""
        return 4 * len(self.text) if not self.text.isascii() else len(self.text)

    def event(self) -> TraceEvent:
        """Return the event as it was sent, with all updates."""
        return json.loads(self.text)

    def to_dict(self) -> dict[str, Any]:
        """Return the event, and when it was received."""
        return {**self.event(), "received_at": self.received_at}


@dataclass(slots=True)
class _TraceIndex:
    """The events of one trace that are still in the buffer."""

    trace_id: str
    updated_at: float
    keys: dict[EventKey, None] = field(default_factory=dict[EventKey, None])
    # How many of its events name each session: a session that none names any more is removed.
    sessions: Counter[str] = field(default_factory=Counter[str])
    errors: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceSnapshot:
    """A trace as it was when it was requested; it does not change, so any thread may read it."""

    trace_id: str
    updated_at: float
    own_event: BufferedEvent | None
    spans: tuple[BufferedEvent, ...]
    sessions: tuple[str, ...]
    errors: int

    def summary(self) -> dict[str, Any]:
        """Return the trace without its spans; one that never sent its end ended with its last span."""
        event = self.own_event.event() if self.own_event else {}
        ends = [span.ended_at for span in self.spans if span.ended_at is not None]
        has_ended = bool(ends) and len(ends) == len(self.spans)
        starts = [span.started_at or span.at for span in self.spans]
        return {
            "trace_id": self.trace_id,
            "name": event.get("name", ""),
            "group_id": event.get("group_id", ""),
            "metadata": event.get("metadata", {}),
            "started_at": _seconds(event, "started_at") or min(starts, default=None),
            "ended_at": _seconds(event, "ended_at") or (max(ends) if has_ended else None),
            "updated_at": self.updated_at,
            "sessions": sorted(self.sessions)[:20],
            "spans": len(self.spans),
            "errors": self.errors,
        }

    def with_spans(self) -> dict[str, Any]:
        """Return the trace with all its spans."""
        return {**self.summary(), "spans": sorted((span.to_dict() for span in self.spans), key=_start_order)}


class EventBuffer:
    """The newest events; an update replaces what it updates."""

    def __init__(
        self,
        *,
        capacity: int = CAPACITY,
        capacity_bytes: int = CAPACITY_BYTES,
        trace_capacity: int = TRACE_CAPACITY,
    ) -> None:
        self.capacity, self._capacity_bytes, self._trace_capacity = capacity, capacity_bytes, trace_capacity
        self._events: OrderedDict[EventKey, BufferedEvent] = OrderedDict()
        self._traces: OrderedDict[str, _TraceIndex] = OrderedDict()
        self.bytes = self.received = self.evicted = 0

    def __len__(self) -> int:
        return len(self._events)

    def __iter__(self) -> Iterator[BufferedEvent]:
        return iter(list(self._events.values()))

    def get(self, key: EventKey) -> BufferedEvent | None:
        """Return the event with a key, if it is still here."""
        return self._events.get(key)

    def add(self, events: Sequence[TraceEvent], *, received_at: float) -> dict[EventKey, BufferedEvent]:
        """Keep events, each merged with what it updates, all or none; return what they have become.

        Only the last state of each is written as text: a request of many updates must not take many times the room.
        """
        newest: dict[EventKey, TraceEvent] = {}
        for event in events:
            key = key_of(event)
            known = None if key in newest else self._events.get(key)
            before = newest.pop(key, None) or (known.event() if known else {})
            newest[key] = _merged(before, event)
        buffered = {key: _buffered(event, received_at) for key, event in newest.items()}
        self.received += len(events)
        for event in buffered.values():
            self._put(event)
        return buffered

    def _put(self, event: BufferedEvent) -> None:
        """Keep an event instead of what it updates; evict the oldest when there are too many."""
        before = self._events.get(event.key)
        if before:
            self._remove(before)
        self._events[event.key] = event
        self.bytes += event.size
        self._index(event)
        while len(self._events) > self.capacity or self.bytes > self._capacity_bytes:
            self._evict(next(iter(self._events.values())))
        while len(self._traces) > self._trace_capacity:
            for key in list(next(iter(self._traces.values())).keys):
                self._evict(self._events[key])

    def traces(self, *, session_id: str = "", limit: int = 50) -> list[TraceSnapshot]:
        """Return the traces that were updated last, the newest first; only those of one session, if given."""
        traces = reversed(self._traces.values())
        found = [trace for trace in traces if not session_id or session_id in trace.sessions]
        return [self._snapshot(trace) for trace in found[:limit]]

    def trace(self, trace_id: str) -> TraceSnapshot | None:
        """Return one trace, if it is still here."""
        trace = self._traces.get(trace_id)
        return self._snapshot(trace) if trace else None

    def sessions_with_errors(self) -> set[str]:
        """Return the sessions in which something failed."""
        return {event.session_id for event in self._events.values() if event.is_error and event.session_id}

    def _index(self, event: BufferedEvent) -> None:
        trace = self._traces.setdefault(event.trace_id, _TraceIndex(event.trace_id, event.received_at))
        trace.keys[event.key] = None
        trace.errors += event.is_error
        trace.updated_at = event.received_at
        if event.session_id:
            trace.sessions[event.session_id] += 1
        self._traces.move_to_end(event.trace_id)

    def _evict(self, event: BufferedEvent) -> None:
        self.evicted += 1
        self._remove(event)

    def _remove(self, event: BufferedEvent) -> None:
        del self._events[event.key]
        self.bytes -= event.size
        trace = self._traces[event.trace_id]
        del trace.keys[event.key]
        trace.errors -= event.is_error
        trace.sessions[event.session_id] -= 1
        if trace.sessions[event.session_id] <= 0:
            del trace.sessions[event.session_id]
        if not trace.keys:
            del self._traces[event.trace_id]

    def _snapshot(self, trace: _TraceIndex) -> TraceSnapshot:
        return TraceSnapshot(
            trace_id=trace.trace_id,
            updated_at=trace.updated_at,
            own_event=self._events.get(("trace", trace.trace_id, "")),
            spans=tuple(self._events[key] for key in trace.keys if key[0] == "span"),
            sessions=tuple(trace.sessions),
            errors=trace.errors,
        )


def key_of(event: TraceEvent) -> EventKey:
    """Return what an event has in common with its updates."""
    return event["type"], event["trace_id"], event.get("span_id", "")


def event_name(event: TraceEvent) -> str:
    """Return the name of a Compact event that our exporter sent; an empty text for the events of others."""
    return _text(event.get("data", {}), "event")


def _buffered(event: TraceEvent, received_at: float) -> BufferedEvent:
    return BufferedEvent(
        text=to_json(event),
        type=event["type"],
        trace_id=event["trace_id"],
        span_id=event.get("span_id", ""),
        kind=event.get("kind", ""),
        session_id=_text(event.get("data", {}), "session_id"),
        event_name=event_name(event),
        is_error=event.get("status") == "error",
        started_at=_seconds(event, "started_at"),
        ended_at=_seconds(event, "ended_at"),
        received_at=received_at,
    )


def _merged(before: TraceEvent, event: TraceEvent) -> TraceEvent:
    """Return an event with its update; fields of `data` that the update does not name stay."""
    merged = {**before, **event}
    if "data" in before and "data" in event:
        merged["data"] = {**before["data"], **event["data"]}
    return merged


def _text(data: Mapping[str, Any], name: str) -> str:
    value = data.get(name, "")
    return value if isinstance(value, str) else ""


def _seconds(event: Mapping[str, Any], name: str) -> float | None:
    return unix_seconds(event[name]) if name in event else None


def _start_order(span: Mapping[str, Any]) -> tuple[float, float]:
    return _seconds(span, "started_at") or span["received_at"], span["received_at"]
