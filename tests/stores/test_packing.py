"""Packed texts: they come back exactly, take less room, and are noticed when they were changed."""

from __future__ import annotations

import gzip
import hashlib
import json
import sqlite3
import zlib
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compact import CompactManager
from compact.core.audit.store import StoreError
from compact.core.engine.events import CompactionErrorEvent
from compact.stores import schema
from compact.stores.packing import _LONG_BYTES, _SHORT_BYTES, _dictionary, packed, read_ids, unpacked, written_ids
from compact.testing import user
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


@pytest.mark.parametrize(
    "size", [_SHORT_BYTES, _SHORT_BYTES + 1, _LONG_BYTES - 1, _LONG_BYTES, _LONG_BYTES + 1, 60_000]
)
def test_a_text_of_any_length_comes_back_and_is_packed_as_well(size: int) -> None:
    known = '"name":"compact.prompt_ready","started_at":'
    text = (known + "".join(f" {number**5}" for number in range(20_000)))[:size]
    stored = packed(text)
    assert isinstance(stored, bytes)
    assert unpacked(stored) == text
    assert len(stored) < 1.05 * len(zlib.compress(text.encode()))


def test_a_text_that_repeats_itself_takes_less_room() -> None:
    text = json.dumps({"id": "m1", "wire": {"role": "user", "content": "the same words again " * 20}})
    stored = packed(text)
    assert isinstance(stored, bytes)
    assert len(stored) < len(text) / 4


@pytest.mark.parametrize(
    "damage", [b"", b"\x01", b"\x02", b"\x63" + b"x" * 40, b"\x01" + b"x" * 40, b"\x02" + b"x" * 40]
)
def test_damaged_bytes_are_an_error_that_says_what_to_do(damage: bytes) -> None:
    with pytest.raises(StoreError, match="damaged") as raised:
        unpacked(damage)
    assert "backup" in raised.value.hint


def test_one_bit_that_changed_is_noticed() -> None:
    text = "the same words again " * 5
    stored = packed(text)
    assert isinstance(stored, bytes)
    unnoticed = 0
    for place in range(8 * len(stored)):
        changed = bytearray(stored)
        changed[place // 8] ^= 1 << place % 8
        try:
            assert unpacked(bytes(changed)) == text, f"bit {place}"
            unnoticed += 1
        except StoreError as error:
            assert "damaged" in str(error)  # noqa: PT017 - only some of them raise
    assert unnoticed < 8, "only what fills up the last byte"


def test_the_dictionary_is_the_one_that_stores_were_written_with() -> None:
    """Not even a line break may change: what was packed with it could not be read. Another one is another format."""
    digest = "3f82f75e00921bd0d0868ee74cdbc7fb10bca270a31b1f682202754539574d70"
    assert hashlib.sha256(_dictionary()).hexdigest() == digest


@given(st.lists(st.one_of(st.integers(0, 30).map(lambda n: f"m{n}"), st.text(max_size=4))))
def test_ids_come_back_from_ranges(ids: list[str]) -> None:
    assert read_ids(json.loads(json.dumps(written_ids(ids)))) == tuple(ids)


def test_a_run_of_ids_is_one_entry() -> None:
    assert written_ids(["m7", "m8", "m9", "note", "m11", "x01"]) == [("m", 7, 9), "note", "m11", "x01"]


def _file(url: str) -> Path:
    return Path(url.removeprefix("sqlite:///"))


def _former_store(url: str) -> Path:
    """A store that the code of version 4 has written: `s` (compacted, then edited), `other`, and `s` of a tenant."""
    file = _file(url)
    file.parent.mkdir(parents=True)
    file.write_bytes(gzip.decompress(Path(__file__).with_name("state-4.db.gz").read_bytes()))
    return file


def _raw_events(file: Path) -> list[tuple[object, ...]]:
    """The events of a store of version 4, oldest first, as they were written there."""
    asked = "SELECT number, tenant_id, trace_id, session_id, span_id, body FROM compact_events ORDER BY number"
    with closing(sqlite3.connect(file)) as connection:
        return [(*columns, unpacked(body)) for *columns, body in connection.execute(asked)]


@pytest.mark.parametrize("version", [3, 4])
def test_a_store_of_a_former_version_opens_and_loses_nothing(sqlite_url: str, tmp_path: Path, version: int) -> None:
    file = _former_store(sqlite_url)
    written = _raw_events(file)
    if version == 3:
        _make_version_3(file)
    with manager_on(f"sqlite:///{tmp_path}/new.db")[0] as manager:
        for messages in (history(40), history(96), _EDITED):
            manager.preflight("s", messages)
        new = _all_of(manager)
    with manager_on(sqlite_url)[0] as manager:
        assert _all_of(manager) == new
        assert _read_events(manager, "") == [event for event in written if event[1] == ""]
        manager.preflight("s", [*_EDITED, *history(4)])
        assert len(manager.history("s")) == 101
        assert manager.flush()
        numbers = [event.number for event in manager.store.events.recent(1_000)]
        assert numbers == sorted(set(numbers))
        assert numbers[-1] > max(event[0] for event in written), "no number is used twice"
        assert manager.delete("s")
    with manager_on(sqlite_url, tenant="acme")[0] as manager:
        assert len(manager.history("s")) == 6, "nobody else's goes with it"
        assert _read_events(manager, "acme") == [event for event in written if event[1] == "acme"]
    with closing(sqlite3.connect(file)) as connection, connection:
        assert connection.execute("SELECT version FROM compact_schema").fetchone() == (schema.SCHEMA_VERSION,)
        left = set(connection.execute("SELECT tenant_id, session_id FROM compact_search"))
        assert left == {("", "other"), ("acme", "s")}
        assert left == set(connection.execute("SELECT tenant_id, session_id FROM compact_event_traces"))
        of_deleted = "SELECT count(*) FROM compact_terms WHERE compact_terms MATCH 'els'"
        assert connection.execute(of_deleted).fetchone() == (0,)


_EDITED = [*history(8), user("else")]


def _all_of(manager: CompactManager) -> tuple[object, ...]:
    """What is read of a session, but for times, and prices, which may be known a moment after the first call."""
    calls = [
        replace(call, at=0.0, details={name: value for name, value in call.details.items() if name != "prices"})
        for call in manager.model_calls("s")
    ]
    plans = [replace(version.plan, run=None) for version in manager._store.plans("s")]
    found = [entry.seq for entry in manager._store.search("s", "answer-7 else", 5)]
    return manager.history("s"), plans, calls, manager.prompt("s").messages, found


def _read_events(manager: CompactManager, tenant: str) -> list[tuple[object, ...]]:
    events = manager.store.events.recent(1_000)
    return [(e.number, tenant, e.trace_id, e.session_id, e.span_id, e.text) for e in events]


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
