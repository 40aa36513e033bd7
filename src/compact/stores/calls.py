"""Model calls in the database: what each was made of, so that its prompt can be made again."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, and_, func, insert, select, update
from sqlalchemy.dialects.postgresql import insert as insert_postgresql
from sqlalchemy.dialects.sqlite import insert as insert_sqlite

from compact.core.audit.records import AddedMessage, Commit, ModelCall
from compact.core.log.messages import Message
from compact.core.plan.plan import CompactionAction, CompactionPlan
from compact.stores import schema
from compact.stores.wire import content_hash, dump_message, load_original

_CALLS, _BESIDE, _BRANCHES, _MESSAGES = schema.model_calls, schema.added, schema.branches, schema.messages
_ADD_CALL = insert(_CALLS)
# What is injected is often the same from call to call: it is written once.
_ADD_BESIDE = {
    "sqlite": insert_sqlite(_BESIDE).on_conflict_do_nothing(),
    "postgresql": insert_postgresql(_BESIDE).on_conflict_do_nothing(),
}
# Databases limit how many values one question may name.
_AT_ONCE = 500
_UNSEEN = (CompactionAction.SUMMARIZE, CompactionAction.DROP)
_SYSTEM_ROLES = ("system", "developer")

Read = Callable[[object, str], Message]


def add_call(connection: Connection, keys: Mapping[str, str], commit: Commit, *, now: float) -> None:
    """Write down the call of a commit, and what stood behind the log in its prompt."""
    call = commit.call
    if call is None:
        return
    named: list[tuple[str, str]] = []
    for entry in commit.added:
        body = dump_message(entry.message)
        named.append((entry.kind, content_hash(body)))
        row = {**keys, "content_hash": named[-1][1], "body": body, "created_at": now}
        connection.execute(_ADD_BESIDE[connection.dialect.name], row)
    connection.execute(_ADD_CALL, {**keys, **_call_row(call), "added": json.dumps(named), "at": now})


def calls_of(connection: Connection, own: ColumnElement[bool]) -> tuple[ModelCall, ...]:
    """Every call of a session, oldest first."""
    return tuple(_call(row) for row in connection.execute(select(_CALLS).where(own).order_by(_CALLS.c.number)))


def recent_calls(connection: Connection, own: ColumnElement[bool], limit: int) -> tuple[ModelCall, ...]:
    """The newest calls of a session, oldest first."""
    query = select(_CALLS).where(own).order_by(_CALLS.c.number.desc()).limit(limit)
    return tuple(reversed([_call(row) for row in connection.execute(query)]))


def last_report(connection: Connection, own: ColumnElement[bool]) -> ModelCall | None:
    """The newest call whose usage a provider has reported."""
    query = select(_CALLS).where(own, _CALLS.c.tokens_reported.is_not(None)).order_by(_CALLS.c.number.desc()).limit(1)
    row = connection.execute(query).first()
    return _call(row) if row else None


def report_usage(connection: Connection, own: ColumnElement[bool], tokens: int) -> None:
    """Note what a provider counted for the newest call."""
    newest = select(func.max(_CALLS.c.number)).where(own).scalar_subquery()
    connection.execute(update(_CALLS).where(_CALLS.c.number == newest).values(tokens_reported=tokens))


def one_call(
    connection: Connection, keys: Mapping[str, str], number: int, read: Read
) -> tuple[ModelCall, tuple[AddedMessage, ...]] | None:
    """One call, and what stood behind the log in its prompt."""
    row = connection.execute(select(_CALLS).where(_own(_CALLS, keys), _CALLS.c.number == number)).first()
    if row is None:
        return None
    named = json.loads(row.added)
    bodies: dict[str, str] = {}
    if named:
        query = select(_BESIDE.c.content_hash, _BESIDE.c.body).where(_own(_BESIDE, keys))
        wanted = {digest for _, digest in named}
        rows = connection.execute(query.where(_BESIDE.c.content_hash.in_(wanted)))
        bodies = {row.content_hash: row.body for row in rows}
    added = (AddedMessage(kind, _message(bodies[digest], read)) for kind, digest in named if digest in bodies)
    return _call(row), tuple(added)


def line_of(connection: Connection, keys: Mapping[str, str], call: ModelCall, plan: CompactionPlan) -> list[int]:
    """The places in the log that a prompt shows, as they are or as a stub, in the order of the caller's line."""
    table = _BRANCHES.c
    query = select(table.after_seq, table.view_ids).where(_own(_BRANCHES, keys), table.branch == call.branch)
    row = connection.execute(query).first()
    start, view = (row.after_seq, json.loads(row.view_ids)) if row else (0, [])
    query = select(_MESSAGES.c.message_id, _MESSAGES.c.seq).where(_own(_MESSAGES, keys))
    query = query.where(_MESSAGES.c.seq <= call.last_seq).order_by(_MESSAGES.c.seq)
    places: dict[str, int] = {row.message_id: row.seq for row in connection.execute(query)}
    line = [*view, *(message_id for message_id, seq in places.items() if seq > start)]
    return [places[i] for i in line if i in places and plan.get_action(i)[0] not in _UNSEEN]


def rows_at(connection: Connection, keys: Mapping[str, str], places: Sequence[int]) -> Iterator[Row[Any]]:
    """The log entries at these places, in their order."""
    table, found = _MESSAGES.c, dict[int, Row[Any]]()
    for start in range(0, len(places), _AT_ONCE):
        query = select(table.seq, table.body, table.tokens).where(_own(_MESSAGES, keys))
        rows = connection.execute(query.where(table.seq.in_(places[start : start + _AT_ONCE])))
        found.update({row.seq: row for row in rows})
    return (found[place] for place in places)


def _own(table: Any, keys: Mapping[str, str]) -> ColumnElement[bool]:
    return and_(*(table.c[name] == value for name, value in keys.items()))


def _message(body: str, read: Read) -> Message:
    message_id, original = load_original(body)
    return replace(read(original, message_id), id=message_id)


def _call_row(call: ModelCall) -> dict[str, Any]:
    return {
        "turn_number": call.turn_number,
        "plan_version": call.plan_version,
        "summary_version": call.summary_version,
        "last_seq": call.last_seq,
        "messages": call.messages,
        "evicted": call.evicted,
        "tokens_estimated": call.tokens_estimated,
        "tokens_reported": call.tokens_reported,
        "parts": json.dumps(dict(call.parts)),
        "branch": call.branch,
        "limits": json.dumps(dict(call.limits)),
        "reason": call.reason,
    }


def _call(row: Row[Any]) -> ModelCall:
    known = {name: value for name, value in row._mapping.items() if name not in ("tenant_id", "session_id", "added")}
    parts, limits = json.loads(row.parts), json.loads(row.limits)
    if limits is None:
        parts, limits = _parts_of_roles(parts, row.tokens_estimated), {}
    return ModelCall(**{**known, "parts": parts, "limits": limits})


def _parts_of_roles(by_role: Mapping[str, int], estimated_tokens: int) -> dict[str, int]:
    """Schema version 1 wrote down tokens by role; what was sent beside the messages is the rest of the estimate."""
    injected = by_role.get("injected", 0)
    tail = sum(tokens for role, tokens in by_role.items() if role not in (*_SYSTEM_ROLES, "injected"))
    parts = {"system": max(0, estimated_tokens - injected - tail), "dialogue": tail, "injected": injected}
    return {part: tokens for part, tokens in parts.items() if tokens}
