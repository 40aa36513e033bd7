"""What all tests share: one profile for properties (two busy cores know no deadline), and nothing left on disk."""

import os

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "compact",
    deadline=None,
    derandomize=bool(os.environ.get("CI")),  # there the same examples every time; elsewhere ever new ones
    max_examples=100,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.large_base_example],
)
settings.load_profile("compact")


def pytest_sessionfinish(session: pytest.Session) -> None:
    """In CI a suite that was skipped is a suite that failed: everything it needs can be installed there."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    skipped = reporter.stats.get("skipped", []) if reporter else []
    if os.environ.get("CI") and skipped:
        reporter.write_line(f"{len(skipped)} tests were skipped, and in CI none may be", red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.fixture(autouse=True)
def _nothing_on_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that want a database or an archive say so; the others must not leave files behind."""
    monkeypatch.setenv("COMPACT_STATE__URL", "memory:")
    monkeypatch.setenv("COMPACT_STORAGE__ADAPTER", "none")
