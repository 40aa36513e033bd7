"""Sessions that look alike but for one word each, which no other may ever be given; and what a load test measures."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from compact.testing import Wire, assistant, tool_exchange, user

_CANARY = re.compile(r"canary-\d+")


def canary(session: int) -> str:
    """Return the word that only this session has."""
    return f"canary-{session}"


def turn(session: int, number: int) -> list[Wire]:
    """Return what a session says in a turn; without the canary it would be the same in all of them."""
    word = canary(session)
    lines = "\n".join(f"{line} berth {line * number % 97} is free for {word}" for line in range(12))
    read = tool_exchange(f"call-{number}", lines, path=f"src/quay_{number}.py")
    return [user(f"Which berths are free at quay {number}? I am {word}."), *read, assistant(f"{word}: all but two.")]


def strangers(answer: Any, session: int) -> list[str]:
    """Return the canaries of other sessions in something that a session was given."""
    text = answer if isinstance(answer, str) else json.dumps(answer)
    return sorted({*_CANARY.findall(text)} - {canary(session)})


@dataclass
class Load:
    """What calls took, and what went wrong."""

    seconds: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    leaks: list[str] = field(default_factory=list)
    wall_seconds: float = 0.0
    memory_mb: float = 0.0

    @contextmanager
    def measured(self) -> Generator[None]:
        """Take the time of everything in the block, and how much memory the process holds at its end."""
        started = time.perf_counter()
        yield
        self.wall_seconds += time.perf_counter() - started
        self.memory_mb = resident_mb()

    @contextmanager
    def call(self) -> Generator[None]:
        """Take the time of one call."""
        started = time.perf_counter()
        yield
        self.seconds.append(time.perf_counter() - started)

    def check(self, answer: Any, session: int) -> None:
        """Note what a session was given of others."""
        self.leaks += [f"session {session} was given {word}" for word in strangers(answer, session)]

    def take(self, other: Load) -> None:
        """Add what another process measured at the same time."""
        self.seconds += other.seconds
        self.errors += other.errors
        self.leaks += other.leaks
        self.wall_seconds = max(self.wall_seconds, other.wall_seconds)
        self.memory_mb += other.memory_mb

    def line(self, what: str) -> str:
        """Return the figures in a line."""
        times = sorted(self.seconds)
        shares = (times[int(len(times) * share)] * 1000 for share in (0.5, 0.99))
        median, slow = (f"{milliseconds:,.0f} ms" for milliseconds in shares)
        rate = len(times) / self.wall_seconds
        return (
            f"{what}: {len(times):,} calls in {self.wall_seconds:,.0f} s, {rate:,.0f} a second, p50 {median}, "
            f"p99 {slow}, {self.memory_mb:,.0f} MB, {len(self.errors)} errors, {len(self.leaks)} leaks"
        )


def resident_mb() -> float:
    """Return the memory that this process holds; 0 where nothing tells."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS")), 0.0)
