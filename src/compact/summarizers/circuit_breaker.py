"""Stop asking a summariser that fails again and again: nobody waits, or pays, for what will not come."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from compact.core.errors import SpendLimitReached, SummarizerPaused
from compact.core.plurals import quantity


class CircuitBreaker:
    """Opens after some failures in a row; then one try is let through after each pause, which doubles up to a limit.

    Safe between threads. What was not tried is no failure: a pause or a spend limit says nothing about the model. The
    defaults are chosen.
    """

    def __init__(
        self,
        *,
        failures: int = 3,
        pause_seconds: float = 30.0,
        longest_pause_seconds: float = 900.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._limit, self._first_pause, self._longest_pause = failures, pause_seconds, longest_pause_seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._failures = 0
        self._pause = pause_seconds
        self._open_until = 0.0
        self._last = ""

    def check(self) -> None:
        """Raise SummarizerPaused unless it may be tried now."""
        with self._lock:
            if self._failures < self._limit:
                return
            remaining = self._open_until - self._clock()
            if remaining > 0:
                raise SummarizerPaused(
                    f"the summariser failed {quantity(self._failures, 'time')} in a row and is left alone for another "
                    f"{remaining:,.0f} seconds; the last failure was {self._last}",
                    hint="see the errors before this one",
                )
            # This caller tries; the others wait another pause, in case it never comes back.
            self._open_until = self._clock() + self._pause

    def report(self, error: Exception | None) -> None:
        """Note how a summary went: None for one that was written, or the error."""
        if error is None:
            with self._lock:
                self._failures, self._pause = 0, self._first_pause
            return
        if isinstance(error, SummarizerPaused | SpendLimitReached):
            return
        with self._lock:
            self._failures += 1
            self._last = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}".rstrip(": ")
            if self._failures < self._limit:
                return
            if self._failures > self._limit:
                self._pause = min(2 * self._pause, self._longest_pause)
            self._open_until = self._clock() + self._pause
