"""`compact view` as people start it, and the demo's last line."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from cli.conftest import COMMAND
from compact import CompactConfig, CompactManager
from compact.cli.demo import demo
from compact.cli.demo.replay import load_session
from compact.cli.settings import in_memory, load_config
from compact.core.audit.cost import dollars
from compact.extras import install_line
from compact.testing import tool_run, user

PATIENCE_SECONDS = 60
QUIET: Any = {"storage": {"adapter": "none"}, "telemetry": {"exporter": "none"}, "tokenizer": "simple"}


@pytest.fixture
def store(tmp_path: Path) -> str:
    url = f"sqlite:///{tmp_path / 'state.db'}"
    with CompactManager(CompactConfig(max_context_tokens=4_000, state={"url": url}, **QUIET)) as manager:
        manager.preflight("a/b c", [user("never touch the database"), *tool_run(20, words=120)])
    return url


@contextmanager
def started(*words: str, **environment: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """The address that the command tells, and the command."""
    command = [str(COMMAND), "view", "--no-open", *words]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={"PATH": "/usr/bin:/bin", "PYTHONWARNINGS": "error", **environment},
    ) as process:
        try:
            assert process.stdout
            line = process.stdout.readline()
            found = re.fullmatch(r"viewer at (http://\S+)\n", line)
            assert found, line + (process.stderr.read() if process.stderr and not line else "")
            yield found[1], process
        finally:
            process.kill()


@contextmanager
def on_a_terminal(*words: str, **environment: str) -> Iterator[str]:
    """The address that the command tells a person."""
    ours, theirs = os.openpty()
    command = [str(COMMAND), "view", "--no-open", *words]
    surroundings = {"PATH": "/usr/bin:/bin", "PYTHONWARNINGS": "error", "TERM": "dumb", **environment}
    with (
        subprocess.Popen(command, stdout=theirs, stderr=subprocess.DEVNULL, env=surroundings) as process,
        os.fdopen(ours, encoding="utf-8") as screen,
    ):
        os.close(theirs)
        try:
            found = re.fullmatch(r"viewer at (http://\S+)", screen.readline().strip())
            assert found
            yield found[1]
        finally:
            process.kill()


def test_it_tells_its_address_and_answers_there(store: str) -> None:
    with started("--store", store, "--port", "0", "--session", "a/b c") as (address, _):
        url, _, fragment = address.partition("#")
        assert fragment == "/s/a%2Fb%20c"
        page = httpx.get(url)
        assert page.headers["content-type"] == "text/html; charset=utf-8"
        assert httpx.get(f"{url}api/sessions/a%2Fb%20c").json()["plan_version"] > 0


def test_it_shows_a_log_of_an_agent_and_keeps_nothing_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    log = Path(__file__).parents[2] / "agent_logs" / "samples" / "pi.jsonl"
    with started(str(log), "--port", "0") as (address, _):
        url, _, fragment = address.partition("#")
        assert fragment == "/s/pi-0b1c"
        assert httpx.get(f"{url}api/sessions/pi-0b1c").json()["plan_version"] == 0
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_at_once_even_while_somebody_looks(store: str, how: signal.Signals) -> None:
    with started("--store", store, "--port", "0") as (address, process):
        with httpx.stream("GET", f"{address}api/live", timeout=PATIENCE_SECONDS) as stream:
            lines = stream.iter_lines()
            assert next(lines).startswith("data: ")
            process.send_signal(how)
            for _ in lines:
                pass
        process.wait(PATIENCE_SECONDS)
        errors = process.stderr.read() if process.stderr else ""
        assert "Traceback" not in errors
        assert process.returncode == (0 if how is signal.SIGINT else -signal.SIGTERM)


def test_a_token_is_asked_for_and_told_with_the_address_on_a_terminal(store: str) -> None:
    token = "a-token-of-many-characters"
    with on_a_terminal("--store", store, "--port", "0", COMPACT_VIEW_TOKEN=token) as address:
        assert address.endswith(f"/?token={token}")
        base = address.split("?")[0]
        assert httpx.get(f"{base}api/meta").status_code == 401
        with httpx.Client(follow_redirects=True) as browser:
            assert browser.get(address).status_code == 200
            assert browser.get(f"{base}api/meta").status_code == 200


def test_a_token_is_not_written_to_where_it_is_kept(store: str) -> None:
    """A pipe may end in a log that others read."""
    token = "a-token-of-many-characters"
    with started("--store", store, "--port", "0", COMPACT_VIEW_TOKEN=token) as (address, process):
        assert re.fullmatch(r"http://127.0.0.1:\d+/", address)
        assert httpx.get(f"{address}api/meta").status_code == 401
        assert httpx.get(f"{address}api/meta", headers={"Authorization": f"Bearer {token}"}).status_code == 200
        process.terminate()
        rest = "".join(process.communicate(timeout=PATIENCE_SECONDS))
        assert "only shown on a terminal" in rest
        assert token not in rest


def test_every_other_address_needs_a_token(cli: Callable[..., Any], store: str) -> None:
    done = cli("view", "--store", store, "--host", "0.0.0.0", "--port", "0", "--no-open")
    assert done.code == 2
    assert "0.0.0.0 is not loopback" in done.err
    assert "--token" in done.err


def test_a_port_that_is_taken_is_told(cli: Callable[..., Any], store: str) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        done = cli("view", "--store", store, "--port", other.getsockname()[1], "--no-open")
    assert done.code == 2
    assert "cannot listen on 127.0.0.1" in done.err
    assert "--port 0" in done.err


def test_a_session_that_never_was_is_told(cli: Callable[..., Any], store: str) -> None:
    done = cli("view", "--store", store, "--session", "a/b", "--no-open")
    assert done.code == 2
    assert "did you mean 'a/b c'?" in done.err


def test_a_store_that_is_not_there_is_not_created(cli: Callable[..., Any], tmp_path: Path) -> None:
    done = cli("view", "--store", f"sqlite:///{tmp_path / 'none.db'}", "--no-open")
    assert done.code == 2
    assert "there is no store at" in done.err
    assert not (tmp_path / "none.db").exists()


def test_whoever_is_there_before_the_agents_sees_them_come(tmp_path: Path) -> None:
    """The store that the settings name is made, empty, and fills while the page is open."""
    url = f"sqlite:///{tmp_path / 'new.db'}"
    with started("--port", "0", COMPACT_STATE__URL=url) as (address, _):
        assert httpx.get(f"{address}api/sessions").json()["total"] == 0
        with httpx.stream("GET", f"{address}api/live", timeout=PATIENCE_SECONDS) as stream:
            frames = (json.loads(line[6:]) for line in stream.iter_lines() if line.startswith("data: "))
            assert next(frames)["type"] == "hello"
            with CompactManager(CompactConfig(state={"url": url}, **QUIET)) as manager:
                manager.preflight("late", [user("hello")])
            told = next(frames)  # a sign of life is no frame: without news, this would wait in vain
            assert (told["type"], told["id"], told["calls"]) == ("session", "late", 1)
        assert httpx.get(f"{address}api/sessions").json()["total"] == 1


def test_a_missing_package_is_told(cli: Callable[..., Any], store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "uvicorn", None)
    done = cli("view", "--store", store, "--no-open")
    assert done.code == 2
    assert install_line("viewer") in done.err


def test_the_demo_ends_with_a_command_that_shows_it(process: Callable[..., Any], tmp_path: Path) -> None:
    """What it names works on what it leaves behind, which is this demo and no earlier one, and has the same figures."""
    (tmp_path / ".compact").mkdir()
    with CompactManager(CompactConfig(state={"url": "sqlite:///.compact/demo.db"}, **QUIET)) as manager:
        manager.preflight("demo", [user("an earlier demo")])
    done = process("demo")
    *_, named = done.out.splitlines()
    assert named.startswith("see it       ")
    program, *words = shlex.split(named.removeprefix("see it"))
    assert (Path(program).name, words[0]) == ("compact", "view")
    with started(*words[1:], "--port", "0") as (address, _), httpx.Client(timeout=PATIENCE_SECONDS) as client:
        base = address.split("#")[0]
        session = client.get(f"{base}api/sessions/demo").json()
        (trace,) = client.get(f"{base}api/traces", params={"session": "demo"}).json()["traces"]
    assert session["calls_total"] == 341
    assert session["limits"]["window"] == 64_000
    assert trace["sessions"] == ["demo"]
    assert trace["spans"] > 4 * 341
    assert trace["errors"] > 0
    (failed,) = (plan for plan in session["plans"] if plan["failures"])
    (restored,) = (plan for plan in session["plans"] if plan["restored_from"] is not None)
    assert restored["version"] == failed["version"] + 1
    assert f"failed       the summary of compaction {failed['version']}: gpt-4o-mini: " in done.out
    assert f"\ninstead      {failed['failures'][0]['instead']}\n" in done.out
    sums = r"^cost +(\S+) for gpt-4o, of which (\S+) for summaries; (\S+) without .+: saved (\S+)$"
    printed = re.search(sums, done.out, re.M)
    names = ("usd", "usd_summaries", "usd_uncompacted", "usd_saved")
    assert printed
    assert printed.groups() == tuple(dollars(session["cost"][name]) for name in names)
    assert all(session["cost"][name] > 0 for name in names)


def test_a_demo_that_cannot_leave_anything_behind_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / ".compact").write_text("in the way")
    replay, place = demo._open_replay(in_memory(load_config()), load_session()[:20])
    assert place == ""
    assert "the session is not stored" in capsys.readouterr().err
    assert len(list(replay)) > 2
