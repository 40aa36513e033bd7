"""LangChain's messages as a dialect: each message is one entry, and is rebuilt as the kind of message it was."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeGuard, TypeVar, cast

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    ChatMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    messages_from_dict,
)
from pydantic_core import to_jsonable_python

from compact.core.json_data import is_list, is_mapping
from compact.core.messages.entries import read_entry
from compact.core.messages.legality import Violation, check_chat
from compact.core.messages.message import ROLES
from compact.dialects.dialect import META, NATIVE, Block, Entry, foreign, without
from compact.dialects.turns import OPENING

# The key in `additional_kwargs` under which a message has our `meta`: {"compact": {"protected": True}}.
MARK = "compact"

_ROLES = {"human": "user", "ai": "assistant", "system": "system", "tool": "tool", "function": "user"}
# What an entry has in fields of its own, and what no model ever reads: usage, and results meant for programs.
_NOT_NATIVE = {"content", "type", "tool_calls", "invalid_tool_calls", "tool_call_id", "usage_metadata", "artifact"}
_CHUNK_FIELDS = {"tool_call_chunks", "chunk_position"}
_EXTRA = "additional_kwargs"

M = TypeVar("M", bound=BaseMessage)


def protected(message: M) -> M:
    """Return a copy of a message that no compaction will touch.

    Args:
        message: A message of LangChain.

    Example:
        >>> from langchain_core.messages import HumanMessage
        >>> from compact.adapters.langchain import protected
        >>> protected(HumanMessage("Never round a figure.")).additional_kwargs
        {'compact': {'protected': True}}
    """
    return _with_mark(message, {**_extra_of(message).get(MARK, {}), "protected": True})


def without_mark(message: M) -> M:
    """Return the message as a provider may see it: itself, or a copy without our mark."""
    return _with_mark(message, {}) if MARK in _extra_of(message) else message


def _with_mark(message: M, meta: Mapping[str, Any]) -> M:
    extra = without(_extra_of(message), MARK)
    return message.model_copy(update={_EXTRA: {**extra, MARK: dict(meta)} if meta else extra})


def _extra_of(message: BaseMessage) -> dict[str, Any]:
    return cast(Any, message).additional_kwargs


class LangChainDialect:
    """Message objects of `langchain_core`, whatever model they are for; dicts with a role may be among them.

    The middleware uses it by itself; name it where you call the manager with such messages.

    Example:
        >>> from langchain_core.messages import HumanMessage
        >>> from compact import CompactManager
        >>> from compact.adapters.langchain import LangChainDialect
        >>> messages = [HumanMessage("Hello")]
        >>> CompactManager().preflight("chat-1", messages, dialect=LangChainDialect())[0].content
        'Hello'
    """

    name = "langchain"

    def recognises(self, item: object) -> bool | None:
        """Return True for LangChain's own messages, which no other dialect has, None for dicts that it takes, too."""
        return True if isinstance(item, BaseMessage) else None if _is_chat_dict(item) else False

    def read(self, items: Sequence[Any], place: int) -> Iterator[Block]:
        """Yield one entry for each message."""
        for number, item in enumerate(items, place):
            if _is_chat_dict(item):
                yield Block((item,), (item,))
            elif isinstance(item, BaseMessage) and _kind(item) in (*_ROLES, "chat"):
                yield Block((item,), (_entry(item),))
            else:
                raise foreign(item, number, self.name)

    def write(self, entries: Sequence[Entry]) -> Iterator[Block]:
        """Yield each entry as the kind of message it was, or as a new message."""
        return (Block((_message(entry),), (entry,)) for entry in entries)

    def join(self, blocks: Sequence[Block]) -> Sequence[Block]:
        """Have a prompt begin with the user, and no system message of ours after the first other message.

        One list of messages may go to any provider, so the rules of the strictest hold.
        """
        joined: list[Block] = []
        has_begun = False
        for block in blocks:
            message = block.items[0] if block.items else None
            if not has_begun and not _is_instruction(message):
                has_begun = True
                if not _is_users(message):
                    joined.append(Block((HumanMessage(OPENING),), ()))
            is_ours = bool(block.entries) and NATIVE not in block.entries[0]
            if has_begun and is_ours and isinstance(message, SystemMessage):
                block = Block((HumanMessage(_content_of(message)),), block.entries)
            joined.append(block)
        return joined

    def check(self, items: Sequence[Any]) -> tuple[Violation, ...]:
        """Return what no provider would take: calls and results that do not pair, empty messages, our mark."""
        marks = (
            Violation("unknown_key", place, f"additional_kwargs has {MARK!r}")
            for place, item in enumerate(items)
            if isinstance(item, BaseMessage) and MARK in _extra_of(item)
        )
        entries = [entry for block in self.read(items, 0) for entry in block.entries]
        messages = [read_entry(entry, f"messages[{place}]") for place, entry in enumerate(entries)]
        return (*marks, *check_chat(messages))


