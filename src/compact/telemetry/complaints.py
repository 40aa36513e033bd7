"""Tells the operator what an exporter cannot do: calmly, and not the same thing again and again."""

from __future__ import annotations

import re
import sys
import threading
import time
from collections.abc import Callable

from compact.telemetry.fitting import one_line

_EVERY_SECONDS = 60.0
_MOST_KINDS = 100
_FIGURES = re.compile(r"[\d.,]+")


class Complaints:
    """Lines with a prefix; the same but for its figures is said once a minute, with how often it was not."""

    def __init__(
        self,
        prefix: str,
        *,
        write: Callable[[str], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._prefix, self._clock, self._write = prefix, clock, write or _to_stderr
        self._said: dict[str, tuple[float, int]] = {}
        self._lock = threading.Lock()

    def __call__(self, text: str) -> None:
        text, now = one_line(text), self._clock()
        kind = _FIGURES.sub("#", text)
        with self._lock:
            at, unsaid = self._said.get(kind, (float("-inf"), 0))
            if now - at < _EVERY_SECONDS:
                self._said[kind] = (at, unsaid + 1)
                return
            if len(self._said) >= _MOST_KINDS:
                self._said.clear()
            self._said[kind] = (now, 0)
        again = f" ({unsaid:,} more like this)" if unsaid else ""
        self._write(f"{self._prefix} {text}{again}")


def _to_stderr(line: str) -> None:
    try:
        sys.stderr.write(line + "\n")
    except (OSError, ValueError, AttributeError):
        return  # stderr is closed, or there is none: nobody is left to tell
