"""The archive on a real disk: private, whole, never overwritten, and never led astray."""

from __future__ import annotations

import json
import os
import random
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from compact.archive import ArchiveError, FilesystemArchive
from compact.core.messages.message import Message

NOBODY = 65534
as_root = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0 or sys.platform != "linux",
    reason="mounting a tmpfs needs root on Linux",
)


def said(text: str) -> list[Message]:
    return [Message("user", text, original={"role": "user", "content": text})]


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@contextmanager
def mounted(path: Path, options: str) -> Iterator[Path]:
    path.mkdir(exist_ok=True)
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", path], capture_output=True, text=True)
    if made.returncode:
        pytest.skip(f"no tmpfs can be mounted here: {made.stderr.strip()}")
    try:
        yield path
    finally:
        subprocess.run(["umount", path], check=True)


def test_everything_it_makes_is_for_the_owner_alone(tmp_path: Path) -> None:
    previous = os.umask(0)
    try:
        archive = FilesystemArchive(tmp_path / ".compact" / "archive")
        archive.save_transcript("s", said("x"), 1)
        archive.save_summary("s", Message("user", "x"), 1)
        archive.save_event("s", {"event": "x"})
    finally:
        os.umask(previous)
    made = list((tmp_path / ".compact").rglob("*"))
    assert [mode(path) for path in (tmp_path / ".compact", *made) if path.is_dir()] == [0o700] * 3
    assert [mode(path) for path in made if path.is_file()] == [0o600] * 4, "with what keeps them out of git"


def test_a_relative_root_stays_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    archive = FilesystemArchive("archive")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")
    assert archive.save_transcript("s", said("x"), 1) == str(tmp_path / "archive/s/transcript-pre-compact-001.jsonl")


def test_writers_of_the_same_step_lose_nothing(tmp_path: Path) -> None:
    texts = [f"writer {number}" for number in range(16)]
    with ThreadPoolExecutor(16) as pool:
        places = list(pool.map(lambda text: FilesystemArchive(tmp_path).save_transcript("s", said(text), 1), texts))
    assert [json.loads(Path(place).read_bytes())["content"] for place in places] == texts
    assert len(os.listdir(tmp_path / "s")) == 16


WRITER = """
import sys
from compact.archive import FilesystemArchive
from compact.core.messages.message import Message
archive, session, step = FilesystemArchive(sys.argv[1]), sys.argv[2], 0
messages = [Message("user", "word " * 2000)] * 40
while True:
    step += 1
    archive.save_transcript(session, messages, step)
    archive.save_event(session, {"step": step, "padding": "x" * 5000})
"""


def kill_a_writer(root: Path, session: str, *, after_seconds: float) -> list[Path]:
    """What a writer leaves that is killed some time after its first transcript."""
    with subprocess.Popen([sys.executable, "-c", WRITER, str(root), session]) as writer:
        while not (root / session / "transcript-pre-compact-001.jsonl").exists():
            assert writer.poll() is None
            time.sleep(0.001)
        time.sleep(after_seconds)
        writer.kill()
    return list((root / session).iterdir())


def test_a_killed_writer_leaves_no_half_written_file(tmp_path: Path) -> None:
    """Killed at a random moment, again and again: every file with a final name is whole."""
    chance, interrupted = random.Random(7), 0
    for number in range(60):
        left = kill_a_writer(tmp_path, f"session-{number}", after_seconds=chance.uniform(0, 0.03))
        for path in (path for path in left if path.suffix != ".tmp"):
            lines = path.read_bytes().splitlines()
            assert all(json.loads(line) for line in lines)
            assert path.name == "events.jsonl" or len(lines) == 40
        unfinished = [path for path in left if path.suffix == ".tmp"]
        assert all(path.name.startswith(".") for path in unfinished)
        interrupted += len(unfinished)
        if number >= 11 and interrupted >= 3:
            return
    pytest.fail("no writer was killed while it wrote: the test proves nothing")


