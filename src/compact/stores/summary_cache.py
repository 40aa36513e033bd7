"""Summaries remembered in the database, by what they were made of."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import astuple

from sqlalchemy import delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from compact.core.summary.summarizer import SummaryCacheKey
from compact.core.summary.summary import StructuredSummary
from compact.stores import schema
from compact.stores.database import Database


class SqlSummaryCache:
    """The most recently used summaries, each for a limited time."""

    def __init__(
        self,
        database: Database,
        *,
        max_entries: int = 10_000,
        ttl_seconds: float = 30 * 86_400,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._database, self._max_entries, self._ttl_seconds, self._clock = database, max_entries, ttl_seconds, clock

    def get(self, key: SummaryCacheKey) -> StructuredSummary | None:
        """A summary that is still good."""
        table, now = schema.summary_cache, self._clock()
        with self._database.reading() as connection:
            row = connection.execute(select(table).where(table.c.key == _hashed(key))).first()
        if row is None or now - row.created_at > self._ttl_seconds:
            return None
        with self._database.writing() as connection:
            connection.execute(update(table).where(table.c.key == row.key).values(used_at=now))
        return StructuredSummary.from_dict(json.loads(row.body))

    def put(self, key: SummaryCacheKey, summary: StructuredSummary) -> None:
        """Remember a summary; those not used for longest go when there are too many."""
        table, now = schema.summary_cache, self._clock()
        body = json.dumps(summary.to_dict())
        # If two write the same key at once, either of them will do.
        with suppress(IntegrityError), self._database.writing() as connection:
            connection.execute(delete(table).where(table.c.key == _hashed(key)))
            connection.execute(insert(table).values(key=_hashed(key), body=body, created_at=now, used_at=now))
        with self._database.writing() as connection:
            surplus = (connection.execute(select(func.count()).select_from(table)).scalar_one()) - self._max_entries
            if surplus > 0:
                oldest = select(table.c.key).order_by(table.c.used_at, table.c.key).limit(surplus)
                # What another process is at is left to it: waiting for each other's rows could go in a circle.
                free = connection.execute(oldest.with_for_update(skip_locked=True)).scalars().all()
                connection.execute(delete(table).where(table.c.key.in_(free)))

    def invalidate(self, key: SummaryCacheKey) -> None:
        """Forget a summary."""
        with self._database.writing() as connection:
            connection.execute(delete(schema.summary_cache).where(schema.summary_cache.c.key == _hashed(key)))


def _hashed(key: SummaryCacheKey) -> str:
    return hashlib.sha256("\0".join(astuple(key)).encode("utf-8", "surrogatepass")).hexdigest()
