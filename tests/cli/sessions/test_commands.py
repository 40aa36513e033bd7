"""The commands that look into a store: sessions, show, diff, why, recall."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
from contextlib import closing
from datetime import datetime
from pathlib import Path

import pytest
from typer.testing import CliRunner

from compact import CompactConfig, CompactManager
from compact.cli.main import app
from compact.core.plan.parts import PromptPart
from compact.testing import system, tool_exchange, tool_run, user

NASTY = "\x1b[31mred\x1b]0;title\x07\ttab\rback\u202eevil \ud83d"
LOOKING = [
    ("sessions",),
    ("show", "demo"),
    ("show", "demo", "--plan", "1"),
    ("show", "demo", "--prompt"),
    ("diff", "demo"),
    ("diff", "demo", "0", "4"),
    ("why", "demo", "result-3 "),
    ("why", "demo", "red"),
    ("recall", "demo", "evil"),
]
HISTORY = [
    system("be brief"),
    user("never touch the database", protected=True),
    *tool_run(40, words=120),
    *tool_exchange("last", NASTY, tool="shell", command="ls"),
]


def config_for(path: Path) -> CompactConfig:
    """A small window, so that a short session is compacted several times, each time up to what is kept then."""
    return CompactConfig(
        max_context_tokens=4000,
        summarizer={"prefetch": "never"},
        state={"url": f"sqlite:///{path}"},
        storage={"adapter": "none"},
        telemetry={"exporter": "none"},
    )


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a session that was compacted four times and undone once, and one that never was."""
    path = tmp_path_factory.mktemp("store") / "state.db"
    with CompactManager(config_for(path)) as manager:
        manager.preflight("short one", HISTORY[:9])
        for end in [*range(5, len(HISTORY), 6), len(HISTORY)]:
            manager.preflight("demo", HISTORY[:end])
        manager.observe_usage("demo", 2900)
        manager.manual_compact("demo", HISTORY, "before lunch")
        manager.undo("demo")
    return path


