"""Prometheus text, read by a parser as strict as the format."""

from __future__ import annotations

import re
from collections import defaultdict
from contextvars import Context

from compact.core.engine.event_spec import SECONDS_BUCKETS
from compact.telemetry.emitters import Dispatcher
from compact.telemetry.metrics import MetricsCollector
from compact.telemetry.prometheus import CONTENT_TYPE, render_prometheus
from telemetry.event_samples import full_history, one_of_each, watched

_PAIR = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\[\\"n])*"'
_SAMPLE = re.compile(rf"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{{({_PAIR}(?:,{_PAIR})*)\}})? (\S+)")
_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"')
Samples = dict[str, dict[tuple[tuple[str, str], ...], float]]


def parsed(text: str) -> tuple[Samples, dict[str, str]]:
    """All samples and the type of each family; whatever is not allowed raises."""
    assert text.endswith("\n")
    samples: Samples = defaultdict(dict)
    types: dict[str, str] = {}
    helped: set[str] = set()
    family = ""
    for line in text.splitlines():
        if line.startswith("# HELP "):
            family = line.split()[2]
            assert family not in helped, f"{family} is explained twice"
            helped.add(family)
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split()
            assert name == family
            assert kind in ("counter", "gauge", "histogram")
            types[name] = kind
        else:
            match = _SAMPLE.fullmatch(line)
            assert match, line
            name, labels, value = match.groups()
            base = re.sub(r"_(bucket|sum|count)$", "", name) if types[family] == "histogram" else name
            assert base == family, f"{name} stands below {family}"
            key = tuple((label, _unescaped(value)) for label, value in _LABEL.findall(labels or ""))
            assert key not in samples[name], f"{line} is there twice"
            samples[name][key] = float(value)
    return samples, types


def _unescaped(value: str) -> str:
    return re.sub(r'\\([\\"n])', lambda match: "\n" if match[1] == "n" else match[1], value)


def told() -> MetricsCollector:
    collector = MetricsCollector()

    def emit() -> None:
        dispatcher = Dispatcher([collector])
        for event in one_of_each():
            dispatcher(event)

    Context().run(emit)
    return collector


def test_it_is_what_prometheus_reads() -> None:
    samples, types = parsed(render_prometheus(told()))
    assert CONTENT_TYPE.startswith("text/plain; version=0.0.4")
    assert all(name.endswith("_total") for name, kind in types.items() if kind == "counter")
    assert samples["compact_compactions_total"] == {(("reason", "threshold"),): 1}
    assert samples["compact_tokens_freed_total"][("action", "clear"),] == 800
    assert samples["compact_messages_changed_total"][("action", "drop"),] == 2
    assert samples["compact_entities_total"][("state", "in_ledger"),] == 1
    assert samples["compact_errors_total"] == {(("error_type", "SummaryFailed"),): 1}
    assert samples["compact_recalls_total"] == {(): 1}
    assert samples["compact_events_dropped_total"] == {(("exporter", "ariadne"),): 7}
    assert samples["compact_summarizer_input_tokens_total"] == {(): 800}
    assert samples["compact_last_prompt_usage_ratio"] == {(): 0.45}
    assert samples["compact_sessions"] == {(): 1}


def test_histograms_are_cumulative() -> None:
    samples, _ = parsed(render_prometheus(told()))
    buckets = samples["compact_summarizer_seconds_bucket"]
    counts = [buckets[("le", repr(bound)),] for bound in SECONDS_BUCKETS]
    assert counts == sorted(counts)
    assert buckets[("le", "1.0"),] == 0
    assert buckets[("le", "2.5"),] == 1
    assert buckets[("le", "+Inf"),] == samples["compact_summarizer_seconds_count"][()] == 1
    assert samples["compact_summarizer_seconds_sum"][()] == 1.5


def test_nothing_yet_is_valid_too() -> None:
    samples, types = parsed(render_prometheus(MetricsCollector()))
    assert samples["compact_preflights_total"] == {(): 0}
    assert "compact_compactions_total" in types


def test_labels_are_escaped() -> None:
    collector = MetricsCollector()
    hostile = 'a"b\\c\nd} 1'
    collector.record({"event": hostile, "session_id": "s"})
    collector.record({"event": "compact.error", "error_type": hostile, "session_id": "s"})
    samples, _ = parsed(render_prometheus(collector))
    assert samples["compact_errors_total"] == {(("error_type", hostile),): 1}
    assert samples["compact_events_total"][("event", hostile),] == 1


def test_figures_of_a_session() -> None:
    collector = MetricsCollector()
    with watched(on_event=collector) as manager:
        manager.preflight("s", full_history())
        manager.manual_compact("s", full_history(), "tidy")
        manager.preflight("t", full_history()[:3])
    samples, _ = parsed(render_prometheus(collector))
    assert samples["compact_preflights_total"] == {(): 3}
    assert samples["compact_preflight_seconds_count"] == {(): 3}
    assert samples["compact_compactions_total"][("reason", "threshold"),] == 1
    assert samples["compact_tokens_before_total"][()] > samples["compact_tokens_after_total"][()] > 0
    assert samples["compact_sessions"] == {(): 2}
    assert collector.session_metrics("t").compactions == 0
    assert collector.session_metrics("s").compactions == collector.global_metrics.compactions >= 1
