"""Run the tests folder by folder, and show a line for each.

    python tools/run_tests.py [FOLDER ...]    all folders of tests/ if none is named

Two tests run at a time, or as many as `TEST_PROCESSES` says. Exits with 1 if a folder fails, or if the coverage of all
of them is too low.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROCESSES = os.environ.get("TEST_PROCESSES", "2")
_SUMMARY = re.compile(r"^=* ?((?:\d+ \w+(?:, )?)+) in [\d.]+s", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How the tests of one folder went."""

    succeeded: bool
    summary: str
    seconds: float
    output: str


def main(names: list[str]) -> int:
    everything = not names
    suites = [[name] for name in names] if names else _suites()
    failed: list[str] = []
    if everything:
        subprocess.run([sys.executable, "-m", "coverage", "erase"], cwd=ROOT, check=True)
    for number, paths in enumerate(suites, 1):
        title = paths[0] if len(paths) == 1 else "tests/*.py"
        print(f"[{number:2}/{len(suites)}] {title:<22}", end="", flush=True)
        outcome = _run(paths)
        print(f"{outcome.summary:<40} {outcome.seconds:5.0f} s", flush=True)
        if not outcome.succeeded:
            failed.append(title)
            print(outcome.output, flush=True)
    if failed:
        print(f"failed: {', '.join(failed)}")
        return 1
    return subprocess.run([sys.executable, "-m", "coverage", "report"], cwd=ROOT).returncode if everything else 0


def _suites() -> list[list[str]]:
    """Return the folders of tests/, and the files that are in none."""
    tests = ROOT / "tests"
    folders = sorted(path for path in tests.iterdir() if path.is_dir() and any(path.rglob("test_*.py")))
    return [
        *([str(path.relative_to(ROOT))] for path in folders),
        sorted(f"tests/{p.name}" for p in tests.glob("test_*.py")),
    ]


def _run(paths: list[str]) -> Outcome:
    options = ["-q", "--no-header", "-n", PROCESSES, "--dist", "worksteal", "--cov", "--cov-append"]
    options += ["--cov-report=", "--cov-fail-under=0"]
    start = time.monotonic()
    done = subprocess.run([sys.executable, "-m", "pytest", *options, *paths], cwd=ROOT, text=True, capture_output=True)
    found = _SUMMARY.findall(done.stdout)
    summary = found[-1].strip() if found else f"exit {done.returncode}"
    return Outcome(done.returncode == 0, summary, time.monotonic() - start, done.stdout + done.stderr)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