@pytest.fixture
def state(built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it, named by the environment."""
    path = Path(shutil.copy(built, tmp_path / "state.db"))
    monkeypatch.setenv("COMPACT_STATE__URL", f"sqlite:///{path}")
    monkeypatch.setenv("COMPACT_MAX_CONTEXT_TOKENS", "4000")
    return path


def dump(path: Path) -> str:
    """Everything that is in a database."""
    with closing(sqlite3.connect(path)) as connection:
        return "\n".join(connection.iterdump())


# -- all of them --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", LOOKING)
def test_looking_changes_nothing(cli, state, arguments):
    """Plain lines in a pipe, data with --json, and the store and the folder are as before."""
    before = dump(state)
    done = cli(*arguments)
    assert (done.code, done.err) == (0, "")
    assert done.out.strip()
    assert all(char.isprintable() or char == "\n" for char in done.out)
    assert cli(*arguments, "--json").data
    assert dump(state) == before
    assert {path.name for path in state.parent.iterdir()} <= {"state.db", "state.db-wal", "state.db-shm"}


@pytest.mark.parametrize("columns", [100, 140])
@pytest.mark.parametrize("arguments", LOOKING)
def test_on_a_terminal(terminal, state, arguments, columns):
    """Colours and nothing else: no other control characters, and tables keep to the width."""
    shown = terminal(*arguments, columns=columns)
    assert shown.code == 0
    plain = re.sub(r"\x1b\[[0-9;]*m", "", shown.out)
    assert all(char.isprintable() or char in "\r\n" for char in plain)
    assert all(len(row) <= columns for row in re.split(r"[\r\n]+", plain) if "─" in row or "   " in row)


@pytest.mark.parametrize("command", ["sessions", "show", "diff", "why", "recall", "undo", "export", "prune"])
def test_help(command):
    """Each explains itself in plain text; its first sentence fits into the list of commands."""
    shown = CliRunner().invoke(app, [command, "--help"])
    assert shown.exit_code == 0
    assert shown.output.isascii()
    assert "--store URL" in shown.output
    row = next(
        row for row in CliRunner().invoke(app, ["--help"]).output.splitlines() if row.startswith(f"  {command} ")
    )
    assert row.endswith(".")
    assert not row.endswith("...")


@pytest.mark.parametrize("command", ["show", "diff", "why", "recall", "undo", "export"])
def test_unknown_session(cli, state, command):
    """The nearest id is suggested, if one is near."""
    words = {"why": ["word"], "recall": ["word"], "undo": ["--yes"]}.get(command, [])
    done = cli(command, "dmo", *words)
    listed = "`compact sessions` lists them all"
    assert (done.code, done.out) == (2, "")
    assert done.err == f"error: nothing is known of session 'dmo'\nhint: did you mean 'demo'? {listed}\n"
    assert cli(command, "zzz", *words).err.endswith(f"\nhint: {listed}\n")


# -- sessions, show -----------------------------------------------------------------------------------------------


def test_sessions(cli, state):
    """The newest first, with what it came to; times are ISO, for programs with their offset."""
    found = cli("sessions", "--json").data
    assert [entry["session_id"] for entry in found] == ["demo", "short one"]
    assert (found[0]["messages"], found[0]["plan_version"]) == (len(HISTORY), 5)
    assert (found[1]["messages"], found[1]["model_calls"], found[1]["plan_version"]) == (9, 1, 0)
    assert datetime.fromisoformat(found[0]["updated_at"]).utcoffset() is not None
    head, first, second = cli("sessions").out.splitlines()
    assert head.split() == ["last", "used", "messages", "calls", "plan", "tokens", "session"]
    assert re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d +85 +\d+ +5 +[\d,]+  demo$", first)
    assert second.endswith("  short one")


def test_show(cli, state):
    """Status, versions, the last ten calls; the data has all of them."""
    data = cli("show", "demo", "--json").data
    assert data["status"]["plan_version"] == 5
    assert [plan["version"] for plan in data["plans"]] == [1, 2, 3, 4, 5]
    assert [plan["restored_from"] for plan in data["plans"]] == [None, None, None, None, 3]
    assert data["plans"][3]["reason"] == "manual: before lunch"
    assert len(data["calls"]) > 10
    assert [call["tokens_reported"] for call in data["calls"]][-2:] == [2900, None]
    out = cli("show", "demo").out
    assert re.search(rf"^window +{data['status']['used_tokens']:,} of 4,000 tokens", out, re.MULTILINE)
    parts = [line.split()[0] for line in out.split("\n\n")[0].splitlines()[3:-1]]
    assert parts == list(data["status"]["parts"]) == [part for part in PromptPart if part in parts]
    assert {"dialogue", "summary"} <= set(parts)
    assert re.search(r"\n +5  [-\d]+ [:\d]+ +\d+ +[\d,]+  from 3 +version 3 was restored\n", out)
    assert f"the last 10 of {len(data['calls'])} model calls; --json has all\n" in out
    assert re.search(r"\(2,900\) +\$0\.\d{4}\n", out)
    assert len(out.split("--json has all\n")[1].splitlines()) == 11


def test_show_what_was_never_compacted(cli, state):
    """One call, no version."""
    out = cli("show", "short one").out
    assert "plan versions\nnone: it was never compacted\n\n1 model call\n" in out


def test_show_one_plan(cli, state):
    """Its records with their reasons; what is not there is an error with the range."""
    out = cli("show", "demo", "--plan", 1).out
    assert re.search(r"\nm\d+ +clear +clear +\d+ +\d+  old read_file result\n", out)
    assert "plan versions" not in out
    assert re.search(r"\nm4 … m\d+ \(\d+\)  summarize", cli("show", "demo", "--plan", 4).out)
    assert cli("show", "demo", "--plan", 0).out == "version 0: the history without any compaction\n"
    assert cli("show", "demo", "--plan", 2, "--json").data["plan"]["version"] == 2
    done = cli("show", "demo", "--plan", 9)
    assert done.err == "error: session 'demo' has no plan version 9\nhint: its versions are 0 to 5\n"
    assert "there is only version 0" in cli("show", "short one", "--plan", 1).err


def test_show_the_prompt(cli, state):
    """What the model would see: a summary for many, the rest as it is, control characters not at all."""
    data = cli("show", "demo", "--prompt", "--json").data["prompt"]
    assert data[0]["content"] == "be brief"
    assert sum(len(place["ids"]) for place in data) == len(HISTORY)
    assert data[-1]["content"] == NASTY
    out = cli("show", "demo", "--prompt").out
    assert re.search(r"\n3  assistant, \d+ tokens, stands for \d+ messages\n   <COMPACT-SUMMARY", out)
    assert re.search(r"\n   and \d+ more lines\n", out)
    assert 'read_file({"path": "src/file_40.py"})' in out
    assert " [31mred" in out


# -- diff, why, recall --------------------------------------------------------------------------------------------


def test_diff(cli, state):
    """By default the last step, here the undo; the rows and what stayed come to the whole."""
    data = cli("diff", "demo", "--json").data
    assert (data["from"]["version"], data["to"]["version"]) == (4, 5)
    rows = {(row["before"], row["after"], row["by"]) for row in data["changes"]}
    assert ("summarize", "include", "undo") in rows
    assert {by for _, _, by in rows} <= {"undo", "clear"}
    out = cli("diff", "demo", 1, 2, "--limit", 2).out
    assert re.search(r"\nm\d+ +assistant +include → summarize +summarize +\d+ messages of the least", out)
    assert re.search(r"\nm\d+ +tool +clear → summarize +summarize +\d+ messages", out)
    more = re.search(r"and (\d+) more; --limit (\d+) lists them all\n", out)
    assert more
    assert "lists them all" not in cli("diff", "demo", 1, 2, "--limit", more[2]).out
    totals = [int(row.split()[-1]) for row in out.split("messages\n")[-1].splitlines()[:-1]]
    assert sum(totals) == len(HISTORY)
    assert out.endswith("the summary changed too: version 1 → version 2\n")


def test_diff_of_chosen_versions(cli, state):
    """One version is compared with the current one; backwards works; the same has no changes."""
    assert cli("diff", "demo", 0, "--json").data["to"]["version"] == 5
    back = cli("diff", "demo", 2, 0, "--json").data["changes"]
    assert {(row["after"], row["by"], row["why"]) for row in back} == {
        ("include", "", "version 0 includes it unchanged")
    }
    assert cli("diff", "demo", 3, 5, "--json").data["changes"] == []
    assert "what changed" not in cli("diff", "demo", 3, 5).out
    assert "no plan version 77" in cli("diff", "demo", 3, 77).err
    assert cli("diff", "short one").out == "nothing to compare: session 'short one' was never compacted\n"


def test_why(cli, state):
    """Whether the prompt has it, and where; then where each message is, since when, by whom; which calls lacked it."""
    data = cli("why", "demo", "RESULT-3 ", "--json").data
    (sighting,) = data["sightings"]
    assert (sighting["message_id"], sighting["is_visible"], sighting["strategy"]) == ("m9", False, "summarize")
    assert (data["is_in_prompt"], data["count"], data["newest_call_count"]) == (False, 0, 0)
    assert datetime.fromisoformat(sighting["since_at"])
    out = cli("why", "demo", "result-3 ").out
    (missing,) = data["calls_without"]
    without = f"calls {missing['first']}–{missing['last']}: {missing['calls']} of {data['calls']}"
    assert out.startswith(f"not in the newest prompt\nlog      1 message contains it\nwithout  {without}\n")
    assert "\n\nm9, tool, entry 9\ntext     result-3 word" in out
    assert "\nnow      summarised; the model does not see the words\n" in out
    assert re.search(r"\nsince    \d{4}-\d\d-\d\d \d\d:\d\d:\d\d, plan version 1\n", out)
    assert re.search(r"\nbecause  summarize: \d+ messages", out)
    here = cli("why", "demo", "never touch").out
    assert here.startswith("in the newest prompt, 1 time\nin       m2\n")
    assert "\nwithout  no call went out without it\n" in here
    assert here.endswith("now      in the prompt; the model sees the words\n")


def test_why_says_how_much_it_shows(cli, state):
    """The first messages, and how many there are; words that are there by another way are not denied."""
    out = cli("why", "demo", "result-3", "--limit", 2).out
    total = len(cli("why", "demo", "result-3", "--json").data["sightings"])
    assert out.endswith(f"\n\n2 of {total} messages shown; --limit shows more\n")
    assert out.count("\nnow ") == 2
    assert "; the model sees the words, but not through this message\n" in out


def test_never_there(cli, state):
    """That is an answer, too, with an exit code for scripts; an empty phrase is none."""
    done = cli("why", "demo", "xyzzy")
    assert (done.code, done.out) == (1, "not found: no message and no prompt of session 'demo' contains 'xyzzy'\n")
    assert json.loads(cli("why", "demo", "xyzzy", "--json").out)["sightings"] == []
    assert cli("why", "demo", " ").err.startswith("error: the phrase is empty\nhint: ")


def test_recall(cli, state):
    """By id and by words, within the tokens; what is cut says so; nothing found is exit code 1."""
    (entry,) = cli("recall", "demo", "m9", "--json").data["found"]
    assert (entry["seq"], entry["role"], entry["is_whole"]) == (9, "tool", True)
    assert cli("recall", "demo", "m9").out.startswith("m9, tool, entry 9\nresult-3 word")
    assert "entry 9, cut to fit --max-tokens\n" in cli("recall", "demo", "m9", "--max-tokens", 20).out
    called = cli("recall", "demo", "what is in file_7.py?").out
    assert called.startswith('m16, assistant, entry 16\nread_file({"path": "src/file_7.py"})\n\n')
    assert "\nm17, tool, entry 17, with m16\n" in called
    assert cli("recall", "demo", "word", "--max-tokens", 300).out.count("\n\nm") >= 1
    done = cli("recall", "demo", "xyzzy")
    assert (done.code, done.out) == (1, "nothing in this session's log matches 'xyzzy'\n")
    assert cli("recall", "demo", "xyzzy", "--json").code == 1
