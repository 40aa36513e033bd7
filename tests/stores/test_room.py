"""What takes room goes: expired rows, deleted sessions on disk, forgotten ones in memory; lists stay quick."""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import func, select, text

from compact import CompactConfig, CompactManager, StructuredSummary
from compact.cli.main import main
from compact.core.audit.artifacts import Artifact, ArtifactMetadata
from compact.core.errors import ConfigError
from compact.core.summary.summarizer import SummaryCacheKey
from compact.stores import database as database_module
from compact.stores import schema, sql_search
from compact.stores.database import Database
from compact.stores.sql import SqlCompactionStore
from compact.stores.sql_shared import SqlSummaryCache
from compact.testing import dialogue, user
from load.sessions import resident_mb
from sizes import SOAK
from soak_counts import SoakCounts
from stores.worker import history, manager_on


class Clock:
    now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


def rows_in(database: Database, table: object) -> int:
    with database.reading() as connection:
        return connection.execute(select(func.count()).select_from(table)).scalar_one()  # type: ignore[arg-type]


def test_expired_artifacts_go_when_the_next_one_comes(url: str) -> None:
    clock, database = Clock(), Database(url)
    store = SqlCompactionStore(database, clock=clock)
    for number in range(3):
        metadata = ArtifactMetadata(
            artifact_id=f"a-{number}", session_id="s", message_id="m1", expires_at=clock.now + 10 if number else None
        )
        store.artifacts.store_artifact(Artifact(metadata, "content"))
    clock.now += 11
    metadata = ArtifactMetadata(artifact_id="new", session_id="s", message_id="m2")
    store.artifacts.store_artifact(Artifact(metadata, "content"))
    assert rows_in(database, schema.artifacts) == 2, "the one without an end, and the new one"
    store.close()


def test_expired_summaries_leave_the_cache(url: str) -> None:
    clock, database = Clock(), Database(url)
    cache = SqlSummaryCache(database, ttl_seconds=100, clock=clock)
    fields = SummaryCacheKey.__dataclass_fields__

    def put(name: str) -> None:
        cache.put(SummaryCacheKey(**dict.fromkeys(fields, name)), StructuredSummary(narrative=name))

    put("old")
    clock.now += 60
    put("young")
    assert rows_in(database, schema.summary_cache) == 2
    clock.now += 60
    put("new")
    assert rows_in(database, schema.summary_cache) == 2, "only the old one is too old"
    database.close()


def test_prune_gives_the_room_back_to_the_disk(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "state.db"
    with manager_on(f"sqlite:///{file}", window=1_000_000)[0] as manager:
        for number in range(60):
            manager.preflight(f"s-{number}", [user(f"{number} {time.time_ns() ** 40}") for _ in range(10)])
        manager.preflight("kept", dialogue(2))
    with closing(sqlite3.connect(file)) as connection:
        with connection:
            connection.execute("UPDATE compact_sessions SET updated_at = 1 WHERE session_id != 'kept'")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    before = file.stat().st_size
    assert main(["prune", "--older-than", "1d", "--yes", "--store", f"sqlite:///{file}"]) == 0
    assert "deleted 60 sessions" in capsys.readouterr().out
    assert file.stat().st_size < before / 2
    with manager_on(f"sqlite:///{file}")[0] as manager:
        assert len(manager.history("kept")) == 4


def test_a_sqlite_that_is_too_old_is_refused_with_what_to_do(monkeypatch: pytest.MonkeyPatch, sqlite_url: str) -> None:
    monkeypatch.setattr(database_module.sqlite3, "sqlite_version_info", (3, 30, 1))
    with pytest.raises(ConfigError, match=re.escape("SQLite 3.30.1 is too old: Compact needs 3.31.0 or newer")) as told:
        Database(sqlite_url)
    assert "newer SQLite, or PostgreSQL" in told.value.hint


def test_thousands_at_once_are_indexed_when_somebody_searches(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sql_search, "MAX_INDEXED_AT_ONCE", 10)
    with manager_on(url, window=100_000)[0] as manager:
        messages = [*dialogue(10), user("the harbour master counts the berths")]
        manager.preflight("many", messages)
        manager.preflight("few", dialogue(2))
        database = manager._store._database
        assert rows_in(database, schema.search) == 4
        manager.preflight("many", [*messages, *dialogue(1)])
        (found,) = manager._store.search("many", "harbour berths", 5)
        assert found.seq == 21
        assert rows_in(database, schema.search) == 4 + 23
        assert rows_in(database, schema.unindexed) == 0


def test_lists_of_a_store_are_read_by_an_index(sqlite_url: str) -> None:
    """No list reads the texts of sessions: what is packed is not unpacked for it."""
    with manager_on(sqlite_url)[0] as manager:
        manager.preflight("s", history(8))
        statements: list[str] = []
        store = manager._store
        reader = {
            "sessions": store.sessions,
            "calls": lambda: store.recent_calls(["s"], 5),
            "messages": lambda: store.messages("s", after_seq=2),
            "spans": lambda: store.events.spans("s"),
            "recent events": lambda: store.events.recent(10),
            "artifacts": lambda: store.artifacts.list_artifacts("s", _nobody()),
        }
        for read in reader.values():
            statements += _statements(store._database, read)
    assert len(statements) >= len(reader)
    with closing(sqlite3.connect(sqlite_url.removeprefix("sqlite:///"))) as connection, connection:
        for statement in statements:
            plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}")]
            scans = [step for step in plan if re.search(r"SCAN (compact_\w+)(?! USING)", step)]
            assert scans == [], f"{statement}\n{plan}"


