"""Gemini CLI: `~/.gemini/tmp/<project>/chats/session-*.json` or `.jsonl`.

A line is a message, which replaces an earlier one with the same id; `$set` changes fields of the session, `$rewindTo`
goes back. Calls are in the record of the answer that made them, with their results. After a compression, `$set` has a
list of messages in which a summary stands for the old ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from compact.core.json_data import is_list, is_mapping
from compact.core.messages.message import Message
from compact.core.messages.own_compaction import find_own_summary
from compact.transcripts.builder import Call, LogBuilder
from compact.transcripts.forms.gemini_parts import add_parts, response_content
from compact.transcripts.logs import AgentLog
from compact.transcripts.parts import Content, Fields, content_of, list_of, mapping_of, text_field, text_of

NAME = "Gemini CLI"
_NOTES = frozenset({"info", "error", "warning"})


@dataclass(slots=True)
class _Records:
    """The records of a session in order, and where compressions replaced them."""

    records: dict[str, tuple[str, Fields]] = field(default_factory=dict[str, tuple[str, Fields]])
    # The summary, the ids of records that stayed, and how many records came before.
    compressions: list[tuple[str, str, frozenset[str], int]] = field(
        default_factory=list[tuple[str, str, frozenset[str], int]]
    )

    def rewind(self, record_id: str) -> None:
        ids = list(self.records)
        start = ids.index(record_id) if record_id in self.records else 0
        for forgotten in ids[start:]:
            del self.records[forgotten]

    def replace(self, messages: Sequence[Fields], place: str) -> None:
        """Follow a new list of messages: a summary among them is a compression."""
        new = [one for one in messages if isinstance(one.get("id"), str) and one["id"] not in self.records]
        summary = next((one for one in new if _is_summary(one)), None)
        if summary is None:
            for one in messages:
                if isinstance(one.get("id"), str):
                    self.records[one["id"]] = (place, one)
            return
        stayed = frozenset(one["id"] for one in messages if one.get("id") in self.records)
        self.compressions.append((place, text_of(summary.get("content")), stayed, len(self.records)))


def _is_summary(record: Fields) -> bool:
    return find_own_summary([Message("user", text_of(record.get("content")))]) is not None


def recognises(head: Sequence[object]) -> bool:
    """Return True for a session with `sessionId` and `projectHash`."""
    return any(is_mapping(value) and "sessionId" in value and "projectHash" in value for value in head)


def read(items: Iterable[tuple[str, Any]]) -> list[AgentLog]:
    """Return the session."""
    log, state = LogBuilder(NAME), _Records()
    for place, value in items:
        fields = mapping_of(value)
        if isinstance(fields.get("$rewindTo"), str):
            state.rewind(fields["$rewindTo"])
        elif isinstance(fields.get("id"), str):
            state.records[fields["id"]] = (place, fields)
        elif is_mapping(fields.get("$set")):
            changed = fields["$set"]
            log.session_id = text_field(changed, "sessionId") or log.session_id
            if "messages" in changed:
                state.replace([mapping_of(one) for one in list_of(changed["messages"])], place)
        elif "sessionId" in fields:
            log.session_id = text_field(fields, "sessionId")
            for number, one in enumerate(list_of(fields.get("messages"))):
                record = mapping_of(one)
                state.records[text_field(record, "id") or str(number)] = (f"messages[{number}]", record)
        else:
            log.note_unknown("line without an id", place)
    _add_records(log, state)
    return [log.build()]


def _add_records(log: LogBuilder, state: _Records) -> None:
    positions: dict[str, range] = {}
    waiting = list(state.compressions)
    for number, (record_id, (place, record)) in enumerate(state.records.items()):
        waiting = _add_compressions(log, waiting, number, positions)
        start = len(log.messages)
        _add_record(log, record, place)
        positions[record_id] = range(start, len(log.messages))
    _add_compressions(log, waiting, len(state.records), positions)


def _add_compressions(
    log: LogBuilder,
    waiting: Sequence[tuple[str, str, frozenset[str], int]],
    number: int,
    positions: Mapping[str, range],
) -> list[tuple[str, str, frozenset[str], int]]:
    """Add the compressions that came before a record; return those that come later."""
    for place, summary, stayed, at in waiting:
        if at <= number:
            kept = sorted(position for one in stayed for position in positions.get(one, ()))
            log.compact(summary, place=place, kept=kept)
    return [one for one in waiting if one[3] > number]


def _add_record(log: LogBuilder, record: Fields, place: str) -> None:
    kind = record.get("type")
    if kind == "user":
        add_parts(log, record.get("content"), is_model=False, place=place)
    elif kind == "gemini":
        log.model = text_field(record, "model") or log.model
        log.thinking += len(list_of(record.get("thoughts")))
        _add_answer(log, record, place)
    elif kind not in _NOTES:
        log.note_unknown(f"type {kind!r}", place)


def _add_answer(log: LogBuilder, record: Fields, place: str) -> None:
    tools = [mapping_of(one) for one in list_of(record.get("toolCalls"))]
    calls = [Call(text_field(one, "id"), text_field(one, "name"), one.get("args", {})) for one in tools]
    content = record.get("content")
    log.answer(content_of([part for part in _parts(content) if not _is_call(part)]) or None, calls)
    for one in tools:
        if one.get("result") is not None:
            log.result(text_field(one, "id"), _tool_result(one["result"]), place=place)


def _parts(content: object) -> Sequence[Any]:
    return content if is_list(content) else [content] if content else []


def _is_call(part: object) -> bool:
    """Return True for a call or a thought among the parts: the record has them in fields of their own."""
    fields = mapping_of(part)
    return "functionCall" in fields or bool(fields.get("thought"))


def _tool_result(result: object) -> Content:
    """Return the result of a call: parts with a function's response, or parts to show."""
    responses = [mapping_of(mapping_of(part).get("functionResponse")) for part in _parts(result)]
    answers = [response_content(one.get("response")) for one in responses if one]
    return content_of(answers) if answers else content_of(result)
