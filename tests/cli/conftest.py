"""Runs the command in this process, as a process of its own, and on a pseudo-terminal."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import struct
import subprocess
import sys
import termios
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from compact.cli.main import main
from compact.testing import dialogue, system, tool_run, user

COMMAND = Path(sys.executable).parent / "compact"


@dataclass(frozen=True)
class Outcome:
    """What a run of the command came to."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        return json.loads(self.out)


@pytest.fixture(autouse=True)
def _clean_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test has a directory of its own and no settings from outside."""
    monkeypatch.chdir(tmp_path)
    for name in list(os.environ):
        if name.startswith("COMPACT_") or name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE"):
            monkeypatch.delenv(name)


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    """Run `main` here: fast, and seen by coverage."""

    def call(*arguments: object) -> Outcome:
        code = main([str(word) for word in arguments])
        captured = capsys.readouterr()
        return Outcome(code, captured.out, captured.err)

    return call


@pytest.fixture
def process() -> Callable[..., Outcome]:
    """Run the installed command as its users do, with its output in a pipe."""

    def call(*arguments: object, stdin: bytes = b"") -> Outcome:
        words = [str(COMMAND), *map(str, arguments)]
        done = subprocess.run(words, input=stdin, capture_output=True, timeout=300, check=False)
        return Outcome(done.returncode, done.stdout.decode(), done.stderr.decode())

    return call


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Outcome]:
    """Run `main` here, with stdout and stderr on a pseudo-terminal of a given width."""

    def call(*arguments: object, columns: int = 80, rows: int = 24) -> Outcome:
        monkeypatch.setenv("TERM", "xterm-256color")
        monkeypatch.setenv("COLUMNS", str(columns))
        monkeypatch.setenv("LINES", str(rows))
        parent, child = pty.openpty()
        fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        chunks: list[bytes] = []
        reader = threading.Thread(target=_drain, args=(parent, chunks))
        reader.start()
        with monkeypatch.context() as patch, open(child, "w", encoding="utf-8") as screen:
            patch.setattr(sys, "stdout", screen)
            patch.setattr(sys, "stderr", screen)
            code = main([str(word) for word in arguments])
        reader.join(timeout=10)
        os.close(parent)
        return Outcome(code, b"".join(chunks).decode(), "")

    return call


def _drain(parent: int, chunks: list[bytes]) -> None:
    while True:
        try:
            chunk = os.read(parent, 65536)
        except OSError:  # Linux says so when the other side is closed
            return
        if not chunk:
            return
        chunks.append(chunk)


@pytest.fixture
def history() -> list[dict[str, Any]]:
    """A short session with every layer in it: pinned, dialogue, tool calls."""
    return [
        system("be brief"),
        user("never touch the database", protected=True),
        *tool_run(30, words=400),
        *dialogue(10, words=30),
    ]


@pytest.fixture
def transcript(tmp_path: Path, history: Sequence[dict[str, Any]]) -> Path:
    """The session as a JSON file."""
    path = tmp_path / "session.json"
    path.write_text(json.dumps(history))
    return path