def _is_chat_dict(item: object) -> bool:
    """Return True for a message of Chat Completions, which LangChain's models take, too."""
    if not is_mapping(item) or item.get("role") not in ROLES or "type" in item:
        return False
    return isinstance(item.get("content"), str | list | None)


def _is_users(message: object) -> bool:
    return isinstance(message, HumanMessage) or (is_mapping(message) and message.get("role") == "user")


def _is_instruction(message: object) -> bool:
    if is_mapping(message):
        return message.get("role") in ("system", "developer")
    is_chat = isinstance(message, ChatMessage) and message.role in ("system", "developer")
    return is_chat or isinstance(message, SystemMessage)


def _kind(message: BaseMessage) -> str:
    """Return `human`, `ai`, …; for a chunk, the kind of message that it is a part of."""
    return message.type.removesuffix("MessageChunk").lower()


def _content_of(message: BaseMessage) -> Any:
    return cast(Any, message).content


# -- messages to entries ----------------------------------------------------------------------------------------------


def _entry(message: BaseMessage) -> Entry:
    kind = _kind(message)
    chat_role = message.role if isinstance(message, ChatMessage) else ""
    calls, native = _calls(message)
    content, layout = split_content(_content_of(message), calls)
    meta = _extra_of(message).get(MARK)
    native |= {"type": kind, "data": _native_fields(message)}
    if layout:
        native["layout"] = layout
    entry: Entry = {
        "role": _ROLES.get(kind) or (chat_role if chat_role in ROLES[:-1] else "user"),
        "content": _json_data(content),
    }
    if calls:
        entry["tool_calls"] = calls
    if isinstance(message, ToolMessage):
        entry["tool_call_id"] = message.tool_call_id
    elif message.name and kind != "function":
        entry["name"] = message.name
    return {**entry, **({META: dict(meta)} if is_mapping(meta) else {}), NATIVE: _json_data(native)}


def _native_fields(message: BaseMessage) -> dict[str, Any]:
    """Return all fields that are not in the entry, and not at their defaults."""
    keeps_name = isinstance(message, ToolMessage) or message.type == "function"
    excluded = _NOT_NATIVE | _CHUNK_FIELDS | ({"name"} if not keeps_name else set[str]())
    fields = message.model_dump(exclude=excluded, exclude_defaults=True)
    # The calls as the provider wrote them are in the entry, too, and what goes out is made from there.
    extra = without(fields.pop(_EXTRA, {}), MARK, "tool_calls")
    return {**fields, _EXTRA: extra} if extra else fields


def _calls(message: BaseMessage) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return the calls of a message in the log's form, and which of them have arguments that are no JSON."""
    if not isinstance(message, AIMessage):
        return [], {}
    calls = [_call(call, json.dumps(call["args"], ensure_ascii=False)) for call in message.tool_calls]
    broken = [call for call in message.invalid_tool_calls if call.get("id")]
    calls += [_call(call, call.get("args") or "") for call in broken]
    return calls, {"broken": {str(call["id"]): call.get("error") for call in broken}} if broken else {}


def _call(call: Mapping[str, Any], arguments: str) -> dict[str, Any]:
    function = {"name": call.get("name") or "", "arguments": arguments}
    return {"id": call.get("id") or "", "type": "function", "function": function}


def _json_data(value: Any) -> Any:
    """Return a value as JSON can hold it, because stores keep it as JSON."""
    try:
        json.dumps(value)
    except (TypeError, ValueError):
        return to_jsonable_python(value, bytes_mode="base64", fallback=repr)
    return value


# -- entries to messages ----------------------------------------------------------------------------------------------


def _message(entry: Entry) -> BaseMessage:
    native = entry.get(NATIVE)
    role = entry["role"]
    if not _is_own(native) or _ROLES.get(native["type"], role) != role:
        return _new_message(entry)
    data: dict[str, Any] = {**native["data"], "content": join_content(entry, native.get("layout"))}
    if native["type"] == "ai":
        data |= _written_calls(entry, native.get("broken", {}))
    if native["type"] == "tool":
        data["tool_call_id"] = entry["tool_call_id"]
    if "name" in entry:
        data["name"] = entry["name"]
    if META in entry:
        data[_EXTRA] = {**data.get(_EXTRA, {}), MARK: entry[META]}
    return messages_from_dict([{"type": native["type"], "data": data}])[0]


def _is_own(native: Any) -> TypeGuard[Mapping[str, Any]]:
    """Return True for what this dialect keeps of a message; a session may have been in another one before."""
    return is_mapping(native) and native.get("type") in (*_ROLES, "chat") and is_mapping(native.get("data"))


