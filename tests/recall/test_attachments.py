"""Attachments and recall: stored once, found by their names, shown again if there is room, never by whom may not."""

from __future__ import annotations

import base64
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from compact import CompactConfig, CompactManager
from compact.core.audit.store import StoreError
from compact.core.engine.events import ContentRehydratedEvent, NoticeEvent, RehydrationBlockedEvent
from compact.stores.packing import unpacked
from compact.testing import RecordingSink
from core.messages.pdf_files import plain_pdf

PDF = plain_pdf(2)
DATA = base64.b64encode(PDF).decode()
FILE = {"type": "file", "file": {"filename": "deal.pdf", "file_data": f"data:application/pdf;base64,{DATA}"}}


def user(text: str, *parts: Any, **more: Any) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "text", "text": text}, *parts] if parts else text, **more}


def history(turns: int = 40, **meta: Any) -> list[dict[str, Any]]:
    """A long talk whose first message has a document."""
    items = [user("Please read this contract.", FILE, **({"meta": meta} if meta else {}))]
    for turn in range(turns):
        items.append({"role": "assistant", "content": f"Answer {turn}. " + "It is said in part two of it. " * 25})
        items.append(user(f"Question {turn}: " + "and what about the other ones? " * 12))
    return items


def recalling(query: str, answer: str) -> list[dict[str, Any]]:
    function = {"name": "recall", "arguments": json.dumps({"query": query})}
    call = {"id": "r1", "type": "function", "function": function}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "r1", "content": answer},
    ]


def watched(url: str = "memory:", window: int = 16_000, archive: Path | None = None) -> tuple[CompactManager, Any]:
    sink = RecordingSink()
    config = CompactConfig(
        max_context_tokens=window,
        state={"url": url},
        storage={"adapter": "fs", "path": str(archive)} if archive else {"adapter": "none"},
        telemetry={"exporter": "none"},
    )
    return CompactManager(config, on_event=sink), sink


def shows(prompt: list[Any]) -> bool:
    return DATA in repr(prompt)


def _as_text(value: Any) -> Any:
    """Return what a column holds; bytes of another kind than packed texts stay bytes."""
    try:
        return unpacked(value) if isinstance(value, bytes) else value
    except StoreError:
        return value


def test_the_bytes_are_stored_once(tmp_path: Path) -> None:
    """In the log: not with plans, calls, artifacts, events, the search index or the archive."""
    manager, _ = watched(f"sqlite:///{tmp_path / 'state.db'}", archive=tmp_path / "archive")
    items = history()
    assert not shows(manager.preflight("s", items))
    items += recalling("deal.pdf", str(manager.recall("s", "deal.pdf")))
    assert shows(manager.preflight("s", items))
    manager.close()
    with closing(sqlite3.connect(tmp_path / "state.db")) as database, database:
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        rows = {name: database.execute(f"SELECT * FROM {name}").fetchall() for name in tables}
    found = {name: sum(DATA in repr([_as_text(value) for value in row]) for row in rows[name]) for name in tables}
    assert {name: count for name, count in found.items() if count} == {"compact_messages": 1}
    files = [path for path in (tmp_path / "archive").rglob("*") if path.is_file()]
    assert files
    assert not any(DATA.encode() in path.read_bytes() for path in files)
    assert any(b"deal.pdf, application/pdf" in path.read_bytes() for path in files)


@pytest.mark.parametrize("query", ["deal.pdf", "the pdf document", "m1", "which contract file did I send?"])
def test_recall_gives_it_back_and_shows_it_in_the_next_prompt(query: str) -> None:
    manager, sink = watched()
    items = history()
    manager.preflight("s", items)
    (moved,) = manager.current_plan("s").artifacts
    answer = manager.recall("s", query)
    (found,) = answer.found[0].attachments
    assert (found.data, found.part, found.is_asked_for) == (PDF, FILE, True)
    assert DATA not in str(answer)
    prompt = manager.preflight("s", [*items, *recalling(query, str(answer))])
    assert prompt[-1]["content"][1] == FILE
    assert prompt[-2]["role"] == "tool"
    assert [event.artifact_id for event in sink.of(ContentRehydratedEvent)] == [moved.artifact_id]
    over = manager.preflight("s", [*items, *recalling(query, str(answer)), user("Thanks, something else now.")])
    assert not shows(over), "it is shown for a turn"


def test_a_question_about_other_things_only_says_that_it_is_there() -> None:
    manager, _ = watched()
    items = history()
    manager.preflight("s", items)
    (moved,) = manager.current_plan("s").artifacts
    answer = manager.recall("s", "please read")
    assert f"recall {moved.artifact_id} brings it back" in str(answer)
    assert not shows(manager.preflight("s", [*items, *recalling("please read", str(answer))]))


def test_a_compaction_makes_room_for_what_was_asked_for() -> None:
    manager, sink = watched()
    items = history()
    prompt = manager.preflight("s", items)
    while manager.status("s").used_tokens < 11_500:  # too full for a document of two pages
        items += history(1)[1:]
        prompt = manager.preflight("s", items)
    version = manager.current_plan("s").version
    prompt = manager.preflight("s", [*items, *recalling("deal.pdf", str(manager.recall("s", "deal.pdf")))])
    assert shows(prompt)
    assert manager.current_plan("s").version == version + 1
    assert "room for an attachment" in manager.current_plan("s").reason
    assert manager.status("s").used_tokens <= 14_500
    assert not sink.of(RehydrationBlockedEvent)


def test_what_cannot_be_shown_is_refused_in_words() -> None:
    """A document larger than the window: it is moved at once, and whoever recalls it is told why it is not there."""
    manager, sink = watched(window=6_000)
    large = base64.b64encode(plain_pdf(40)).decode()
    file = {"type": "file", "file": {"filename": "deal.pdf", "file_data": f"data:application/pdf;base64,{large}"}}
    items = [user("Read this, please.", file)]
    prompt = manager.preflight("s", items)
    assert large not in repr(prompt)
    assert any("does not fit the prompt: deal.pdf" in event.message for event in sink.of(NoticeEvent))
    prompt = manager.preflight("s", [*items, *recalling("deal.pdf", str(manager.recall("s", "deal.pdf")))])
    assert "is not shown: it takes" in prompt[-1]["content"]


def test_what_is_confidential_is_neither_named_nor_shown_by_itself() -> None:
    manager, sink = watched()
    items = history(sensitivity="confidential")
    prompt = manager.preflight("s", items)
    assert "deal.pdf" not in repr(prompt)
    (moved,) = manager.current_plan("s").artifacts
    assert manager.recall("s", moved.artifact_id).found == ()
    assert manager.recall("s", "deal.pdf").found == ()
    assert not shows(manager.preflight("s", [*items, *recalling("x", f"[attached again: {moved.artifact_id}]")]))
    assert sink.of(RehydrationBlockedEvent)


def test_why_and_the_log_speak_of_it_by_its_line() -> None:
    manager, _ = watched()
    manager.preflight("s", history())
    trace = manager.why("s", "deal.pdf")
    assert trace.is_known
    assert DATA not in repr(trace)
