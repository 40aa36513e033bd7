"""The ASGI application: sends every request on to the provider, and has the conversations in some of them compacted."""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from compact.adapters.support.endpoints import Endpoint, find_endpoint
from compact.config import CompactConfig
from compact.proxy.aws_signing import AwsSigner, signing_scope
from compact.proxy.bodies.encodings import UnreadableBody, unpack_body
from compact.proxy.caller_keys import SessionsOfKeys
from compact.proxy.client_request import ClientDisconnected, ClientRequest, Message, Receive, Scope, Send
from compact.proxy.compaction import IncomingBody, RequestCompactor, capture_event, log_failure
from compact.proxy.headers import TOKEN_HEADER, Headers, for_upstream, unpacked
from compact.proxy.managers import Managers
from compact.proxy.outcome import HEADER, RequestOutcome
from compact.proxy.overflow import OverflowRetry
from compact.proxy.passing import PassedResponse, pass_answered, pass_unchanged
from compact.proxy.recall.rounds import RecallRounds
from compact.proxy.sessions import SESSION_HEADER_KEY
from compact.proxy.settings import ProxySettings, is_from_web_page
from compact.proxy.upstream import Response, Upstream, UpstreamError, UpstreamTimeout
from compact.runner import run_short

_log = logging.getLogger("compact.proxy")


@dataclass(frozen=True, slots=True)
class _UpstreamRequest:
    """What to send to the provider: `start` in memory, and then the `rest`; with an outcome if it is a conversation."""

    start: Sequence[bytes] = ()
    rest: AsyncIterator[bytes] | None = None
    outcome: RequestOutcome | None = None
    retry: OverflowRetry | None = None

    @property
    def new_length(self) -> int | None:
        """The length of a body that we made; None if the agent's own is sent."""
        return len(self.outcome.body) if self.outcome and self.outcome.body is not None else None

    async def body(self) -> AsyncIterator[bytes]:
        """Yield the body, part by part."""
        for part in self.start:
            yield part
        if self.rest:
            async for part in self.rest:
                yield part


