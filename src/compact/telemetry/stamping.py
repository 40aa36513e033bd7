"""Gives events what they are made without: an id, the time, and the operation they are a part of."""

from __future__ import annotations

import random
import time
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

from compact.core.events import (
    CompactionCompletedEvent,
    CompactionEvent,
    OperationEndedEvent,
    OperationStartedEvent,
    SummaryCreatedEvent,
)

# Tasks and threads have operations of their own: what one does is never a part of what another does.
_open: ContextVar[_Operation | None] = ContextVar("compact_operation", default=None)
# What these tell took as long as the operation they stand for.
_LASTING = (CompactionCompletedEvent, SummaryCreatedEvent)


@dataclass(frozen=True, slots=True)
class _Operation:
    event: OperationStartedEvent
    outer: _Operation | None
    clock: float

    @property
    def now(self) -> float:
        """The time since 1970 that never runs backwards within an operation."""
        return self.event.started_at + time.perf_counter() - self.clock


def stamped(event: CompactionEvent) -> CompactionEvent:
    """The event with its id, its times and its parent."""
    current = _open.get()
    if isinstance(event, OperationStartedEvent):
        return _started(event, current)
    if isinstance(event, OperationEndedEvent):
        return _ended(event, current)
    return replace(event, event_id=_new_id(), **_times(event, current), **_place(event, current))


def _started(event: OperationStartedEvent, current: _Operation | None) -> OperationStartedEvent:
    outer = current if current and current.event.thread_id == event.thread_id else None
    at = outer.now if outer else time.time()
    known = replace(
        event, event_id=_new_id(), parent_id=outer.event.event_id if outer else "", started_at=at, ended_at=at
    )
    _open.set(_Operation(known, outer, time.perf_counter()))
    return known


def _ended(event: OperationEndedEvent, current: _Operation | None) -> OperationEndedEvent:
    while current and current.event.operation != event.operation:
        current = current.outer  # what was left open by something that never came back
    if current is None:
        at = time.time()
        return replace(event, event_id=_new_id(), started_at=at, ended_at=at)
    _open.set(current.outer)
    began = current.event
    return replace(
        event,
        event_id=began.event_id,
        parent_id=began.parent_id,
        started_at=began.started_at,
        ended_at=current.now,
    )


def _times(event: CompactionEvent, current: _Operation | None) -> dict[str, float]:
    if event.ended_at:
        return {}
    now = current.now if current else time.time()
    lasts = isinstance(event, _LASTING) and current is not None
    return {"started_at": current.event.started_at if lasts and current else now, "ended_at": now}


def _place(event: CompactionEvent, current: _Operation | None) -> dict[str, Any]:
    """The operation an event is a part of; one that does not know its session is of the session in hand."""
    if current is None or (event.thread_id and event.thread_id != current.event.thread_id):
        return {}
    began = current.event
    known = {} if event.thread_id else {"thread_id": began.thread_id, "turn_number": began.turn_number}
    return {"parent_id": event.parent_id or began.event_id, **known}


def _new_id() -> str:
    return f"{random.getrandbits(64):016x}"
