"""Finds in the background which sessions lost something: it means reading their logs, one by one."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor

from compact.core.audit.records import SessionInfo
from compact.core.audit.report import EntityState
from compact.viewer.source import DataSource

_LOG = logging.getLogger("compact.viewer")
# Chosen: one boolean each; more sessions than a list is scrolled through.
_MAX_KNOWN = 5_000


class LossFinder:
    """Whether the newest compaction of each session lost something; safe between threads."""

    def __init__(self, source: DataSource) -> None:
        self._source = source
        self._on_found: Callable[[str], None] = lambda _: None
        self._lock = threading.Lock()
        self._known: dict[tuple[str, int], bool | None] = {}
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="compact-losses")
        self.pending = 0

    def notify(self, on_found: Callable[[str], None]) -> None:
        """Have `on_found` called with each session in which a loss is found; in the thread that found it."""
        self._on_found = on_found

    def has_loss(self, info: SessionInfo) -> bool:
        """Return True if it is known that something is lost."""
        return bool(self._known.get((info.session_id, info.plan_version)))

    def request(self, infos: Iterable[SessionInfo]) -> None:
        """Have these sessions checked, without waiting for it."""
        with self._lock:
            new = [i for i in infos if i.plan_version and (i.session_id, i.plan_version) not in self._known]
            for info in new:
                self._known[info.session_id, info.plan_version] = None
                self.pending += 1
            while len(self._known) > _MAX_KNOWN:
                self._known.pop(next(iter(self._known)))
        for info in new:
            self._worker.submit(self._check, info)

    def _check(self, info: SessionInfo) -> None:
        has_loss = False
        try:
            report = self._source.report(info, info.plan_version)
            has_loss = report is not None and bool(report.total(EntityState.LOST) or report.missing_constraints)
        except Exception as error:  # noqa: BLE001
            # The boundary to any store: one session that cannot be read must not stop the rest.
            _LOG.warning("the losses of session %r could not be found: %s", info.session_id, error)
        finally:
            with self._lock:
                self._known[info.session_id, info.plan_version] = has_loss
                self.pending -= 1
        if has_loss:
            self._on_found(info.session_id)

    def close(self) -> None:
        """Cancel the checks that have not begun."""
        self._worker.shutdown(wait=False, cancel_futures=True)
