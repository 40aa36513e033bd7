"""Which sessions have lost something: worked out one by one in the background, for it means reading their logs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor

from compact.core.audit.records import SessionInfo
from compact.core.audit.report import EntityState
from compact.viewer.source import Source

_MOST_KNOWN = 5_000


class Losses:
    """What the newest compaction of each session has lost; safe between threads."""

    def __init__(self, source: Source, *, on_known: Callable[[str], None] = lambda _: None) -> None:
        self._source, self.on_known = source, on_known
        self._lock = threading.Lock()
        self._known: dict[tuple[str, int], bool | None] = {}
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="compact-losses")
        self.pending = 0

    def has_loss(self, info: SessionInfo) -> bool:
        """True if it is known that something is lost."""
        return bool(self._known.get((info.session_id, info.plan_version)))

    def work_out(self, infos: Iterable[SessionInfo]) -> None:
        """Have it found out of these sessions, without waiting."""
        with self._lock:
            new = [i for i in infos if i.plan_version and (i.session_id, i.plan_version) not in self._known]
            for info in new:
                self._known[info.session_id, info.plan_version] = None
                self.pending += 1
            while len(self._known) > _MOST_KNOWN:
                self._known.pop(next(iter(self._known)))
        for info in new:
            self._worker.submit(self._find_out, info)

    def _find_out(self, info: SessionInfo) -> None:
        lost = False
        try:
            report = self._source.report(info, info.plan_version)
            lost = report is not None and bool(report.total(EntityState.LOST) or report.missing_constraints)
        finally:
            with self._lock:
                self._known[info.session_id, info.plan_version] = lost
                self.pending -= 1
        if lost:
            self.on_known(info.session_id)

    def close(self) -> None:
        """What is not begun yet is not done any more."""
        self._worker.shutdown(wait=False, cancel_futures=True)
