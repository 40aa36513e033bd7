"""Prepares summaries before they are needed, off the critical path: in this process, one at a time per session."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from compact.core.engine.session import Session

_log = logging.getLogger("compact")
# How much a prompt must have grown before it is looked at again whether a summary should be, or can be prepared.
_GROWN = 1.08


@dataclass(slots=True, eq=False)
class _Attempt:
    """One try: the state of the session it was made for, and the copy to work on as long as that is needed."""

    plan_version: int
    prompt_tokens: int
    session: Session | None
    done: threading.Event = field(default_factory=threading.Event)

    def is_outgrown_by(self, session: Session) -> bool:
        """True if the session has changed so much that another try may come out differently."""
        return session.plan.version != self.plan_version or session.prompt_tokens >= _GROWN * self.prompt_tokens


@dataclass(slots=True)
class InProcessPreparer:
    """Runs the work in a few threads that end when there is none.

    A session is looked at once, and again when its plan has changed or its prompt has grown. The threads do not hold
    up the end of the process. `patience_seconds` is how long somebody waits who cannot go on without the summary,
    `close_seconds` how long `close` does.
    """

    prepare: Callable[[Session], object]
    max_threads: int = 4
    patience_seconds: float = 60.0
    close_seconds: float = 10.0
    # Sessions that are gone take what is known of them along.
    _attempts: WeakKeyDictionary[Session, _Attempt] = field(default_factory=WeakKeyDictionary[Session, _Attempt])
    _waiting: deque[_Attempt] = field(default_factory=deque[_Attempt])
    _running: set[_Attempt] = field(default_factory=set[_Attempt])
    _threads: int = 0
    _is_closed: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, session: Session) -> None:
        """Start preparing, unless that is under way or was done for this session as it is."""
        with self._lock:
            before = self._attempts.get(session)
            if self._is_closed or (before and not (before.done.is_set() and before.is_outgrown_by(session))):
                return
            attempt = _Attempt(session.plan.version, session.prompt_tokens, session.fork())
            self._attempts[session] = attempt
            self._running.add(attempt)
            self._waiting.append(attempt)
            if self._threads >= self.max_threads:
                return
            self._threads += 1
        threading.Thread(target=self._work, name="compact-ahead", daemon=True).start()

    def under_way(self, session: Session) -> Callable[[], object] | None:
        """How to wait for what is being prepared for a session; None if nothing is."""
        attempt = self._attempts.get(session)
        if attempt is None or attempt.done.is_set():
            return None
        return lambda: self._wait_for(attempt)

    def _wait_for(self, attempt: _Attempt) -> None:
        with self._lock:
            if attempt in self._waiting:  # no thread was free: whoever needs it now is quicker alone
                self._waiting.remove(attempt)
                self._end(attempt)
        attempt.done.wait(self.patience_seconds)

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._threads -= 1
                    return
                attempt = self._waiting.popleft()
            try:
                if attempt.session:
                    self.prepare(attempt.session)
            except BaseException as error:
                # Told to everybody by who failed; here the thread only must not die of it.
                _log.debug("a summary could not be prepared: %s", error, exc_info=error)
            finally:
                with self._lock:
                    self._end(attempt)

    def _end(self, attempt: _Attempt) -> None:
        self._running.discard(attempt)
        attempt.session = None
        attempt.done.set()

    def wait(self, timeout_seconds: float) -> bool:
        """Wait for everything that is under way; False if that took too long."""
        deadline = time.monotonic() + timeout_seconds
        with self._lock:
            attempts = [*self._running]
        return all(attempt.done.wait(max(0.0, deadline - time.monotonic())) for attempt in attempts)

    def close(self) -> None:
        """Begin nothing more, and wait a moment for what has begun: then it serves whoever resumes the session."""
        with self._lock:
            self._is_closed = True
            while self._waiting:
                self._end(self._waiting.pop())
        if not self.wait(self.close_seconds):
            _log.warning("a summary is still being prepared after %g s; closed without it", self.close_seconds)
