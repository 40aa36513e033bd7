"""Streams that hand on every event as it is, and show it to somebody first: no event is changed, kept or left out."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable, Iterator
from itertools import chain, islice
from typing import Any, TypeVar

P = TypeVar("P")


class WatchedEvents(Iterator[Any]):
    """The events of a stream, each shown to `look` before it is handed on."""

    def __init__(self, events: Iterator[Any], look: Callable[[Any], None]) -> None:
        self._events, self._look = events, look

    def __next__(self) -> Any:
        event = next(self._events)
        self._look(event)
        return event

    def __getattr__(self, name: str) -> Any:
        return getattr(self._events, name)  # close, for instance


class AsyncWatchedEvents(AsyncIterator[Any]):
    """The events of a stream in an event loop, each shown to `look` before it is handed on."""

    def __init__(self, events: AsyncIterator[Any], look: Callable[[Any], Awaitable[None]]) -> None:
        self._events, self._look = events, look

    async def __anext__(self) -> Any:
        event = await anext(self._events)
        await self._look(event)
        return event

    def __getattr__(self, name: str) -> Any:
        return getattr(self._events, name)  # aclose, for instance


def started(parts: Iterable[P]) -> Iterator[P]:
    """Return a stream whose first part is there: a refusal comes before it."""
    rest = iter(parts)
    first = list(islice(rest, 1))
    return chain(first, rest)


async def astarted(parts: AsyncIterable[P]) -> AsyncGenerator[P, None]:
    """Do what `started` does in an event loop."""
    rest = aiter(parts)
    try:
        first = [await anext(rest)]
    except StopAsyncIteration:
        first = []

    async def whole() -> AsyncGenerator[P, None]:
        for part in first:
            yield part
        async for part in rest:
            yield part

    return whole()
