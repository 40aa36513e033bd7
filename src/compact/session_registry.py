"""The sessions that this process has in memory, each with a lock that lets one call at a time into it."""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict, deque
from collections.abc import AsyncGenerator, Generator, Iterator
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from weakref import WeakSet

from compact.arguments import check_session_id
from compact.core.session.session import Session
from compact.dialects.gateway import Gateway
from compact.waiting.forks import after_fork


class SessionLock:
    """A lock that threads and event-loop tasks wait for side by side, in the order they came.

    A waiting task does not block its loop, and a cancelled one is passed over.
    """

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._held = False
        self._waiting: deque[Future[None]] = deque()

    @property
    def is_held(self) -> bool:
        """True if a call holds it at this moment."""
        return self._held

    def take_if_free(self) -> bool:
        """Take the lock if no call holds it; whoever got it calls `release`."""
        with self._guard:
            was_free = not self._held
            self._held = True
            return was_free

    @contextmanager
    def hold(self) -> Generator[None]:
        """Hold the lock in a thread."""
        handover = self._acquire()
        if handover:
            handover.result()
        try:
            yield
        finally:
            self.release()

    @asynccontextmanager
    async def ahold(self) -> AsyncGenerator[None]:
        """Hold the lock in a task."""
        handover = self._acquire()
        if handover:
            try:
                await asyncio.wrap_future(handover)
            except asyncio.CancelledError:
                # The lock may have been handed over in the very moment the task was cancelled.
                if not handover.cancel():
                    self.release()
                raise
        try:
            yield
        finally:
            self.release()

    def _acquire(self) -> Future[None] | None:
        """Take the lock if it is free; otherwise return the future that hands it over."""
        with self._guard:
            if not self._held:
                self._held = True
                return None
            handover: Future[None] = Future()
            self._waiting.append(handover)
            return handover

    def release(self) -> None:
        """Hand the lock to whoever waits for it longest."""
        with self._guard:
            while self._waiting:
                handover = self._waiting.popleft()
                if handover.set_running_or_notify_cancel():
                    handover.set_result(None)
                    return
            self._held = False


@dataclass(slots=True)
class HeldSession:
    """A session, its lock, and the gateway that knows its caller's dialect."""

    session: Session
    lock: SessionLock = field(default_factory=SessionLock)
    gateway: Gateway = field(default_factory=Gateway)


_live: WeakSet[SessionRegistry] = WeakSet()


class SessionRegistry:
    """Sessions by id, the least recently used first; safe between threads."""

    def __init__(self, max_sessions: int) -> None:
        self._max_sessions = max_sessions
        self._sessions: OrderedDict[str, HeldSession] = OrderedDict()
        self._lock = threading.Lock()
        _live.add(self)

    def find(self, session_id: str) -> HeldSession:
        """Return a session; a new one that is not registered yet if there is none."""
        check_session_id(session_id)
        with self._lock:
            return self._sessions.get(session_id) or HeldSession(Session(session_id))

    def use(self, session_id: str) -> HeldSession:
        """Return a session, registered as the most recently used."""
        with self._lock:
            held = self._sessions.get(session_id)
            if held is None:
                held = self._sessions[session_id] = HeldSession(Session(session_id))
            else:
                self._sessions.move_to_end(session_id)
            return held

    def register(self, held: HeldSession) -> None:
        """Register a session, unless one of this id is registered by now."""
        with self._lock:
            self._sessions.setdefault(held.session.session_id, held)

    def get(self, session_id: str) -> HeldSession | None:
        """Return a session that is registered."""
        check_session_id(session_id)
        return self._sessions.get(session_id)

    def pop(self, session_id: str) -> HeldSession | None:
        """Remove a session from memory."""
        check_session_id(session_id)
        with self._lock:
            return self._sessions.pop(session_id, None)

    @property
    def has_excess(self) -> bool:
        """True if there are more sessions than there may be."""
        return len(self._sessions) > self._max_sessions

    def pop_excess(self) -> HeldSession | None:
        """Remove the least recently used session if there are too many; return it with its lock taken.

        One that a call is in stays.
        """
        with self._lock:
            if not self.has_excess:
                return None
            found = next((held for held in self._sessions.values() if held.lock.take_if_free()), None)
            return self._sessions.pop(found.session.session_id) if found else None

    def __len__(self) -> int:
        return len(self._sessions)

    def __iter__(self) -> Iterator[HeldSession]:
        with self._lock:
            return iter(tuple(self._sessions.values()))

    def reset_after_fork(self) -> None:
        """Drop the sessions that a call is in, in a copy of the process: its thread is not there, and holds the lock.

        The store has what the call had written, and the next one goes on from there.
        """
        self._lock = threading.Lock()
        for session_id, held in tuple(self._sessions.items()):
            if held.lock.is_held:
                del self._sessions[session_id]
            else:
                held.lock = SessionLock()


@after_fork
def _after_fork() -> None:
    for registry in tuple(_live):
        registry.reset_after_fork()
