"""Send events away in a thread of its own: the agent never waits for it, and memory is bounded.

A call puts the event into a queue and does nothing else. The thread reads and redacts it, and hands batches to an
exporter. When the server does not take them, it tries again ever less often; when the queue is full, the oldest events
are dropped and counted.
"""

from __future__ import annotations

import atexit
import re
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any, Protocol, runtime_checkable
from weakref import WeakSet

from compact.core.engine.events import CompactionEvent, EventsDroppedEvent
from compact.core.plurals import quantity
from compact.telemetry.operations import add_context
from compact.telemetry.truncation import one_line
from compact.waiting.forks import after_fork

# Chosen: a thread without work ends soon, so that a manager that nobody closes leaves none behind.
_IDLE_SECONDS = 5.0
# Chosen: the pause after a failure starts here and doubles up to the second; the third is for a flush, which waits.
_FIRST_PAUSE_SECONDS, _MAX_PAUSE_SECONDS, _FLUSH_PAUSE_SECONDS = 0.5, 30.0, 0.2
# Chosen: a program that ends does not wait for a server that was away twice.
_TRIES_AT_CLOSE = 2
# Chosen: often enough to see that it lasts, and calm enough to read.
_WARNING_INTERVAL_SECONDS = 60.0
_MAX_WARNING_KINDS = 100
_FIGURES = re.compile(r"[\d.,]+")
_live: WeakSet[ExportWorker] = WeakSet()
# What takes long to read is read by one worker at a time, so that a report is made once: Python runs one thread at a
# time, and every other that has much to do takes turns from the agent's own.
_reading_slow = threading.Lock()


class DeliveryFailed(Exception):
    """The server did not take it; it is tried again later."""


