"""Hands each event to every sink; a sink that fails is reported once and never reaches the agent."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

from compact.core.events import CompactionEvent
from compact.core.protocols import EventSink
from compact.telemetry.archived import ArchivedEvents, EventArchive, InBackground
from compact.telemetry.log import LoggingEventEmitter
from compact.telemetry.stamping import stamped

_log = logging.getLogger("compact")


class Dispatcher:
    """One event in, many sinks out."""

    def __init__(self, sinks: Sequence[EventSink]) -> None:
        self._sinks = tuple(sinks)
        self._failed: set[int] = set()

    @classmethod
    def for_exporter(
        cls,
        exporter: str,
        on_event: EventSink | None,
        *,
        archive: EventArchive | None = None,
        archive_may_wait: bool = False,
        redact: Callable[[Any], Any] = lambda value: value,
    ) -> Dispatcher:
        """The sinks a configuration asks for, and the caller's own."""
        sinks: list[EventSink] = [on_event] if on_event else []
        if exporter == "console":
            sinks.append(LoggingEventEmitter())
        if archive:
            archived = ArchivedEvents(archive, redact)
            sinks.append(InBackground(archived) if archive_may_wait else archived)
        return cls(sinks)

    def __call__(self, event: CompactionEvent) -> None:
        event = stamped(event)
        for place, sink in enumerate(self._sinks):
            try:
                sink(event)
            except Exception:
                if place not in self._failed:
                    self._failed.add(place)
                    _log.exception("the event sink %r failed on %s; it will not be reported again", sink, event.name)

    def close(self) -> None:
        """Close every sink that can be closed."""
        for sink in self._sinks:
            close: Callable[[], None] | None = getattr(sink, "close", None)
            if close:
                close()
