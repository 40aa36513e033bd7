"""Waiting is written once: work that waits is a generator that yields the calls it waits for.

`compact.runner` runs such a generator from a thread or from an event loop.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, TypeAlias, TypeVar

T = TypeVar("T")

# Yields functions to call, gets back what they returned (once that is there), and returns a T.
Steps: TypeAlias = Generator[Callable[[], Any], Any, T]
