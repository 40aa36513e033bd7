"""Give each event what it is made without: an id, its times, and the operation that it is a part of."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from compact.core.engine.events import (
    CompactionCheckStartedEvent,
    CompactionEvent,
    OperationEndedEvent,
    OperationStartedEvent,
)
from compact.waiting.forks import after_fork

# Tasks and threads have operations of their own: what one does is never a part of what another does.
_innermost: ContextVar[_Operation | None] = ContextVar("compact_operation", default=None)
# By the identity of the event that started it: an abandoned operation may be ended by another task or thread.
_running: dict[int, _Operation] = {}


@dataclass(frozen=True, slots=True, eq=False)
class _Operation:
    """`emitted` is the event that started it, `event` the same with its id and times, `outer` what was open then."""

    event: OperationStartedEvent
    emitted: OperationStartedEvent
    outer: _Operation | None
    clock: float

    @property
    def now(self) -> float:
        """The time since 1970, which never runs backwards within an operation."""
        return self.event.started_at + time.perf_counter() - self.clock


def add_context(event: CompactionEvent, metadata: Mapping[str, Any] | None = None) -> CompactionEvent:
    """Return the event with its id, its times and its parent; `metadata` is added to its own."""
    more = {"metadata": {**metadata, **event.metadata}} if metadata else {}
    if isinstance(event, OperationStartedEvent):
        return _start(event, more)
    if isinstance(event, OperationEndedEvent):
        return _end(event, more)
    parent = _parent_of(event)
    return replace(event, event_id=_new_id(), **_times(event, parent), **_parent_fields(event, parent), **more)


def _start(event: OperationStartedEvent, more: dict[str, Any]) -> OperationStartedEvent:
    # A call is a part of nothing, whatever an abandoned one left open here.
    parent = None if isinstance(event, CompactionCheckStartedEvent) else _parent_of(event)
    at = parent.now if parent else time.time()
    parent_id = parent.event.event_id if parent else ""
    started = replace(event, event_id=_new_id(), parent_id=parent_id, started_at=at, ended_at=at, **more)
    operation = _Operation(started, event, next(_open_operations(), None), time.perf_counter())
    _running[id(event)] = operation
    _innermost.set(operation)
    return started


def _end(event: OperationEndedEvent, more: dict[str, Any]) -> OperationEndedEvent:
    operation = _running.get(id(event.began))
    if operation is None:
        at = time.time()
        return replace(event, event_id=_new_id(), started_at=at, ended_at=at, **more)
    if any(operation is known for known in _open_operations()):
        _innermost.set(operation.outer)
    del _running[id(event.began)]
    started = operation.event
    return replace(
        event,
        event_id=started.event_id,
        parent_id=started.parent_id,
        started_at=started.started_at,
        ended_at=operation.now,
        **more,
    )


def _open_operations() -> Iterator[_Operation]:
    """Yield what is open in this task or thread, the innermost first; what was ended elsewhere is left out."""
    operation = _innermost.get()
    while operation:
        if id(operation.emitted) in _running:
            yield operation
        operation = operation.outer


def _parent_of(event: CompactionEvent) -> _Operation | None:
    """Return the innermost open operation of the event's session, or of any if it does not name one."""
    return next((known for known in _open_operations() if event.session_id in ("", known.event.session_id)), None)


def _times(event: CompactionEvent, parent: _Operation | None) -> dict[str, float]:
    if event.ended_at:
        return {}
    now = parent.now if parent else time.time()
    lasts = parent is not None and event.spec.lasts_as_operation
    return {"started_at": parent.event.started_at if lasts and parent else now, "ended_at": now}


def _parent_fields(event: CompactionEvent, parent: _Operation | None) -> dict[str, Any]:
    """Return the parent's id; an event that names no session gets the parent's session, turn and plan, too."""
    if parent is None:
        return {}
    started = parent.event
    session = {
        "turn_number": started.turn_number,
        "plan_version": started.plan_version,
        "session_id": started.session_id,
    }
    return {"parent_id": event.parent_id or started.event_id, **({} if event.session_id else session)}


# A generator of our own: a caller's seeded sequence stays as it is, and every event costs no call of the system.
_random = Random()
after_fork(_random.seed)  # else parent and child would give the same ids


def _new_id() -> str:
    """Return 16 hexadecimal digits."""
    return f"{_random.getrandbits(64):016x}"
