"""Prepares summaries before they are needed, off the critical path: in this process, one at a time per session."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

from compact.core.session import Session

_log = logging.getLogger("compact")


@dataclass(slots=True)
class InProcessPreparer:
    """Runs the work in a few threads; a session is prepared once per plan version, whatever comes of it."""

    prepare: Callable[[Session], object]
    _asked: dict[str, int] = field(default_factory=dict[str, int])
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _running: set[Future[object]] = field(default_factory=set[Future[object]])
    _pool: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(2, thread_name_prefix="compact"))

    def __call__(self, session: Session) -> None:
        """Start preparing, unless that was done for this version of the plan."""
        with self._lock:
            if self._asked.get(session.session_id) == session.plan.version:
                return
            self._asked[session.session_id] = session.plan.version
            work = self._pool.submit(self.prepare, session.fork())
            self._running.add(work)
        work.add_done_callback(self._finished)

    def _finished(self, work: Future[object]) -> None:
        with self._lock:
            self._running.discard(work)
        error = work.exception()
        if error:
            _log.warning("a summary could not be prepared, it will be written when it is needed: %s", error)

    def close(self) -> None:
        """Wait for what is under way."""
        self._pool.shutdown(wait=True)
