"""Connections to the viewer: those that are opened and send nothing do not keep others out."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

# Chosen: more clients than a person has pages.
MAX_CONNECTIONS = 256
# Chosen: the head of a request is sent at once; a slow network is given a moment.
HEAD_SECONDS = 10.0


class BoundedHttpProtocol(H11Protocol):
    """Closes a connection whose request does not arrive in time, and one without a request if there are too many."""

    _head_timer: asyncio.TimerHandle | None = None
    _idle_since = 0.0

    def connection_made(self, transport: Any) -> None:
        """Wait for the head of a request, for a limited time; make room among the others."""
        super().connection_made(transport)
        self._await_head()
        if len(self.connections) >= MAX_CONNECTIONS:
            self._close_longest_idle()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Stop waiting once a head is complete; more bytes of one that is not give it no more time."""
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._stop_waiting()
        elif self._head_timer is None:
            self._await_head()

    def on_response_complete(self) -> None:
        """Remember since when nothing is asked here."""
        self._idle_since = self.loop.time()
        super().on_response_complete()

    @property
    def is_idle(self) -> bool:
        """True if no request is being answered."""
        cycle = cast(RequestResponseCycle | None, self.cycle)  # None before the first request
        return cycle is None or cycle.response_complete

    def _await_head(self) -> None:
        self._idle_since = self.loop.time()
        self._head_timer = self.loop.call_later(HEAD_SECONDS, self._close)

    def _stop_waiting(self) -> None:
        if self._head_timer:
            self._head_timer.cancel()
            self._head_timer = None

    def _close(self) -> None:
        self._stop_waiting()
        self.transport.close()

    def _close_longest_idle(self) -> None:
        others = (other for other in self.connections if isinstance(other, BoundedHttpProtocol) and other is not self)
        idle = [other for other in others if other.is_idle]
        if idle:
            oldest = min(idle, key=lambda other: other._idle_since)
            self.connections.discard(oldest)  # at once: the next request counts the connections
            oldest._close()
