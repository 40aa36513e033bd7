"""The one way to wait: a trip is a generator that yields what it waits for, and a door drives it."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, TypeAlias, TypeVar

T = TypeVar("T")

# What a trip yields: something to call, whose answer may come at once or later.
Trip: TypeAlias = Generator[Callable[[], Any], Any, T]
