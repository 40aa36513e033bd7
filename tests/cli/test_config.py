"""`compact config`: each value with its source, and errors that say where to look."""

from __future__ import annotations

import re
from pathlib import Path

from compact.config import CompactConfig
from compact.config_sources import environment_names


def test_every_field_has_a_source(cli, monkeypatch):
    """Variables overrule the file, the file overrules the defaults; nothing is left out."""
    path = Path("mine.yaml")
    path.write_text(
        "model: gpt-4\npolicy:\n  trigger_pct: 0.8\n  keep_recent_turns: 3\n"
        "strategies:\n  clear:\n    tools:\n      bash:\n        keep_last: 2\n"
    )
    monkeypatch.setenv("COMPACT_KEEP_RECENT_TURNS", "5")
    monkeypatch.setenv("COMPACT_POLICY__TARGET_PCT", "0.4")
    data = cli("config", "show", "--config", path, "--json").data
    found = {row["field"]: (row["value"], row["source"]) for row in data}
    assert set(found) == {".".join(path) for _, path, _ in environment_names(CompactConfig)}
    assert found["model"] == ("gpt-4", "mine.yaml")
    assert found["policy.trigger_pct"] == (0.8, "mine.yaml")
    assert found["policy.keep_recent_turns"] == (5, "COMPACT_KEEP_RECENT_TURNS")
    assert found["policy.target_pct"] == (0.4, "COMPACT_POLICY__TARGET_PCT")
    assert found["policy.prefetch_pct"] == (0.7, "default")
    assert found["strategies.clear.tools"][1] == "mine.yaml"


def test_text(cli):
    """One aligned line per field; the window that is not set is the model's."""
    out = cli("config", "show").out
    assert re.search(r"^policy\.trigger_pct +0\.85 ", out, re.MULTILINE)
    assert "null (the model's: 128,000)" in out


def test_found_file_is_the_source(cli):
    """./compact.yaml is found, used and named."""
    Path("compact.yaml").write_text("model: gpt-4\n")
    rows = cli("config", "show", "--json").data
    assert {row["value"]: row["source"] for row in rows if row["field"] == "model"} == {"gpt-4": "compact.yaml"}


def test_check_says_ok(cli, monkeypatch):
    """A good file is counted; variables that overrule it are named."""
    Path("good.yaml").write_text("model: gpt-4\npolicy:\n  trigger_pct: 0.8\n")
    done = cli("config", "check", "good.yaml")
    assert (done.code, done.out, done.err) == (0, "ok: good.yaml sets 2 fields\n", "")
    monkeypatch.setenv("COMPACT_TRIGGER_PCT", "0.9")
    assert "COMPACT_TRIGGER_PCT (policy.trigger_pct)" in cli("config", "check", "good.yaml").err


def test_check_says_what_is_wrong(cli):
    """File, field, allowed range, and what it was."""
    Path("bad.yaml").write_text("policy:\n  trigger_pct: 3\n")
    done = cli("config", "check", "bad.yaml")
    assert done.code == 2
    assert done.err.startswith("error: bad.yaml: policy.trigger_pct must be 0.0-1.0, not 3\nhint: ")
    Path("typo.yaml").write_text("polcy:\n  trigger_pct: 0.3\n")
    assert "polcy is not a known setting" in cli("config", "check", "typo.yaml").err
    Path("broken.yaml").write_text("policy: [\n")
    assert "broken.yaml is not valid YAML or JSON (line 2)" in cli("config", "check", "broken.yaml").err


def test_wrong_variable_is_named(cli, monkeypatch):
    """A bad value from the environment is not blamed on the file."""
    Path("good.yaml").write_text("policy:\n  trigger_pct: 0.8\n")
    monkeypatch.setenv("COMPACT_TRIGGER_PCT", "9")
    done = cli("config", "check", "good.yaml")
    assert done.code == 2
    assert "hint: the environment variable COMPACT_TRIGGER_PCT sets it" in done.err


def test_old_file_is_noted(cli):
    """A file with a key of former times is read, and a plain note says what the key is called now."""
    Path("old.yaml").write_text("policy:\n  strategy: brief\n")
    done = cli("config", "check", "old.yaml")
    assert done.code == 0
    assert done.err == "note: the setting policy.strategy is now policy.summary_form\n"


def test_alone_it_explains_itself(cli):
    """Without a command: its help."""
    assert "show   List every setting" in cli("config").out