APPENDER = """
import sys
from compact.archive import FilesystemArchive
archive = FilesystemArchive(sys.argv[1])
for number in range(200):
    archive.save_event("s", {"who": sys.argv[2], "number": number, "padding": sys.argv[2] * 5000})
"""


def test_events_of_several_processes_never_mix(tmp_path: Path) -> None:
    writers = [subprocess.Popen([sys.executable, "-c", APPENDER, str(tmp_path), who]) for who in "abcd"]
    assert [writer.wait() for writer in writers] == [0] * 4
    events = [json.loads(line) for line in (tmp_path / "s/events.jsonl").read_bytes().splitlines()]
    for who in "abcd":
        own = [event for event in events if event["who"] == who]
        assert [event["number"] for event in own] == list(range(200))
        assert all(event["padding"] == who * 5000 for event in own)


def test_a_line_that_a_crash_tore_is_ended_once_however_many_go_on(tmp_path: Path) -> None:
    archive = FilesystemArchive(tmp_path)
    archive.save_event("s", {"number": -1})
    with (tmp_path / "s/events.jsonl").open("ab") as file:
        file.write(b'{"number": "to')
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: archive.save_event("s", {"number": number}), range(8)))
    lines = (tmp_path / "s/events.jsonl").read_bytes().splitlines()
    assert lines.pop(1) == b'{"number": "to'
    assert sorted(json.loads(line)["number"] for line in lines) == list(range(-1, 8))


def test_a_line_that_is_just_being_written_is_waited_for(tmp_path: Path) -> None:
    fcntl = pytest.importorskip("fcntl", reason="this system has no file locks")
    archive = FilesystemArchive(tmp_path)
    archive.save_event("s", {"number": 1})
    with (tmp_path / "s/events.jsonl").open("ab", buffering=0) as other, ThreadPoolExecutor(1) as pool:
        fcntl.flock(other, fcntl.LOCK_SH)
        other.write(b'{"number":')
        saved = pool.submit(archive.save_event, "s", {"number": 3})
        time.sleep(0.1)
        assert not saved.done()
        other.write(b" 2}\n")
        fcntl.flock(other, fcntl.LOCK_UN)
        saved.result()
    lines = (tmp_path / "s/events.jsonl").read_bytes().splitlines()
    assert [json.loads(line)["number"] for line in lines] == [1, 2, 3]


