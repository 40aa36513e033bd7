"""How long an event loop did not get its turn, without what is not ours: a busy host, and Python's collector."""

from __future__ import annotations

import asyncio
import gc
import os
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

_STALL_SECONDS = 1.0
# Chosen: about the shortest stall that a test is about.
_LOOK_SECONDS = 0.1
_KERNEL_COUNTS = Path("/proc/stat")
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


def stall_limit() -> float:
    """Return a second, and more where more wants to run than there are processors: the loop's thread waits for one."""
    return _STALL_SECONDS * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


def stolen_seconds() -> float:
    """Return what the host of this virtual machine has taken from its processors so far, for other machines."""
    if not _KERNEL_COUNTS.exists():
        return 0.0
    with _KERNEL_COUNTS.open() as counts:
        return int(counts.readline().split()[8]) / _TICKS_PER_SECOND


def own_clock() -> float:
    """Return a clock that stands still while the host runs other machines: a stall of theirs is none of ours."""
    return time.perf_counter() - stolen_seconds()


class Longest:
    """The longest that the loop did not get its turn, without what the host took, and Python's garbage collector.

    A collection stops every thread for a time that goes by all that the process holds, not by what a call does.
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self._collecting_since = 0.0
        self._collected = 0.0

    def on_collection(self, phase: str, info: object) -> None:
        if phase == "start":
            self._collecting_since = time.perf_counter()
        else:
            self._collected += time.perf_counter() - self._collecting_since
            self._collecting_since = 0.0

    def _clock(self) -> float:
        """Return a clock that leaves out collections; one may just be over, and its end not be told yet."""
        now, since = time.perf_counter(), self._collecting_since
        return now - self._collected - (now - since if since else 0.0)

    async def watch(self) -> None:
        last = looked = self._clock()
        stolen = stolen_seconds()
        while True:
            await asyncio.sleep(0.001)
            now = self._clock()
            stalled = now - last - 0.001
            # Not at each turn: to read a file lets other threads go first, which would be counted as a stall.
            if now - looked > _LOOK_SECONDS:
                by_now = stolen_seconds()
                stalled -= by_now - stolen
                stolen, looked, now = by_now, now, self._clock()
            self.seconds = max(self.seconds, stalled)
            last = now


@asynccontextmanager
async def watched_loop() -> AsyncGenerator[Longest]:
    longest = Longest()
    gc.callbacks.append(longest.on_collection)
    watch = asyncio.create_task(longest.watch())
    await asyncio.sleep(0.01)
    longest.seconds = 0.0
    try:
        yield longest
    finally:
        watch.cancel()
        gc.callbacks.remove(longest.on_collection)
