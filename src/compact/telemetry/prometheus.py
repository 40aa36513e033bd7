"""Metrics in the text exposition format 0.0.4 of Prometheus."""

from __future__ import annotations

from collections.abc import Iterator

from compact.core.engine.event_spec import Metric
from compact.telemetry.metrics import METRICS, SESSION_COUNT, CompactionMetrics, MetricsCollector

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def render_prometheus(collector: MetricsCollector) -> str:
    """Return all metrics of a collector; sessions are no label, because there is no end to them."""
    metrics = collector.snapshot()
    lines: list[str] = []
    for metric in METRICS:
        name, kind = metric.prometheus_name, metric.prometheus_kind or metric.kind
        lines += [f"# HELP {name} {_escape_help(metric.help)}", f"# TYPE {name} {kind}"]
        if metric is SESSION_COUNT:
            lines.append(f"{name} {len(collector.sessions())}")
        elif kind == "counter":
            lines += _counter(metric, metrics)
        elif kind == "histogram":
            lines += _histogram(metric, metrics)
        else:
            lines.append(f"{name} {_number(metrics.gauge(metric))}")
    return "\n".join(lines) + "\n"


def _counter(metric: Metric, metrics: CompactionMetrics) -> Iterator[str]:
    counter = metrics.counter(metric)
    if metric.label is None:
        yield f"{metric.prometheus_name} {_number(counter.total())}"
        return
    label = metric.label[0].replace(".", "_")
    for value in sorted(counter):
        yield f'{metric.prometheus_name}{{{label}="{_escape_label(value)}"}} {_number(counter[value])}'


def _histogram(metric: Metric, metrics: CompactionMetrics) -> Iterator[str]:
    name, histogram = metric.prometheus_name, metrics.histogram(metric)
    for bound, count in zip(histogram.bounds, histogram.counts, strict=True):
        yield f'{name}_bucket{{le="{_number(bound)}"}} {count}'
    yield f'{name}_bucket{{le="+Inf"}} {histogram.count}'
    yield f"{name}_sum {_number(histogram.total)}"
    yield f"{name}_count {histogram.count}"


def _escape_help(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def _escape_label(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else repr(float(value))
