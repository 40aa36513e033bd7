"""What `make soak` prints at its end is what its tests reported, from every process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parent
CONFTEST = "from soak_counts import pytest_runtest_call, pytest_runtest_makereport, pytest_terminal_summary, soak\n"
SUITE = """
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

class Machine(RuleBasedStateMachine):
    @rule()
    def step(self): pass

@given(st.integers())
@settings(max_examples=30, database=None)
def test_a_property(number): pass

def test_a_machine():
    run_state_machine_as_test(Machine, settings=settings(max_examples=20, database=None))

def test_of_many_cases(soak):
    soak.add(cases=10, faults=9)
    soak.add(faults=1, breaches=2)
    soak.figure("3 ms in the middle")
    assert not soak.breaches

def test_that_fails(): raise ValueError

@pytest.mark.xfail(raises=AssertionError, strict=True)
def test_that_is_known_to_fail(): assert False

@pytest.mark.skip
def test_that_is_skipped(): pass
"""


def test_the_table_counts_cases_faults_and_breaches_of_all_processes(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_one.py").write_text(SUITE)
    (tmp_path / "two").mkdir()
    (tmp_path / "two" / "test_other.py").write_text("def test_one(): pass\ndef test_two(): pass\n")
    plugins = [part for name in ("xdist", "_hypothesis_pytestplugin", "no:cacheprovider") for part in ("-p", name)]
    chosen = {"COMPACT_TEST_SOAK": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(TESTS)}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n", "2", *plugins, "--rootdir", ".", "."],
        cwd=tmp_path,
        env=os.environ | chosen,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1, "a breach fails its test"
    rows = {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines() if line.strip()}
    assert rows["suite"] == ["cases", "faults", "survived", "breaches"]
    assert rows["one"] == ["63", "10", "60", "4", "(1", "known)"]
    assert rows["two"] == ["2", "0", "2", "0"]
    assert rows["all"] == ["65", "10", "62", "4", "(1", "known)"]
    assert "3 ms in the middle" in done.stdout
