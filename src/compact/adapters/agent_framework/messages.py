"""The messages of Microsoft Agent Framework as plain data, and that data as a dialect.

Its `Message` objects are annotated in place all the time and cannot be compared. So a message is read as plain data
(`message_data`), the dialect works on that, and what comes out unchanged is the caller's own object again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from agent_framework import Content, Message

from compact.adapters.support import call_positions, insert_calls
from compact.core.json_data import is_list, is_mapping
from compact.core.messages.entries import read_entry
from compact.core.messages.legality import Violation, check_chat
from compact.dialects.dialect import META, NATIVE, Block, Entry, foreign, without

Data: TypeAlias = dict[str, Any]
# The key in `additional_properties` under which a message is tagged; we do not touch the others.
TAGS = "compact"
# Marks, in stored entries, one that came in the same message as the entry before it.
_SAME_MESSAGE = "goes_on"
_CHAT_ROLES = ("system", "developer", "user", "assistant")


def protected(message: Message) -> Message:
    """Tag a message so that it always stays in the prompt, and return it; the tag never reaches a provider.

    Args:
        message: A message of the framework.

    Example:
        >>> from agent_framework import Message
        >>> from compact.adapters.agent_framework import protected
        >>> protected(Message("user", ["Never round a figure."])).additional_properties
        {'compact': {'protected': True}}
    """
    message.additional_properties[TAGS] = {**message.additional_properties.get(TAGS, {}), "protected": True}
    return message


def message_data(message: Message) -> Data:
    """Return a message as data, without ids, annotations and agents' names, which the framework adds as it goes."""
    data: Data = {"role": str(message.role), "contents": [_content_data(one.to_dict()) for one in message.contents]}
    if message.author_name and message.role == "user":
        data["author_name"] = message.author_name
    properties = {key: _json_data(value) for key, value in message.additional_properties.items() if key[:1] != "_"}
    return {**data, "additional_properties": properties} if properties else data


def message_of(data: Data) -> Message:
    """Return a message made of data."""
    return Message(
        data["role"],
        [Content.from_dict(one) for one in data["contents"]],
        author_name=data.get("author_name"),
        additional_properties=data.get("additional_properties"),
    )


def _content_data(data: Data) -> Data:
    return {key: _json_data(value) for key, value in data.items() if value or key != "additional_properties"}


def _json_data(value: Any) -> Any:
    """Return a value as JSON can hold it; what has no form there becomes text."""
    if value is None or isinstance(value, str | int | float):
        return value
    if is_mapping(value):
        return {str(key): _json_data(item) for key, item in value.items()}
    return [_json_data(item) for item in value] if is_list(value) else str(value)


@dataclass(frozen=True, slots=True)
class AgentFrameworkDialect:
    """The framework's messages as plain data: a role, and a list of contents.

    Provider, strategy and executors use it by themselves; name it where you call the manager with such data.

    Args:
        name: The name of the dialect in events and errors.

    Example:
        >>> from compact import CompactManager
        >>> from compact.adapters.agent_framework import AgentFrameworkDialect
        >>> messages = [{"role": "user", "contents": [{"type": "text", "text": "Hello"}]}]
        >>> CompactManager().preflight("chat-1", messages, dialect=AgentFrameworkDialect()) == messages
        True
    """

    name: str = "agent-framework"

    def recognises(self, item: object) -> bool | None:
        """Return True for what has a role and contents."""
        return is_mapping(item) and "role" in item and isinstance(item.get("contents"), list)

    def read(self, items: Sequence[Any], place: int) -> Iterator[Block]:
        """Yield a block for each message, with an entry for each result in it, and one for the rest."""
        for number, item in enumerate(items, place):
            if not self.recognises(item):
                raise foreign(item, number, self.name)
            yield Block((item,), tuple(_entries(item)))

    def write(self, entries: Sequence[Entry]) -> Iterator[Block]:
        """Yield a message for each entry; results that came in one message are one again."""
        block: Block | None = None
        for entry in entries:
            native: Data = entry.get(NATIVE) or {}
            message = _message(entry, native)
            if block and native.get(_SAME_MESSAGE) and block.items[0]["role"] == message["role"]:
                joined = {**block.items[0], "contents": block.items[0]["contents"] + message["contents"]}
                block = Block((joined,), (*block.entries, entry))
                continue
            if block:
                yield block
            block = Block((message,), (entry,))
        if block:
            yield block

    def join(self, blocks: Sequence[Block]) -> Sequence[Block]:
        """Return the blocks as they are: the framework's clients bring messages into the form of their provider."""
        return blocks

    def check(self, items: Sequence[Any]) -> tuple[Violation, ...]:
        """Return what no client could send: calls without results, results without calls, empty messages."""
        entries = [entry for block in self.read(items, 0) for entry in block.entries]
        return check_chat([read_entry(entry, f"messages[{place}]") for place, entry in enumerate(entries)])


