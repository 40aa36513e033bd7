"""Hand each event to every sink: a callable, or anything with `emit(event)`; the one place where both become the same.

A sink that fails is reported once and never reaches the agent.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, runtime_checkable

from compact.core.engine.events import CompactionEvent, EventSink
from compact.telemetry.operations import add_context

_log = logging.getLogger("compact")


@runtime_checkable
class CompactionEventEmitter(Protocol):
    """A sink that takes events by a method."""

    def emit(self, event: CompactionEvent) -> None:
        """Take one event."""
        ...


AnySink: TypeAlias = "EventSink | CompactionEventEmitter"


def as_sink(emitter: AnySink) -> EventSink:
    """Return a callable for whatever takes events."""
    if isinstance(emitter, CompactionEventEmitter) and not callable(emitter):
        return emitter.emit
    return emitter  # pyright: ignore[reportReturnType]  (what is not callable was turned into a method above)


class CompositeEventEmitter:
    """Hands each event to several sinks; one that fails is reported once and keeps no other from its event."""

    def __init__(self, emitters: Sequence[AnySink] = ()) -> None:
        self._emitters = tuple(emitters)
        self._sinks = tuple(map(as_sink, self._emitters))
        self._failed: set[int] = set()

    def __call__(self, event: CompactionEvent) -> None:
        for index, sink in enumerate(self._sinks):
            try:
                sink(event)
            except Exception:  # noqa: BLE001 - a sink may be anybody's code
                if index not in self._failed:
                    self._failed.add(index)
                    _log.exception(
                        "the event sink %r failed on %s; it will not be reported again",
                        self._emitters[index],
                        event.name,
                    )

    def emit(self, event: CompactionEvent) -> None:
        """Do the same as a call."""
        self(event)

    def __bool__(self) -> bool:
        """Return False if there is no sink."""
        return bool(self._sinks)

    def flush(self, timeout_seconds: float = 5.0) -> bool:
        """Have every sink send what waits; return False if that failed or took too long somewhere."""
        is_done = True
        for emitter in self._emitters:  # every one, even if an earlier one failed
            if flush := _optional_method(emitter, "flush"):
                try:
                    is_done = flush(timeout_seconds) is not False and is_done
                except Exception:  # noqa: BLE001 - a sink may be anybody's code
                    _log.exception("the event sink %r could not be flushed", emitter)
                    is_done = False
        return is_done

    def close(self) -> None:
        """Close every sink that can be closed."""
        for emitter in self._emitters:
            if close := _optional_method(emitter, "close"):
                try:
                    close()
                except Exception:  # noqa: BLE001 - a sink may be anybody's code
                    _log.exception("the event sink %r could not be closed", emitter)


def _optional_method(emitter: object, name: str) -> Callable[..., object] | None:
    method = getattr(emitter, name, None)
    return method if callable(method) else None


class Dispatcher:
    """Adds ids, times and the parent operation to each event, and hands it to all sinks.

    `metadata` is the caller's own, and is added to every event.
    """

    def __init__(self, sinks: Sequence[AnySink], *, metadata: Mapping[str, Any] | None = None) -> None:
        self._sinks = CompositeEventEmitter(sinks)
        self._metadata = dict(metadata or {})

    @property
    def has_sinks(self) -> bool:
        """False if nobody gets the events."""
        return bool(self._sinks)

    def __call__(self, event: CompactionEvent) -> None:
        if self._sinks:  # without a sink, no clock has to be read
            self._sinks(add_context(event, self._metadata))

    def emit(self, event: CompactionEvent) -> None:
        """Do the same as a call."""
        self(event)

    def flush(self, timeout_seconds: float = 5.0) -> bool:
        """Have every sink send what waits; return False if that failed or took too long."""
        return self._sinks.flush(timeout_seconds)

    def close(self) -> None:
        """Send what waits, and close every sink that can be closed."""
        self._sinks.close()
