"""What a compaction leaves for people: transcripts, summaries and events, redacted, and never in the agent's way."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from compact import CompactConfig, CompactManager
from compact.core.engine.events import ArchivalEvent, CompactionErrorEvent, CompactionEvent, NoticeEvent
from compact.telemetry.event_archive import BackgroundSink
from compact.testing import RecordingSink, WordTokenizer, dialogue, user

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
    """S1's scenario: the full transcript, the summary and the events, under S1's names."""
    manager, sink, folder = archived(tmp_path)
    history = dialogue(20, words=50)
    first = manager.manual_compact("s", history)
    manager.manual_compact("s", [*first, *dialogue(20, words=51)])
    assert sorted(file.name for file in folder.iterdir()) == [
        "events.jsonl",
        "summary-001.json",
        "summary-002.json",
        "transcript-pre-compact-001.jsonl",
        "transcript-pre-compact-002.jsonl",
    ]
    lines = (folder / "transcript-pre-compact-001.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == history
    assert len((folder / "transcript-pre-compact-002.jsonl").read_text().splitlines()) == 80
    assert [event.step for event in sink.of(ArchivalEvent)] == [1, 1, 2, 2]


def test_audit_logging_for_all_exports(tmp_path: Path) -> None:
    manager, _, folder = archived(tmp_path)
    manager.manual_compact("s", dialogue(20, words=50))
    events = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
    audit = [event for event in events if event["event"] == "compact.archival"]
    assert [(event["session_id"], event["step"], event["storage_adapter"]) for event in audit] == [("s", 1, "fs")] * 2
    assert audit[0]["place"].endswith("transcript-pre-compact-001.jsonl")


def test_redaction_before_archival(tmp_path: Path) -> None:
    manager, _, folder = archived(tmp_path)
    history = [user(f"deploy with {SECRET} please"), *dialogue(20, words=50)]
    out = manager.manual_compact("s", history)
    assert "api_key=<REDACTED>" in everything_in(folder)
    assert SECRET not in everything_in(folder)
    assert SECRET in json.dumps(out)  # the summary keeps what was asked; the model still gets the original
    assert manager.history("s")[0].text == f"deploy with {SECRET} please"


def test_redaction_switched_off_is_said_loudly(tmp_path: Path) -> None:
    manager, sink, folder = archived(tmp_path, settings={"redaction": {"enabled": False}})
    assert [event.severity for event in sink.of(NoticeEvent)] == ["high"]
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
    (tmp_path / "archive").write_text("not a folder")
    manager, sink, _ = archived(tmp_path)
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

    def __call__(self, event: CompactionEvent) -> None:
        assert self.gate.wait(20)
        self.saved.append(event.to_dict())


def test_an_archive_that_may_wait_does_not_make_the_agent_wait() -> None:
    stuck = StuckArchive()
    sink = BackgroundSink(stuck)
    start = time.perf_counter()
    for number in range(1_200):
        sink(NoticeEvent(session_id="s", message=str(number)))
    assert time.perf_counter() - start < 2
    assert 190 <= sink.dropped <= 200
    stuck.gate.set()
    sink.close()
    assert len(stuck.saved) == 1_200 - sink.dropped
