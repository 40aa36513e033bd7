"""Model calls in the database: what each was made of, so that its prompt can be made again.

The number of a call is its place among the calls of its session, oldest first. The column `number` only puts them in
order: it goes up over all sessions.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, and_, bindparam, func, insert, select, update
from sqlalchemy.dialects.postgresql import insert as insert_postgresql
from sqlalchemy.dialects.sqlite import insert as insert_sqlite

from compact.core.audit.records import AddedMessage, BranchView, Commit, ModelCall, SentPrompt, StoredMessage
from compact.core.plan.plan import CompactionPlan
from compact.stores import schema, sql_branches
from compact.stores.database import QuickStatement
from compact.stores.entry_text import check_hash, content_hash, dump_message, load_message

_CALLS, _ADDED, _MESSAGES = schema.model_calls, schema.added, schema.messages
_CALL_FIELDS = tuple(spec.name for spec in fields(ModelCall))
_ADD_CALL = QuickStatement(insert(_CALLS), tuple(column.name for column in _CALLS.c if column.name != "number"))
# The newest call of a session, what a provider counted for it, and what it told.
_NEWEST = (
    select(func.max(_CALLS.c.number))
    .where(_CALLS.c.tenant_id == bindparam("tenant"), _CALLS.c.session_id == bindparam("session"))
    .scalar_subquery()
)
_REPORT = QuickStatement(update(_CALLS).where(_CALLS.c.number == _NEWEST).values(tokens_reported=bindparam("reported")))
_REPORT_DETAILS = update(_CALLS).where(_CALLS.c.number == _NEWEST).values(details=bindparam("new_details"))
# What is injected is often the same from call to call: it is written once.
_ADD_MESSAGE = {
    "sqlite": insert_sqlite(_ADDED).on_conflict_do_nothing(),
    "postgresql": insert_postgresql(_ADDED).on_conflict_do_nothing(),
}
# What a log entry is read from.
ENTRY = tuple(_MESSAGES.c[name] for name in ("seq", "message_id", "body", "content_hash", "tokens"))
# Databases limit how many values one query may name; 500 is below the limit of each. Chosen.
_MAX_VALUES = 500


def add_call(connection: Connection, keys: Mapping[str, str], commit: Commit, *, now: float) -> None:
    """Write the call of a commit, and what stood behind the log in its prompt."""
    call = commit.call
    if call is None:
        return
    named: list[tuple[str, str]] = []
    for entry in commit.added:
        body = dump_message(entry.message)
        named.append((entry.kind, content_hash(body)))
        row = {**keys, "content_hash": named[-1][1], "body": body, "created_at": now}
        connection.execute(_ADD_MESSAGE[connection.dialect.name], row)
    _ADD_CALL.execute(connection, [{**keys, **_call_row(call), "added": json.dumps(named), "at": now}])


def calls_of(connection: Connection, own: ColumnElement[bool], *, after: int = 0) -> tuple[ModelCall, ...]:
    """Return every call of a session that came after one, oldest first."""
    rows = connection.execute(select(_CALLS).where(own).order_by(_CALLS.c.number).offset(after))
    return tuple(_call(row, number) for number, row in enumerate(rows, after + 1))


def recent_calls(connection: Connection, own: ColumnElement[bool], limit: int) -> tuple[ModelCall, ...]:
    """Return the newest calls of a session, oldest first."""
    newest = connection.execute(select(func.count()).select_from(_CALLS).where(own)).scalar_one()
    rows = connection.execute(select(_CALLS).where(own).order_by(_CALLS.c.number.desc()).limit(limit))
    return tuple(reversed([_call(row, newest - back) for back, row in enumerate(rows)]))


def last_report(connection: Connection, own: ColumnElement[bool]) -> ModelCall | None:
    """Return the newest call whose usage a provider has reported."""
    query = select(_CALLS).where(own, _CALLS.c.tokens_reported.is_not(None)).order_by(_CALLS.c.number.desc()).limit(1)
    row = connection.execute(query).first()
    if row is None:
        return None
    before = select(func.count()).select_from(_CALLS).where(own, _CALLS.c.number < row.number)
    return _call(row, connection.execute(before).scalar_one() + 1)


def report_usage(connection: Connection, keys: Mapping[str, str], tokens: int, told: Mapping[str, int]) -> None:
    """Write what a provider counted for the newest call, and what it `told` of its cache."""
    own = {"tenant": keys["tenant_id"], "session": keys["session_id"]}
    if told:
        known = connection.execute(select(_CALLS.c.details).where(_CALLS.c.number == _NEWEST), own).scalar()
        details = {"new_details": json.dumps({**json.loads(known or "{}"), **told})}
        connection.execute(_REPORT_DETAILS, {**own, **details})
    _REPORT.execute(connection, [{**own, "reported": tokens}])


def sent_prompt(
    connection: Connection, keys: Mapping[str, str], number: int, plan_of: Callable[[int], CompactionPlan]
) -> SentPrompt | None:
    """Return everything that the prompt of one call was made of; `plan_of` returns a plan by its version."""
    if number < 1:
        return None
    query = select(_CALLS).where(_own(_CALLS, keys)).order_by(_CALLS.c.number).limit(1)
    row = connection.execute(query.offset(number - 1)).first()
    if row is None:
        return None
    call = _call(row, number)
    plan, branch = plan_of(call.plan_version), sql_branches.branch_at(connection, keys, call.branch)
    entries = map(branch.shown, _entries_at(connection, keys, _places_shown(connection, keys, call, plan, branch)))
    added = _added_messages(connection, keys, json.loads(row.added))
    return SentPrompt(call=call, plan=plan, messages=tuple(entries), added=tuple(added))


def added_of(connection: Connection, keys: Mapping[str, str], *, after: int) -> dict[int, tuple[AddedMessage, ...]]:
    """Return what stood behind the log in the prompts that came after a call; each message is read once."""
    table = _CALLS.c
    query = select(table.added).where(_own(_CALLS, keys)).order_by(table.number).offset(after)
    rows = enumerate(connection.execute(query), after + 1)
    named: dict[int, list[tuple[str, str]]] = {n: json.loads(row.added) for n, row in rows if row.added != "[]"}
    if not named:
        return {}
    query = select(_ADDED.c.content_hash, _ADDED.c.body).where(_own(_ADDED, keys))
    bodies = {row.content_hash: load_message(row.body) for row in connection.execute(query)}
    return {
        number: tuple(AddedMessage(kind, bodies[digest]) for kind, digest in pieces if digest in bodies)
        for number, pieces in named.items()
    }


def stored_message(row: Row[*tuple[Any, ...]]) -> StoredMessage:
    """Return the log entry of a row that has the columns `ENTRY`.

    Raises:
        StoreError: It is not what was written.
    """
    check_hash(row.body, row.content_hash, what=f"log entry {row.message_id!r}")
    return StoredMessage(row.seq, load_message(row.body), row.tokens)


def _added_messages(
    connection: Connection, keys: Mapping[str, str], named: Sequence[tuple[str, str]]
) -> Iterator[AddedMessage]:
    """Return what stood behind the log in a prompt; each message is named by its kind and its hash."""
    if not named:
        return iter(())
    query = select(_ADDED.c.content_hash, _ADDED.c.body).where(_own(_ADDED, keys))
    rows = connection.execute(query.where(_ADDED.c.content_hash.in_({digest for _, digest in named})))
    bodies: dict[str, str] = {row.content_hash: row.body for row in rows}
    return (AddedMessage(kind, load_message(bodies[digest])) for kind, digest in named if digest in bodies)


def _places_shown(
    connection: Connection, keys: Mapping[str, str], call: ModelCall, plan: CompactionPlan, branch: BranchView
) -> list[int]:
    """Return the places in the log that a prompt shows, as they are or as a stub, in the order of its branch."""
    query = select(_MESSAGES.c.message_id, _MESSAGES.c.seq).where(_own(_MESSAGES, keys))
    query = query.where(_MESSAGES.c.seq <= call.last_seq).order_by(_MESSAGES.c.seq)
    places: dict[str, int] = {row.message_id: row.seq for row in connection.execute(query)}
    ids = [*branch.view_ids, *(message_id for message_id, seq in places.items() if seq > branch.after_seq)]
    return [places[i] for i in ids if i in places and plan.shows(i)]


def _entries_at(connection: Connection, keys: Mapping[str, str], places: Sequence[int]) -> Iterator[StoredMessage]:
    """Return the log entries at these places, in their order."""
    table = _MESSAGES.c
    found: dict[int, Row[*tuple[Any, ...]]] = {}
    for start in range(0, len(places), _MAX_VALUES):
        query = select(*ENTRY).where(_own(_MESSAGES, keys))
        rows = connection.execute(query.where(table.seq.in_(places[start : start + _MAX_VALUES])))
        found.update({row.seq: row for row in rows})
    return (stored_message(found[place]) for place in places)


def _own(table: Any, keys: Mapping[str, str]) -> ColumnElement[bool]:
    return and_(*(table.c[name] == value for name, value in keys.items()))


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
        "details": json.dumps(dict(call.details)),
    }


def _call(row: Row[*tuple[Any, ...]], number: int) -> ModelCall:
    known: dict[str, Any] = {name: getattr(row, name) for name in _CALL_FIELDS}
    known.update({name: json.loads(getattr(row, name)) for name in ("parts", "limits", "details")}, number=number)
    return ModelCall(**known)
