"""Where Compact runs: without what only POSIX has, after a fork at any moment, and on the versions that are stated."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path, PureWindowsPath

import pytest

from compact import CompactConfig, CompactManager, StructuredSummary, SummaryRequest
from compact.archive.names import folder_name
from compact.core.engine.events import CompactionErrorEvent
from compact.core.session.session import Session
from compact.core.steps import Steps
from compact.prefetching.background import InProcessPrefetcher
from compact.runner import run_steps
from compact.stores import database
from compact.summarizers.extractive import extractive_summary
from compact.testing import RecordingSink, WordTokenizer, dialogue

ROOT = Path(__file__).parents[1]
# What Windows does not have, of what Compact or the packages that it always needs would use.
WITHOUT_POSIX = """
import os, sys
for name in ("fcntl", "pwd", "grp", "resource", "termios", "syslog"):
    sys.modules[name] = None
for name in ("fork", "register_at_fork", "O_NOFOLLOW", "O_DIRECTORY", "O_NONBLOCK", "getuid", "geteuid"):
    if hasattr(os, name):
        delattr(os, name)
os.supports_dir_fd = set()

from compact import CompactConfig, CompactManager
from compact.testing import WordTokenizer, dialogue

folder = sys.argv[1]
config = CompactConfig(
    max_context_tokens=1_000,
    policy={"hard_cap_buffer": 0},
    state={"url": f"sqlite:///{folder}/state.db"},
    storage={"adapter": "fs", "path": f"{folder}/archive"},
    telemetry={"exporter": "none"},
)
history = dialogue(40, words=30)
with CompactManager(config, tokenizer=WordTokenizer()) as manager:
    prompt = manager.preflight("a:b*c?", history)
    assert len(prompt) < len(history)
with CompactManager(config, tokenizer=WordTokenizer()) as manager:
    assert manager.preflight("a:b*c?", history) == prompt
"""
# In a path under Windows none of these may stand, and no part of it ends with a dot or a blank.
FORBIDDEN = re.compile(r'[<>:"|?*\\\x00-\x1f]|[. ]$')


def test_nothing_of_posix_is_needed(tmp_path: Path) -> None:
    """A session is compacted, stored, archived and resumed; its id is no name for a folder under Windows."""
    done = subprocess.run([sys.executable, "-c", WITHOUT_POSIX, str(tmp_path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    files = [path.relative_to(tmp_path) for path in tmp_path.rglob("*")]
    assert any(path.name == "transcript-pre-compact-001.jsonl" for path in files)
    assert [path for path in files if any(FORBIDDEN.search(part) for part in path.parts)] == []


@pytest.mark.parametrize("session_id", ["C:\\temp", "a/b", "LPT1.txt", "x.", "x ", "\x01", "*", "a" * 300, "CON", "é"])
def test_a_folder_of_the_archive_has_a_name_that_windows_takes(session_id: str) -> None:
    path = PureWindowsPath("C:/archive") / folder_name(session_id)
    assert path.parent == PureWindowsPath("C:/archive")
    assert not FORBIDDEN.search(path.name)
    assert len(path.name) <= 100


def test_a_url_of_a_file_under_windows_is_its_path() -> None:
    address = database.make_url("sqlite:///C:/Users/me/.compact/state.db")
    assert PureWindowsPath(address.database or "") == PureWindowsPath("C:\\Users\\me\\.compact\\state.db")


# -- fork ------------------------------------------------------------------------------------------------------------

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")


def in_a_fork(work: Callable[[], object]) -> int:
    """Return the exit status of a forked process that does some work; it is ended if that hangs."""
    child = os.fork()
    if child == 0:
        try:
            threading.Timer(20, os._exit, (9,)).start()
            status = 0 if work() else 1
        except BaseException:  # noqa: BLE001 - whatever it is, the copy of this process must end here
            status = 2
        os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@needs_fork
@pytest.mark.parametrize("prefetch", ["never", "auto"])
def test_a_process_forks_while_a_call_is_under_way(tmp_path: Path, prefetch: str) -> None:
    """The thread of that call is not in the copy, which goes on with this session and with others all the same."""
    asked, answered, parent = threading.Event(), threading.Event(), os.getpid()

    def summarize(request: SummaryRequest) -> StructuredSummary:
        if os.getpid() == parent:
            asked.set()
            assert answered.wait(60)
        return extractive_summary(request)

    config = CompactConfig(
        max_context_tokens=1_000,
        policy={"hard_cap_buffer": 0},
        state={"url": f"sqlite:///{tmp_path}/state.db"},
        summarizer={"prefetch": prefetch},
        telemetry={"exporter": "none"},
    )
    sink, history = RecordingSink(), dialogue(40, words=30)
    manager = CompactManager(config, tokenizer=WordTokenizer(), summarizer=summarize, on_event=sink)
    with manager:
        manager.preflight("busy", history[:4])
        call = threading.Thread(target=manager.preflight, args=("busy", history))
        call.start()
        assert asked.wait(30)

        def go_on() -> bool:
            sink.events.clear()
            same = manager.preflight("busy", history[:5])
            other = manager.preflight("other", history)
            manager.close()
            return same == history[:5] and len(other) < len(history) and not sink.of(CompactionErrorEvent)

        status = in_a_fork(go_on)
        answered.set()
        call.join()
        assert status == 0
        assert len(manager.history("busy")) == len(history)
        assert len(manager.history("other")) == len(history), "it was written by the copy"
    assert sink.of(CompactionErrorEvent) == []


@needs_fork
def test_what_was_prefetched_by_threads_of_the_parent_is_begun_again() -> None:
    begun, goes_on = threading.Event(), threading.Event()
    written: list[str] = []

    def prefetch(session: Session) -> Steps[None]:
        begun.set()
        yield lambda: goes_on.wait(30)
        written.append(session.session_id)

    prefetcher = InProcessPrefetcher(prefetch, run_steps, max_threads=1)
    prefetcher(Session("one"))
    assert begun.wait(30)

    def again() -> bool:
        goes_on.set()
        prefetcher(Session("two"))
        return prefetcher.wait(10) and written == ["two"]

    status = in_a_fork(again)
    goes_on.set()
    assert prefetcher.wait(30)
    assert status == 0
    assert written == ["one"]


# -- versions --------------------------------------------------------------------------------------------------------


def test_the_documentation_states_the_versions_that_are_checked() -> None:
    import tomllib

    stated = (ROOT / "docs" / "supported-versions.md").read_text()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert f"Python {project['requires-python'].removeprefix('>=')} or newer" in stated
    needed = ".".join(map(str, database._MIN_SQLITE))
    assert f"SQLite {needed} or newer" in stated
