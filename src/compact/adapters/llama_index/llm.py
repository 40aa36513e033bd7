"""A copy of a LlamaIndex model that compacts, and the recall tool."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from llama_index.core.llms import LLM, ChatMessage
from llama_index.core.tools import FunctionTool

from compact.adapters.clients.compaction import ClientCompactor, ConversationRequest, PreparedCall
from compact.adapters.clients.watched_streams import AsyncWatchedEvents, WatchedEvents, astarted, started
from compact.adapters.llama_index.messages import LlamaIndexDialect, message_data, message_of, without_mark
from compact.adapters.support import (
    RECALL_DESCRIPTION,
    RECALL_NAME,
    OutgoingRequest,
    PlainItems,
    answer_recall,
    is_list,
    is_mapping,
    litellm_limit,
    output_limit,
)
from compact.adapters.support.chat_messages import PreparedMessages
from compact.manager import CompactManager
from compact.runner import run_blocking

L = TypeVar("L", bound=LLM)
_DIALECT = LlamaIndexDialect()
_NO_NAME = "unknown"  # what LlamaIndex says of a model that does not tell its name
_LIMITS = ("max_completion_tokens", "max_output_tokens", "max_tokens", "num_predict")


def compacting_llm(llm: L, compactor: ClientCompactor) -> L:
    """Return a copy of a model, with the same connections, that compacts; `compact.wrap` calls this.

    Args:
        llm: A model of LlamaIndex. It is not changed.
        compactor: Compacts its requests.

    Example:
        >>> from llama_index.core.llms import ChatMessage, MockLLM
        >>> import compact
        >>> llm = compact.wrap(MockLLM(), session_id="chat-1")
        >>> llm.chat([ChatMessage("Hello")]).message.content
        'user: Hello\\nassistant: '
    """
    own: Any = type(llm)

    def chat(self: Any, messages: Sequence[ChatMessage], **options: Any) -> Any:
        def send(call: PreparedCall) -> Any:
            return own.chat(self, _sent(messages, call), **options)

        call, response = compactor.send(_request(self, messages, options), send)
        compactor.take_usage(call, _usage(response))
        return response

    async def achat(self: Any, messages: Sequence[ChatMessage], **options: Any) -> Any:
        async def send(call: PreparedCall) -> Any:
            return await own.achat(self, _sent(messages, call), **options)

        call, response = await compactor.asend(_request(self, messages, options), send)
        await compactor.atake_usage(call, _usage(response))
        return response

    def stream_chat(self: Any, messages: Sequence[ChatMessage], **options: Any) -> Any:
        def send(call: PreparedCall) -> Any:
            return started(own.stream_chat(self, _sent(messages, call), **options))

        call, pieces = compactor.send(_request(self, messages, options), send)
        return WatchedEvents(pieces, lambda piece: compactor.take_usage(call, _usage(piece)))

    async def astream_chat(self: Any, messages: Sequence[ChatMessage], **options: Any) -> Any:
        async def send(call: PreparedCall) -> Any:
            return await astarted(await own.astream_chat(self, _sent(messages, call), **options))

        call, pieces = await compactor.asend(_request(self, messages, options), send)
        return AsyncWatchedEvents(pieces, lambda piece: compactor.atake_usage(call, _usage(piece)))

    methods = {"chat": chat, "achat": achat, "stream_chat": stream_chat, "astream_chat": astream_chat}
    copied: Any = llm.model_copy()
    copied.__class__ = type(own.__name__, (own,), {**methods, "__module__": own.__module__})
    return copied


def _request(llm: Any, messages: Sequence[ChatMessage], options: Mapping[str, Any]) -> ConversationRequest | None:
    """Return what a request holds; None if it is prepared already."""
    if isinstance(messages, PreparedMessages):
        return None
    items = PlainItems[ChatMessage].read(messages, message_data)
    named = str(options.get("model") or llm.metadata.model_name or "")
    model = "" if named == _NO_NAME else named
    own = {name: getattr(llm, name, None) for name in _LIMITS}
    extra = getattr(llm, "additional_kwargs", None)
    tools: object = options.get("tools")
    outgoing = OutgoingRequest(
        items=items.plain,
        tools=list(map(_schema, tools)) if is_list(tools) else (),
        output_tokens=output_limit(options, extra if is_mapping(extra) else None, own) or litellm_limit(llm, model),
        model=model,
        dialect=_DIALECT,
        restore=lambda prompt: items.restore(prompt, message_of),
    )
    body = {"model": model, "messages": items.plain, "tools": outgoing.tools}
    return ConversationRequest(body=body, outgoing=outgoing)


def _schema(tool: Any) -> Mapping[str, Any]:
    """Return a tool as it is counted: most models have it in their provider's form by now."""
    return tool if is_mapping(tool) else tool.metadata.to_openai_tool()


def _sent(messages: Sequence[ChatMessage], call: PreparedCall) -> PreparedMessages:
    """Return the messages to send, without our mark; a request that could not be compacted goes out as it is."""
    if isinstance(messages, PreparedMessages):
        return messages
    items = call.items if call.number and call.items is not None else messages
    return PreparedMessages(map(without_mark, items))


def _usage(response: Any) -> object:
    """Return what the provider has counted: in its own answer, or where LlamaIndex keeps it."""
    raw = getattr(response, "raw", None)
    usage = raw.get("usage") if is_mapping(raw) else getattr(raw, "usage", None)
    extra: Mapping[str, Any] = getattr(response, "additional_kwargs", None) or {}
    return usage or ({"prompt_tokens": extra["prompt_tokens"]} if extra.get("prompt_tokens") else None)


def recall_tool(manager: CompactManager, session_id: str) -> FunctionTool:
    """Return the tool by which an agent reads what left its prompt.

    Args:
        manager: Keeps the sessions.
        session_id: The session to read.

    Example:
        >>> from compact import CompactManager
        >>> from compact.adapters.llama_index import recall_tool
        >>> recall_tool(CompactManager(), "chat-1").metadata.name
        'recall'
    """

    def recall(query: str) -> str:
        return answer_recall(manager, session_id, {"query": query})

    async def arecall(query: str) -> str:
        return await run_blocking(partial(recall, query))

    return FunctionTool.from_defaults(recall, name=RECALL_NAME, description=RECALL_DESCRIPTION, async_fn=arecall)
