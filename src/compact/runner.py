"""Run steps (`compact.core.steps`) from a thread or from an event loop: the only place that waits."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, TypeVar

from compact.core.steps import Steps

T = TypeVar("T")


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


async def arun_steps(steps: Steps[T]) -> T:
    """Run steps to their end without ever blocking the event loop."""
    try:
        step = next(steps)
        while True:
            try:
                answer = await asyncio.to_thread(step)
                if inspect.isawaitable(answer):
                    answer = await answer
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
