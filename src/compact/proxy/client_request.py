"""The request of an agent as it came in, and whether the agent is still connected."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from compact.proxy.caller_keys import caller_key
from compact.proxy.headers import Headers, by_name

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
RAW_HEADERS = "compact.raw_headers"


class ClientDisconnected(Exception):
    """The agent closed the connection before its request was complete."""


@dataclass(frozen=True, slots=True)
class BodyStart:
    """As much of a body as was read into memory; `is_all` if nothing is left to read."""

    parts: tuple[bytes, ...]
    size: int
    is_all: bool


class ClientRequest:
    """One request of an agent; its body is read once, part by part."""

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self.method: str = scope["method"]
        path: bytes = scope.get("raw_path") or scope["path"].encode()
        query: bytes = scope.get("query_string", b"")
        self.path = path.decode("latin-1")
        self.target = path + b"?" + query if query else path
        # With names as they were written, if the server kept them.
        self.headers: Headers = list(scope.get(RAW_HEADERS) or scope["headers"])
        self.by_name = by_name(self.headers)
        self.key = caller_key(self.by_name, query)
        self._receive = receive
        self._has_all = asyncio.Event()

    @property
    def wants_websocket(self) -> bool:
        """True for the request by which a websocket begins."""
        return self.by_name.get(b"upgrade", b"").strip().lower() == b"websocket"

    async def body(self) -> AsyncIterator[bytes]:
        """Yield what is left of the body, as it comes."""
        while not self._has_all.is_set():
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnected
            if not message.get("more_body"):
                self._has_all.set()
            if message.get("body"):
                yield message["body"]

    async def read(self, max_bytes: int) -> BodyStart:
        """Read the body into memory, and no more than one part above the limit."""
        parts: list[bytes] = []
        size = 0
        async for part in self.body():
            parts.append(part)
            size += len(part)
            if size > max_bytes:
                return BodyStart(tuple(parts), size, is_all=self._has_all.is_set())
        return BodyStart(tuple(parts), size, is_all=True)

    async def disconnected(self) -> None:
        """Return when the agent has closed the connection."""
        await self._has_all.wait()
        while (await self._receive())["type"] != "http.disconnect":
            continue
