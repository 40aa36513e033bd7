"""What is written by default stays out of commits."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path

import pytest

from compact import CompactConfig, CompactManager
from compact.own_folder import keep_out_of_git
from compact.testing import WordTokenizer, dialogue, user


def run_agent(**config: object) -> CompactManager:
    manager = CompactManager(CompactConfig(max_context_tokens=2_000, **config), tokenizer=WordTokenizer())
    manager.manual_compact("s", [*dialogue(20, words=30), user("and now?")])
    return manager


def test_git_sees_nothing_of_what_is_written_by_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    subprocess.run(["git", "init", "-q"], check=True)
    run_agent(storage={"adapter": "fs"}, state={"url": "sqlite:///./.compact/state.db"}).close()
    written = [path for path in (tmp_path / ".compact").rglob("*") if path.is_file()]
    assert len(written) > 2
    assert subprocess.check_output(["git", "status", "--porcelain", "--untracked-files=all"], text=True) == ""


def test_an_archive_alone_has_it_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_agent(storage={"adapter": "fs"}, state={"url": "memory:"}).close()
    assert (tmp_path / ".compact/.gitignore").read_text() == "*\n"


def test_a_folder_of_another_name_is_its_owners(tmp_path: Path) -> None:
    run_agent(state={"url": f"sqlite:///{tmp_path}/data/state.db"}, storage={"adapter": "none"}).close()
    assert not (tmp_path / "data/.gitignore").exists()


def test_a_gitignore_that_is_there_stays_as_it_is(tmp_path: Path) -> None:
    folder = tmp_path / ".compact"
    folder.mkdir()
    (folder / ".gitignore").write_text("state.db\n")
    keep_out_of_git(folder)
    assert (folder / ".gitignore").read_text() == "state.db\n"


def test_everything_that_reads_the_store_has_a_form_for_an_event_loop(tmp_path: Path) -> None:
    async def ask(manager: CompactManager) -> None:
        assert (await manager.arecall("s", "word")).entries == manager.recall("s", "word").entries
        assert await manager.areport("s") == manager.report("s")
        assert await manager.areport("s", version=1) == manager.report("s", version=1)
        assert list(await manager.awhy("s", "and now?")) == list(manager.why("s", "and now?"))
        assert (await manager.aundo("s")).origin == 0
        assert (await manager.arestore("s", 1)).origin == 1

    with run_agent(state={"url": f"sqlite:///{tmp_path}/state.db"}, storage={"adapter": "none"}) as manager:
        asyncio.run(ask(manager))
