"""The one form the log has: Chat Completions messages, as dicts or as our own `Message`.

Fields that are not known here are passed through.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from compact.core.errors import InvalidHistory
from compact.core.json_data import is_mapping
from compact.core.messages.message import ROLES, Content, Message, ToolCall, copy_plain


def read_entry(item: object, place: str, *, is_settled: bool = False) -> Message:
    """Read one item of a caller's list; `place` names it in errors.

    The message has a copy of the original, unless that is settled: what the caller changes later cannot reach the log.
    """
    if isinstance(item, Message):
        _check_role(item.role, place)
        return replace(item, original=item)
    if not isinstance(item, Mapping):
        hint = "pass dicts in Chat Completions form, or compact.Message objects"
        raise InvalidHistory(f"expected a message, got {type(item).__name__}", place=place, hint=hint)
    fields = cast(Mapping[str, Any], item)
    return read_own_entry(fields if is_settled and isinstance(fields, dict) else _own_copy(fields, place), place)


def read_own_entry(original: dict[str, Any], place: str, *, message_id: str | None = None) -> Message:
    """Read an item that nobody else holds: it is not copied. `message_id` is its id, if it is not the item's own."""
    _check_role(original.get("role"), place)
    calls = _calls(original, place)
    return Message(
        role=original["role"],
        content=_content(original.get("content"), place),
        tool_calls=tuple(_tool_call(call, f"{place}.tool_calls[{n}]") for n, call in enumerate(calls)) if calls else (),
        tool_call_id=_text(original, "tool_call_id", place),
        name=_text(original, "name", place),
        id=(_text(original, "id", place) or "") if message_id is None else message_id,
        meta=_meta(original.get("meta"), place),
        original=original,
    )


def write_entry(message: Message, like: object) -> object:
    """Write a message that we made or changed, as a dict, or as a `Message` where `like` is one."""
    if isinstance(message.original, Message) or (message.original is None and isinstance(like, Message)):
        return replace(message, original=None)
    original = cast(dict[str, Any], message.original)
    wire: dict[str, Any] = copy_plain(original) if original else {}
    wire.update(role=message.role, content=_writable(message.content))
    _put(wire, "tool_call_id", message.tool_call_id)
    _put(wire, "name", message.name)
    if message.tool_calls:
        calls: list[dict[str, Any]] = wire.get("tool_calls") or [{}] * len(message.tool_calls)
        pairs = zip(message.tool_calls, calls, strict=True)
        wire["tool_calls"] = [_write_call(call, known) for call, known in pairs]
    return wire


def _own_copy(item: Mapping[str, Any], place: str) -> dict[str, Any]:
    try:
        return copy_plain(item if isinstance(item, dict) else dict(item))
    except RecursionError:
        raise too_deep(place) from None


def too_deep(place: str) -> InvalidHistory:
    """Return the error for an item that is nested so deeply that it cannot be copied."""
    return InvalidHistory("nested too deeply to be read", place=place, hint="flatten its content")


def _check_role(role: object, place: str) -> None:
    if role is None:
        raise InvalidHistory("the message has no role", place=place, hint=f"use one of {', '.join(ROLES)}")
    if role not in ROLES:
        raise InvalidHistory(f"unknown role {role!r}", place=f"{place}.role", hint=f"use one of {', '.join(ROLES)}")


def _content(content: object, place: str) -> Content:
    if content is None or isinstance(content, str):
        return content
    if not isinstance(content, Sequence):
        hint = "content is a string, a list of parts, or null"
        raise InvalidHistory(f"unexpected {type(content).__name__}", place=f"{place}.content", hint=hint)
    parts = cast(Sequence[object], content)
    return tuple(_part(part, f"{place}.content[{n}]") for n, part in enumerate(parts))


def _part(part: object, place: str) -> Mapping[str, Any]:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    if not isinstance(part, Mapping):
        raise InvalidHistory(f"unexpected {type(part).__name__}", place=place, hint="a content part is an object")
    return cast(Mapping[str, Any], part)


def _calls(original: Mapping[str, Any], place: str) -> Sequence[object]:
    calls = original.get("tool_calls") or ()
    if not isinstance(calls, list | tuple):
        raise InvalidHistory(f"unexpected {type(calls).__name__}", place=f"{place}.tool_calls", hint="use a list")
    return cast(Sequence[object], calls)


def _tool_call(call: object, place: str) -> ToolCall:
    if not isinstance(call, Mapping):
        raise InvalidHistory(f"unexpected {type(call).__name__}", place=place, hint="a tool call is an object")
    fields = cast(Mapping[str, Any], call)
    # Function tools nest their fields under "function", custom tools under "custom" with an "input".
    inner: object = fields.get("function") or fields.get("custom") or fields
    if not is_mapping(inner):
        raise InvalidHistory(f"unexpected {type(inner).__name__}", place=f"{place}.function", hint="use an object")
    arguments = inner.get("arguments", inner.get("input", ""))
    if not isinstance(arguments, str):
        try:
            arguments = json.dumps(arguments, ensure_ascii=False)
        except (TypeError, ValueError, RecursionError) as error:
            hint = "pass the arguments as JSON text"
            raise InvalidHistory(f"not JSON: {error}", place=f"{place}.arguments", hint=hint) from error
    return ToolCall(id=str(fields.get("id", "")), name=str(inner.get("name", "")), arguments=arguments)


def _text(original: Mapping[str, Any], key: str, place: str) -> str | None:
    value: object = original.get(key)
    if value is None or isinstance(value, str):
        return value
    raise InvalidHistory(f"expected text, got {type(value).__name__}", place=f"{place}.{key}")


def _meta(meta: object, place: str) -> Mapping[str, Any]:
    if meta is None:
        return {}
    if not isinstance(meta, Mapping):
        raise InvalidHistory(f"expected an object, got {type(meta).__name__}", place=f"{place}.meta")
    return cast(Mapping[str, Any], meta)


def _writable(content: Content) -> object:
    return list(content) if isinstance(content, tuple) else content


def _put(wire: dict[str, Any], key: str, value: str | None) -> None:
    if value is None:
        wire.pop(key, None)
    else:
        wire[key] = value


def _write_call(call: ToolCall, original: Mapping[str, Any]) -> dict[str, Any]:
    kind = "custom" if "custom" in original else "function"
    payload = {"input": call.arguments} if kind == "custom" else {"arguments": call.arguments}
    return {**original, "id": call.id, "type": kind, kind: {**original.get(kind, {}), "name": call.name, **payload}}