def test_a_lock_that_a_foreign_program_keeps_does_not_stop_events(tmp_path: Path) -> None:
    fcntl = pytest.importorskip("fcntl", reason="this system has no file locks")
    archive = FilesystemArchive(tmp_path)
    archive.save_event("s", {"number": 1})
    with (tmp_path / "s/events.jsonl").open("rb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        archive.save_event("s", {"number": 2})
    assert len((tmp_path / "s/events.jsonl").read_bytes().splitlines()) == 2


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    (tmp_path / "outside").mkdir()
    (tmp_path / "archive").mkdir()
    return tmp_path / "outside"


def test_a_link_in_place_of_the_session_folder_is_refused(tmp_path: Path, outside: Path) -> None:
    (tmp_path / "archive/s").symlink_to(outside, target_is_directory=True)
    archive = FilesystemArchive(tmp_path / "archive")
    with pytest.raises(ArchiveError, match="hint: remove") as caught:
        archive.save_transcript("s", said("secret"), 1)
    assert caught.value.place == str(tmp_path / "archive/s/transcript-pre-compact-001.jsonl")
    with pytest.raises(ArchiveError):
        archive.save_event("s", {"event": "secret"})
    assert os.listdir(outside) == []


def test_links_in_place_of_files_are_not_followed(tmp_path: Path, outside: Path) -> None:
    target, session = outside / "target", tmp_path / "archive/s"
    target.write_text("untouched")
    session.mkdir()
    for name in ("events.jsonl", "transcript-pre-compact-001.jsonl"):
        (session / name).symlink_to(target)
    (session / "summary-001.json").symlink_to(outside / "dangling")
    archive = FilesystemArchive(tmp_path / "archive")
    with pytest.raises(ArchiveError, match="symbolic link"):
        archive.save_event("s", {"event": "x"})
    assert archive.save_transcript("s", said("x"), 1).endswith("001-2.jsonl")
    assert archive.save_summary("s", Message("user", "x"), 1).endswith("001-2.json")
    assert os.listdir(outside) == ["target"]
    assert target.read_text() == "untouched"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_in_place_of_a_file_does_not_block(tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    os.mkfifo(tmp_path / "s/events.jsonl")
    os.mkfifo(tmp_path / "s/summary-001.json")
    archive = FilesystemArchive(tmp_path)
    with pytest.raises(ArchiveError, match="not a file"):
        archive.save_event("s", {"event": "x"})
    assert archive.save_summary("s", Message("user", "x"), 1).endswith("001-2.json")


def test_a_file_in_place_of_the_root_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "archive").write_text("a file")
    with pytest.raises(ArchiveError, match="where a folder should be"):
        FilesystemArchive(tmp_path / "archive").save_event("s", {})


@pytest.fixture
def forbidden() -> Iterator[Path]:
    """A folder that may be read but not written, reachable for every user."""
    top = Path(tempfile.mkdtemp())
    top.chmod(0o755)
    (top / "archive").mkdir(mode=0o555)
    is_root = os.geteuid() == 0
    if is_root:
        os.seteuid(NOBODY)  # nothing is forbidden to root
    yield top / "archive"
    if is_root:
        os.seteuid(0)
    (top / "archive").chmod(0o755)
    shutil.rmtree(top)


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="permissions as on POSIX")
def test_a_folder_that_may_not_be_written_is_an_error(forbidden: Path) -> None:
    with pytest.raises(ArchiveError, match="permission denied") as caught:
        FilesystemArchive(forbidden).save_transcript("s", said("x"), 1)
    assert "writable" in caught.value.hint
    assert os.listdir(forbidden) == []


@as_root
def test_a_read_only_disk_is_an_error(tmp_path: Path) -> None:
    with mounted(tmp_path / "disk", "size=64k,ro") as disk, pytest.raises(ArchiveError, match="read-only"):
        FilesystemArchive(disk).save_transcript("s", said("x"), 1)


@as_root
def test_a_full_disk_is_an_error_and_leaves_nothing_half_done(tmp_path: Path) -> None:
    with mounted(tmp_path / "disk", "size=64k") as disk:
        archive = FilesystemArchive(disk)
        small = archive.save_transcript("s", said("small"), 1)
        with pytest.raises(ArchiveError, match="the disk is full") as caught:
            archive.save_transcript("s", said("x" * 200_000), 2)
        assert "free some space" in caught.value.hint
        assert os.listdir(disk / "s") == [Path(small).name]


def save_until_full(archive: FilesystemArchive) -> int:
    """Save events until one fails, and return how many went in."""
    for number in range(1000):
        try:
            archive.save_event("s", {"number": number, "padding": "x" * 3000})
        except ArchiveError as error:
            if "the disk is full" in str(error):
                return number
            raise
    pytest.fail("the disk never filled up")


@as_root
def test_an_event_cut_short_by_a_full_disk_does_not_spoil_the_next(tmp_path: Path) -> None:
    with mounted(tmp_path / "disk", "size=64k") as disk:
        archive, filler = FilesystemArchive(disk), disk / "filler"
        filler.write_bytes(b"x" * 30_000)
        saved = save_until_full(archive)
        filler.unlink()
        archive.save_event("s", {"number": "after"})
        lines = (disk / "s/events.jsonl").read_bytes().splitlines()
    assert len(lines) in (saved + 1, saved + 2)
    assert [json.loads(line)["number"] for line in lines[:saved]] == list(range(saved))
    assert json.loads(lines[-1]) == {"number": "after"}
