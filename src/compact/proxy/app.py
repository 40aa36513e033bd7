"""The ASGI application: sends every request on to the provider, and has the conversations in some of them compacted."""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, TypeVar

from compact.adapters.support.endpoints import Endpoint, find_endpoint
from compact.config import CompactConfig
from compact.proxy.client_request import ClientDisconnected, ClientRequest, Message, Receive, Scope, Send
from compact.proxy.compaction import RequestCompactor, capture_event
from compact.proxy.headers import TOKEN_HEADER, for_upstream, unpacked
from compact.proxy.managers import Managers
from compact.proxy.outcome import HEADER, RequestOutcome
from compact.proxy.passing import PassedResponse, pass_answered, pass_unchanged
from compact.proxy.recall.rounds import RecallRounds
from compact.proxy.settings import ProxySettings, is_from_web_page
from compact.proxy.upstream import Response, Upstream, UpstreamError, UpstreamTimeout

_log = logging.getLogger("compact.proxy")
# Chosen: as many requests are compacted at a time; those that wait for a summary hardly use a processor.
_THREADS = 64
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _UpstreamRequest:
    """The body to send to the provider; with an outcome if it holds a conversation."""

    body: AsyncIterator[bytes]
    outcome: RequestOutcome | None = None

    @property
    def new_length(self) -> int | None:
        """The length of a body that we made; None if the agent's own is sent."""
        return len(self.outcome.body) if self.outcome and self.outcome.body is not None else None


