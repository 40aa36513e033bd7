"""Modules and names of former times still work, and say what they are called now."""

from __future__ import annotations

import subprocess
import sys
import warnings
from importlib import import_module

import pytest

from compact.core.former_names import FORMER_MODULES, FORMER_PACKAGES, RENAMED

KNOWN = [
    ("compact.core.events", "CompactionCompletedEvent", "compact.core.engine.events"),
    ("compact.core.report", "CompactionReport", "compact.core.audit.report"),
    ("compact.core.records", "CompactionStore", "compact.core.audit.store"),
    ("compact.core.records", "Commit", "compact.core.audit.records"),
    ("compact.core.messages", "Message", "compact.core.messages.message"),
    ("compact.core.log.messages", "Message", "compact.core.messages.message"),
    ("compact.core.log.legality", "check_chat", "compact.core.messages.legality"),
    ("compact.core.engine.session", "Session", "compact.core.session.session"),
    ("compact.core.session", "TriggerDecision", "compact.core.session.decisions"),
    ("compact.core.coordinator", "PlanningContext", "compact.core.plan.strategy"),
    ("compact.core.plan", "ClearRecord", "compact.core.plan.plan"),
    ("compact.core.summary", "SummaryRequest", "compact.core.summary.summarizer"),
]


@pytest.mark.parametrize(("module", "name", "home"), KNOWN)
def test_a_name_is_found_where_it_is_now(module: str, name: str, home: str) -> None:
    with pytest.warns(DeprecationWarning, match=f"{module}.{name} is now {home}.{name}") as caught:
        found = getattr(import_module(module), name)
    assert found is getattr(import_module(home), name)
    assert caught[0].filename == __file__


def test_a_renamed_class_is_found_by_its_former_name() -> None:
    with pytest.warns(DeprecationWarning, match="compact.core.session.Decision is now .*TriggerDecision"):
        from compact.core.session import Decision  # pyright: ignore[reportMissingImports]
    assert Decision.__name__ == "TriggerDecision"


def test_every_entry_leads_somewhere() -> None:
    for homes in (*FORMER_MODULES.values(), *FORMER_PACKAGES.values()):
        for home in homes:
            import_module(home)
    for home, names in RENAMED.items():
        assert all(hasattr(import_module(home), today) for today in names.values()), home
        assert not any(hasattr(import_module(home), former) for former in names), home


def test_what_never_was_is_not_found() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        import_module("compact.core.events").nonsense  # noqa: B018
    with pytest.raises(ModuleNotFoundError):
        import_module("compact.core.nonsense")


def test_today_s_names_warn_of_nothing() -> None:
    code = "import warnings; warnings.simplefilter('error'); import compact; compact.CompactManager; compact.Message"
    subprocess.run([sys.executable, "-c", code], check=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert import_module("compact.core.plan.plan").CompactionPlan


@pytest.mark.parametrize(("former", "today"), [("Outgoing", "OutgoingEvent"), ("Undelivered", "DeliveryFailed")])
def test_former_names_of_exporters(former: str, today: str) -> None:
    telemetry = import_module("compact.telemetry")
    with pytest.warns(DeprecationWarning, match=f"compact.telemetry.{former} is now {today}"):
        assert getattr(telemetry, former) is getattr(telemetry, today)
