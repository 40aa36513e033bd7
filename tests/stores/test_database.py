"""The database itself: private, one moment to each reader, safe after a fork, and without a word of passwords."""

from __future__ import annotations

import gc
import os
import sqlite3
import stat
import threading
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from compact import ConfigError
from compact.core.audit.records import Commit, SessionHead
from compact.core.audit.store import StoreError
from compact.core.engine.events import CompactionErrorEvent
from compact.stores import database
from compact.stores.database import Database
from compact.stores.sql import SqlCompactionStore
from compact.testing.store_samples import stored_messages, user_entry
from compact.waiting.progress import ROWS_AT_ONCE, on_progress
from stores.conftest import Server
from stores.worker import finish, history, manager_on, start, write_on


def test_a_file_is_private_and_its_log_is_written_ahead(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "state" / "state.db"
    before = os.umask(0)
    try:
        with manager_on(f"sqlite:///{path}")[0] as manager:
            manager.preflight("s", history(4))
            modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
            assert modes == {"state.db": 0o600, "state.db-wal": 0o600, "state.db-shm": 0o600}
            assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    finally:
        os.umask(before)
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()


def test_a_relative_path_stays_where_it_was_when_the_agent_changes_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    with manager_on("sqlite:///./state.db")[0] as manager:
        monkeypatch.chdir(tmp_path / "elsewhere")
        manager.preflight("s", history(4))
    assert (tmp_path / "state.db").exists()
    assert not (tmp_path / "elsewhere" / "state.db").exists()


def in_a_fork(work: Callable[[], bool]) -> bool:
    """What some work comes to in a forked process."""
    child = os.fork()
    if child == 0:
        is_good = False
        try:
            is_good = work()
        finally:
            os._exit(0 if is_good else 1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_forked_process_goes_on_with_the_session(url: str) -> None:
    manager, sink = manager_on(url)
    with manager:
        manager.preflight("s", history(4))
        assert in_a_fork(lambda: bool(manager.preflight("s", history(5))) and not sink.of(CompactionErrorEvent))
        manager.preflight("s", history(6))
        assert len(manager.history("s")) == 6
        assert sink.of(CompactionErrorEvent) == []


def test_a_forked_process_makes_its_own_connections(postgres_url: str) -> None:
    database = Database(postgres_url)

    def connection_number() -> int:
        with database.reading() as connection:
            return connection.execute(text("SELECT pg_backend_pid()")).scalar_one()

    ours = connection_number()
    assert in_a_fork(lambda: connection_number() != ours)
    assert connection_number() == ours
    database.close()


def test_opening_a_file_once_more_takes_no_lock_from_those_who_have_it_open(tmp_path: Path, sqlite_url: str) -> None:
    """A process that closes a file loses all its locks on it (POSIX), also those of other connections.

    Another process then takes itself for the last one, and removes the write-ahead log of those that still write.
    """
    one, one_sink = manager_on(sqlite_url)
    other, other_sink = manager_on(sqlite_url)
    with one, other:
        one.preflight("s", history(4))
        other.preflight("other", history(4))
        for length in (8, 12):
            finish(start(write_on, url=sqlite_url, log=str(tmp_path / "acknowledged"), preflights=3))
            assert Path(f"{sqlite_url.removeprefix('sqlite:///')}-wal").exists(), "the log of open connections is gone"
            one.preflight("s", history(length))
            other.preflight("other", history(length))
        assert [len(one.history(name)) for name in ("s", "other")] == [12, 12]
        assert one_sink.of(CompactionErrorEvent) == other_sink.of(CompactionErrorEvent) == []
    with closing(sqlite3.connect(sqlite_url.removeprefix("sqlite:///"))) as connection, connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()


def test_a_read_sees_one_moment(url: str) -> None:
    """Head, messages and plan are read one after the other: what is written in between must not be half seen."""
    database = Database(url)
    query = text("SELECT count(*) FROM compact_sessions")
    with database.reading() as reader:
        before = reader.execute(query).scalar_one()
        with manager_on(url)[0] as manager:
            manager.preflight("s", history(4))
        assert reader.execute(query).scalar_one() == before == 0
    with database.reading() as reader:
        assert reader.execute(query).scalar_one() == 1
    database.close()


def test_a_connection_that_is_in_use_is_closed_when_its_thread_is_done(url: str) -> None:
    """Not left to the garbage collector, of which Python warns."""
    database = Database(url)
    with database.reading() as reader:
        driver: Any = reader.connection.driver_connection
        database.close()
        assert reader.execute(text("SELECT 1")).scalar_one() == 1
        driver.cursor().close()
    with pytest.raises(Exception, match="closed"):
        driver.cursor()


def test_what_is_no_database_says_so() -> None:
    with pytest.raises(ConfigError, match="not a database URL"):
        Database("sqlite:/nonsense:[")
    with pytest.raises(ConfigError, match="not a database URL") as caught:
        Database("postgresql://u:hunter2@host:abc/db")
    assert "hunter2" not in str(caught.value)


def test_a_password_is_in_no_message(server: Server) -> None:
    url = server.url("nowhere").replace("postgres:@", "postgres:secret-word@")
    manager, sink = manager_on(url)
    with manager:
        manager.preflight("s", history(4))
    errors = sink.of(CompactionErrorEvent)
    assert "nowhere" in errors[0].message
    assert "secret-word" not in "".join(map(str, errors))


def test_threads_that_write_wait_for_their_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite gives up on a writer that others pass again and again; here each waits longer than it would."""
    monkeypatch.setattr(database, "_BUSY_TIMEOUT_SECONDS", 0.01)
    store = Database(f"sqlite:///{tmp_path / 'state.db'}")

    def write(_: int) -> None:
        with store.writing():
            time.sleep(0.05)

    write(0)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(8)))
    store.close()


def test_threads_write_in_the_order_in_which_they_ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last one waits longer for the others than any of them may take: nobody keeps the file to itself."""
    monkeypatch.setattr(database, "_TURN_TIMEOUT_SECONDS", 0.3)
    store = Database(f"sqlite:///{tmp_path / 'state.db'}")
    written: list[int] = []

    def write(number: int) -> None:
        with store.writing():
            written.append(number)
            time.sleep(0.1)

    write(-1)
    threads = [threading.Thread(target=write, args=(number,)) for number in range(10)]
    for thread in threads:
        thread.start()
        time.sleep(0.02)  # it has asked by then
    for thread in threads:
        thread.join()
    assert written == [*range(-1, 10)]
    store.close()


def test_a_thread_that_never_ends_its_write_is_told_to_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "_TURN_TIMEOUT_SECONDS", 0.2)
    monkeypatch.setattr(database, "_PAUSE_SECONDS", 0.0)
    store = Database(f"sqlite:///{tmp_path / 'state.db'}")
    begun, end = threading.Event(), threading.Event()

    def hang() -> None:
        with store.writing():
            begun.set()
            end.wait(20)

    with ThreadPoolExecutor(1) as pool:
        hanging = pool.submit(hang)
        assert begun.wait(20)
        with pytest.raises(StoreError, match="another thread has been writing to it"), store.writing():
            pass
        end.set()
        hanging.result()
        with store.writing():
            pass  # whoever gave up is passed over
    store.close()


def test_a_database_that_nobody_closes_leaves_no_connection(tmp_path: Path) -> None:
    """Python tells of one from 3.13 on."""
    opened = Database(f"sqlite:///{tmp_path / 'state.db'}")
    with opened.reading() as connection:
        assert connection.execute(text("select 1")).scalar_one() == 1
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        del opened, connection
        gc.collect()
    assert [str(warning.message) for warning in told] == []


def test_a_long_history_is_written_and_read_in_parts_that_are_noted(tmp_path: Path) -> None:
    store = SqlCompactionStore(Database(f"sqlite:///{tmp_path}/state.db"))
    entries, noted = stored_messages(*[user_entry("word")] * (3 * ROWS_AT_ONCE)), list[None]()
    before = on_progress.set(lambda: noted.append(None))
    try:
        store.commit(Commit(session_id="s", expected=SessionHead(), messages=entries))
        assert len(noted) >= 9, "each entry is written as data, packed, and put into the table"
        noted.clear()
        stored = store.load("s")
    finally:
        on_progress.reset(before)
    assert stored is not None
    assert len(stored.messages) == len(entries)
    assert len(noted) >= 3
