"""A lock that threads and event-loop tasks can wait for side by side, in the order they came."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager


class SessionLock:
    """Handed from holder to holder; a waiting task does not block its loop, a cancelled one is passed over."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._held = False
        self._waiting: deque[Future[None]] = deque()

    @property
    def is_held(self) -> bool:
        """True if somebody holds it at this moment."""
        return self._held

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Hold the lock in a thread."""
        turn = self._take_a_number()
        if turn:
            turn.result()
        try:
            yield
        finally:
            self._pass_on()

    @asynccontextmanager
    async def ahold(self) -> AsyncIterator[None]:
        """Hold the lock in a task."""
        turn = self._take_a_number()
        if turn:
            try:
                await asyncio.wrap_future(turn)
            except asyncio.CancelledError:
                # The lock may have been handed over in the very moment the task was cancelled.
                if not turn.cancel():
                    self._pass_on()
                raise
        try:
            yield
        finally:
            self._pass_on()

    def _take_a_number(self) -> Future[None] | None:
        with self._guard:
            if not self._held:
                self._held = True
                return None
            turn: Future[None] = Future()
            self._waiting.append(turn)
            return turn

    def _pass_on(self) -> None:
        with self._guard:
            while self._waiting:
                turn = self._waiting.popleft()
                if turn.set_running_or_notify_cancel():
                    turn.set_result(None)
                    return
            self._held = False
