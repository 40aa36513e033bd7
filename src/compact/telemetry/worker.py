"""A thread of its own for whoever sends events away: the agent never waits for it, and memory is bounded.

Events are put into a queue and nothing else is done with them there. The thread works out what they say, takes secrets
out, and hands them on in batches. When nobody takes them, it tries again ever less often; when the queue is full, the
oldest go, and are counted.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Protocol
from weakref import WeakSet

from compact.core.engine.events import CompactionEvent, EventsDroppedEvent
from compact.telemetry.stamping import stamped

# A thread without work ends after a while: a manager that nobody closes leaves none behind.
_IDLE_SECONDS = 5.0
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS, _HURRIED_PAUSE_SECONDS = 0.5, 30.0, 0.2
_TRIES_AT_CLOSE = 2
_live: WeakSet[ExportWorker] = WeakSet()


class Undelivered(Exception):
    """Nobody took it; worth trying again later."""


class Outgoing:
    """An event on its way out: what it says is worked out and redacted when it is asked for, once."""

    __slots__ = ("_data", "_redact", "event", "seen")

    def __init__(self, event: CompactionEvent, redact: Callable[[Any], Any], seen: object = None) -> None:
        self.event, self.seen, self._redact = event, seen, redact
        self._data: dict[str, Any] | None = None

    @property
    def data(self) -> dict[str, Any]:
        """`CompactionEvent.to_dict()` without secrets."""
        data = self._data
        if data is None:
            data = self._data = dict(self._redact(self.event.to_dict()))
        return data


class Exporter(Protocol):
    """Sends events somewhere; called from one thread only, but for `see`."""

    @property
    def name(self) -> str:
        """The word that stands for it in the configuration."""
        ...

    def see(self, event: CompactionEvent) -> object:
        """Look around where an event happens, in the agent's own thread: quick, and rarely needed."""
        ...

    def take(self, batch: Sequence[Outgoing]) -> None:
        """Turn events into what is to be sent; called once for each."""
        ...

    def send(self) -> int | None:
        """Send all that was taken and is not sent yet, or raise Undelivered and keep the rest.

        What it returns is how many events were lost, since nobody will ever take them.
        """
        ...

    def complain(self, text: str) -> None:
        """Tell the operator."""
        ...

    def forget_connections(self) -> None:
        """This process is a copy of another: what is open belongs to that one."""
        ...

    def close(self) -> None:
        """Let go of everything."""
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
        self._dropped = self._told_dropped = self._overflowed = 0
        self._is_closed = self._is_over = False
        self._start_anew()
        _live.add(self)

    def _start_anew(self) -> None:
        self._changed = threading.Condition()
        self._queue: deque[Outgoing] = deque()
        self._thread: threading.Thread | None = None
        self._put = self._in_hand = self._failures = self._hurried = 0
        self._lost = self._lost_at_flush = self._telling = 0

    @property
    def dropped(self) -> int:
        """How many events were never sent."""
        return self._dropped

    @property
    def waiting(self) -> int:
        """How many events are not sent yet."""
        return len(self._queue) + self._in_hand

    def __call__(self, event: CompactionEvent) -> None:
        outgoing = Outgoing(event, self._redact, self.exporter.see(event))
        with self._changed:
            if self._is_closed:
                return
            if len(self._queue) >= self._max_queued:
                self._queue.popleft()
                self._dropped += 1
                self._overflowed += 1
            self._queue.append(outgoing)
            self._put += 1
            if self._thread is None:
                self._begin()
            elif len(self._queue) in (1, self._max_batch):
                self._changed.notify_all()

    def emit(self, event: CompactionEvent) -> None:
        """The same, by its other name."""
        self(event)

    def flush(self, timeout_seconds: float = 5.0) -> bool:
        """Have everything sent that was put in so far; False if it could not be, in that time.

        That is also False if any of it was given up, or refused for good, since this was asked last.
        """
        ends_at = time.monotonic() + timeout_seconds
        with self._changed:
            target, lost_before = self._put, self._lost_at_flush
            self._hurry()
            done = self._changed.wait_for(lambda: self._put - self.waiting >= target, timeout_seconds)
            self._hurried -= 1
            self._lost_at_flush = self._lost
            done = done and self._lost == lost_before
        flush: Callable[[float], bool] | None = getattr(self.exporter, "flush", None)
        return (flush(max(0.1, ends_at - time.monotonic())) if flush else True) and done

    def close(self) -> None:
        """Send what waits, unless nobody takes it, then let go of everything."""
        with self._changed:
            if self._is_closed:
                return
            before, self._is_closed, self._failures = self._dropped, True, 0
            self._hurry()
            self._changed.wait_for(lambda: not self.waiting or self._has_given_up, timeout=self._close_seconds)
            self._lose(self.waiting)
            self._queue.clear()
            self._is_over, thread = True, self._thread
        if self._dropped > before:
            self.exporter.complain(f"{self._dropped:,} events were never sent")
        if thread:
            thread.join(0.1 if self._in_hand else 1.0)
        self.exporter.close()

    @property
    def _has_given_up(self) -> bool:
        """True if it was closed and nobody is there: what waits will never be sent."""
        return self._is_over or (self._is_closed and self._failures >= _TRIES_AT_CLOSE)

    def _lose(self, count: int) -> None:
        self._dropped += count
        self._lost += count

    def _hurry(self) -> None:
        self._hurried += 1
        self._changed.notify_all()

    def _begin(self) -> None:
        thread = threading.Thread(target=self._work, name=f"compact-{self.exporter.name}", daemon=True)
        thread.start()
        self._thread = thread

    # -- in the thread --------------------------------------------------------------------------------------------

    def _work(self) -> None:
        while batch := self._next_batch():
            try:
                self.exporter.take(batch)
                lost = self._send()
            except Exception as error:  # its text may hold what was to be sent
                self.exporter.complain(f"{len(batch):,} events could not be sent: {type(error).__name__}")
                lost = None
            with self._changed:
                self._over_with(lost)

    def _over_with(self, lost: int | None) -> None:
        """Count what was lost of the batch in hand; None is all of it."""
        lost = self._in_hand if lost is None else min(lost, self._in_hand)
        if not self._is_over:  # else they were counted
            self._lose(lost)
        if lost and lost == self._in_hand:  # so was the event that told of others: they are told of again
            self._told_dropped -= self._telling
        self._in_hand = self._telling = 0
        self._changed.notify_all()

    def _next_batch(self) -> list[Outgoing]:
        """What waits, after a moment for more of it; nothing if there was none for a while."""
        with self._changed:
            is_over = not self._changed.wait_for(lambda: self._queue or self._is_closed, _IDLE_SECONDS)
            if is_over or not self._queue or self._has_given_up:
                self._thread = None
                return []
            self._changed.wait_for(self._goes_now, self._linger_seconds)
            batch = [self._queue.popleft() for _ in range(min(len(self._queue), self._max_batch))]
            self._in_hand = len(batch)
            dropped, self._told_dropped = self._dropped - self._told_dropped, self._dropped
            self._telling = dropped
            overflowed, self._overflowed = self._overflowed, 0
        if overflowed:
            self.exporter.complain(f"the queue was full: {overflowed:,} events were dropped")
        if dropped:
            event = stamped(EventsDroppedEvent(session_id="", exporter=self.exporter.name, count=dropped))
            batch.insert(0, Outgoing(event, self._redact))
        return batch

    def _goes_now(self) -> bool:
        return bool(self._hurried) or len(self._queue) >= self._max_batch

    def _send(self) -> int | None:
        """Send what was taken, however long that takes, and say how much was lost; None is all, since it was closed."""
        pause = _FIRST_PAUSE_SECONDS
        while True:
            try:
                lost = self.exporter.send() or 0
            except Undelivered as error:
                if not self._is_over:  # what became of the rest was told
                    self.exporter.complain(str(error))
            else:
                break
            with self._changed:
                self._failures += 1
                self._changed.notify_all()
                if self._has_given_up:
                    return None
                if self._hurried:
                    self._changed.wait(_HURRIED_PAUSE_SECONDS)
                else:
                    self._changed.wait_for(lambda: self._hurried, pause)
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
        self._failures = 0
        return lost

    def after_fork(self) -> None:
        """Begin anew in a copy of the process: what waits is sent by the original."""
        self._start_anew()
        self.exporter.forget_connections()


def _close_all() -> None:
    """At the end of the process: what was not closed is closed."""
    for worker in list(_live):
        worker.close()


def _after_fork() -> None:
    for worker in list(_live):
        worker.after_fork()


atexit.register(_close_all)
if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_after_fork)
