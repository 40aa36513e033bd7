"""Keep events beside the archived transcripts, redacted: the audit of everything that was written."""

from __future__ import annotations

import logging
import os
import queue
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from compact.core.engine.events import CompactionEvent

_log = logging.getLogger("compact")
# Chosen: dozens of compactions, and a few megabytes at most.
_MAX_QUEUED = 1000
# Chosen: what a person waits for when a program ends.
_CLOSE_SECONDS = 10.0


class EventArchive(Protocol):
    """Where events of a session are appended."""

    def save_event(self, session_id: str, event: Mapping[str, Any]) -> None:
        """Append one event."""
        ...


class ArchiveSink:
    """Appends every event of a session, but those that say nothing except that a call was made."""

    def __init__(self, archive: EventArchive, redact: Callable[[Any], Any]) -> None:
        self._archive, self._redact = archive, redact

    def __call__(self, event: CompactionEvent) -> None:
        if not event.session_id or event.is_routine:
            return
        data = {"at": round(event.timestamp or time.time(), 3), **event.to_dict()}
        self._archive.save_event(event.session_id, self._redact(data))


class BackgroundSink:
    """Runs a sink that may wait in a thread of its own: the agent never waits, and memory is bounded."""

    def __init__(self, sink: Callable[[CompactionEvent], None]) -> None:
        self._sink = sink
        self._start()
        _live.add(self)

    def _start(self) -> None:
        self._queue: queue.Queue[CompactionEvent | None] = queue.Queue(_MAX_QUEUED)
        self.dropped = 0
        self._thread = threading.Thread(target=self._run, name="compact-events", daemon=True)
        self._thread.start()

    def restart_after_fork(self) -> None:
        """Begin anew in a child process: threads are not copied, and what waits is written by the parent."""
        self._start()

    def __call__(self, event: CompactionEvent) -> None:
        try:
            self._queue.put_nowait(event)
        except queue.Full:
            self.dropped += 1

    def _run(self) -> None:
        while (event := self._queue.get()) is not None:
            try:
                self._sink(event)
            except Exception as error:  # noqa: BLE001 - an archive may be anybody's code
                _log.warning("%s could not be archived: %s", event.name, error)
            finally:
                self._queue.task_done()
        self._queue.task_done()

    def flush(self, timeout_seconds: float = 5.0) -> bool:
        """Wait until all is written that waits now; return False if that takes longer."""
        with self._queue.all_tasks_done:
            return self._queue.all_tasks_done.wait_for(lambda: not self._queue.unfinished_tasks, timeout_seconds)

    def close(self) -> None:
        """Write what waits, as far as that takes no longer than `_CLOSE_SECONDS`."""
        ends_at = time.monotonic() + _CLOSE_SECONDS
        try:
            self._queue.put(None, timeout=_CLOSE_SECONDS)
        except queue.Full:  # the sink hangs: what waits is dropped, so that there is room for the end
            self._drop_queue()
        self._thread.join(max(0.0, ends_at - time.monotonic()))
        lost = self.dropped + self._queue.qsize()
        if lost or self._thread.is_alive():
            _log.warning("%d events were not archived", lost)

    def _drop_queue(self) -> None:
        try:
            while True:
                self._queue.get_nowait()
                self._queue.task_done()
                self.dropped += 1
        except queue.Empty:
            self._queue.put_nowait(None)


_live: weakref.WeakSet[BackgroundSink] = weakref.WeakSet()


def _restart_all() -> None:
    for sink in tuple(_live):
        sink.restart_after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_restart_all)
