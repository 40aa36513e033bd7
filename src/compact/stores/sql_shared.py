"""What processes share through the database: claims on summaries, and summaries by what they were made of."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import astuple

from sqlalchemy import ColumnElement, Connection, and_, bindparam, delete, func, insert, select, text, update
from sqlalchemy.exc import IntegrityError

from compact.core.audit.records import PrefetchedSummary
from compact.core.summary.summarizer import SummaryCacheKey
from compact.core.summary.summary import StructuredSummary
from compact.stores import schema
from compact.stores.database import Database
from compact.stores.packing import read_ids, written_ids
from compact.waiting.processes import has_ended, process_name

# Chosen: a summary takes seconds to write, and asking twenty times a second costs a database little.
_POLL_SECONDS = 0.05
# Chosen: what has expired is not used; it only takes room.
_SECONDS_BETWEEN_REMOVALS = 3_600.0
# Chosen: no summary takes a day to write; what is claimed for longer is to outlive the process that claims it.
_LONGEST_WRITING_SECONDS = 86_400.0
_SERVER_TIME = text("SELECT extract(epoch FROM clock_timestamp())")


class SqlSummaryClaims:
    """One row per span; inserting it is the claim.

    A claim names its process: on one machine it is known at once that its owner has ended. Claims of other machines
    become stale by the clock of the database, which is the same for all of them.
    """

    def __init__(self, database: Database, *, tenant_id: str = "", clock: Callable[[], float] | None = None) -> None:
        self._database, self._tenant_id, self._clock = database, tenant_id, clock

    def claim(self, session_id: str, span_key: str, *, stale_after_seconds: float) -> bool:
        """Return True for the one caller that is to write the summary of a span."""
        table, owner = schema.summaries, "" if stale_after_seconds > _LONGEST_WRITING_SECONDS else process_name()
        keys = {"tenant_id": self._tenant_id, "session_id": session_id, "span_key": span_key}
        try:
            with self._database.writing() as connection:
                now = self._now(connection)
                connection.execute(insert(table).values(**keys, claimed_at=now, owner=owner))
                return True
        except IntegrityError:
            standing = and_(self._span(session_id, span_key), table.c.finished_at.is_(None))
            with self._database.writing() as connection:
                now = self._now(connection)
                found = connection.execute(select(table.c.owner).where(standing)).scalar_one_or_none()
                is_stale = table.c.claimed_at < now - stale_after_seconds
                if found and has_ended(found):
                    is_stale = table.c.owner == found
                taken = connection.execute(update(table).where(standing, is_stale).values(claimed_at=now, owner=owner))
                return taken.rowcount == 1

    def finish(self, session_id: str, span_key: str, summary: StructuredSummary | None) -> None:
        """Store the summary of a claimed span, or give the claim up; a summary that is there stays.

        Who took too long, and whose claim another process has by now, gives up nothing.
        """
        table = schema.summaries
        unfinished = and_(self._span(session_id, span_key), table.c.finished_at.is_(None))
        with self._database.writing() as connection:
            if summary is None:
                connection.execute(delete(table).where(unfinished, table.c.owner.in_(("", process_name()))))
            else:
                values = {"body": json.dumps(summary.to_dict()), "finished_at": self._now(connection)}
                connection.execute(update(table).where(unfinished), values)

    def _now(self, connection: Connection) -> float:
        """Return the time that all who claim go by: that of the server, where there is one."""
        if self._clock is not None:
            return self._clock()
        if connection.dialect.name == "postgresql":
            return float(connection.execute(_SERVER_TIME).scalar_one())
        return time.time()

    def finished(self, session_id: str, span_key: str) -> StructuredSummary | None:
        """Return the summary of a span, once it is written."""
        with self._database.reading() as connection:
            query = select(schema.summaries.c.body).where(self._span(session_id, span_key))
            body = connection.execute(query).scalar_one_or_none()
        return StructuredSummary.from_dict(json.loads(body)) if body else None

    def store_prefetched(self, session_id: str, span_key: str, prefetched: PrefetchedSummary) -> None:
        """Write what a finished summary stands for."""
        own, ids = self._span(session_id, span_key), json.dumps(written_ids(prefetched.message_ids))
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
        return PrefetchedSummary(read_ids(json.loads(row.message_ids)), version, summary)

    def wait(self, session_id: str, span_key: str, *, timeout_seconds: float) -> StructuredSummary | None:
        """Wait for the summary that another process writes; None if it gives the claim up or takes too long."""
        deadline = time.monotonic() + timeout_seconds
        while time.monotonic() < deadline:
            with self._database.reading() as connection:
                table = schema.summaries.c
                row = connection.execute(
                    select(table.body, table.owner).where(self._span(session_id, span_key))
                ).first()
            if row is None:
                return None
            if row.body:
                return StructuredSummary.from_dict(json.loads(row.body))
            if has_ended(row.owner):
                return None
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
        self._expired_removed_at = float("-inf")

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
            self._remove_expired(connection, now)
            if (connection.execute(select(func.count()).select_from(table)).scalar_one()) > self._max_entries:
                self._evict(connection)

    def _remove_expired(self, connection: Connection, now: float) -> None:
        """Remove what is too old to be used, once in a while: it is looked for among all of them."""
        if now - self._expired_removed_at >= min(_SECONDS_BETWEEN_REMOVALS, self._ttl_seconds):
            self._expired_removed_at = now
            expired = schema.summary_cache.c.created_at < bindparam("before")
            connection.execute(delete(schema.summary_cache).where(expired), {"before": now - self._ttl_seconds})

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
