"""LangChain's messages as a dialect: each message is one entry, and rebuilt as the kind of message it was."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

from compact.core.log.entries import read_entry

try:
    from langchain_core.messages import (
        AIMessage,
        BaseMessage,
        ChatMessage,
        HumanMessage,
        SystemMessage,
        ToolMessage,
        messages_from_dict,
    )
except ImportError as error:
    hint = 'hint: pip install "compact-context[langchain]"'
    raise ImportError(f"the LangChain adapter needs the package langchain\n{hint}") from error

from pydantic_core import to_jsonable_python

from compact.adapters.langchain_content import join_content, split_content
from compact.core.log.legality import Violation, check_chat
from compact.core.log.messages import ROLES
from compact.dialects.dialect import NATIVE, Block, Entry, foreign, without
from compact.dialects.translation import META

# The place in `additional_kwargs` where a message says what is ours: {"compact": {"protected": True}}.
MARK = "compact"
# Where a prompt would begin with the model's own words, which several providers reject.
OPENING = "[earlier parts of this conversation were left out]"

_ROLES = {"human": "user", "ai": "assistant", "system": "system", "tool": "tool", "function": "user"}
# What an entry has in fields of its own, and what no model ever reads: usage, and results meant for programs.
_NOT_NATIVE = {"content", "type", "tool_calls", "invalid_tool_calls", "tool_call_id", "usage_metadata", "artifact"}
_CHUNK_FIELDS = {"tool_call_chunks", "chunk_position"}
_EXTRA = "additional_kwargs"

M = TypeVar("M", bound=BaseMessage)


def protected(message: M) -> M:
    """A copy of a message that no compaction will touch."""
    return _marked(message, {**message.additional_kwargs.get(MARK, {}), "protected": True})


def without_mark(message: M) -> M:
    """The message as a provider may see it: itself, or a copy without what is ours."""
    return _marked(message, {}) if MARK in message.additional_kwargs else message


def _marked(message: M, meta: Mapping[str, Any]) -> M:
    kept = {key: value for key, value in message.additional_kwargs.items() if key != MARK}
    return message.model_copy(update={"additional_kwargs": {**kept, **({MARK: dict(meta)} if meta else {})}})


class LangChainDialect:
    """Message objects of `langchain_core`, whatever model they are for."""

    name = "langchain"

    def recognises(self, item: object) -> bool | None:
        """Its messages are nobody else's."""
        return isinstance(item, BaseMessage)

    def read(self, items: Sequence[Any], place: int) -> Iterator[Block]:
        """Each message is its own entry."""
        for number, item in enumerate(items, place):
            if not isinstance(item, BaseMessage) or _kind(item) not in (*_ROLES, "chat"):
                raise foreign(item, number, self.name)
            yield Block((item,), (_entry(item),))

    def write(self, entries: Sequence[Entry]) -> Iterator[Block]:
        """Each entry as the kind of message it was, or as a new one."""
        return (Block((_message(entry),), (entry,)) for entry in entries)

    def join(self, blocks: Sequence[Block]) -> Sequence[Block]:
        """No system message of ours behind the first others, and a prompt that begins with the user.

        One list of messages goes to any provider, so the rules of the strictest hold.
        """
        joined: list[Block] = []
        has_begun = False
        for block in blocks:
            message = block.items[0] if block.items else None
            if not has_begun and not _is_instruction(message):
                has_begun = True
                if not isinstance(message, HumanMessage):
                    joined.append(Block((HumanMessage(OPENING),), ()))
            is_ours = bool(block.entries) and NATIVE not in block.entries[0]
            if has_begun and is_ours and isinstance(message, SystemMessage):
                block = Block((HumanMessage(message.content),), block.entries)
            joined.append(block)
        return joined

    def check(self, items: Sequence[Any]) -> tuple[Violation, ...]:
        """What no provider would take: calls and results that do not pair, nothing said, a mark of ours."""
        marks = (
            Violation("unknown_key", place, f"additional_kwargs has {MARK!r}")
            for place, item in enumerate(items)
            if isinstance(item, BaseMessage) and MARK in item.additional_kwargs
        )
        read = read_entry
        entries = [entry for block in self.read(items, 0) for entry in block.entries]
        return (*marks, *check_chat([read(entry, f"messages[{place}]") for place, entry in enumerate(entries)]))


