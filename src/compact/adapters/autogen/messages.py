"""AutoGen's messages, as plain data, as a dialect: one message holds all results of a turn."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from autogen_core.models import LLMMessage
from pydantic import TypeAdapter

from compact.adapters.support.chat_messages import ChatMessagesDialect, entry_text
from compact.core.json_data import is_list, is_mapping
from compact.dialects.dialect import NATIVE, Block, Entry, foreign, native_of
from compact.dialects.turns import FunctionCall, read_calls, write_call

_SYSTEM, _USER, _ASSISTANT = "SystemMessage", "UserMessage", "AssistantMessage"
_RESULTS = "FunctionExecutionResultMessage"
_IMAGE_URL = "data:image/png;base64,"  # what AutoGen makes of all its images
_ADAPTER: TypeAdapter[Any] = TypeAdapter(cast(Any, LLMMessage))


def message_data(message: Any) -> dict[str, Any]:
    """Return a message of AutoGen as data."""
    return message.model_dump(mode="json")


def message_of(data: Mapping[str, Any]) -> Any:
    """Return the message of AutoGen that data stand for."""
    return _ADAPTER.validate_python(dict(data))


class AutoGenDialect(ChatMessagesDialect):
    """Reads and writes `autogen_core.models.LLMMessage`, as data.

    The wrapped client uses it by itself; name it where you call the manager with such messages.

    Example:
        >>> from autogen_core.models import UserMessage
        >>> from compact import CompactManager
        >>> from compact.adapters.autogen import AutoGenDialect
        >>> messages = [UserMessage(content="Hello", source="user").model_dump(mode="json")]
        >>> CompactManager().preflight("chat-1", messages, dialect=AutoGenDialect()) == messages
        True
    """

    name = "autogen"
    joins_results = True

    def read(self, items: Sequence[Any], place: int) -> Iterator[Block]:
        """Yield one block for each message; the results of a turn are several entries."""
        for number, item in enumerate(items, place):
            if not is_mapping(item) or item.get("type") not in (_SYSTEM, _USER, _ASSISTANT, _RESULTS):
                raise foreign(item, number, self.name)
            yield Block((item,), tuple(_entries(item)))

    def _item_of(self, entries: Sequence[Entry]) -> dict[str, Any]:
        """Return the message that one entry, or the results of one turn, come to."""
        entry = entries[0]
        native = native_of(entry)
        match entry["role"]:
            case "tool":
                return {"type": _RESULTS, "content": [_result(one) for one in entries]}
            case "assistant":
                calls = [{"id": call.id, "name": call.name, "arguments": call.arguments} for call in read_calls(entry)]
                text = entry_text(entry)
                thought = (text or None) if calls else native.get("thought")
                source = native.get("source", "assistant")
                return {"type": _ASSISTANT, "content": calls or text, "thought": thought, "source": source}
            case "system" | "developer":
                return {"type": _SYSTEM, "content": entry_text(entry)}
            case _:
                content = entry.get("content")
                own = list(map(_own_part, content)) if is_list(content) else content or ""
                return {"type": _USER, "content": own, "source": native.get("source", "user")}


def _entries(item: Mapping[str, Any]) -> Iterator[Entry]:
    kind, content = item["type"], item.get("content")
    if kind == _RESULTS:
        for result in cast(Sequence[Mapping[str, Any]], content or ()):
            native = {"name": result.get("name") or "", "is_error": result.get("is_error")}
            yield {"role": "tool", "tool_call_id": result["call_id"], "content": result["content"], NATIVE: native}
    elif kind == _ASSISTANT and is_list(content):
        calls = [write_call(FunctionCall(call["id"], call["name"], call["arguments"])) for call in content]
        native = {"source": item["source"]}
        yield {"role": "assistant", "content": item.get("thought"), "tool_calls": calls, NATIVE: native}
    elif kind == _ASSISTANT:
        native = {"source": item["source"], "thought": item.get("thought")}
        yield {"role": "assistant", "content": content, NATIVE: native}
    elif kind == _SYSTEM:
        yield {"role": "system", "content": content, NATIVE: {"type": kind}}
    else:
        parts = list(map(_part, content)) if is_list(content) else content
        yield {"role": "user", "content": parts, NATIVE: {"source": item["source"]}}


def _result(entry: Entry) -> dict[str, Any]:
    native = native_of(entry)
    return {
        "content": entry_text(entry),
        "name": native.get("name", ""),
        "call_id": entry["tool_call_id"],
        "is_error": native.get("is_error"),
    }


def _part(part: Any) -> dict[str, Any]:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    return {"type": "image_url", "image_url": {"url": f"{_IMAGE_URL}{part['data']}"}}


def _own_part(part: Mapping[str, Any]) -> Any:
    if part.get("type") == "image_url":
        return {"data": part["image_url"]["url"].removeprefix(_IMAGE_URL)}
    return str(part.get("text") or "")
