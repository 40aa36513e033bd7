"""A store that is only read: nothing is written, created or brought up to date."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from pathlib import Path

import pytest
from sqlalchemy import text

from compact.core.audit.records import Commit, SessionHead
from compact.core.audit.store import StoreError
from compact.stores import schema
from compact.stores.database import Database
from compact.stores.sql import SqlCompactionStore
from stores.worker import history, manager_on


def read_only(url: str) -> SqlCompactionStore:
    return SqlCompactionStore(Database(url, read_only=True))


def make_older(url: str, version: int) -> None:
    """Turn a database into one of a former version."""
    database = Database(url)
    with database.writing() as connection:
        connection.execute(text("DROP TABLE compact_events"))
        connection.execute(text("ALTER TABLE compact_model_calls DROP COLUMN details"))
        connection.execute(text("UPDATE compact_schema SET version = :version"), {"version": version})
    database.close()


def found_version(url: str) -> int:
    database = Database(url, read_only=True)
    try:
        with database._engine.connect() as connection:
            return connection.execute(text("SELECT version FROM compact_schema")).scalar_one()
    finally:
        database.close()


def files(folder: Path) -> dict[str, tuple[str, int]]:
    """What is in a folder: the content of each file, and when it was changed."""
    return {
        file.name: (hashlib.sha256(file.read_bytes()).hexdigest(), file.stat().st_mtime_ns) for file in folder.iterdir()
    }


def test_everything_is_read_and_nothing_is_written(url: str) -> None:
    with manager_on(url)[0] as manager:
        manager.preflight("s", history(60))
        manager.flush()
        expected = (manager.history("s"), manager.plans("s"), manager.model_calls("s"), manager.store.events.count())
    store = read_only(url)
    loaded = store.load("s")
    assert loaded is not None
    messages = tuple(entry.message for entry in loaded.messages)
    assert (messages, store.plans("s"), store.model_calls("s"), store.events.count()) == expected
    assert store.sent("s", 1) is not None
    assert store.search("s", "step", 3) is not None
    assert [trace.trace_id for trace in store.events.traces()] == ["s"]
    writes = (
        lambda: store.commit(Commit(session_id="new", expected=SessionHead())),
        lambda: store.delete("s"),
        lambda: store.report_usage("s", 5),
        lambda: store.events.add([], keep_seconds=1),
    )
    for write in writes:
        with pytest.raises(StoreError, match="read only"):
            write()
    assert len(store.sessions()) == 1
    store.close()


def test_the_files_stay_as_they_are(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'state.db'}"
    with manager_on(url)[0] as manager:
        manager.preflight("s", history(60))
    before = files(tmp_path)
    store = read_only(url)
    assert store.load("s") is not None
    assert store.events.count() > 0
    store.close()
    assert files(tmp_path) == before, "not even a file beside it"


def test_a_folder_that_cannot_be_written_to_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "mounted"
    folder.mkdir()
    url = f"sqlite:///{folder / 'state.db'}"
    with manager_on(url)[0] as manager:
        manager.preflight("s", history(60))
    for file in folder.iterdir():
        file.chmod(stat.S_IRUSR)
    folder.chmod(stat.S_IRUSR | stat.S_IXUSR)
    try:
        store = read_only(url)
        assert len(store.sessions()) == 1
        store.close()
    finally:
        folder.chmod(stat.S_IRWXU)


def test_what_an_agent_writes_meanwhile_is_seen(url: str) -> None:
    with manager_on(url)[0] as manager:
        manager.preflight("s", history(4))
        store = read_only(url)
        assert store.head("s").last_seq == 4
        manager.preflight("s", history(8))
        assert store.head("s").last_seq == 8
        store.close()


def test_a_former_version_is_brought_up_to_date_by_whoever_writes(url: str) -> None:
    with manager_on(url)[0] as manager:
        manager.preflight("s", history(60))
    make_older(url, 2)
    with manager_on(url)[0] as manager:
        manager.preflight("s", history(64))
        manager.flush()
        assert manager.store.events.count() > 0
    assert found_version(url) == schema.SCHEMA_VERSION, "whoever writes does that"


@pytest.mark.parametrize(
    ("version", "problem", "hint"),
    [
        (1, "schema version 1, which cannot be read without", "open it once without --read-only"),
        (2, "schema version 2, which cannot be read without", "open it once without --read-only"),
        (99, "schema version 99, this build knows", "upgrade compact-context"),
    ],
)
def test_what_cannot_be_read_says_so(url: str, version: int, problem: str, hint: str) -> None:
    with manager_on(url)[0] as manager:
        manager.preflight("s", history(4))
    make_older(url, version)
    store = read_only(url)
    with pytest.raises(StoreError, match=problem) as refused:
        store.sessions()
    assert hint in str(refused.value)
    store.close()
    assert found_version(url) == version


def test_nothing_is_created(tmp_path: Path) -> None:
    store = read_only(f"sqlite:///{tmp_path / 'deep' / 'state.db'}")
    with pytest.raises(StoreError, match="there is no store"):
        store.sessions()
    store.close()
    assert list(tmp_path.iterdir()) == []


def test_a_database_of_somebody_else_is_left_alone(postgres_url: str) -> None:
    store = read_only(postgres_url)
    with pytest.raises(StoreError, match="no Compact store"):
        store.sessions()
    store.close()
    database = Database(postgres_url, read_only=True)
    with database._engine.connect() as connection:
        tables = connection.execute(text("SELECT count(*) FROM pg_tables WHERE tablename LIKE 'compact%'")).scalar_one()
    database.close()
    assert tables == 0


def test_a_copy_without_its_log_is_read(tmp_path: Path) -> None:
    """A backup has no write-ahead log beside it, and may be anybody's."""
    url = f"sqlite:///{tmp_path / 'state.db'}"
    with manager_on(url)[0] as manager:
        manager.preflight("s", history(60))
    copy = tmp_path / "a backup #1%.db"
    shutil.copy(tmp_path / "state.db", copy)
    os.chmod(copy, 0o400)
    store = read_only(f"sqlite:///{copy}")
    assert len(store.sessions()) == 1
    store.close()
