"""Messages as Anthropic's API has them, which several agents write into their logs."""

from __future__ import annotations

from compact.core.json_data import is_list, is_mapping
from compact.transcripts.builder import Call, LogBuilder
from compact.transcripts.parts import Content, Fields, content_of, part_of, text_field

_THINKING = frozenset({"thinking", "redacted_thinking", "reasoning"})
_CALLS = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})


def add_message(builder: LogBuilder, message: Fields, *, place: str, key: object = None, name: str = "") -> None:
    """Add a message: the results in it to their calls, what it says and the calls that it makes."""
    role, blocks = message.get("role"), message.get("content")
    if not is_list(blocks):
        blocks = [blocks] if blocks else ()
    shown: list[object] = []
    calls: list[Call] = []
    for block in blocks:
        kind = block.get("type") if is_mapping(block) else "text"
        if kind in _THINKING:
            builder.thinking += 1
        elif kind in _CALLS:
            calls.append(Call(text_field(block, "id"), text_field(block, "name"), block.get("input", {})))
        elif isinstance(kind, str) and kind.endswith("tool_result"):
            builder.result(text_field(block, "tool_use_id"), _result(block), place=place)
        else:
            shown.append(block)
    content = content_of(shown) if shown else None
    if role == "assistant":
        builder.answer(content, calls, key=key)
    else:
        builder.say("user", content, name=name)


def call_ids(message: Fields) -> list[str]:
    """Return the calls that a message makes."""
    return [text_field(block, "id") for block in _blocks(message) if block.get("type") in _CALLS]


def answered_ids(message: Fields) -> list[str]:
    """Return the calls whose results are in a message."""
    return [text_field(block, "tool_use_id") for block in _blocks(message) if "tool_use_id" in block]


def _blocks(message: Fields) -> list[Fields]:
    blocks = message.get("content")
    return [block for block in blocks if is_mapping(block)] if is_list(blocks) else []


def _result(block: Fields) -> Content:
    content = block.get("content")
    # Results of the provider's own tools are lists of parts that only it knows.
    shown = [part for part in map(part_of, content) if part] if is_list(content) else content
    text = content_of(shown)
    return f"[error] {text}" if block.get("is_error") and isinstance(text, str) else text
