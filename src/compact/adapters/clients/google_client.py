"""google-genai: a client whose requests go through `request` and its relatives, where conversations are compacted.

The SDK's client hands each of its parts one object that sends requests. A wrapped client is made by the SDK itself,
with an object in its place that compacts first and leaves all else to the client that was passed in.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any, TypeAlias

from google.genai import Client
from google.genai.client import AsyncClient

from compact.adapters.clients.compaction import ClientCompactor, ConversationRequest, PreparedCall
from compact.adapters.clients.watched_streams import AsyncWatchedEvents, started
from compact.adapters.support import SESSION_HEADER, is_list, is_mapping
from compact.adapters.support.endpoints import GEMINI, find_endpoint
from compact.adapters.support.usage_reports import usage_in

_Body: TypeAlias = dict[str, Any]


def compacting_client(client: Client, compactor: ClientCompactor) -> Client:
    """Return a client that compacts, on the connections of another."""
    api = _CompactingApi(client, compactor)
    own = type(client)

    def get_api_client(**_: Any) -> Any:
        return api

    members: dict[str, Any] = {"_get_api_client": staticmethod(get_api_client), "__del__": _leave_open}
    kind: Any = type(own.__name__, (own,), {**members, "__module__": own.__module__})
    wrapped = kind.__new__(kind)
    vars(Client)["__init__"](wrapped)  # and not that of a class below it, which may want arguments
    # Both would close the connections with themselves, and they are the other client's.
    wrapped._aio.__class__ = type("AsyncClient", (AsyncClient,), {"__del__": _leave_open})
    return wrapped


def _leave_open(self: object) -> None:
    """Do nothing when the object is no longer used."""


class _CompactingApi:
    """What sends the requests of a client, with compaction; it keeps the client alive whose connections it uses."""

    def __init__(self, client: Any, compactor: ClientCompactor) -> None:
        self._client, self._own, self._compactor = client, client._api_client, compactor

    def __getattr__(self, name: str) -> Any:
        return getattr(self._own, name)

    def request(self, http_method: str, path: str, request_dict: _Body, http_options: Any = None) -> Any:
        """Send a request and return its answer."""

        def send(call: PreparedCall) -> Any:
            return self._own.request(http_method, path, _with_items(request_dict, call), _without_session(http_options))

        call, answer = self._compactor.send(_client_request(path, request_dict, http_options), send)
        self._compactor.take_usage(call, _usage_in(answer, call))
        return answer

    def request_streamed(
        self, http_method: str, path: str, request_dict: _Body, http_options: Any = None
    ) -> Iterator[Any]:
        """Send a request and yield the parts of its answer as they are."""

        def send(call: PreparedCall) -> Iterator[Any]:
            options = _without_session(http_options)
            return started(self._own.request_streamed(http_method, path, _with_items(request_dict, call), options))

        call, parts = self._compactor.send(_client_request(path, request_dict, http_options), send)
        for part in parts:
            self._compactor.take_usage(call, _usage_in(part, call))
            yield part

    async def async_request(self, http_method: str, path: str, request_dict: _Body, http_options: Any = None) -> Any:
        """Send a request and return its answer."""

        async def send(call: PreparedCall) -> Any:
            options = _without_session(http_options)
            return await self._own.async_request(http_method, path, _with_items(request_dict, call), options)

        call, answer = await self._compactor.asend(_client_request(path, request_dict, http_options), send)
        await self._compactor.atake_usage(call, _usage_in(answer, call))
        return answer

    async def async_request_streamed(
        self, http_method: str, path: str, request_dict: _Body, http_options: Any = None
    ) -> AsyncIterator[Any]:
        """Send a request and return an iterator over the parts of its answer as they are."""

        async def send(call: PreparedCall) -> Any:
            options = _without_session(http_options)
            return await self._own.async_request_streamed(http_method, path, _with_items(request_dict, call), options)

        call, parts = await self._compactor.asend(_client_request(path, request_dict, http_options), send)
        return AsyncWatchedEvents(parts, lambda part: self._compactor.atake_usage(call, _usage_in(part, call)))


def _client_request(path: str, body: _Body, http_options: Any) -> ConversationRequest | None:
    """Return what is in a request for an answer; None for all others, such as those that count tokens."""
    path, _, _ = path.partition("?")
    if find_endpoint("POST", path) is not GEMINI or not is_list(body.get("contents")):
        return None
    outgoing, kept_by = GEMINI.outgoing(body, GEMINI.model(body, path)), GEMINI.history_kept_by(body)
    return ConversationRequest(body=body, outgoing=outgoing, session=_session(http_options), kept_by=kept_by)


def _with_items(body: _Body, call: PreparedCall) -> _Body:
    return body if call.items is None else {**body, "contents": call.items}


def _usage_in(answer: Any, call: PreparedCall) -> object:
    """Return the usage that a response or a part of a stream reports."""
    text = answer.body if call.number else None
    if not isinstance(text, str) or "usageMetadata" not in text:
        return None
    try:
        return usage_in(json.loads(text))
    except ValueError:
        return None  # the SDK says what is wrong with it


# -- the header that names a session ----------------------------------------------------------------------------------


def _headers(http_options: Any) -> Mapping[str, Any]:
    found = http_options.get("headers") if is_mapping(http_options) else getattr(http_options, "headers", None)
    return found if is_mapping(found) else {}


def _session(http_options: Any) -> str:
    headers = _headers(http_options)
    return next((str(value) for name, value in headers.items() if name.lower() == SESSION_HEADER.lower()), "")


def _without_session(http_options: Any) -> Any:
    """Return the options of a request without the header that names its session."""
    if not _session(http_options):
        return http_options
    kept = {name: value for name, value in _headers(http_options).items() if name.lower() != SESSION_HEADER.lower()}
    if is_mapping(http_options):
        return {**http_options, "headers": kept}
    return http_options.model_copy(update={"headers": kept})
