"""Every question to a model is told: whose session, how long, how many tokens, and whether it failed."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from compact.core.engine.events import OperationStartedEvent, SummarizerCallEvent
from compact.summarizers.clients.model_client import CompletionRequest, ModelAnswer
from compact.summarizers.clients.observed import EventEmittingClient
from compact.telemetry.metrics import MetricsCollector
from compact.testing import RecordingSink, ScriptedModel, dialogue, fail, say_json, slow
from telemetry.ariadne_double import ariadne_server
from telemetry.event_samples import watched

TOLD = {"narrative": "It went on."}
HISTORY = dialogue(40, words=50)


def asking(model: ScriptedModel, **more: Any) -> Any:
    settings = {"base_url": model.base_url, "model": "gpt-4o-mini", "prefetch": "never"}
    return watched(summarizer=settings, **more)


@pytest.mark.parametrize("in_a_loop", [False, True])
def test_a_question_is_a_part_of_its_summary(in_a_loop: bool) -> None:
    sink = RecordingSink()
    with ScriptedModel(slow(0.05, say_json(TOLD))) as model, asking(model, on_event=sink) as manager:
        if in_a_loop:
            asyncio.run(manager.apreflight("s", HISTORY))
        else:
            manager.preflight("s", HISTORY)
    (call,) = sink.of(SummarizerCallEvent)
    (summary,) = [event for event in sink.of(OperationStartedEvent) if event.operation == "summary"]
    assert call.parent_id == summary.event_id
    assert call.session_id == "s"
    assert (call.model, call.provider, call.error_type) == ("gpt-4o-mini", "openai", "")
    assert call.input_tokens > 0
    assert call.output_tokens > 0
    assert call.duration_seconds >= 0.05
    assert call.started_at >= summary.started_at - 0.01


def test_every_try_is_told() -> None:
    """A server that is busy first: two questions, one of which failed."""
    collector = MetricsCollector()
    with ScriptedModel(fail(429, retry_after=0.01), say_json(TOLD)) as model:
        sink = RecordingSink()

        def both(event: Any) -> None:
            sink(event)
            collector(event)

        with asking(model, on_event=both) as manager:
            manager.preflight("s", HISTORY)
    failed, answered = sink.of(SummarizerCallEvent)
    assert failed.error_type == "ModelBusy"
    assert (failed.input_tokens, failed.output_tokens) == (0, 0)
    assert answered.error_type == ""
    found = collector.session_metrics("s")
    assert (found.summarizer_calls, found.summarizer_failures) == (2, 1)
    assert found.summarizer_seconds.count == 2


def test_it_has_a_bar_of_its_own_in_the_viewer() -> None:
    with ariadne_server() as server, ScriptedModel(fail(400), fail(400), fail(400), fail(400), fail(400)) as model:
        with asking(model, telemetry={"exporter": "ariadne", "ariadne_url": server.url}) as manager:
            manager.preflight("s", HISTORY)
        calls = server.of("compact.summarizer_call")
        assert calls
        assert {call["status"] for call in calls} == {"error"}
        assert {call["kind"] for call in calls} == {"generation"}
        assert server.of("compact.error")[-1]["data"]["fallback"] == "pruning-only"
        assert server.of("compact.preflight")[0]["status"] == "ok"


def test_what_was_read_from_the_cache_is_told_where_it_is_known() -> None:
    class Known:
        input_tokens, output_tokens, cache_read_tokens = 10, 5, 8

    def client(request: CompletionRequest) -> ModelAnswer:
        return Known()  # pyright: ignore[reportReturnType]

    sink = RecordingSink()
    observed = EventEmittingClient(client=client, emit=sink, model="m", provider="p")
    observed(CompletionRequest(system="", prompt="", timeout_seconds=1))
    assert sink.of(SummarizerCallEvent)[0].cache_read_tokens == 8
