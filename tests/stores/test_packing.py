"""Packed texts: they come back exactly, take less room, and are noticed when they were changed."""

from __future__ import annotations

import json
import sqlite3
import zlib
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compact.core.audit.store import StoreError
from compact.core.engine.events import CompactionErrorEvent
from compact.stores import schema
from compact.stores.packing import _SHORT_BYTES, packed, read_ids, unpacked, written_ids
from stores.worker import history, manager_on

_PACKED_COLUMNS = {
    "compact_messages": ("body",),
    "compact_search": ("words",),
    "compact_plans": ("body",),
    "compact_summaries": ("body", "message_ids"),
    "compact_model_calls": ("parts", "limits", "reason", "details"),
    "compact_added": ("body",),
    "compact_artifacts": ("content",),
    "compact_summary_cache": ("body",),
    "compact_events": ("body",),
}


@given(st.text(alphabet=st.characters(exclude_categories=()), max_size=400).map(lambda text: text * 3))
def test_every_text_comes_back(text: str) -> None:
    assert unpacked(packed(text)) == text


@pytest.mark.parametrize("more", [-1, 0, 1, 40_000])
def test_a_text_of_any_length_comes_back_and_is_packed_as_well(more: int) -> None:
    """Short texts are packed with a small window: they reach the whole dictionary with it."""
    known = '"name":"compact.prompt_ready","started_at":'
    text = (known + "".join(f" {number**5}" for number in range(20_000)))[: _SHORT_BYTES + more]
    stored = packed(text)
    assert isinstance(stored, bytes)
    assert unpacked(stored) == text
    assert len(stored) < 1.05 * len(zlib.compress(text.encode()))


def test_a_text_that_repeats_itself_takes_less_room() -> None:
    text = json.dumps({"id": "m1", "wire": {"role": "user", "content": "the same words again " * 20}})
    stored = packed(text)
    assert isinstance(stored, bytes)
    assert len(stored) < len(text) / 4


@pytest.mark.parametrize("damage", [b"", b"\x01", b"\x63" + b"x" * 40, b"\x01" + b"x" * 40])
def test_damaged_bytes_are_an_error_that_says_what_to_do(damage: bytes) -> None:
    with pytest.raises(StoreError, match="damaged") as raised:
        unpacked(damage)
    assert "backup" in raised.value.hint


@given(st.lists(st.one_of(st.integers(0, 30).map(lambda n: f"m{n}"), st.text(max_size=4))))
def test_ids_come_back_from_ranges(ids: list[str]) -> None:
    assert read_ids(json.loads(json.dumps(written_ids(ids)))) == tuple(ids)


def test_a_run_of_ids_is_one_entry() -> None:
    assert written_ids(["m7", "m8", "m9", "note", "m11", "x01"]) == [("m", 7, 9), "note", "m11", "x01"]


def _file(url: str) -> Path:
    return Path(url.removeprefix("sqlite:///"))


def test_a_store_of_the_version_before_opens_and_loses_nothing(sqlite_url: str) -> None:
    """Its texts are not packed, its ids stand one by one, its events have long keys, its triggers read plain words."""
    with manager_on(sqlite_url)[0] as manager:
        manager.preflight("s", history(96))
        written = (manager.history("s"), manager.plans("s"), manager.model_calls("s"), manager.prompt("s").messages)
        found = manager._store.search("s", "answer", 5)
    _make_version_3(_file(sqlite_url))
    with manager_on(sqlite_url)[0] as manager:
        manager.preflight("s", history(96))
        again = (manager.history("s"), manager.plans("s"), manager.model_calls("s")[:1], manager.prompt("s").messages)
        assert again == written
        assert manager._store.search("s", "answer", 5) == found
        manager.preflight("s", history(100))
        assert len(manager.history("s")) == 100
        assert manager.delete("s")
    with closing(sqlite3.connect(_file(sqlite_url))) as connection, connection:
        assert connection.execute("SELECT version FROM compact_schema").fetchone() == (schema.SCHEMA_VERSION,)
        assert connection.execute("SELECT count(*) FROM compact_search").fetchone() == (0,)
        assert connection.execute(
            "SELECT count(*) FROM compact_terms WHERE compact_terms MATCH 'answer'"
        ).fetchone() == (0,)


def _make_version_3(file: Path) -> None:
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.create_function(schema.UNPACK, 1, unpacked)
        for table, columns in _PACKED_COLUMNS.items():
            for column in columns:
                connection.execute(f"UPDATE {table} SET {column} = {schema.UNPACK}({column})")
        for rowid, body in connection.execute("SELECT rowid, body FROM compact_plans").fetchall():
            plan = json.loads(body)
            for record in plan["records"]:
                record["span"] = list(read_ids(record["span"]))
            connection.execute("UPDATE compact_plans SET body = ? WHERE rowid = ?", (json.dumps(plan), rowid))
        connection.execute("UPDATE compact_events SET event_key = event_key || event_key")
        for statement in (
            "DROP TRIGGER compact_terms_in",
            "DROP TRIGGER compact_terms_out",
            "CREATE TRIGGER compact_terms_in AFTER INSERT ON compact_search BEGIN "
            "INSERT INTO compact_terms(rowid, words) VALUES (new.number, new.words); END",
            "CREATE TRIGGER compact_terms_out AFTER DELETE ON compact_search BEGIN "
            "INSERT INTO compact_terms(compact_terms, rowid, words) VALUES ('delete', old.number, old.words); END",
            "UPDATE compact_schema SET version = 3",
        ):
            connection.execute(statement)


def test_an_entry_that_was_changed_outside_is_noticed_and_told(sqlite_url: str) -> None:
    with manager_on(sqlite_url)[0] as manager:
        manager.preflight("s", history(4))
        manager.preflight("other", history(4))
    with closing(sqlite3.connect(_file(sqlite_url))) as connection, connection:
        body = unpacked(connection.execute("SELECT body FROM compact_messages WHERE seq = 2").fetchone()[0]) or ""
        changed = body.replace('"assistant"', '"user"')
        assert changed != body
        connection.execute("UPDATE compact_messages SET body = ? WHERE seq = 2 AND session_id = 's'", (changed,))
    manager, sink = manager_on(sqlite_url)
    with manager:
        assert manager.preflight("s", history(8)) == history(8), "the turn goes on"
        assert "'m2' is not what was written" in sink.of(CompactionErrorEvent)[0].message
        with pytest.raises(StoreError, match="'m2' is not what was written"):
            manager._store.messages("s")
        assert len(manager._store.messages("other")) == 4
