"""What all tests share: one profile for properties (two busy cores know no deadline), and nothing left on disk."""

import os
import signal

import pytest
from hypothesis import HealthCheck, settings

from sizes import SCALE
from soak_counts import pytest_runtest_call, pytest_runtest_makereport, pytest_terminal_summary, soak

__all__ = ("pytest_runtest_call", "pytest_runtest_makereport", "pytest_terminal_summary", "soak")

# How the reason begins with which tests are skipped that read recorded transcripts: they are not ours to ship.
NO_TRANSCRIPTS = "no transcripts in"
# How it begins where the registry of npm cannot be reached; `.ci/run` says so, too.
NO_CODING_AGENTS = "COMPACT_TEST_CODING_AGENTS"

settings.register_profile(
    "compact",
    deadline=None,
    derandomize=bool(os.environ.get("CI")),  # there the same examples every time; elsewhere ever new ones
    max_examples=50 * SCALE,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.large_base_example],
)
settings.load_profile("compact")

# A shell starts what runs in the background with Ctrl-C ignored, and the commands that tests start would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_make_parametrize_id(val: object) -> str | None:
    """Bytes have no say in a test's name: packed ones hold the time, and each worker would collect another test."""
    return "bytes" if isinstance(val, bytes) else None


def pytest_sessionfinish(session: pytest.Session) -> None:
    """In CI a test that was skipped failed: all that it needs can be installed there, but for recorded transcripts.

    Coding agents can be, if the registry of npm can be reached.
    """
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    reports = reporter.stats.get("skipped", []) if reporter else []
    allowed = (NO_TRANSCRIPTS, NO_CODING_AGENTS)
    skipped = [report for report in reports if not any(reason in str(report.longrepr) for reason in allowed)]
    if os.environ.get("CI") and skipped:
        reporter.write_line(f"{len(skipped)} tests were skipped, and in CI none of them may be", red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.fixture(autouse=True)
def _nothing_on_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that want a database or an archive say so; the others must not leave files behind."""
    monkeypatch.setenv("COMPACT_STATE__URL", "memory:")
    monkeypatch.setenv("COMPACT_STORAGE__ADAPTER", "none")
