"""What a compaction leaves for people: transcripts, summaries and events, redacted, and never in the agent's way."""

from __future__ import annotations

import json
import os
import shutil
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from compact import CompactConfig, CompactManager
from compact.core.engine.events import ArchivalEvent, CompactionErrorEvent, NoticeEvent
from compact.core.messages.message import Message
from compact.telemetry.event_archive import ArchiveExporter
from compact.telemetry.worker import ExportWorker
from compact.testing import RecordingSink, WordTokenizer, assistant, dialogue, user
from stalls import own_clock

SECRET = "api_key=sk-" + "abc123def456ghi789"


def archived(tmp_path: Path, **plugs: Any) -> tuple[CompactManager, RecordingSink, Path]:
    sink = RecordingSink()
    settings = plugs.pop("settings", {})
    config = CompactConfig(
        max_context_tokens=4_000,
        storage={"adapter": "fs", "path": str(tmp_path / "archive")},
        telemetry={"exporter": "none"},
        **settings,
    )
    manager = CompactManager(config, tokenizer=WordTokenizer(), on_event=sink, **plugs)
    return manager, sink, tmp_path / "archive" / "s"


def everything_in(folder: Path) -> str:
    return "\n".join(file.read_text() for file in sorted(folder.iterdir()))


def test_filesystem_storage_adapter(tmp_path: Path) -> None:
    """S1's scenario: the full transcript, in parts, the summary and the events, under S1's names."""
    manager, sink, folder = archived(tmp_path)
    history = dialogue(20, words=50)
    first = manager.manual_compact("s", history)
    manager.manual_compact("s", [*first, *dialogue(20, words=51)])
    assert manager.flush(30)
    assert sorted(file.name for file in folder.iterdir()) == [
        "events.jsonl",
        "summary-001.json",
        "summary-002.json",
        "transcript-pre-compact-001.jsonl",
        "transcript-pre-compact-002.jsonl",
    ]
    lines = (folder / "transcript-pre-compact-001.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == history
    lines = (folder / "transcript-pre-compact-002.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == dialogue(20, words=51), "what is new since the last one"
    assert [event.step for event in sink.of(ArchivalEvent)] == [1, 1, 2, 2]


def test_audit_logging_for_all_exports(tmp_path: Path) -> None:
    manager, _, folder = archived(tmp_path)
    manager.manual_compact("s", dialogue(20, words=50))
    assert manager.flush(30)
    events = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
    audit = [event for event in events if event["event"] == "compact.archival"]
    assert [(event["session_id"], event["step"], event["storage_adapter"]) for event in audit] == [("s", 1, "fs")] * 2
    assert audit[0]["place"].endswith("transcript-pre-compact-001.jsonl")


def test_redaction_before_archival(tmp_path: Path) -> None:
    manager, _, folder = archived(tmp_path)
    history = [user(f"deploy with {SECRET} please"), *dialogue(20, words=50)]
    out = manager.manual_compact("s", history)
    assert manager.flush(30)
    assert "api_key=<REDACTED>" in everything_in(folder)
    assert SECRET not in everything_in(folder)
    assert SECRET in json.dumps(out)  # the summary keeps what was asked; the model still gets the original
    assert manager.history("s")[0].text == f"deploy with {SECRET} please"


def test_redaction_switched_off_is_said_loudly(tmp_path: Path) -> None:
    manager, sink, folder = archived(tmp_path, settings={"redaction": {"enabled": False}})
    assert [event.severity for event in sink.of(NoticeEvent) if "redaction" in event.message] == ["high"]
    manager.manual_compact("s", [user(SECRET), *dialogue(20, words=50)])
    assert SECRET in everything_in(folder)


def test_own_patterns_and_a_callback(tmp_path: Path) -> None:
    pytest.importorskip("re2", reason="the extra compact-context[redaction] is not installed")
    manager, _, folder = archived(
        tmp_path,
        settings={"redaction": {"patterns": [r"harbour-\d+"]}},
        redaction_callback=lambda text: text.replace("marina", "<PLACE>"),
    )
    manager.manual_compact("s", [user("moor harbour-4711 in the marina"), *dialogue(20, words=50)])
    text = everything_in(folder)
    assert "harbour-4711" not in text
    assert "in the <PLACE>" in text


def test_an_archive_that_fails_is_reported_and_the_turn_goes_on(tmp_path: Path) -> None:
    manager, sink, _ = archived(tmp_path)
    (tmp_path / "archive").write_text("not a folder")
    history = dialogue(20, words=50)
    assert len(manager.manual_compact("s", history)) < len(history)
    assert "without archiving" in sink.of(CompactionErrorEvent)[0].fallback
    assert manager.current_plan("s").version == 1


def test_a_crafted_session_id_stays_in_the_archive(tmp_path: Path) -> None:
    manager, _, _ = archived(tmp_path)
    manager.manual_compact("../../outside", dialogue(20, words=50))
    written = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert written
    assert all((tmp_path / "archive") in file.parents for file in written)


class StuckArchive:
    """Takes events only when it is let."""

    def __init__(self) -> None:
        self.gate, self.saved = threading.Event(), list[Mapping[str, Any]]()

    def save_event(self, session_id: str, event: Mapping[str, Any]) -> None:
        assert self.gate.wait(20)
        self.saved.append(event)


def test_an_archive_that_may_wait_does_not_make_the_agent_wait() -> None:
    stuck = StuckArchive()
    sink = ExportWorker(ArchiveExporter(stuck), max_queued=1_000, close_seconds=60)
    start = own_clock()
    for number in range(1_400):
        sink(NoticeEvent(session_id="s", message=str(number)))
    assert own_clock() - start < 2
    assert 140 < sink.dropped <= 400
    stuck.gate.set()
    sink.close()
    assert len(stuck.saved) == 1_400 - sink.dropped


# -- a history in parts ----------------------------------------------------------------------------------------------


def long_session(rounds: int) -> Iterator[list[dict[str, Any]]]:
    """Yield a history that grows by as much in each round."""
    history: list[dict[str, Any]] = []
    for number in range(rounds):
        for question in range(20):
            history += [user(f"round {number} question {question}" + " word" * 50), assistant(f"answer {question}")]
        yield list(history)


def joined(folder: Path) -> list[dict[str, Any]]:
    """Return all that the transcripts of a session hold, one after the other."""
    files = sorted(folder.glob("transcript-pre-compact-*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def test_the_parts_make_up_the_history_and_do_not_grow(tmp_path: Path) -> None:
    manager, _, folder = archived(tmp_path)
    history: list[dict[str, Any]] = []
    for history in long_session(30):
        manager.manual_compact("s", history)
    assert joined(folder) == history
    sizes = [file.stat().st_size for file in folder.glob("transcript-*")]
    assert len(sizes) > 20
    # The first compactions have nothing to do yet: theirs is written with the next one.
    assert max(sizes) < 4 * min(sizes)


def test_another_process_goes_on_where_the_last_one_stopped(tmp_path: Path) -> None:
    settings = {"state": {"url": f"sqlite:///{tmp_path}/state.db"}}
    history: list[dict[str, Any]] = []
    for history in long_session(6):
        manager, _, folder = archived(tmp_path, settings=settings)
        with manager:
            manager.manual_compact("s", history)
            manager.undo("s")
    assert joined(folder) == history


def test_what_could_not_be_archived_is_in_the_next_part(tmp_path: Path) -> None:
    manager, sink, folder = archived(tmp_path)
    first, second, third = long_session(3)
    (tmp_path / "archive").write_text("not a folder")
    manager.manual_compact("s", first)
    manager.manual_compact("s", second)
    assert "without archiving" in sink.of(CompactionErrorEvent)[0].fallback
    (tmp_path / "archive").unlink()
    manager.manual_compact("s", third)
    assert joined(folder) == third


def test_a_session_needs_nothing_of_what_is_removed_from_the_archive(tmp_path: Path) -> None:
    """Recall, undo and the history read the store."""
    manager, _, folder = archived(tmp_path, settings={})
    history = list(long_session(4))[-1]
    manager.manual_compact("s", history)
    before = manager.recall("s", "question 7")
    assert manager.flush(30)
    shutil.rmtree(folder)
    assert manager.recall("s", "question 7") == before
    assert manager.undo("s").records == ()
    assert manager.preflight("s", history[:30]) == history[:30]
    assert [message.text for message in manager.history("s")] == [message["content"] for message in history]


def test_the_settings_limit_the_archive(tmp_path: Path) -> None:
    sink = RecordingSink()
    storage = {"adapter": "fs", "path": str(tmp_path / "archive"), "keep_days": 30, "max_mb": 1}
    config = CompactConfig(max_context_tokens=4_000, storage=storage, telemetry={"exporter": "none"})
    old = tmp_path / "archive/older/transcript-pre-compact-001.jsonl"
    old.parent.mkdir(parents=True)
    old.write_text("{}")
    os.utime(old, (time.time() - 31 * 86_400,) * 2)
    with CompactManager(config, tokenizer=WordTokenizer(), on_event=sink) as manager:
        manager.manual_compact("s", dialogue(20, words=50))
        manager.flush(30)
    assert not old.parent.exists()
    assert (tmp_path / "archive/s/transcript-pre-compact-001.jsonl").exists()
    assert sink.of(CompactionErrorEvent) == []


class UnprunableArchive:
    """Takes everything, and cannot remove anything."""

    def save_transcript(self, session_id: str, transcript: Sequence[Message], step: int) -> str:
        return "there"

    def save_summary(self, session_id: str, summary: Message, step: int) -> str:
        return "there"

    def save_event(self, session_id: str, event: Mapping[str, Any]) -> None:
        pass

    def prune(self) -> int:
        raise PermissionError("not yours")


def test_an_archive_that_cannot_remove_is_reported_and_the_turn_goes_on(tmp_path: Path) -> None:
    manager, sink, _ = archived(tmp_path, archive=UnprunableArchive())
    history = dialogue(20, words=50)
    assert len(manager.manual_compact("s", history)) < len(history)
    (error,) = sink.of(CompactionErrorEvent)
    assert "nothing was removed" in error.fallback
    assert "not yours" in error.message


# -- an adapter of one's own -----------------------------------------------------------------------------------------


class OwnArchive:
    """Three methods, and nothing of ours."""

    def __init__(self) -> None:
        self.transcripts: dict[str, list[str]] = {}
        self.summaries: dict[str, str] = {}
        self.events: list[tuple[str, Mapping[str, Any]]] = []

    def save_transcript(self, session_id: str, transcript: Sequence[Message], step: int) -> str:
        place = f"own://{session_id}/history/{step}"
        self.transcripts[place] = [message.text for message in transcript]
        return place

    def save_summary(self, session_id: str, summary: Message, step: int) -> str:
        place = f"own://{session_id}/summary/{step}"
        self.summaries[place] = summary.text
        return place

    def save_event(self, session_id: str, event: Mapping[str, Any]) -> None:
        self.events.append((session_id, event))


def test_an_adapter_of_ones_own_gets_transcripts_summaries_and_events(tmp_path: Path) -> None:
    own = OwnArchive()
    manager, sink, folder = archived(tmp_path, archive=own)
    history = [user(f"deploy with {SECRET} please"), *dialogue(20, words=50)]
    with manager:
        first = manager.manual_compact("s", history)
        manager.manual_compact("s", [*first, *dialogue(20, words=51)])
        assert manager.flush()
    assert list(own.transcripts) == ["own://s/history/1", "own://s/history/2"]
    assert [len(texts) for texts in own.transcripts.values()] == [41, 40]
    assert own.transcripts["own://s/history/1"][1:] == [message["content"] for message in history[1:]]
    assert list(own.summaries) == ["own://s/summary/1", "own://s/summary/2"]
    assert all(text.startswith("<COMPACT-SUMMARY") for text in own.summaries.values())
    archivals = [event for _, event in own.events if event["event"] == "compact.archival"]
    assert [event["place"] for event in archivals] == [
        "own://s/history/1",
        "own://s/summary/1",
        "own://s/history/2",
        "own://s/summary/2",
    ]
    assert {event["storage_adapter"] for event in archivals} == {"OwnArchive"}
    assert [event.place for event in sink.of(ArchivalEvent)] == [event["place"] for event in archivals]
    assert {session_id for session_id, _ in own.events} == {"s"}
    assert not folder.exists(), "the adapter takes the place of the one in the configuration"
    everything = json.dumps([own.transcripts, own.summaries, own.events])
    assert SECRET not in everything
    assert "api_key=<REDACTED>" in everything


class BrokenArchive(OwnArchive):
    """Fails at one of its three methods, in a way of its own."""

    def __init__(self, broken: str) -> None:
        super().__init__()
        self.tried = 0

        def fail(*_: Any) -> str:
            self.tried += 1
            raise ZeroDivisionError("no archive today")

        setattr(self, broken, fail)


@pytest.mark.parametrize("broken", ["save_transcript", "save_summary", "save_event"])
def test_an_adapter_of_ones_own_that_fails_never_stops_a_turn(
    tmp_path: Path, broken: str, caplog: pytest.LogCaptureFixture
) -> None:
    own = BrokenArchive(broken)
    manager, sink, _ = archived(tmp_path, archive=own)
    history = dialogue(20, words=50)
    with manager:
        assert len(manager.manual_compact("s", history)) < len(history)
        assert manager.preflight("s", [*history, user("go on")])[-1] == user("go on")
        assert manager.current_plan("s").version == 1
        assert manager.flush() is (broken != "save_event"), "whoever flushes learns what was not written"
    assert own.tried
    if broken == "save_event":
        assert sink.of(CompactionErrorEvent) == []
        assert "no archive today" in caplog.text, "what cannot be an event is in the log"
    else:
        (error,) = sink.of(CompactionErrorEvent)
        assert "without archiving" in error.fallback
        assert "no archive today" in error.message
