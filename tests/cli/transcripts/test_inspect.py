"""`compact inspect`: what a transcript is made of."""

from __future__ import annotations

import json
import re

from compact import estimate_messages_tokens
from compact.testing import tool_exchange, user


def test_data(cli, transcript, history):
    """Every message is in one part, has one role, and is kept by one rule or none; the tokens add up."""
    data = cli("inspect", transcript, "--json").data
    total = estimate_messages_tokens(history)
    assert data["messages"] == len(history)
    assert data["max_context_tokens"] == 128_000
    assert [row["part"] for row in data["parts"]] == ["system", "pinned", "dialogue", "tool_results", "overhead"]
    assert sum(row["messages"] for row in data["parts"]) == len(history)
    assert sum(row["tokens"] for row in data["parts"]) == data["used_tokens"]
    assert [(row["kept_by"], row["count"]) for row in data["kept"]] == [
        ("pinned", None),
        ("recent turns", 6),
        ("recent tool calls", 4),
        ("not kept", None),
    ]
    for table, size in (("parts", data["used_tokens"]), ("roles", total)):
        assert [row["share"] for row in data[table]] == [round(row["tokens"] / size, 4) for row in data[table]]
    for table in ("kept", "roles"):
        assert sum(row["messages"] for row in data[table]) == len(history)
        assert sum(row["tokens"] for row in data[table]) == total
    assert data["kept"][0]["messages"] == 2
    assert data["kept"][2]["messages"] == 8
    assert [(row["tool"], row["calls"]) for row in data["tools"]] == [("read_file", 30)]
    assert len(data["biggest"]) == 10
    assert (data["biggest"][0]["role"], data["biggest"][0]["tool"]) == ("tool", "read_file")
    assert data["usage_pct"] == round((total + 3) / 128_000, 4)


def test_the_recorded_model_is_inspected_and_planned_for(cli, tmp_path):
    """Its window and its prices, unless a model is set."""
    request = {"model": "claude-sonnet-4-5", "system": "Be kind.", "messages": [user("hello")]}
    (tmp_path / "request.json").write_text(json.dumps(request))
    done = cli("inspect", "request.json", "--json")
    assert (done.data["model"], done.data["max_context_tokens"]) == ("claude-sonnet-4-5", 200_000)
    assert done.err == "for claude-sonnet-4-5, as recorded; --model names another\n"
    assert cli("inspect", "request.json", "--json", "--model", "gpt-4o").data["max_context_tokens"] == 128_000
    for command in ("plan", "run"):
        assert "for claude-sonnet-4-5, as recorded" in cli(command, "request.json", "--now").err


def test_text(cli, transcript):
    """The same as aligned columns."""
    done = cli("inspect", transcript, "--window", 20_000)
    assert done.code == 0
    assert "of 20,000 tokens" in done.out
    for title in ("tokens by part", "what a compaction keeps", "tokens by role", "tokens by tool", "biggest messages"):
        assert f"\n\n{title}\n" in done.out
    assert "result-" in done.out
    assert re.search(r"^dialogue +\d+ +[\d,]+ +\d+\.\d%$", done.out, re.MULTILINE)
    assert re.search(r"^recent turns \(6\) +\d+ ", done.out, re.MULTILINE)
    assert re.search(r"^ *\d+ +m\d+ +tool read_file +[\d,]+ +result-", done.out, re.MULTILINE)


def test_escape_codes_stay_out(cli, tmp_path):
    """What a tool printed cannot steer the terminal of who inspects it; a bare call shows its arguments."""
    path = tmp_path / "odd.json"
    nasty = "\x1b[31mred\x1b]0;title\x07 \ud83d"
    path.write_text(json.dumps([user("go"), *tool_exchange("c", nasty, tool="shell", command="ls -la /srv")]))
    out = cli("inspect", path).out
    assert "\x1b" not in out
    assert "\x07" not in out
    assert "ls -la /srv" in out


def test_on_a_terminal(terminal, transcript):
    """Drawn without an error."""
    shown = terminal("inspect", transcript)
    assert shown.code == 0
    assert "biggest messages" in shown.out
