"""What happens now: events that come in, sessions that move in the store, and who is told."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from starlette.concurrency import run_in_threadpool

from compact.core.audit.records import SessionInfo
from compact.viewer.hub import Hub, Subscriber, data_frame, text_frame
from compact.viewer.ingest import Event
from compact.viewer.numbers import Numbers
from compact.viewer.ring import Kept, Ring, event_name, key_of
from compact.viewer.source import Source

_POLL_SECONDS = 1.0
# A store that takes long to answer is asked less often.
_POLL_SHARE = 20


class Live:
    """The ring, the two circles of listeners, and the watch on the store; used from one event loop only."""

    def __init__(self, source: Source, *, ring: Ring | None = None, poll_seconds: float = _POLL_SECONDS) -> None:
        self._source, self._poll_seconds = source, poll_seconds
        self.ring = ring or Ring()
        self.events = Hub()
        self.pages = Hub()
        self.numbers = Numbers()
        # None before the store was first asked, which is not the same as a store without sessions.
        self._seen: dict[str, SessionInfo] | None = None

    def take_in(self, events: list[Event]) -> None:
        """Keep what came, all of it or nothing; count it, and tell everybody."""
        now = time.time()
        names = {known.key: known.event_name for event in events if (known := self.ring.known(event))}
        kept = self.ring.add(events, received_at=now)
        for event in events:
            key = key_of(event)
            name = event_name(event) or names.get(key, "")
            if names.get(key) != name:  # sent again, it still happened once
                self.numbers.take_in(event)
            names[key] = name
            self.events.publish(kept[key], lambda event=event: data_frame(event))
        # A page that is told how things are does not need to know how they came to be so.
        for one in kept.values():
            self.pages.publish(one, lambda one=one: data_frame(self._told(one)))
        for session_id in dict.fromkeys(one.session_id for one in kept.values() if one.session_id):
            self._tell_session(session_id, self._known(session_id), now)

    def listen(self, wants: Callable[[Kept], bool], *, replay: bool) -> Subscriber:
        """One who follows events as Ariadne sends them; with what is in memory first, if asked."""
        first = [kept for kept in self.ring if wants(kept)] if replay else []
        connected = data_frame({"type": "connected", "timestamp": time.time()})

        def frames() -> Iterator[str]:
            yield connected
            for kept in first:
                yield text_frame(kept.text)

        return self.events.subscribe(lambda what: isinstance(what, Kept) and wants(what), first=frames())

    def look(self) -> Subscriber:
        """One page that wants to know what moves."""
        return self.pages.subscribe(first=[data_frame({"type": "hello", "now": time.time()})])

    def tell_session(self, session_id: str) -> None:
        """Something is known of a session that was not known before."""
        self._tell_session(session_id, self._known(session_id), time.time())

    async def ask(self) -> None:
        """Compare the store with what it was; all is known, and nothing news, the first time."""
        with contextlib.suppress(Exception):  # a store that is away is told by every other request
            self._compare(await run_in_threadpool(self._source.sessions))

    async def watch(self) -> None:
        """Notice what other processes write to the store, as long as somebody looks."""
        while True:
            await self.pages.has_listeners.wait()
            started = time.monotonic()
            await self.ask()
            taken = time.monotonic() - started
            await asyncio.sleep(max(self._poll_seconds, _POLL_SHARE * taken))

    def close(self) -> None:
        """Everybody who listens may go home."""
        self.events.close()
        self.pages.close()

    def _compare(self, infos: tuple[SessionInfo, ...]) -> None:
        before, self._seen = self._seen, {info.session_id: info for info in infos}
        if before is None:
            return
        for info in infos:
            if before.get(info.session_id) != info:
                self._tell_session(info.session_id, info, info.updated_at)
        for session_id in before.keys() - self._seen.keys():
            self.pages.publish(session_id, lambda gone=session_id: data_frame({"type": "gone", "id": gone}))

    def _known(self, session_id: str) -> SessionInfo | None:
        return (self._seen or {}).get(session_id)

    def _tell_session(self, session_id: str, info: SessionInfo | None, at: float) -> None:
        known: Mapping[str, Any] = {
            "type": "session",
            "id": session_id,
            "updated_at": info.updated_at if info else at,
            "plan_version": info.plan_version if info else None,
            "calls": info.model_calls if info else None,
        }
        self.pages.publish(session_id, lambda: data_frame(known))

    def _told(self, kept: Kept) -> dict[str, Any]:
        if kept.type == "span":
            return {"type": "span", "span": kept.told()}
        found = self.ring.find_one(kept.trace_id)
        return {"type": "trace", "trace": found.about() if found else None}
