"""What came in, in memory: the newest events, so many and so large at most, and the traces that they belong to."""

from __future__ import annotations

import json
from collections import Counter, OrderedDict
from collections.abc import Iterator, Mapping, Sequence
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

    def told(self) -> dict[str, Any]:
        """The event, with when it came."""
        return {**self.event(), "received_at": self.received_at}


@dataclass(slots=True)
class Trace:
    """The events of one trace that are still there."""

    trace_id: str
    updated_at: float
    keys: dict[Key, None] = field(default_factory=dict[Key, None])
    # How many of its events name a session: one that none names any more is forgotten.
    threads: Counter[str] = field(default_factory=Counter[str])
    errors: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A trace as it was when it was asked for; it does not change, so any thread may read it."""

    trace_id: str
    updated_at: float
    own: Kept | None
    spans: tuple[Kept, ...]
    threads: tuple[str, ...]
    errors: int

    def about(self) -> dict[str, Any]:
        """The trace without its spans; one that never said its end ended with its last span."""
        told = self.own.event() if self.own else {}
        ends = [span.ended_at for span in self.spans if span.ended_at is not None]
        has_ended = bool(ends) and len(ends) == len(self.spans)
        starts = [span.started_at or span.at for span in self.spans]
        return {
            "trace_id": self.trace_id,
            "name": told.get("name", ""),
            "group_id": told.get("group_id", ""),
            "metadata": told.get("metadata", {}),
            "started_at": _seconds(told, "started_at") or min(starts, default=None),
            "ended_at": _seconds(told, "ended_at") or (max(ends) if has_ended else None),
            "updated_at": self.updated_at,
            "sessions": sorted(self.threads)[:20],
            "spans": len(self.spans),
            "errors": self.errors,
        }

    def whole(self) -> dict[str, Any]:
        """The trace with all its spans."""
        return {**self.about(), "spans": sorted((span.told() for span in self.spans), key=_beginning)}


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
        return self._kept.get(key_of(event))

    def add(self, events: Sequence[Event], *, received_at: float) -> dict[Key, Kept]:
        """Keep events, each joined with what it updates, all or none; returns what they have become.

        Only the last state of each is written as text: a request of many updates must not take many times the room.
        """
        newest: dict[Key, Event] = {}
        for event in events:
            key = key_of(event)
            known = None if key in newest else self._kept.get(key)
            before = newest.pop(key, None) or (known.event() if known else {})
            newest[key] = _updated(before, event)
        made = {key: _kept(event, received_at) for key, event in newest.items()}
        self.received += len(events)
        for kept in made.values():
            self._put(kept)
        return made

    def _put(self, kept: Kept) -> None:
        """Keep an event in the place of what it updates; the oldest go when there are too many."""
        before = self._kept.get(kept.key)
        if before:
            self._remove(before)
        self._kept[kept.key] = kept
        self.bytes += kept.size
        self._index(kept)
        while len(self._kept) > self.capacity or self.bytes > self._capacity_bytes:
            self._evict(next(iter(self._kept.values())))
        while len(self._traces) > self._trace_capacity:
            for key in list(next(iter(self._traces.values())).keys):
                self._evict(self._kept[key])

    def find(self, *, session_id: str = "", limit: int = 50) -> list[Found]:
        """The traces that came in last, the newest first; those of one session, if asked."""
        found = [trace for trace in reversed(self._traces.values()) if not session_id or session_id in trace.threads]
        return [self._found(trace) for trace in found[:limit]]

    def find_one(self, trace_id: str) -> Found | None:
        """One trace."""
        trace = self._traces.get(trace_id)
        return self._found(trace) if trace else None

    def threads_in_error(self) -> set[str]:
        """The sessions of which something failed."""
        return {kept.session_id for kept in self._kept.values() if kept.is_error and kept.session_id}

    def _index(self, kept: Kept) -> None:
        trace = self._traces.setdefault(kept.trace_id, Trace(kept.trace_id, kept.received_at))
        trace.keys[kept.key] = None
        trace.errors += kept.is_error
        trace.updated_at = kept.received_at
        if kept.session_id:
            trace.threads[kept.session_id] += 1
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
        trace.threads[kept.session_id] -= 1
        if trace.threads[kept.session_id] <= 0:
            del trace.threads[kept.session_id]
        if not trace.keys:
            del self._traces[kept.trace_id]

    def _found(self, trace: Trace) -> Found:
        return Found(
            trace_id=trace.trace_id,
            updated_at=trace.updated_at,
            own=self._kept.get(("trace", trace.trace_id, "")),
            spans=tuple(self._kept[key] for key in trace.keys if key[0] == "span"),
            threads=tuple(trace.threads),
            errors=trace.errors,
        )


def key_of(event: Event) -> Key:
    """What an event has in common with its updates."""
    return event["type"], event["trace_id"], event.get("span_id", "")


def event_name(event: Event) -> str:
    """What our own exporter says that happened; nothing for what others send."""
    return _text(event.get("data", {}), "event")


def _kept(event: Event, received_at: float) -> Kept:
    data = event.get("data", {})
    return Kept(
        text=dumps(event),
        type=event["type"],
        trace_id=event["trace_id"],
        span_id=event.get("span_id", ""),
        kind=event.get("kind", ""),
        session_id=_text(data, "session_id"),
        event_name=event_name(event),
        is_error=event.get("status") == "error",
        started_at=_seconds(event, "started_at"),
        ended_at=_seconds(event, "ended_at"),
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
