"""Metrics as Prometheus reads them: text exposition format 0.0.4."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from compact.telemetry.metrics import BUCKETS, CompactionMetrics, Histogram, MetricsCollector

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
Value = int | float
# Name, help, and the label with its values, or one value without a label.
_COUNTERS: tuple[tuple[str, str, str, Callable[[CompactionMetrics], Mapping[str, Value] | Value]], ...] = (
    ("compact_events", "Events, by their name.", "event", lambda m: m.events),
    ("compact_preflights", "Prompts that were measured.", "", lambda m: m.checks),
    (
        "compact_compactions",
        "Plans that were put in force, by what led to them.",
        "reason",
        lambda m: m.compactions_by_reason,
    ),
    ("compact_tokens_before", "Tokens of all prompts before they were compacted.", "", lambda m: m.tokens_before),
    ("compact_tokens_after", "Tokens of the same prompts afterwards.", "", lambda m: m.tokens_after),
    (
        "compact_tokens_freed",
        "Tokens that left prompts, by what was done.",
        "action",
        lambda m: m.tokens_freed_by_action,
    ),
    (
        "compact_messages_changed",
        "Messages that left prompts, by what was done.",
        "action",
        lambda m: m.messages_by_action,
    ),
    (
        "compact_entities",
        "Specific strings in what left prompts, by where they are now.",
        "state",
        lambda m: m.entities,
    ),
    ("compact_missing_constraints", "Standing wishes that a prompt lacks.", "", lambda m: m.missing_constraints),
    ("compact_summarizer_calls", "Questions to a model.", "", lambda m: m.summarizer_calls),
    ("compact_summarizer_failures", "Questions without an answer.", "", lambda m: m.summarizer_failures),
    ("compact_summarizer_input_tokens", "Tokens a summariser read.", "", lambda m: m.summarizer_input_tokens),
    ("compact_summarizer_output_tokens", "Tokens a summariser wrote.", "", lambda m: m.summarizer_output_tokens),
    ("compact_recalls", "Questions for what had left a prompt: regret.", "", lambda m: m.recalls),
    ("compact_rehydrations", "Artifacts that were shown again.", "", lambda m: m.rehydrations),
    ("compact_rehydrations_blocked", "Artifacts that were asked for in vain.", "", lambda m: m.blocked_rehydrations),
    ("compact_errors", "Failures that were survived, by their type.", "error_type", lambda m: m.errors_by_type),
    ("compact_version_conflicts", "Races between processes.", "", lambda m: m.conflicts),
    (
        "compact_events_dropped",
        "Events that were never sent, by exporter.",
        "exporter",
        lambda m: m.dropped_by_exporter,
    ),
)
_HISTOGRAMS: tuple[tuple[str, str, Callable[[CompactionMetrics], Histogram]], ...] = (
    ("compact_preflight_seconds", "How long a preflight took.", lambda m: m.preflight_seconds),
    ("compact_compaction_seconds", "How long a compaction took.", lambda m: m.compaction_seconds),
    ("compact_summarizer_seconds", "How long a model took to answer.", lambda m: m.summarizer_seconds),
)


def render_prometheus(collector: MetricsCollector) -> str:
    """All metrics of a collector; sessions have no labels of their own, since there is no end to them."""
    metrics = collector.snapshot()
    return "\n".join([*_counters(metrics), *_histograms(metrics), *_gauges(metrics, len(collector.threads()))]) + "\n"


def _counters(metrics: CompactionMetrics) -> Iterator[str]:
    for name, text, label, read in _COUNTERS:
        yield from _head(f"{name}_total", text, "counter")
        value = read(metrics)
        if isinstance(value, Mapping):
            for key in sorted(value):
                yield f'{name}_total{{{label}="{_escaped(key)}"}} {_number(value[key])}'
        else:
            yield f"{name}_total {_number(value)}"


def _histograms(metrics: CompactionMetrics) -> Iterator[str]:
    for name, text, read in _HISTOGRAMS:
        histogram = read(metrics)
        yield from _head(name, text, "histogram")
        for bound, count in zip(BUCKETS, histogram.counts, strict=True):
            yield f'{name}_bucket{{le="{_number(bound)}"}} {count}'
        yield f'{name}_bucket{{le="+Inf"}} {histogram.count}'
        yield f"{name}_sum {_number(histogram.total)}"
        yield f"{name}_count {histogram.count}"


def _gauges(metrics: CompactionMetrics, sessions: int) -> Iterator[str]:
    gauges = (
        ("compact_sessions", "Sessions that are known.", sessions),
        ("compact_last_prompt_tokens", "Tokens of the prompt that was measured last.", metrics.last_tokens),
        ("compact_last_prompt_usage_ratio", "The same as a share of its window.", metrics.last_usage_pct),
    )
    for name, text, value in gauges:
        yield from _head(name, text, "gauge")
        yield f"{name} {_number(value)}"


def _head(name: str, text: str, kind: str) -> Iterator[str]:
    yield f"# HELP {name} {text.replace(chr(92), chr(92) * 2)}"
    yield f"# TYPE {name} {kind}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: Value) -> str:
    return str(value) if isinstance(value, int) else repr(float(value))
