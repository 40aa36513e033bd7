"""Sessions in a database, by SQLAlchemy Core: one code path for SQLite (embedded) and PostgreSQL (shared)."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    Table,
    and_,
    bindparam,
    delete,
    func,
    insert,
    select,
    update,
)
from sqlalchemy.exc import IntegrityError

from compact.core.audit.call_details import reported_cache
from compact.core.audit.records import (
    CallHistory,
    Commit,
    EntrySize,
    ImportedHistory,
    ModelCall,
    PlanVersion,
    SentPrompt,
    SessionHead,
    SessionInfo,
    StoredMessage,
    StoredSession,
)
from compact.core.audit.store import PlanMethods, VersionConflict
from compact.core.plan.plan import CompactionPlan
from compact.core.search.ranking import rank
from compact.core.search.search_terms import read_query
from compact.stores import schema, sql_branches, sql_calls, sql_search
from compact.stores.database import Database, QuickStatement
from compact.stores.entry_text import content_hash, dump_message
from compact.stores.packing import read_ids, written_ids
from compact.stores.sql_artifacts import SqlArtifactStore
from compact.stores.sql_calls import stored_message
from compact.stores.sql_events import SqlEventStore, delete_events
from compact.stores.sql_shared import SqlSummaryCache, SqlSummaryClaims
from compact.waiting.progress import ROWS_AT_ONCE, in_parts, note_progress

# Chosen: longer than a commit takes, shorter than anybody notices.
_MAX_CONFLICT_PAUSE_SECONDS = 0.05

# Chosen: 128 bits of a SHA-256, which notice any change, at half the room.
_HASH_CHARS = 32
# Chosen: a fraction of a second, for which whoever writes to the same file waits.
_DELETED_AT_ONCE = 250

# What every preflight asks and writes is built once: building it takes longer than running it.
_SESSIONS = schema.sessions.c
_OWN = and_(_SESSIONS.tenant_id == bindparam("tenant"), _SESSIONS.session_id == bindparam("session"))
_HEAD = QuickStatement(select(_SESSIONS.last_seq, _SESSIONS.plan_version, _SESSIONS.branch).where(_OWN))
_HEAD_FIELDS = tuple(spec.name for spec in fields(SessionHead))
_ADVANCE = QuickStatement(
    update(schema.sessions).where(_OWN, *(_SESSIONS[name] == bindparam(f"expected_{name}") for name in _HEAD_FIELDS)),
    (*_HEAD_FIELDS, "updated_at"),
)
_ADD_MESSAGES = QuickStatement(insert(schema.messages), tuple(column.name for column in schema.messages.c))


class SqlCompactionStore(PlanMethods):
    """The sessions of one tenant in a database."""

    blocks = True

    def __init__(self, database: Database, *, tenant_id: str = "", clock: Callable[[], float] | None = None) -> None:
        self.claims = SqlSummaryClaims(database, tenant_id=tenant_id, clock=clock)
        clock = clock or time.time
        self._database, self._tenant_id, self._clock = database, tenant_id, clock
        self.artifacts = SqlArtifactStore(database, clock=clock)
        self.summaries = SqlSummaryCache(database, tenant_id=tenant_id, clock=clock)
        self.events = SqlEventStore(database, tenant_id=tenant_id, clock=clock)

    # -- for the engine ---------------------------------------------------------------------------------------------

    def head(self, session_id: str) -> SessionHead:
        """Return how far a session has come."""
        row = self._database.first_row(_HEAD, {"tenant": self._tenant_id, "session": session_id})
        return SessionHead(*row) if row else SessionHead()

    def _head(self, connection: Connection, session_id: str) -> SessionHead | None:
        row = connection.execute(_HEAD.statement, {"tenant": self._tenant_id, "session": session_id}).first()
        return SessionHead(*row) if row else None

    def load(self, session_id: str) -> StoredSession | None:
        """Return everything needed to go on with a session."""
        with self._database.reading() as connection:
            head = self._head(connection, session_id)
            if head is None:
                return None
            stored = self._messages(connection, session_id)
            keys = {"tenant_id": self._tenant_id, "session_id": session_id}
            branch = sql_branches.branch_at(connection, keys, head.branch)
            later = (entry.message.id for entry in stored if entry.seq > branch.after_seq)
            return StoredSession(
                session_id=session_id,
                head=head,
                messages=stored,
                view_ids=(*branch.view_ids, *later),
                plan=self._plan(connection, session_id, head.plan_version),
                last_report=sql_calls.last_report(connection, self._own(schema.model_calls, session_id)),
                forms=branch.forms,
                unseen=branch.unseen,
            )

    def commit(self, commit: Commit) -> SessionHead:
        """Write what a call adds, in one transaction."""
        after, now = commit.head_after, self._clock()
        keys = {"tenant_id": self._tenant_id, "session_id": commit.session_id}
        # All that takes long is done before other writers must wait.
        parts = in_parts(commit.messages)
        rows = [{**keys, **_message_row(stored), "created_at": now} for part in parts for stored in part]
        rows = _ADD_MESSAGES.prepared(rows, self._database)
        index_rows = sql_search.index_rows(self._database, keys, commit.messages)
        try:
            with self._database.writing() as connection:
                self._advance(connection, commit, after, now)
                if rows:
                    _ADD_MESSAGES.execute_prepared(connection, rows)
                    sql_search.add_to_index(connection, keys, index_rows)
                self._add(connection, commit, now)
        except (IntegrityError, VersionConflict) as error:
            # Processes that try again at the same moment lose again, so each waits for a time of its own.
            time.sleep(random.uniform(0, _MAX_CONFLICT_PAUSE_SECONDS))
            raise VersionConflict(f"session {commit.session_id!r} is no longer at {commit.expected}") from error
        return after

    def _advance(self, connection: Connection, commit: Commit, after: SessionHead, now: float) -> None:
        """Move the head, which only works for one of several that start from the same place."""
        moved = {**asdict(after), "updated_at": now}
        if commit.expected == SessionHead() and self._head(connection, commit.session_id) is None:
            keys = {"tenant_id": self._tenant_id, "session_id": commit.session_id}
            connection.execute(insert(schema.sessions), {**keys, **moved, "created_at": now})
            return
        expected = {f"expected_{name}": value for name, value in asdict(commit.expected).items()}
        own = {"tenant": self._tenant_id, "session": commit.session_id}
        if _ADVANCE.execute(connection, [{**own, **expected, **moved}]) != 1:
            raise VersionConflict(f"session {commit.session_id!r} is no longer at {commit.expected}")

    def _add(self, connection: Connection, commit: Commit, now: float) -> None:
        keys: dict[str, Any] = {"tenant_id": self._tenant_id, "session_id": commit.session_id}
        if commit.imported:
            row = {"imported": json.dumps(asdict(commit.imported))}
            connection.execute(update(schema.sessions).where(self._own(schema.sessions, commit.session_id)), row)
        if commit.is_branch:
            sql_branches.add_branch(connection, keys, commit, now=now)
        for plan in (*commit.superseded, commit.plan):
            if plan:
                row = {**keys, "version": plan.version, "body": _plan_text(plan), "created_at": now}
                connection.execute(insert(schema.plans), row)
        sql_calls.add_call(connection, keys, commit, now=now)

    def _messages(self, connection: Connection, session_id: str) -> tuple[StoredMessage, ...]:
        table = schema.messages.c
        rows = connection.execute(
            select(*sql_calls.ENTRY).where(self._own(schema.messages, session_id)).order_by(table.seq)
        )
        messages: list[StoredMessage] = []
        for part in rows.partitions(ROWS_AT_ONCE):
            messages += map(stored_message, part)
            note_progress()
        return tuple(messages)

    def get_current_plan(self, session_id: str) -> tuple[CompactionPlan, int]:
        """Return the plan in force and its version."""
        with self._database.reading() as connection:
            head = self._head(connection, session_id) or SessionHead()
            return self._plan(connection, session_id, head.plan_version), head.plan_version

    def _plan(self, connection: Connection, session_id: str, version: int) -> CompactionPlan:
        body = connection.execute(
            select(schema.plans.c.body)
            .where(self._own(schema.plans, session_id))
            .where(schema.plans.c.version == version)
        ).scalar_one_or_none()
        return _read_plan(body) if body else CompactionPlan(session_id, version)

    def plans(self, session_id: str) -> tuple[PlanVersion, ...]:
        """Return every plan that was ever in force."""
        table = schema.plans.c
        with self._database.reading() as connection:
            rows = connection.execute(
                select(table.body, table.created_at).where(self._own(schema.plans, session_id)).order_by(table.version)
            )
            return tuple(PlanVersion(_read_plan(body), at) for body, at in rows)

    def report_usage(
        self,
        session_id: str,
        tokens: int,
        *,
        cache_read_tokens: int | None = None,
        cache_write_tokens: int | None = None,
    ) -> None:
        """Write what the provider counted for the newest call."""
        told = reported_cache(cache_read_tokens, cache_write_tokens)
        with self._database.writing() as connection:
            keys = {"tenant_id": self._tenant_id, "session_id": session_id}
            sql_calls.report_usage(connection, keys, tokens, told)

    def delete(self, session_id: str) -> bool:
        """Remove a session and all that belongs to it."""
        with self._database.writing() as connection:
            return self._delete(connection, [session_id]) == 1

    def delete_unused(self, session_ids: Sequence[str], *, before: float) -> frozenset[str]:
        """Remove those of these sessions that were not used since a time; others write between some hundred of them."""
        gone: set[str] = set()
        for start in range(0, len(session_ids), _DELETED_AT_ONCE):
            part = self._own_all(schema.sessions, session_ids[start : start + _DELETED_AT_ONCE])
            unused = select(_SESSIONS.session_id).where(part, _SESSIONS.updated_at < before).with_for_update()
            with self._database.writing() as connection:
                found = connection.scalars(unused).all()
                self._delete(connection, found)
            gone.update(found)
        return frozenset(gone)

    def _delete(self, connection: Connection, session_ids: Sequence[str]) -> int:
        """Remove sessions and all that belongs to them; return how many there were."""
        gone = [connection.execute(delete(t).where(self._own_all(t, session_ids))) for t in schema.BY_SESSION]
        delete_events(connection, self._tenant_id, session_ids)
        return gone[0].rowcount

    def shrink(self) -> None:
        """Give the room of what was deleted back to the disk."""
        self._database.shrink()

    def close(self) -> None:
        """Close all connections."""
        self._database.close()

    # -- for readers ------------------------------------------------------------------------------------------------

    def model_calls(self, session_id: str) -> tuple[ModelCall, ...]:
        """Return every prompt that went out."""
        with self._database.reading() as connection:
            return sql_calls.calls_of(connection, self._own(schema.model_calls, session_id))

    def recent_calls(self, session_ids: Sequence[str], limit: int) -> Mapping[str, tuple[ModelCall, ...]]:
        """Return the newest calls of each of these sessions."""
        with self._database.reading() as connection:
            own = {session_id: self._own(schema.model_calls, session_id) for session_id in session_ids}
            return {session_id: sql_calls.recent_calls(connection, own[session_id], limit) for session_id in own}

    def sent(self, session_id: str, number: int) -> SentPrompt | None:
        """Return everything that the prompt of one call was made of."""
        keys = {"tenant_id": self._tenant_id, "session_id": session_id}
        with self._database.reading() as connection:
            return sql_calls.sent_prompt(connection, keys, number, lambda v: self._plan(connection, session_id, v))

    def call_history(self, session_id: str, *, after_call: int = 0, after_branch: int = 0) -> CallHistory | None:
        """Return what the prompts of the later calls were made of, and the later branches."""
        keys = {"tenant_id": self._tenant_id, "session_id": session_id}
        with self._database.reading() as connection:
            head = self._head(connection, session_id)
            if head is None:
                return None
            created = select(_SESSIONS.created_at).where(self._own(schema.sessions, session_id))
            return CallHistory(
                created_at=connection.execute(created).scalar_one(),
                head=head,
                calls=sql_calls.calls_of(connection, self._own(schema.model_calls, session_id), after=after_call),
                branches=sql_branches.views_of(connection, keys, first=after_branch + 1),
                added=sql_calls.added_of(connection, keys, after=after_call),
            )

    def sessions(self) -> tuple[SessionInfo, ...]:
        """Return all sessions, the newest first."""
        return self._infos()

    def session_info(self, session_id: str) -> SessionInfo | None:
        """Return one session of the list, without reading the others."""
        return next(iter(self._infos(session_id)), None)

    def _infos(self, session_id: str | None = None) -> tuple[SessionInfo, ...]:
        made, own = schema.model_calls, schema.sessions
        is_made, is_own = made.c.tenant_id == self._tenant_id, own.c.tenant_id == self._tenant_id
        if session_id is not None:
            is_made, is_own = self._own(made, session_id), self._own(own, session_id)
        counted = (
            select(made.c.session_id, func.count().label("calls"), func.max(made.c.number).label("newest"))
            .where(is_made)
            .group_by(made.c.session_id)
            .subquery()
        )
        query = (
            select(own, counted.c.calls, made.c.tokens_estimated)
            .outerjoin(counted, counted.c.session_id == own.c.session_id)
            .outerjoin(made, made.c.number == counted.c.newest)
            .where(is_own)
            .order_by(own.c.updated_at.desc(), own.c.session_id)
        )
        with self._database.reading() as connection:
            return tuple(_info(row) for row in connection.execute(query))

    def message(self, session_id: str, message_id: str) -> StoredMessage | None:
        """Return one log entry by its id."""
        table = schema.messages.c
        query = select(*sql_calls.ENTRY).where(self._own(schema.messages, session_id))
        with self._database.reading() as connection:
            query = query.where(table.message_id == bindparam("wanted_id"))
            row = connection.execute(query, {"wanted_id": message_id}).first()
        return stored_message(row) if row else None

    def messages(self, session_id: str, *, after_seq: int = 0, limit: int = 100) -> tuple[StoredMessage, ...]:
        """Return at most `limit` log entries that follow a place in the log, oldest first."""
        table = schema.messages.c
        query = select(*sql_calls.ENTRY).where(self._own(schema.messages, session_id))
        query = query.where(table.seq > after_seq).order_by(table.seq).limit(limit)
        with self._database.reading() as connection:
            return tuple(stored_message(row) for row in connection.execute(query))

    def outline(self, session_id: str) -> tuple[EntrySize, ...]:
        """Return the id and the tokens of every log entry."""
        table = schema.messages.c
        query = select(table.message_id, table.tokens).where(self._own(schema.messages, session_id)).order_by(table.seq)
        with self._database.reading() as connection:
            return tuple(EntrySize(row.message_id, row.tokens) for row in connection.execute(query))

    def search(self, session_id: str, words: str, limit: int) -> tuple[StoredMessage, ...]:
        """Return log entries that match a query, best first."""
        sql_search.index_waiting_entries(self._database, self._tenant_id, session_id)
        with self._database.reading() as connection:
            head = self._head(connection, session_id)
            if head is None:
                return ()
            index = sql_search.SqlTermIndex(connection, self._tenant_id, session_id, head.last_seq)
            best = rank(read_query(words), index, limit)
            table = schema.messages.c
            query = select(*sql_calls.ENTRY).where(self._own(schema.messages, session_id))
            rows = connection.execute(query.where(table.seq.in_(best)))
            found = {row.seq: stored_message(row) for row in rows}
        return tuple(found[seq] for seq in best)

    def sessions_with(self, words: str) -> frozenset[str]:
        """Return the sessions that have a log entry with all the words in it."""
        sql_search.index_waiting_entries(self._database, self._tenant_id)
        with self._database.reading() as connection:
            return sql_search.search_sessions(connection, self._tenant_id, words)

    def _own(self, table: Table, session_id: str) -> ColumnElement[bool]:
        return and_(table.c.tenant_id == self._tenant_id, table.c.session_id == session_id)

    def _own_all(self, table: Table, session_ids: Sequence[str]) -> ColumnElement[bool]:
        return and_(table.c.tenant_id == self._tenant_id, table.c.session_id.in_(session_ids))


def _message_row(stored: StoredMessage) -> dict[str, Any]:
    body = dump_message(stored.message)
    return {
        "seq": stored.seq,
        "message_id": stored.message.id,
        "body": body,
        "content_hash": content_hash(body)[:_HASH_CHARS],
        "tokens": stored.tokens,
    }


def _plan_text(plan: CompactionPlan) -> str:
    data = plan.to_dict()
    # A summary stands for thousands of messages, and each plan names all of them.
    data["records"] = [{**record, "span": written_ids(record["span"])} for record in data["records"]]
    return json.dumps(data)


def _read_plan(body: str) -> CompactionPlan:
    data = json.loads(body)
    data["records"] = [{**record, "span": list(read_ids(record["span"]))} for record in data["records"]]
    return CompactionPlan.from_dict(data)


def _info(row: Row[*tuple[Any, ...]]) -> SessionInfo:
    imported = ImportedHistory(**json.loads(row.imported)) if row.imported else None
    return SessionInfo(
        session_id=row.session_id,
        messages=row.last_seq,
        plan_version=row.plan_version,
        model_calls=row.calls or 0,
        last_tokens=row.tokens_estimated or (imported.tokens if imported else 0),
        created_at=row.created_at,
        updated_at=row.updated_at,
        imported=imported,
    )
