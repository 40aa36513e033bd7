"""A copy of an AutoGen model client that compacts, and the recall tool."""

from __future__ import annotations

import copy
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any, TypeVar, cast

from autogen_core.models import ChatCompletionClient, CreateResult
from autogen_core.tools import FunctionTool

from compact.adapters.autogen.messages import AutoGenDialect, message_data, message_of
from compact.adapters.clients.compaction import ClientCompactor, ConversationRequest, PreparedCall
from compact.adapters.clients.watched_streams import astarted
from compact.adapters.support import (
    RECALL_DESCRIPTION,
    RECALL_NAME,
    OutgoingRequest,
    PlainItems,
    aanswer_recall,
    counted,
    function_schema,
    is_mapping,
    output_limit,
)
from compact.adapters.support.chat_messages import PreparedMessages
from compact.manager import CompactManager

C = TypeVar("C", bound=ChatCompletionClient)
_DIALECT = AutoGenDialect()
# What AutoGen's client for Anthropic asks for if nobody names a limit.
_ANTHROPIC_OUTPUT_TOKENS = 4096


def compacting_client(client: C, compactor: ClientCompactor) -> C:
    """Return a copy of a client, with the same connections, that compacts; `compact.wrap` calls this.

    Args:
        client: A model client of AutoGen. It is not changed.
        compactor: Compacts its requests.

    Example:
        >>> from autogen_ext.models.replay import ReplayChatCompletionClient
        >>> import compact
        >>> client = compact.wrap(ReplayChatCompletionClient(["Hello"]), session_id="chat-1")
        >>> isinstance(client, ReplayChatCompletionClient)
        True
    """
    own: Any = type(client)

    async def create(self: Any, messages: Sequence[Any], **options: Any) -> CreateResult:
        async def send(call: PreparedCall) -> CreateResult:
            return await own.create(self, PreparedMessages.of(messages, call.items), **options)

        call, result = await compactor.asend(_request(self, messages, options), send)
        await compactor.atake_usage(call, _usage(result))
        return result

    async def create_stream(self: Any, messages: Sequence[Any], **options: Any) -> AsyncGenerator[Any, None]:
        async def send(call: PreparedCall) -> AsyncGenerator[Any, None]:
            return await astarted(own.create_stream(self, PreparedMessages.of(messages, call.items), **options))

        call, pieces = await compactor.asend(_request(self, messages, options), send)
        async for piece in pieces:
            if isinstance(piece, CreateResult):
                await compactor.atake_usage(call, _usage(piece))
            yield piece

    methods = {"create": create, "create_stream": create_stream, "__module__": own.__module__}
    # The copy is another object of the same class, whose configuration loads the class that was passed in.
    methods["component_provider_override"] = own.component_provider_override or f"{own.__module__}.{own.__qualname__}"
    copied: Any = copy.copy(client)
    copied.__class__ = type(own.__name__, (own,), methods)
    return copied


def _request(client: Any, messages: Sequence[Any], options: Mapping[str, Any]) -> ConversationRequest | None:
    """Return what a request holds; None if it is prepared already."""
    if isinstance(messages, PreparedMessages):
        return None
    items = PlainItems[Any].read(messages, message_data)
    extra: Mapping[str, Any] = options.get("extra_create_args") or {}
    own: Mapping[str, Any] = getattr(client, "_create_args", None) or {}
    model = str(extra.get("model") or own.get("model") or "")
    outgoing = OutgoingRequest(
        items=items.plain,
        tools=tool_schemas(options.get("tools") or ()),
        output_tokens=output_limit(extra, own) or _default_limit(client),
        model=model,
        dialect=_DIALECT,
        restore=lambda prompt: items.restore(prompt, message_of),
    )
    body = {"model": model, "messages": items.plain, "tools": outgoing.tools}
    return ConversationRequest(body=body, outgoing=outgoing)


def _default_limit(client: object) -> int:
    return _ANTHROPIC_OUTPUT_TOKENS if "Anthropic" in type(client).__name__ else 0


def tool_schemas(tools: Sequence[Any]) -> list[dict[str, Any]]:
    """Return tools as they are counted."""
    schemas = [cast(Mapping[str, Any], one if is_mapping(one) else one.schema) for one in tools]
    return [function_schema(one["name"], one.get("description"), one.get("parameters")) for one in schemas]


def _usage(result: CreateResult) -> object:
    """Return what the provider has counted; a cached answer has counted nothing."""
    return None if result.cached else counted(result.usage.prompt_tokens)


def recall_tool(manager: CompactManager, session_id: str) -> FunctionTool:
    """Return the tool by which an agent reads what left its prompt.

    Args:
        manager: Keeps the sessions.
        session_id: The session to read.

    Example:
        >>> from compact import CompactManager
        >>> from compact.adapters.autogen import recall_tool
        >>> recall_tool(CompactManager(), "chat-1").name
        'recall'
    """

    async def recall(query: str) -> str:
        return await aanswer_recall(manager, session_id, {"query": query})

    return FunctionTool(recall, description=RECALL_DESCRIPTION, name=RECALL_NAME)
