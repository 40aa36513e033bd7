"""Run steps (`compact.core.steps`) from a thread or from an event loop: the only place that waits.

Nothing is waited for longer than the limits of the call say: a step that takes longer fails with a `WaitTimeout` where
it was yielded, and is left to itself. Its time runs once a thread has begun it: a queue of our own is no slow store.

A loop is never blocked: all work of a call is done in threads of our own. asyncio's default threads are left alone,
because the process needs them for other things, such as the lookup of host names. There are three kinds:

- *workers* do what ends by itself: planning and counting. They are few, since Python runs one of them at a time, and
  none of them ever waits for a session, a store or a model.
- *store threads* read and write stores (`StoreStep`), and go on with what follows until something else is waited for:
  each change of threads takes as long as a small answer of a store. A store that hangs holds up nothing else.
- *waiters* make the calls that may take long (`SlowStep`). If all of them are taken, only calls of that kind queue.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any, Generic, TypeAlias, TypeVar, cast

from compact.core.errors import CompactError
from compact.core.steps import SlowStep, Steps, StoreStep
from compact.waiting.forks import after_fork
from compact.waiting.limits import NO_LIMITS, CallThreads, Patience, TimedStep, WaitLimits
from compact.waiting.progress import on_progress

T = TypeVar("T")

# Chosen: enough to go on while some collect garbage; more would only take turns from the event loop.
_WORKERS = 4
# Chosen: as many summaries at once as a process would ask a model for.
_WAITERS = 32
# Chosen: more than a database has connections for us; who waits for one waits there, for a limited time.
_STORE_THREADS = 32
# Chosen: how long a call that is interrupted still waits for a store, so that a claim it was granted is given back.
_INTERRUPTED_SECONDS = 2.0


@cache
def _workers() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_WORKERS, thread_name_prefix="compact-worker")


@cache
def _waiters() -> CallThreads:
    return CallThreads("waiter", _WAITERS)


@cache
def _store_threads() -> CallThreads:
    return CallThreads("store", _STORE_THREADS)


@cache
def _turns() -> threading.BoundedSemaphore:
    """Return what limits the threads that advance steps at a time, workers or not."""
    return threading.BoundedSemaphore(_WORKERS)


for threads in (_workers, _waiters, _store_threads, _turns):
    after_fork(threads.cache_clear)  # threads do not survive a fork


def run_steps(steps: Steps[T], limits: WaitLimits = NO_LIMITS) -> T:
    """Run steps to their end in this thread; what may hang is called in another one, and left there if it does."""
    patience = Patience(limits)
    try:
        step = next(steps)
        while True:
            try:
                answer = _run_step(step, patience, steps)
            except Exception as error:  # noqa: BLE001 - thrown into the steps, which decide
                step = steps.throw(error)
            else:
                step = steps.send(answer)
    except StopIteration as done:
        return done.value
    finally:
        steps.close()  # a cancelled call must end the operations it has started


def _run_step(step: Callable[[], Any], patience: Patience, steps: Steps[Any]) -> Any:
    if patience.seconds_for(step) is None:
        answer = _called(step)
        if not inspect.isawaitable(answer):
            return answer
        # A thread of its own: the caller's may have a running loop, in which nothing can be waited for.
        with ThreadPoolExecutor(max_workers=1) as pool:
            return pool.submit(copy_context().run, asyncio.run, _ended(answer)).result()
    threads, timed, context = _threads_for(step, patience), TimedStep(step, patience), copy_context()
    future = threads.submit(lambda: context.run(_called_to_its_end, timed))
    try:
        while not future.done() and not timed.check_overdue():
            wait([future], timeout=timed.seconds_left)
    except BaseException:  # Ctrl-C
        if isinstance(step, StoreStep):
            _pass_on(future, steps)
        threads.leave_alone(future)
        raise
    if not future.done():
        threads.leave_alone(future)
        raise timed.give_up(future)
    try:
        return future.result()
    except _TookTooLong:
        raise timed.give_up() from None


def _threads_for(step: Callable[[], Any], patience: Patience) -> CallThreads:
    """Return the threads that make a step; raise WaitTimeout if the time for slow ones is over."""
    if isinstance(step, StoreStep):
        return _store_threads()
    patience.check(step)
    return _waiters()


def _pass_on(future: Future[Any], steps: Steps[Any]) -> None:
    """Pass on what a store has just answered: what it granted is known then, and closing the steps gives it back."""
    wait([future], timeout=_INTERRUPTED_SECONDS)
    if future.done() and future.exception() is None:
        with suppress(StopIteration, Exception):  # the interrupt is what the caller is to see
            steps.send(future.result())


class _TookTooLong(Exception):
    """What was to be awaited took too long."""


def _called(call: Callable[[], Any]) -> Any:
    """Make a call; what is no Exception and does not ask the process to end is one of the callee's failures."""
    try:
        return call()
    except (Exception, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        raise _foreign(error) from error


def _foreign(error: BaseException) -> CompactError:
    return CompactError(f"a call ended with {type(error).__name__}, which nobody here has asked for")


def _begun(timed: TimedStep) -> Any:
    timed.begin()
    if isinstance(timed.step, StoreStep):
        on_progress.set(timed.begin_anew)  # in a context that this call has for itself
    return _called(timed.step)


def _called_to_its_end(timed: TimedStep) -> Any:
    """Make a call and, if it answers with something to await, await it in a loop of its own, as long as it may take."""
    answer = _begun(timed)
    return asyncio.run(_ended(answer, timed.seconds)) if inspect.isawaitable(answer) else answer


async def _ended(answer: Any, seconds: float | None = None) -> Any:
    """Return what an awaitable comes to; raise _TookTooLong, and cancel it, if that takes too long."""
    task = asyncio.ensure_future(answer)
    try:
        done, _ = await asyncio.wait([task], timeout=seconds)
    except asyncio.CancelledError:
        task.cancel()
        raise
    if not done:
        task.cancel()
        raise _TookTooLong
    if task.cancelled():
        raise _foreign(asyncio.CancelledError())
    error = task.exception()
    if error is not None and not isinstance(error, Exception | KeyboardInterrupt | SystemExit):
        raise _foreign(error) from error
    return task.result()


async def run_blocking(call: Callable[[], T]) -> T:
    """Make a call that may take long in a thread of our own; it must not wait for a session."""
    return await asyncio.wrap_future(_waiters().submit(partial(copy_context().run, call)))


async def run_short(call: Callable[[], T]) -> T:
    """Make a call that ends by itself in a worker, where slow calls of others do not hold it up."""
    return await asyncio.get_running_loop().run_in_executor(_workers(), copy_context().run, call)


async def arun_steps(steps: Steps[T], limits: WaitLimits = NO_LIMITS, *, asks_store: bool = False) -> T:
    """Run steps to their end without ever blocking the event loop; with `asks_store` they begin in a store thread.

    If the task is cancelled, the steps end at the next place where they wait; a call to a model that is under way is
    left to itself. When this returns or raises, nothing works on the steps any more.
    """
    work, patience = _Work(steps), Patience(limits)
    try:
        pause = await (_in_store_thread(None, work, patience) if asks_store else _in_worker(work.start, work))
        while not isinstance(pause, _Done):
            if isinstance(pause, StoreStep):
                pause = await _in_store_thread(pause, work, patience)
                continue
            try:
                answer = await _awaited(pause, work, patience)
            except Exception as error:  # noqa: BLE001 - thrown into the steps, which decide
                pause = await _in_worker(partial(work.throw, error), work)
            else:
                pause = await _in_worker(partial(work.send, answer), work)
        return cast(T, pause.value)
    except BaseException:
        await _finished(asyncio.get_running_loop().run_in_executor(_workers(), work.close))
        raise


@dataclass(frozen=True, slots=True)
class _Done:
    """What the steps returned; a `StopIteration` cannot travel through a future."""

    value: Any


@dataclass(frozen=True, slots=True)
class _ToAwait:
    """What a store answered with, which only a loop can await."""

    answer: Any
    timed: TimedStep


# Where threads let go of the steps.
_Pause: TypeAlias = Callable[[], Any] | _ToAwait | _Done


@dataclass(slots=True)
class _Work(Generic[T]):
    """Steps that threads advance, one after the other, from one step that waits to the next."""

    steps: Steps[T]
    # Contexts are not shared between threads: this one goes with the steps, whichever thread has them.
    context: Context = field(default_factory=copy_context)
    is_cancelled: bool = False
    store_call: TimedStep | None = None  # that a thread is about to make, or makes
    _guard: threading.Lock = field(default_factory=threading.Lock)

    def start(self) -> _Pause:
        return self._advance(partial(next, self.steps))

    def send(self, answer: object) -> _Pause:
        return self._advance(partial(self.steps.send, answer))

    def throw(self, error: Exception) -> _Pause:
        return self._advance(partial(self.steps.throw, error))

    def close(self) -> None:
        self.context.run(self.steps.close)

    def go_on(self, call: TimedStep | None, patience: Patience) -> _Pause | None:
        """Begin, or make a call of a store; then go on as long as only stores are asked. None if that was left."""
        resume = partial(next, self.steps) if call is None else self._answer(call)
        while resume is not None and not isinstance(resume, _ToAwait):
            pause = self._advance(resume)
            if not isinstance(pause, StoreStep) or self.is_cancelled:
                return pause
            call = self.store_call = TimedStep(pause, patience)
            resume = self._answer(call)
        return resume

    def _answer(self, call: TimedStep) -> Callable[[], Any] | _ToAwait | None:
        """Make a call of a store, and return what resumes the steps; None if nobody waits for it any more."""
        if call.is_left:
            return None
        try:
            # A copy: a call that is left to itself must not keep the context from the steps.
            answer = self.context.copy().run(_begun, call)
        except Exception as error:  # noqa: BLE001 - thrown into the steps, which decide
            resume = partial(self.steps.throw, error)
        else:
            resume = _ToAwait(answer, call) if inspect.isawaitable(answer) else partial(self.steps.send, answer)
        with self._guard:
            self.store_call = None if self.store_call is call else self.store_call
            return None if call.is_left else resume

    def leave_store_call(self, *, is_overdue: bool = False) -> TimedStep | None:
        """Wait no longer for the call of a store that is under way, or only if it is overdue; return it."""
        with self._guard:
            call = self.store_call
            if call is None or (is_overdue and not call.check_overdue()):
                return None
            call.is_left, self.store_call = True, None
            return call

    def _advance(self, resume: Callable[[], Any]) -> _Pause:
        """Resume the steps and make their short calls; return at one that waits, an answer to await, or the end."""
        try:
            with _turns():
                while True:
                    step = self.context.run(resume)
                    # The answer to the call before was passed on: what it claimed is known, and closing gives it back.
                    if isinstance(step, SlowStep | StoreStep) or self.is_cancelled:
                        return step
                    try:
                        answer = self.context.run(_called, step)
                    except Exception as error:  # noqa: BLE001 - thrown into the steps, which decide
                        resume = partial(self.steps.throw, error)
                        continue
                    if inspect.isawaitable(answer):
                        return lambda: answer
                    resume = partial(self.steps.send, answer)
        except StopIteration as done:
            return _Done(done.value)


async def _in_worker(call: Callable[[], _Pause], work: _Work[Any]) -> _Pause:
    """Let a worker advance the steps; a task that is cancelled meanwhile waits until the worker has let go of them."""
    advanced = asyncio.get_running_loop().run_in_executor(_workers(), call)
    try:
        return await asyncio.shield(advanced)
    except asyncio.CancelledError:
        work.is_cancelled = True
        await _finished(advanced)
        raise


async def _in_store_thread(step: StoreStep | None, work: _Work[Any], patience: Patience) -> _Pause:
    """Let a store thread begin, or make a call of a store, and go on; a call that takes too long is left to itself."""
    call = work.store_call = TimedStep(step, patience) if step else None
    threads = _store_threads()
    future = threads.submit(lambda: work.go_on(call, patience))
    answered = asyncio.wrap_future(future)
    overdue: TimedStep | None = None
    try:
        while not answered.done() and overdue is None:
            under_way = work.store_call  # while the steps are advanced there is none, but one may follow
            seconds = under_way.seconds_left if under_way else patience.limits.store_seconds
            await asyncio.wait([answered], timeout=None if seconds is None else max(0.0, seconds))
            if step is None and patience.is_over and future.cancel():  # no thread was free all the time
                return await _in_worker(work.start, work)
            overdue = None if answered.done() else work.leave_store_call(is_overdue=True)
    except asyncio.CancelledError:
        await _let_go(answered, work)
        if not answered.done():
            _leave_alone(threads, future, answered)
        raise
    if overdue:
        _leave_alone(threads, future, answered)
        return await _in_worker(partial(work.throw, overdue.give_up(future)), work)
    return cast(_Pause, answered.result())


async def _let_go(answered: asyncio.Future[Any], work: _Work[Any]) -> None:
    """Wait until a store thread has passed on what the store answers to a task that was cancelled, or hangs.

    Closing the steps gives back what it granted.
    """
    work.is_cancelled = True
    loop = asyncio.get_running_loop()
    end = loop.time() + _INTERRUPTED_SECONDS
    while not answered.done():
        await _finished(answered, seconds=max(0.01, end - loop.time()))
        if loop.time() >= end and not answered.done() and work.leave_store_call():
            return
    if not answered.cancelled():
        answered.exception()  # the cancellation is what the caller is to see


async def _awaited(step: Callable[[], Any] | _ToAwait, work: _Work[Any], patience: Patience) -> Any:
    """Make a call that may take long, and await what it returns if that is to be awaited, as long as limits allow."""
    if isinstance(step, _ToAwait):
        return await _ended_in_time(step.answer, step.timed, work)
    threads, timed = _threads_for(step, patience), TimedStep(step, patience)
    # A copy: a call that is left to itself must not keep the context from the steps.
    context = work.context.copy()
    future = threads.submit(lambda: context.run(_begun, timed))
    answered = asyncio.wrap_future(future)
    try:
        while not answered.done() and not timed.check_overdue():
            await asyncio.wait([answered], timeout=timed.seconds_left)
    except asyncio.CancelledError:
        _leave_alone(threads, future, answered)
        raise
    if not answered.done():
        _leave_alone(threads, future, answered)
        raise timed.give_up(future)
    answer = answered.result()
    return await _ended_in_time(answer, timed, work) if inspect.isawaitable(answer) else answer


async def _ended_in_time(answer: Any, timed: TimedStep, work: _Work[Any]) -> Any:
    ended = asyncio.get_running_loop().create_task(_ended(answer, timed.seconds), context=work.context.copy())
    try:
        return await ended
    except _TookTooLong:
        raise timed.give_up() from None


def _leave_alone(threads: CallThreads, future: Future[Any], answered: asyncio.Future[Any]) -> None:
    threads.leave_alone(future)
    answered.cancel()  # its loop may be closed by the time that the call returns


async def _finished(work: asyncio.Future[Any], seconds: float | None = None) -> None:
    """Wait for work that must not be left alone, however often the waiting task is cancelled."""
    loop = asyncio.get_running_loop()
    end = None if seconds is None else loop.time() + seconds
    while not work.done() and (end is None or loop.time() < end):
        with suppress(asyncio.CancelledError):
            await asyncio.wait([work], timeout=None if end is None else end - loop.time())
