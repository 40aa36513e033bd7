"""Middleware of the Anthropic client: compacts requests for an answer, and feeds the reported usage back."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, cast

from anthropic import APIRequest, Middleware

from compact.adapters.support import (
    SESSION_HEADER,
    USAGE_IGNORED,
    OutgoingRequest,
    RequestPreparer,
    SessionFinder,
    aobserve_usage,
    instruction_text,
    named_session,
    observe_usage,
    output_limit,
    report_failure,
    without_cache_control,
)
from compact.manager import CompactManager

SessionId: TypeAlias = str | Callable[[Mapping[str, Any]], str] | None
_PATH = "/v1/messages"
# The header by which the SDK says that its caller reads the body itself.
_RAW_RESPONSE_HEADER = "X-Stainless-Raw-Response"


def compaction_middleware(
    manager: CompactManager, *, session_id: SessionId = None, strict: bool = False
) -> AnthropicCompactionMiddleware:
    """Return what to pass as `Anthropic(middleware=[…])`, or to AsyncAnthropic.

    The header `X-Compact-Session` of a call names its session, or `session_id` does (a text, or a function of the
    request's body); without either, a session is known by its history for as long as the process lives. If compaction
    fails the request goes out as it is, unless `strict`.
    """
    return AnthropicCompactionMiddleware(manager, session_id, strict)


class AnthropicCompactionMiddleware(Middleware):
    """Compacts requests. The SDK calls it for each attempt of a call; a second attempt sends the same bytes."""

    def __init__(self, manager: CompactManager, session_id: SessionId = None, strict: bool = False) -> None:
        self._manager = manager
        self._session_id = session_id
        self._finder = SessionFinder("anthropic", normalise=without_cache_control, is_busy=manager.is_busy)
        self._preparer = RequestPreparer(manager, "anthropic", session_of=self._session_of, read=_read, strict=strict)

    def handle(self, request: APIRequest, call_next: Callable[[APIRequest], Any]) -> Any:
        """Send a request of the synchronous client."""
        body = _messages_body(request)
        if body is None:
            return call_next(request)
        prepared = self._preparer.prepare(request)
        response = call_next(_with_messages(request, body, prepared.items_or(body["messages"])))
        if prepared.items is not None and _is_readable(request, response):
            try:
                self._watch(prepared.session_id, response.parse(), is_stream=request.stream)
            except Exception as error:  # noqa: BLE001 - reading the SDK's answer must not take it away from the caller
                report_failure(self._manager, prepared.session_id, error, USAGE_IGNORED)
        return response

    async def handle_async(self, request: APIRequest, call_next: Callable[[APIRequest], Any]) -> Any:
        """Send a request of the asynchronous client."""
        body = _messages_body(request)
        if body is None:
            return await call_next(request)
        prepared = await self._preparer.aprepare(request)
        response = await call_next(_with_messages(request, body, prepared.items_or(body["messages"])))
        if prepared.items is not None and _is_readable(request, response):
            try:
                await self._watch_async(prepared.session_id, await response.parse(), is_stream=request.stream)
            except Exception as error:  # noqa: BLE001 - as in `handle`
                report_failure(self._manager, prepared.session_id, error, USAGE_IGNORED)
        return response

    def session_of(self, messages: Sequence[Any]) -> str:
        """Return the session of a history that no header names, for `manager.recall` and other questions."""
        return self._session_id if isinstance(self._session_id, str) else self._finder.find(messages)

    def _session_of(self, request: APIRequest) -> str:
        body = _messages_body(request) or {}
        named = _header(request, SESSION_HEADER) or named_session(self._session_id, body)
        return named or self._finder.find(body["messages"])

    def _watch(self, session_id: str, answer: Any, *, is_stream: bool) -> None:
        if is_stream:
            answer._iterator = self._watched(session_id, answer._iterator)
        else:
            observe_usage(self._manager, session_id, answer.usage)

    async def _watch_async(self, session_id: str, answer: Any, *, is_stream: bool) -> None:
        if is_stream:
            answer._iterator = self._watched_async(session_id, answer._iterator)
        else:
            await aobserve_usage(self._manager, session_id, answer.usage)

    def _watched(self, session_id: str, events: Iterator[Any]) -> Iterator[Any]:
        """Yield the events of a stream as they are; the first says how many tokens the request took."""
        for event in events:
            if event.type == "message_start":
                observe_usage(self._manager, session_id, event.message.usage)
            yield event

    async def _watched_async(self, session_id: str, events: AsyncIterator[Any]) -> AsyncIterator[Any]:
        async for event in events:
            if event.type == "message_start":
                await aobserve_usage(self._manager, session_id, event.message.usage)
            yield event


def _messages_body(request: APIRequest) -> dict[str, Any] | None:
    """Return the body of a request for an answer; None for all others, such as those that count tokens."""
    path = request.url.split("?", 1)[0]
    body = request.json
    if request.method.lower() != "post" or not path.endswith(_PATH) or not isinstance(body, dict):
        return None
    fields = cast(dict[str, Any], body)
    return fields if isinstance(fields.get("messages"), list) else None


def _read(request: APIRequest, _: str) -> OutgoingRequest:
    body = _messages_body(request) or {}
    return OutgoingRequest(
        items=body["messages"],
        tools=body.get("tools") or (),
        instructions=instruction_text(body.get("system")),
        output_tokens=output_limit(body),
        model=str(body.get("model") or ""),
        dialect="anthropic",
    )


def _with_messages(request: APIRequest, body: Mapping[str, Any], messages: list[Any]) -> APIRequest:
    headers = {key: value for key, value in request.headers.items() if key.lower() != SESSION_HEADER.lower()}
    return request.copy(headers=headers, body={**body, "messages": messages})


def _header(request: APIRequest, name: str) -> str:
    return next((str(value) for key, value in request.headers.items() if key.lower() == name.lower()), "")


def _is_readable(request: APIRequest, response: Any) -> bool:
    """Return False for an error, and for an answer whose body the caller is going to read itself."""
    return response.http_response.is_success and _header(request, _RAW_RESPONSE_HEADER) != "stream"
