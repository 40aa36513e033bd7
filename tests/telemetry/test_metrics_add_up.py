"""For random sessions the metrics are the sums over what the store has: in Prometheus' text and OTLP's payload alike.

Sessions have summaries by code and by a summariser that fails now and then, clearing, externalising, undo, manual
compaction, edited pasts, reported usage and budgets that cannot be met.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.exporter.otlp.proto.common.metrics_encoder import encode_metrics
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider

from compact import CompactConfig, CompactManager, InsufficientBudget, StructuredSummary, SummaryRequest
from compact.core.errors import SummarizerUnavailable
from compact.core.plan.plan import EDITED_PAST, CompactionAction, CompactionPlan
from compact.stores.memory import InMemoryCompactionStore
from compact.summarizers.extractive import extractive_summary
from compact.telemetry import CompositeEventEmitter, ExportWorker, MetricsCollector, OtlpExporter, render_prometheus
from compact.testing import WordTokenizer
from conversations import SMALL_STRATEGIES, Wire, histories
from sizes import SCALE
from telemetry.otlp_collector import Collector
from telemetry.test_prometheus import Samples, parsed

STEPS = ("preflight", "preflight", "preflight", "manual", "target", "undo", "edit", "usage")


@dataclass
class Played:
    """A manager that was used for a while, with what it exported."""

    manager: CompactManager
    metrics: MetricsCollector
    worker: ExportWorker
    reader: InMemoryMetricReader
    window: int
    raised: int = 0
    calls: int = 0
    usage: list[float] = field(default_factory=list)

    def prometheus(self) -> Samples:
        return parsed(render_prometheus(self.metrics))[0]

    def otlp(self) -> Collector:
        """The metrics as a collector reads them: encoded, sent as bytes, decoded."""
        assert self.worker.flush(30)
        data = self.reader.get_metrics_data()
        collector = Collector()
        if data is not None:
            collector.take("/v1/metrics", encode_metrics(data).SerializeToString())
        return collector


class MoodySummarizer:
    """Writes what code would write, and fails as it was told to."""

    def __init__(self, failures: list[bool]) -> None:
        self.failures = failures

    def __call__(self, request: SummaryRequest) -> StructuredSummary:
        if self.failures and self.failures.pop(0):
            raise SummarizerUnavailable("no answer")
        return extractive_summary(request)


@st.composite
def plays(draw: st.DrawFn) -> tuple[list[list[Wire]], list[str], list[bool], int]:
    """Histories that each go on from the one before, what is done after each, failures, and a window."""
    count = draw(st.integers(1, 5))
    parts = [draw(histories()) for _ in range(count)]
    steps = draw(st.lists(st.sampled_from(STEPS), min_size=count, max_size=count))
    return parts, steps, draw(st.lists(st.booleans(), max_size=6)), draw(st.sampled_from([400, 700, 1500]))


def play(parts: list[list[Wire]], steps: list[str], failures: list[bool], window: int) -> Played:
    reader = InMemoryMetricReader()
    metrics = MetricsCollector()
    exporter = OtlpExporter(tracer_provider=TracerProvider(), meter_provider=MeterProvider([reader]))
    worker = ExportWorker(exporter, max_queued=100_000)
    config = CompactConfig(
        max_context_tokens=window,
        policy={"hard_cap_buffer": 10, "keep_recent_turns": 3, "keep_tool_io_pairs": 2},
        telemetry={"exporter": "none"},
        storage={"adapter": "none"},
        rehydration={"enabled": False},
    )
    manager = CompactManager(
        config,
        tokenizer=WordTokenizer(),
        strategies=SMALL_STRATEGIES,
        store=InMemoryCompactionStore(),
        summarizer=MoodySummarizer(failures) if failures else None,
        on_event=CompositeEventEmitter([metrics, worker]),
    )
    played = Played(manager, metrics, worker, reader, window)
    history: list[Wire] = []
    for part, step in zip(parts, steps, strict=True):
        history = _step(played, history, part, step)
    return played


def _step(played: Played, history: list[Wire], part: list[Wire], step: str) -> list[Wire]:
    manager = played.manager
    if step == "edit" and len(history) > 2:
        history = [*history[: len(history) // 2], {"role": "user", "content": "otherwise"}]
    history = [*history, *part]
    try:
        match step:
            case "manual":
                manager.manual_compact("s", history, "tidy up")
            case "target":
                manager.manual_compact("s", history, target_tokens=played.window // 2)
            case _:
                manager.preflight("s", history)
    except InsufficientBudget:
        played.raised += 1
    played.calls += 1
    if manager.current_plan("s").version or manager.model_calls("s"):
        if step == "undo":
            manager.undo("s")
        elif step == "usage":
            manager.observe_usage("s", 3 * manager.model_calls("s")[-1].tokens_estimated // 2)
    return history


def compactions(played: Played) -> Iterator[tuple[CompactionPlan, CompactionPlan]]:
    """Each compaction in the store, with the plan before it; what was restored or edited is none."""
    before = CompactionPlan("s")
    for entry in played.manager.plans("s"):
        if entry.plan.origin is None and entry.plan.reason != EDITED_PAST:
            yield before, entry.plan
        before = entry.plan


def left(before: CompactionPlan, after: CompactionPlan) -> Counter[str]:
    """How many messages left the prompt as they came, by what was done to them."""
    ids = {message_id for record in after.records for message_id in record.span}
    new = (message_id for message_id in ids if before.get_action(message_id)[0] is CompactionAction.INCLUDE)
    return Counter(after.get_action(message_id)[0].value for message_id in new)


def exactly_freed(done: list[tuple[CompactionPlan, CompactionPlan]], tokens_of: dict[str, int]) -> dict[str, int]:
    """What each action freed, by what each message took; nothing where repairs or growth had to be taken off."""
    freed: Counter[str] = Counter()
    for before, after in done:
        ids = {message_id for plan in (before, after) for record in plan.records for message_id in record.span}
        own: Counter[str] = Counter()
        for message_id in ids & set(tokens_of):
            change = weight(message_id, before, tokens_of) - weight(message_id, after, tokens_of)
            own[after.get_action(message_id)[0].value] += change
        if after.summary != before.summary:
            own["summarize"] += summary_tokens(before) - summary_tokens(after)
        if sum(own.values()) != after.tokens_before - after.tokens_after or min(own.values(), default=0) < 0:
            return {}
        freed += own
    return dict(freed)


def summary_tokens(plan: CompactionPlan) -> int:
    return plan.summary.tokens_after if plan.summary else 0


def weight(message_id: str, plan: CompactionPlan, tokens_of: dict[str, int]) -> int:
    """What a message takes in a prompt, by itself or by what stands in its place."""
    action, record = plan.get_action(message_id)
    if record is None:
        return tokens_of[message_id]
    return record.tokens_after if action in (CompactionAction.CLEAR, CompactionAction.EXTERNALIZE) else 0


def by_label(samples: dict[tuple[tuple[str, str], ...], float]) -> dict[str, float]:
    return {key[0][1]: value for key, value in samples.items() if value}


def by_attribute(points: list[tuple[dict[str, Any], Any]], name: str) -> dict[str, float]:
    return {point[name]: value for point, value in points if value}


def test_the_sessions_reach_what_they_are_about() -> None:
    """One that is known: several rounds, each kind of action, an undo, a summary that failed."""
    parts: list[list[Wire]] = []
    for number in range(6):
        calls = [
            {"role": "user", "content": f"look at part {number}"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {"id": f"c{number}", "type": "function", "function": {"name": "read_file", "arguments": "{}"}}
                ],
            },
            {"role": "tool", "tool_call_id": f"c{number}", "content": f"line {number} " * 60},
            {"role": "assistant", "content": "seen " * 60},
        ]
        parts.append(calls)
    parts[0][0]["meta"] = {"protected": True}  # it stands before the summary, where a line of ours would
    played = play(parts, ["preflight", "preflight", "manual", "undo", "preflight", "preflight"], [True, False], 400)
    with played.manager:
        done = list(compactions(played))
        samples = played.prometheus()
        stored = played.manager.store.load("s")
    assert stored
    exact = exactly_freed(done, {entry.message.id: entry.tokens for entry in stored.messages})
    assert by_label(samples["compact_tokens_freed_total"]) == exact != {}
    assert len(done) >= 3
    assert {"summarize", "clear"} <= set(by_label(samples["compact_tokens_freed_total"]))
    assert by_label(samples["compact_errors_total"]) == {"SummarizerUnavailable": 1}
    messages = by_label(samples["compact_messages_changed_total"])
    assert messages == sum((left(*pair) for pair in done), Counter[str]())
    spans = sum(len(plan.summary.span) for _, plan in done if plan.summary)
    assert sum(messages.values()) < spans, "a span is not counted again in every round"


@settings(max_examples=60 * SCALE, deadline=None)
@given(plays())
def test_metrics_are_the_sums_over_the_plans(session: Any) -> None:
    played = play(*session)
    with played.manager:
        done = list(compactions(played))
        prometheus, otlp = played.prometheus(), played.otlp().metrics
        calls = played.manager.model_calls("s")
        is_reported = any(call.tokens_reported for call in calls)
        stored = played.manager.store.load("s")
        tokens_of = {entry.message.id: entry.tokens for entry in stored.messages} if stored else {}
    before, after = sum(p.tokens_before for _, p in done), sum(p.tokens_after for _, p in done)

    kinds = Counter("manual" if plan.reason.startswith("manual") else "threshold" for _, plan in done)
    assert by_label(prometheus["compact_compactions_total"]) == kinds
    assert by_attribute(otlp.get("compact.compactions", []), "reason") == kinds
    assert prometheus["compact_tokens_before_total"][()] == before
    assert prometheus["compact_tokens_after_total"][()] == after
    assert sum(total for _, (_, total) in otlp.get("compact.tokens.before", [])) == before
    assert sum(total for _, (_, total) in otlp.get("compact.tokens.after", [])) == after

    freed = by_label(prometheus["compact_tokens_freed_total"])
    assert by_attribute(otlp.get("compact.tokens.freed", []), "action") == freed
    assert sum(freed.values()) == sum(max(0, plan.tokens_before - plan.tokens_after) for _, plan in done)

    for action, tokens in exactly_freed(done, tokens_of).items():
        assert freed.get(action, 0) == tokens

    changed = sum((left(*pair) for pair in done), Counter[str]())
    assert by_label(prometheus["compact_messages_changed_total"]) == changed
    assert by_attribute(otlp.get("compact.messages.changed", []), "action") == changed

    assert prometheus["compact_preflights_total"] == {(): played.calls}
    assert sum(value for _, value in otlp["compact.preflights"]) == played.calls
    _check_prompts(played, prometheus, otlp, calls, is_reported)


def _check_prompts(played: Played, prometheus: Samples, otlp: Any, calls: Any, is_reported: bool) -> None:
    """The prompts that were returned are the calls in the store, and none is larger than the window."""
    (ratio,) = prometheus["compact_last_prompt_usage_ratio"].values()
    assert ratio <= 1
    assert [value for _, value in otlp.get("compact.prompt.usage", [])] == ([ratio] if calls else [])
    if not calls:
        return
    ((_, (count, total)),) = otlp["compact.prompt.tokens"]
    assert count == len(calls)
    last = prometheus["compact_last_prompt_tokens"][()]
    assert ratio == pytest.approx(last / played.window, abs=1e-4)
    if is_reported:  # the trigger goes by an upper bound then
        assert total >= sum(call.tokens_estimated for call in calls)
        assert last >= calls[-1].tokens_estimated
    else:
        assert total == sum(call.tokens_estimated for call in calls)
        assert last == calls[-1].tokens_estimated
