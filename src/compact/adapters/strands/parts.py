"""The content blocks of Strands, which are Bedrock's, as parts of an entry; and parts as blocks again."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from compact.dialects.dialect import NATIVE, Entry, without

Part: TypeAlias = dict[str, Any]
WireBlock: TypeAlias = dict[str, Any]

_BYTES = "$bytes"


def content_of(blocks: Sequence[WireBlock]) -> str | list[Part] | None:
    """Blocks as the content of an entry: one plain text as it is, nothing as None."""
    parts = [to_part(block) for block in blocks]
    if len(parts) == 1 and set(parts[0]) == {"type", "text"}:
        return parts[0]["text"]
    return parts or None


def blocks_of(content: object) -> list[WireBlock]:
    """The content of an entry as blocks, whoever wrote it."""
    if content is None:
        return []
    if isinstance(content, str):
        return [{"text": content}]
    parts: Sequence[Any] = content if isinstance(content, list | tuple) else [content]
    return [to_block(part) for part in parts]


def to_part(block: WireBlock) -> Part:
    """One block as a part: what the model reads as text, the rest so that it can be stored as JSON."""
    if isinstance(text := block.get("text"), str):
        return _with_native({"type": "text", "text": text}, without(block, "text"))
    kind = next(iter(block), "")
    write = _PARTS.get(kind) if len(block) == 1 else None
    part = write(block[kind]) if write and isinstance(block[kind], Mapping) else None
    return part or _json_part(block) or {"type": "block", "block": to_json(block)}


def to_block(part: object) -> WireBlock:
    """One part as a block; parts of other makes become text."""
    if not isinstance(part, Mapping):
        return {"text": str(part)}
    kind = part.get("type")
    read = _BLOCKS.get(str(kind))
    if read:
        return read(part)
    return {"text": part["text"]} if isinstance(part.get("text"), str) else {"text": json.dumps(part, default=str)}


def to_json(value: Any) -> Any:
    """Data in which bytes are written as base64, so that a store can keep it."""
    if isinstance(value, bytes | bytearray):
        return {_BYTES: base64.b64encode(value).decode()}
    if isinstance(value, Mapping):
        return {key: to_json(item) for key, item in value.items()}
    return [to_json(item) for item in value] if isinstance(value, list | tuple) else value


def from_json(value: Any) -> Any:
    """The data that `to_json` was given."""
    if isinstance(value, Mapping):
        if set(value) == {_BYTES}:
            return base64.b64decode(value[_BYTES])
        return {key: from_json(item) for key, item in value.items()}
    return [from_json(item) for item in value] if isinstance(value, list | tuple) else value


def _with_native(part: Part, native: Mapping[str, Any]) -> Part:
    return {**part, NATIVE: to_json(native)} if native else part


def _native(part: Mapping[str, Any]) -> dict[str, Any]:
    return from_json(part.get(NATIVE) or {})


def _json_part(block: WireBlock) -> Part | None:
    """Data of a tool is text to the model."""
    if set(block) != {"json"}:
        return None
    return {"type": "text", "text": json.dumps(block["json"], ensure_ascii=False), NATIVE: {"is_json": True}}


def _text_block(part: Mapping[str, Any]) -> WireBlock:
    native = _native(part)
    if native.pop("is_json", False):
        try:
            return {"json": json.loads(part["text"])}
        except ValueError:  # it was cut: no data any more, but still a text
            return {"text": part["text"]}
    return {"text": part["text"], **native}


def _thinking_part(reasoning: Mapping[str, Any]) -> Part | None:
    """Reasoning as Anthropic writes it, which is how it is counted."""
    text = reasoning.get("reasoningText")
    if set(reasoning) == {"redactedContent"} and isinstance(reasoning["redactedContent"], bytes):
        return {"type": "redacted_thinking", "data": base64.b64encode(reasoning["redactedContent"]).decode()}
    if set(reasoning) != {"reasoningText"} or not isinstance(text, Mapping) or not isinstance(text.get("text"), str):
        return None
    return {"type": "thinking", "thinking": text["text"], **without(text, "text")}


def _thinking_block(part: Mapping[str, Any]) -> WireBlock:
    rest = {key: value for key, value in part.items() if key not in ("type", "thinking")}
    return {"reasoningContent": {"reasoningText": {"text": part["thinking"], **rest}}}


def _redacted_block(part: Mapping[str, Any]) -> WireBlock:
    return {"reasoningContent": {"redactedContent": base64.b64decode(part["data"])}}


def _image_part(image: Mapping[str, Any]) -> Part | None:
    source = image.get("source")
    if not isinstance(source, Mapping) or not isinstance(source.get("bytes"), bytes):
        return None
    data = base64.b64encode(source["bytes"]).decode()
    return _with_native({"type": "image", "source": {"data": data}}, without(image, "source"))


def _image_block(part: Mapping[str, Any]) -> WireBlock:
    return {"image": {**_native(part), "source": {"bytes": base64.b64decode(part["source"]["data"])}}}


def _cited_part(cited: Mapping[str, Any]) -> Part | None:
    """An answer with citations: its text is among the parts, where it can be read and searched."""
    return _with_native(
        {"type": "citationsContent", "content": to_json(cited.get("content"))}, without(cited, "content")
    )


def _cited_block(part: Mapping[str, Any]) -> WireBlock:
    return {"citationsContent": {**_native(part), "content": from_json(part["content"])}}


_PARTS: Mapping[str, Callable[[Any], Part | None]] = {
    "reasoningContent": _thinking_part,
    "image": _image_part,
    "citationsContent": _cited_part,
}
_BLOCKS: Mapping[str, Callable[[Mapping[str, Any]], WireBlock]] = {
    "text": _text_block,
    "thinking": _thinking_block,
    "redacted_thinking": _redacted_block,
    "image": _image_block,
    "citationsContent": _cited_block,
    "block": lambda part: from_json(part["block"]),
}


def call_of(use: Mapping[str, Any]) -> Entry:
    """A `toolUse` as a tool call."""
    call: Entry = {
        "id": use.get("toolUseId", ""),
        "type": "function",
        "function": {"name": use.get("name", ""), "arguments": json.dumps(use.get("input"), ensure_ascii=False)},
    }
    return _with_native(call, without(use, "toolUseId", "name", "input"))


def use_of(call: Mapping[str, Any]) -> WireBlock:
    """A tool call as a `toolUse`."""
    function = call["function"]
    try:
        arguments = json.loads(function["arguments"] or "{}")
    except ValueError:
        arguments = {"arguments": function["arguments"]}
    return {"toolUse": {"toolUseId": call["id"], "name": function["name"], "input": arguments, **_native(call)}}
