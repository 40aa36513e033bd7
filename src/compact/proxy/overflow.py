"""A provider that refuses a prompt as too long: learn its limit, compact again, and send once more.

Only the beginning of an answer that may be such a refusal is read; if it is none, or nothing can be made smaller, it is
passed on as it came.
"""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, TypeAlias

import httpx2

from compact.adapters.support.overflow import REFUSALS, read_overflow
from compact.model_engines import ReportedOverflow
from compact.proxy.compaction import IncomingBody, RequestCompactor
from compact.proxy.headers import by_name
from compact.proxy.outcome import RequestOutcome
from compact.proxy.upstream import Response

# Chosen: longer than the error of any provider; what is longer is passed on unread.
_MOST_BYTES = 65_536
_GZIP = 16 + zlib.MAX_WBITS  # the value by which zlib reads gzip

Send: TypeAlias = Callable[[RequestOutcome], Coroutine[Any, Any, Response]]


class OverflowRetry:
    """Answers refusals of one request, whose body `incoming` is."""

    def __init__(self, compactor: RequestCompactor, incoming: IncomingBody) -> None:
        self._compactor, self._incoming = compactor, incoming

    async def __call__(
        self, response: Response, outcome: RequestOutcome, *, send: Send
    ) -> tuple[Response, RequestOutcome]:
        """Return the response to pass on, and what was sent for it: the first, or that to a smaller request."""
        if not outcome.call:
            return response, outcome
        response, overflow = await _read_refusal(response)
        again = await self._smaller(outcome, overflow) if overflow else None
        if again is None:
            return response, outcome
        second = await send(again)
        await response.aclose()
        second, refused = await _read_refusal(second)
        if refused is not None:
            await self._compactor.learn(again, refused)
        return second, again

    async def _smaller(self, refused: RequestOutcome, overflow: ReportedOverflow) -> RequestOutcome | None:
        """Learn, and compact the request again; None if that makes nothing smaller."""
        if not await self._compactor.learn(refused, overflow):
            return None
        again = await self._compactor.compact(self._incoming)
        is_same = again.body is None or again.body == refused.body or again.session_id != refused.session_id
        return None if is_same else again


class _Whole(httpx2.AsyncByteStream):
    """A body of which the beginning was read: that first, then the rest; nothing is left out, nor sent twice."""

    def __init__(self, response: Response) -> None:
        self._response, self._rest = response, response.aiter_raw()
        self._parts: list[bytes] = []

    async def beginning(self) -> bytes:
        """Read the beginning of the body, and return it."""
        async for part in self._rest:
            self._parts.append(part)
            if sum(map(len, self._parts)) > _MOST_BYTES:
                break
        return b"".join(self._parts)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for part in self._parts:
            yield part
        async for part in self._rest:
            yield part

    async def aclose(self) -> None:
        """Close the response."""
        await self._response.aclose()


async def _read_refusal(response: Response) -> tuple[Response, ReportedOverflow | None]:
    """Return a response that is still whole, and what it says of an overflow."""
    if response.status_code not in REFUSALS:
        return response, None
    body = _Whole(response)
    read = await body.beginning()
    whole = Response(response.status_code, headers=response.headers.raw, stream=body)
    encoding = by_name(list(response.headers.raw)).get(b"content-encoding", b"").strip().lower()
    if encoding in (b"gzip", b"x-gzip"):
        try:
            read = zlib.decompressobj(_GZIP).decompress(read, _MOST_BYTES)
        except zlib.error:
            return whole, None
    return whole, read_overflow(read.decode("utf-8", "replace"), response.status_code)
