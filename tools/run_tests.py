"""Run the tests folder by folder, and show a line for each.

    python tools/run_tests.py [--coverage] [FOLDER ...]    all folders of tests/ if none is named

Two tests run at a time, or as many as `TEST_PROCESSES` says. Exits with 1 if a folder fails or, with `--coverage`,
which takes longer, if too little of the code was run. The last line counts the tests of all folders.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
COVERAGE = (sys.executable, "-m", "coverage")
PROCESSES = os.environ.get("TEST_PROCESSES", "2")
_SUMMARY = re.compile(r"^=* ?((?:\d+ \w+(?:, )?)+) in [\d.]+s", re.MULTILINE)
_COUNT = re.compile(r"(\d+) (\w+)")


@dataclass(frozen=True, slots=True)
class Outcome:
    """How the tests of one folder went."""

    succeeded: bool
    summary: str
    seconds: float
    output: str


def main(arguments: list[str]) -> int:
    with_coverage = "--coverage" in arguments
    names = [argument for argument in arguments if argument != "--coverage"]
    suites = [[name] for name in names] if names else _suites()
    failed: list[str] = []
    counts = Counter[str]()
    start = time.monotonic()
    if with_coverage:
        subprocess.run([*COVERAGE, "erase"], cwd=ROOT, check=True)
    for number, paths in enumerate(suites, 1):
        title = paths[0] if len(paths) == 1 else "tests/*.py"
        print(f"[{number:2}/{len(suites)}] {title:<22}", end="", flush=True)
        outcome = _run(paths, with_coverage=with_coverage)
        print(f"{outcome.summary:<40} {outcome.seconds:5.0f} s", flush=True)
        counts.update({word: int(number) for number, word in _COUNT.findall(outcome.summary)})
        if not outcome.succeeded:
            failed.append(title)
            print(outcome.output, flush=True)
    verdict = f"failed: {', '.join(failed)}" if failed else "passed"
    print(f"{'':8}{'all':<22}{verdict:<40} {time.monotonic() - start:5.0f} s")
    incomplete = with_coverage and not failed and subprocess.run([*COVERAGE, "report"], cwd=ROOT).returncode
    print(counted(counts), flush=True)
    return 1 if failed or incomplete else 0


def counted(counts: Mapping[str, int]) -> str:
    """Return how many tests ran, as a line that those who read the output of test runners know."""
    failed = counts.get("failed", 0) + counts.get("error", 0) + counts.get("errors", 0)
    return f"{counts.get('passed', 0)} passed, {failed} failed, {counts.get('skipped', 0)} skipped"


def _suites() -> list[list[str]]:
    """Return the folders of tests/, and the files that are in none."""
    tests = ROOT / "tests"
    folders = sorted(path for path in tests.iterdir() if path.is_dir() and any(path.rglob("test_*.py")))
    return [
        *([str(path.relative_to(ROOT))] for path in folders),
        sorted(f"tests/{p.name}" for p in tests.glob("test_*.py")),
    ]


def _run(paths: list[str], *, with_coverage: bool) -> Outcome:
    options = ["-q", "--no-header", "-n", PROCESSES, "--dist", "worksteal"]
    if with_coverage:
        options += ["--cov", "--cov-append", "--cov-report=", "--cov-fail-under=0"]
    start = time.monotonic()
    done = subprocess.run([sys.executable, "-m", "pytest", *options, *paths], cwd=ROOT, text=True, capture_output=True)
    found = _SUMMARY.findall(done.stdout)
    summary = found[-1].strip() if found else f"exit {done.returncode}"
    return Outcome(done.returncode == 0, summary, time.monotonic() - start, done.stdout + done.stderr)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