class ThrottledWarnings:
    """Writes warnings for the operator; one that differs in its figures only is written once a minute, with a count."""

    def __init__(
        self,
        prefix: str,
        *,
        write: Callable[[str], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._prefix, self._clock, self._write = prefix, clock, write or _write_stderr
        # By the text without figures: when it was written, and how often it was not since.
        self._written: dict[str, tuple[float, int]] = {}
        self._lock = threading.Lock()

    def __call__(self, text: str) -> None:
        text, now = one_line(text), self._clock()
        kind = _FIGURES.sub("#", text)
        with self._lock:
            at, repeats = self._written.get(kind, (float("-inf"), 0))
            if now - at < _WARNING_INTERVAL_SECONDS:
                self._written[kind] = (at, repeats + 1)
                return
            if len(self._written) >= _MAX_WARNING_KINDS:
                self._written.clear()
            self._written[kind] = (now, 0)
        again = f" ({repeats:,} more like this)" if repeats else ""
        self._write(f"{self._prefix} {text}{again}")


def _write_stderr(line: str) -> None:
    try:
        sys.stderr.write(line + "\n")
    except (OSError, ValueError, AttributeError):
        return  # stderr is closed, or there is none


class OutgoingEvent:
    """An event in the queue: its data is read and redacted when it is asked for, once."""

    __slots__ = ("_data", "_redact", "context", "event")

    def __init__(self, event: CompactionEvent, redact: Callable[[Any], Any], context: object = None) -> None:
        self.event, self.context, self._redact = event, context, redact
        self._data: dict[str, Any] | None = None

    @property
    def data(self) -> dict[str, Any]:
        """`CompactionEvent.to_dict()` without secrets."""
        data = self._data
        if data is None:
            with _reading_slow if self.event.spec.slow else nullcontext():
                self.event.settle()
                data = self._data = dict(self._redact(self.event.to_dict()))
        return data


class Exporter(Protocol):
    """Sends events somewhere; called from one thread only, but for `capture_context`."""

    @property
    def name(self) -> str:
        """The word for it in the configuration."""
        ...

    def capture_context(self, event: CompactionEvent) -> object:
        """Return what is known only in the agent's own thread, such as the current span: quick, and rarely needed."""
        ...

    def add(self, batch: Sequence[OutgoingEvent]) -> None:
        """Turn events into what is to be sent; called once for each."""
        ...

    def send(self) -> int | None:
        """Send all that was added and is not sent yet, or raise DeliveryFailed and keep the rest.

        Return how many events were lost, because no server will ever take them.
        """
        ...

    def warn(self, text: str) -> None:
        """Tell the operator."""
        ...

    def reset_after_fork(self) -> None:
        """Drop connections and what waits: this process is a copy, and they belong to the original."""
        ...

    def close(self) -> None:
        """Close everything that is open."""
        ...


@runtime_checkable
class _Flushable(Protocol):
    """An exporter that has more to send than what was added, such as metrics."""

    def flush(self, timeout_seconds: float) -> bool:
        """Send it; return False if that failed or took longer."""
        ...


class ExportWorker:
    """A sink: puts events into a queue that a thread empties into an exporter."""

    def __init__(
        self,
        exporter: Exporter,
        *,
        redact: Callable[[Any], Any] = lambda value: value,
        max_queued: int = 4096,
        max_batch: int = 256,
        linger_seconds: float = 0.03,
        close_seconds: float = 5.0,
    ) -> None:
        self.exporter = exporter
        self._redact, self._max_queued, self._max_batch = redact, max_queued, max_batch
        self._linger_seconds, self._close_seconds = linger_seconds, close_seconds
        self._dropped = self._reported_dropped = self._overflowed = 0
        self._is_closed = self._has_ended = False
        self._reset()
        _live.add(self)

    def _reset(self) -> None:
        self._changed = threading.Condition()
        self._queue: deque[OutgoingEvent] = deque()
        self._thread: threading.Thread | None = None
        self._accepted = self._in_batch = self._failures = self._flushes = 0
        self._lost = self._lost_at_flush = self._reporting = 0

    @property
    def dropped(self) -> int:
        """How many events were never sent."""
        return self._dropped

    @property
    def waiting(self) -> int:
        """How many events are not sent yet."""
        return len(self._queue) + self._in_batch

    def __call__(self, event: CompactionEvent) -> None:
        outgoing = OutgoingEvent(event, self._redact, self.exporter.capture_context(event))
        with self._changed:
            if self._is_closed:
                return
            if len(self._queue) >= self._max_queued:
                self._queue.popleft()
                self._dropped += 1
                self._overflowed += 1
            self._queue.append(outgoing)
            self._accepted += 1
            if self._thread is None:
                self._start_thread()
            elif len(self._queue) in (1, self._max_batch):
                self._changed.notify_all()

    def emit(self, event: CompactionEvent) -> None:
        """Do the same as a call."""
        self(event)

    def flush(self, timeout_seconds: float = 5.0) -> bool:
        """Have everything sent that was emitted so far; return False if that took longer.

        Return False, too, if any event was given up, or refused for good, since the last flush.
        """
        ends_at = time.monotonic() + timeout_seconds
        with self._changed:
            target, lost_before = self._accepted, self._lost_at_flush
            self._start_flush()
            done = self._changed.wait_for(lambda: self._accepted - self.waiting >= target, timeout_seconds)
            self._flushes -= 1
            self._lost_at_flush = self._lost
            done = done and self._lost == lost_before
        if isinstance(self.exporter, _Flushable):
            done = self.exporter.flush(max(0.1, ends_at - time.monotonic())) and done
        return done

    def close(self) -> None:
        """Send what waits, unless the server is away, and close the exporter."""
        with self._changed:
            if self._is_closed:
                return
            before, self._is_closed, self._failures = self._dropped, True, 0
            self._start_flush()
            self._changed.wait_for(lambda: not self.waiting or self._has_given_up, timeout=self._close_seconds)
            self._count_lost(self.waiting)
            self._queue.clear()
            self._has_ended, thread = True, self._thread
        if self._dropped > before:
            self.exporter.warn(f"{quantity(self._dropped, 'event was', 'events were')} never sent")
        if thread:
            thread.join(0.1 if self._in_batch else 1.0)
        self.exporter.close()

    @property
    def _has_given_up(self) -> bool:
        """True if it was closed and the server is away: what waits will never be sent."""
        return self._has_ended or (self._is_closed and self._failures >= _TRIES_AT_CLOSE)

    def _count_lost(self, count: int) -> None:
        self._dropped += count
        self._lost += count

    def _start_flush(self) -> None:
        self._flushes += 1
        self._changed.notify_all()

    def _start_thread(self) -> None:
        thread = threading.Thread(target=self._run, name=f"compact-{self.exporter.name}", daemon=True)
        thread.start()
        self._thread = thread

    # -- in the thread --------------------------------------------------------------------------------------------

    def _run(self) -> None:
        while batch := self._next_batch():
            try:
                self.exporter.add(batch)
                lost = self._send()
            except Exception as error:  # noqa: BLE001
                # An exporter may be anybody's code; the text may hold what was to be sent.
                self.exporter.warn(f"{quantity(len(batch), 'event')} could not be sent: {type(error).__name__}")
                lost = None
            with self._changed:
                self._finish_batch(lost)
            del batch  # its events know whole sessions, and the wait for the next ones may be long

    def _finish_batch(self, lost: int | None) -> None:
        """Count what was lost of a batch; None is all of it."""
        lost = self._in_batch if lost is None else min(lost, self._in_batch)
        if not self._has_ended:  # else `close` counted them
            self._count_lost(lost)
        if lost and lost == self._in_batch:  # and with it the event about others: report them again
            self._reported_dropped -= self._reporting
        self._in_batch = self._reporting = 0
        self._changed.notify_all()

    def _next_batch(self) -> list[OutgoingEvent]:
        """Return what waits, after a moment for more of it; nothing if there was none for `_IDLE_SECONDS`."""
        with self._changed:
            is_idle = not self._changed.wait_for(lambda: self._queue or self._is_closed, _IDLE_SECONDS)
            if is_idle or not self._queue or self._has_given_up:
                self._thread = None
                return []
            self._changed.wait_for(self._is_batch_due, self._linger_seconds)
            batch = [self._queue.popleft() for _ in range(min(len(self._queue), self._max_batch))]
            self._in_batch = len(batch)
            dropped, self._reported_dropped = self._dropped - self._reported_dropped, self._dropped
            self._reporting = dropped
            overflowed, self._overflowed = self._overflowed, 0
        if overflowed:
            self.exporter.warn(f"the queue was full: {quantity(overflowed, 'event was', 'events were')} dropped")
        if dropped:
            event = add_context(EventsDroppedEvent(session_id="", exporter=self.exporter.name, count=dropped))
            batch.insert(0, OutgoingEvent(event, self._redact))
        return batch

    def _is_batch_due(self) -> bool:
        return bool(self._flushes) or len(self._queue) >= self._max_batch

    def _send(self) -> int | None:
        """Send what was added, however long that takes; return how many were lost, or None for all if it was closed."""
        pause = _FIRST_PAUSE_SECONDS
        while True:
            try:
                lost = self.exporter.send() or 0
            except DeliveryFailed as error:
                if not self._has_ended:  # `close` has said what became of the rest
                    self.exporter.warn(str(error))
            else:
                break
            with self._changed:
                self._failures += 1
                self._changed.notify_all()
                if self._has_given_up:
                    return None
                if self._flushes:
                    self._changed.wait(_FLUSH_PAUSE_SECONDS)
                else:
                    self._changed.wait_for(lambda: self._flushes, pause)
            pause = min(2 * pause, _MAX_PAUSE_SECONDS)
        self._failures = 0
        return lost

    def after_fork(self) -> None:
        """Start with an empty queue in a copy of the process: what waits is sent by the original."""
        self._reset()
        self.exporter.reset_after_fork()


def _close_all() -> None:
    """Close at the end of the process what was not closed."""
    for worker in list(_live):
        worker.close()


@after_fork
def _after_fork() -> None:
    global _reading_slow  # a thread that is gone may hold it
    _reading_slow = threading.Lock()
    for worker in list(_live):
        worker.after_fork()


atexit.register(_close_all)
