"""The agent's side of one exchange: its request as it came, and whether it is still there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias

from compact.proxy.headers import Headers, by_name

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
RAW_HEADERS = "compact.raw_headers"


class ClientGone(Exception):
    """The agent went away before its request was complete."""


class Client:
    """One request of an agent; its body is read once, part by part."""

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self.method: str = scope["method"]
        path: bytes = scope.get("raw_path") or scope["path"].encode()
        query: bytes = scope.get("query_string", b"")
        self.path = path.decode("latin-1")
        self.target = path + b"?" + query if query else path
        # Names as they were written, if the server kept them.
        self.headers: Headers = list(scope.get(RAW_HEADERS) or scope["headers"])
        self.by_name = by_name(self.headers)
        self._receive = receive
        self._has_all = asyncio.Event()

    async def body(self) -> AsyncIterator[bytes]:
        """What is left of the body, as it comes."""
        while not self._has_all.is_set():
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise ClientGone
            if not message.get("more_body"):
                self._has_all.set()
            if message.get("body"):
                yield message["body"]

    async def read(self, most_bytes: int) -> tuple[list[bytes], bool]:
        """The body in memory, and True if that is all of it."""
        parts: list[bytes] = []
        size = 0
        async for part in self.body():
            parts.append(part)
            size += len(part)
            if size > most_bytes:
                return parts, self._has_all.is_set()
        return parts, True

    async def gone(self) -> None:
        """Come back when the agent has hung up."""
        await self._has_all.wait()
        while (await self._receive())["type"] != "http.disconnect":
            continue
