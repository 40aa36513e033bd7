"""The commands that change a store: undo and prune."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from compact import CompactConfig, CompactManager
from compact.stores.database import Database
from compact.stores.sql import SqlCompactionStore
from compact.testing import assistant, system, tool_run, user

COMMAND = Path(sys.executable).parent / "compact"
HISTORY = [system("be brief"), *tool_run(40, words=120)]
DAY = 86_400


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The store that the commands of a test work on."""
    url = f"sqlite:///{tmp_path}/state.db"
    monkeypatch.setenv("COMPACT_STATE__URL", url)
    monkeypatch.setenv("COMPACT_MAX_CONTEXT_TOKENS", "4000")
    return url


@pytest.fixture
def manager(url: str) -> Callable[..., CompactManager]:
    """A manager as an agent has it, on the same store; its clock may be set back."""

    def make(days_ago: float = 0) -> CompactManager:
        config = CompactConfig(storage={"adapter": "none"}, telemetry={"exporter": "none"})
        clock = lambda: time.time() - days_ago * DAY  # noqa: E731
        store = SqlCompactionStore(Database(url), clock=clock)
        return CompactManager(config, store=store)

    return make


@pytest.fixture
def compacted(manager) -> int:
    """A session `demo` at the version that is returned."""
    with manager() as agent:
        for end in (30, 60, len(HISTORY)):
            agent.preflight("demo", HISTORY[:end])
        agent.preflight("fresh", HISTORY[:5])
        version = agent.current_plan("demo").version
    assert version >= 2
    return version


def at_a_terminal(*arguments: str, answer: str) -> tuple[int, str]:
    """Run the command with everything on a terminal, and answer its question."""
    parent, child = pty.openpty()
    fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
    process = subprocess.Popen([str(COMMAND), *arguments], stdin=child, stdout=child, stderr=child)
    os.close(child)
    watch = threading.Timer(60, process.kill)
    watch.start()
    shown = b""
    while True:
        try:
            chunk = os.read(parent, 65536)
        except OSError:  # Linux says so when the other side is closed
            break
        shown += chunk
        if b"[y/N]:" in shown and answer:
            os.write(parent, answer.encode())
            answer = ""
    watch.cancel()
    os.close(parent)
    return process.wait(timeout=60), shown.decode()


# -- undo ---------------------------------------------------------------------------------------------------------


def test_undo(cli, manager, compacted):
    """One step back, said and written; again goes further, to the very beginning and no further."""
    done = cli("undo", "demo", "--yes")
    assert done.code == 0
    assert done.out.startswith(f"version {compacted - 1} is in force again, as version {compacted + 1}: ")
    assert done.err.startswith(f"compact undo demo --to {compacted} reverses this\n")
    with manager() as agent:
        assert agent.current_plan("demo").origin == compacted - 1
    for _ in range(compacted - 1):
        assert cli("undo", "demo", "--yes", "--json").data["changed"]
    whole = cli("show", "demo", "--json").data["status"]
    assert whole["actions"] == {"include": len(HISTORY)}
    done = cli("undo", "demo", "--yes")
    assert (done.code, done.out) == (0, "nothing to undo: every compaction is undone already\n")
    assert cli("undo", "demo", "--json").data["changed"] is False


def test_undo_that_does_not_fit(cli, compacted):
    """The whole history is larger than the window: the next call will compact again, and that is said."""
    done = cli("undo", "demo", "--to", 0, "--yes")
    assert done.code == 0
    assert f", 0 of {len(HISTORY)} messages compacted\n" in done.out
    assert "tokens that fit: the next call compacts again" in done.err


def test_undo_knows_the_window_of_the_agent(cli, compacted, monkeypatch):
    """Where the command runs nothing says how large the window is; the calls of the session do."""
    monkeypatch.delenv("COMPACT_MAX_CONTEXT_TOKENS")
    assert "is more than the 2,500 tokens that fit" in cli("undo", "demo", "--to", 0, "--yes").err
    assert "limits        prefetch 2," in cli("show", "demo").out  # in the order of `status` and `inspect`


def test_undo_to_a_version(cli, compacted):
    """Any version; the one in force needs nothing; one that never was is an error."""
    assert cli("undo", "demo", "--to", 1, "--yes", "--json").data["restored_from"] == 1
    for version in (1, compacted + 1):
        done = cli("undo", "demo", "--to", version)
        assert (done.code, done.out) == (0, f"nothing to do: version {version} is in force already\n")
    done = cli("undo", "demo", "--to", 99)
    assert (done.code, done.out) == (2, "")
    assert done.err.endswith(f"no plan version 99\nhint: its versions are 0 to {compacted + 1}\n")
    assert cli("undo", "fresh").out == "nothing to undo: session 'fresh' was never compacted\n"


def test_undo_needs_a_yes(cli, process, compacted):
    """In a pipe nobody can be asked: nothing happens."""
    for run in (cli, process):
        done = run("undo", "demo")
        assert (done.code, done.out) == (2, "")
        assert done.err == (
            "error: cannot ask for confirmation: this is not a terminal\nhint: add --yes to skip the question\n"
        )
    assert cli("sessions", "--json").data[-1]["plan_version"] in (0, compacted)


@pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("n\n", 1), ("\n", 1), ("\x04", 130)])
def test_undo_asks_at_a_terminal(cli, compacted, answer, code):
    """Only a yes counts; Ctrl-D is no answer."""
    ended, shown = at_a_terminal("undo", "demo", answer=answer)
    assert ended == code
    assert f"Restore version {compacted - 1} of session 'demo' (" in shown
    assert ("is in force again" in shown) is (code == 0)
    assert ("nothing was changed" in shown) is (code == 1)
    versions = len(cli("show", "demo", "--json").data["plans"])
    assert versions == compacted + (code == 0)


