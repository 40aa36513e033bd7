"""Drives a trip: calls what it waits for, from a thread or from an event loop. The only place that waits."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, TypeVar

from compact.core.steps import Trip

T = TypeVar("T")


def drive(trip: Trip[T]) -> T:
    """Run a trip to its end in this thread."""
    try:
        step = next(trip)
        while True:
            try:
                answer = _answer(step)
            except Exception as error:
                step = trip.throw(error)
            else:
                step = trip.send(answer)
    except StopIteration as done:
        return done.value
    finally:
        trip.close()  # whoever cancels a call ends what it has begun


async def adrive(trip: Trip[T]) -> T:
    """Run a trip to its end without ever blocking the loop."""
    try:
        step = next(trip)
        while True:
            try:
                answer = await asyncio.to_thread(step)
                if inspect.isawaitable(answer):
                    answer = await answer
            except Exception as error:
                step = trip.throw(error)
            else:
                step = trip.send(answer)
    except StopIteration as done:
        return done.value
    finally:
        trip.close()  # whoever cancels a call ends what it has begun


def _answer(step: Callable[[], Any]) -> Any:
    answer = step()
    if not inspect.isawaitable(answer):
        return answer

    async def finish() -> Any:
        return await answer

    # A thread of its own: the caller's may have a running loop, in which nothing can be waited for.
    with ThreadPoolExecutor(max_workers=1) as pool:
        return pool.submit(copy_context().run, asyncio.run, finish()).result()
