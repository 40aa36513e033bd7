"""opencode: the database `~/.local/share/opencode/opencode.db`, the folder `storage/` of versions before it, and
what `opencode export` prints.

A message has its parts in rows or files of their own. A compaction is a user message with a part `compaction`, and an
answer with the mark `summary` behind it.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from compact.core.json_data import is_mapping
from compact.transcripts.builder import Call, LogBuilder
from compact.transcripts.logs import AgentLog
from compact.transcripts.parts import Content, Fields, content_of, list_of, mapping_of, text_field

NAME = "opencode"
_SILENT = frozenset({"step-start", "step-finish", "snapshot", "patch", "agent", "subtask", "retry"})


def recognises(head: Sequence[object]) -> bool:
    """Return True for what `opencode export` prints: `info` and messages that have `info` and `parts`."""
    value: Fields = mapping_of(head[0]) if len(head) == 1 else {}
    messages = list_of(value.get("messages"))
    return is_mapping(value.get("info")) and bool(messages) and "parts" in mapping_of(messages[0])


def read(items: Iterable[tuple[str, Any]]) -> list[AgentLog]:
    """Return the sessions of exports."""
    return [_session(mapping_of(value["info"]), list_of(value.get("messages"))) for _, value in items]


def is_storage(folder: Path) -> bool:
    """Return True for the folder in which versions before the database kept messages and parts."""
    return (folder / "message").is_dir() and (folder / "part").is_dir()


def read_storage(folder: Path) -> list[AgentLog]:
    """Return the sessions of such a folder."""
    sessions = {text_field(info, "id"): info for info in map(_json_of, sorted(folder.glob("session/**/*.json")))}
    return [
        _session(sessions.get(own.name, {"id": own.name}), _stored_messages(own, folder / "part"))
        for own in sorted((folder / "message").iterdir())
        if own.is_dir()
    ]


def _stored_messages(folder: Path, parts: Path) -> list[Fields]:
    infos = sorted(map(_json_of, folder.glob("*.json")), key=lambda info: text_field(info, "id"))
    return [
        {"info": info, "parts": list(map(_json_of, sorted((parts / text_field(info, "id")).glob("*.json"))))}
        for info in infos
    ]


def _json_of(path: Path) -> Fields:
    return mapping_of(json.loads(path.read_text(encoding="utf-8")))


def read_database(path: Path) -> list[AgentLog]:
    """Return the sessions of the database; empty if it is another program's."""
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as database:
        tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if not {"session", "message", "part"} <= tables:
            return []
        sessions = database.execute("SELECT id, parent_id, version FROM session ORDER BY time_created").fetchall()
        return [
            _session({"id": one, "parentID": parent, "version": version}, _rows(database, one))
            for one, parent, version in sessions
        ]


def _rows(database: sqlite3.Connection, session_id: str) -> list[Fields]:
    parts: dict[str, list[Any]] = {}
    order = "WHERE session_id = ? ORDER BY time_created, id"
    for message_id, data in database.execute(f"SELECT message_id, data FROM part {order}", (session_id,)):
        parts.setdefault(message_id, []).append(json.loads(data))
    rows = database.execute(f"SELECT id, data FROM message {order}", (session_id,))
    return [{"info": {"id": one, **json.loads(data)}, "parts": parts.get(one, [])} for one, data in rows]


def _session(info: Fields, messages: Sequence[Any]) -> AgentLog:
    log = LogBuilder(NAME, text_field(info, "version"), text_field(info, "id"), text_field(info, "parentID"))
    positions: dict[str, int] = {}
    asked: Fields | None = None
    for message in messages:
        fields, parts = mapping_of(message.get("info")), [mapping_of(part) for part in list_of(message.get("parts"))]
        place = text_field(fields, "id")
        positions[place] = len(log.messages)
        if fields.get("role") == "user":
            request = next((part for part in parts if part.get("type") == "compaction"), None)
            asked = request or asked
            if request is None:
                _add_user(log, parts, place)
        elif fields.get("summary") is True:
            _add_compaction(log, parts, asked or {}, place, positions)
        else:
            log.model = text_field(fields, "modelID") or log.model
            _add_answer(log, parts, place)
    return log.build()


def _add_user(log: LogBuilder, parts: Sequence[Fields], place: str) -> None:
    """Add what a person wrote; parts that the harness added are marked `synthetic`."""
    for is_injected in (False, True):
        shown = [
            part
            for part in parts
            if part.get("type") in ("text", "file") and bool(part.get("synthetic")) is is_injected
        ]
        log.say("user", content_of(shown) if shown else None, name="injected" if is_injected else "")
    _note_unknown(log, parts, place)


def _note_unknown(log: LogBuilder, parts: Sequence[Fields], place: str) -> None:
    for part in parts:
        kind = part.get("type")
        if kind not in _SILENT and kind not in ("text", "file", "tool", "reasoning", "compaction"):
            log.note_unknown(f"part {kind!r}", place)


def _add_answer(log: LogBuilder, parts: Sequence[Fields], place: str) -> None:
    """Add one answer: what it says, its calls, and their results, which are in the same parts."""
    log.thinking += sum(part.get("type") == "reasoning" for part in parts)
    tools = [part for part in parts if part.get("type") == "tool"]
    calls = [
        Call(text_field(part, "callID"), text_field(part, "tool"), _state(part).get("input", {})) for part in tools
    ]
    shown = [part for part in parts if part.get("type") == "text"]
    log.answer(content_of(shown) if shown else None, calls)
    for part in tools:
        result = _result(_state(part))
        if result is not None:
            log.result(text_field(part, "callID"), result, place=place)
    _note_unknown(log, parts, place)


def _state(part: Fields) -> Fields:
    return mapping_of(part.get("state"))


def _result(state: Fields) -> Content:
    if state.get("status") == "completed":
        images = list_of(state.get("attachments"))
        output = text_field(state, "output")
        return content_of([output, *images]) if images else output
    return f"[error] {text_field(state, 'error')}" if state.get("status") == "error" else None


def _add_compaction(
    log: LogBuilder, parts: Sequence[Fields], asked: Fields, place: str, positions: Mapping[str, int]
) -> None:
    summary = content_of([part for part in parts if part.get("type") == "text"])
    first = positions.get(text_field(asked, "tail_start_id"))
    log.compact(
        summary if isinstance(summary, str) else "",
        place=place,
        kept=range(first, len(log.messages)) if first is not None else (),
        trigger="auto" if asked.get("auto") else "manual" if asked else "",
    )
