"""`make mutate` changes expressions of the core: which ones, that a changed function is run, and what is explained."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tools"))

mutate: Any = importlib.import_module("mutate")
mutations: Any = importlib.import_module("mutations")

CODE = '''
LIMIT = 3


class Room:
    def __init__(self) -> None:
        super().__init__()

    @property
    def is_full(self, most: int = 7) -> bool:
        """Say whether 2 > 1."""
        if not self.names:
            raise ValueError(f"{1 + 1} names")
        return len(self.names) >= 2 and self.is_open


def cut(names: list[str]) -> list[str]:
    names.sort()
    return names[:4]
'''


@pytest.fixture
def room(tmp_path: Path) -> Path:
    (tmp_path / "room.py").write_text(CODE)
    return tmp_path


def test_what_is_changed_are_expressions_in_functions(room: Path) -> None:
    """Not the table, the default, the docstring, the text of the error or what a class asks of the one below it."""
    found = mutations.mutants_of(room, "room.py")
    assert [(one.function, one.change) for one in found] == [
        ("Room.is_full", "not self.names → self.names"),
        ("Room.is_full", "raise ValueError(f'{1 + 1} names') → pass"),
        ("Room.is_full", "len(self.names) >= 2 and self.is_open → len(self.names) >= 2 or self.is_open"),
        ("Room.is_full", "len(self.names) >= 2 → len(self.names) > 2"),
        ("Room.is_full", "2 → 3"),
        ("cut", "names.sort() → pass"),
        ("cut", ":4 → :"),
        ("cut", "4 → 5"),
    ]
    assert (found[0].line, found[0].first_line, found[0].last_line) == ("if not self.names:", 12, 12)


def test_a_change_is_made_in_a_tree_of_its_own(room: Path) -> None:
    names: dict[str, Any] = {}
    exec(compile(mutations.mutated((room / "room.py").read_text(), 5), "room.py", "exec"), names)
    assert names["cut"](["b", "a"]) == ["b", "a"]
    with pytest.raises(ValueError, match="8 changes, there is none of number 8"):
        mutations.mutated((room / "room.py").read_text(), 8)


def test_an_edit_in_one_place_leaves_the_other_changes_of_a_sample(room: Path) -> None:
    """So CI tries the same changes until somebody edits them."""
    trials = [mutate.Trial(one, (), 0.0) for one in mutations.mutants_of(room, "room.py")]
    chosen = mutate.choose(trials, 4, seed=3)
    assert set(mutate.choose(trials, None, seed=3)) == set(trials)
    without = [one for one in trials if one is not chosen[0]]
    assert set(chosen[1:]) <= set(mutate.choose(without, 4, seed=3))
    assert mutate.choose(trials, 4, seed=4) != chosen


def test_an_explanation_is_read_as_it_was_written(room: Path) -> None:
    for mutant in mutations.mutants_of(room, "room.py"):
        (room / "survivors.toml").write_text(mutations.as_explanation(mutant, why='It\'s "known".'))
        (read,) = mutations.explanations(room / "survivors.toml")
        assert (read.key, read.why) == (mutant.key, 'It\'s "known".')


def test_every_explanation_names_a_change_that_can_be_made_and_says_why() -> None:
    there = {one.key for file in mutate.core_files() for one in mutations.mutants_of(mutate.SOURCE, file)}
    found = mutations.explanations(mutate.EXPLAINED)
    assert [one.key for one in found if one.key not in there] == []
    assert [one.key for one in found if len(one.why.split()) < 4] == []
    assert len({one.key for one in found}) == len(found)


def test_a_change_that_a_test_runs_and_does_not_look_at_survives(tmp_path: Path) -> None:
    """The whole command on one small file, with a test of three things, which does not know whether two are many."""
    test = tmp_path / "test_three.py"
    test.write_text("from compact.core.plurals import noun\n\n\ndef test_three():\n    assert noun(3, 'a') == 'as'\n")
    command = (
        "import sys, mutate; from pathlib import Path; mutate.STATE = Path(sys.argv[1]) / 'state';"
        "sys.exit(mutate.main(['core/plurals.py', '--tests', sys.argv[2]]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", command, str(tmp_path), str(test)],
        cwd=ROOT,
        env={"PYTHONPATH": f"{ROOT}/src:{ROOT}/tools", "PATH": "/usr/bin:/bin", "TEST_PROCESSES": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1, done.stderr
    assert "3 changes were tried: 2 noticed, 1 survived (0 where no test runs), of which 0 are explained" in done.stdout
    assert "  survived: core/plurals.py:13 noun: 1 → 2\n" in done.stdout
    assert "change = '1 → 2'" in (tmp_path / "state/survivors.toml").read_text(encoding="utf-8")
