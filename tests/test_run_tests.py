"""`tools/run_tests.py` says at its end how many tests ran, in the words that readers of test output know."""

import subprocess
import sys
from pathlib import Path

RUN_TESTS = Path(__file__).parents[1] / "tools/run_tests.py"


def test_the_last_line_counts_the_tests_of_all_folders(tmp_path: Path) -> None:
    for name, text in (("one", "def test_a(): pass\ndef test_b(): assert 1 == 2"), ("two", "def test_c(): pass")):
        folder = tmp_path / name
        folder.mkdir()
        (folder / f"test_{name}.py").write_text(text)
    folders = [str(tmp_path / "one"), str(tmp_path / "two")]
    done = subprocess.run([sys.executable, str(RUN_TESTS), *folders], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1] == "2 passed, 1 failed, 0 skipped"