def _new_message(entry: Entry) -> BaseMessage:
    """Return a message for an entry that we made: a summary is a user message, because some providers want it so."""
    content: Any = entry.get("content") or ""
    match entry["role"]:
        case "tool":
            return ToolMessage(content, tool_call_id=entry["tool_call_id"])
        case "system" | "developer":
            return SystemMessage(content)
        case "assistant" if entry.get("tool_calls") or NATIVE in entry:
            return AIMessage(content, **_written_calls(entry, {}))
        case _:
            return HumanMessage(content)


def _written_calls(entry: Entry, broken: Mapping[str, Any]) -> dict[str, Any]:
    valid: list[dict[str, Any]] = []
    invalid: list[dict[str, Any]] = []
    for call in entry.get("tool_calls") or ():
        call_id, name, arguments = call["id"], call["function"]["name"], call["function"]["arguments"]
        parsed = None if call_id in broken else _parse_json(arguments or "{}")
        if is_mapping(parsed):
            valid.append({"name": name, "args": dict(parsed), "id": call_id, "type": "tool_call"})
        else:
            error = broken.get(call_id)
            invalid.append({"name": name, "args": arguments, "id": call_id, "error": error, "type": _INVALID_CALL})
    return {"tool_calls": valid, "invalid_tool_calls": invalid}


_INVALID_CALL = "invalid_tool_call"


def _parse_json(text: str, default: Any = None) -> Any:
    """Return what a text says as JSON, or the default if it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return default


# -- content: blocks that repeat a tool call are taken out of it, and put back ----------------------------------------

# Blocks that repeat a tool call of the message, and the keys of their arguments: as data, or as JSON text.
_CALL_BLOCKS = frozenset({"tool_use", "function_call", "tool_call"})
_DATA_KEYS = ("input", "args")
_TEXT_KEYS = ("arguments", "partial_json")
_STRING = "str"  # stands in a layout for a block that is a bare string


def split_content(content: Any, calls: Sequence[dict[str, Any]]) -> tuple[Any, list[Any]]:
    """Return content without blocks that repeat a call, and its layout; an empty layout if it is as it came.

    A call keeps the very text of its arguments that a block has, so that the block can be made from it.
    """
    if not isinstance(content, list):
        return content, []
    by_id = {call["id"]: call for call in calls if call["id"]}
    parts: list[Any] = []
    layout: list[Any] = []
    for block in cast(list[Any], content):
        call = by_id.get(_call_id(block))
        if isinstance(block, str):
            parts.append({"type": "text", "text": block})
            layout.append(_STRING)
        elif call:
            keys = [key for key in (*_DATA_KEYS, *_TEXT_KEYS) if key in block]
            layout.append({"block": _without_arguments(block, call), "has": keys})
        else:
            parts.append(block)
            layout.append(None)
    return parts, layout if any(layout) else []


def join_content(entry: Entry, layout: Sequence[Any] | None) -> Any:
    """Return the content of a message from its entry; content that was replaced as a whole is itself."""
    content: Any = entry.get("content")
    if content is None:
        content = "" if not layout else list[Any]()
    parts = list(content) if is_list(content) else None
    if not layout or parts is None or len(parts) != sum(not is_mapping(place) for place in layout):
        return content if parts is None else parts
    calls = {call["id"]: call["function"]["arguments"] for call in entry.get("tool_calls") or ()}
    joined: list[Any] = []
    rest = iter(parts)
    for place in layout:
        if is_mapping(place):
            block = place["block"]
            if (arguments := calls.get(_call_id(block))) is not None:
                joined.append(_with_arguments(block, place["has"], arguments))
        else:
            part = next(rest)
            joined.append(part["text"] if place == _STRING and is_mapping(part) else part)
    return joined


def _call_id(block: object) -> str:
    if not is_mapping(block) or block.get("type") not in _CALL_BLOCKS:
        return ""
    return str(block.get("call_id") or block.get("id") or "")


def _without_arguments(block: Mapping[str, Any], call: dict[str, Any]) -> dict[str, Any]:
    function = call["function"]
    for key in _TEXT_KEYS:
        text = block.get(key)
        if isinstance(text, str) and _is_same_json(text, function["arguments"]):
            function["arguments"] = text
    return without(block, *_DATA_KEYS, *_TEXT_KEYS)


def _with_arguments(block: Mapping[str, Any], keys: Sequence[str], arguments: str) -> dict[str, Any]:
    values: dict[str, Any] = {key: arguments for key in keys if key in _TEXT_KEYS}
    values |= {key: _parse_json(arguments or "{}", {}) for key in keys if key in _DATA_KEYS}
    return {**block, **values}


def _is_same_json(one: str, other: str) -> bool:
    try:
        return json.loads(one) == json.loads(other)
    except (ValueError, RecursionError):
        return one == other
