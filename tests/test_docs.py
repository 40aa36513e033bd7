"""What the documents show runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from compact import CompactConfig

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def test_the_readmes_python_runs(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COMPACT_STATE__URL")
    monkeypatch.delenv("COMPACT_STORAGE__ADAPTER")
    space: dict[str, object] = {}
    assert len(blocks("python")) >= 2
    for block in blocks("python"):
        exec(compile(block, "README.md", "exec"), space)
    assert "session session-1" in capsys.readouterr().out
    assert (tmp_path / ".compact" / "state.db").is_file()
    space["manager"].close()  # type: ignore[attr-defined]


def test_the_first_example_has_ten_lines_at_most() -> None:
    lines = [line for line in blocks("python")[0].splitlines() if line.strip()]
    assert len(lines) <= 10


def test_the_readmes_settings_are_valid() -> None:
    for block in blocks("yaml"):
        CompactConfig(**yaml.safe_load(block))


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", README):
        assert (ROOT / target).exists(), target