def _entries(item: Data) -> Iterator[Entry]:
    contents: list[Data] = item["contents"]
    role = item["role"]
    fields = without(item, "role", "contents")
    meta = {META: tags} if (tags := item.get("additional_properties", {}).get(TAGS)) else {}
    if role == "assistant":
        calls = _open_calls(contents)
        rest = [one for one in contents if not any(one is call for call in calls)]
        native = {"message": fields, **call_positions(contents, calls)}
        tool_calls = {"tool_calls": [_call(one) for one in calls]} if calls else {}
        yield {"role": role, "content": _content(rest), **tool_calls, NATIVE: native, **meta}
        return
    results = [one for one in contents if one["type"] == "function_result"]
    rest = [one for one in contents if one["type"] != "function_result"]
    for number, one in enumerate(results):
        native = {"role": role, "result": _result_native(one)}
        native.update({_SAME_MESSAGE: True} if number else {"message": fields})
        content = _result_content(one)
        yield {"role": "tool", "tool_call_id": one.get("call_id") or "", "content": content, NATIVE: native, **meta}
    if rest or not results:
        native = {"message": fields} if not results else {_SAME_MESSAGE: True}
        if role not in _CHAT_ROLES:
            native["role"] = role
        chat_role = role if role in _CHAT_ROLES else "user"
        yield {"role": chat_role, "content": _content(rest), NATIVE: native, **meta}


def _open_calls(contents: Sequence[Data]) -> list[Data]:
    """Return the calls that the agent must answer: not those that a service has run itself."""
    answered = {one.get("call_id") for one in contents if one["type"] == "function_result"}
    return [
        one
        for one in contents
        if one["type"] == "function_call"
        and not (one.get("hosted") or one.get("informational_only") or one.get("call_id") in answered)
    ]


def _call(one: Data) -> Entry:
    arguments = one.get("arguments")
    native = {"content": without(one, "type", "call_id", "name", "arguments"), "is_text": isinstance(arguments, str)}
    written = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    function = {"name": one.get("name") or "", "arguments": written}
    return {"id": one.get("call_id") or "", "type": "function", "function": function, NATIVE: native}


def _call_content(call: Mapping[str, Any]) -> Data:
    native: Data = call.get(NATIVE) or {}
    arguments = call["function"]["arguments"]
    if native and not native["is_text"]:
        arguments = json.loads(arguments or "{}")
    written = {"call_id": call["id"], "name": call["function"]["name"], "arguments": arguments}
    if arguments is None:
        del written["arguments"]
    return {"type": "function_call", **written, **native.get("content", {})}


def _content(contents: Sequence[Data]) -> str | list[Data] | None:
    parts = [_part(one) for one in contents]
    if len(parts) == 1 and set(parts[0]) == {"type", "text"}:
        return parts[0]["text"]
    return parts or None


def _part(one: Data) -> Data:
    """Return one content as a part: text where the model reads text, images where it sees them, the rest as it is."""
    match one["type"], one.get("text"), one.get("uri"):
        case "text", str(text), _:
            part = {"type": "text", "text": text}
        case "text_reasoning", str(text), _:
            part = {"type": "thinking", "thinking": text}
        case "text_reasoning", _, _:
            return {"type": "reasoning", "content": [one]}
        case "data" | "uri", _, str(uri) if str(one.get("media_type", "")).startswith("image/"):
            rest = without(one, "uri")
            return {"type": "image_url", "image_url": {"url": uri}, NATIVE: rest}
        case _:
            return {"type": "content", "value": one}
    rest = without(one, "type", "text")
    return {**part, NATIVE: rest} if rest else part


def _contents(content: object) -> list[Data]:
    """Return the contents that an entry's content stands for."""
    if content is None:
        return []
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [_content_of(part) for part in content] if is_list(content) else []


def _content_of(part: Mapping[str, Any]) -> Data:
    native: Data = part.get(NATIVE) or {}
    match part.get("type"):
        case "thinking":
            return {"type": "text_reasoning", "text": part["thinking"], **native}
        case "reasoning" if isinstance(part.get("content"), list):
            return part["content"][0]
        case "image_url" if native:
            return {**native, "uri": part["image_url"]["url"]}
        case "content":
            return part["value"]
        case _:
            text = part.get("text")
            return {"type": "text", "text": text if isinstance(text, str) else json.dumps(part), **native}


def _result_native(one: Data) -> Data:
    native = without(one, "type", "call_id", "result", "items")
    shape = "items" if one.get("items") is not None else "text" if isinstance(one.get("result"), str) else "data"
    return {"content": native, "shape": shape}


def _result_content(one: Data) -> str | list[Data]:
    if one.get("items") is not None:
        content = _content(one["items"])
        return "" if content is None else content
    result = one.get("result")
    return result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)


def _result(entry: Entry, native: Mapping[str, Any]) -> Data:
    """Return a result with what the entry holds now: the answer itself, or a stub that stands for it."""
    shape = native.get("shape", "items")
    content = entry.get("content")
    answer: Data = {"type": "function_result", "call_id": entry.get("tool_call_id"), **native.get("content", {})}
    if shape == "data" and isinstance(content, str):
        try:
            value = json.loads(content)
        except ValueError:  # a stub
            value = content
        return answer if value is None else {**answer, "result": value}
    items = _contents(content)
    texts = [one["text"] for one in items if one["type"] == "text" and one["text"]]
    answer["result"] = "\n".join(texts)
    return {**answer, "items": items} if shape == "items" else answer


def _message(entry: Entry, native: Mapping[str, Any]) -> Data:
    fields = native.get("message", {})
    if entry["role"] == "tool":
        return {"role": native.get("role", "tool"), "contents": [_result(entry, native.get("result", {}))], **fields}
    contents = _contents(entry.get("content"))
    calls = [_call_content(call) for call in entry.get("tool_calls") or ()]
    if entry["role"] != "assistant" or (NATIVE not in entry and not calls):
        # A summary is a user message: some providers want a conversation to begin with one.
        role = native.get("role", "user" if entry["role"] == "assistant" else entry["role"])
        return {"role": role, "contents": contents, **fields}
    return {"role": "assistant", "contents": insert_calls(contents, calls, native), **fields}