def test_undo_that_somebody_else_overtakes(cli, compacted, monkeypatch):
    """What was not written is not reported as done."""
    monkeypatch.setattr(SqlCompactionStore, "commit", _overtaken)
    done = cli("undo", "demo", "--yes")
    assert (done.code, done.out) == (2, "")
    assert f"version {compacted - 1} was not restored" in done.err


def _overtaken(*_: object) -> None:
    from compact.core.audit.store import VersionConflict

    raise VersionConflict("somebody was quicker")


# -- prune --------------------------------------------------------------------------------------------------------


@pytest.fixture
def aged(manager) -> None:
    """Sessions that were last used 40 days, two hours and no time ago."""
    for name, days_ago in (("old", 40.0), ("older", 50.0), ("two hours", 2 / 24), ("new", 0.0)):
        with manager(days_ago) as agent:
            agent.preflight(name, [user(f"hello {name}"), assistant("hi")])


def _names(cli: Any) -> set[str]:
    return {entry["session_id"] for entry in cli("sessions", "--json").data}


def test_prune(cli, aged):
    """What is older goes, the rest stays, and the numbers are said."""
    dry = cli("prune", "--older-than", "30d", "--dry-run")
    assert dry.code == 0
    assert dry.out.endswith("would delete 2 sessions with 4 messages\n")
    assert "  old\n" in dry.out
    assert len(_names(cli)) == 4
    assert cli("prune", "--older-than", "30d", "--yes").out == "deleted 2 sessions with 4 messages\n"
    assert _names(cli) == {"two hours", "new"}
    again = cli("prune", "--older-than", "30d")
    assert (again.code, again.out) == (0, "nothing to delete: every session was used in the last 30d\n")


def test_prune_deletes_one_session_that_is_named(cli, aged):
    """However new it is; what of it is archived stays, and its folder is named."""
    kept = Path(".compact/archive/new")
    kept.mkdir(parents=True)
    assert cli("prune", "--session", "new", "--dry-run").out.endswith("would delete 1 session with 2 messages\n")
    assert len(_names(cli)) == 4
    done = cli("prune", "--session", "new", "--yes")
    assert done.out == "deleted 1 session with 2 messages\n"
    assert done.err == f"note: archived transcripts are still in {kept}: delete them yourself\n"
    assert _names(cli) == {"old", "older", "two hours"}
    assert "did you mean 'older'?" in cli("prune", "--session", "oldr", "--yes").err


@pytest.mark.parametrize("options", [(), ("--older-than", "1d", "--session", "old")])
def test_prune_needs_one_of_the_two(cli, aged, options):
    done = cli("prune", *options, "--yes")
    assert (done.code, done.out) == (2, "")
    assert "either --older-than or --session" in done.err
    assert len(_names(cli)) == 4


def test_prune_as_data(cli, aged):
    """Which, and whether they are gone."""
    dry = cli("prune", "--older-than", "90m", "--dry-run", "--json").data
    assert (dry["deleted"], dry["dry_run"], dry["older_than_seconds"]) == (0, True, 5_400)
    assert [entry["session_id"] for entry in dry["sessions"]] == ["two hours", "old", "older"]
    done = cli("prune", "--older-than", "1h", "--yes", "--json").data
    assert (done["deleted"], len(done["sessions"])) == (3, 3)
    assert cli("prune", "--older-than", "1h", "--json").data["sessions"] == []
    assert _names(cli) == {"new"}


@pytest.mark.parametrize(
    "age", ["30", "d", "0d", "-1d", "1.5h", "3w", "30 d", "30D", "1d12h", "٣d", "1d\n", "9999999d", ""]
)
def test_prune_takes_no_other_ages(cli, aged, age):
    """A slip deletes nothing; the forms that are allowed are named."""
    done = cli("prune", f"--older-than={age}", "--yes")
    assert (done.code, done.out) == (2, "")
    assert done.err.endswith(
        "is not an age\nhint: use a whole number from 1 with its unit: 30d (days), 12h (hours), 90m (minutes)\n"
    )
    assert len(_names(cli)) == 4


def test_prune_asks(cli, aged):
    """As undo does: at a terminal, and not in a pipe."""
    assert cli("prune", "--older-than", "30d").err.endswith("hint: add --yes to skip the question\n")
    code, shown = at_a_terminal("prune", "--older-than", "30d", answer="n\n")
    assert code == 1
    assert "Delete 2 sessions with 4 messages, not used for 30d, for good?" in shown
    assert "nothing was deleted" in shown
    assert len(_names(cli)) == 4
    assert at_a_terminal("prune", "--older-than", "30d", answer="y\n")[0] == 0
    assert len(_names(cli)) == 2


@pytest.mark.parametrize("can_delete_many", [True, False])
def test_prune_spares_what_is_used_meanwhile(cli, aged, manager, monkeypatch, can_delete_many):
    """A session that comes back while the question stands is not deleted; nor from a store that deletes one by one."""
    if not can_delete_many:
        monkeypatch.setattr("compact.cli.sessions.prune.PruningStore", type("NoStore", (), {}))

    def answer(question: str, yes: bool) -> bool:
        with manager() as agent:
            agent.preflight("old", [user("hello old"), assistant("hi"), user("again")])
        return True

    monkeypatch.setattr("compact.cli.sessions.prune.confirm", answer)
    assert cli("prune", "--older-than", "30d").out == "deleted 1 session with 2 messages\n"
    assert "old" in _names(cli)
