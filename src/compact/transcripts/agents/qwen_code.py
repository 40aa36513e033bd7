"""Qwen Code: `~/.qwen/projects/<folder>/chats/<session>.jsonl`; lines name their parent, contents are Gemini's.

A compaction is a line `chat_compression` with the history that took the place of the old one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from compact.core.json_data import is_mapping
from compact.transcripts.agents.branches import last_branch
from compact.transcripts.builder import LogBuilder
from compact.transcripts.forms.gemini_parts import add_parts
from compact.transcripts.logs import AgentLog
from compact.transcripts.parts import Fields, list_of, mapping_of, text_field, text_of

NAME = "Qwen Code"
_TYPES = frozenset({"user", "assistant", "tool_result", "system"})


def recognises(head: Sequence[object]) -> bool:
    """Return True for lines with a `uuid` around a content of Gemini's."""
    return any(is_mapping(value) and "uuid" in value and "parts" in mapping_of(value.get("message")) for value in head)


def read(items: Iterable[tuple[str, Any]]) -> list[AgentLog]:
    """Return the session."""
    log = LogBuilder(NAME)
    lines: list[tuple[str, Fields]] = []
    for place, value in items:
        fields = mapping_of(value)
        if isinstance(fields.get("uuid"), str):
            # A line that is not known is part of the way, too.
            lines.append((place, fields))
        if fields.get("type") not in _TYPES:
            log.note_unknown(f"type {fields.get('type')!r}", place)
    ids = [fields["uuid"] for _, fields in lines]
    parents = {fields["uuid"]: text_field(fields, "parentUuid") for _, fields in lines}
    for place, fields in last_branch(lines, ids, parents):
        log.version = text_field(fields, "version") or log.version
        log.session_id = text_field(fields, "sessionId") or log.session_id
        log.model = text_field(fields, "model") or log.model
        if fields.get("subtype") == "chat_compression":
            _add_compression(log, mapping_of(fields.get("systemPayload")), place)
        elif fields.get("type") != "system":
            parts = mapping_of(fields.get("message")).get("parts")
            add_parts(log, parts, is_model=fields.get("type") == "assistant", place=place)
    return [log.build()]


def _add_compression(log: LogBuilder, payload: Fields, place: str) -> None:
    history = [mapping_of(content) for content in list_of(payload.get("compressedHistory"))]
    summary = text_of(history[0].get("parts")) if history else ""
    info = mapping_of(payload.get("info"))
    # The model's short thanks stands behind the summary; what follows are messages that were kept.
    kept = sum(_messages_in(content) for content in history[2:])
    length = len(log.messages)
    size = info.get("originalTokenCount")
    log.compact(
        summary,
        place=place,
        kept=range(max(0, length - kept), length),
        tokens_before=size if isinstance(size, int) else 0,
    )


def _messages_in(content: Fields) -> int:
    """Return how many messages of ours a content is: each result is one."""
    parts = [mapping_of(part) for part in list_of(content.get("parts"))]
    results = sum("functionResponse" in part for part in parts)
    return results + any("functionResponse" not in part and not part.get("thought") for part in parts)
