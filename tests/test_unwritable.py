"""A folder that cannot be written to costs one line, once: everything else works from memory."""

from __future__ import annotations

import errno
import logging
import os
import shutil
import subprocess
import sys
from collections import namedtuple
from pathlib import Path
from typing import Any

import pytest

from compact import CompactConfig, CompactManager
from compact.core.engine.events import CompactionErrorEvent, NoticeEvent
from compact.own_folder import why_not_writable
from compact.testing import RecordingSink, WordTokenizer, assistant, dialogue, user

SAID = [user("Never deploy to harbour-4711."), assistant("Noted."), *dialogue(20, words=50)]


def use_everything(manager: CompactManager) -> None:
    """Call what reads and writes, as an agent and its operator do."""
    with manager:
        for count in (4, 10, len(SAID)):
            manager.preflight("s", SAID[:count])
        assert len(manager.manual_compact("s", SAID)) < len(SAID)
        assert "harbour-4711" in str(manager.recall("s", "where not to deploy?"))
        assert list(manager.why("s", "harbour-4711"))
        assert manager.report("s")
        assert manager.model_calls("s")
        assert manager.undo("s").records == ()
        assert manager.flush()


def lines_of(sink: RecordingSink) -> list[str]:
    said = [event.message for event in sink.of(NoticeEvent) if "policy." not in event.message]
    return said + [event.message for event in sink.of(CompactionErrorEvent)]


def make_manager(place: Path, sink: RecordingSink, **settings: Any) -> CompactManager:
    config = CompactConfig(
        max_context_tokens=4_000,
        state={"url": f"sqlite:///{place}/.compact/state.db"},
        storage={"adapter": "fs", "path": f"{place}/.compact/archive"},
        telemetry={"exporter": "none"},
        **settings,
    )
    return CompactManager(config, tokenizer=WordTokenizer(), on_event=sink)


def test_one_line_says_what_where_and_what_to_do(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("not a folder")
    sink = RecordingSink()
    with caplog.at_level(logging.WARNING):
        use_everything(make_manager(tmp_path / "file", sink))
    (line,) = lines_of(sink)
    assert f"{tmp_path}/file is not a folder" in line
    assert "sessions are kept in memory, and end with this process" in line
    assert "nothing is archived" in line
    assert "state.url" in line
    assert "storage.path" in line
    assert caplog.text == "", "the event log says nothing of its own"


def test_a_full_disk_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(10**9, 10**9, 4_096))
    sink = RecordingSink()
    use_everything(make_manager(tmp_path, sink))
    (line,) = lines_of(sink)
    assert f"the disk of {tmp_path} is full" in line
    assert list(tmp_path.iterdir()) == []


def test_only_what_cannot_be_written_is_given_up(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    sink = RecordingSink()
    settings = {"max_context_tokens": 4_000, "telemetry": {"exporter": "none"}}
    state, storage = {"url": f"sqlite:///{tmp_path}/state.db"}, {"adapter": "fs", "path": str(tmp_path / "file")}
    config = CompactConfig(state=state, storage=storage, **settings)
    use_everything(CompactManager(config, tokenizer=WordTokenizer(), on_event=sink))
    (line,) = lines_of(sink)
    assert "sessions" not in line
    assert (tmp_path / "state.db").exists()


def test_what_is_passed_in_is_not_looked_at(tmp_path: Path) -> None:
    from compact.stores.memory import InMemoryCompactionStore

    (tmp_path / "file").write_text("not a folder")
    sink = RecordingSink()
    config = CompactConfig(
        max_context_tokens=4_000,
        state={"url": f"sqlite:///{tmp_path}/file/state.db"},
        storage={"adapter": "none"},
        telemetry={"exporter": "none"},
    )
    store = InMemoryCompactionStore()
    use_everything(CompactManager(config, tokenizer=WordTokenizer(), on_event=sink, store=store))
    assert lines_of(sink) == []


def test_nothing_is_said_where_all_is_well(tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / "new/folder"):
        sink = RecordingSink()
        use_everything(make_manager(place, sink))
        assert lines_of(sink) == []
        assert (place / ".compact/state.db").exists()


# -- as a user without rights ----------------------------------------------------------------------------------------

# Root may write anywhere, unless it gives that right up.
DROPPED = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-dac_override,-dac_read_search"]
SCRIPT = """
from compact import CompactConfig, CompactManager
from compact.testing import WordTokenizer
import sys
sys.path.insert(0, {tests!r})
from test_unwritable import use_everything
use_everything(CompactManager(CompactConfig(max_context_tokens=60_000), tokenizer=WordTokenizer()))
print("done")
"""


def run_in(folder: Path) -> tuple[str, list[str]]:
    """Run an agent with the default places in a folder; return what it printed, and the lines for its operator."""
    as_user = [] if os.geteuid() else DROPPED
    if as_user and not shutil.which("setpriv"):
        pytest.skip("root may write anywhere, and setpriv is not installed")
    done = subprocess.run(
        [*as_user, sys.executable, "-c", SCRIPT.format(tests=str(Path(__file__).parent))],
        cwd=folder, capture_output=True, text=True, timeout=120, check=False,
        env={**{k: v for k, v in os.environ.items() if not k.startswith("COMPACT_")}, "PYTHONDONTWRITEBYTECODE": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.strip(), done.stderr.splitlines()


@pytest.fixture
def folder(tmp_path: Path) -> Any:
    """A folder whose rights may be changed, and are given back."""
    place = tmp_path / "project"
    place.mkdir()
    yield place
    for path in (place, *place.rglob("*")):
        path.chmod(0o700)


def test_a_read_only_folder(folder: Path) -> None:
    folder.chmod(0o555)
    printed, lines = run_in(folder)
    assert printed == "done"
    assert len(lines) == 1, lines
    assert f"{folder} cannot be written to" in lines[0]


def test_a_read_only_folder_of_ours(folder: Path) -> None:
    own = folder / ".compact"
    own.mkdir()
    own.chmod(0o555)
    printed, lines = run_in(folder)
    assert printed == "done"
    assert len(lines) == 1, lines
    assert f"{own} cannot be written to" in lines[0]


def test_a_read_only_store(folder: Path) -> None:
    assert run_in(folder) == ("done", [])
    store = folder / ".compact/state.db"
    store.chmod(0o444)
    printed, lines = run_in(folder)
    assert printed == "done"
    assert len(lines) == 1, lines
    assert f"{store} cannot be written to" in lines[0]
    assert "archived" not in lines[0]


# -- a store that fails later ----------------------------------------------------------------------------------------


def test_recall_works_from_memory_while_the_store_is_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from compact.stores import database

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EIO, "the disk is broken")

    manager = make_manager(tmp_path, RecordingSink())
    monkeypatch.setattr(database.schema, "prepare", refuse)
    manager.preflight("s", SAID)
    assert "harbour-4711" in str(manager.recall("s", "where not to deploy?"))
    assert manager.recall("s", "m1").found
    assert not manager.recall("s", "submarine").found
    with pytest.raises(Exception, match="the disk is broken"):
        manager.recall("unknown", "harbour")


@pytest.mark.parametrize("name", ["missing/deep/state.db", "state.db", "."])
def test_a_place_that_can_be_written_has_no_reason_against_it(tmp_path: Path, name: str) -> None:
    assert why_not_writable(tmp_path / name, is_folder=name == ".") == ""
    assert list(tmp_path.iterdir()) == [], "and nothing is created to find out"
