"""Run steps (`compact.core.steps`) from a thread or from an event loop: the only place that waits.

A loop is never blocked: all work of a call is done in threads of our own. asyncio's default threads are left alone,
because the process needs them for other things, such as the lookup of host names. There are two kinds:

- *workers* do what ends by itself: planning, counting, a read or write of the store. They are few, since Python runs
  one of them at a time, and none of them ever waits for a session or for a model.
- *waiters* make the calls that may take long (`SlowStep`). If all of them are taken, only calls of that kind queue.
"""

from __future__ import annotations

import asyncio
import inspect
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any, Generic, TypeAlias, TypeVar, cast

from compact.core.steps import SlowStep, Steps

T = TypeVar("T")

# Chosen: enough to go on while some write to a disk or a server; more would only take turns from the event loop.
_WORKERS = 4
# Chosen: as many summaries at once as a process would ask a model for.
_WAITERS = 32


@cache
def _threads(name: str, most: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(most, thread_name_prefix=f"compact-{name}")


def _workers() -> ThreadPoolExecutor:
    return _threads("worker", _WORKERS)


def _waiters() -> ThreadPoolExecutor:
    return _threads("waiter", _WAITERS)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_threads.cache_clear)  # threads do not survive a fork


def run_steps(steps: Steps[T]) -> T:
    """Run steps to their end in this thread."""
    try:
        step = next(steps)
        while True:
            try:
                answer = _run_step(step)
            except Exception as error:  # noqa: BLE001 - thrown into the steps, which decide
                step = steps.throw(error)
            else:
                step = steps.send(answer)
    except StopIteration as done:
        return done.value
    finally:
        steps.close()  # a cancelled call must end the operations it has started


def _run_step(step: Callable[[], Any]) -> Any:
    answer = step()
    if not inspect.isawaitable(answer):
        return answer

    async def finish() -> Any:
        return await answer

    # A thread of its own: the caller's may have a running loop, in which nothing can be waited for.
    with ThreadPoolExecutor(max_workers=1) as pool:
        return pool.submit(copy_context().run, asyncio.run, finish()).result()


async def run_blocking(call: Callable[[], T]) -> T:
    """Make a call that may take long in a thread of our own; it must not wait for a session."""
    return await asyncio.get_running_loop().run_in_executor(_waiters(), copy_context().run, call)


async def run_short(call: Callable[[], T]) -> T:
    """Make a call that ends by itself in a worker, where slow calls of others do not hold it up."""
    return await asyncio.get_running_loop().run_in_executor(_workers(), copy_context().run, call)


async def arun_steps(steps: Steps[T]) -> T:
    """Run steps to their end without ever blocking the event loop.

    If the task is cancelled, the steps end at the next place where they wait; a call to a model that is under way is
    left to itself. When this returns or raises, nothing works on the steps any more.
    """
    work = _Work(steps)
    try:
        pause = await _in_worker(work.start, work)
        while not isinstance(pause, _Done):
            try:
                answer = await _awaited(pause, work)
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


# Where worker threads let go of the steps.
_Pause: TypeAlias = Callable[[], Any] | _Done


@dataclass(slots=True)
class _Work(Generic[T]):
    """Steps that worker threads advance, one after the other, from one slow step to the next."""

    steps: Steps[T]
    # Contexts are not shared between threads: this one goes with the steps, whichever thread has them.
    context: Context = field(default_factory=copy_context)
    is_cancelled: bool = False

    def start(self) -> _Pause:
        return self._advance(partial(next, self.steps))

    def send(self, answer: object) -> _Pause:
        return self._advance(partial(self.steps.send, answer))

    def throw(self, error: Exception) -> _Pause:
        return self._advance(partial(self.steps.throw, error))

    def close(self) -> None:
        self.context.run(self.steps.close)

    def _advance(self, resume: Callable[[], Any]) -> _Pause:
        """Resume the steps and make their short calls; return at a slow one, at an answer to await, or at the end."""
        try:
            while True:
                step = self.context.run(resume)
                # The answer to the call before was passed on: what it claimed is known, and closing gives it back.
                if isinstance(step, SlowStep) or self.is_cancelled:
                    return step
                try:
                    answer = self.context.run(step)
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


async def _awaited(step: Callable[[], Any], work: _Work[Any]) -> Any:
    """Make a slow call, and await what it returns if that is to be awaited."""
    loop = asyncio.get_running_loop()
    # A copy: a call that is left to itself must not keep the context from the steps.
    answer = await loop.run_in_executor(_waiters(), work.context.copy().run, step)
    if not inspect.isawaitable(answer):
        return answer

    async def finish() -> Any:
        return await answer

    return await loop.create_task(finish(), context=work.context.copy())


async def _finished(work: asyncio.Future[Any]) -> None:
    """Wait for work that must not be left alone, however often the waiting task is cancelled."""
    while not work.done():
        with suppress(asyncio.CancelledError):
            await asyncio.wait([work])