def _is_instruction(message: object) -> bool:
    is_chat = isinstance(message, ChatMessage) and message.role in ("system", "developer")
    return is_chat or isinstance(message, SystemMessage)


def _kind(message: BaseMessage) -> str:
    """`human`, `ai`, …; a chunk is the message it is a part of."""
    return message.type.removesuffix("MessageChunk").lower()


def _entry(message: BaseMessage) -> Entry:
    kind = _kind(message)
    chat_role = message.role if isinstance(message, ChatMessage) else ""
    calls, native = _calls(message)
    content, layout = split_content(message.content, calls)
    meta = message.additional_kwargs.get(MARK)
    native |= {"type": kind, "data": _fields(message)}
    if layout:
        native["layout"] = layout
    entry: Entry = {
        "role": _ROLES.get(kind) or (chat_role if chat_role in ROLES[:-1] else "user"),
        "content": _plain(content),
    }
    if calls:
        entry["tool_calls"] = calls
    if isinstance(message, ToolMessage):
        entry["tool_call_id"] = message.tool_call_id
    elif message.name and kind != "function":
        entry["name"] = message.name
    return {**entry, **({META: dict(meta)} if isinstance(meta, Mapping) else {}), NATIVE: _plain(native)}


def _fields(message: BaseMessage) -> dict[str, Any]:
    """Everything that is not in the entry, and not its default."""
    out = _NOT_NATIVE | _CHUNK_FIELDS | (set() if isinstance(message, ToolMessage) else {"name"})
    if message.type == "function":
        out -= {"name"}
    fields = message.model_dump(exclude=out, exclude_defaults=True)
    # The calls as the provider wrote them are in the entry, too, and what goes out is made from there.
    extra = without(fields.pop(_EXTRA, {}), MARK, "tool_calls")
    return {**fields, _EXTRA: extra} if extra else fields


def _calls(message: BaseMessage) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The calls of a message in the log's form; those whose arguments are no JSON stay as they are, and are named."""
    if not isinstance(message, AIMessage):
        return [], {}
    calls = [_call(call, json.dumps(call["args"], ensure_ascii=False)) for call in message.tool_calls]
    broken = [call for call in message.invalid_tool_calls if call.get("id")]
    calls += [_call(call, call.get("args") or "") for call in broken]
    return calls, {"broken": {str(call["id"]): call.get("error") for call in broken}} if broken else {}


def _call(call: Mapping[str, Any], arguments: str) -> dict[str, Any]:
    function = {"name": call.get("name") or "", "arguments": arguments}
    return {"id": call.get("id") or "", "type": "function", "function": function}


def _plain(value: Any) -> Any:
    """The same as JSON can hold it, because stores keep it."""
    try:
        json.dumps(value)
    except (TypeError, ValueError):
        return to_jsonable_python(value, bytes_mode="base64", fallback=repr)
    return value


def _message(entry: Entry) -> BaseMessage:
    native = entry.get(NATIVE)
    role = entry["role"]
    if native is None or _ROLES.get(native["type"], role) != role:
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


def _new_message(entry: Entry) -> BaseMessage:
    """A message for what we made: the summary travels in a user's turn, as some providers want it."""
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
    good: list[dict[str, Any]] = []
    bad: list[dict[str, Any]] = []
    for call in entry.get("tool_calls") or ():
        call_id, name, arguments = call["id"], call["function"]["name"], call["function"]["arguments"]
        parsed = None if call_id in broken else _object(arguments)
        if parsed is None:
            error = broken.get(call_id)
            bad.append({"name": name, "args": arguments, "id": call_id, "error": error, "type": "invalid_tool_call"})
        else:
            good.append({"name": name, "args": parsed, "id": call_id, "type": "tool_call"})
    return {"tool_calls": good, "invalid_tool_calls": bad}


def _object(arguments: str) -> dict[str, Any] | None:
    try:
        parsed = json.loads(arguments or "{}")
    except ValueError:
        return None
    return parsed if isinstance(parsed, dict) else None
