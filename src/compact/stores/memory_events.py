"""Events in memory: the newest of them, up to a number and a size."""

from __future__ import annotations

import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from compact.core.audit.trace_events import (
    EventKey,
    SpanTotals,
    StoredEvent,
    TraceEvent,
    TraceInfo,
    joined,
    trace_info,
    updated,
)
from compact.stores.event_text import read_event

# Chosen: some hours of a busy agent, in memory that any machine has.
MAX_EVENTS = 10_000
MAX_BYTES = 64 * 1024 * 1024


@dataclass(slots=True)
class _TraceIndex:
    """The events of one trace that are still here."""

    keys: dict[EventKey, None] = field(default_factory=dict[EventKey, None])
    # How many of its events name each session: a session that none names any more is removed.
    sessions: Counter[str] = field(default_factory=Counter[str])


class InMemoryEventStore:
    """Events in a dictionary, in the order in which they were last changed; safe between threads."""

    def __init__(
        self,
        *,
        clock: Callable[[], float] = time.time,
        max_events: int = MAX_EVENTS,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        self._clock, self._max_events, self._max_bytes = clock, max_events, max_bytes
        self._lock = threading.RLock()
        self._events: OrderedDict[EventKey, StoredEvent] = OrderedDict()
        self._traces: OrderedDict[str, _TraceIndex] = OrderedDict()
        self._last_number = self._bytes = 0

    def add(self, events: Sequence[TraceEvent], *, keep_seconds: float) -> tuple[StoredEvent, ...]:
        """Keep events, each joined with what it updates, all or none."""
        with self._lock:
            now = self._clock()
            stored: list[StoredEvent] = []
            for key, event in joined(events).items():
                known = self._events.get(key)
                whole = updated({**known.event(), "session_id": known.session_id}, event) if known else event
                number = self._last_number + len(stored) + 1
                stored.append(replace(read_event(whole, received_at=now), number=number))
            for event in stored:
                self._put(event)
            self._evict(now - keep_seconds)
            return tuple(stored)

    def after(self, number: int, limit: int) -> tuple[StoredEvent, ...]:
        """Return events that were added or updated after the one with this number."""
        with self._lock:
            return tuple(islice((event for event in self._events.values() if event.number > number), limit))

    def recent(self, limit: int) -> tuple[StoredEvent, ...]:
        """Return the newest events, oldest first."""
        with self._lock:
            return tuple(reversed(list(islice(reversed(self._events.values()), limit))))

    def traces(
        self, *, session_id: str = "", with_errors: bool = False, offset: int = 0, limit: int = 50
    ) -> tuple[TraceInfo, ...]:
        """Return traces, the one updated last first."""
        with self._lock:
            wanted = (
                self._info(trace_id, trace)
                for trace_id, trace in reversed(self._traces.items())
                if not session_id or session_id in trace.sessions
            )
            found = (info for info in wanted if info.errors or not with_errors)
            return tuple(islice(found, offset, offset + limit))

    def trace(self, trace_id: str) -> TraceInfo | None:
        """Return what is known of one trace."""
        with self._lock:
            trace = self._traces.get(trace_id)
            return self._info(trace_id, trace) if trace else None

    def spans(self, trace_id: str, *, before: int | None = None, limit: int = 10_000) -> tuple[StoredEvent, ...]:
        """Return the newest spans of a trace, oldest first."""
        with self._lock:
            trace = self._traces.get(trace_id)
            spans = [event for event in self._of(trace) if event.type == "span"]
        wanted = [event for event in spans if before is None or event.number < before]
        return tuple(wanted[-limit:])

    def named(self, session_id: str, name: str) -> tuple[StoredEvent, ...]:
        """Return the spans of a session that have this name, oldest first."""
        with self._lock:
            own = [event for event in self._events.values() if event.session_id == session_id]
        return tuple(event for event in own if event.has_name(name))

    def sessions_with_errors(self) -> frozenset[str]:
        """Return the sessions in which something failed."""
        with self._lock:
            return frozenset(e.session_id for e in self._events.values() if e.is_error and e.session_id)

    def count(self) -> int:
        """Return how many events there are."""
        return len(self._events)

    def forget(self, session_id: str) -> None:
        """Remove the events of a session, and the traces that name no other."""
        with self._lock:
            for trace in [trace for trace in self._traces.values() if session_id in trace.sessions]:
                is_its_own = set(trace.sessions) == {session_id}
                for event in [e for e in self._of(trace) if is_its_own or e.session_id == session_id]:
                    self._remove(event)

    def _put(self, event: StoredEvent) -> None:
        if before := self._events.get(event.key):
            self._remove(before)
        self._events[event.key] = event
        self._bytes += len(event.text)
        self._last_number = event.number
        trace = self._traces.setdefault(event.trace_id, _TraceIndex())
        trace.keys[event.key] = None
        if event.session_id:
            trace.sessions[event.session_id] += 1
        self._traces.move_to_end(event.trace_id)

    def _evict(self, before: float) -> None:
        """Remove the oldest events: those that were received too long ago, or for which there is no room."""
        while self._events:
            oldest = next(iter(self._events.values()))
            is_too_much = len(self._events) > self._max_events or self._bytes > self._max_bytes
            if not is_too_much and oldest.received_at >= before:
                return
            self._remove(oldest)

    def _remove(self, event: StoredEvent) -> None:
        del self._events[event.key]
        self._bytes -= len(event.text)
        trace = self._traces[event.trace_id]
        del trace.keys[event.key]
        if event.session_id:
            trace.sessions[event.session_id] -= 1
            if trace.sessions[event.session_id] <= 0:
                del trace.sessions[event.session_id]
        if not trace.keys:
            del self._traces[event.trace_id]

    def _of(self, trace: _TraceIndex | None) -> list[StoredEvent]:
        return [self._events[key] for key in trace.keys] if trace else []

    def _info(self, trace_id: str, trace: _TraceIndex) -> TraceInfo:
        own = self._events.get(("trace", trace_id, ""))
        return trace_info(trace_id, own, _totals(self._of(trace)), list(trace.sessions))


def _totals(events: Iterable[StoredEvent]) -> SpanTotals:
    events = list(events)
    spans = [event for event in events if event.type == "span"]
    return SpanTotals(
        spans=len(spans),
        errors=sum(event.is_error for event in spans),
        open_spans=sum(event.ended_at is None for event in spans),
        first_start=min((event.started_at for event in spans if event.started_at is not None), default=None),
        last_end=max((event.ended_at for event in spans if event.ended_at is not None), default=None),
        updated_at=max((event.received_at for event in events), default=0.0),
    )
