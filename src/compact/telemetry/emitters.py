"""Who takes events: a callable, or anything with `emit(event)`; the one place where both become the same."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias, runtime_checkable

from compact.core.engine.events import CompactionEvent, EventSink

_log = logging.getLogger("compact")


@runtime_checkable
class CompactionEventEmitter(Protocol):
    """Takes events by a method."""

    def emit(self, event: CompactionEvent) -> None:
        """Take one event."""
        ...


AnySink: TypeAlias = "EventSink | CompactionEventEmitter"


def as_sink(emitter: AnySink) -> EventSink:
    """A callable for whatever takes events."""
    if isinstance(emitter, CompactionEventEmitter) and not callable(emitter):
        return emitter.emit
    return emitter  # pyright: ignore[reportReturnType]  (what is not callable was turned into a method above)


class CompositeEventEmitter:
    """Hands each event to all others; one that fails is reported once, and keeps nobody else from it."""

    def __init__(self, emitters: Sequence[AnySink] = ()) -> None:
        self._emitters = tuple(emitters)
        self._sinks = tuple(map(as_sink, self._emitters))
        self._failed: set[int] = set()

    def __call__(self, event: CompactionEvent) -> None:
        for place, sink in enumerate(self._sinks):
            try:
                sink(event)
            except Exception:
                if place not in self._failed:
                    self._failed.add(place)
                    _log.exception(
                        "the event sink %r failed on %s; it will not be reported again",
                        self._emitters[place],
                        event.name,
                    )

    def emit(self, event: CompactionEvent) -> None:
        """The same, by its other name."""
        self(event)

    def __bool__(self) -> bool:
        """False if nobody listens."""
        return bool(self._sinks)

    def flush(self, timeout_seconds: float = 5.0) -> bool:
        """Have everything sent that waits; False if that failed or took too long somewhere."""
        is_done = True
        for emitter in self._emitters:  # every one, even if an earlier one failed
            if flush := _method(emitter, "flush"):
                try:
                    is_done = flush(timeout_seconds) is not False and is_done
                except Exception:
                    _log.exception("the event sink %r could not be flushed", emitter)
                    is_done = False
        return is_done

    def close(self) -> None:
        """Close everyone that can be closed."""
        for emitter in self._emitters:
            if close := _method(emitter, "close"):
                try:
                    close()
                except Exception:
                    _log.exception("the event sink %r could not be closed", emitter)


def _method(emitter: object, name: str) -> Callable[..., object] | None:
    method = getattr(emitter, name, None)
    return method if callable(method) else None
