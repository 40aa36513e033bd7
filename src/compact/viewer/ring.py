"""What came in, in memory: the newest events, so many and so large at most, and the traces that they belong to."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from compact.viewer.answers import dumps
from compact.viewer.ingest import Event, moment

Key: TypeAlias = tuple[str, str, str]

CAPACITY = 10_000
CAPACITY_BYTES = 64 * 1024 * 1024
TRACE_CAPACITY = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """An event as text, which is what is sent on, and what of it is asked for."""

    text: str
    type: str
    trace_id: str
    span_id: str
    kind: str
    thread_id: str
    event_name: str
    is_error: bool
    at: float
    received_at: float

    @property
    def key(self) -> Key:
        """What an update of it has in common with it."""
        return self.type, self.trace_id, self.span_id

    @property
    def size(self) -> int:
        """Bytes, nearly: what is not ASCII takes more."""
        return 4 * len(self.text) if not self.text.isascii() else len(self.text)

    def event(self) -> Event:
        """The event as it came, with all updates."""
        return json.loads(self.text)


@dataclass(slots=True)
class Trace:
    """The events of one trace that are still there."""

    trace_id: str
    updated_at: float
    keys: dict[Key, None] = field(default_factory=dict[Key, None])
    threads: set[str] = field(default_factory=set[str])
    errors: int = 0


class Ring:
    """The newest events; an update takes the place of what it updates."""

    def __init__(
        self,
        *,
        capacity: int = CAPACITY,
        capacity_bytes: int = CAPACITY_BYTES,
        trace_capacity: int = TRACE_CAPACITY,
    ) -> None:
        self.capacity, self._capacity_bytes, self._trace_capacity = capacity, capacity_bytes, trace_capacity
        self._kept: OrderedDict[Key, Kept] = OrderedDict()
        self._traces: OrderedDict[str, Trace] = OrderedDict()
        self.bytes = self.received = self.evicted = 0

    def __len__(self) -> int:
        return len(self._kept)

    def __iter__(self) -> Iterator[Kept]:
        return iter(list(self._kept.values()))

    def known(self, event: Event) -> Kept | None:
        """What an event updates."""
        return self._kept.get((event["type"], event["trace_id"], event.get("span_id", "")))

    def add(self, event: Event, *, received_at: float) -> Kept:
        """Keep an event, joined with what it updates; the oldest go when there are too many."""
        self.received += 1
        before = self.known(event)
        if before:
            event = _updated(before.event(), event)
            self._remove(before)
        kept = _kept(event, received_at)
        self._kept[kept.key] = kept
        self.bytes += kept.size
        self._index(kept)
        while len(self._kept) > self.capacity or self.bytes > self._capacity_bytes:
            self._evict(next(iter(self._kept.values())))
        while len(self._traces) > self._trace_capacity:
            for key in list(next(iter(self._traces.values())).keys):
                self._evict(self._kept[key])
        return kept

    def traces(self, *, thread_id: str = "", limit: int = 50) -> list[dict[str, Any]]:
        """The traces that came in last, the newest first; those of one session, if asked."""
        found = [trace for trace in reversed(self._traces.values()) if not thread_id or thread_id in trace.threads]
        return [self._about(trace) for trace in found[:limit]]

    def trace(self, trace_id: str) -> dict[str, Any] | None:
        """A trace with all its spans."""
        found = self._traces.get(trace_id)
        if found is None:
            return None
        spans = [self.span(self._kept[key]) for key in found.keys if key[0] == "span"]
        return {**self._about(found), "spans": sorted(spans, key=_beginning)}

    def about(self, trace_id: str) -> dict[str, Any] | None:
        """A trace without its spans."""
        found = self._traces.get(trace_id)
        return self._about(found) if found else None

    def span(self, kept: Kept) -> dict[str, Any]:
        """A span, with when it came."""
        return {**kept.event(), "received_at": kept.received_at}

    def threads_in_error(self) -> set[str]:
        """The sessions of which something failed."""
        return {kept.thread_id for kept in self._kept.values() if kept.is_error and kept.thread_id}

    def _index(self, kept: Kept) -> None:
        trace = self._traces.setdefault(kept.trace_id, Trace(kept.trace_id, kept.received_at))
        trace.keys[kept.key] = None
        trace.errors += kept.is_error
        trace.updated_at = kept.received_at
        if kept.thread_id:
            trace.threads.add(kept.thread_id)
        self._traces.move_to_end(kept.trace_id)

    def _evict(self, kept: Kept) -> None:
        self.evicted += 1
        self._remove(kept)

    def _remove(self, kept: Kept) -> None:
        del self._kept[kept.key]
        self.bytes -= kept.size
        trace = self._traces[kept.trace_id]
        del trace.keys[kept.key]
        trace.errors -= kept.is_error
        if not trace.keys:
            del self._traces[kept.trace_id]

    def _about(self, trace: Trace) -> dict[str, Any]:
        own = self._kept.get(("trace", trace.trace_id, ""))
        told = own.event() if own else {}
        spans = [self._kept[key] for key in trace.keys if key[0] == "span"]
        return {
            "trace_id": trace.trace_id,
            "name": told.get("name", ""),
            "group_id": told.get("group_id", ""),
            "metadata": told.get("metadata", {}),
            "started_at": _seconds(told, "started_at") or min((span.at for span in spans), default=None),
            "ended_at": _seconds(told, "ended_at"),
            "updated_at": trace.updated_at,
            "sessions": sorted(trace.threads)[:20],
            "spans": len(spans),
            "errors": trace.errors,
        }


def _kept(event: Event, received_at: float) -> Kept:
    data = event.get("data", {})
    return Kept(
        text=dumps(event),
        type=event["type"],
        trace_id=event["trace_id"],
        span_id=event.get("span_id", ""),
        kind=event.get("kind", ""),
        thread_id=_text(data, "thread_id"),
        event_name=_text(data, "event"),
        is_error=event.get("status") == "error",
        at=_seconds(event, "ended_at") or _seconds(event, "started_at") or received_at,
        received_at=received_at,
    )


def _updated(before: Event, event: Event) -> Event:
    """What was known, and what is said now; data that is only added to keeps the rest."""
    joined = {**before, **event}
    if "data" in before and "data" in event:
        joined["data"] = {**before["data"], **event["data"]}
    return joined


def _text(data: Mapping[str, Any], name: str) -> str:
    value = data.get(name, "")
    return value if isinstance(value, str) else ""


def _seconds(event: Mapping[str, Any], name: str) -> float | None:
    return moment(event[name]) if name in event else None


def _beginning(span: Mapping[str, Any]) -> tuple[float, float]:
    return _seconds(span, "started_at") or span["received_at"], span["received_at"]
