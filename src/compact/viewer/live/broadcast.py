"""Sends frames to every subscriber of a stream: each has a queue of its own, and none waits for the slowest."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from typing import TypeAlias

from compact.core.plurals import quantity
from compact.viewer.json_http import HttpError, to_json

# A message of a server-sent event stream.
SseFrame: TypeAlias = str

# Chosen: more often than proxies close a silent connection.
_HEARTBEAT_SECONDS = 15.0
_HEARTBEAT = ": still here\n\n"


class Subscriber:
    """One client of a stream; frames that it has not read yet wait here, up to a limit."""

    def __init__(self, wants: Callable[[object], bool], *, max_frames: int, max_chars: int) -> None:
        self.wants = wants
        self._max_frames, self._max_chars = max_frames, max_chars
        self._first: Iterator[SseFrame] = iter(())
        self._queue: deque[SseFrame] = deque()
        self._queued_chars = 0
        self._has_news = asyncio.Event()
        self._is_closed = False
        self.missed = 0

    def send_first(self, frames: Iterable[SseFrame]) -> None:
        """Send these frames before any other; they do not count against the limits."""
        self._first = iter(frames)

    def put(self, frame: SseFrame) -> bool:
        """Queue a frame; return False for a client that is too slow, which is told so and gets no more."""
        if self._is_closed:
            return False
        if len(self._queue) >= self._max_frames or self._queued_chars + len(frame) > self._max_chars:
            self.missed = len(self._queue) + 1
            self._queue.clear()
            self._queued_chars = 0
            self._end(data_frame({"type": "dropped", "missed": self.missed, "reason": "the client reads too slowly"}))
            return False
        self._queue.append(frame)
        self._queued_chars += len(frame)
        self._has_news.set()
        return True

    def close(self) -> None:
        """End the stream after the frames that are queued."""
        self._end(None)

    def _end(self, last: SseFrame | None) -> None:
        self._is_closed = True
        if last:
            self._queue.append(last)
            self._queued_chars += len(last)
        self._has_news.set()

    async def frames(self, *, heartbeat_seconds: float = _HEARTBEAT_SECONDS) -> AsyncIterator[SseFrame]:
        """Yield the frames as they come, and a heartbeat when none comes for a while."""
        for frame in self._first:
            yield frame
        while True:
            while self._queue:
                frame = self._queue.popleft()
                self._queued_chars -= len(frame)
                yield frame
            if self._is_closed:
                return
            self._has_news.clear()
            try:
                await asyncio.wait_for(self._has_news.wait(), heartbeat_seconds)
            except TimeoutError:
                yield _HEARTBEAT


class Broadcaster:
    """The subscribers of one stream; used from one event loop only."""

    # Chosen: the largest request holds fewer events than `max_frames`, so no client is too slow for a single one.
    def __init__(self, *, max_subscribers: int = 64, max_frames: int = 10_000, max_chars: int = 8_000_000) -> None:
        self._max_subscribers, self._max_frames, self._max_chars = max_subscribers, max_frames, max_chars
        self._subscribers: set[Subscriber] = set()
        self._is_closed = False
        self.dropped = 0
        self.has_subscribers = asyncio.Event()

    def __len__(self) -> int:
        return len(self._subscribers)

    def subscribe(
        self, wants: Callable[[object], bool] = lambda _: True, *, first: Iterable[SseFrame] = ()
    ) -> Subscriber:
        """Add a subscriber; `first` are frames that it gets before any other, however many."""
        if self._is_closed or len(self._subscribers) >= self._max_subscribers:
            raise HttpError(
                503,
                f"{quantity(len(self), 'client follows', 'clients follow')} this stream already",
                "close a page that you do not need",
            )
        subscriber = Subscriber(wants, max_frames=self._max_frames, max_chars=self._max_chars)
        subscriber.send_first(first)
        self._subscribers.add(subscriber)
        self.has_subscribers.set()
        return subscriber

    def unsubscribe(self, subscriber: Subscriber) -> None:
        """Remove a subscriber."""
        self._subscribers.discard(subscriber)
        if not self._subscribers:
            self.has_subscribers.clear()

    def publish(self, subject: object, make_frame: Callable[[], SseFrame]) -> None:
        """Send a frame to every subscriber that wants its subject; drop those that are too slow."""
        wanting = [subscriber for subscriber in self._subscribers if subscriber.wants(subject)]
        frame = make_frame() if wanting else ""
        for subscriber in wanting:
            if not subscriber.put(frame):
                self.dropped += 1
                self.unsubscribe(subscriber)

    def close(self) -> None:
        """End every stream, and accept no more subscribers."""
        self._is_closed = True
        for subscriber in list(self._subscribers):
            subscriber.close()
            self.unsubscribe(subscriber)


def data_frame(data: object) -> SseFrame:
    """Return data as one frame."""
    return text_frame(to_json(data))


def text_frame(text: str) -> SseFrame:
    """Return JSON on one line as a frame."""
    return f"data: {text}\n\n"
