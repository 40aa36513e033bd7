"""How a store that has much to do says so: a call that comes on is no call that hangs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")

# Chosen: so many rows are packed or written in some ten milliseconds, however busy the process is in a second or two.
ROWS_AT_ONCE = 500

# Set in the context of a call that is timed, by whoever times it.
on_progress: ContextVar[Callable[[], None] | None] = ContextVar("compact_on_progress", default=None)


def note_progress() -> None:
    """Say that the call of a store that is under way has come on: what it may take begins anew."""
    notify = on_progress.get()
    if notify is not None:
        notify()


def in_parts(rows: Sequence[T]) -> Iterator[Sequence[T]]:
    """Yield rows some hundred at a time, and note progress once each part is done."""
    for start in range(0, len(rows), ROWS_AT_ONCE):
        yield rows[start : start + ROWS_AT_ONCE]
        note_progress()
