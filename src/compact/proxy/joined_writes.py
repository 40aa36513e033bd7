"""A connection to an agent that sends the start of a response together with its body."""

from __future__ import annotations

import asyncio
from typing import Any


class JoinedWrites:
    """Stands before the transport of a connection, and joins two writes that follow each other at once.

    A server writes the start of a response and then its body. Sent apart, the first wakes the agent up, which then has
    to wait for the second.
    """

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._loop = asyncio.get_running_loop()
        self._held = b""

    def write(self, data: bytes) -> None:
        """Send data, with what was written just before; by itself if nothing follows in this step of the loop."""
        if self._held:
            self._send(data)
        elif data:
            self._held = data
            self._loop.call_soon(self._send)

    def _send(self, more: bytes = b"") -> None:
        if self._held:
            self._transport.write(self._held + more)
            self._held = b""

    def close(self) -> None:
        """Close the connection once everything is sent."""
        self._send()
        self._transport.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)
