"""Messages and events as JSON: the caller's own wire form where there is one, and never a crash on odd content."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from math import isfinite
from typing import Any, cast

from compact.core.messages.message import Message

# These are legal in JSON, but many readers take them for the end of a line.
_LINE_BREAKS = {"\x85": "\\u0085", "\u2028": "\\u2028", "\u2029": "\\u2029"}
# Chosen: deeper than any message, and well within what json can encode.
_MAX_DEPTH = 100


def transcript_lines(transcript: Sequence[Message]) -> bytes:
    """Return a JSON line for each message."""
    return b"".join(to_line(message_record(message)) for message in transcript)


def summary_document(summary: Message) -> bytes:
    """Return the summary message as a JSON document, indented for people."""
    return _to_json(message_record(summary), indent=2) + b"\n"


def to_line(value: Mapping[str, Any]) -> bytes:
    """Return one line of JSON, its newline included."""
    return _to_json(value, indent=None) + b"\n"


def message_record(message: Message) -> dict[str, Any]:
    """Return the message as its caller wrote it, or else its fields, without the empty ones."""
    original: object = message.original
    if isinstance(original, dict):
        return cast(dict[str, Any], original)
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
        return _encode(_as_json_data(value), indent)


def _encode(value: Any, indent: int | None) -> bytes:
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent)
    for char, escaped in _LINE_BREAKS.items():
        text = text.replace(char, escaped)
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:  # half a surrogate pair: it has no UTF-8, but it has a JSON escape
        return json.dumps(value, allow_nan=False, indent=indent).encode("ascii")


def _as_json_data(value: Any, depth: int = 0) -> Any:
    """Return JSON data as close as possible to a value that is not: bytes as base64, objects as fields or text."""
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
            items = cast(Mapping[Any, Any], value).items()
            return {str(key): _as_json_data(item, depth + 1) for key, item in items}
        case list() | tuple() | set() | frozenset():
            return [_as_json_data(item, depth + 1) for item in cast(Iterable[Any], value)]
        case _ if is_dataclass(value) and not isinstance(value, type):
            return {spec.name: _as_json_data(getattr(value, spec.name), depth + 1) for spec in fields(value)}
        case _:
            return str(value)
