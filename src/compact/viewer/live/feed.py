"""The live feed: takes events in, watches the store for changes, and tells every page and program that follows."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from starlette.concurrency import run_in_threadpool

from compact.core.audit.records import SessionInfo
from compact.viewer.live.broadcast import Broadcaster, Subscriber, data_frame, text_frame
from compact.viewer.live.buffer import BufferedEvent, EventBuffer, event_name, key_of
from compact.viewer.live.ingest import TraceEvent
from compact.viewer.live.metrics import ViewerMetrics
from compact.viewer.source import DataSource

_LOG = logging.getLogger("compact.viewer")
# Chosen: quick enough for an eye; a store that takes long is polled a twentieth of the time at most.
_POLL_SECONDS = 1.0
_POLL_FACTOR = 20


class LiveFeed:
    """The buffer of events, the streams of events and of page updates, and the watch on the store.

    Used from one event loop only.
    """

    def __init__(
        self, source: DataSource, *, buffer: EventBuffer | None = None, poll_seconds: float = _POLL_SECONDS
    ) -> None:
        self._source, self._poll_seconds = source, poll_seconds
        self.buffer = buffer or EventBuffer()
        self.events = Broadcaster()
        self.pages = Broadcaster()
        self.metrics = ViewerMetrics()
        # None until the store was first read, which is not the same as a store without sessions.
        self._known_sessions: dict[str, SessionInfo] | None = None
        self._is_store_failing = False

    def receive(self, events: list[TraceEvent]) -> None:
        """Keep events, all of them or none; count them, and tell every subscriber."""
        now = time.time()
        names = {known.key: known.event_name for event in events if (known := self.buffer.get(key_of(event)))}
        buffered = self.buffer.add(events, received_at=now)
        for event in events:
            key = key_of(event)
            name = event_name(event) or names.get(key, "")
            if names.get(key) != name:  # an event that is sent again still happened once
                self.metrics.record(event)
            names[key] = name
            self.events.publish(buffered[key], lambda event=event: data_frame(event))
        # A page needs the last state of each event, not every update on the way to it.
        for event in buffered.values():
            self.pages.publish(event, lambda event=event: data_frame(self._page_update(event)))
        for session_id in dict.fromkeys(event.session_id for event in buffered.values() if event.session_id):
            self._publish_session(session_id, self._known_session(session_id), now)

    def subscribe_to_events(self, wants: Callable[[BufferedEvent], bool], *, replay: bool) -> Subscriber:
        """Return a subscriber to events in Ariadne's form; with `replay`, it gets those in memory first."""
        first = [event for event in self.buffer if wants(event)] if replay else []
        connected = data_frame({"type": "connected", "timestamp": time.time()})

        def frames() -> Iterator[str]:
            yield connected
            for event in first:
                yield text_frame(event.text)

        def is_wanted(subject: object) -> bool:
            return isinstance(subject, BufferedEvent) and wants(subject)

        return self.events.subscribe(is_wanted, first=frames())

    def subscribe_page(self) -> Subscriber:
        """Return a subscriber to page updates: sessions, traces and spans that changed."""
        return self.pages.subscribe(first=[data_frame({"type": "hello", "now": time.time()})])

    def publish_session(self, session_id: str) -> None:
        """Tell every page that something about a session changed."""
        self._publish_session(session_id, self._known_session(session_id), time.time())

    def metrics_text(self) -> str:
        """Return the metrics as Prometheus text."""
        return self.metrics.render(self.buffer, (self.events, self.pages))

    async def poll_store(self) -> None:
        """Compare the store with what it was at the last poll; the first poll publishes nothing."""
        try:
            sessions = await run_in_threadpool(self._source.sessions)
        except Exception as error:  # noqa: BLE001
            # The boundary to any store: reported once, and again by every request of a page.
            if not self._is_store_failing:
                _LOG.warning("the store cannot be read: %s", error)
            self._is_store_failing = True
            return
        self._is_store_failing = False
        self._compare(sessions)

    async def watch_store(self) -> None:
        """Publish what other processes write to the store, as long as a page is open."""
        while True:
            await self.pages.has_subscribers.wait()
            started = time.monotonic()
            await self.poll_store()
            taken = time.monotonic() - started
            await asyncio.sleep(max(self._poll_seconds, _POLL_FACTOR * taken))

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

    def _page_update(self, event: BufferedEvent) -> dict[str, Any]:
        if event.type == "span":
            return {"type": "span", "span": event.to_dict()}
        trace = self.buffer.trace(event.trace_id)
        return {"type": "trace", "trace": trace.summary() if trace else None}
