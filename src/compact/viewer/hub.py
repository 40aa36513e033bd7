"""Who listens: each with a queue of its own, and nobody waits for the slowest."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from typing import TypeAlias

from compact.viewer.answers import Refusal, dumps

Frame: TypeAlias = str
_HEARTBEAT_SECONDS = 15.0
_HEARTBEAT = ": still here\n\n"


class Subscriber:
    """One who listens; what it has not taken yet waits here, up to a limit."""

    def __init__(self, wants: Callable[[object], bool], *, most_frames: int, most_chars: int) -> None:
        self.wants = wants
        self._most_frames, self._most_chars = most_frames, most_chars
        self._first: Iterator[Frame] = iter(())
        self._waiting: deque[Frame] = deque()
        self._chars = 0
        self._news = asyncio.Event()
        self._is_closed = False
        self.missed = 0

    def begin_with(self, frames: Iterable[Frame]) -> None:
        """What is handed out before anything else; it does not count against the limits."""
        self._first = iter(frames)

    def put(self, frame: Frame) -> bool:
        """Have a frame wait; False for one who is too slow, and hears no more than that."""
        if self._is_closed:
            return False
        if len(self._waiting) >= self._most_frames or self._chars + len(frame) > self._most_chars:
            self.missed = len(self._waiting) + 1
            self._waiting.clear()
            self._chars = 0
            self._end(data_frame({"type": "dropped", "missed": self.missed, "reason": "too slow to follow"}))
            return False
        self._waiting.append(frame)
        self._chars += len(frame)
        self._news.set()
        return True

    def close(self) -> None:
        """Nothing more comes; what waits is still handed out."""
        self._end(None)

    def _end(self, last: Frame | None) -> None:
        self._is_closed = True
        if last:
            self._waiting.append(last)
            self._chars += len(last)
        self._news.set()

    async def frames(self, *, heartbeat_seconds: float = _HEARTBEAT_SECONDS) -> AsyncIterator[Frame]:
        """What comes, and a sign of life when nothing does."""
        for frame in self._first:
            yield frame
        while True:
            while self._waiting:
                frame = self._waiting.popleft()
                self._chars -= len(frame)
                yield frame
            if self._is_closed:
                return
            self._news.clear()
            try:
                await asyncio.wait_for(self._news.wait(), heartbeat_seconds)
            except TimeoutError:
                yield _HEARTBEAT


class Hub:
    """Hands what happens to all who listen; used from one event loop only."""

    # The largest request that is taken holds fewer events than this: nobody is too slow for a single one.
    def __init__(self, *, most_subscribers: int = 64, most_frames: int = 10_000, most_chars: int = 8_000_000) -> None:
        self._most_subscribers, self._most_frames, self._most_chars = most_subscribers, most_frames, most_chars
        self._subscribers: set[Subscriber] = set()
        self._is_closed = False
        self.dropped = 0
        self.has_listeners = asyncio.Event()

    def __len__(self) -> int:
        return len(self._subscribers)

    def subscribe(self, wants: Callable[[object], bool] = lambda _: True, *, first: Iterable[Frame] = ()) -> Subscriber:
        """One more who listens; `first` is what it gets before anything else, however much that is."""
        if self._is_closed or len(self._subscribers) >= self._most_subscribers:
            raise Refusal(503, f"{len(self):,} listen already", "close a page that you do not look at")
        subscriber = Subscriber(wants, most_frames=self._most_frames, most_chars=self._most_chars)
        subscriber.begin_with(first)
        self._subscribers.add(subscriber)
        self.has_listeners.set()
        return subscriber

    def unsubscribe(self, subscriber: Subscriber) -> None:
        """It does not listen any more."""
        self._subscribers.discard(subscriber)
        if not self._subscribers:
            self.has_listeners.clear()

    def publish(self, what: object, frame: Callable[[], Frame]) -> None:
        """Hand something to all who want it; who is too slow is told so, and let go."""
        wanting = [subscriber for subscriber in self._subscribers if subscriber.wants(what)]
        text = frame() if wanting else ""
        for subscriber in wanting:
            if not subscriber.put(text):
                self.dropped += 1
                self.unsubscribe(subscriber)

    def close(self) -> None:
        """Everybody may go home."""
        self._is_closed = True
        for subscriber in list(self._subscribers):
            subscriber.close()
            self.unsubscribe(subscriber)


def data_frame(data: object) -> Frame:
    """Data as one frame."""
    return text_frame(dumps(data))


def text_frame(text: str) -> Frame:
    """JSON on one line as a frame."""
    return f"data: {text}\n\n"
