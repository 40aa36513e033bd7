"""Waiting is written once: work that waits is a generator that yields the calls it waits for.

`compact.runner` runs such a generator from a thread or from an event loop.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

T = TypeVar("T")

# Yields functions to call, gets back what they returned (once that is there), and returns a T.
Steps: TypeAlias = Generator[Callable[[], Any], Any, T]


@dataclass(frozen=True, slots=True)
class SlowStep:
    """A step that may take long because it waits: for a model, another process, or a function of the caller's.

    It gets a thread of its own, so that the threads which do short work stay free; a call that is cancelled does not
    wait for its end.
    """

    call: Callable[[], Any]

    def __call__(self) -> Any:
        return self.call()
