"""Counts for `make soak`: how many cases each suite ran, how many faults it injected, and what went wrong.

A test that has many cases asks for the fixture `soak` and reports them. Of a property the examples are counted that
Hypothesis tried, and any other test is one case. A test that fails is a breach, whatever it reported before.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from dataclasses import asdict, dataclass, field, fields
from itertools import chain
from pathlib import PurePosixPath
from typing import Any

import pytest
from hypothesis.statistics import collector

from sizes import SOAK

_KEY = "soak counts"
_COUNTS = pytest.StashKey["SoakCounts"]()


@dataclass
class SoakCounts:
    """What one test, or a suite of them, comes to."""

    cases: int = 0
    faults: int = 0
    survived: int = 0
    breaches: int = 0
    known: int = 0  # breaches that a test expects, because the documentation says so
    figures: list[str] = field(default_factory=list)

    def add(self, *, cases: int = 1, faults: int = 0, breaches: int = 0) -> None:
        """Count cases; if there were breaches, those of one of them."""
        self.cases += cases
        self.faults += faults
        self.survived += cases - bool(breaches)
        self.breaches += breaches

    def figure(self, line: str) -> None:
        """Have a line printed below the counts: something that was measured."""
        self.figures.append(line)

    def fail(self, *, known: bool) -> None:
        """Count that the test failed: at least one breach, in at least one case."""
        if not self.breaches:
            self.cases = max(self.cases, 1)
            self.survived = min(self.survived, self.cases - 1)
            self.breaches = 1
        self.known = self.breaches if known else 0

    def take(self, other: SoakCounts) -> None:
        """Add the counts of another test."""
        for each in fields(self):
            setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))


@pytest.fixture
def soak(request: pytest.FixtureRequest) -> SoakCounts:
    """Counts that a test with many cases reports to."""
    return _counts_of(request.node)


def _counts_of(item: pytest.Item) -> SoakCounts:
    return item.stash.setdefault(_COUNTS, SoakCounts())


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Count the examples that Hypothesis tries, in properties and in state machines that a test runs itself."""
    told = collector.value

    def count(statistics: Any) -> None:
        phases = (statistics.get(f"{phase}-phase", {}) for phase in ("reuse", "generate"))
        tried = [case["status"] for phase in phases for case in phase.get("test-cases", ())]
        _counts_of(item).add(cases=tried.count("valid") + tried.count("interesting"))
        if told:
            told(statistics)

    with collector.with_value(count):
        return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Send the counts along with the report, which reaches the terminal from other processes, too."""
    report = yield
    failed = report.failed or hasattr(report, "wasxfail")
    if call.when == "call" and (failed or not report.skipped):
        counts = _counts_of(item)
        if not counts.cases:
            counts.add()
        if failed:
            counts.fail(known=not report.failed)
        report.user_properties.append((_KEY, asdict(counts)))
    elif failed:
        report.user_properties.append((_KEY, asdict(SoakCounts(cases=1, breaches=1))))
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the table behind the last test of a soak."""
    suites = counts_by_suite(chain.from_iterable(terminalreporter.stats.values()))
    if SOAK and suites:
        terminalreporter.section("soak")
        for line in table(suites):
            terminalreporter.write_line(line)


def counts_by_suite(reports: Iterable[Any]) -> dict[str, SoakCounts]:
    """Return the counts of each folder of the tests, and of each file that is in none."""
    suites: dict[str, SoakCounts] = {}
    for report in reports:
        for key, value in getattr(report, "user_properties", ()):
            if key == _KEY:
                suites.setdefault(suite_of(report.nodeid), SoakCounts()).take(SoakCounts(**value))
    return dict(sorted(suites.items()))


def suite_of(node_id: str) -> str:
    """Return the folder in `tests/` that a test is in, or its file."""
    path = PurePosixPath(node_id.partition("::")[0])
    parts = path.parts[1:] if path.parts[0] == "tests" else path.parts
    return parts[0].removeprefix("test_").removesuffix(".py")


def table(suites: dict[str, SoakCounts]) -> list[str]:
    """Return the counts as lines, a total at the end, and below it what was measured."""
    total = SoakCounts()
    for counts in suites.values():
        total.take(counts)
    lines = [f"{'suite':<22}{'cases':>10}{'faults':>10}{'survived':>10}{'breaches':>10}"]
    for name, counts in (*suites.items(), ("all", total)):
        known = f"  ({counts.known} known)" if counts.known else ""
        numbers = (counts.cases, counts.faults, counts.survived, counts.breaches)
        lines.append(f"{name:<22}" + "".join(f"{number:>10,}" for number in numbers) + known)
    return [*lines, *(["", *total.figures] if total.figures else [])]
