"""Claims on summaries in the database: of several processes that want one, one writes it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

from sqlalchemy import ColumnElement, and_, delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from compact.core.audit.records import PrefetchedSummary
from compact.core.summary.summary import StructuredSummary
from compact.stores import schema
from compact.stores.database import Database

_POLL_SECONDS = 0.05


class SqlSummaryClaims:
    """One row per span; inserting it is the claim."""

    def __init__(self, database: Database, *, tenant_id: str = "", clock: Callable[[], float] = time.time) -> None:
        self._database, self._tenant_id, self._clock = database, tenant_id, clock

    def claim(self, session_id: str, span_key: str, *, stale_after_seconds: float) -> bool:
        """True for the one caller that is to write the summary of a span."""
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
        """Store the summary of a claimed span, or give the claim up; what is finished stays."""
        table = schema.summaries
        standing = and_(self._span(session_id, span_key), table.c.finished_at.is_(None))
        with self._database.writing() as connection:
            if summary is None:
                connection.execute(delete(table).where(standing))
            else:
                body = json.dumps(summary.to_dict())
                connection.execute(update(table).where(standing).values(body=body, finished_at=self._clock()))

    def finished(self, session_id: str, span_key: str) -> StructuredSummary | None:
        """The summary of a span, once somebody has written it."""
        with self._database.reading() as connection:
            query = select(schema.summaries.c.body).where(self._span(session_id, span_key))
            body = connection.execute(query).scalar_one_or_none()
        return StructuredSummary.from_dict(json.loads(body)) if body else None

    def store_prefetched(self, session_id: str, span_key: str, prepared: PrefetchedSummary) -> None:
        """Note what a finished summary stands for."""
        own, ids = self._span(session_id, span_key), json.dumps(prepared.message_ids)
        with self._database.writing() as connection:
            values = {"version": prepared.version, "message_ids": ids}
            connection.execute(update(schema.summaries).where(own).values(**values))

    def prefetched(self, session_id: str, version: int) -> PrefetchedSummary | None:
        """The newest summary that was written ahead for a version."""
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
        """The summary that another process is writing; nothing if it gives the claim up or takes too long."""
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
