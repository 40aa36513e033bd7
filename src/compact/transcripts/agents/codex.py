"""Codex: `~/.codex/sessions/<date>/rollout-*.jsonl`, the items of the Responses API with the events around them.

A compaction is a line `compacted` with the summary and the history that took the place of the old one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from compact.core.json_data import is_mapping
from compact.transcripts.builder import LogBuilder
from compact.transcripts.forms.response_items import ITEM_TYPES, add_item
from compact.transcripts.logs import AgentLog
from compact.transcripts.parts import Fields, list_of, mapping_of, text_field, text_of

NAME = "Codex"
_LINES = frozenset({"session_meta", "response_item", "compacted", "turn_context", "event_msg"})
# Lines that are no part of the conversation.
_OTHER_LINES = frozenset(
    {"world_state", "token_usage_record", "security_risk_score", "ghost_snapshot"}
    | {"inter_agent_communication", "inter_agent_communication_metadata"}
)
_TURN_STARTS = frozenset({"task_started", "turn_started"})


@dataclass(slots=True)
class _Reading:
    log: LogBuilder = field(default_factory=lambda: LogBuilder(NAME))
    turns: list[int] = field(default_factory=list[int])


def recognises(head: Sequence[object]) -> bool:
    """Return True for lines with a `type` of a rollout and a `payload`, or for the bare items of early versions."""
    wrapped = any(
        is_mapping(value) and value.get("type") in _LINES and is_mapping(value.get("payload")) for value in head
    )
    first: Fields = mapping_of(head[0]) if head else {}
    is_early = "instructions" in first and "timestamp" in first and "id" in first and "type" not in first
    return wrapped or (is_early and len(head) > 1 and _is_bare(mapping_of(head[1])))


def _is_bare(value: Fields) -> bool:
    return value.get("record_type") == "state" or value.get("type") in ITEM_TYPES


def read(items: Iterable[tuple[str, Any]]) -> list[AgentLog]:
    """Return the session."""
    reading = _Reading()
    for place, value in items:
        _add_line(reading, mapping_of(value), place)
    return [reading.log.build()]


def _add_line(reading: _Reading, line: Fields, place: str) -> None:
    log, kind, payload = reading.log, line.get("type"), mapping_of(line.get("payload"))
    if kind == "session_meta":
        _add_meta(log, payload)
    elif kind == "turn_context":
        log.model = text_field(payload, "model") or log.model
    elif kind == "response_item":
        _add_item(log, payload, place)
    elif kind == "compacted":
        _add_compaction(log, payload, place)
    elif kind == "event_msg":
        _add_event(reading, payload)
    elif kind in ITEM_TYPES:
        _add_item(log, line, place)
    elif "instructions" in line and "id" in line:
        log.session_id, log.instructions = text_field(line, "id"), text_field(line, "instructions")
    elif kind not in _OTHER_LINES and line.get("record_type") != "state":
        log.note_unknown(f"type {kind!r}" if kind else "line without a type", place)


def _add_meta(log: LogBuilder, payload: Fields) -> None:
    if log.session_id:
        return  # A fork repeats the first line of what it was made from.
    log.session_id, log.version = text_field(payload, "id"), text_field(payload, "cli_version")
    log.parent_id = text_field(payload, "parent_thread_id")
    instructions = payload.get("base_instructions") or payload.get("instructions")
    log.instructions = text_field(mapping_of(instructions), "text") or (
        instructions if isinstance(instructions, str) else ""
    )


def _add_item(log: LogBuilder, item: Fields, place: str) -> None:
    name = "injected" if _is_injected(item) else ""
    add_item(log, item, place=place, name=name)


def _is_injected(item: Fields) -> bool:
    """Return True for what the harness says in the name of the user: the folder, the date, AGENTS.md."""
    text = text_of(item.get("content")).lstrip() if item.get("role") == "user" else ""
    return text.startswith(
        ("<environment_context>", "<user_instructions>", "# AGENTS.md instructions", "<turn_aborted>")
    )


def _add_event(reading: _Reading, event: Fields) -> None:
    """Follow turns, and forget those that were rolled back; what was said is in the items."""
    if event.get("type") in _TURN_STARTS:
        reading.turns.append(len(reading.log.messages))
    elif event.get("type") == "thread_rolled_back":
        turns = event.get("num_turns")
        count = turns if isinstance(turns, int) else 0
        if count > 0 and reading.turns:
            start = reading.turns[-min(count, len(reading.turns))]
            del reading.turns[-count:]
            reading.log.cut(start)


def _add_compaction(log: LogBuilder, payload: Fields, place: str) -> None:
    summary = text_field(payload, "message")
    history = [mapping_of(item) for item in list_of(payload.get("replacement_history"))]
    last = log.messages[-1] if log.messages else {}
    # The answer that is the summary is an item of its own above this line.
    if last.get("role") == "assistant" and not last.get("tool_calls") and summary.endswith(str(last.get("content"))):
        log.messages.pop()
    log.compact(summary, place=place, kept=_kept(log, history))


def _kept(log: LogBuilder, history: Sequence[Fields]) -> list[int]:
    """Return the positions of messages that the new history has as they were."""
    texts = {(item.get("role"), text_of(item.get("content"))) for item in history}
    return [
        position
        for position, message in enumerate(log.messages)
        if message["role"] in ("user", "developer", "system")
        and (message["role"], text_of(message["content"])) in texts
    ]
