"""The conformance suite for archives: transcripts, summaries and events of sessions, kept for people."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, TypeAlias

from compact.core.audit.archive import StorageAdapter
from compact.core.messages.message import Message, ToolCall

HOSTILE_IDS = (
    "../../x", "/etc/x", "..", ".", "", " ", "a/b", "a\\b", "nul\0byte", "Grüße 世界", "CON", "con.txt", "x" * 5000,
    "trailing.", "-rf", ".hidden", "line\nbreak", "\ud800", "C:\\x", "~root", "%2e%2e", "a\u202eb",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class EmptyArchive:
    """An archive with nothing in it, and a function that returns all that it holds; see `check_archive`.

    What was written elsewhere, if that can be seen, is to be returned too. Events of one session are in the order of
    their keys, one JSON object a line.

    Args:
        adapter: The archive.
        contents: Returns all that it holds, by the path or key of each.

    Example:
        >>> from pathlib import Path
        >>> from tempfile import mkdtemp
        >>> from compact.archive import FilesystemArchive
        >>> from compact.testing import EmptyArchive
        >>> def make_archive() -> EmptyArchive:
        ...     folder = Path(mkdtemp())
        ...     files = lambda: {str(file): file.read_bytes() for file in folder.rglob("*") if file.is_file()}
        ...     return EmptyArchive(FilesystemArchive(folder), files)
        >>> make_archive().text
        ''
    """

    adapter: StorageAdapter
    contents: Callable[[], Mapping[str, bytes]]

    @property
    def text(self) -> str:
        """All that it holds, as text."""
        return "\n".join(data.decode("utf-8") for data in self.contents().values())


MakeArchive: TypeAlias = Callable[[], EmptyArchive]


def check_archive(make_archive: MakeArchive, *, standard_names: bool = False) -> None:
    """Check what the engine and people rely on in an archive: nothing is changed, lost, overwritten or mixed up.

    Args:
        make_archive: Returns an `EmptyArchive`, a new one each time.
        standard_names: True checks also that files have the names that Compact's own archives give them.

    Raises:
        AssertionError: The archive got something wrong; the message says what.

    Example:
        >>> from pathlib import Path
        >>> from tempfile import mkdtemp
        >>> from compact.archive import FilesystemArchive
        >>> from compact.testing import EmptyArchive, check_archive
        >>> def make_archive() -> EmptyArchive:
        ...     folder = Path(mkdtemp())
        ...     files = lambda: {str(file): file.read_bytes() for file in folder.rglob("*") if file.is_file()}
        ...     return EmptyArchive(FilesystemArchive(folder), files)
        >>> check_archive(make_archive)
    """
    checks = _CHECKS + (_NAME_CHECKS if standard_names else ())
    for check in checks:
        check(make_archive())


def _wire(text: str, **more: Any) -> Message:
    return Message("user", text, original={"role": "user", "content": text, **more})


def _check_transcript(archive: EmptyArchive) -> None:
    messages = [
        _wire("erste Frage: größer?"),
        _wire("two\nlines\u2028three", vendor_field={"kept": [1, None]}),
        _wire("\ud800"),
    ]
    place = archive.adapter.save_transcript("session-1", messages, 7)
    stored = archive.contents()
    assert list(stored) == [place], f"exactly one file should be there, not {list(stored)}"
    lines = stored[place].decode("utf-8").splitlines()
    assert [json.loads(line) for line in lines] == [m.original for m in messages], "the wire form changed"
    assert "größer".encode() in stored[place], "text for people should not be escaped"


def _check_own_fields(archive: EmptyArchive) -> None:
    call = Message("assistant", tool_calls=(ToolCall("c1", "read", '{"p":1}'),), id="m1", original=object())
    answer = Message("tool", ({"type": "text", "text": "ok"},), tool_call_id="c1", meta={"protected": True})
    place = archive.adapter.save_transcript("s", [call, answer], 1)
    records = [json.loads(line) for line in archive.contents()[place].splitlines()]
    expected_call = {"id": "c1", "name": "read", "arguments": '{"p":1}'}
    assert records[0] == {"role": "assistant", "content": None, "tool_calls": [expected_call], "id": "m1"}
    text = [{"type": "text", "text": "ok"}]
    assert records[1] == {"role": "tool", "content": text, "tool_call_id": "c1", "meta": {"protected": True}}


def _check_never_overwrites(archive: EmptyArchive) -> None:
    save = archive.adapter.save_transcript
    first = save("s", [_wire("one")], 1)
    before = dict(archive.contents())
    assert save("s", [_wire("one")], 1) == first, "equal content should be left as it is"
    assert dict(archive.contents()) == before, "saving the same again changed the archive"
    others = [save("s", [_wire(f"other {number}")], 1) for number in range(12)]
    after = archive.contents()
    assert after[first] == before[first], "an archived transcript was overwritten"
    assert len({first, *others}) == 13 == len(after), "a transcript was lost"
    assert [json.loads(after[place])["content"] for place in others] == [f"other {n}" for n in range(12)]


def _check_summary(archive: EmptyArchive) -> None:
    save = archive.adapter.save_summary
    place = save("s", Message("user", "<COMPACT-SUMMARY v1>", id="sum-1"), 1)
    stored = json.loads(archive.contents()[place])
    assert stored == {"role": "user", "content": "<COMPACT-SUMMARY v1>", "id": "sum-1"}, "the summary changed"
    other = save("s", Message("user", "another"), 1)
    assert other != place, "two summaries share a name"
    assert json.loads(archive.contents()[place])["id"] == "sum-1", "a summary was overwritten"


def _check_events(archive: EmptyArchive) -> None:
    events: list[dict[str, Any]] = [{"event": "compact.archival", "number": number} for number in range(5)]
    events.append({"event": "odd", "text": "half a pair \udc00, two\nlines", "number": 5})
    for event in events:
        archive.adapter.save_event("s", event)
    archive.adapter.save_event("t", {"event": "elsewhere"})
    stored = {place: data for place, data in archive.contents().items() if "elsewhere" not in data.decode()}
    lines = [line for place in sorted(stored) for line in stored[place].splitlines()]
    assert [json.loads(line) for line in lines] == events, "events are lost, changed or out of order"
    odd = {"event": "not JSON", "where": PurePosixPath("/x"), "raw": b"\xff", "nan": float("nan"), "set": {1}}
    archive.adapter.save_event("s", odd)
    assert "not JSON" in archive.text, "an event with values that JSON does not have was lost"


def _check_ids(archive: EmptyArchive) -> None:
    places = {each: archive.adapter.save_transcript(each, [_wire("hello")], 1) for each in HOSTILE_IDS}
    assert len(set(places.values())) == len(HOSTILE_IDS), "two sessions share a place"
    assert set(archive.contents()) == set(places.values()), "something was written outside the archive"


_CHECKS = (
    _check_transcript,
    _check_own_fields,
    _check_never_overwrites,
    _check_summary,
    _check_events,
    _check_ids,
)


# -- names ---------------------------------------------------------------------------------------------------------


def _check_transcript_names(archive: EmptyArchive) -> None:
    save = archive.adapter.save_transcript
    place = save("session-1", [_wire("one")], 7)
    assert place.endswith("session-1/transcript-pre-compact-007.jsonl"), f"the transcript has the wrong name: {place}"
    place = save("session-1", [_wire("another")], 7)
    assert place.endswith("session-1/transcript-pre-compact-007-2.jsonl"), f"an unexpected name: {place}"


def _check_summary_names(archive: EmptyArchive) -> None:
    for step, name in ((1, "summary-001.json"), (1234, "summary-1234.json")):
        place = archive.adapter.save_summary("s", Message("user", "a summary"), step)
        assert place.endswith(f"s/{name}"), f"the summary has the wrong name: {place}"


def _check_event_names(archive: EmptyArchive) -> None:
    archive.adapter.save_event("s", {"event": "compact.archival"})
    places = sorted(archive.contents())
    assert all("s/events" in place for place in places), f"events are in the wrong place: {places}"


def _check_folders(archive: EmptyArchive) -> None:
    """Check that a session named like another one's folder does not land in it."""
    save = archive.adapter.save_transcript
    places = [save(each, [_wire("hello")], 1) for each in HOSTILE_IDS]
    impostors = {place.split("/")[-2] for place in places}
    copies = {save(each, [_wire("hello")], 1) for each in impostors}
    assert copies.isdisjoint(places), "an id can be chosen that lands in another session's folder"


_NAME_CHECKS = (_check_transcript_names, _check_summary_names, _check_event_names, _check_folders)
