"""The log of a session: a page of it, all of it or what matches a filter, and one entry."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from compact.archive.json_lines import message_record
from compact.core.audit.records import StoredMessage
from compact.core.errors import UnknownSession
from compact.core.messages.attachments import text_with_attachments, without_bytes
from compact.viewer.json_http import HttpError
from compact.viewer.pages.export import sent_message
from compact.viewer.pages.session import content_types, entry_row, tool_calls, tool_names
from compact.viewer.source import DataSource

# Chosen: how many entries before a page are read to find the call that its first results answer.
_ENTRIES_BEFORE = 40
# Chosen: how many entries are read from the store at once to look for matches.
_READ_AT_ONCE = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFilter:
    """Which entries of a log to show: by role, tool, what the plan in force does, and words in any case."""

    role: str = ""
    tool: str = ""
    action: str = ""
    words: str = ""

    @property
    def is_empty(self) -> bool:
        """True if every entry is shown."""
        return not (self.role or self.tool or self.action or self.words.strip())


def messages_page(source: DataSource, session_id: str, wanted: LogFilter, *, offset: int, limit: int) -> dict[str, Any]:
    """Return a page of the log, each entry with what the plan in force does to it."""
    total = source.store.head(session_id).last_seq
    if not total:
        raise UnknownSession(session_id)
    if not wanted.is_empty:
        return _matching_page(source, session_id, wanted, total, offset=offset, limit=limit)
    before = min(offset, _ENTRIES_BEFORE)
    entries = source.store.messages(session_id, after_seq=offset - before, limit=limit + before)
    plan = source.store.get_current_plan(session_id)[0]
    tools = tool_names(entry.message for entry in entries)
    rows = [
        {**entry_row(entry, tools), "action": plan.get_action(entry.message.id)[0].value}
        for entry in itertools.islice(entries, before, None)
    ]
    return {"total": total, "log_total": total, "messages": rows}


def _matching_page(
    source: DataSource, session_id: str, wanted: LogFilter, log_total: int, *, offset: int, limit: int
) -> dict[str, Any]:
    version = source.store.get_current_plan(session_id)[1]
    key = (session_id, log_total, version, wanted)
    rows = source.cached_log(key, lambda: list(_matching(source, session_id, wanted)))
    return {"total": len(rows), "log_total": log_total, "messages": rows[offset : offset + limit]}


def _rows(source: DataSource, session_id: str) -> Iterator[tuple[StoredMessage, dict[str, Any]]]:
    """Yield every entry of a log, and its row."""
    plan = source.store.get_current_plan(session_id)[0]
    tools: dict[str, str] = {}
    after_seq = 0
    while entries := source.store.messages(session_id, after_seq=after_seq, limit=_READ_AT_ONCE):
        for entry in entries:
            tools.update(tool_names([entry.message]))
            yield entry, {**entry_row(entry, tools), "action": plan.get_action(entry.message.id)[0].value}
        after_seq = entries[-1].seq


def _matching(source: DataSource, session_id: str, wanted: LogFilter) -> Iterator[dict[str, Any]]:
    words = wanted.words.strip().casefold()
    for entry, row in _rows(source, session_id):
        fits = (
            (not wanted.role or row["role"] == wanted.role)
            and (not wanted.tool or row["tool"] == wanted.tool)
            and (not wanted.action or row["action"] == wanted.action)
        )
        if fits and (not words or words in _searched_text(entry).casefold()):
            yield row


def _searched_text(entry: StoredMessage) -> str:
    message = entry.message
    calls = "\n".join(f"{call.name} {call.arguments}" for call in message.tool_calls)
    return "\n".join((message.id, text_with_attachments(message), calls))


def facets_page(source: DataSource, session_id: str) -> dict[str, Any]:
    """Return what a log can be filtered by: its roles, tools and actions, each with how many entries have it."""
    total = source.store.head(session_id).last_seq
    if not total:
        raise UnknownSession(session_id)
    version = source.store.get_current_plan(session_id)[1]
    return source.cached_facets((session_id, total, version), lambda: _facets(source, session_id))


def _facets(source: DataSource, session_id: str) -> dict[str, Any]:
    counts: dict[str, Counter[str]] = {"role": Counter(), "tool": Counter(), "action": Counter()}
    for _, row in _rows(source, session_id):
        for name, count in counts.items():
            if row[name]:
                count[row[name]] += 1
    return {name: dict(count.most_common()) for name, count in counts.items()}


def message_page(source: DataSource, session_id: str, message_id: str) -> dict[str, Any]:
    """Return one log entry, whole; `raw` is the message as its caller sent it."""
    entry = source.store.message(session_id, message_id)
    if entry is None:
        source.info(session_id)
        raise HttpError(404, f"session {session_id!r} has no message {message_id!r}", "its log lists every message")
    message, plan = entry.message, source.store.get_current_plan(session_id)[0]
    return {
        "id": message.id,
        "seq": entry.seq,
        "role": message.role,
        "tokens": entry.tokens,
        "text": text_with_attachments(message),
        "content_types": content_types(message),
        "tool_calls": tool_calls(message),
        "tool_call_id": message.tool_call_id,
        "name": message.name,
        "meta": dict(message.meta),
        "action": plan.get_action(message.id)[0].value,
        "raw": message_record(without_bytes(sent_message(message))),
    }
