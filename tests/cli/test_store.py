"""Which store a command works on, and what is said where there is none."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from compact import CompactConfig, CompactManager
from compact.testing import user


def config_for(path: Path) -> CompactConfig:
    """A store at a path, and nothing else that is written."""
    return CompactConfig(
        state={"url": f"sqlite:///{path}"}, storage={"adapter": "none"}, telemetry={"exporter": "none"}
    )


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """A store with one session."""
    path = tmp_path / "state.db"
    with CompactManager(config_for(path)) as manager:
        manager.preflight("demo", [user("hello")])
    return path


def test_missing_store_is_not_created(cli, tmp_path, monkeypatch):
    """Neither the configured one, nor one that is named, nor the default one."""
    monkeypatch.setenv("COMPACT_STATE__URL", f"sqlite:///{tmp_path}/gone.db")
    hint = "hint: run this where the agent runs, or name its store with --store URL\n"
    assert cli("sessions").err == f"error: there is no store at {tmp_path}/gone.db\n{hint}"
    done = cli("show", "demo", "--store", "sqlite:///other.db")
    assert (done.code, done.err) == (2, f"error: there is no store at other.db\n{hint}")
    monkeypatch.delenv("COMPACT_STATE__URL")
    assert "there is no store at .compact/state.db" in cli("prune", "--older-than", "1d", "--yes").err
    monkeypatch.setenv("COMPACT_STATE__URL", "memory:")
    assert "state.url is `memory:`" in cli("sessions").err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("state.db", "--store 'state.db' is not the URL of a store"),
        ("memory:", "--store 'memory:' is not the URL of a store"),
        ("sqlite:///.", "there is no store at ."),
        ("sqlite:///text.db", "cannot read text.db: file is not a database"),
        ("sqlite:///foreign.db", "foreign.db is a database, but not a Compact store"),
        ("sqlite:///empty.db", "empty.db is a database, but not a Compact store"),
        ("postgresql://nobody:secret@127.0.0.1:1/none", "cannot use postgresql://nobody:***@127.0.0.1:1/none: "),
    ],
)
def test_what_is_no_store(cli, tmp_path, url, said):
    """One line and a hint; somebody else's database is left alone."""
    Path("text.db").write_text("not a database, but a text that is long enough to be taken for one " * 30)
    Path("empty.db").touch()
    with closing(sqlite3.connect("foreign.db")) as connection:
        connection.execute("CREATE TABLE birds (name TEXT)")
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    done = cli("sessions", "--store", url)
    assert done.code == 2
    error, hint = done.err.splitlines()
    assert error.startswith("error: ")
    assert said in error
    assert hint.startswith("hint: ")
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_store_by_option_and_by_file(cli, state, monkeypatch):
    """--store overrules the environment, which overrules the file."""
    monkeypatch.setenv("COMPACT_STATE__URL", "sqlite:///elsewhere.db")
    assert len(cli("sessions", "--json", "--store", f"sqlite:///{state}").data) == 1
    assert cli("sessions").code == 2
    monkeypatch.delenv("COMPACT_STATE__URL")
    Path("mine.yaml").write_text(f"state:\n  url: sqlite:///{state}\nstorage:\n  path: ./archive\n")
    assert len(cli("sessions", "--json", "--config", "mine.yaml").data) == 1
    assert not Path("archive").exists()


def test_empty_store(cli, tmp_path):
    """A store without sessions says so; a question about one gets no suggestion."""
    path = tmp_path / "new.db"
    with CompactManager(config_for(path)) as manager:
        assert manager.sessions() == ()
    assert cli("sessions", "--store", f"sqlite:///{path}").out == "no sessions yet\n"
    assert cli("sessions", "--store", f"sqlite:///{path}", "--json").data == []
    assert "the store has no sessions yet" in cli("show", "x", "--store", f"sqlite:///{path}").err
