"""Events in a store: as many as there is room for, without secrets, and never in the way of a turn."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import select, text

from compact import CompactConfig, CompactManager
from compact.core.audit.store import EventStore
from compact.stores import schema
from compact.stores.database import Database
from compact.stores.event_text import read_event, restored, shortened
from compact.stores.memory_events import InMemoryEventStore
from compact.stores.sql_events import SqlEventStore
from compact.testing import user
from compact.testing.store_part_checks import sample_span
from stores.worker import history, manager_on

A_DAY = 86_400.0


class Clock:
    now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


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


@given(
    st.lists(st.text(max_size=8) | st.sampled_from(["s1", "2026-01-01T10:00:00.250000Z", '","', "\\"]), min_size=4),
    st.sampled_from(["2026-01-01T10:00:00.250000Z", "2026-01-01T10:00:00Z", "0001-01-01T00:00:00+14:00"]),
)
def test_what_columns_say_is_left_out_of_a_text_and_put_back_exactly(texts: list[str], start: str) -> None:
    trace_id, session_id, span_id, *others = texts
    wire = sample_span(span_id, trace_id, data={"session_id": session_id, "others": others}, started_at=start)
    event = read_event(wire, received_at=0.0)
    body = shortened(event)
    assert restored(body, trace_id, session_id, span_id, event.started_at, event.ended_at) == event.text
    assert restored(event.text, trace_id, session_id, span_id, event.started_at, event.ended_at) == event.text


def test_a_usual_event_names_its_trace_session_and_times_in_columns_alone() -> None:
    at = "2026-01-01T10:00:00.250000Z"
    wire = sample_span("span-1", "trace-1", data={"session_id": "session-1"}, started_at=at, ended_at=at)
    body = shortened(read_event(wire, received_at=0.0))
    assert not [text for text in ("span-1", "trace-1", "session-1", at) if text in body]


def test_nothing_is_left_of_a_trace_without_events(url: str) -> None:
    clock, database = Clock(), Database(url)
    events = SqlEventStore(database, clock=clock)
    events.add([sample_span("a", "old", session_id="first")], keep_seconds=A_DAY)
    events.add([sample_span("a", "old", session_id="second")], keep_seconds=A_DAY)
    trace = events.trace("old")
    assert trace is not None
    assert trace.sessions == ("second",), "an update moved its only event"
    clock.now += A_DAY + 1
    events.add([sample_span("b", "new")], keep_seconds=A_DAY)
    with database.reading() as connection:
        assert connection.execute(select(schema.event_traces.c.trace_id)).scalars().all() == ["new"]
    database.close()


# What PostgreSQL had until version 4: each event with its trace and its session.
_EVENTS_OF_VERSION_4 = """
ALTER TABLE compact_events RENAME TO compact_events_5;
CREATE TABLE compact_events (
  number BIGSERIAL PRIMARY KEY, tenant_id TEXT NOT NULL, event_key VARCHAR(64) NOT NULL, type VARCHAR NOT NULL,
  trace_id TEXT NOT NULL, span_id TEXT NOT NULL, kind TEXT NOT NULL, session_id TEXT NOT NULL,
  is_error INTEGER NOT NULL, started_at FLOAT, ended_at FLOAT, received_at FLOAT NOT NULL, size INTEGER NOT NULL,
  body TEXT NOT NULL, UNIQUE (tenant_id, event_key));
CREATE INDEX compact_events_by_time ON compact_events (tenant_id, received_at);
INSERT INTO compact_events SELECT e.number, e.tenant_id, event_key, type, trace_id, span_id, kind, session_id, is_error,
  started_at, ended_at, received_at, size, body
  FROM compact_events_5 e JOIN compact_event_traces t ON t.number = e.trace;
SELECT setval(pg_get_serial_sequence('compact_events', 'number'), 1000);
DROP TABLE compact_events_5;
DROP TABLE compact_event_traces;
UPDATE compact_schema SET version = 4
"""


def test_events_of_a_former_version_are_brought_along_in_postgresql(postgres_url: str) -> None:
    """For SQLite see test_packing.py, which has a file of that version."""
    sent = [sample_span(f"s{n}", f"t{n % 2}", data={"session_id": f"session-{n % 3}"}) for n in range(12)]
    database = Database(postgres_url)
    SqlEventStore(database).add([{"type": "trace", "trace_id": "t1", "name": "a run"}, *sent], keep_seconds=A_DAY)
    written = SqlEventStore(database).recent(100), SqlEventStore(database).traces()
    with database.writing() as connection:
        for statement in _EVENTS_OF_VERSION_4.split(";"):
            connection.execute(text(statement))
    database.close()
    database = Database(postgres_url)
    events = SqlEventStore(database)
    assert (events.recent(100), events.traces()) == written
    (updated,) = events.add([{**sent[3], "status": "error"}], keep_seconds=A_DAY)
    assert (updated.number, events.count()) == (1_001, 13), "it is known again, and no number is used twice"
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
