"""A provider that refuses a prompt as too long: learn its limit, compact again, and send once more.

Only the beginning of an answer that may be such a refusal is read; if it is none, or nothing can be made smaller, it is
passed on as it came.
"""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from dataclasses import asdict
from typing import Any, TypeAlias

import httpx2

from compact.adapters.support.endpoints import Endpoint
from compact.adapters.support.overflow import REFUSALS, read_overflow
from compact.manager import CompactManager
from compact.model_engines import ReportedOverflow
from compact.proxy.compaction import RequestCompactor, log_failure
from compact.proxy.headers import by_name
from compact.proxy.outcome import RequestOutcome
from compact.proxy.upstream import Response

# Chosen: longer than the error of any provider; what is longer is passed on unread.
_MOST_BYTES = 65_536
_GZIP = 16 + zlib.MAX_WBITS  # the value by which zlib reads gzip

Send: TypeAlias = Callable[[bytes], Coroutine[Any, Any, Response]]
InThread: TypeAlias = Callable[[Callable[[], RequestOutcome | None]], Coroutine[Any, Any, RequestOutcome | None]]


class OverflowRetry:
    """Answers refusals of one request: `raw` is its body as it came, `send` sends another body in its place."""

    def __init__(
        self,
        compactor: RequestCompactor,
        manager_for: Callable[[str], CompactManager],
        endpoint: Endpoint,
        raw: bytes,
        headers: Mapping[bytes, bytes],
    ) -> None:
        self._compactor, self._manager_for = compactor, manager_for
        self._endpoint, self._raw, self._headers = endpoint, raw, headers

    async def __call__(
        self, response: Response, outcome: RequestOutcome, *, send: Send, in_thread: InThread
    ) -> tuple[Response, RequestOutcome]:
        """Return the response to pass on, and what was sent for it: the first, or that to a smaller request."""
        if not outcome.call:
            return response, outcome
        response, overflow = await _read_refusal(response)
        if overflow is None:
            return response, outcome
        again = await in_thread(lambda: self._smaller(outcome, overflow))
        if again is None or again.body is None:
            return response, outcome
        second = await send(again.body)
        await response.aclose()
        second, refused = await _read_refusal(second)
        if refused is not None:
            await in_thread(lambda: self._learn(again, refused))
        return second, again

    def _smaller(self, refused: RequestOutcome, overflow: ReportedOverflow) -> RequestOutcome | None:
        """Learn, and compact the request again; None if that makes nothing smaller."""
        if not self._learn(refused, overflow):
            return None
        again = self._compactor.compact(self._endpoint, self._raw, self._headers)
        is_same = again.body is None or again.body == refused.body or again.session_id != refused.session_id
        return None if is_same else again

    def _learn(self, refused: RequestOutcome, overflow: ReportedOverflow) -> RequestOutcome | None:
        try:
            self._manager_for(refused.model).observe_overflow(refused.session_id, **asdict(overflow))
        except Exception as error:  # noqa: BLE001 - the agent must get the provider's own answer
            log_failure(error)
            return None
        return refused


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
