"""The page on observability says what is true: every event, every property, every metric, every setting."""

from __future__ import annotations

import inspect
import re
from dataclasses import fields
from pathlib import Path

import pytest

from compact.config import TelemetryConfig
from compact.core.engine.events import CompactionEvent
from compact.telemetry import otlp_metrics, prometheus
from telemetry.happenings import one_of_each

PAGE = Path(__file__).parents[2] / "docs" / "OBSERVABILITY.md"
_COMMON = {spec.name for spec in fields(CompactionEvent)} | {"event"}


def schema() -> str:
    """A row for each event: its name, its class, what it means, and what it says beyond what all events say."""
    rows = ["| event | class | what it tells | properties |", "|---|---|---|---|"]
    for event in one_of_each():
        meaning = (inspect.getdoc(type(event)) or "").split("\n\n")[0].replace("\n", " ")
        types = {spec.name: str(spec.type) for spec in fields(event)}
        told = {name: types.get(name, type(value).__name__) for name, value in event.to_dict().items()}
        properties = ", ".join(f"`{name}: {kind}`" for name, kind in told.items() if name not in _COMMON)
        rows.append(f"| `{event.name}` | `{type(event).__name__}` | {meaning} | {properties} |")
    return "\n".join(rows)


def between(marker: str) -> str:
    found = re.search(rf"<!-- {marker} -->\n(.*?)\n<!-- /{marker} -->", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert found, f"the page has no part {marker}"
    return found[1].strip()


def test_the_table_of_events_is_complete() -> None:
    """If this fails, paste what is expected between the marks."""
    assert between("events") == schema()


@pytest.mark.parametrize("spec", fields(CompactionEvent), ids=lambda spec: spec.name)
def test_what_all_events_say_is_explained(spec: object) -> None:
    assert f"| `{spec.name}` |" in PAGE.read_text(encoding="utf-8")  # pyright: ignore[reportAttributeAccessIssue]


def test_every_metric_is_named() -> None:
    text = between("metrics")
    for name in [*otlp_metrics._COUNTERS, *otlp_metrics._HISTOGRAMS]:
        assert f"`{name}`" in text, name
    for name in [f"{row[0]}_total" for row in prometheus._COUNTERS] + [row[0] for row in prometheus._HISTOGRAMS]:
        assert f"`{name}`" in text, name
    rendered = prometheus.render_prometheus(prometheus.MetricsCollector())
    known = set(re.findall(r"^# TYPE (\S+)", rendered, re.MULTILINE))
    assert set(re.findall(r"`(compact_\w+)`", text)) == known


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
