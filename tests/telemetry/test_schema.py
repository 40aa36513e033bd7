"""The table of events is whole and true, and the page on observability is made of it."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from compact.config import TelemetryConfig
from compact.core.engine.event_spec import fill
from compact.core.engine.events import EVENTS, CompactionEvent, CompactionEventType
from compact.telemetry import prometheus
from compact.telemetry.metrics import METRICS
from telemetry.event_samples import all_kinds, one_of_each

PAGE = Path(__file__).parents[2] / "docs" / "OBSERVABILITY.md"
_COMMON = {spec.name for spec in fields(CompactionEvent)} | {"event", "status"}


def between(marker: str) -> str:
    found = re.search(rf"<!-- {marker} -->\n(.*?)\n<!-- /{marker} -->", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert found, f"the page has no part {marker}"
    return found[1].strip()


def row(name: str) -> str:
    (found,) = [line for line in between("events").splitlines() if line.startswith(f"| `{name}` |")]
    return found


def test_every_kind_is_declared_once() -> None:
    assert set(EVENTS) == {kind.value for kind in CompactionEventType}
    assert set(EVENTS.values()) == all_kinds()
    assert {type(event) for event in one_of_each()} == set(EVENTS.values())


@pytest.mark.parametrize("event", one_of_each(), ids=lambda event: event.name)
def test_a_declaration_is_about_the_fields_of_its_event(event: CompactionEvent) -> None:
    data, spec = event.to_dict(), event.spec
    assert set(data) == {"event", "status"} | {field.name for field in fields(event)} - set(spec.hidden) | set(
        spec.computed
    )
    assert set(spec.content) <= set(data)
    named = re.findall(r"\{(\w+)", spec.sentence + spec.output + spec.failed_sentence)
    assert set(named) <= set(data)
    assert spec.line(data)
    for metric in spec.metrics:
        assert all(measured.value >= 0 for measured in metric.measure(data))


@pytest.mark.parametrize("event", one_of_each(), ids=lambda event: event.name)
def test_the_table_of_events_is_complete(event: CompactionEvent) -> None:
    """If this fails: python tools/make_reference.py."""
    assert f"| `{type(event).__name__}` | {event.spec.severity} |" in row(event.name)
    for name in event.to_dict():
        assert name in _COMMON or f"`{name}: " in row(event.name), name


def test_a_template_takes_lists_and_redacted_values() -> None:
    data = {"ids": ("a", "b"), "tokens": 1_200, "secret": "<REDACTED>"}
    assert fill("{ids:n id} of {tokens:,}: {ids}", data) == "2 ids of 1,200: a; b"
    assert fill("{ids:lines} {secret:,}{left_out:.0%}", data) == "a\nb <REDACTED>"


def test_what_failed_says_so() -> None:
    failed = next(event for event in one_of_each() if event.name == "compact.operation_ended")
    assert failed.failure == "ValueError"
    assert failed.spec.line(failed.to_dict()) == "compaction failed: ValueError"
    assert {event.name for event in one_of_each() if event.failure} >= {"compact.operation_ended", "compact.error"}
    assert not next(event for event in one_of_each() if event.name == "compact.summarizer_call").failure


@pytest.mark.parametrize("name", sorted(_COMMON - {"event"}))
def test_what_all_events_say_is_explained(name: str) -> None:
    assert f"| `{name}` |" in PAGE.read_text(encoding="utf-8")


def test_every_metric_is_named() -> None:
    text = between("metrics")
    rendered = prometheus.render_prometheus(prometheus.MetricsCollector())
    known = set(re.findall(r"^# TYPE (\S+)", rendered, re.MULTILINE))
    assert set(re.findall(r"`(compact_\w+)`", text)) == known == {metric.prometheus_name for metric in METRICS}
    for metric in METRICS:
        assert not metric.name or f"`{metric.name}`" in text, metric.name
    assert len(known) == len(METRICS)


def test_every_query_is_about_a_metric_that_exists() -> None:
    rendered = prometheus.render_prometheus(prometheus.MetricsCollector())
    known = set(re.findall(r"^(compact_\w+)", rendered, re.MULTILINE)) | set(
        re.findall(r"^# TYPE (\S+)", rendered, re.MULTILINE)
    )
    queries = between("queries")
    named = set(re.findall(r"compact_\w+", queries))
    assert len(named) >= 8
    assert named <= known


def test_every_setting_is_named() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for name in TelemetryConfig.model_fields:
        assert f"`{name}`" in text or f"{name}:" in text, name
