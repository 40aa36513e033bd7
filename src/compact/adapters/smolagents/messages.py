"""smolagents' messages, as plain data, as a dialect.

Its agents tell a model what was called as text, in a message of the role `tool-call`, and what came of it in one of the
role `tool-response`. Such a pair is read as a call and its result, so that it is compacted like one.
"""

from __future__ import annotations

import ast
import base64
import io
import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from PIL import Image
from smolagents.models import ChatMessage, MessageRole  # pyright: ignore[reportMissingTypeStubs]
from smolagents.utils import encode_image_base64  # pyright: ignore

from compact.adapters.support.chat_messages import ChatMessagesDialect
from compact.core.json_data import is_list, is_mapping
from compact.dialects.dialect import NATIVE, Block, Entry, foreign, native_of
from compact.dialects.turns import AROUND_CALLS, FunctionCall, read_calls, write_call

_CALL, _RESULT = MessageRole.TOOL_CALL.value, MessageRole.TOOL_RESPONSE.value
_ROLES = {"system": "system", "user": "user", "assistant": "assistant", _CALL: "assistant", _RESULT: "user"}
_CALLING = "Calling tools:\n"
_PNG_URL = "data:image/png;base64,"
_PARSING = threading.Lock()


def message_data(message: Any) -> dict[str, Any]:
    """Return a message of smolagents, or a dict of its form, as data."""
    fields: Mapping[str, Any] = message if is_mapping(message) else cast(dict[str, Any], vars(message))
    content: object = fields.get("content")
    parts = [_json_part(part) for part in content] if is_list(content) else content
    return {"role": MessageRole(fields["role"]).value, "content": parts}


def message_of(data: Mapping[str, Any]) -> ChatMessage:
    """Return the message of smolagents that data stand for."""
    content = [_own_part(part) for part in cast(Sequence[Any], data["content"])]
    return ChatMessage(role=MessageRole(data["role"]), content=content)


class SmolagentsDialect(ChatMessagesDialect):
    """Reads and writes `smolagents.ChatMessage`, as data.

    The wrapped model uses it by itself; name it where you call the manager with such messages.

    Example:
        >>> from compact import CompactManager
        >>> from compact.adapters.smolagents import SmolagentsDialect
        >>> messages = [{"role": "user", "content": [{"type": "text", "text": "New task:\\nCount."}]}]
        >>> CompactManager().preflight("chat-1", messages, dialect=SmolagentsDialect()) == messages
        True
    """

    name = "smolagents"

    def read(self, items: Sequence[Any], place: int) -> Iterator[Block]:
        """Yield one block for each message, and one for a call with its result."""
        number = 0
        while number < len(items):
            item = items[number]
            if not is_mapping(item) or item.get("role") not in _ROLES:
                raise foreign(item, place + number, self.name)
            result = items[number + 1] if number + 1 < len(items) else None
            calling = _read_call(item) if is_mapping(result) and result.get("role") == _RESULT else None
            if calling and is_mapping(result):
                call_id = calling["tool_calls"][0]["id"]
                answer: Entry = {"role": "tool", "tool_call_id": call_id, "content": result["content"]}
                yield Block((item, result), (calling, {**answer, NATIVE: {"role": _RESULT}}))
            else:
                role = item["role"]
                yield Block(
                    (item,), ({"role": _ROLES[role], "content": item["content"] or "", NATIVE: {"role": role}},)
                )
            number += 2 if calling else 1

    def _item_of(self, entries: Sequence[Entry]) -> dict[str, Any]:
        """Return the message that an entry comes to; smolagents wants its content as a list of parts."""
        (entry,) = entries
        calls = list(read_calls(entry))
        if calls:
            return {"role": _CALL, "content": [{"type": "text", "text": _CALLING + str(list(map(_called, calls)))}]}
        content = entry.get("content") or ""
        parts = list(content) if is_list(content) else [{"type": "text", "text": content}]
        role = {"tool": _RESULT, "developer": "system"}.get(entry["role"], entry["role"])
        was = native_of(entry).get("role", role)
        return {"role": was if _ROLES.get(was) == entry["role"] else role, "content": parts}


def _read_call(item: Mapping[str, Any]) -> Entry | None:
    """Return what a message says was called; several calls have one result in smolagents, and are one call here.

    The text around names and arguments, ids included, is kept beside it: a model reads that, too, so it counts.
    """
    content = item.get("content")
    if item["role"] != _CALL or not is_list(content) or len(content) != 1:
        return None
    try:
        calls = _literal(str(content[0]["text"]).removeprefix(_CALLING))
        names = [str(call["function"]["name"]) for call in calls]
        arguments = [call["function"]["arguments"] for call in calls]
        call_id = str(calls[0]["id"])
        around = _CALLING + str([{**call, "function": {"name": "", "arguments": ""}} for call in calls])
    except (ValueError, SyntaxError, LookupError, TypeError, RecursionError, MemoryError):
        return None  # the text of somebody's own: it stays a message of the assistant
    given = arguments[0] if len(arguments) == 1 else arguments
    written = given if isinstance(given, str) else json.dumps(given, default=repr)
    call = write_call(FunctionCall(call_id, ", ".join(names), written))
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [call],
        NATIVE: {"role": _CALL, AROUND_CALLS: around},
    }


def _literal(text: str) -> Any:
    """Return the value that Python's own words stand for."""
    # In some versions of Python threads that parse at the same moment get a SystemError: python/cpython#106905. The
    # framework's own threads may parse, too.
    with _PARSING:
        try:
            return ast.literal_eval(text)
        except SystemError:
            return ast.literal_eval(text)


def _called(call: FunctionCall) -> dict[str, Any]:
    try:
        arguments = json.loads(call.arguments)
    except (ValueError, RecursionError):
        arguments = call.arguments
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}


def _json_part(part: Mapping[str, Any]) -> Mapping[str, Any]:
    if part.get("type") != "image" or isinstance(part.get("image"), str):
        return part
    return {"type": "image_url", "image_url": {"url": _PNG_URL + encode_image_base64(part["image"])}}


def _own_part(part: Mapping[str, Any]) -> dict[str, Any]:
    url = part["image_url"]["url"] if part.get("type") == "image_url" else ""
    if not url.startswith(_PNG_URL):
        return dict(part)
    return {"type": "image", "image": Image.open(io.BytesIO(base64.b64decode(url.removeprefix(_PNG_URL))))}
