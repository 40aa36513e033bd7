"""OpenAI's clients: a copy of the client that compacts in `request`, which every method of theirs calls.

`create`, `stream=True`, `.stream(…)` and `.parse(…)` of Chat Completions and of Responses are all of them requests.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from openai import AsyncOpenAI, OpenAI

from compact.adapters.clients.compaction import ClientCompactor, ConversationRequest, PreparedCall
from compact.adapters.clients.watched_streams import AsyncWatchedEvents, WatchedEvents
from compact.adapters.support import SESSION_HEADER, is_mapping
from compact.adapters.support.endpoints import Endpoint, find_endpoint

# The header by which the SDK says that its caller wants the response as it came: "stream" if it reads the body itself.
_RAW_RESPONSE_HEADER = "X-Stainless-Raw-Response"


def compacting_client(client: OpenAI | AsyncOpenAI, compactor: ClientCompactor) -> OpenAI | AsyncOpenAI:
    """Return a copy of a client, with the same connections, that compacts."""
    own = type(client)
    request = _async_request if isinstance(client, AsyncOpenAI) else _sync_request
    # A class of its own and not a method on the copy: what `with_options` returns is of the same class, and compacts.
    kind = type(own.__name__, (own,), {"request": request(own, compactor), "__module__": own.__module__})
    copied: Any = client.copy()
    copied.__class__ = kind
    return copied


def _sync_request(own: Any, compactor: ClientCompactor) -> Any:
    def request(self: Any, cast_to: Any, options: Any, *, stream: bool = False, stream_cls: Any = None) -> Any:
        endpoint = find_endpoint(options.method.upper(), options.url.partition("?")[0])
        if endpoint is None:
            return own.request(self, cast_to, options, stream=stream, stream_cls=stream_cls)

        def send(call: PreparedCall) -> Any:
            sent = _with_items(endpoint, options, call)
            return own.request(self, cast_to, sent, stream=stream, stream_cls=stream_cls)

        call, answer = compactor.send(_client_request(endpoint, options), send)
        try:
            parsed = _parsed(answer, options) if call.number else None
            if parsed is not None and stream:
                parsed._iterator = WatchedEvents(
                    parsed._iterator, lambda event: compactor.take_usage(call, _usage_in(event))
                )
            elif parsed is not None:
                compactor.take_usage(call, _usage_in(parsed))
        except Exception as error:  # noqa: BLE001 - reading the SDK's answer must not take it away from the caller
            compactor.report_unread(call, error)
        return answer

    return request


def _async_request(own: Any, compactor: ClientCompactor) -> Any:
    async def request(self: Any, cast_to: Any, options: Any, *, stream: bool = False, stream_cls: Any = None) -> Any:
        endpoint = find_endpoint(options.method.upper(), options.url.partition("?")[0])
        if endpoint is None:
            return await own.request(self, cast_to, options, stream=stream, stream_cls=stream_cls)

        async def send(call: PreparedCall) -> Any:
            sent = _with_items(endpoint, options, call)
            return await own.request(self, cast_to, sent, stream=stream, stream_cls=stream_cls)

        call, answer = await compactor.asend(_client_request(endpoint, options), send)
        try:
            parsed = _parsed(answer, options) if call.number else None
            if parsed is not None and stream:
                parsed._iterator = AsyncWatchedEvents(
                    parsed._iterator, lambda event: compactor.atake_usage(call, _usage_in(event))
                )
            elif parsed is not None:
                await compactor.atake_usage(call, _usage_in(parsed))
        except Exception as error:  # noqa: BLE001 - as in the request without an event loop
            compactor.report_unread(call, error)
        return answer

    return request


def _body(options: Any) -> dict[str, Any]:
    """Return the body that is going to be sent: `extra_body` is put over it by the SDK."""
    parts = [part for part in (options.json_data, options.extra_json) if is_mapping(part)]
    return {key: value for part in parts for key, value in part.items()}


def _headers(options: Any) -> Mapping[str, Any]:
    return options.headers if is_mapping(options.headers) else {}


def _header(options: Any, name: str) -> str:
    return next((str(value) for key, value in _headers(options).items() if key.lower() == name.lower()), "")


def _client_request(endpoint: Endpoint, options: Any) -> ConversationRequest:
    body = _body(options)
    outgoing = endpoint.outgoing(body, str(body.get("model") or ""))
    session, kept_by = _header(options, SESSION_HEADER), endpoint.history_kept_by(body)
    return ConversationRequest(body=body, outgoing=outgoing, session=session, kept_by=kept_by)


def _with_items(endpoint: Endpoint, options: Any, call: PreparedCall) -> Any:
    """Return the options of a request with the items to send, and without our own header."""
    changed: dict[str, Any] = {}
    if call.items is not None:
        for name in ("json_data", "extra_json"):
            part = getattr(options, name)
            if is_mapping(part) and endpoint.items_key in part:
                changed[name] = {**part, endpoint.items_key: call.items}
    if _header(options, SESSION_HEADER):
        kept = {key: value for key, value in _headers(options).items() if key.lower() != SESSION_HEADER.lower()}
        changed["headers"] = kept
    return options.model_copy(update=changed) if changed else options


def _parsed(answer: Any, options: Any) -> Any:
    """Return the answer as the SDK's object; None if its body is going to be read by the caller itself."""
    raw = _header(options, _RAW_RESPONSE_HEADER)
    if raw == "stream":
        return None
    return answer.parse() if raw else answer


def _usage_in(event: Any) -> Any:
    """Return the usage that an answer or an event of a stream reports; those of Responses have it in their response."""
    return getattr(event, "usage", None) or getattr(getattr(event, "response", None), "usage", None)
