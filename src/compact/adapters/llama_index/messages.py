"""LlamaIndex's messages, as plain data, as a dialect.

Newer models write their calls as blocks, older ones under `additional_kwargs`: a call goes back where it was.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from llama_index.core.base.llms.types import ChatMessage

from compact.adapters.support.chat_messages import ChatMessagesDialect
from compact.core.json_data import is_list, is_mapping
from compact.dialects.dialect import META, NATIVE, Block, Entry, as_json_data, foreign, native_of, without
from compact.dialects.turns import FunctionCall, read_calls, read_object, write_call

# The key in `additional_kwargs` under which a message has our `meta`: {"compact": {"protected": True}}.
MARK = "compact"
_EXTRA, _CALLS, _RESULT_ID = "additional_kwargs", "tool_calls", "tool_call_id"
_ROLES = {
    "system": "system",
    "developer": "developer",
    "user": "user",
    "assistant": "assistant",
    "chatbot": "assistant",
    "model": "assistant",
    "tool": "tool",
    "function": "tool",
}


def protected(message: ChatMessage) -> ChatMessage:
    """Return a copy of a message that no compaction will touch.

    Args:
        message: A message of LlamaIndex.

    Example:
        >>> from llama_index.core.llms import ChatMessage
        >>> from compact.adapters.llama_index import protected
        >>> protected(ChatMessage("Never round a figure.")).additional_kwargs
        {'compact': {'protected': True}}
    """
    extra = {**_extra(message), MARK: {**_extra(message).get(MARK, {}), "protected": True}}
    return message.model_copy(update={_EXTRA: extra})


def without_mark(message: ChatMessage) -> ChatMessage:
    """Return the message as a provider may see it: itself, or a copy without our mark."""
    extra = _extra(message)
    return message.model_copy(update={_EXTRA: without(extra, MARK)}) if MARK in extra else message


def _extra(message: ChatMessage) -> dict[str, Any]:
    return cast(Any, message).additional_kwargs


def message_data(message: ChatMessage) -> dict[str, Any]:
    """Return a message of LlamaIndex as data."""
    data = message.model_dump(mode="json", exclude_none=True, exclude={_EXTRA})
    # The calls of a provider's own package are objects there.
    return {**data, _EXTRA: as_json_data(_extra(message))}


def message_of(data: Mapping[str, Any]) -> ChatMessage:
    """Return the message of LlamaIndex that data stand for."""
    return ChatMessage.model_validate(dict(data))


class LlamaIndexDialect(ChatMessagesDialect):
    """Reads and writes `llama_index.core.llms.ChatMessage`, as data.

    The wrapped model uses it by itself; name it where you call the manager with such messages.

    Example:
        >>> from llama_index.core.llms import ChatMessage
        >>> from compact import CompactManager
        >>> from compact.adapters.llama_index import LlamaIndexDialect
        >>> messages = [ChatMessage("Hello").model_dump(mode="json")]
        >>> CompactManager().preflight("chat-1", messages, dialect=LlamaIndexDialect()) == messages
        True
    """

    name = "llama_index"

    def read(self, items: Sequence[Any], place: int) -> Iterator[Block]:
        """Yield one entry for each message."""
        for number, item in enumerate(items, place):
            if not is_mapping(item) or item.get("role") not in _ROLES or not is_list(item.get("blocks")):
                raise foreign(item, number, self.name)
            yield Block((item,), (_entry(item),))

    def _item_of(self, entries: Sequence[Entry]) -> dict[str, Any]:
        """Return the message that an entry comes to."""
        (entry,) = entries
        native = native_of(entry)
        extra: dict[str, Any] = dict(native.get("extra", {}))
        content = entry.get("content") or ""
        blocks = [_own_block(part) for part in content] if is_list(content) else [_text_block(content)]
        calls = list(read_calls(entry))
        if native.get("calls") == _EXTRA:
            extra[_CALLS] = list(map(write_call, calls))
        else:
            blocks += map(_call_block, calls)
        if calls:
            blocks = [block for block in blocks if block != _text_block("")]
        if entry["role"] == "tool":
            extra[_RESULT_ID] = entry["tool_call_id"]
        if META in entry:
            extra[MARK] = entry[META]
        role = native.get("role", entry["role"])
        return {"role": role if _ROLES.get(role) == entry["role"] else entry["role"], "blocks": blocks, _EXTRA: extra}


def _entry(item: Mapping[str, Any]) -> Entry:
    extra: Mapping[str, Any] = item.get(_EXTRA) or {}
    blocks = cast(Sequence[Mapping[str, Any]], item["blocks"])
    calls = [_call_of(block) for block in blocks if block.get("block_type") == "tool_call"]
    native: dict[str, Any] = {"role": item["role"]}
    if not calls and is_list(extra.get(_CALLS)):
        calls = [_provider_call(call) for call in extra[_CALLS]]
        native["calls"] = _EXTRA
    rest = without(extra, MARK, _CALLS) if calls else without(extra, MARK)
    role = _ROLES[item["role"]]
    if role == "tool" and _RESULT_ID not in extra:
        role = "user"  # a result that does not say whose it is
    elif role == "tool":
        rest = without(rest, _RESULT_ID)
    entry: Entry = {"role": role, "content": _content(blocks, bool(calls))}
    if calls:
        entry[_CALLS] = list(map(write_call, calls))
    if role == "tool":
        entry[_RESULT_ID] = extra[_RESULT_ID]
    meta = extra.get(MARK)
    return {**entry, **({META: dict(meta)} if is_mapping(meta) else {}), NATIVE: {**native, "extra": rest}}


def _content(blocks: Sequence[Mapping[str, Any]], has_calls: bool) -> Any:
    """Return the content of an entry: a text if there is nothing else, or parts in the form of Chat Completions."""
    parts = [block for block in blocks if block.get("block_type") != "tool_call"]
    if not parts:
        return None if has_calls else ""
    if len(parts) == 1 and set(parts[0]) == {"block_type", "text"}:
        return parts[0]["text"]
    return [_part(block) for block in parts]


def _part(block: Mapping[str, Any]) -> dict[str, Any]:
    kind = block.get("block_type")
    if kind == "text":
        return {"type": "text", "text": block.get("text", "")}
    url = block.get("url")
    if kind == "image":
        mime = block.get("image_mimetype") or "image/png"
        url = url or f"data:{mime};base64,{block.get('image') or ''}"
        return {"type": "image_url", "image_url": {"url": url}, "block": dict(block)}
    return {"type": str(kind), "block": dict(block)}


def _own_block(part: Mapping[str, Any]) -> dict[str, Any]:
    return dict(part["block"]) if "block" in part else _text_block(str(part.get("text") or ""))


def _text_block(text: str) -> dict[str, Any]:
    return {"block_type": "text", "text": text}


def _call_of(block: Mapping[str, Any]) -> FunctionCall:
    given: object = block.get("tool_kwargs") or {}
    arguments = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
    return FunctionCall(block.get("tool_call_id") or "", block["tool_name"], arguments)


def _call_block(call: FunctionCall) -> dict[str, Any]:
    arguments = read_object(call.arguments)
    return {"block_type": "tool_call", "tool_call_id": call.id, "tool_name": call.name, "tool_kwargs": arguments}


def _provider_call(call: Mapping[str, Any]) -> FunctionCall:
    function: Mapping[str, Any] = call.get("function") or call
    arguments = function.get("arguments") or function.get("input") or "{}"
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return FunctionCall(str(call.get("id") or ""), str(function.get("name") or ""), text)
