"""The text that stands for content that left the prompt: what was there, how much, and by which id it comes back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from compact.core.messages import Content, Message, ToolCall
from compact.core.plan import ClearRecord, ExternalizationRecord
from compact.core.summary import rounded


def render_cleared(message: Message, record: ClearRecord) -> Message:
    """The message with a stub in place of its content, and whatever the record keeps of it."""
    calls = message.tool_calls
    if record.argument_chars is not None:
        calls = tuple(_shorten_arguments(call, record.argument_chars) for call in calls)
    # Content that was never there needs no stub: only the arguments were cut.
    content: Content = _with_stub(message, record) if message.content else message.content
    return replace(message, content=content, tool_calls=calls)


def render_externalization_text(record: ExternalizationRecord) -> str:
    """The pointer to an artifact, with the preview that was chosen for it."""
    size, artifact = f"{rounded(record.tokens_before)} tokens", record.artifact_id
    head = f"[moved to artifact {artifact}: {size}; {record.reason}; recall {artifact} brings it back]"
    return f"{head}\n{record.preview}" if record.preview else head


def stub_line(message: Message, record: ClearRecord) -> str:
    """One informative line about what was here."""
    text = message.text
    size = f"{rounded(record.tokens_before)} tokens" if text else "content without text"
    other = _other_parts(message)
    fields = "".join(f"; {name}={value}" for name, value in record.preserved_fields.items())
    verb = "shortened" if record.kept else "cleared"
    return f"[{verb}: {size}{other}; {record.reason}{fields}; recall {message.id}]"


def _with_stub(message: Message, record: ClearRecord) -> str:
    """The kept pieces in their order, the stub standing in the first gap."""
    text, stub = message.text, stub_line(message, record)
    pieces: list[str] = [] if record.kept and record.kept[0][0] == 0 else [stub]
    for start, end in record.kept:
        if pieces and pieces[-1] != stub:
            pieces.append("…" if stub in pieces else stub)
        pieces.append(text[start:end])
    if stub not in pieces:
        pieces.append(stub)
    return "\n".join(pieces)


def _other_parts(message: Message) -> str:
    if message.content is None or isinstance(message.content, str):
        return ""
    kinds = [str(part.get("type", "part")) for part in message.content if "text" not in part]
    return f", {len(kinds)} × {'/'.join(sorted(set(kinds)))}" if kinds else ""


def _shorten_arguments(call: ToolCall, max_chars: int) -> ToolCall:
    """Cut long strings inside the arguments; what comes out is valid JSON."""
    if len(call.arguments) <= max_chars:
        return call
    try:
        shortened = json.dumps(_shorten_value(json.loads(call.arguments), max_chars), ensure_ascii=False)
    except (ValueError, RecursionError):
        shortened = call.arguments
    if len(shortened) > 4 * max_chars:  # not JSON, or long without having long strings
        shortened = json.dumps({"shortened": _head_and_tail(call.arguments, max_chars)}, ensure_ascii=False)
    return replace(call, arguments=shortened)


def _shorten_value(value: Any, max_chars: int) -> Any:
    match value:
        case str():
            return _head_and_tail(value, max_chars)
        case list():
            return [_shorten_value(item, max_chars) for item in cast(list[Any], value)]
        case Mapping():
            return {key: _shorten_value(item, max_chars) for key, item in cast(Mapping[str, Any], value).items()}
        case _:
            return value


def _head_and_tail(text: str, max_chars: int) -> str:
    if len(text) <= max_chars:
        return text
    half = max(1, max_chars // 2)
    return f"{text[:half]} … {rounded(len(text) - 2 * half)} characters cut … {text[-half:]}"
