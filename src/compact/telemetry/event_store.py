"""Write events to the store, in a thread of its own: a viewer that is started later shows the same traces."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from compact.core.audit.store import EventStore
from compact.core.engine.events import CompactionEvent
from compact.core.errors import CompactError
from compact.telemetry.ariadne import trace_and_span
from compact.telemetry.worker import DeliveryFailed, ExportWorker, OutgoingEvent, ThrottledWarnings

_log = logging.getLogger("compact")
# Chosen: soon enough for who looks on, and long enough that the events of a call are written at once.
_LINGER_SECONDS = 0.25
_DAY_SECONDS = 86_400.0
# Chosen: a trace that is not known any more is written again, which does no harm.
_MAX_TRACES = 10_000


class StoreExporter:
    """Turns events into traces and spans, as for Ariadne, and adds them to a store."""

    name = "store"

    def __init__(self, events: EventStore, *, keep_days: float) -> None:
        self._events, self._keep_seconds = events, keep_days * _DAY_SECONDS
        self._pending: list[Mapping[str, Any]] = []
        # Sessions whose trace is written.
        self._traces: OrderedDict[str, None] = OrderedDict()
        self._lost = 0
        self.warn = ThrottledWarnings("the store of events:", write=_log.warning)

    def capture_context(self, event: CompactionEvent) -> object:
        """Return nothing: the event is all that is needed."""
        return None

    def add(self, batch: Sequence[OutgoingEvent]) -> None:
        """Make a trace of each session, and a span of each event; both say which session they belong to."""
        for outgoing in batch:
            session = {"session_id": outgoing.event.session_id}
            try:
                trace, span = trace_and_span(outgoing)
            except Exception as error:  # noqa: BLE001
                # An event may hold anything; one that cannot be encoded keeps no other from being written.
                self.warn(f"{outgoing.event.name} could not be encoded: {type(error).__name__}")
                self._lost += 1
                continue
            if trace["trace_id"] not in self._traces:
                self._pending.append({**trace, **session})
            self._traces[trace["trace_id"]] = None
            self._pending.append({**span, **session})
        while len(self._traces) > _MAX_TRACES:
            self._traces.popitem(last=False)

    def send(self) -> int:
        """Write what waits; events that the store never takes are dropped, with a warning, and counted."""
        try:
            if self._pending:
                self._events.add(self._pending, keep_seconds=self._keep_seconds)
        except CompactError as error:
            raise DeliveryFailed(error.message) from error
        except Exception:
            self._pending, self._lost = [], 0
            raise
        self._pending, lost, self._lost = [], self._lost, 0
        return lost

    def reset_after_fork(self) -> None:
        """Drop what waits: it belongs to the original process."""
        self._pending, self._lost = [], 0

    def close(self) -> None:
        """Do nothing: the store is closed by its owner."""


def build_event_writer(events: EventStore, *, keep_days: float, redact: Callable[[Any], Any]) -> ExportWorker:
    """Return the sink that writes events to a store, redacted."""
    exporter = StoreExporter(events, keep_days=keep_days)
    return ExportWorker(exporter, redact=redact, linger_seconds=_LINGER_SECONDS)
