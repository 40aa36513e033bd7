"""A log entry as text: the JSON that a store writes and reads again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from compact.core.audit.store import StoreError
from compact.core.messages.entries import read_entry, read_own_entry
from compact.core.messages.message import Message, ToolCall


def dump_message(message: Message) -> str:
    """Return a message as JSON: the caller's own dict as it came, or the fields of a message that is not a dict."""
    original, line = message.original, {"line": message.line} if message.line else {}
    if isinstance(original, Mapping):
        return _to_json({"id": message.id, **line, "wire": cast(Mapping[str, object], original)})
    return _to_json({"id": message.id, **line, "message": _fields(message), "own_id": _own_id(message)})


def load_message(body: str) -> Message:
    """Return the message that `dump_message` wrote, its original included."""
    data = json.loads(body)
    message = _read(data)
    return replace(message, line=data["line"]) if "line" in data else message


def _read(data: dict[str, Any]) -> Message:
    if "wire" in data:
        return read_own_entry(data["wire"], data["id"], message_id=data["id"])
    calls = tuple(ToolCall(*call) for call in data["message"].pop("tool_calls"))
    original = Message(**data["message"], tool_calls=calls, id=data["own_id"])
    return replace(read_entry(original, data["id"]), id=data["id"])


def content_hash(body: str) -> str:
    """Return the fingerprint of a message as `dump_message` wrote it."""
    return hashlib.sha256(body.encode("utf-8", "surrogatepass")).hexdigest()


def check_hash(body: str, stored_hash: str, *, what: str) -> None:
    """Raise StoreError if a text is not the one that a fingerprint was made of; `what` names it.

    A fingerprint may have been cut: as much of it as there is must be the same.
    """
    if not stored_hash or not content_hash(body).startswith(stored_hash):
        raise StoreError(
            f"{what} is not what was written: it was changed outside of Compact, or the disk is damaged",
            hint="restore the store from a backup, or delete the session",
        )


# ASCII only: lone surrogates and NUL, which no database takes, are escaped. Made once: it takes as long as its work.
_to_json = json.JSONEncoder(separators=(",", ":"), default=str).encode


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
