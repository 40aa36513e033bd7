"""What an archive removes: what is too old, then the oldest of what is too much, and never what is not ours."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from compact.archive import ArchiveError, FilesystemArchive, Retention, S3Archive
from compact.archive.retention import ArchivedFile, PruneTimer
from compact.core.messages.message import Message

DAY = 86_400.0
NOW = 1_000 * DAY


def aged(days: float, size: int = 400_000, name: str = "") -> ArchivedFile:
    return ArchivedFile(name or f"{days} days old", size, NOW - days * DAY)


@pytest.mark.parametrize(
    ("retention", "removed"),
    [
        (Retention(), []),
        (Retention(keep_days=8), ["20 days old", "9 days old"]),
        (Retention(keep_days=0.5), ["20 days old", "9 days old", "5 days old", "1 days old"]),
        (Retention(max_mb=1), ["20 days old", "9 days old", "5 days old"]),
        (Retention(max_mb=1.6), ["20 days old"]),
        (Retention(max_mb=0.001), ["20 days old", "9 days old", "5 days old", "1 days old"]),
        (Retention(keep_days=6, max_mb=1.2), ["20 days old", "9 days old"]),
        (Retention(keep_days=10, max_mb=1.2), ["20 days old", "9 days old"]),
    ],
)
def test_what_is_removed(retention: Retention, removed: list[str]) -> None:
    files = [aged(5), aged(20), aged(0.5), aged(9), aged(1)]
    assert [file.place for file in retention.surplus(files, now=NOW)] == removed


def test_nothing_is_removed_of_nothing() -> None:
    assert Retention(keep_days=1, max_mb=1).surplus([], now=NOW) == []


def test_an_archive_is_not_looked_through_at_every_compaction() -> None:
    timer = PruneTimer(every_seconds=3_600)
    assert [timer.is_due() for _ in range(3)] == [True, False, False]
    always = PruneTimer(every_seconds=0)
    assert [always.is_due() for _ in range(3)] == [True, True, True]


# -- on disk ---------------------------------------------------------------------------------------------------------


def make_old(path: Path, days: float) -> None:
    os.utime(path, (time.time() - days * DAY,) * 2)


def fill(archive: FilesystemArchive | S3Archive) -> None:
    for session_id in ("one", "two/../x"):
        archive.save_transcript(session_id, [Message("user", "hello")], 1)
        archive.save_transcript(session_id, [Message("user", "other")], 1)
        archive.save_summary(session_id, Message("user", "sum"), 1)
        archive.save_event(session_id, {"event": "x"})


def test_old_files_and_empty_folders_go(tmp_path: Path) -> None:
    archive = FilesystemArchive(tmp_path / "a", retention=Retention(keep_days=10), prune_seconds=0)
    fill(archive)
    files = [path for path in (tmp_path / "a").rglob("*") if path.is_file()]
    assert len(files) == 8
    assert archive.prune() == 0
    for path in files:
        make_old(path, 11)
    archive.save_transcript("three", [Message("user", "new")], 1)
    assert archive.prune() == 8
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["three"]


def test_what_is_not_ours_stays(tmp_path: Path) -> None:
    archive = FilesystemArchive(tmp_path / "a", retention=Retention(keep_days=10), prune_seconds=0)
    place = Path(archive.save_transcript("one", [Message("user", "hello")], 1))
    outside = tmp_path / "outside"
    outside.mkdir()
    strange = [
        place.with_name("notes.jsonl"),
        place.with_name("transcript-of-mine.jsonl"),
        tmp_path / "a" / "summary-001.json",
        outside / "summary-001.json",
    ]
    for path in strange:
        path.write_text("{}")
        make_old(path, 100)
    (tmp_path / "a" / "linked").symlink_to(outside)
    make_old(place, 100)
    archive.save_summary("two", Message("user", "new"), 1)
    assert archive.prune() == 1
    assert all(path.exists() for path in strange)
    assert not place.exists()


def test_an_archive_without_limits_removes_nothing(tmp_path: Path) -> None:
    archive = FilesystemArchive(tmp_path / "a", prune_seconds=0)
    fill(archive)
    for path in (tmp_path / "a").rglob("*.json*"):
        make_old(path, 10_000)
    assert archive.prune() == 0


def test_a_folder_that_is_gone_is_said_in_a_sentence(tmp_path: Path) -> None:
    archive = FilesystemArchive(tmp_path / "a", retention=Retention(keep_days=1), prune_seconds=0)
    with pytest.raises(ArchiveError, match="cannot write to the archive at"):
        archive.prune()


# -- in a bucket -----------------------------------------------------------------------------------------------------


def open_archive(bucket: Any, retention: Retention, *, ahead_days: float = 0.0, prefix: str = "team/prod") -> S3Archive:
    return S3Archive(
        bucket.name,
        prefix,
        endpoint_url=bucket.server.url,
        retention=retention,
        prune_seconds=0,
        clock=lambda: time.time() + ahead_days * DAY,
    )


@pytest.mark.parametrize("prefix", ["team/prod", ""])
def test_old_objects_go(bucket: Any, prefix: str) -> None:
    fill(open_archive(bucket, Retention(), prefix=prefix))
    strange = ["team/other/summary.json", "team/prod/notes.jsonl", "readme.md"]
    for key in strange:
        bucket.client.put_object(Bucket=bucket.name, Key=key, Body=b"{}")
    assert len(bucket.contents()) == 8 + len(strange)
    assert open_archive(bucket, Retention(keep_days=10), ahead_days=9, prefix=prefix).prune() == 0
    # All but what was written last.
    assert open_archive(bucket, Retention(keep_days=10), ahead_days=11, prefix=prefix).prune() == 7
    assert set(strange) < set(bucket.contents())


def test_objects_up_to_a_size_stay(bucket: Any) -> None:
    archive = open_archive(bucket, Retention(max_mb=0.25))
    for step in range(1, 6):
        archive.save_transcript("s", [Message("user", "x" * 100_000)], step)
        time.sleep(1.1)  # S3 knows seconds
    assert archive.prune() == 3
    assert [key[-9:] for key in bucket.contents()] == ["004.jsonl", "005.jsonl"]


def test_rights_to_write_alone_are_said(bucket: Any) -> None:
    bucket.log_in("writekey", "writesecret")
    archive = open_archive(bucket, Retention(keep_days=1))
    archive.save_transcript("s", [Message("user", "x")], 1)
    with pytest.raises(ArchiveError) as caught:
        archive.prune()
    assert "s3:DeleteObject" in str(caught.value.hint)
