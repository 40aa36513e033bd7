"""`compact export`: the whole log as it was sent, without secrets, in the form that was asked for."""

from __future__ import annotations

import gzip
import json
import re
import stat
from collections.abc import Sequence
from pathlib import Path

import pytest

from compact import CompactConfig, CompactManager, Message
from compact.testing import assistant, system, tool_run, user

SECRET = "sk-proj-" + "abcDEF123456ghiJKL789" * 2
HISTORY = [system("be brief"), *tool_run(40, words=120)]


@pytest.fixture(autouse=True)
def _store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The store that the commands of a test work on."""
    monkeypatch.setenv("COMPACT_STATE__URL", f"sqlite:///{tmp_path}/state.db")


def keep(history: Sequence[object]) -> None:
    """Put a history into the store, in a window that is too small for it."""
    config = CompactConfig(max_context_tokens=4000, storage={"adapter": "none"}, telemetry={"exporter": "none"})
    with CompactManager(config) as manager:
        manager.preflight("demo", history)


@pytest.fixture
def compacted() -> None:
    """A session of which only a part is in the prompt."""
    keep(HISTORY)


def test_export_is_what_was_sent(cli, process, compacted):
    """The whole log, however much of it is compacted."""
    assert cli("export", "demo").data == HISTORY
    assert process("export", "demo").data == HISTORY
    lines = cli("export", "demo", "--format", "jsonl").out.splitlines()
    assert [json.loads(row) for row in lines] == HISTORY


@pytest.mark.parametrize(
    "command",
    [("export", "demo"), ("export", "demo", "--raw", "--format", "jsonl"), ("recall", "demo", "harbour", "--json")],
)
def test_json_gives_a_terminal_no_orders(cli, command):
    """What a page or a tool wrote is data for programs, but is shown on a terminal, too: C1 controls, DEL, and bidi."""
    hostile = "the harbour\x1b]0;title\x07\x9b2J\x7f\x85\u202emoc.live\u2066"
    keep([user("go"), assistant(hostile), user("on")])
    shown = cli(*command).out
    assert "harbour" in shown
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", shown)


def test_what_is_escaped_is_the_same_when_it_is_read(cli):
    keep([user("a\x9bb\x7fc\u202ed"), assistant("ok"), user("on")])
    assert cli("export", "demo").data[0]["content"] == "a\x9bb\x7fc\u202ed"


def test_export_is_redacted(cli):
    """Unless it is asked for raw, with a warning that stays out of the data."""
    history = [user(f"my key is {SECRET}, half a pair: \ud83d"), assistant("naïve 中文")]
    keep(history)
    clean = cli("export", "demo")
    assert (clean.code, clean.err) == (0, "")
    assert SECRET not in clean.out
    assert "<REDACTED>" in clean.out
    assert "中文" in clean.out or "\\u4e2d" in clean.out
    raw = cli("export", "demo", "--raw")
    assert raw.data == history
    assert raw.err == "warning: secrets are not redacted (--raw)\n"


def test_export_with_redaction_switched_off(cli, compacted, monkeypatch):
    """The settings may say so; that is no reason to be silent."""
    monkeypatch.setenv("COMPACT_REDACTION__ENABLED", "false")
    assert cli("export", "demo").err == "warning: secrets are not redacted (redaction.enabled is false)\n"


def test_export_of_messages_of_ours(cli):
    """Without the ids that the log gave them."""
    keep([Message("user", "hello"), Message("assistant", "hi", name="bot")])
    assert cli("export", "demo").data == [
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": "hi", "name": "bot"},
    ]


@pytest.mark.parametrize(
    ("name", "options", "is_list"),
    [
        ("out.json", [], True),
        ("out.jsonl", [], False),
        ("out.jsonl.gz", [], False),
        ("out.txt", ["--format", "jsonl"], False),
        ("out.jsonl", ["--format", "json"], True),
    ],
)
def test_export_to_a_file(cli, compacted, name, options, is_list):
    """The option decides, then the name; only its owner can read it."""
    done = cli("export", "demo", "--output", name, *options)
    assert (done.code, done.out) == (0, "")
    assert done.err == f"{len(HISTORY)} messages written to {name}\n"
    data = Path(name).read_bytes()
    text = (gzip.decompress(data) if name.endswith(".gz") else data).decode()
    assert (json.loads(text) if is_list else [json.loads(row) for row in text.splitlines()]) == HISTORY
    assert stat.S_IMODE(Path(name).stat().st_mode) == 0o600


def test_export_to_nowhere(cli, compacted):
    """What cannot be written, or in no such form, is two lines."""
    done = cli("export", "demo", "--output", "gone/out.json")
    assert done.err.startswith("error: cannot write gone/out.json: No such file or directory\nhint: ")
    assert "'--format': 'xml' is not one of 'json', 'jsonl'" in cli("export", "demo", "--format", "xml").err
