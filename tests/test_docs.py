"""What the documents show runs, and what they name is there."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from compact import CompactConfig, CompactManager
from compact.cli.main import app

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
PAGES = [README, ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
GUIDES = sorted((ROOT / "docs" / "guides").glob("*.md"))


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


# The code of the reference is signatures; its examples run where they are written, see test_docstrings.py. Guides run
# in processes of their own, see adapters/test_guides.py: frameworks read the source of functions, and warn.
@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if blocks(page, "python") and not page.stem.startswith("api") and page not in GUIDES],
    ids=name,
)
def test_python_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever pastes a page's snippets one after the other, in an empty folder and without a key, sees them work."""
    run(page, tmp_path, monkeypatch)


@pytest.mark.parametrize("page", GUIDES, ids=name)
def test_every_guide_has_code_to_paste_and_says_what_to_install(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    # Code for what is not in the environment of the tests is marked `py`: it cannot be run here.
    assert blocks(page, "python") or blocks(page, "py") or page.stem == "proxy", "a guide without code"
    assert re.search(r"pip install [\"']?\.", text), "a guide says what to install"


def test_the_reference_pages_are_what_the_code_says() -> None:
    script = ROOT / "tools" / "make_reference.py"
    done = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}run: python tools/make_reference.py"


def test_the_site_builds_without_a_broken_link(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    pages = {
        page.relative_to(ROOT / "docs").with_suffix(".html") for page in PAGES if page.is_relative_to(ROOT / "docs")
    }
    assert all((tmp_path / page).is_file() for page in pages)
    listed = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert all(str(page.with_suffix(".md")) in listed for page in pages), "a page that the menu does not name"


def test_the_readme_prints_a_status(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(README, tmp_path, monkeypatch)
    printed = capsys.readouterr().out
    shown = next(block for block in blocks(README, "text") if "session session-1" in block)
    assert shown in printed, "the page shows what its first example prints"


def test_the_printed_summary_is_the_one_that_is_made(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the page says is printed is printed, up to the dots."""
    page = ROOT / "docs" / "summaries.md"
    run(page, tmp_path, monkeypatch)
    shown, *_ = blocks(page, "text")
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
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    text = page.read_text(encoding="utf-8")
    assert set(re.findall(r"`make ([\w-]+)`", text)) <= set(targets)
    for script in re.findall(r"python (benchmarks/[\w./]+)", text):
        assert (ROOT / script).exists(), script
    for words in commands(page):
        if words[0] == "make":
            assert not words[1:] or words[1] in targets
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
