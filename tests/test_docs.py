"""What the documents show runs, and what they name is there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from compact import CompactConfig, CompactManager
from compact.cli.main import app

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
PAGES = [README, *sorted((ROOT / "docs").rglob("*.md"))]
WITH_CODE = [README, ROOT / "docs" / "summaries.md"]


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def run(page: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every block of Python, in order, as somebody who pastes them one after the other in an empty folder."""
    monkeypatch.chdir(folder)
    monkeypatch.delenv("COMPACT_STATE__URL")
    monkeypatch.delenv("COMPACT_STORAGE__ADAPTER")
    space: dict[str, object] = {}
    for number, block in enumerate(blocks(page, "python"), 1):
        exec(compile(block, f"{name(page)}, block {number}", "exec"), space)
    for value in space.values():
        if isinstance(value, CompactManager):
            value.close()


def commands(page: Path) -> list[list[str]]:
    """The words of every command line, without comments."""
    lines = (line for block in blocks(page, "sh") for line in block.splitlines())
    return [words for line in lines if (words := shlex.split(line, comments=True))]


@pytest.mark.parametrize("page", WITH_CODE, ids=name)
def test_python_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(blocks(page, "python")) >= 2
    run(page, tmp_path, monkeypatch)
    assert (tmp_path / ".compact" / "state.db").is_file()


def test_only_these_pages_hold_code() -> None:
    """A page with code that nobody runs would grow old unnoticed."""
    assert [page for page in PAGES if blocks(page, "python")] == WITH_CODE


def test_the_readme_prints_a_status(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(README, tmp_path, monkeypatch)
    assert "session session-1" in capsys.readouterr().out


def test_the_printed_summary_is_the_one_that_is_made(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the page says is printed is printed, up to the dots."""
    page = ROOT / "docs" / "summaries.md"
    run(page, tmp_path, monkeypatch)
    (shown,) = blocks(page, "text")
    printed = capsys.readouterr().out
    for part in shown.split("…\n"):
        assert part in printed
    assert "('the refund limit was 900 euros before', 'The user approved deleting the migrations.')" in printed


def test_the_first_example_has_ten_lines_at_most() -> None:
    lines = [line for line in blocks(README, "python")[0].splitlines() if line.strip()]
    assert len(lines) <= 10


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "yaml")], ids=name)
def test_settings_are_valid(page: Path) -> None:
    for block in blocks(page, "yaml"):
        CompactConfig(**yaml.safe_load(block))


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for target, anchor in re.findall(r"\]\((?!https?:)([^)#]*)(?:#([^)]+))?\)", text):
        there = (page.parent / target).resolve() if target else page
        assert there.exists(), target
        if anchor:
            titles = re.findall(r"^#+ (.+)$", there.read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in [re.sub(r"[^\w-]", "", title.lower().replace(" ", "-")) for title in titles], anchor


@pytest.mark.parametrize("page", [page for page in PAGES if commands(page)], ids=name)
def test_commands_exist(page: Path) -> None:
    """Every command and option that is shown is known, every target is in the Makefile, every script is there."""
    targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    text = page.read_text(encoding="utf-8")
    assert set(re.findall(r"`make (\w+)`", text)) <= set(targets)
    for script in re.findall(r"python (benchmarks/[\w./]+)", text):
        assert (ROOT / script).exists(), script
    for words in commands(page):
        if words[0] == "make":
            assert words[1] in targets
        elif words[0] == "compact":
            for command in [words[1], *(words[i + 1] for i, word in enumerate(words) if word == "|")]:
                shown = CliRunner().invoke(app, [command, "--help"])
                assert shown.exit_code == 0, command
                for option in (word for word in words if word.startswith("--")):
                    assert option in shown.output, f"{command} {option}"


def test_the_commands_of_the_summaries_page_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the page's own code they find its sessions."""
    page = ROOT / "docs" / "summaries.md"
    run(page, tmp_path, monkeypatch)
    mine = [words[1:] for words in commands(page) if words[0] == "compact"]
    assert len(mine) >= 3
    for words in mine:
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 0, (words, done.output)
