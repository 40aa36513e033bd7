"""Stamps each event, and hands it to every sink; a sink that fails is reported once and never reaches the agent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from compact.core.engine.events import CompactionEvent
from compact.telemetry.emitters import AnySink, CompositeEventEmitter
from compact.telemetry.stamping import stamped


class Dispatcher:
    """One event in, many sinks out; `metadata` is the caller's own, and goes along with every event."""

    def __init__(self, sinks: Sequence[AnySink], *, metadata: Mapping[str, Any] | None = None) -> None:
        self._sinks = CompositeEventEmitter(sinks)
        self._metadata = dict(metadata or {})

    def __call__(self, event: CompactionEvent) -> None:
        if self._sinks:  # without anybody to tell, nobody has to look at a clock
            self._sinks(stamped(event, self._metadata))

    def emit(self, event: CompactionEvent) -> None:
        """The same, by its other name."""
        self(event)

    def flush(self, timeout_seconds: float = 5.0) -> bool:
        """Have everything sent that waits; False if that took too long."""
        return self._sinks.flush(timeout_seconds)

    def close(self) -> None:
        """Send what waits, and close every sink that can be closed."""
        self._sinks.close()
