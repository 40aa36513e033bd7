"""The ASGI application: every request goes on to the provider, and some are looked at on the way."""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from typing import Any, TypeVar

from compact.config import CompactConfig
from compact.proxy.client import Client, ClientGone, Message, Receive, Scope, Send
from compact.proxy.desk import Desk, hear
from compact.proxy.headers import TOKEN_HEADER, by_name, for_client, for_upstream
from compact.proxy.managers import Managers
from compact.proxy.settings import ProxySettings, is_by_a_page
from compact.proxy.upstream import Response, Upstream, UpstreamError, UpstreamTimeout
from compact.proxy.usage import UsageReader
from compact.proxy.verdict import HEADER, Verdict
from compact.proxy.wires import Wire, wire_of

_log = logging.getLogger("compact.proxy")
_THREADS = 64
T = TypeVar("T")


class ProxyApp:
    """Passes requests on to one provider, and has the conversations in them compacted."""

    def __init__(self, settings: ProxySettings, config: CompactConfig) -> None:
        self._settings = settings
        self.managers = Managers(config, on_event=hear)
        self._desk = Desk(self.managers)
        self._upstream = Upstream(settings.upstream, timeout_seconds=settings.timeout_seconds)
        # Of our own: a summary that somebody waits for must not hold up anybody else.
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="compact-proxy")
        self._unfinished: set[asyncio.Task[None]] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            await self._exchange(Client(scope, receive), send)
        else:
            await send({"type": "websocket.close", "code": 1011, "reason": "not passed on by this proxy"})

    async def close(self) -> None:
        """Take in what was counted, write what is unwritten, let go of everything."""
        if self._unfinished:
            await asyncio.wait(self._unfinished)
        await self._upstream.close()
        await asyncio.to_thread(self._threads.shutdown)
        await asyncio.to_thread(self.managers.close)

    async def _live(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.shutdown":
                await self.close()
            await send({"type": f"{message['type']}.complete"})
            if message["type"] == "lifespan.shutdown":
                return

    async def _exchange(self, client: Client, send: Send) -> None:
        """Answer one request; an agent that hangs up ends what is done for it."""
        if not self._may_come_in(client):
            text = "this proxy wants its token in the header X-Compact-Token"
            await _refuse(send, 401, "wrong_token", text)
            return
        if not self._settings.token and is_by_a_page(client.by_name, self._settings.host):
            text = "this proxy answers agents on this machine, not pages; with a token it answers whoever has it"
            await _refuse(send, 403, "not_an_agent", text)
            return
        tasks = [asyncio.ensure_future(work) for work in (self._answer(client, send), client.gone())]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        except Exception:
            _log.exception("an exchange failed")  # the server breaks it off
            raise
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _may_come_in(self, client: Client) -> bool:
        token = self._settings.token
        return not token or hmac.compare_digest(token.encode(), client.by_name.get(TOKEN_HEADER, b""))

    async def _answer(self, client: Client, send: Send) -> None:
        verdict: Verdict | None = None
        try:
            wire = wire_of(client.method, client.path)
            body = client.body()
            if wire:
                verdict, body = await self._look_at(wire, client)
            length = len(verdict.body) if verdict and verdict.body is not None else None
            headers = for_upstream(client.headers, self._upstream.host, new_length=length)
            response = await self._upstream.send(client.method, client.target, headers, body)
        except ClientGone:
            return
        except UpstreamTimeout:
            text = f"the upstream did not answer within {self._settings.timeout_text}"
            await _refuse(send, 504, "upstream_timeout", text, verdict)
        except UpstreamError as error:
            _log.warning("the upstream cannot be reached (%s)", type(error).__name__)
            await _refuse(send, 502, "upstream_unreachable", f"the upstream cannot be reached: {error}", verdict)
        else:
            await self._pass_back(response, verdict, send)

    async def _look_at(self, wire: Wire, client: Client) -> tuple[Verdict, AsyncIterator[bytes]]:
        """What to say about a request that holds a conversation, and the body to send."""
        encoding = client.by_name.get(b"content-encoding", b"identity").strip().lower()
        if encoding != b"identity":
            return Verdict("skipped", reason="encoded-body"), client.body()
        parts, is_all = await client.read(self._settings.max_body_bytes)
        if sum(map(len, parts)) > self._settings.max_body_bytes:
            return Verdict("skipped", reason="body-too-large"), _parts(parts, None if is_all else client.body())
        verdict = await self._in_thread(lambda: self._desk.look_at(wire, b"".join(parts), client.by_name))
        return verdict, _parts(parts if verdict.body is None else [verdict.body])

    async def _pass_back(self, response: Response, verdict: Verdict | None, send: Send) -> None:
        """The answer as it comes; one that breaks off is broken off."""
        headers = for_client(response.headers.raw)
        reader = UsageReader(by_name(headers)) if verdict and verdict.call and response.status_code == 200 else None
        if verdict:
            headers.append(verdict.header)
        async with aclosing(response):
            await send({"type": "http.response.start", "status": response.status_code, "headers": headers})
            try:
                async with aclosing(response.aiter_raw()) as parts:
                    async for part in parts:
                        await send(_piece(part, more=True))
                        if reader:
                            reader.feed(part)
            except UpstreamError as error:
                # Without an end the server closes the connection, and the agent sees an answer that was cut.
                _log.warning("the upstream broke an answer off (%s): so do we", type(error).__name__)
            else:
                await send(_piece(b"", more=False))
                if reader:
                    reader.end()
            if reader and reader.usage and verdict:
                self._report(verdict, reader.usage)

    def _report(self, verdict: Verdict, usage: Any) -> None:
        """Have what was counted taken in, without anybody waiting for it."""
        self._desk.note_usage(verdict, usage)
        work = self._in_thread(lambda: self._desk.take_in_usage(self.managers(verdict.model), verdict.session_id))
        task = asyncio.ensure_future(work)
        self._unfinished.add(task)
        task.add_done_callback(self._unfinished.discard)

    def _in_thread(self, work: Callable[[], T]) -> Coroutine[Any, Any, T]:
        async def wait() -> T:
            return await asyncio.get_running_loop().run_in_executor(self._threads, work)

        return wait()


async def _parts(parts: Sequence[bytes], rest: AsyncIterator[bytes] | None = None) -> AsyncIterator[bytes]:
    for part in parts:
        yield part
    if rest:
        async for part in rest:
            yield part


def _piece(data: bytes, *, more: bool) -> Message:
    return {"type": "http.response.body", "body": data, "more_body": more}


async def _refuse(send: Send, status: int, code: str, text: str, verdict: Verdict | None = None) -> None:
    """An error of the proxy itself, in a form that the clients of all providers can read."""
    error = {"type": code, "code": code, "message": f"compact proxy: {text}"}
    body = json.dumps({"type": "error", "error": error}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    headers.append(verdict.header if verdict else (HEADER, code.encode()))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send(_piece(body, more=False))
