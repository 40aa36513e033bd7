"""The figures of the short benchmarks are those in their file: a change of a strategy is seen there, and is meant."""

from __future__ import annotations

import os
import sys
import tempfile
from difflib import unified_diff
from pathlib import Path

import pytest

from compact.core.facts import selection
from compact.core.facts.value_table import VALUES
from compact.strategies import span

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

from regression.parts import PARTS, RESULTS, document, round_rows

UPDATE = "UPDATE_GOLDEN=1 python -m pytest tests/benchmarks/test_regression.py"


@pytest.fixture(autouse=True)
def _own_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What the benchmarks make for themselves is made anew."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def test_the_figures_are_those_in_the_file() -> None:
    """`UPDATE_GOLDEN=1` writes them anew; read what got better and what got worse before it is committed."""
    text = document()
    if os.environ.get("UPDATE_GOLDEN"):
        RESULTS.write_text(text, encoding="utf-8")
    known = RESULTS.read_text(encoding="utf-8")
    changed = "\n".join(unified_diff(known.splitlines(), text.splitlines(), "in the file", "measured", "", "", 0, ""))
    assert text == known, f"the figures changed; if that is meant: {UPDATE}\n{changed}"


def test_no_round_loses_the_task_or_a_constraint() -> None:
    """Whatever is written in the file: a task that is lost is no figure to be updated."""
    assert [row[-1] for row in round_rows()] == [0] * 8


def test_a_worse_value_function_is_seen_in_the_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without any opinion on what is worth more, other facts are kept."""
    known = RESULTS.read_text(encoding="utf-8")
    assert PARTS["Audit"]() in known
    for module in (selection, span):
        monkeypatch.setattr(module, "VALUES", {kind: values[::-1] for kind, values in VALUES.items()})
    assert PARTS["Audit"]() not in known
