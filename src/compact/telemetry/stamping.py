"""Gives events what they are made without: an id, the time, and the operation they are a part of."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

from compact.core.engine.events import (
    CompactionCheckStartedEvent,
    CompactionCompletedEvent,
    CompactionEvent,
    OperationEndedEvent,
    OperationStartedEvent,
    SummaryCreatedEvent,
)

# Tasks and threads have operations of their own: what one does is never a part of what another does.
_open: ContextVar[_Operation | None] = ContextVar("compact_operation", default=None)
# By the identity of the event that began it: what was abandoned may be ended by anybody, anywhere.
_running: dict[int, _Operation] = {}
# What these tell took as long as the operation they stand for.
_LASTING = (CompactionCompletedEvent, SummaryCreatedEvent)


@dataclass(frozen=True, slots=True, eq=False)
class _Operation:
    """`made` is the event as it was emitted, `event` the same with its stamp, `before` what was open then."""

    event: OperationStartedEvent
    made: OperationStartedEvent
    before: _Operation | None
    clock: float

    @property
    def now(self) -> float:
        """The time since 1970 that never runs backwards within an operation."""
        return self.event.started_at + time.perf_counter() - self.clock


def stamped(event: CompactionEvent, metadata: Mapping[str, Any] | None = None) -> CompactionEvent:
    """The event with its id, its times and its parent; `metadata` is added to its own."""
    more = {"metadata": {**metadata, **event.metadata}} if metadata else {}
    if isinstance(event, OperationStartedEvent):
        return _started(event, more)
    if isinstance(event, OperationEndedEvent):
        return _ended(event, more)
    home = _home(event)
    return replace(event, event_id=_new_id(), **_times(event, home), **_place(event, home), **more)


def _started(event: OperationStartedEvent, more: dict[str, Any]) -> OperationStartedEvent:
    # A call is a part of nothing, whatever was left open here by one that never came back.
    outer = None if isinstance(event, CompactionCheckStartedEvent) else _home(event)
    at = outer.now if outer else time.time()
    parent_id = outer.event.event_id if outer else ""
    known = replace(event, event_id=_new_id(), parent_id=parent_id, started_at=at, ended_at=at, **more)
    operation = _Operation(known, event, next(_still_open(), None), time.perf_counter())
    _running[id(event)] = operation
    _open.set(operation)
    return known


def _ended(event: OperationEndedEvent, more: dict[str, Any]) -> OperationEndedEvent:
    operation = _running.get(id(event.began))
    if operation is None:
        at = time.time()
        return replace(event, event_id=_new_id(), started_at=at, ended_at=at, **more)
    if any(operation is known for known in _still_open()):
        _open.set(operation.before)
    del _running[id(event.began)]
    began = operation.event
    return replace(
        event,
        event_id=began.event_id,
        parent_id=began.parent_id,
        started_at=began.started_at,
        ended_at=operation.now,
        **more,
    )


def _still_open() -> Iterator[_Operation]:
    """What is open in this task or thread, the innermost first; what was ended elsewhere is left out."""
    operation = _open.get()
    while operation:
        if id(operation.made) in _running:
            yield operation
        operation = operation.before


def _home(event: CompactionEvent) -> _Operation | None:
    """The innermost open operation of the event's session, or of any if it does not say which."""
    return next((known for known in _still_open() if event.session_id in ("", known.event.session_id)), None)


def _times(event: CompactionEvent, home: _Operation | None) -> dict[str, float]:
    if event.ended_at:
        return {}
    now = home.now if home else time.time()
    lasts = home is not None and isinstance(event, _LASTING)
    return {"started_at": home.event.started_at if lasts and home else now, "ended_at": now}


def _place(event: CompactionEvent, home: _Operation | None) -> dict[str, Any]:
    """The operation an event is a part of; one that does not know its session is of the session in hand."""
    if home is None:
        return {}
    began = home.event
    known = {"turn_number": began.turn_number, "plan_version": began.plan_version, "session_id": began.session_id}
    return {"parent_id": event.parent_id or began.event_id, **({} if event.session_id else known)}


def _new_id() -> str:
    """Not from `random`: a caller's seeded sequence stays as it is."""
    return os.urandom(8).hex()
