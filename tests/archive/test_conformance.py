"""What every archive must do; each adapter passes the same suite."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from compact.archive import FilesystemArchive, S3Archive, StorageAdapter, private_folder
from compact.core.log.messages import Message, ToolCall

# An empty archive, and a look at everything in it by the path or key that a save returns.
MakeArchive = Callable[[], tuple[StorageAdapter, Callable[[], Mapping[str, bytes]]]]

HOSTILE_IDS = (
    "../../x", "/etc/x", "..", ".", "", " ", "a/b", "a\\b", "nul\0byte", "Grüße 世界", "CON", "con.txt", "x" * 5000,
    "trailing.", "-rf", ".hidden", "line\nbreak", "\ud800", "C:\\x", "~root", "%2e%2e", "a\u202eb",
)  # fmt: skip


def check_archive(make: MakeArchive) -> None:
    """Raise AssertionError with what an archive gets wrong."""
    for check in (
        _check_transcript,
        _check_own_fields,
        _check_never_overwrites,
        _check_summary,
        _check_events,
        _check_ids,
    ):
        archive, contents = make()
        check(archive, contents)


def _wire(text: str, **more: Any) -> Message:
    return Message("user", text, original={"role": "user", "content": text, **more})


def _check_transcript(archive: StorageAdapter, contents: Callable[[], Mapping[str, bytes]]) -> None:
    messages = [
        _wire("erste Frage: größer?"),
        _wire("two\nlines\u2028three", vendor_field={"kept": [1, None]}),
        _wire("\ud800"),
    ]
    place = archive.save_transcript("session-1", messages, 7)
    assert place.endswith("session-1/transcript-pre-compact-007.jsonl"), f"the transcript has the wrong name: {place}"
    stored = contents()
    assert list(stored) == [place], f"exactly one file should be there, not {list(stored)}"
    lines = stored[place].decode("utf-8").splitlines()
    assert [json.loads(line) for line in lines] == [m.original for m in messages], "the wire form changed"
    assert "größer".encode() in stored[place], "text for people should not be escaped"


def _check_own_fields(archive: StorageAdapter, contents: Callable[[], Mapping[str, bytes]]) -> None:
    call = Message("assistant", tool_calls=(ToolCall("c1", "read", '{"p":1}'),), id="m1", original=object())
    answer = Message("tool", ({"type": "text", "text": "ok"},), tool_call_id="c1", meta={"protected": True})
    place = archive.save_transcript("s", [call, answer], 1)
    records = [json.loads(line) for line in contents()[place].splitlines()]
    expected_call = {"id": "c1", "name": "read", "arguments": '{"p":1}'}
    assert records[0] == {"role": "assistant", "content": None, "tool_calls": [expected_call], "id": "m1"}
    text = [{"type": "text", "text": "ok"}]
    assert records[1] == {"role": "tool", "content": text, "tool_call_id": "c1", "meta": {"protected": True}}


def _check_never_overwrites(archive: StorageAdapter, contents: Callable[[], Mapping[str, bytes]]) -> None:
    first = archive.save_transcript("s", [_wire("one")], 1)
    before = dict(contents())
    assert archive.save_transcript("s", [_wire("one")], 1) == first, "equal content should be left as it is"
    assert dict(contents()) == before, "saving the same again changed the archive"
    others = [archive.save_transcript("s", [_wire(f"other {number}")], 1) for number in range(12)]
    after = contents()
    assert after[first] == before[first], "an archived transcript was overwritten"
    assert len({first, *others}) == 13 == len(after), "a transcript was lost"
    assert [json.loads(after[place])["content"] for place in others] == [f"other {n}" for n in range(12)]
    assert others[0].endswith("s/transcript-pre-compact-001-2.jsonl"), f"an unexpected name: {others[0]}"


def _check_summary(archive: StorageAdapter, contents: Callable[[], Mapping[str, bytes]]) -> None:
    place = archive.save_summary("s", Message("user", "<COMPACT-SUMMARY v1>", id="sum-1"), 1)
    assert place.endswith("s/summary-001.json"), f"the summary has the wrong name: {place}"
    assert json.loads(contents()[place]) == {"role": "user", "content": "<COMPACT-SUMMARY v1>", "id": "sum-1"}
    other = archive.save_summary("s", Message("user", "another"), 1)
    assert other != place, "two summaries share a name"
    assert json.loads(contents()[place])["id"] == "sum-1", "a summary was overwritten"
    assert archive.save_summary("s", Message("user", "later"), 1234).endswith("s/summary-1234.json")


def _check_events(archive: StorageAdapter, contents: Callable[[], Mapping[str, bytes]]) -> None:
    events: list[dict[str, Any]] = [{"event": "compact.archival", "number": number} for number in range(5)]
    events.append({"event": "odd", "text": "half a pair \udc00, two\nlines", "number": 5})
    for event in events:
        archive.save_event("s", event)
    archive.save_event("t", {"event": "elsewhere"})
    stored = {place: data for place, data in contents().items() if "elsewhere" not in data.decode()}
    lines = [line for place in sorted(stored) for line in stored[place].splitlines()]
    assert [json.loads(line) for line in lines] == events, "events are lost, changed or out of order"
    assert all("s/events" in place for place in stored), f"events are in the wrong place: {sorted(stored)}"
    archive.save_event("s", {"event": "not JSON", "where": Path("/x"), "raw": b"\xff", "nan": float("nan"), "set": {1}})


def _check_ids(archive: StorageAdapter, contents: Callable[[], Mapping[str, bytes]]) -> None:
    places = {each: archive.save_transcript(each, [_wire("hello")], 1) for each in HOSTILE_IDS}
    assert len(set(places.values())) == len(HOSTILE_IDS), "two sessions share a folder"
    assert set(contents()) == set(places.values()), "something was written outside the archive"
    # A session named like another one's folder must not land in it.
    impostors = {place.split("/")[-2] for place in places.values()}
    copies = {archive.save_transcript(each, [_wire("hello")], 1) for each in impostors}
    assert copies.isdisjoint(places.values()), "an id can be chosen that lands in another session's folder"


def _make_filesystem(tmp_path: Path) -> MakeArchive:
    numbers = count()

    def make() -> tuple[StorageAdapter, Callable[[], Mapping[str, bytes]]]:
        root = tmp_path / str(next(numbers)) / "archive"

        def contents() -> dict[str, bytes]:
            # From above the root: what leaves it would be seen.
            return {str(path): path.read_bytes() for path in root.parent.rglob("*") if path.is_file()}

        return FilesystemArchive(root), contents

    return make


def test_filesystem_archive_conforms(tmp_path: Path) -> None:
    check_archive(_make_filesystem(tmp_path))


def test_filesystem_archive_conforms_without_folder_descriptors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on Windows."""
    monkeypatch.setattr(private_folder, "_HAS_FOLDER_DESCRIPTORS", False)
    check_archive(_make_filesystem(tmp_path))


def test_filesystem_archive_conforms_without_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on FAT."""

    def refuse(*_: Any, **__: Any) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(private_folder.os, "link", refuse)
    check_archive(_make_filesystem(tmp_path))


@pytest.mark.parametrize("kms_key_id", [None, "compact-archive-test-key"])
def test_s3_archive_conforms(bucket: Any, kms_key_id: str | None) -> None:
    numbers = count()

    def make() -> tuple[StorageAdapter, Callable[[], Mapping[str, bytes]]]:
        prefix = f"run-{next(numbers)}"
        archive = S3Archive(bucket.name, prefix, kms_key_id=kms_key_id, endpoint_url=bucket.server.url)
        seen = set(bucket.contents())
        return archive, lambda: {key: data for key, data in bucket.contents().items() if key not in seen}

    check_archive(make)
