"""Messages and events as JSON: the caller's own wire form where there is one, and never a crash on odd content."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from math import isfinite
from typing import Any

from compact.core.log.messages import Message

# Legal in JSON, but many readers take them for the end of a line.
_LINE_BREAKS = {"\x85": "\\u0085", "\u2028": "\\u2028", "\u2029": "\\u2029"}
_MAX_DEPTH = 100


def transcript_lines(transcript: Sequence[Message]) -> bytes:
    """A JSON line for each message."""
    return b"".join(to_line(message_record(message)) for message in transcript)


def summary_document(summary: Message) -> bytes:
    """The summary message as a JSON document, indented for people."""
    return _to_json(message_record(summary), indent=2) + b"\n"


def to_line(value: Mapping[str, Any]) -> bytes:
    """One line of JSON, its newline included."""
    return _to_json(value, indent=None) + b"\n"


def message_record(message: Message) -> dict[str, Any]:
    """The message as its caller wrote it, or else its fields, without those that say nothing."""
    if isinstance(message.original, dict):
        return message.original
    record: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        calls = message.tool_calls
        record["tool_calls"] = [{"id": call.id, "name": call.name, "arguments": call.arguments} for call in calls]
    for name in ("tool_call_id", "name", "id", "meta"):
        if value := getattr(message, name):
            record[name] = value
    return record


def _to_json(value: Any, indent: int | None) -> bytes:
    try:
        return _encode(value, indent)
    except (TypeError, ValueError, RecursionError):
        return _encode(_plain(value), indent)


def _encode(value: Any, indent: int | None) -> bytes:
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent)
    for char, escaped in _LINE_BREAKS.items():
        text = text.replace(char, escaped)
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:  # half a surrogate pair: it has no UTF-8, but it has a JSON escape
        return json.dumps(value, allow_nan=False, indent=indent).encode("ascii")


def _plain(value: Any, depth: int = 0) -> Any:
    """JSON data as close as possible to a value that is not: bytes as base64, objects as their fields or text."""
    if depth > _MAX_DEPTH:
        return "… nested too deeply to be archived …"
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if isfinite(value) else str(value)
        case bytes() | bytearray():
            return b64encode(value).decode("ascii")
        case Mapping():
            return {str(key): _plain(item, depth + 1) for key, item in value.items()}
        case list() | tuple() | set() | frozenset():
            return [_plain(item, depth + 1) for item in value]
        case _ if is_dataclass(value) and not isinstance(value, type):
            return {spec.name: _plain(getattr(value, spec.name), depth + 1) for spec in fields(value)}
        case _:
            return str(value)
