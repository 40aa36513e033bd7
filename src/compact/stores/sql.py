"""The state store on SQLAlchemy Core: one code path for SQLite (embedded) and PostgreSQL (shared)."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields, replace
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

from compact.core.audit.records import (
    Commit,
    ModelCall,
    PlanVersion,
    SentPrompt,
    SessionHead,
    SessionInfo,
    StoredMessage,
    StoredSession,
)
from compact.core.audit.store import VersionConflict
from compact.core.log.messages import Message
from compact.core.plan.plan import CompactionPlan
from compact.stores import calls, schema, search
from compact.stores.artifacts import SqlArtifactStore
from compact.stores.claims import SqlSummaryClaims
from compact.stores.database import Database
from compact.stores.memory import advanced
from compact.stores.summary_cache import SqlSummaryCache
from compact.stores.wire import content_hash, dump_message, load_original, searchable

Read = Callable[[object, str], Message]
_PART_SECONDS = 0.05

# What every preflight asks and writes is built once: building it takes longer than running it.
_SESSIONS = schema.sessions.c
_OWN = and_(_SESSIONS.tenant_id == bindparam("tenant"), _SESSIONS.session_id == bindparam("session"))
_HEAD = select(_SESSIONS.last_seq, _SESSIONS.plan_version, _SESSIONS.branch).where(_OWN)
_ADVANCE = update(schema.sessions).where(
    _OWN, *(_SESSIONS[spec.name] == bindparam(f"expected_{spec.name}") for spec in fields(SessionHead))
)


class SqlCompactionStore:
    """The sessions of one tenant in a database."""

    blocks = True

    def __init__(
        self, database: Database, *, read: Read, tenant_id: str = "", clock: Callable[[], float] = time.time
    ) -> None:
        self._database, self._read, self._tenant_id, self._clock = database, read, tenant_id, clock
        self.artifacts = SqlArtifactStore(database, clock=clock)
        self.claims = SqlSummaryClaims(database, tenant_id=tenant_id, clock=clock)
        self.summaries = SqlSummaryCache(database, clock=clock)

    # -- sessions -------------------------------------------------------------------------------------------------

    def head(self, session_id: str) -> SessionHead:
        """How far a session has come."""
        with self._database.reading() as connection:
            return self._head(connection, session_id) or SessionHead()

    def _head(self, connection: Connection, session_id: str) -> SessionHead | None:
        row = connection.execute(_HEAD, {"tenant": self._tenant_id, "session": session_id}).first()
        return SessionHead(*row) if row else None

    def load(self, session_id: str) -> StoredSession | None:
        """Everything about a session."""
        with self._database.reading() as connection:
            head = self._head(connection, session_id)
            if head is None:
                return None
            stored = self._messages(connection, session_id)
            return StoredSession(
                session_id=session_id,
                head=head,
                messages=stored,
                view_ids=self._view_ids(connection, session_id, stored),
                plan=self._plan(connection, session_id, head.plan_version),
                last_report=calls.last_report(connection, self._own(schema.model_calls, session_id)),
            )

    def commit(self, commit: Commit) -> SessionHead:
        """Write what a call adds, in one transaction."""
        after, now = advanced(commit), self._clock()
        try:
            with self._database.writing() as connection:
                self._advance(connection, commit, after, now)
                self._add(connection, commit, after, now)
        except (IntegrityError, VersionConflict) as error:
            # Losers that come back at the same moment lose again; a little chance parts them.
            time.sleep(random.uniform(0, _PART_SECONDS))
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
        if connection.execute(_ADVANCE, {**own, **expected, **moved}).rowcount != 1:
            raise VersionConflict(f"session {commit.session_id!r} is no longer at {commit.expected}")

    def _add(self, connection: Connection, commit: Commit, after: SessionHead, now: float) -> None:
        keys: dict[str, Any] = {"tenant_id": self._tenant_id, "session_id": commit.session_id}
        if commit.messages:
            rows = [{**keys, **_message_row(stored), "created_at": now} for stored in commit.messages]
            connection.execute(insert(schema.messages), rows)
        if commit.view_ids is not None:
            view = {"branch": after.branch, "after_seq": after.last_seq, "view_ids": json.dumps(commit.view_ids)}
            connection.execute(insert(schema.branches), {**keys, **view, "created_at": now})
        for plan in (*commit.superseded, commit.plan):
            if plan:
                row = {**keys, "version": plan.version, "body": json.dumps(plan.to_dict()), "created_at": now}
                connection.execute(insert(schema.plans), row)
        calls.add_call(connection, keys, commit, now=now)

    def _messages(self, connection: Connection, session_id: str) -> tuple[StoredMessage, ...]:
        table = schema.messages.c
        rows = connection.execute(
            select(table.seq, table.body, table.tokens)
            .where(self._own(schema.messages, session_id))
            .order_by(table.seq)
        )
        return tuple(self._stored(row) for row in rows)

    def _stored(self, row: Row[*tuple[Any, ...]]) -> StoredMessage:
        message_id, original = load_original(row.body)
        return StoredMessage(row.seq, replace(self._read(original, message_id), id=message_id), row.tokens)

    def _view_ids(self, connection: Connection, session_id: str, stored: tuple[StoredMessage, ...]) -> tuple[str, ...]:
        """The line the caller is on: the last edit of the past, and all that came after it."""
        table = schema.branches.c
        row = connection.execute(
            select(table.after_seq, table.view_ids)
            .where(self._own(schema.branches, session_id))
            .order_by(table.branch.desc())
            .limit(1)
        ).first()
        start, view = (row.after_seq, json.loads(row.view_ids)) if row else (0, [])
        return (*view, *(entry.message.id for entry in stored if entry.seq > start))

    # -- plans, calls ---------------------------------------------------------------------------------------------

    def get_current_plan(self, session_id: str) -> tuple[CompactionPlan, int]:
        """The plan in force and its version."""
        with self._database.reading() as connection:
            head = self._head(connection, session_id) or SessionHead()
            return self._plan(connection, session_id, head.plan_version), head.plan_version

    def _plan(self, connection: Connection, session_id: str, version: int) -> CompactionPlan:
        body = connection.execute(
            select(schema.plans.c.body)
            .where(self._own(schema.plans, session_id))
            .where(schema.plans.c.version == version)
        ).scalar_one_or_none()
        return CompactionPlan.from_dict(json.loads(body)) if body else CompactionPlan(session_id, version)

    def commit_plan(self, session_id: str, plan: CompactionPlan, expected_version: int) -> int:
        """Put a plan in force."""
        expected = replace(self.head(session_id), plan_version=expected_version)
        plan = replace(plan, version=expected_version + 1)
        return self.commit(Commit(session_id=session_id, expected=expected, plan=plan)).plan_version

    def plans(self, session_id: str) -> tuple[PlanVersion, ...]:
        """Every plan that ever was in force."""
        table = schema.plans.c
        with self._database.reading() as connection:
            rows = connection.execute(
                select(table.body, table.created_at).where(self._own(schema.plans, session_id)).order_by(table.version)
            )
            return tuple(PlanVersion(CompactionPlan.from_dict(json.loads(body)), at) for body, at in rows)

    def model_calls(self, session_id: str) -> tuple[ModelCall, ...]:
        """Every prompt that went out."""
        with self._database.reading() as connection:
            return calls.calls_of(connection, self._own(schema.model_calls, session_id))

    def recent_calls(self, session_ids: Sequence[str], limit: int) -> Mapping[str, tuple[ModelCall, ...]]:
        """The newest calls of each of these sessions."""
        with self._database.reading() as connection:
            own = {session_id: self._own(schema.model_calls, session_id) for session_id in session_ids}
            return {session_id: calls.recent_calls(connection, own[session_id], limit) for session_id in own}

    def sent(self, session_id: str, number: int) -> SentPrompt | None:
        """Everything that the prompt of one call was made of."""
        keys = {"tenant_id": self._tenant_id, "session_id": session_id}
        with self._database.reading() as connection:
            found = calls.one_call(connection, keys, number, self._read)
            if found is None:
                return None
            call, added = found
            plan = self._plan(connection, session_id, call.plan_version)
            rows = calls.rows_at(connection, keys, calls.line_of(connection, keys, call, plan))
            return SentPrompt(call=call, plan=plan, messages=tuple(map(self._stored, rows)), added=added)

    def report_usage(self, session_id: str, tokens: int) -> None:
        """Note what the provider counted for the newest call."""
        with self._database.writing() as connection:
            calls.report_usage(connection, self._own(schema.model_calls, session_id), tokens)

    def sessions(self) -> tuple[SessionInfo, ...]:
        """All sessions, the newest first."""
        made, own = schema.model_calls, schema.sessions
        counted = (
            select(made.c.session_id, func.count().label("calls"), func.max(made.c.number).label("newest"))
            .where(made.c.tenant_id == self._tenant_id)
            .group_by(made.c.session_id)
            .subquery()
        )
        query = (
            select(own, counted.c.calls, made.c.tokens_estimated)
            .outerjoin(counted, counted.c.session_id == own.c.session_id)
            .outerjoin(made, made.c.number == counted.c.newest)
            .where(own.c.tenant_id == self._tenant_id)
            .order_by(own.c.updated_at.desc(), own.c.session_id)
        )
        with self._database.reading() as connection:
            return tuple(_info(row) for row in connection.execute(query))

    def message(self, session_id: str, message_id: str) -> StoredMessage | None:
        """One log entry by its id."""
        table = schema.messages.c
        query = select(table.seq, table.body, table.tokens).where(self._own(schema.messages, session_id))
        with self._database.reading() as connection:
            row = connection.execute(query.where(table.message_id == message_id)).first()
        return self._stored(row) if row else None

    def messages(self, session_id: str, *, after_seq: int = 0, limit: int = 100) -> tuple[StoredMessage, ...]:
        """So many log entries behind a place, oldest first."""
        table = schema.messages.c
        query = select(table.seq, table.body, table.tokens).where(self._own(schema.messages, session_id))
        query = query.where(table.seq > after_seq).order_by(table.seq).limit(limit)
        with self._database.reading() as connection:
            return tuple(self._stored(row) for row in connection.execute(query))

    def outline(self, session_id: str) -> tuple[tuple[str, int], ...]:
        """The id and the tokens of every log entry."""
        table = schema.messages.c
        query = select(table.message_id, table.tokens).where(self._own(schema.messages, session_id)).order_by(table.seq)
        with self._database.reading() as connection:
            return tuple((row.message_id, row.tokens) for row in connection.execute(query))

    def search(self, session_id: str, words: str, limit: int) -> tuple[StoredMessage, ...]:
        """Log entries that hold all the words, best first."""
        with self._database.reading() as connection:
            rows = search.entries(connection, self._tenant_id, session_id, words, limit)
            return tuple(self._stored(row) for row in rows)

    def sessions_with(self, words: str) -> frozenset[str]:
        """The sessions that have a log entry with all the words in it."""
        with self._database.reading() as connection:
            return search.sessions(connection, self._tenant_id, words)

    # -- the rest -------------------------------------------------------------------------------------------------

    def delete(self, session_id: str) -> bool:
        """Remove a session and all that belongs to it."""
        with self._database.writing() as connection:
            table = schema.artifacts.c
            own = and_(table.tenant_id == self._tenant_id, table.session_id == session_id)
            connection.execute(delete(schema.artifacts).where(own))
            gone = [connection.execute(delete(t).where(self._own(t, session_id))) for t in schema.BY_SESSION]
        return gone[-1].rowcount == 1

    def close(self) -> None:
        """Let go of connections."""
        self._database.close()

    def _own(self, table: Table, session_id: str) -> ColumnElement[bool]:
        return and_(table.c.tenant_id == self._tenant_id, table.c.session_id == session_id)


def _message_row(stored: StoredMessage) -> dict[str, Any]:
    body = dump_message(stored.message)
    return {
        "seq": stored.seq,
        "message_id": stored.message.id,
        "body": body,
        "content_hash": content_hash(body),
        "tokens": stored.tokens,
        "words": searchable(stored.message),
    }


def _info(row: Row[*tuple[Any, ...]]) -> SessionInfo:
    return SessionInfo(
        session_id=row.session_id,
        messages=row.last_seq,
        plan_version=row.plan_version,
        model_calls=row.calls or 0,
        last_tokens=row.tokens_estimated or 0,
        created_at=row.created_at,
        updated_at=row.updated_at,
    )
