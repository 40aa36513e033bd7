"""Messages, plans and summaries as text in a column, and back."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

from compact.core.log.messages import Message, ToolCall

_WORDS = re.compile(r"[^\W_]+")


def dump_message(message: Message) -> str:
    """A log entry as JSON: the caller's own dict as it came, or the fields of one of our messages."""
    if isinstance(message.original, Mapping):
        return _dump({"id": message.id, "wire": message.original})
    return _dump({"id": message.id, "message": _fields(message), "own_id": _own_id(message)})


def load_original(body: str) -> tuple[str, object]:
    """The id of an entry, and what the caller had handed in."""
    data = json.loads(body)
    if "wire" in data:
        return data["id"], data["wire"]
    calls = tuple(ToolCall(*call) for call in data["message"].pop("tool_calls"))
    return data["id"], Message(**data["message"], tool_calls=calls, id=data["own_id"])


def content_hash(body: str) -> str:
    """A fingerprint of an entry."""
    return hashlib.sha256(body.encode()).hexdigest()


def searchable(message: Message) -> str:
    """The words of an entry (text, tool names and arguments) as every store compares them."""
    pieces = [message.text, *(f"{call.name} {call.arguments}" for call in message.tool_calls)]
    return _words("\n".join(pieces))


def wanted(query: str) -> list[str]:
    """What a query looks for: each of its words, or the words one behind the other that it falls into."""
    return [phrase for piece in query.split() if (phrase := _words(piece))]


def _words(text: str) -> str:
    """Letters and digits, the rest left out: databases differ in what they take a path or an id for."""
    return " ".join(_WORDS.findall(text.lower()))


def _dump(data: object) -> str:
    # ASCII only: lone surrogates and NUL, which no database takes, are escaped.
    return json.dumps(data, separators=(",", ":"), default=str)


def _own_id(message: Message) -> str:
    return message.original.id if isinstance(message.original, Message) else message.id


def _fields(message: Message) -> dict[str, Any]:
    return {
        "role": message.role,
        "content": message.content if isinstance(message.content, str) else _parts(message.content),
        "tool_calls": [[call.id, call.name, call.arguments] for call in message.tool_calls],
        "tool_call_id": message.tool_call_id,
        "name": message.name,
        "meta": dict(message.meta),
    }


def _parts(content: tuple[Mapping[str, Any], ...] | None) -> list[dict[str, Any]] | None:
    return None if content is None else [dict(part) for part in content]
