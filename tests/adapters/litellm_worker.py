"""LiteLLM logs in the background, on a worker of its own."""

from __future__ import annotations

import asyncio

from litellm.litellm_core_utils.logging_worker import GLOBAL_LOGGING_WORKER


async def all_logged() -> None:
    """Wait until every callback has run: what has not begun when its loop ends is never awaited.

    Its own `flush` returns as soon as nothing waits in its queue, although what it took out may not have begun, and
    tasks that will put more into it may not have begun either.
    """
    while putting := [task for task in asyncio.all_tasks() if "logging_helper" in str(task.get_coro())]:
        await asyncio.wait(putting)
    if GLOBAL_LOGGING_WORKER._queue is not None:
        await GLOBAL_LOGGING_WORKER._queue.join()
