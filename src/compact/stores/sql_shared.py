"""What processes share through the database: claims on summaries, and summaries by what they were made of."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import astuple

from sqlalchemy import ColumnElement, Connection, and_, delete, func, insert, select, text, update
from sqlalchemy.exc import IntegrityError

from compact.core.audit.records import PrefetchedSummary
from compact.core.summary.summarizer import SummaryCacheKey
from compact.core.summary.summary import StructuredSummary
from compact.stores import schema
from compact.stores.database import Database

# Chosen: a summary takes seconds to write, and asking twenty times a second costs a database little.
_POLL_SECONDS = 0.05


class SqlSummaryClaims:
    """One row per span; inserting it is the claim."""

    def __init__(self, database: Database, *, tenant_id: str = "", clock: Callable[[], float] = time.time) -> None:
        self._database, self._tenant_id, self._clock = database, tenant_id, clock

    def claim(self, session_id: str, span_key: str, *, stale_after_seconds: float) -> bool:
        """Return True for the one caller that is to write the summary of a span."""
        table, now = schema.summaries, self._clock()
        keys = {"tenant_id": self._tenant_id, "session_id": session_id, "span_key": span_key}
        try:
            with self._database.writing() as connection:
                connection.execute(insert(table).values(**keys, claimed_at=now))
                return True
        except IntegrityError:
            with self._database.writing() as connection:
                taken = connection.execute(
                    update(table)
                    .where(self._span(session_id, span_key), table.c.finished_at.is_(None))
                    .where(table.c.claimed_at < now - stale_after_seconds)
                    .values(claimed_at=now)
                )
                return taken.rowcount == 1

    def finish(self, session_id: str, span_key: str, summary: StructuredSummary | None) -> None:
        """Store the summary of a claimed span, or give the claim up; a summary that is there stays."""
        table = schema.summaries
        unfinished = and_(self._span(session_id, span_key), table.c.finished_at.is_(None))
        with self._database.writing() as connection:
            if summary is None:
                connection.execute(delete(table).where(unfinished))
            else:
                values = {"body": json.dumps(summary.to_dict()), "finished_at": self._clock()}
                connection.execute(update(table).where(unfinished), values)

    def finished(self, session_id: str, span_key: str) -> StructuredSummary | None:
        """Return the summary of a span, once it is written."""
        with self._database.reading() as connection:
            query = select(schema.summaries.c.body).where(self._span(session_id, span_key))
            body = connection.execute(query).scalar_one_or_none()
        return StructuredSummary.from_dict(json.loads(body)) if body else None

    def store_prefetched(self, session_id: str, span_key: str, prefetched: PrefetchedSummary) -> None:
        """Write what a finished summary stands for."""
        own, ids = self._span(session_id, span_key), json.dumps(prefetched.message_ids)
        with self._database.writing() as connection:
            values = {"version": prefetched.version, "message_ids": ids}
            connection.execute(update(schema.summaries).where(own), values)

    def prefetched(self, session_id: str, version: int) -> PrefetchedSummary | None:
        """Return the newest summary that was prefetched for a version."""
        table = schema.summaries.c
        query = (
            select(table.body, table.message_ids)
            .where(table.tenant_id == self._tenant_id, table.session_id == session_id)
            .where(table.version == version, table.finished_at.is_not(None))
            .order_by(table.finished_at.desc())
            .limit(1)
        )
        with self._database.reading() as connection:
            row = connection.execute(query).first()
        if row is None:
            return None
        summary = StructuredSummary.from_dict(json.loads(row.body))
        return PrefetchedSummary(tuple(json.loads(row.message_ids)), version, summary)

    def wait(self, session_id: str, span_key: str, *, timeout_seconds: float) -> StructuredSummary | None:
        """Wait for the summary that another process writes; None if it gives the claim up or takes too long."""
        deadline = time.monotonic() + timeout_seconds
        while time.monotonic() < deadline:
            with self._database.reading() as connection:
                table = schema.summaries.c
                row = connection.execute(select(table.body).where(self._span(session_id, span_key))).first()
            if row is None:
                return None
            if row.body:
                return StructuredSummary.from_dict(json.loads(row.body))
            time.sleep(_POLL_SECONDS)
        return None

    def _span(self, session_id: str, span_key: str) -> ColumnElement[bool]:
        table = schema.summaries.c
        own = and_(table.tenant_id == self._tenant_id, table.session_id == session_id)
        return and_(own, table.span_key == span_key)


class SqlSummaryCache:
    """The most recently used summaries of all tenants, each for a limited time; a key says whose it is."""

    # Chosen: a summary takes some kilobytes, and a session that rested for a month is rarely gone on with.
    def __init__(
        self,
        database: Database,
        *,
        tenant_id: str = "",
        max_entries: int = 10_000,
        ttl_seconds: float = 30 * 86_400,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._database, self._tenant_id, self._clock = database, tenant_id, clock
        self._max_entries, self._ttl_seconds = max_entries, ttl_seconds

    def get(self, key: SummaryCacheKey) -> StructuredSummary | None:
        """Return a summary that is still good."""
        table, now = schema.summary_cache, self._clock()
        with self._database.reading() as connection:
            row = connection.execute(select(table).where(table.c.key == _hashed(key))).first()
        if row is None or now - row.created_at > self._ttl_seconds:
            return None
        with self._database.writing() as connection:
            connection.execute(update(table).where(table.c.key == row.key).values(used_at=now))
        return StructuredSummary.from_dict(json.loads(row.body))

    def put(self, key: SummaryCacheKey, summary: StructuredSummary, *, session_id: str = "") -> None:
        """Store a summary; the least recently used ones go when there are too many."""
        table, now = schema.summary_cache, self._clock()
        row = {"key": _hashed(key), "tenant_id": self._tenant_id, "session_id": session_id}
        row |= {"body": json.dumps(summary.to_dict()), "created_at": now, "used_at": now}
        # If two write the same key at once, either of them will do.
        with suppress(IntegrityError), self._database.writing() as connection:
            connection.execute(delete(table).where(table.c.key == _hashed(key)))
            connection.execute(insert(table), row)
        with self._database.writing() as connection:
            if (connection.execute(select(func.count()).select_from(table)).scalar_one()) > self._max_entries:
                self._evict(connection)

    def _evict(self, connection: Connection) -> None:
        """Remove what is too much, by a count that no other process is acting on at the same time.

        Two that count the same surplus and skip each other's rows would take out twice as much.
        """
        table = schema.summary_cache
        if connection.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(hashtext('compact_summary_cache'))"))
        oldest = select(table.c.key).order_by(table.c.used_at.desc(), table.c.key.desc()).offset(self._max_entries)
        surplus = select(table.c.key).where(table.c.key.in_(oldest))
        # Rows that another process is at are left to it: two that wait for each other's rows would never end.
        free = connection.execute(surplus.with_for_update(skip_locked=True)).scalars().all()
        connection.execute(delete(table).where(table.c.key.in_(free)))

    def invalidate(self, key: SummaryCacheKey) -> None:
        """Remove a summary."""
        with self._database.writing() as connection:
            connection.execute(delete(schema.summary_cache).where(schema.summary_cache.c.key == _hashed(key)))


def _hashed(key: SummaryCacheKey) -> str:
    return hashlib.sha256("\0".join(astuple(key)).encode("utf-8", "surrogatepass")).hexdigest()
