"""boto3's Bedrock runtime: a client that compacts in `_make_api_call`, which every operation calls.

`converse` and `converse_stream` are compacted; `invoke_model`, whose body is the model's own affair, is not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compact.adapters.clients.compaction import ClientCompactor, ConversationRequest, PreparedCall
from compact.adapters.support import is_list, is_mapping
from compact.adapters.support.endpoints import CONVERSE
from compact.adapters.support.usage_reports import usage_in

SERVICE = "bedrock-runtime"


def compacting_client(client: Any, compactor: ClientCompactor) -> Any:
    """Return a client of the same class that compacts, and leaves all else to the one that was passed in."""
    own: Any = client.__class__
    kind: Any = type(own.__name__, (_CompactingCalls, own), {"__module__": own.__module__})
    return kind(client, compactor)


class _CompactingCalls:
    """Goes before the class of a client, whose methods are found behind it; all state is the other client's."""

    def __init__(self, client: Any, compactor: ClientCompactor) -> None:
        self._client, self._compactor = client, compactor

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def _make_api_call(self, operation_name: str, api_params: dict[str, Any]) -> Any:
        if operation_name not in ("Converse", "ConverseStream") or not is_list(api_params.get("messages")):
            return self._client._make_api_call(operation_name, api_params)

        def send(call: PreparedCall) -> Any:
            sent = api_params if call.items is None else {**api_params, "messages": call.items}
            return self._client._make_api_call(operation_name, sent)

        call, answer = self._compactor.send(_read(api_params), send)
        if call.number and "stream" in answer:
            _watch(answer["stream"], self._compactor, call)
        elif call.number:
            self._compactor.take_usage(call, usage_in(answer))
        return answer


def _read(params: Mapping[str, Any]) -> ConversationRequest:
    return ConversationRequest(body=params, outgoing=CONVERSE.outgoing(params, str(params.get("modelId") or "")))


def _watch(stream: Any, compactor: ClientCompactor, call: PreparedCall) -> None:
    """Have the usage taken in that the last event of a stream reports; its events are handed on as they are."""
    own: Any = stream.__class__

    def parse_event(self: Any, event: Any) -> Any:
        parsed = own._parse_event(self, event)
        if is_mapping(parsed) and is_mapping(parsed.get("metadata")):
            compactor.take_usage(call, usage_in(parsed["metadata"]))
        return parsed

    stream.__class__ = type(own.__name__, (own,), {"_parse_event": parse_event, "__module__": own.__module__})
