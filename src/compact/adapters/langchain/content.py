"""The content of LangChain's messages: tool calls that stand in it too are taken out, and put back."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from compact.dialects.dialect import Entry, without

# Blocks that repeat a tool call of the message, and where their arguments are: as data, or as JSON text.
_CALL_BLOCKS = frozenset({"tool_use", "function_call", "tool_call"})
_DATA = ("input", "args")
_TEXT = ("arguments", "partial_json")
_STR = "str"


def split_content(content: Any, calls: Sequence[dict[str, Any]]) -> tuple[Any, list[Any]]:
    """Content without blocks that repeat a call, and how to put it together again; nothing if it is as it came.

    A call keeps the very text of its arguments that a block has, so that the block can be made from it.
    """
    if not isinstance(content, list):
        return content, []
    by_id = {call["id"]: call for call in calls if call["id"]}
    parts: list[Any] = []
    layout: list[Any] = []
    for block in content:
        call = by_id.get(_call_id(block))
        if isinstance(block, str):
            parts.append({"type": "text", "text": block})
            layout.append(_STR)
        elif call:
            layout.append({"block": _emptied(block, call), "has": [key for key in (*_DATA, *_TEXT) if key in block]})
        else:
            parts.append(block)
            layout.append(None)
    return parts, layout if any(layout) else []


def join_content(entry: Entry, layout: Sequence[Any] | None) -> Any:
    """The content of a message from its entry; where that was changed as a whole, the calls alone repeat themselves."""
    content = entry.get("content")
    if content is None:
        content = "" if not layout else []
    parts = list(content) if isinstance(content, list | tuple) else None
    if not layout or parts is None or len(parts) != sum(not isinstance(place, Mapping) for place in layout):
        return content if parts is None else parts
    calls = {call["id"]: call["function"]["arguments"] for call in entry.get("tool_calls") or ()}
    joined: list[Any] = []
    rest = iter(parts)
    for place in layout:
        if isinstance(place, Mapping):
            block = place["block"]
            if (arguments := calls.get(_call_id(block))) is not None:
                joined.append(_filled(block, place["has"], arguments))
        else:
            part = next(rest)
            joined.append(part["text"] if place == _STR and isinstance(part, Mapping) else part)
    return joined


def _call_id(block: object) -> str:
    if not isinstance(block, Mapping) or block.get("type") not in _CALL_BLOCKS:
        return ""
    return str(block.get("call_id") or block.get("id") or "")


def _emptied(block: Mapping[str, Any], call: dict[str, Any]) -> dict[str, Any]:
    function = call["function"]
    for key in _TEXT:
        text = block.get(key)
        if isinstance(text, str) and _same(text, function["arguments"]):
            function["arguments"] = text
    return without(block, *_DATA, *_TEXT)


def _filled(block: Mapping[str, Any], has: Sequence[str], arguments: str) -> dict[str, Any]:
    values: dict[str, Any] = {key: arguments for key in has if key in _TEXT}
    for key in has:
        if key in _DATA:
            values[key] = _parsed(arguments)
    return {**block, **values}


def _parsed(arguments: str) -> Any:
    try:
        return json.loads(arguments or "{}")
    except ValueError:
        return {}


def _same(one: str, other: str) -> bool:
    try:
        return json.loads(one) == json.loads(other)
    except ValueError:
        return one == other
