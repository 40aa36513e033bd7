"""A store that fails never stops a turn: the event says what happened, and what is missing is written afterwards."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

from compact import CompactManager
from compact.core.audit.store import StoreError
from compact.core.engine.events import CompactionErrorEvent, NoticeEvent
from compact.stores import database
from compact.testing import RecordingSink
from stalls import own_clock
from stores.conftest import Server
from stores.worker import history, manager_on, violations

MOST_SECONDS = 5.0


@pytest.fixture(autouse=True)
def _short_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a failure a database is left alone for a while; here, for a short one."""
    monkeypatch.setattr(database, "_PAUSE_SECONDS", 0.2)


@contextmanager
def mounted(folder: Path, options: str) -> Iterator[None]:
    """A small file system of its own; only root can have one."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a file system")
    folder.mkdir(exist_ok=True)
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], check=False)
    if made.returncode:
        pytest.skip("no file system can be mounted here")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def goes_on(manager: CompactManager, sink: RecordingSink, length: int) -> list[CompactionErrorEvent]:
    """One turn: legal, in time; returns the errors that were reported meanwhile."""
    before = len(sink.of(CompactionErrorEvent))
    start = time.monotonic()
    prompt = manager.preflight("s", history(length))
    assert time.monotonic() - start < MOST_SECONDS
    assert violations(prompt) == ()
    assert prompt[-1] == history(length)[-1]
    return sink.of(CompactionErrorEvent)[before:]


def survives(url: str, break_it: Callable[[], None], mend_it: Callable[[], None]) -> list[CompactionErrorEvent]:
    """A session before, during and after a fault; returns the errors of the fault."""
    manager, sink = manager_on(url)
    with manager:
        for length in range(4, 41, 4):
            assert goes_on(manager, sink, length) == []
        break_it()
        # Long enough for a compaction under way: claims, plans and summaries cannot be written either.
        errors = [error for length in range(44, 121, 4) for error in goes_on(manager, sink, length)]
        mend_it()
        time.sleep(0.3)
        goes_on(manager, sink, 124)
        assert goes_on(manager, sink, 128) == []
        assert manager.current_plan("s").version > 0
        expected = [message.original for message in manager.history("s")]
        plan, prompt = manager.current_plan("s"), manager.preflight("s", history(128))
    assert expected == history(128)
    with manager_on(url)[0] as after:
        assert [message.original for message in after.history("s")] == history(128), "everything was written"
        assert after.current_plan("s") == plan
        assert after.preflight("s", history(128)) == prompt
        assert after.undo("s").version == plan.version + 1, "compactions during the fault leave no gap to fall into"
    return errors


def test_a_locked_database(sqlite_url: str) -> None:
    path = sqlite_url.removeprefix("sqlite:///")
    holder: list[sqlite3.Connection] = []

    def lock() -> None:
        holder.append(sqlite3.connect(path, isolation_level=None))
        holder[0].execute("BEGIN IMMEDIATE")

    errors = survives(sqlite_url, lock, lambda: holder[0].close())
    assert "database is locked" in errors[0].message
    assert "written with the next call" in errors[0].fallback


def test_a_write_that_fails_keeps_nobody_from_reading(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "_PAUSE_SECONDS", 60.0)
    manager, sink = manager_on(sqlite_url)
    with manager:
        manager.preflight("s", history(4))
        with closing(sqlite3.connect(sqlite_url.removeprefix("sqlite:///"), isolation_level=None)) as holder:
            holder.execute("BEGIN IMMEDIATE")
            assert goes_on(manager, sink, 8) != []
            assert [info.messages for info in manager.sessions()] == [4]
            with pytest.raises(StoreError, match="not tried again"):
                manager.store.report_usage("s", 5)


def test_a_row_that_somebody_holds(server: Server) -> None:
    import psycopg

    name = server.create_database()
    holder: list[psycopg.Connection] = []

    def lock() -> None:
        holder.append(psycopg.connect(server.url(name)))
        holder[0].execute("SELECT * FROM compact_sessions FOR UPDATE")

    manager, sink = manager_on(server.url(name))
    with manager:
        assert goes_on(manager, sink, 4) == []
        lock()
        errors = [*goes_on(manager, sink, 8), *goes_on(manager, sink, 12)]
        holder[0].close()
        assert goes_on(manager, sink, 16) == []
    assert len(errors) == 2
    assert "lock timeout" in errors[0].message
    with manager_on(server.url(name))[0] as after:
        assert len(after.history("s")) == 16


@pytest.mark.parametrize("known", [0, 40], ids=["new", "known"])
def test_a_folder_that_becomes_read_only(tmp_path: Path, known: int) -> None:
    folder = tmp_path / "small"
    url = f"sqlite:///{folder}/state/state.db"

    def remount(mode: str) -> None:
        subprocess.run(["mount", "-o", f"remount,{mode}", str(folder)], check=True)

    with mounted(folder, "size=20m"):
        if known:
            with manager_on(url)[0] as before:
                before.preflight("s", history(known))
        manager, sink = manager_on(url)
        remount("ro")
        with manager:
            errors = [error for length in range(44, 101, 4) for error in goes_on(manager, sink, length)]
            assert "Read-only file system" in errors[0].message
            remount("rw")
            time.sleep(0.3)
            assert goes_on(manager, sink, 104) == []
        with manager_on(url)[0] as after:
            assert [message.original for message in after.history("s")] == history(104)


def test_a_folder_that_is_read_only_from_the_start(tmp_path: Path) -> None:
    """One notice, and no attempt to write: what is said meanwhile ends with the process, as the notice says."""
    folder = tmp_path / "small"
    url = f"sqlite:///{folder}/state/state.db"
    with mounted(folder, "size=20m"):
        with manager_on(url)[0] as before:
            before.preflight("s", history(40))
        subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
        manager, sink = manager_on(url)
        with manager:
            assert [error for length in range(44, 101, 4) for error in goes_on(manager, sink, length)] == []
            assert len(manager.history("s")) == 100
        (notice,) = [event.message for event in sink.of(NoticeEvent) if "kept in memory" in event.message]
        assert "cannot be written to" in notice
        subprocess.run(["mount", "-o", "remount,rw", str(folder)], check=True)
        with manager_on(url)[0] as after:
            assert len(after.history("s")) == 40
            after.preflight("s", history(104))
            assert [message.original for message in after.history("s")] == history(104)


def test_a_full_disk(tmp_path: Path) -> None:
    folder = tmp_path / "small"

    def fill() -> None:
        with suppress(OSError), (folder / "ballast").open("wb", buffering=0) as file:
            while file.write(b"x" * 4096):
                pass

    with mounted(folder, "size=2m"):
        errors = survives(f"sqlite:///{folder}/state.db", fill, (folder / "ballast").unlink)
    assert "full" in errors[0].message or "disk I/O error" in errors[0].message


def test_a_file_that_is_deleted(sqlite_url: str) -> None:
    path = Path(sqlite_url.removeprefix("sqlite:///"))

    def delete() -> None:
        for file in path.parent.iterdir():
            file.unlink()
        path.parent.rmdir()

    errors = survives(sqlite_url, delete, lambda: None)
    assert "was deleted or replaced" in errors[0].message
    assert len(errors) == 1, "a new one takes its place at once"


def test_a_file_that_is_deleted_while_its_write_ahead_log_stays(sqlite_url: str) -> None:
    errors = survives(sqlite_url, Path(sqlite_url.removeprefix("sqlite:///")).unlink, lambda: None)
    assert "was deleted or replaced" in errors[0].message


def test_what_only_the_memory_had_is_written_when_a_file_is_lost(sqlite_url: str) -> None:
    """A caller that sends back compacted prompts never shows us the old messages again."""
    path = Path(sqlite_url.removeprefix("sqlite:///"))
    manager, _ = manager_on(sqlite_url)
    with manager:
        prompt = manager.preflight("s", history(120))
        assert len(prompt) < 120
        path.unlink()
        prompt = manager.preflight("s", [*prompt, *history(124)[120:]])
        manager.preflight("s", [*prompt, *history(128)[124:]])
    with manager_on(sqlite_url)[0] as after:
        assert [message.original for message in after.history("s")] == history(128)


@pytest.mark.parametrize("garbage", [b"", b"this is no database " * 1000], ids=["empty", "garbage"])
def test_a_file_that_is_overwritten(sqlite_url: str, garbage: bytes) -> None:
    """Corrupt until somebody puts a good file in its place (here: none, so that a new one is made)."""
    path = Path(sqlite_url.removeprefix("sqlite:///"))

    def remove() -> None:
        for file in path.parent.iterdir():
            file.unlink()

    def overwrite() -> None:
        path.write_bytes(garbage)

    survives(sqlite_url, overwrite, remove)


def test_a_file_that_is_no_database_from_the_start(sqlite_url: str) -> None:
    path = Path(sqlite_url.removeprefix("sqlite:///"))
    path.parent.mkdir()
    path.write_bytes(b"this is no database " * 1000)
    manager, sink = manager_on(sqlite_url)
    with manager:
        errors = goes_on(manager, sink, 4)
        assert "file is not a database" in errors[0].message
        path.unlink()
        time.sleep(0.3)
        goes_on(manager, sink, 8)
        assert goes_on(manager, sink, 12) == []
    with manager_on(sqlite_url)[0] as after:
        assert len(after.history("s")) == 12


def test_a_server_that_dies_and_comes_back(mortal_server: Server) -> None:
    name = mortal_server.create_database()
    errors = survives(mortal_server.url(name), mortal_server.stop, mortal_server.start)
    assert f"cannot use postgresql://postgres:***@/{name}" in errors[0].message
    assert "hint: check state.url, the server" in errors[0].message


def test_a_server_that_is_not_there_when_the_process_starts(mortal_server: Server) -> None:
    url = mortal_server.url(mortal_server.create_database())
    with manager_on(url)[0] as before:
        before.preflight("s", history(100))
    mortal_server.stop()
    manager, sink = manager_on(url)
    with manager:
        assert goes_on(manager, sink, 104)
        mortal_server.start()
        time.sleep(0.3)
        assert goes_on(manager, sink, 108) == []
        assert [message.original for message in manager.history("s")] == history(108)


def test_a_dead_server_is_left_alone_for_a_while(mortal_server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "_PAUSE_SECONDS", 60.0)
    manager, sink = manager_on(mortal_server.url(mortal_server.create_database()))
    with manager:
        manager.preflight("s", history(4))
        mortal_server.stop()
        manager.preflight("s", history(8))
        start = own_clock()
        assert len(goes_on(manager, sink, 120)) > 1
        assert own_clock() - start < 3
    assert "not tried again for a moment" in sink.of(CompactionErrorEvent)[-1].message
