"""The state store on SQLAlchemy Core: one code path for SQLite (embedded) and PostgreSQL (shared)."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
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
    text,
    update,
)
from sqlalchemy.exc import IntegrityError

from compact.core.messages import Message
from compact.core.plan import CompactionPlan
from compact.core.records import (
    Commit,
    ModelCall,
    PlanVersion,
    SessionHead,
    SessionInfo,
    StoredMessage,
    StoredSession,
    VersionConflict,
)
from compact.stores import schema
from compact.stores.artifacts import SqlArtifactStore
from compact.stores.claims import SqlSummaryClaims
from compact.stores.database import Database
from compact.stores.memory import advanced
from compact.stores.summary_cache import SqlSummaryCache
from compact.stores.wire import content_hash, dump_message, load_original, searchable, wanted

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
                last_report=self._last_report(connection, session_id),
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
        for plan in (*commit.overtaken, commit.plan):
            if plan:
                row = {**keys, "version": plan.version, "body": json.dumps(plan.to_dict()), "created_at": now}
                connection.execute(insert(schema.plans), row)
        if commit.call:
            connection.execute(insert(schema.model_calls), {**keys, **_call_row(commit.call), "at": now})

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
            return self._calls(connection, session_id)

    def _calls(self, connection: Connection, session_id: str) -> tuple[ModelCall, ...]:
        table = schema.model_calls
        query = select(table).where(self._own(table, session_id)).order_by(table.c.number)
        return tuple(_call(row) for row in connection.execute(query))

    def _last_report(self, connection: Connection, session_id: str) -> ModelCall | None:
        table = schema.model_calls
        query = select(table).where(self._own(table, session_id), table.c.tokens_reported.is_not(None))
        row = connection.execute(query.order_by(table.c.number.desc()).limit(1)).first()
        return _call(row) if row else None

    def report_usage(self, session_id: str, tokens: int) -> None:
        """Note what the provider counted for the newest call."""
        table = schema.model_calls
        newest = select(func.max(table.c.number)).where(self._own(table, session_id)).scalar_subquery()
        with self._database.writing() as connection:
            connection.execute(update(table).where(table.c.number == newest).values(tokens_reported=tokens))

    def sessions(self) -> tuple[SessionInfo, ...]:
        """All sessions, the newest first."""
        calls, own = schema.model_calls, schema.sessions
        counted = (
            select(calls.c.session_id, func.count().label("calls"), func.max(calls.c.number).label("newest"))
            .where(calls.c.tenant_id == self._tenant_id)
            .group_by(calls.c.session_id)
            .subquery()
        )
        query = (
            select(own, counted.c.calls, calls.c.tokens_estimated)
            .outerjoin(counted, counted.c.session_id == own.c.session_id)
            .outerjoin(calls, calls.c.number == counted.c.newest)
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

    def search(self, session_id: str, words: str, limit: int) -> tuple[StoredMessage, ...]:
        """Log entries that hold all the words, best first."""
        phrases = " ".join(f'"{phrase}"' for phrase in wanted(words))
        if not phrases:
            return ()
        own = {"tenant_id": self._tenant_id, "session_id": session_id}
        with self._database.reading() as connection:
            query = text(_SEARCH[connection.dialect.name]).bindparams(*(bindparam(name, type_=_EXACT) for name in own))
            rows = connection.execute(query, {**own, "words": phrases, "limit": limit})
            return tuple(self._stored(row) for row in rows)

    # -- the rest -------------------------------------------------------------------------------------------------

    def delete(self, session_id: str) -> bool:
        """Remove a session and all that belongs to it."""
        with self._database.writing() as connection:
            table = schema.artifacts.c
            own = and_(table.tenant_id == self._tenant_id, table.thread_id == session_id)
            connection.execute(delete(schema.artifacts).where(own))
            gone = [connection.execute(delete(t).where(self._own(t, session_id))) for t in schema.BY_SESSION]
        return gone[-1].rowcount == 1

    def close(self) -> None:
        """Let go of connections."""
        self._database.close()

    def _own(self, table: Table, session_id: str) -> ColumnElement[bool]:
        return and_(table.c.tenant_id == self._tenant_id, table.c.session_id == session_id)


_EXACT = schema.Exact()
_SEARCH = {
    "sqlite": (
        "SELECT m.seq, m.body, m.tokens FROM compact_words w JOIN compact_messages m ON m.rowid = w.rowid "
        "WHERE compact_words MATCH :words AND m.tenant_id = :tenant_id AND m.session_id = :session_id "
        "ORDER BY w.rank, m.seq DESC LIMIT :limit"
    ),
    "postgresql": (
        "SELECT seq, body, tokens FROM compact_messages, websearch_to_tsquery('simple', :words) q "
        f"WHERE {schema.TSVECTOR} @@ q AND tenant_id = :tenant_id AND session_id = :session_id "
        f"ORDER BY ts_rank_cd({schema.TSVECTOR}, q) DESC, seq DESC LIMIT :limit"
    ),
}


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
        "tiers": json.dumps(dict(call.tiers)),
    }


def _call(row: Row[*tuple[Any, ...]]) -> ModelCall:
    known = {name: value for name, value in row._mapping.items() if name not in ("tenant_id", "session_id")}
    return ModelCall(**{**known, "tiers": json.loads(row.tiers)})


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
