"""Events kept beside the archived transcripts, redacted: the audit of everything that was written."""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from compact.core.engine.events import (
    CompactionEvent,
    OperationEndedEvent,
    OperationStartedEvent,
    TokenEstimateEvent,
    TriggerDecisionEvent,
)

_log = logging.getLogger("compact")
_LONGEST_QUEUE = 1000
_CLOSE_SECONDS = 10.0
# What each call sends, whatever happens.
_EVERY_CALL = (OperationStartedEvent, OperationEndedEvent, TokenEstimateEvent)


class EventArchive(Protocol):
    """Where events of a session are appended."""

    def save_event(self, session_id: str, event: Mapping[str, Any]) -> None:
        """Append one event."""
        ...


class ArchivedEvents:
    """Appends every event of a session but those that each call sends when nothing happened."""

    def __init__(self, archive: EventArchive, redact: Callable[[Any], Any]) -> None:
        self._archive, self._redact = archive, redact

    def __call__(self, event: CompactionEvent) -> None:
        if not event.session_id or isinstance(event, _EVERY_CALL):
            return
        if isinstance(event, TriggerDecisionEvent) and not event.triggered:
            return
        data = {"at": round(event.timestamp or time.time(), 3), **event.to_dict()}
        self._archive.save_event(event.session_id, self._redact(data))


class InBackground:
    """A sink behind a thread of its own, for one that may wait: the agent never does, and memory is bounded."""

    def __init__(self, sink: Callable[[CompactionEvent], None]) -> None:
        self._sink = sink
        self._waiting: queue.Queue[CompactionEvent | None] = queue.Queue(_LONGEST_QUEUE)
        self.dropped = 0
        self._thread = threading.Thread(target=self._work, name="compact-events", daemon=True)
        self._thread.start()

    def __call__(self, event: CompactionEvent) -> None:
        try:
            self._waiting.put_nowait(event)
        except queue.Full:
            self.dropped += 1

    def _work(self) -> None:
        while (event := self._waiting.get()) is not None:
            try:
                self._sink(event)
            except Exception as error:
                _log.warning("%s could not be archived: %s", event.name, error)
            finally:
                self._waiting.task_done()
        self._waiting.task_done()

    def flush(self, timeout_seconds: float = 5.0) -> bool:
        """Wait until all is written that waits now; False if that takes longer."""
        with self._waiting.all_tasks_done:
            return self._waiting.all_tasks_done.wait_for(lambda: not self._waiting.unfinished_tasks, timeout_seconds)

    def close(self) -> None:
        """Write what is waiting, as far as that takes no longer than a moment."""
        ends_at = time.monotonic() + _CLOSE_SECONDS
        try:
            self._waiting.put(None, timeout=_CLOSE_SECONDS)
        except queue.Full:  # it hangs: what waits is let go, so that there is a place for its end
            self._let_go()
        self._thread.join(max(0.0, ends_at - time.monotonic()))
        if self.dropped or self._thread.is_alive():
            _log.warning("%d events were not archived", self.dropped + self._waiting.qsize())

    def _let_go(self) -> None:
        try:
            while True:
                self._waiting.get_nowait()
                self._waiting.task_done()
                self.dropped += 1
        except queue.Empty:
            self._waiting.put_nowait(None)
