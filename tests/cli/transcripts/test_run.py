"""`compact run`: what is printed is a transcript, it fits, and people are told what happened."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import pytest

from compact import CompactConfig, CompactManager, estimate_messages_tokens
from compact.cli.transcripts.files import with_meta
from compact.testing import user

ROOT = Path(__file__).parents[3]
DATA = Path(os.environ.get("COMPACT_DATA", ROOT.parent / "shared/data"))
PI_MONO = DATA / "pi-mono.jsonl.gz"


def test_prints_a_smaller_transcript(cli, transcript, history):
    """stdout is the compacted list and nothing else; the account of it is on stderr."""
    done = cli("run", transcript, "--now")
    assert done.code == 0
    assert estimate_messages_tokens(done.data) < estimate_messages_tokens(history)
    assert history[0] in done.data
    assert history[1] in done.data
    assert done.data[-1] == history[-1]
    before, after = estimate_messages_tokens(history), estimate_messages_tokens(done.data)
    assert f"{len(history)} → {len(done.data)} messages, {before:,} → {after:,} tokens" in done.err
    assert "summarize" in done.err


def test_target_is_kept(cli, transcript):
    """The whole result fits the target, counted again."""
    done = cli("run", transcript, "--target-tokens", 1500)
    assert 0 < estimate_messages_tokens(done.data) <= 1500


def test_json_says_it_all(cli, transcript, history):
    """One object with the messages, the tokens, and the plan."""
    done = cli("run", transcript, "--json", "--note", "before lunch")
    assert set(done.data) == {"messages", "tokens_before", "tokens_after", "reason", "plan"}
    assert done.data["tokens_before"] == estimate_messages_tokens(history)
    assert done.data["tokens_after"] == estimate_messages_tokens(done.data["messages"])
    assert done.data["plan"]["version"] == 1
    assert "before lunch" in done.data["plan"]["reason"]


@pytest.mark.parametrize("name", ["out.json", "out.jsonl", "out.jsonl.gz"])
def test_output_goes_to_a_file(cli, transcript, tmp_path, name):
    """With --output stdout stays empty, and the file can be compacted again."""
    done = cli("run", transcript, "--now", "--output", tmp_path / name)
    assert (done.code, done.out) == (0, "")
    again = cli("run", tmp_path / name)
    assert again.code == 0
    assert again.data


def test_nothing_to_do(cli, tmp_path):
    """A short transcript comes back as it is."""
    path = tmp_path / "short.json"
    path.write_text(json.dumps([user("hello")]))
    done = cli("run", path, "--now")
    assert done.data == [user("hello")]
    assert "nothing to compact: 1 message" in done.err


def test_below_the_trigger_it_comes_back_as_it_is(cli, transcript, history):
    """What an agent would send: the same messages; the line says how to compact it all the same."""
    done = cli("run", transcript)
    assert done.data == history
    assert "below the trigger of 108,800 tokens: nothing to do; --now compacts anyway" in done.err


def test_above_the_trigger_it_is_what_preflight_returns(cli, transcript, history):
    """Byte for byte."""
    manager = CompactManager(CompactConfig(max_context_tokens=8000, state={"url": "memory:"}))
    expected = with_meta(manager.preflight("s", history), history)
    assert cli("run", transcript, "--window", 8000).data == expected != history


def test_a_focus_is_kept_first(cli, transcript):
    """It means --now, and the plan has it."""
    done = cli("run", transcript, "--focus", "the database", "--json")
    assert done.data["plan"]["reason"] == "compacted by hand, focus: the database"


def test_no_model_is_asked_and_that_is_said(cli, transcript, monkeypatch):
    """Settings that name a model for summaries are not followed here."""
    monkeypatch.setenv("COMPACT_SUMMARIZER__MODEL", "gpt-4o-mini")
    assert "summaries are written by code here" in cli("run", transcript, "--now").err


def test_reads_a_pipe(process, history):
    """A transcript on standard input, packed."""
    lines = "".join(json.dumps(message) + "\n" for message in history)
    done = process("run", "-", "--target-tokens", 2000, stdin=gzip.compress(lines.encode()))
    assert done.code == 0
    assert estimate_messages_tokens(done.data) <= 2000


def test_text_beyond_ascii(cli, tmp_path):
    """Letters stay letters; half a surrogate pair is escaped instead of ending the command."""
    path = tmp_path / "letters.json"
    path.write_text(json.dumps([user("naïve 中文 🧠"), user("half: \ud83d")]))
    done = cli("run", path)
    assert "naïve 中文 🧠" in done.out
    assert done.data[1]["content"] == "half: \ud83d"


def test_settings_reach_the_manager(cli, transcript, tmp_path):
    """A configuration file is used, and an unknown model is said to be one."""
    config = tmp_path / "quiet.yaml"
    config.write_text("strategies:\n  enabled: [clear]\n")
    assert "summarize" in cli("run", transcript, "--now").err
    assert "summarize" not in cli("run", transcript, "--now", "--config", config).err
    assert "is not known" in cli("run", transcript, "--model", "made-up-1").err


def test_found_config_is_used(cli, transcript):
    """./compact.yaml counts without being named."""
    Path("compact.yaml").write_text("strategies:\n  enabled: [clear]\n")
    done = cli("run", transcript, "--now")
    assert "summarize" not in done.err
    assert "settings from compact.yaml; an agent reads them with CompactConfig.load('compact.yaml')" in done.err
    assert "settings from" not in cli("run", transcript, "--now", "--config", "compact.yaml").err


def test_broken_history_is_said_to_be_repaired(cli, tmp_path, history):
    """A call without its result is legal nowhere: the result is, and a note says so."""
    path = tmp_path / "cut.json"
    path.write_text(json.dumps(history[:-21]))
    done = cli("run", path)
    assert done.code == 0
    assert "note: a provider would reject this history; 1 repair" in done.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--target-tokens", "3"], "the smallest prompt takes"),
        (["--window", "10"], "max_context_tokens must be at least 256"),
        (["--config", "gone.yaml"], "cannot read gone.yaml"),
        (["--output", "gone/out.json"], "cannot write gone/out.json"),
        (["--index", "4"], "there is no transcript 4"),
    ],
)
def test_errors(cli, transcript, arguments, said):
    """What cannot be done is one line and a hint."""
    done = cli("run", transcript, *arguments)
    assert done.code == 2
    error, hint = done.err.splitlines()
    assert error.startswith("error: ")
    assert said in error
    assert hint.startswith("hint: ")


def test_on_a_terminal(terminal, transcript):
    """The spinner goes to the screen, and away again, and the transcript comes after it."""
    shown = terminal("run", transcript)
    assert shown.code == 0
    assert "tokens" in shown.out


@pytest.mark.skipif(not PI_MONO.is_file(), reason=f"no transcripts in {PI_MONO.parent}; set COMPACT_DATA")
def test_real_transcript(process):
    """A real session of 348k tokens fits into 50,000."""
    done = process("run", PI_MONO, "--target-tokens", 50_000, "--json")
    assert done.code == 0, done.err
    assert done.data["tokens_before"] > 300_000
    recorded = CompactConfig(model="claude-opus-4-5")
    assert estimate_messages_tokens(done.data["messages"], recorded) == done.data["tokens_after"] <= 50_000


@pytest.mark.parametrize("key", ["system", "instructions"])
def test_a_request_comes_back_whole(cli, tmp_path, key):
    """Whatever goes beside the messages is counted, and stays in the request."""
    messages = {"system": "messages", "instructions": "input"}[key]
    roles = ("user", "assistant")
    history = [{"role": role, "content": f"{role} {n} " + "word " * 200} for n in range(40) for role in roles]
    request = {"model": "m", key: "Be careful. " * 300, messages: history, "tools": []}
    path = tmp_path / "request.json"
    path.write_text(json.dumps(request))
    done = cli("run", path, "--window", 16000)
    assert done.code == 0, done.err
    compacted = json.loads(done.out)
    assert {name: value for name, value in compacted.items() if name != messages} == {
        name: value for name, value in request.items() if name != messages
    }
    assert 0 < len(json.dumps(compacted[messages])) < len(json.dumps(history)) / 2
    inspected = json.loads(cli("inspect", path, "--window", 16000, "--json").out)
    assert any(part["part"] == "system" and part["tokens"] > 600 for part in inspected["parts"])