class ProxyApp:
    """Sends requests on to one provider, and has the conversations in them compacted."""

    def __init__(self, settings: ProxySettings, config: CompactConfig) -> None:
        self._settings = settings
        self.managers = Managers(config, on_event=capture_event)
        self._compactor = RequestCompactor(self.managers.for_model, offers_recall=settings.recall)
        self._upstream = Upstream(settings.upstream, timeout_seconds=settings.timeout_seconds)
        # Threads of our own: requests that wait for a summary must not hold up others.
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="compact-proxy")
        self._usage_tasks: set[asyncio.Task[None]] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        elif scope["type"] == "http":
            await self._handle(ClientRequest(scope, receive), send)
        else:
            await send({"type": "websocket.close", "code": 1011, "reason": "not passed on by this proxy"})

    async def close(self) -> None:
        """Take in the usage that was reported, write what is not stored yet, and close everything."""
        if self._usage_tasks:
            await asyncio.wait(self._usage_tasks)
        await self._upstream.close()
        await asyncio.to_thread(self._threads.shutdown)
        await asyncio.to_thread(self.managers.close)

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.shutdown":
                await self.close()
            await send({"type": f"{message['type']}.complete"})
            if message["type"] == "lifespan.shutdown":
                return

    async def _handle(self, request: ClientRequest, send: Send) -> None:
        """Answer one request; if the agent closes the connection, stop what is done for it."""
        if not self._has_token(request):
            await _send_error(send, 401, "wrong_token", "this proxy wants its token in the header X-Compact-Token")
            return
        if not self._settings.token and is_from_web_page(request.by_name, self._settings.host):
            text = "this proxy answers agents on this machine, not web pages; set a token to allow others"
            await _send_error(send, 403, "not_an_agent", text)
            return
        tasks = [asyncio.ensure_future(work) for work in (self._answer(request, send), request.disconnected())]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        except Exception:  # a fault of ours: it must be in the log, and the server ends the response
            _log.exception("a request failed")
            raise
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _has_token(self, request: ClientRequest) -> bool:
        token = self._settings.token
        return not token or hmac.compare_digest(token.encode(), request.by_name.get(TOKEN_HEADER, b""))

    async def _answer(self, request: ClientRequest, send: Send) -> None:
        outcome: RequestOutcome | None = None
        try:
            endpoint = find_endpoint(request.method, request.path)
            outgoing = await self._compact(endpoint, request) if endpoint else _UpstreamRequest(request.body())
            outcome = outgoing.outcome
            response = await self._send(request, outgoing.body, outcome, outgoing.new_length)
            passed = await self._passed(request, response, outcome)
        except ClientDisconnected:
            return
        except UpstreamTimeout:
            text = f"the upstream did not answer within {self._settings.timeout_text}"
            await _send_error(send, 504, "upstream_timeout", text, outcome)
        except UpstreamError as error:
            _log.warning("the upstream cannot be reached (%s)", type(error).__name__)
            text = f"the upstream cannot be reached: {error}"
            await _send_error(send, 502, "upstream_unreachable", text, outcome)
        else:
            await self._pass_response(passed, send)

    async def _send(
        self, request: ClientRequest, body: AsyncIterator[bytes], outcome: RequestOutcome | None, length: int | None
    ) -> Response:
        headers = for_upstream(request.headers, self._upstream.host, new_length=length)
        if outcome and outcome.recall:
            headers = unpacked(headers)
        return await self._upstream.send(request.method, request.target, headers, body)

    async def _passed(
        self, request: ClientRequest, response: Response, outcome: RequestOutcome | None
    ) -> PassedResponse:
        """Return what the agent gets for a response; calls of the recall tool in it are answered."""

        async def resend(body: bytes) -> Response:
            return await self._send(request, _chain([body]), outcome, len(body))

        if outcome is None or outcome.recall is None:
            return pass_unchanged(response, outcome)
        rounds = RecallRounds(outcome.recall, self._compactor.hidden_exchanges, resend, self._in_thread)
        return await pass_answered(response, outcome, rounds)

    async def _compact(self, endpoint: Endpoint, request: ClientRequest) -> _UpstreamRequest:
        """Return what to send for a request that holds a conversation."""
        encoding = request.by_name.get(b"content-encoding", b"identity").strip().lower()
        if encoding != b"identity":
            return _UpstreamRequest(request.body(), RequestOutcome("skipped", reason="encoded-body"))
        start = await request.read(self._settings.max_body_bytes)
        if start.size > self._settings.max_body_bytes:
            rest = None if start.is_all else request.body()
            return _UpstreamRequest(_chain(start.parts, rest), RequestOutcome("skipped", reason="body-too-large"))
        raw = b"".join(start.parts)
        outcome = await self._in_thread(lambda: self._compactor.compact(endpoint, raw, request.by_name))
        return _UpstreamRequest(_chain(start.parts if outcome.body is None else [outcome.body]), outcome)

    async def _pass_response(self, passed: PassedResponse, send: Send) -> None:
        """Pass a response on as it comes; one that the provider breaks off is broken off."""
        async with aclosing(passed.response), aclosing(passed.parts):
            await send(
                {"type": "http.response.start", "status": passed.response.status_code, "headers": passed.headers}
            )
            try:
                async for part in passed.parts:
                    await send(_body_message(part, more=True))
            except UpstreamError as error:
                # Without an end the server closes the connection, and the agent sees a response that was cut.
                _log.warning("the upstream broke a response off (%s), and it is broken off here", type(error).__name__)
            else:
                await send(_body_message(b"", more=False))
                if passed.reader:
                    passed.reader.end()
            if passed.reader and passed.reader.usage and passed.outcome:
                self._feed_back(passed.outcome, passed.reader.usage)

    def _feed_back(self, outcome: RequestOutcome, usage: Any) -> None:
        """Have reported usage taken in, in the background."""
        self._compactor.note_usage(outcome, usage)
        task = asyncio.ensure_future(self._in_thread(lambda: self._compactor.apply_usage(outcome)))
        self._usage_tasks.add(task)
        task.add_done_callback(self._usage_tasks.discard)

    def _in_thread(self, work: Callable[[], T]) -> Coroutine[Any, Any, T]:
        async def wait() -> T:
            return await asyncio.get_running_loop().run_in_executor(self._threads, work)

        return wait()


async def _chain(parts: Sequence[bytes], rest: AsyncIterator[bytes] | None = None) -> AsyncIterator[bytes]:
    for part in parts:
        yield part
    if rest:
        async for part in rest:
            yield part


def _body_message(data: bytes, *, more: bool) -> Message:
    return {"type": "http.response.body", "body": data, "more_body": more}


async def _send_error(send: Send, status: int, code: str, text: str, outcome: RequestOutcome | None = None) -> None:
    """Send an error of the proxy itself, in a form that the clients of all providers can read."""
    error = {"type": code, "code": code, "message": f"compact proxy: {text}"}
    body = json.dumps({"type": "error", "error": error}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    headers.append(outcome.header if outcome else (HEADER, code.encode()))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send(_body_message(body, more=False))