class ProxyApp:
    """Sends requests on to one provider, and has the conversations in them compacted."""

    def __init__(self, settings: ProxySettings, config: CompactConfig) -> None:
        self._settings = settings
        self.managers = Managers(config, on_event=capture_event)
        self._compactor = RequestCompactor(self.managers.for_model, offers_recall=settings.recall)
        self._upstream = Upstream(settings.upstream, timeout_seconds=settings.timeout_seconds)
        self._signer = AwsSigner()
        self._sessions_of_keys = SessionsOfKeys(settings.max_sessions_per_key)
        self._later: set[asyncio.Task[Any]] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        elif scope["type"] == "http":
            await self._handle(ClientRequest(scope, receive), send)
        else:
            await send({"type": "websocket.close", "code": 1011, "reason": "not passed on by this proxy"})

    async def close(self) -> None:
        """Take in the usage that was reported, write what is not stored yet, and close everything."""
        if self._later:
            await asyncio.wait(self._later)
        await self._upstream.close()
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
        if request.wants_websocket:
            # By this status clients know at once to use HTTP; Codex would try again for seconds after any other.
            text = "this proxy passes on no websockets; send the same request over HTTP"
            await _send_error(send, 426, "no_websockets", text)
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
            outgoing = await self._prepare(request)
            outcome = outgoing.outcome
            response = await self._send(request, outgoing)
            if outgoing.retry and outcome:
                response, outcome = await outgoing.retry(response, outcome, send=partial(self._send_again, request))
            await _until_stored(outcome)
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

    async def _send(self, request: ClientRequest, outgoing: _UpstreamRequest) -> Response:
        headers = await self._headers(request, outgoing)
        return await self._upstream.send(request.method, request.target, headers, outgoing.body())

    async def _send_again(self, request: ClientRequest, again: RequestOutcome) -> Response:
        return await self._send(request, _UpstreamRequest([again.body or b""], outcome=again))

    async def _passed(
        self, request: ClientRequest, response: Response, outcome: RequestOutcome | None
    ) -> PassedResponse:
        """Return what the agent gets for a response; calls of the recall tool in it are answered."""
        if outcome is None or outcome.recall is None:
            return pass_unchanged(response, outcome)

        async def resend(body: bytes) -> Response:
            return await self._send_again(request, replace(outcome, body=body))

        rounds = RecallRounds(outcome.recall, self._compactor.hidden_exchanges, resend)
        return await pass_answered(response, outcome, rounds)

    async def _prepare(self, request: ClientRequest) -> _UpstreamRequest:
        """Return what to send for a request; one that must be signed anew is read into memory."""
        endpoint, is_signed = find_endpoint(request.method, request.path), signing_scope(request.by_name) is not None
        if not endpoint and not is_signed:
            return _UpstreamRequest(rest=request.body())
        start = await request.read(self._settings.max_body_bytes)
        if start.size > self._settings.max_body_bytes:
            too_large = RequestOutcome("skipped", reason="body-too-large") if endpoint else None
            return _UpstreamRequest(start.parts, None if start.is_all else request.body(), too_large)
        if not endpoint:
            return _UpstreamRequest(start.parts)
        if is_signed and not await self._signer.can_sign():
            return _UpstreamRequest(start.parts, outcome=RequestOutcome("skipped", reason="signed-body"))
        return await self._compact(endpoint, request, start.parts)

    async def _compact(self, endpoint: Endpoint, request: ClientRequest, parts: Sequence[bytes]) -> _UpstreamRequest:
        raw = sent = b"".join(parts)
        encoding = request.by_name.get(b"content-encoding", b"")
        if encoding.strip().lower() not in (b"", b"identity"):
            most = self._settings.max_body_bytes
            try:
                raw = await run_short(lambda: unpack_body(sent, encoding, most))
            except UnreadableBody as error:
                _log.warning("a packed request is passed on as it is (%s) %s", error.reason, error.hint)
                return _UpstreamRequest(parts, outcome=RequestOutcome("skipped", reason=error.reason))
        name = request.by_name.get(SESSION_HEADER_KEY, b"")
        incoming = IncomingBody(endpoint=endpoint, raw=raw, path=request.path, key=request.key, session_name=name)
        outcome = await self._compactor.compact(incoming)
        if outcome.stored:
            self._keep(outcome.stored)
        if outcome.session_id:
            for session_id in self._sessions_of_keys.use(request.key, outcome.session_id):
                self._compactor.forget(session_id)
                self._do_later(self.managers.forget(session_id))
        retry = OverflowRetry(self._compactor, incoming)
        return _UpstreamRequest([sent if outcome.body is None else outcome.body], outcome=outcome, retry=retry)

    async def _headers(self, request: ClientRequest, outgoing: _UpstreamRequest) -> Headers:
        """Return the headers to send, with a new signature where the agent has signed for AWS."""
        headers = for_upstream(request.headers, self._upstream.host, new_length=outgoing.new_length)
        if outgoing.outcome and outgoing.outcome.recall:
            headers = unpacked(headers)  # what comes back is read, and perhaps joined
        scope = signing_scope(request.by_name)
        if scope is None or outgoing.rest or not await self._signer.can_sign():
            return headers
        url = self._upstream.url(request.target)
        return await self._signer.sign(scope, request.method, url, headers, b"".join(outgoing.start))

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
                self._compactor.note_usage(passed.outcome, passed.reader.usage)
                self._do_later(self._compactor.apply_usage(passed.outcome))

    def _do_later(self, work: Coroutine[Any, Any, None]) -> None:
        """Have something done in the background; `close` waits for it."""
        self._keep(asyncio.ensure_future(work))

    def _keep(self, task: asyncio.Task[Any]) -> None:
        self._later.add(task)
        task.add_done_callback(self._later.discard)


async def _until_stored(outcome: RequestOutcome | None) -> None:
    """Wait until it is stored what was sent: an answer that the agent has seen is never about what could be lost."""
    if outcome is None or outcome.stored is None:
        return
    if not outcome.stored.done():
        await asyncio.wait((outcome.stored,))
    if not outcome.stored.cancelled() and isinstance(error := outcome.stored.exception(), Exception):
        log_failure(error)


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
