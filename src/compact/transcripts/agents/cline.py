"""Cline and Roo Code: `tasks/<id>/api_conversation_history.json`, a list of messages as Anthropic's API has them.

Roo Code marks a summary with `isSummary`, and each message that it stands for with `condenseParent`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from compact.core.json_data import is_list, is_mapping
from compact.transcripts.builder import LogBuilder
from compact.transcripts.forms.anthropic_blocks import add_message
from compact.transcripts.logs import AgentLog
from compact.transcripts.parts import Fields, list_of, mapping_of, text_field, text_of

CLINE, ROO = "Cline", "Roo Code"
_ROO_MARKS = ("isSummary", "condenseParent", "condenseId", "isTruncationMarker", "truncationParent")
_CLINE_MARKS = ("modelInfo", "metrics", "ts")


def recognises(head: Sequence[object]) -> bool:
    """Return True for a list of messages with the marks of one of the two, or with the tags around their tasks."""
    if len(head) != 1:
        return False
    messages = [mapping_of(one) for one in _messages(head[0])]
    if not messages or not all(one.get("role") in ("user", "assistant") or _is_reasoning(one) for one in messages):
        return False
    marked = any(mark in one for one in messages for mark in (*_ROO_MARKS, *_CLINE_MARKS))
    return marked or "<environment_details>" in text_of(messages[0].get("content"))


def _messages(value: object) -> Sequence[Any]:
    """Return the messages: the file is a list of them, or since 2026 an object that has one."""
    if is_list(value):
        return value
    return list_of(value.get("messages")) if is_mapping(value) and "updated_at" in value else ()


def _is_reasoning(message: Fields) -> bool:
    return message.get("type") == "reasoning"


def read(items: Iterable[tuple[str, Any]]) -> list[AgentLog]:
    """Return the session."""
    messages: list[Fields] = []
    session_id = ""
    for _, value in items:
        messages = [mapping_of(one) for one in _messages(value)]
        session_id = text_field(mapping_of(value), "sessionId", "session_id", "id")
    is_roo = any(mark in one for one in messages for mark in _ROO_MARKS)
    log = LogBuilder(ROO if is_roo else CLINE, session_id=session_id)
    spans: dict[int, range] = {}
    for number, message in enumerate(messages):
        place = f"item {number + 1}"
        start = len(log.messages)
        if _is_reasoning(message):
            log.thinking += 1
        elif message.get("isSummary") or message.get("isTruncationMarker"):
            _add_compaction(log, messages, number, spans)
        else:
            log.model = text_field(mapping_of(message.get("modelInfo")), "modelId") or log.model
            add_message(log, message, place=place)
        spans[number] = range(start, len(log.messages))
    return [log.build()]


def _add_compaction(log: LogBuilder, messages: Sequence[Fields], number: int, spans: Mapping[int, range]) -> None:
    """Add a summary of Roo's, or the mark of what it cut; what no mark up to here stands for stayed in the prompt."""
    own = messages[number]
    marks = {text_field(one, "condenseId", "truncationId") for one in messages[: number + 1]} - {""}
    has_ids = bool(text_field(own, "condenseId", "truncationId"))
    kept = [
        position
        for place, span in spans.items()
        if has_ids and not {messages[place].get("condenseParent"), messages[place].get("truncationParent")} & marks
        for position in span
    ]
    summary = text_of(own.get("content")) if own.get("isSummary") else ""
    log.compact(summary, place=f"item {number + 1}", kept=kept)
