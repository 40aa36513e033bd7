"""A copy of a smolagents model that compacts, and the recall tool."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar, cast

from smolagents import Model, Tool  # pyright: ignore[reportMissingTypeStubs]
from smolagents.models import get_tool_json_schema  # pyright: ignore

from compact.adapters.clients.compaction import ClientCompactor, ConversationRequest, PreparedCall
from compact.adapters.clients.watched_streams import started
from compact.adapters.smolagents.messages import SmolagentsDialect, message_data, message_of
from compact.adapters.support import (
    RECALL_DESCRIPTION,
    RECALL_NAME,
    RECALL_PARAMETERS,
    OutgoingRequest,
    PlainItems,
    answer_recall,
    counted,
    litellm_limit,
    output_limit,
)
from compact.adapters.support.chat_messages import PreparedMessages
from compact.manager import CompactManager

M = TypeVar("M", bound=Model)
_DIALECT = SmolagentsDialect()


def compacting_model(model: M, compactor: ClientCompactor) -> M:
    """Return a copy of a model, with the same connections, that compacts; `compact.wrap` calls this.

    Args:
        model: A model of smolagents. It is not changed.
        compactor: Compacts its requests.

    Example:
        >>> from smolagents import OpenAIModel
        >>> import compact
        >>> model = compact.wrap(OpenAIModel("gpt-4o", api_key="none"), session_id="chat-1")
        >>> isinstance(model, OpenAIModel)
        True
    """
    own: Any = type(model)

    def generate(self: Any, messages: Sequence[Any], *args: Any, **options: Any) -> Any:
        def send(call: PreparedCall) -> Any:
            return own.generate(self, PreparedMessages.of(messages, call.items), *args, **options)

        call, answer = compactor.send(_request(self, messages, _named(args, options)), send)
        compactor.take_usage(call, _usage(answer))
        return answer

    def generate_stream(self: Any, messages: Sequence[Any], *args: Any, **options: Any) -> Iterator[Any]:
        def send(call: PreparedCall) -> Iterator[Any]:
            return started(own.generate_stream(self, PreparedMessages.of(messages, call.items), *args, **options))

        call, pieces = compactor.send(_request(self, messages, _named(args, options)), send)
        for piece in pieces:
            compactor.take_usage(call, _usage(piece))
            yield piece

    methods: dict[str, Any] = {"generate": generate, "__module__": own.__module__}
    if hasattr(own, "generate_stream"):  # agents ask whether there is one
        methods["generate_stream"] = generate_stream
    copied: Any = copy.copy(model)
    copied.__class__ = type(own.__name__, (own,), methods)
    return copied


def _named(args: Sequence[Any], options: Mapping[str, Any]) -> Mapping[str, Any]:
    return {**dict(zip(("stop_sequences", "response_format", "tools_to_call_from"), args, strict=False)), **options}


def _request(model: Any, messages: Sequence[Any], options: Mapping[str, Any]) -> ConversationRequest | None:
    """Return what a request holds; None if it is prepared already."""
    if isinstance(messages, PreparedMessages):
        return None
    items = PlainItems[Any].read(messages, message_data)
    name = str(model.model_id or "")
    own: Mapping[str, Any] = model.kwargs
    outgoing = OutgoingRequest(
        items=items.plain,
        tools=[cast(dict[str, Any], get_tool_json_schema(tool)) for tool in options.get("tools_to_call_from") or ()],
        # What a model was made with goes before what a call says.
        output_tokens=output_limit(own, options, own.get("inferenceConfig")) or litellm_limit(model, name),
        model=name,
        dialect=_DIALECT,
        restore=lambda prompt: items.restore(prompt, message_of),
    )
    body = {"model": name, "messages": items.plain, "tools": outgoing.tools}
    # Agents of one team share a model, and so do an agent and its planning: each has a system prompt of its own.
    agent = hashlib.sha256(repr(items.plain[:1]).encode()).hexdigest()[:8]
    return ConversationRequest(body=body, outgoing=outgoing, agent=agent)


def _usage(answer: Any) -> object:
    usage = getattr(answer, "token_usage", None)
    return counted(usage.input_tokens) if usage else None


def recall_tool(manager: CompactManager, session_id: str) -> Tool:
    """Return the tool by which an agent reads what left its prompt.

    Args:
        manager: Keeps the sessions.
        session_id: The session to read.

    Example:
        >>> from compact import CompactManager
        >>> from compact.adapters.smolagents import recall_tool
        >>> recall_tool(CompactManager(), "chat-1").name
        'recall'
    """
    return _SmolagentsRecall(manager, session_id)


class _SmolagentsRecall(Tool):
    name = RECALL_NAME
    description = RECALL_DESCRIPTION
    inputs = {  # noqa: RUF012 - as smolagents wants it
        "query": {"type": "string", "description": RECALL_PARAMETERS["properties"]["query"].get("description", "")}
    }
    output_type = "string"

    def __init__(self, manager: CompactManager, session_id: str) -> None:
        super().__init__()  # pyright: ignore[reportUnknownMemberType]
        self._manager, self._session_id = manager, session_id

    def forward(self, query: str) -> str:
        """Return what is found."""
        return answer_recall(self._manager, self._session_id, {"query": query})
