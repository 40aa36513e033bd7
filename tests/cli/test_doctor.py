"""`compact doctor`: a line for each thing, and an exit code that scripts can use."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from compact.cli import doctor
from compact.core.errors import ConfigError


def test_healthy(cli):
    """Everything is ok here."""
    done = cli("doctor")
    assert done.code == 0
    assert {row.split()[0] for row in done.out.splitlines()} == {"ok"}
    assert "o200k_base by toktok, exact, for gpt-4o; 'hello world' is 2 tokens" in done.out


def test_typo_in_a_variable(cli, monkeypatch):
    """The nearest setting is suggested, and only if it is near."""
    monkeypatch.setenv("COMPACT_TRIGER_PCT", "0.5")
    monkeypatch.setenv("COMPACT_ZZZ", "1")
    done = cli("doctor")
    assert done.code == 0
    assert "warn  environment  COMPACT_TRIGER_PCT is not a setting; did you mean COMPACT_TRIGGER_PCT?" in done.out
    assert "COMPACT_ZZZ is not a setting; `compact config show` lists" in done.out


def test_known_variable_is_listed(cli, monkeypatch):
    """A variable that works is no warning."""
    monkeypatch.setenv("COMPACT_TRIGGER_PCT", "0.9")
    assert "ok    environment  COMPACT_TRIGGER_PCT" in cli("doctor").out


def test_broken_configuration_fails(cli):
    """A file that makes no sense is a failure."""
    Path("compact.yaml").write_text("policy:\n  trigger_pct: 7\n")
    done = cli("doctor")
    assert done.code == 1
    assert "fail  config" in done.out
    assert "tokens" not in done.out


def test_found_configuration(cli):
    """A model without a published vocabulary is counted by estimate."""
    Path("compact.yaml").write_text("model: claude-opus-4-5\n")
    out = cli("doctor").out
    assert "ok    config       read from compact.yaml" in out
    assert "estimated, for claude-opus-4-5" in out


def test_no_counter_fails(cli, monkeypatch):
    """Without a package that counts, it says which to install."""

    def missing(model: str, kind: str) -> None:
        raise ConfigError("no package that counts", hint="pip install toktok-rs")

    monkeypatch.setattr("compact.tokens.get_tokenizer", missing)
    done = cli("doctor")
    assert done.code == 1
    assert "fail  tokens       no package that counts; pip install toktok-rs" in done.out


def test_directory_that_cannot_be_written(cli, monkeypatch):
    """Said, but nothing depends on it."""

    def refuse(**_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    done = cli("doctor")
    assert done.code == 0
    assert "warn  directory    cannot write to the current directory (Permission denied)" in done.out


def test_installation_that_does_not_match(cli, monkeypatch):
    """Another version than the one that runs."""
    monkeypatch.setattr(doctor, "version", lambda name: "0.0.1")
    assert "but 0.0.1 is installed" in cli("doctor").out


def test_run_from_a_folder(cli, monkeypatch):
    """Works, and is said."""
    monkeypatch.setattr(doctor, "_DISTRIBUTION", "no-such-distribution")
    done = cli("doctor")
    assert done.code == 0
    assert "run from a folder: no-such-distribution is not installed" in done.out


@pytest.mark.parametrize(("no_color", "said"), [("", "256 colours"), ("1", "without colours")])
def test_terminal(terminal, monkeypatch, no_color, said):
    """What the terminal can show."""
    if no_color:
        monkeypatch.setenv("NO_COLOR", no_color)
    shown = terminal("doctor", columns=100)
    assert f"100 columns, {said}" in shown.out
    assert ("\x1b[" in shown.out) is not bool(no_color)
