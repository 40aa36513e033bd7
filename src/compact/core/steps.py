"""Waiting is written once: work that waits is a generator that yields the calls it waits for.

`compact.runner` runs such a generator from a thread or from an event loop. It waits for a step only so long: then the
step fails with a `WaitTimeout` where it was yielded, like any other step that fails.
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
    wait for its end. `what` is waited for, at most for `timeout_seconds`, which the setting `limited_by` sets.
    """

    call: Callable[[], Any]
    what: str = "a slow call"
    timeout_seconds: float | None = None
    limited_by: str = ""

    def __call__(self) -> Any:
        return self.call()


@dataclass(frozen=True, slots=True)
class StoreStep:
    """A call of a store that may block: short, unless its disk or its server hangs, or it has very much to do.

    A call that is cancelled waits for its end, so that what it claimed is known and can be given back.
    """

    call: Callable[[], Any]
    store: object

    def __call__(self) -> Any:
        return self.call()
