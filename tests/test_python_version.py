"""A Python that is too old is told so in one line, before anything is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from compact.core.python_version import OLDEST, complaint

ROOT = Path(__file__).parents[1]
# Runs what it is given as that version would see it.
PRETEND = """#!{python}
import runpy, sys
sys.version_info = (3, 10, 13, "final", 0)
sys.argv = sys.argv[1:]
assert sys.argv[0] != "-m", "no environment is made with it"
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def test_an_old_version_is_named_with_what_to_do() -> None:
    said = complaint(3, 10, "/usr/bin/python3.10")
    assert "needs Python 3.11 or newer" in said
    assert "/usr/bin/python3.10 is Python 3.10" in said
    assert "make run PYTHON=python3.12" in said
    assert "\n" not in said


@pytest.mark.parametrize("version", [(3, 11), (3, 12), (4, 0)])
def test_a_newer_version_will_do(version: tuple[int, int]) -> None:
    assert complaint(*version, executable="python") == ""


def test_it_is_the_version_that_pip_asks_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["requires-python"] == ">={}.{}".format(*OLDEST)


@pytest.mark.parametrize("target", ["run", "test"])
def test_make_says_it_before_it_makes_an_environment(target: str, tmp_path: Path) -> None:
    if shutil.which("make") is None:
        pytest.skip("make is not installed")
    for name in (
        "Makefile",
        "pyproject.toml",
        "requirements.lock",
        "requirements-run.lock",
        "requirements-templates.lock",
    ):
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "src/compact/core").mkdir(parents=True)
    shutil.copy(ROOT / "src/compact/core/python_version.py", tmp_path / "src/compact/core")
    python = tmp_path / "python3.10"
    python.write_text(PRETEND.format(python=sys.executable))
    python.chmod(0o755)
    command = ["make", target, f"PYTHON={python}"]
    # The suite itself is run by make, which hands its options and its depth to every make below it.
    alone = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    done = subprocess.run(command, cwd=tmp_path, env=alone, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode != 0
    said = [line for line in done.stderr.splitlines() if not line.startswith("make:")]
    assert len(said) == 1, done.stderr
    assert "needs Python 3.11 or newer" in said[0]
    assert not (tmp_path / ".venv").exists()


def as_python_3_10(tmp_path: Path, how: str) -> subprocess.CompletedProcess[str]:
    """Import the package as that version would see it; `how` is what `sys.argv[0]` says."""
    script = tmp_path / "pretend.py"
    script.write_text(
        "import sys\n"
        f"sys.path.insert(0, {str(ROOT / 'src')!r})\n"
        "sys.version_info = (3, 10, 13, 'final', 0)\n"
        f"sys.argv = [{how!r}]\n"
        "try:\n    import compact\nexcept ImportError as error:\n    print('caught:', error)\n"
    )
    return subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=60, check=False)


def test_the_command_says_it_without_a_traceback(tmp_path: Path) -> None:
    """`python3.10 -m compact`: the name of the module is not in `sys.argv` yet while its package is imported."""
    done = as_python_3_10(tmp_path, "-m")
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "needs Python 3.11 or newer" in done.stderr


def test_an_import_says_it_and_can_be_caught(tmp_path: Path) -> None:
    done = as_python_3_10(tmp_path, "agent.py")
    assert done.stdout.startswith("caught: Compact needs Python 3.11 or newer")
