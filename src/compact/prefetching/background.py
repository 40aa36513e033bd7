"""Prefetch summaries in this process: in a few background threads, one summary at a time per session."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from weakref import WeakKeyDictionary, WeakSet

from compact.core.session.session import Session
from compact.core.steps import SlowStep, Steps
from compact.waiting.forks import after_fork

_log = logging.getLogger("compact")
# Chosen: how much a prompt must have grown before a session is looked at again.
_GROWN = 1.08


@dataclass(slots=True, eq=False)
class _Attempt:
    """One try: the state of the session it was made for, and the fork to work on until it is done."""

    plan_version: int
    prompt_tokens: int
    session: Session | None
    done: threading.Event = field(default_factory=threading.Event)

    def is_outgrown_by(self, session: Session) -> bool:
        """Return True if the session has changed so much that another try may come out differently."""
        return session.plan.version != self.plan_version or session.prompt_tokens >= _GROWN * self.prompt_tokens

    def end(self) -> None:
        """Drop the fork, and let whoever waits continue."""
        self.session = None
        self.done.set()


_live: WeakSet[InProcessPrefetcher] = WeakSet()


@dataclass(slots=True, eq=False, weakref_slot=True)
class InProcessPrefetcher:
    """Does `prefetch` in a few threads that end when there is no work; they do not hold up the end of the process.

    Its steps are run by `run`. A turn that cannot go on before they are done, and that no thread has begun, has them
    among its own steps: a thread that advances a turn must never wait for what other turns keep threads from.

    A session is looked at once, and again when its plan has changed or its prompt has grown. `wait_seconds` is how
    long a turn waits that cannot go on without the summary, `close_seconds` how long `close` does.

    What code writes (`is_quick`) must not depend on how busy the process is: a session is looked at once for each plan,
    and a turn that needs the summary before a thread got to it has it written at once.
    """

    prefetch: Callable[[Session], Steps[object]]
    run: Callable[[Steps[None]], None]
    is_quick: bool = False
    max_threads: int = 4
    wait_seconds: float = 60.0
    close_seconds: float = 10.0
    # Weak: what is known of a session goes with it.
    _attempts: WeakKeyDictionary[Session, _Attempt] = field(default_factory=WeakKeyDictionary[Session, _Attempt])
    _waiting: deque[_Attempt] = field(default_factory=deque[_Attempt])
    _unfinished: set[_Attempt] = field(default_factory=set[_Attempt])
    _threads: int = 0
    _is_closed: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        _live.add(self)

    def __call__(self, session: Session) -> None:
        """Start prefetching, unless that is under way or was done for this session as it is."""
        with self._lock:
            before = self._attempts.get(session)
            if self._is_closed or (before and not self._is_due_again(before, session)):
                return
            attempt = _Attempt(session.plan.version, session.prompt_tokens, session.fork())
            self._attempts[session] = attempt
            self._unfinished.add(attempt)
            self._waiting.append(attempt)
            if self._threads >= self.max_threads:
                return
            self._threads += 1
        threading.Thread(target=self._work, name="compact-prefetch", daemon=True).start()

    def _is_due_again(self, before: _Attempt, session: Session) -> bool:
        if self.is_quick:
            return session.plan.version != before.plan_version
        return before.done.is_set() and before.is_outgrown_by(session)

    def running(self, session: Session) -> Steps[None] | None:
        """Return the steps that wait for what is being prefetched for a session; None if nothing is."""
        attempt = self._attempts.get(session)
        return None if attempt is None or attempt.done.is_set() else self._wait_for(attempt)

    def _wait_for(self, attempt: _Attempt) -> Steps[None]:
        with self._lock:
            is_mine = attempt in self._waiting
            if is_mine:  # no thread was free
                self._waiting.remove(attempt)
            if is_mine and not self.is_quick:  # the turn is quicker alone
                self._finish(attempt)
        if is_mine and self.is_quick:
            yield from self._write(attempt)
        elif not attempt.done.is_set():
            yield SlowStep(partial(attempt.done.wait, self.wait_seconds), "the summary that is being prefetched")

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._threads -= 1
                    return
                attempt = self._waiting.popleft()
            try:
                self.run(self._write(attempt))
            except BaseException as error:  # noqa: BLE001 - the thread must go on
                _note(error)

    def _write(self, attempt: _Attempt) -> Steps[None]:
        try:
            if attempt.session:
                yield from self.prefetch(attempt.session)
        except Exception as error:  # noqa: BLE001 - the turn goes on without it
            _note(error)
        finally:
            with self._lock:
                self._finish(attempt)

    def _finish(self, attempt: _Attempt) -> None:
        self._unfinished.discard(attempt)
        attempt.end()

    def wait(self, timeout_seconds: float) -> bool:
        """Wait for everything that is under way; return False if that took too long."""
        deadline = time.monotonic() + timeout_seconds
        with self._lock:
            attempts = [*self._unfinished]
        return all(attempt.done.wait(max(0.0, deadline - time.monotonic())) for attempt in attempts)

    def close(self) -> None:
        """Start nothing more, and wait a moment for what is under way: it serves whoever resumes the session."""
        with self._lock:
            self._is_closed = True
            while self._waiting:
                self._finish(self._waiting.pop())
        if not self.wait(self.close_seconds):
            _log.warning("a summary is still being prefetched after %g s; closed without it", self.close_seconds)

    def reset_after_fork(self) -> None:
        """Start anew in a copy of the process: the threads, and what they had begun, are the original's."""
        self._lock, self._threads = threading.Lock(), 0
        for attempt in self._unfinished:
            attempt.done = threading.Event()  # a thread that is gone may hold its lock
            attempt.end()
        self._waiting.clear()
        self._unfinished.clear()
        self._attempts.clear()


def _note(error: BaseException) -> None:
    """Write down why there is no summary; an event has said so where it happened."""
    _log.debug("a summary could not be prefetched: %s", error, exc_info=error)


@after_fork
def _after_fork() -> None:
    for prefetcher in tuple(_live):
        prefetcher.reset_after_fork()