def test_deleting_a_session_looks_at_its_own_events_alone(sqlite_url: str) -> None:
    with manager_on(sqlite_url)[0] as manager:
        manager.preflight("s", history(8))
        store = manager._store
        asked = [
            text for text in _statements(store._database, lambda: store.delete("s")) if "session_id IN ('s')" in text
        ]
    (of_events,) = [text for text in asked if "FROM compact_event_traces" in text]
    with closing(sqlite3.connect(sqlite_url.removeprefix("sqlite:///"))) as connection:
        plan = " ".join(row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {of_events}"))
    assert "compact_event_traces_by_session (tenant_id=? AND session_id=?)" in plan


def _nobody() -> object:
    from compact.core.audit.artifacts import SecurityContext

    return SecurityContext()


def _statements(database: Database, read: Callable[[], object]) -> list[str]:
    """Return the queries of a read as SQLite gets them, with the values in them."""
    seen: list[str] = []
    with database.reading() as connection:
        raw = connection.connection.driver_connection
        raw.set_trace_callback(seen.append)
    try:
        read()
    finally:
        raw.set_trace_callback(None)
    return [statement for statement in seen if statement.startswith("SELECT")]


@pytest.mark.soak
def test_many_sessions_in_one_process(tmp_path: Path, soak: SoakCounts) -> None:
    """Only the sessions used last are in memory: with ten times as many sessions it takes no more."""
    sessions = 10_000 if SOAK else 150
    config = CompactConfig(
        state={"url": f"sqlite:///{tmp_path}/state.db"},
        storage={"adapter": "none"},
        telemetry={"exporter": "none"},
        tokenizer="simple",
    )
    before, started = resident_mb(), time.perf_counter()
    with CompactManager(config) as manager:
        for number in range(sessions):
            manager.preflight(f"s-{number}", dialogue(10))
            soak.add()
        taken, in_memory = resident_mb() - before, len(manager._sessions)
    rate = sessions / (time.perf_counter() - started)
    soak.figure(
        f"{sessions:,} sessions in one process: {taken:,.0f} MB more, {in_memory:,} in memory, {rate:,.0f} a second"
    )
    assert in_memory <= 1_000
    assert taken < 1_000 * min(1.0, sessions / 1_000)
    assert sessions <= len(SqlCompactionStore(Database(config.state.url)).sessions())


def test_the_version_of_the_driver_is_one_that_is_supported(sqlite_url: str) -> None:
    with Database(sqlite_url).reading() as connection:
        assert connection.execute(text("SELECT sqlite_version()")).scalar_one() == sqlite3.sqlite_version
