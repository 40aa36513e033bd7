"""The live feed: takes events in, watches the store for changes, and tells every page and program that follows."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from starlette.concurrency import run_in_threadpool

from compact.core.audit.records import SessionInfo
from compact.core.audit.trace_events import StoredEvent, TraceEvent, key_of
from compact.viewer.live.broadcast import Broadcaster, Subscriber, data_frame, text_frame
from compact.viewer.live.metrics import ViewerMetrics
from compact.viewer.source import DataSource

_LOG = logging.getLogger("compact.viewer")
# Chosen: quick enough for an eye; a store that takes long is polled a twentieth of the time, but one slow answer
# never holds the news back for longer than somebody waits.
_POLL_SECONDS = 1.0
_POLL_FACTOR = 20
_MAX_POLL_SECONDS = 10.0
# Chosen: as many events as a page keeps of a trace.
_REPLAYED_EVENTS = 10_000
_EVENTS_PER_POLL = 2_000


class LiveFeed:
    """The streams of events and of page updates, and the watch on the store.

    Events are kept in the store alone. Used from one event loop only.
    """

    def __init__(self, source: DataSource, *, poll_seconds: float = _POLL_SECONDS) -> None:
        self._source, self._poll_seconds = source, poll_seconds
        self.events = Broadcaster()
        self.pages = Broadcaster()
        self.metrics = ViewerMetrics()
        # None until the store was first read, which is not the same as a store without sessions.
        self._known_sessions: dict[str, SessionInfo] | None = None
        self._is_store_failing = False
        # The number of the newest event that was published, and those after it that were received here.
        self._last_number: int | None = None
        self._received_here: set[int] = set()
        self._adding = asyncio.Lock()

    async def receive(self, events: Sequence[TraceEvent]) -> None:
        """Write events to the store, all of them or none; count them, and tell every subscriber."""
        clean = await run_in_threadpool(self._source.without_secrets, events)
        async with self._adding:
            stored = await run_in_threadpool(self._source.add_events, clean)
            self._received_here.update(event.number for event in stored)
        by_key = {event.key: event for event in stored}
        for event in clean:
            self.metrics.record(event)
            # What was sent is passed on as it was sent, update by update.
            self.events.publish(by_key[key_of(event)], lambda event=event: data_frame(event))
        # A page needs the last state of each event, not every update on the way to it.
        await self._publish_to_pages(stored)

    async def _publish_to_pages(self, events: Sequence[StoredEvent]) -> None:
        traces = await self._traces_of(events) if len(self.pages) else {}
        for event in events:
            self.pages.publish(event, lambda event=event: data_frame(_page_update(event, traces)))
        now = time.time()
        for session_id in dict.fromkeys(event.session_id for event in events if event.session_id):
            self._publish_session(session_id, self._known_session(session_id), now)

    async def _traces_of(self, events: Sequence[StoredEvent]) -> dict[str, Any]:
        """Return what is known of the traces that sent an event of their own."""
        ids = dict.fromkeys(event.trace_id for event in events if event.type == "trace")
        read = self._source.events.trace
        infos = await run_in_threadpool(lambda: [read(trace_id) for trace_id in ids])
        return {info.trace_id: info.to_dict() for info in infos if info}

    async def subscribe_to_events(self, wants: Callable[[StoredEvent], bool], *, replay: bool) -> Subscriber:
        """Return a subscriber to events in Ariadne's form; with `replay`, it gets the newest of the store first."""
        recent = await run_in_threadpool(self._source.events.recent, _REPLAYED_EVENTS) if replay else ()
        connected = data_frame({"type": "connected", "timestamp": time.time()})

        def frames() -> Iterator[str]:
            yield connected
            for event in recent:
                if wants(event):
                    yield text_frame(event.text)

        def is_wanted(subject: object) -> bool:
            return isinstance(subject, StoredEvent) and wants(subject)

        return self.events.subscribe(is_wanted, first=frames())

    def subscribe_page(self) -> Subscriber:
        """Return a subscriber to page updates: sessions, traces and spans that changed."""
        return self.pages.subscribe(first=[data_frame({"type": "hello", "now": time.time()})])

    def publish_session(self, session_id: str) -> None:
        """Tell every page that something about a session changed."""
        self._publish_session(session_id, self._known_session(session_id), time.time())

    def metrics_text(self) -> str:
        """Return the metrics as Prometheus text."""
        return self.metrics.render((self.events, self.pages))

    async def poll_store(self) -> None:
        """Compare the store with what it was at the last poll; the first poll publishes nothing."""
        try:
            sessions = await run_in_threadpool(self._source.sessions)
            async with self._adding:
                events = await run_in_threadpool(self._new_events)
        except Exception as error:  # noqa: BLE001
            # The boundary to any store: reported once, and again by every request of a page.
            if not self._is_store_failing:
                _LOG.warning("the store cannot be read: %s", error)
            self._is_store_failing = True
            return
        self._is_store_failing = False
        self._compare(sessions)
        for event in events:
            self.events.publish(event, lambda event=event: text_frame(event.text))
        await self._publish_to_pages(events)

    def _new_events(self) -> list[StoredEvent]:
        """Return what other processes added since the last time; nothing at first."""
        if self._last_number is None:
            self._last_number = max((event.number for event in self._source.events.recent(1)), default=0)
            return []
        found = self._source.events.after(self._last_number, _EVENTS_PER_POLL)
        new = [event for event in found if event.number not in self._received_here]
        self._last_number = max((event.number for event in found), default=self._last_number)
        self._received_here = {number for number in self._received_here if number > self._last_number}
        return new

    async def watch_store(self) -> None:
        """Publish what other processes write to the store, as long as somebody follows."""
        # Before anybody follows: what changes between a page's own reading and the first poll would be missed.
        await self.poll_store()
        while True:
            if not (len(self.pages) or len(self.events)):
                await self._wait_for_subscribers()
            started = time.monotonic()
            await self.poll_store()
            taken = time.monotonic() - started
            await asyncio.sleep(max(self._poll_seconds, pause_after(taken)))

    async def _wait_for_subscribers(self) -> None:
        waiting = [asyncio.create_task(stream.has_subscribers.wait()) for stream in (self.pages, self.events)]
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in waiting:
                task.cancel()

    def close(self) -> None:
        """End every stream."""
        self.events.close()
        self.pages.close()

    def _compare(self, infos: tuple[SessionInfo, ...]) -> None:
        before, self._known_sessions = self._known_sessions, {info.session_id: info for info in infos}
        if before is None:
            return
        for info in infos:
            if before.get(info.session_id) != info:
                self._publish_session(info.session_id, info, info.updated_at)
        for session_id in before.keys() - self._known_sessions.keys():
            self.pages.publish(session_id, lambda deleted=session_id: data_frame({"type": "deleted", "id": deleted}))

    def _known_session(self, session_id: str) -> SessionInfo | None:
        return (self._known_sessions or {}).get(session_id)

    def _publish_session(self, session_id: str, info: SessionInfo | None, at: float) -> None:
        update: Mapping[str, Any] = {
            "type": "session",
            "id": session_id,
            "updated_at": info.updated_at if info else at,
            "plan_version": info.plan_version if info else None,
            "calls": info.model_calls if info else None,
        }
        self.pages.publish(session_id, lambda: data_frame(update))


def pause_after(taken: float) -> float:
    """Return for how long the store is left alone after a poll that took so many seconds."""
    return min(_POLL_FACTOR * taken, _MAX_POLL_SECONDS)


def _page_update(event: StoredEvent, traces: Mapping[str, Any]) -> dict[str, Any]:
    if event.type == "span":
        return {"type": "span", "span": event.to_dict()}
    return {"type": "trace", "trace": traces.get(event.trace_id)}
