"""Content blocks of Converse as parts of an entry, which can be stored as JSON, and parts as blocks again."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from compact.core.json_data import is_list, is_mapping
from compact.dialects.dialect import NATIVE, from_json, to_json, without

Part: TypeAlias = dict[str, Any]
WireBlock: TypeAlias = dict[str, Any]

CALL, RESULT, REASONING, MARK = "toolUse", "toolResult", "reasoningContent", "cachePoint"
# What stands in the content of an assistant's message; all other blocks (reasoning, marks of the cache) are opaque.
CONTENT_BLOCKS = frozenset(
    {"text", "image", "document", "video", "audio", "guardContent", "citationsContent", "searchResult"}
)
BLOCKS = CONTENT_BLOCKS | {CALL, RESULT, REASONING, MARK}
# With this type, a call and its result are the work of the provider: both stand in the assistant's message.
_SERVED = "server_tool_use"


def is_call(block: Mapping[str, Any]) -> bool:
    """Return True for a call that the application answers."""
    return is_mapping(block.get(CALL)) and block[CALL].get("type") != _SERVED


def content_of(blocks: Sequence[WireBlock]) -> str | list[Part] | None:
    """Return blocks as the content of an entry: one plain text as it is, nothing as None."""
    parts = [to_part(block) for block in blocks]
    if len(parts) == 1 and set(parts[0]) == {"type", "text"} and parts[0]["text"]:
        return parts[0]["text"]
    return parts or None


def blocks_of(content: object) -> list[WireBlock]:
    """Return the content of an entry as blocks, whoever wrote it; a text that says nothing is none."""
    if isinstance(content, str):
        return [{"text": content}] if content.strip() else []
    if content is None:
        return []
    return [to_block(part) for part in (content if is_list(content) else [content])]


def to_part(block: WireBlock) -> Part:
    """Return one block as a part: what the model reads as text, the rest so that it can be stored as JSON."""
    if isinstance(text := block.get("text"), str):
        return _with_native({"type": "text", "text": text}, without(block, "text"))
    kind = next(iter(block), "")
    write = _PARTS.get(kind) if len(block) == 1 else None
    part = write(block[kind]) if write and is_mapping(block[kind]) else None
    return part or _json_part(block) or {"type": "block", "block": to_json(block)}


def to_block(part: object) -> WireBlock:
    """Return one part as a block; parts that another dialect made become text."""
    if not is_mapping(part):
        return {"text": str(part)}
    read = _BLOCKS.get(str(part.get("type")))
    return read(part) if read else _others_block(part)


def _others_block(part: Mapping[str, Any]) -> WireBlock:
    return {"text": part["text"]} if isinstance(part.get("text"), str) else {"text": json.dumps(part, default=str)}


def _with_native(part: Part, native: Mapping[str, Any]) -> Part:
    return {**part, NATIVE: to_json(native)} if native else part


def _native(part: Mapping[str, Any]) -> dict[str, Any]:
    return from_json(part.get(NATIVE) or {})


def _json_part(block: WireBlock) -> Part | None:
    """Return data of a tool as text, which it is to the model."""
    if set(block) != {"json"}:
        return None
    return {"type": "text", "text": json.dumps(block["json"], ensure_ascii=False), NATIVE: {"is_json": True}}


def _text_block(part: Mapping[str, Any]) -> WireBlock:
    native = _native(part)
    if native.pop("is_json", False):
        try:
            return {"json": json.loads(part["text"])}
        except (ValueError, RecursionError):  # it was cut: no data any more, but still a text
            return {"text": part["text"]}
    return {"text": part["text"], **native}


def _thinking_part(reasoning: Mapping[str, Any]) -> Part | None:
    """Return reasoning as Anthropic writes it, which is how it is counted."""
    text, redacted = reasoning.get("reasoningText"), reasoning.get("redactedContent")
    if set(reasoning) == {"redactedContent"} and isinstance(redacted, bytes):
        return {"type": "redacted_thinking", "data": base64.b64encode(redacted).decode()}
    if set(reasoning) != {"reasoningText"} or not is_mapping(text) or not isinstance(text.get("text"), str):
        return None
    return {"type": "thinking", "thinking": text["text"], **without(text, "text")}


def _thinking_block(part: Mapping[str, Any]) -> WireBlock:
    rest = without(part, "type", "thinking")
    return {REASONING: {"reasoningText": {"text": part["thinking"], **rest}}}


def _redacted_block(part: Mapping[str, Any]) -> WireBlock:
    return {REASONING: {"redactedContent": base64.b64decode(part["data"])}}


def _image_part(image: Mapping[str, Any]) -> Part | None:
    source = image.get("source")
    if not is_mapping(source) or not isinstance(source.get("bytes"), bytes):
        return None
    data = base64.b64encode(source["bytes"]).decode()
    return _with_native({"type": "image", "source": {"data": data}}, without(image, "source"))


def _image_block(part: Mapping[str, Any]) -> WireBlock:
    source = part.get("source")
    if not is_mapping(source) or not isinstance(source.get("data"), str):
        return _others_block(part)
    return {"image": {**_native(part), "source": {"bytes": base64.b64decode(source["data"])}}}


def _cited_part(cited: Mapping[str, Any]) -> Part | None:
    """Return an answer with citations; its text is among the parts, where it can be read and searched."""
    return _with_native(
        {"type": "citationsContent", "content": to_json(cited.get("content"))}, without(cited, "content")
    )


def _cited_block(part: Mapping[str, Any]) -> WireBlock:
    return {"citationsContent": {**_native(part), "content": from_json(part["content"])}}


def _any_block(part: Mapping[str, Any]) -> WireBlock:
    return from_json(part["block"])


_PARTS: Mapping[str, Callable[[Mapping[str, Any]], Part | None]] = {
    REASONING: _thinking_part,
    "image": _image_part,
    "citationsContent": _cited_part,
}
_BLOCKS: Mapping[str, Callable[[Mapping[str, Any]], WireBlock]] = {
    "text": _text_block,
    "thinking": _thinking_block,
    "redacted_thinking": _redacted_block,
    "image": _image_block,
    "citationsContent": _cited_block,
    "block": _any_block,
}
