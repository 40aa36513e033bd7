"""Every store passes the suites that we give to others."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from compact.stores.database import Database
from compact.stores.memory import (
    InMemoryArtifactStore,
    InMemoryCompactionStore,
    InMemorySummaryCache,
    InMemorySummaryClaims,
)
from compact.stores.sql import SqlCompactionStore
from compact.stores.sql_artifacts import SqlArtifactStore
from compact.stores.sql_shared import SqlSummaryCache, SqlSummaryClaims
from compact.testing import (
    check_artifact_store,
    check_compaction_store,
    check_summary_cache,
    check_summary_claims,
)


@pytest.fixture
def make_database(make_url: Callable[[], str]) -> Iterator[Callable[[], Database]]:
    opened: list[Database] = []

    def make() -> Database:
        opened.append(Database(make_url()))
        return opened[-1]

    yield make
    for database in opened:
        database.close()


def test_sessions_in_memory() -> None:
    check_compaction_store(lambda clock: InMemoryCompactionStore(clock=clock))


def test_sessions_in_a_database(make_database: Callable[[], Database]) -> None:
    check_compaction_store(lambda clock: SqlCompactionStore(make_database(), clock=clock))


def test_artifacts_in_memory() -> None:
    check_artifact_store(lambda clock: InMemoryArtifactStore(clock=clock))


def test_artifacts_in_a_database(make_database: Callable[[], Database]) -> None:
    check_artifact_store(lambda clock: SqlArtifactStore(make_database(), clock=clock))


def test_claims_in_memory() -> None:
    check_summary_claims(lambda clock: InMemorySummaryClaims(clock=clock))


def test_claims_in_a_database(make_database: Callable[[], Database]) -> None:
    check_summary_claims(lambda clock: SqlSummaryClaims(make_database(), clock=clock))


def test_summary_cache_in_memory() -> None:
    check_summary_cache(InMemorySummaryCache)


def test_summary_cache_in_a_database(make_database: Callable[[], Database]) -> None:
    check_summary_cache(lambda **settings: SqlSummaryCache(make_database(), **settings))
