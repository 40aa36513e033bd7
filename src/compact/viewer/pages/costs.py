"""Finds in the background what sessions cost, how often they were compacted and what failed: all is read for it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from compact.core.audit.failures import SessionFailure, failures_of
from compact.core.audit.records import SessionInfo
from compact.viewer.source import DataSource

_LOG = logging.getLogger("compact.viewer")
# Chosen: a few figures each; more sessions than a list is scrolled through.
_MAX_KNOWN = 5_000
_SHOWN = ("usd", "usd_saved", "usd_uncompacted", "unpriced_calls", "models")
# Chosen: as many as a tooltip holds.
_FAILURES = 5
_State = tuple[float, int, float]


class CostFinder:
    """What each session of the list cost, its compactions, and what failed in it; safe between threads.

    A session that went on since is read again.
    """

    def __init__(self, source: DataSource) -> None:
        self._source = source
        self._on_found: Callable[[str], None] = lambda _: None
        self._lock = threading.Lock()
        self._known: dict[str, tuple[_State, dict[str, Any] | None]] = {}
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="compact-costs")

    def notify(self, on_found: Callable[[str], None]) -> None:
        """Have `on_found` called with each session whose cost was found; in the thread that found it."""
        self._on_found = on_found

    def cost(self, info: SessionInfo) -> dict[str, Any] | None:
        """Return what a session cost when it was read last; None if it was not yet."""
        return self._known[info.session_id][1] if info.session_id in self._known else None

    def request(self, infos: Iterable[SessionInfo]) -> None:
        """Have these sessions read, without waiting for it; those that are as they were when they were read are not."""
        with self._lock:
            new = [i for i in infos if self._known.get(i.session_id, ((), None))[0] != _state(i)]
            for info in new:
                self._known[info.session_id] = _state(info), self.cost(info)
            while len(self._known) > _MAX_KNOWN:
                self._known.pop(next(iter(self._known)))
        for info in new:
            self._worker.submit(self._read, info)

    def _read(self, info: SessionInfo) -> None:
        try:
            calls = self._source.calls(info.session_id)
            cost = self._source.cost(info, calls).to_dict()
            plans = self._source.plans(info)
            failures = failures_of(calls, plans)
        except Exception as error:  # noqa: BLE001
            # The boundary to any store: one session that cannot be read must not stop the rest.
            _LOG.warning("the cost of session %r could not be found: %s", info.session_id, error)
            return
        found = {
            **{name: cost[name] for name in _SHOWN},
            "compactions": sum(entry.plan.origin is None for entry in plans),
            "failures": [_text(failure) for failure in failures[-_FAILURES:]],
        }
        with self._lock:
            is_new = self.cost(info) != found
            self._known[info.session_id] = _state(info), found
        if is_new:
            self._on_found(info.session_id)

    def close(self) -> None:
        """Cancel what has not begun."""
        self._worker.shutdown(wait=False, cancel_futures=True)


def _text(failure: SessionFailure) -> str:
    return f"{failure.where}: {failure.failure}"


def _state(info: SessionInfo) -> _State:
    return info.created_at, info.model_calls, info.updated_at
