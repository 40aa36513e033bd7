"""How long a call waits, what for, and the threads that are left behind when it stops waiting.

A thread cannot be stopped from outside. A call that is no longer waited for keeps its thread until it returns; such
threads do not hold up the end of the process, and a store that has one is not asked again for a while.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import cache
from queue import SimpleQueue
from typing import Any, TypeVar

from compact.core.errors import WaitTimeout
from compact.core.steps import SlowStep, StoreStep
from compact.waiting.forks import after_fork

T = TypeVar("T")

# Chosen: what a store gets once the time of a call is over, so that what was done is written all the same.
_GRACE_SECONDS = 1.0
# Chosen: how long a store is left alone while a call of it hangs, before another one is tried.
_STALLED_SECONDS = 30.0
# Chosen: who wakes up so much too late was stopped, as were the threads that it waits for.
_OVERSLEPT_SECONDS = 2.0
# Chosen: how long a thread without work stays, so that the next call need not start one.
_IDLE_SECONDS = 5.0
CALL_LIMIT, STORE_LIMIT = "policy.max_wait_seconds", "state.timeout_seconds"


@cache
def _starter() -> SimpleQueue[threading.Thread]:
    """Return where threads are put that are to be started, by a thread that does nothing else.

    Whoever starts a thread waits until that has begun to run. In a busy process this takes a tenth of a second, for
    which an event loop would be blocked.
    """
    threads = SimpleQueue[threading.Thread]()

    def start_all() -> None:
        while True:
            threads.get().start()

    threading.Thread(target=start_all, name="compact-starter", daemon=True).start()
    return threads


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
        self._start()
        return future

    def _start(self) -> None:
        thread = threading.Thread(target=self._work, name=f"compact-{self._name}", daemon=True)
        _starter().put(thread)

    def leave_alone(self, future: Future[Any]) -> None:
        """Count no longer on the thread of a call that hangs: another one may take its place until it returns."""
        if future.cancel():
            return
        with self._lock:
            self._most += 1
            is_needed = len(self._waiting) > self._idle and self._threads < self._most
            self._threads += is_needed
        future.add_done_callback(self._returned)
        if is_needed:
            self._start()

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


for of_parent in (stalled_stores, _starter):  # the calls that hang are the parent's, and the threads
    after_fork(of_parent.cache_clear)


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
        """Return how long to wait for a step that begins now, None for as long as it takes."""
        if isinstance(step, StoreStep):
            given = self.limits.store_seconds, None if self._left is None else max(self._left, _GRACE_SECONDS)
            return None if given[0] is None else _least(*given)
        return _least(step.timeout_seconds, self._left) if isinstance(step, SlowStep) else None

    def check(self, step: Callable[[], Any]) -> None:
        """Raise WaitTimeout if a step is not to be made at all."""
        limit = self.limits.store_seconds
        if isinstance(step, SlowStep) and self.is_over:
            raise self._timed_out(step, 0.0)
        if not isinstance(step, StoreStep) or limit is None:
            return
        if self._has_given_up_store:
            raise WaitTimeout("the store", limit, limited_by=STORE_LIMIT)
        stalled_stores().check(step.store, limit)

    @property
    def is_over(self) -> bool:
        """Return True if the time of the whole call is over."""
        return self._left is not None and self._left <= 0

    @property
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

    def give_up_queueing(self, step: Callable[[], Any]) -> WaitTimeout:
        """Return the error of a step that no thread has begun; that is no sign that its store hangs."""
        self._has_given_up_store |= isinstance(step, StoreStep)
        what = step.what if isinstance(step, SlowStep) else "the store"
        seconds = self.limits.call_seconds or 0.0
        return WaitTimeout(f"{what}, for which no thread was free,", seconds, limited_by=CALL_LIMIT)

    def _timed_out(self, step: Callable[[], Any], seconds: float) -> WaitTimeout:
        is_over, total = self.is_over, self.limits.call_seconds
        if isinstance(step, SlowStep):
            setting = CALL_LIMIT if is_over or not step.limited_by else step.limited_by
            what = step.what
        else:
            setting, what = CALL_LIMIT if is_over else STORE_LIMIT, "the store"
        return WaitTimeout(what, total if is_over and total is not None else seconds, limited_by=setting)


def _least(*seconds: float | None) -> float | None:
    return min((each for each in seconds if each is not None), default=None)


@dataclass(slots=True)
class TimedStep:
    """A step that a thread makes; `is_left` once nobody waits for it any more.

    Its time runs from the moment at which a thread begins it. Before that it waits for other calls of this process: no
    store and no model is slow then, and only the time of the whole call is a limit.
    """

    step: Callable[[], Any]
    patience: Patience
    seconds: float | None = None
    is_left: bool = False
    _begun: float | None = None
    _queued: float = field(default_factory=time.monotonic)

    def begin(self) -> None:
        """Let the time of the step run; raise WaitTimeout if it is not to be made at all."""
        self.patience.check(self.step)
        self.begin_anew()

    def begin_anew(self) -> None:
        """Let the time of the step run from now on: it has begun, or it has much to do and has come on."""
        self.seconds = self.patience.seconds_for(self.step)
        self._begun = time.monotonic()

    @property
    def seconds_left(self) -> float | None:
        """Return how long to wait before asking again; nothing is left when it is 0 or less."""
        now = time.monotonic()
        if self._begun is not None:
            return None if self.seconds is None else self._begun + self.seconds - now
        # Whoever asks again after the time of one step finds a step that has begun meanwhile before its time is over.
        seconds = self.patience.seconds_for(self.step)
        is_hopeless = self.patience.is_over and now - self._queued >= _GRACE_SECONDS
        return 0.0 if is_hopeless and seconds is not None else seconds

    def check_overdue(self) -> bool:
        """Return True if the step is to be waited for no longer; asked when the time of `seconds_left` has gone by.

        While a machine sleeps or a container is frozen, answers that have come cannot be taken: their time starts anew.
        """
        left = self.seconds_left
        if left is not None and left < -_OVERSLEPT_SECONDS and self._begun is not None:
            self._begun = time.monotonic()
            return False
        return left is not None and left <= 0

    def give_up(self, future: Future[Any] | None = None) -> WaitTimeout:
        """Return the error of a step that is waited for no longer; `future` is of the thread that still makes it."""
        if self._begun is None:
            return self.patience.give_up_queueing(self.step)
        return self.patience.give_up(self.step, self.seconds or 0.0, future)
