"""How long a call waits, what for, and the threads that are left behind when it stops waiting.

A thread cannot be stopped from outside. A call that is no longer waited for keeps its thread until it returns; such
threads do not hold up the end of the process, and a store that has one is not asked again for a while.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeVar

from compact.core.errors import WaitTimeout
from compact.core.steps import SlowStep, StoreStep

T = TypeVar("T")

# Chosen: what a store gets once the time of a call is over, so that what was done is written all the same.
_GRACE_SECONDS = 1.0
# Chosen: how long a store is left alone while a call of it hangs, before another one is tried.
_STALLED_SECONDS = 30.0
# Chosen: how long a thread without work stays, so that the next call need not start one.
_IDLE_SECONDS = 5.0
CALL_LIMIT, STORE_LIMIT = "policy.max_wait_seconds", "state.timeout_seconds"


class CallThreads:
    """A few threads for calls that may never return; unlike those of an executor they let the process end."""

    def __init__(self, name: str, most: int) -> None:
        self._name, self._most = name, most
        self._lock = threading.Condition()
        self._waiting: deque[tuple[Future[Any], Callable[[], Any]]] = deque()
        self._threads = self._idle = 0

    def submit(self, call: Callable[[], T]) -> Future[T]:
        """Make a call in one of the threads."""
        future: Future[T] = Future()
        with self._lock:
            self._waiting.append((future, call))
            if self._idle >= len(self._waiting):
                self._lock.notify()
                return future
            if self._threads >= self._most:
                return future
            self._threads += 1
        threading.Thread(target=self._work, name=f"compact-{self._name}", daemon=True).start()
        return future

    def leave_alone(self, future: Future[Any]) -> None:
        """Count no longer on the thread of a call that hangs: another one may take its place until it returns."""
        if future.cancel():
            return
        with self._lock:
            self._most += 1
        future.add_done_callback(self._returned)

    def _returned(self, _: Future[Any]) -> None:
        with self._lock:
            self._most -= 1

    def _work(self) -> None:
        while (job := self._next_job()) is not None:
            _run(*job)
            del job  # what a call returned must not live on in a thread that has nothing to do

    def _next_job(self) -> tuple[Future[Any], Callable[[], Any]] | None:
        with self._lock:
            if not self._waiting and self._threads <= self._most:
                self._idle += 1
                self._lock.wait(_IDLE_SECONDS)
                self._idle -= 1
            if self._waiting:
                return self._waiting.popleft()
            self._threads -= 1
            return None


def _run(future: Future[Any], call: Callable[[], Any]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        answer = call()
    except BaseException as error:  # noqa: BLE001 - whoever waits gets it, an interrupt too
        future.set_exception(error)
    else:
        future.set_result(answer)


class StalledStores:
    """Stores of which a call hangs that nobody waits for any more; asking them again would hang as well."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # By the identity of the store, which lives at least as long as the call that hangs: calls, and when to try.
        self._stalled: dict[int, tuple[int, float]] = {}

    def check(self, store: object, seconds: float) -> None:
        """Raise WaitTimeout if a call of the store hangs, but for one try now and then."""
        now = time.monotonic()
        with self._lock:
            calls, try_at = self._stalled.get(id(store), (0, 0.0))
            if calls and now < try_at:
                raise WaitTimeout("the store, which was left alone for a moment,", seconds, limited_by=STORE_LIMIT)
            if calls:
                self._stalled[id(store)] = calls, now + _STALLED_SECONDS

    def add(self, step: StoreStep, future: Future[Any]) -> None:
        """Note that nobody waits for a call any more, until it returns."""
        with self._lock:
            calls, _ = self._stalled.get(id(step.store), (0, 0.0))
            self._stalled[id(step.store)] = calls + 1, time.monotonic() + _STALLED_SECONDS
        future.add_done_callback(lambda _: self._remove(step.store))

    def _remove(self, store: object) -> None:
        with self._lock:
            calls, try_at = self._stalled.get(id(store), (1, 0.0))
            if calls > 1:
                self._stalled[id(store)] = calls - 1, try_at
            else:
                self._stalled.pop(id(store), None)


@cache
def stalled_stores() -> StalledStores:
    """Return what this process knows of stores that hang."""
    return StalledStores()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=stalled_stores.cache_clear)  # the calls that hang are the parent's


@dataclass(frozen=True, slots=True)
class WaitLimits:
    """How long a call may wait in all, and how long for one answer of a store; None for as long as it takes."""

    call_seconds: float | None = None
    store_seconds: float | None = None


NO_LIMITS = WaitLimits()


@dataclass(slots=True)
class Patience:
    """How long a call that is under way still waits."""

    limits: WaitLimits = NO_LIMITS
    _started: float = field(default_factory=time.monotonic)
    _has_given_up_store: bool = False

    def seconds_for(self, step: Callable[[], Any]) -> float | None:
        """Return how long to wait for a step, None for as long as it takes; raise WaitTimeout if not at all."""
        if isinstance(step, StoreStep):
            return self._seconds_for_store(step)
        if not isinstance(step, SlowStep):
            return None
        left = self._left()
        if left is not None and left <= 0:
            raise self._timed_out(step, 0.0)
        given = [seconds for seconds in (step.timeout_seconds, left) if seconds is not None]
        return min(given) if given else None

    def _seconds_for_store(self, step: StoreStep) -> float | None:
        limit, left = self.limits.store_seconds, self._left()
        if limit is None:
            return None
        if self._has_given_up_store:
            raise WaitTimeout("the store", limit, limited_by=STORE_LIMIT)
        stalled_stores().check(step.store, limit)
        return limit if left is None else min(limit, max(left, _GRACE_SECONDS))

    def _left(self) -> float | None:
        total = self.limits.call_seconds
        return None if total is None else self._started + total - time.monotonic()

    def give_up(self, step: Callable[[], Any], seconds: float, future: Future[Any] | None = None) -> WaitTimeout:
        """Return the error of a step that took too long; a store is not asked again by this call."""
        if isinstance(step, StoreStep):
            self._has_given_up_store = True
            if future:
                stalled_stores().add(step, future)
        return self._timed_out(step, seconds)

    def _timed_out(self, step: Callable[[], Any], seconds: float) -> WaitTimeout:
        left = self._left()
        is_over, total = left is not None and left <= 0, self.limits.call_seconds
        if isinstance(step, SlowStep):
            setting = CALL_LIMIT if is_over or not step.limited_by else step.limited_by
            what = step.what
        else:
            setting, what = CALL_LIMIT if is_over else STORE_LIMIT, "the store"
        return WaitTimeout(what, total if is_over and total is not None else seconds, limited_by=setting)
