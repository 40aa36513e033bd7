"""Many processes write summaries to one cache at once: it keeps as many as it may have, no more and no fewer."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from compact.core.summary.summarizer import SummaryCacheKey
from compact.stores.database import Database
from compact.stores.sql_shared import SqlSummaryCache
from compact.testing.store_part_checks import sample_summary

MAX_ENTRIES, WRITERS, PUTS = 20, 12, 8


@pytest.fixture
def databases(url: str) -> Iterator[list[Database]]:
    """Connections of their own for each writer, as separate processes have."""
    opened = [Database(url) for _ in range(WRITERS)]
    yield opened
    for database in opened:
        database.close()


def key(writer: int, number: int) -> SummaryCacheKey:
    return SummaryCacheKey(f"{writer}-{number}")


def test_concurrent_writers_leave_a_full_cache(databases: list[Database]) -> None:
    """Each writer takes out what is too much; what another one takes out at that moment is not replaced by more."""
    caches = [SqlSummaryCache(database, max_entries=MAX_ENTRIES) for database in databases]
    caches[0].put(key(0, 0), sample_summary("first"))
    ready, failures = threading.Barrier(WRITERS), list[Exception]()

    def write(writer: int) -> None:
        try:
            for number in range(PUTS):
                ready.wait(20)
                caches[writer].put(key(writer, number), sample_summary("same"))
        except Exception as error:  # noqa: BLE001 - whatever it is, the test shows it
            failures.append(error)
            ready.abort()

    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(WRITERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failures == []
    kept = [(w, n) for w in range(WRITERS) for n in range(PUTS) if caches[0].get(key(w, n))]
    assert len(kept) == MAX_ENTRIES
    # The last round alone has fewer than fit: all of it is newer than anything else.
    assert {(writer, PUTS - 1) for writer in range(WRITERS)} <= set(kept)
