"""Events in a store: as many as there is room for, without secrets, and never in the way of a turn."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing

import pytest

from compact import CompactConfig, CompactManager
from compact.core.audit.store import EventStore
from compact.stores.database import Database
from compact.stores.memory_events import InMemoryEventStore
from compact.stores.sql_events import SqlEventStore
from compact.testing import user
from compact.testing.store_part_checks import sample_span
from stores.worker import history, manager_on

A_DAY = 86_400.0


def fill(events: EventStore, count: int, chars: int = 10) -> list[str]:
    for number in range(count):
        events.add([sample_span(f"s{number}", data={"output": "x" * chars})], keep_seconds=A_DAY)
    return [event.span_id for event in events.recent(1_000)]


def test_the_newest_of_too_many_are_kept(url: str) -> None:
    database = Database(url)
    kept = fill(SqlEventStore(database, max_events=10), 60)
    assert kept == [f"s{number}" for number in range(60 - len(kept), 60)]
    assert 10 <= len(kept) <= 12
    kept = fill(SqlEventStore(database, tenant_id="other", max_events=100, max_bytes=20_000), 60, 1_000)
    assert 5 < len(kept) < 60
    assert kept[-1] == "s59"
    database.close()


def test_memory_is_bounded() -> None:
    assert len(fill(InMemoryEventStore(max_events=10), 60)) == 10
    assert 5 < len(fill(InMemoryEventStore(max_bytes=20_000), 60, 1_000)) < 20
    assert fill(InMemoryEventStore(max_bytes=500), 3, 1_000) == []


def test_an_agent_writes_no_secret(url: str) -> None:
    key = "sk-proj-" + "A1b2C3d4" * 6
    with manager_on(url)[0] as manager:
        manager.preflight("s", [user(f"Always use the key {key}."), *history(120)])
        manager.manual_compact("s", [user(f"Always use the key {key}."), *history(120)], note=f"with {key}")
        assert manager.flush()
        kept = manager.store.events.recent(1_000)
    assert any(event.event()["name"] == "compact.completed" for event in kept)
    assert not [event for event in kept if key in event.text]


def test_no_event_is_kept_if_none_is_wanted(sqlite_url: str) -> None:
    quiet = {"storage": {"adapter": "none"}, "telemetry": {"exporter": "none"}, "tokenizer": "simple"}
    config = CompactConfig(state={"url": sqlite_url, "events_days": 0}, **quiet)
    with CompactManager(config) as manager:
        manager.preflight("s", history(4))
        assert manager.flush()
        assert manager.store.events.count() == 0


def test_a_store_that_takes_no_events_stops_no_turn(sqlite_url: str, caplog: pytest.LogCaptureFixture) -> None:
    with manager_on(sqlite_url)[0] as manager:
        manager.preflight("s", history(4))
        assert manager.flush()
        before = manager.store.events.count()
        with closing(sqlite3.connect(sqlite_url.removeprefix("sqlite:///"), isolation_level=None)) as holder:
            holder.execute("BEGIN IMMEDIATE")
            started = time.monotonic()
            assert manager.preflight("s", history(8)) == history(8)
            assert time.monotonic() - started < 5
            assert not manager.flush(0.5), "it says that they were not written"
        time.sleep(6)  # a failed write is not tried again for five seconds
        assert manager.flush(10)
        assert manager.store.events.count() > before, "they are written afterwards"
    assert "the store of events: cannot use" in caplog.text
