"""Summaries written ahead: off the critical path, once per plan version, used if their messages still stand."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from compact import CompactConfig, CompactManager, StructuredSummary, SummaryRequest
from compact.core.events import CompactionCompletedEvent
from compact.summarizers.extractive import extractive_summary
from compact.testing import RecordingSink, WordTokenizer, dialogue, system, user


class SlowSummarizer:
    """Counts its calls, and answers only when it is let."""

    def __init__(self, *, is_open: bool = True) -> None:
        self.requests: list[SummaryRequest] = []
        self.gate = threading.Event()
        if is_open:
            self.gate.set()

    def __call__(self, request: SummaryRequest) -> StructuredSummary:
        self.requests.append(request)
        assert self.gate.wait(20)
        return extractive_summary(request)


def watched(writer: Any, **settings: Any) -> tuple[CompactManager, RecordingSink]:
    sink = RecordingSink()
    config = CompactConfig(
        max_context_tokens=1_000,
        policy={"hard_cap_buffer": 0, "keep_recent_turns": 2},
        telemetry={"exporter": "none"},
        **settings,
    )
    return CompactManager(config, tokenizer=WordTokenizer(), summarizer=writer, on_event=sink), sink


def wait_until_prepared(manager: CompactManager) -> None:
    preparer = manager._preparer
    assert preparer is not None
    preparer.close()


HISTORY = [system("be careful"), *dialogue(9, words=40)]  # 722 of 1,000: above prefetch, below the trigger
MORE = [*HISTORY, *dialogue(2, words=40)]  # 882: above the trigger


def test_what_was_prepared_is_used_at_the_trigger_without_asking_again() -> None:
    summarizer = SlowSummarizer()
    manager, sink = watched(summarizer)
    assert manager.preflight("s", HISTORY) == HISTORY
    wait_until_prepared(manager)
    assert len(summarizer.requests) == 1
    manager.preflight("s", MORE)
    assert len(summarizer.requests) == 1
    assert len(sink.of(CompactionCompletedEvent)) == 1
    record = manager.current_plan("s").summary
    assert record is not None
    assert "ahead of time" in record.reason
    assert len(record.span) == 14  # seven pairs older than the two kept when it was prepared


def test_the_agent_does_not_wait_for_it() -> None:
    summarizer = SlowSummarizer(is_open=False)
    manager, _ = watched(summarizer)
    assert manager.preflight("s", HISTORY) == HISTORY
    assert manager.preflight("s", [*HISTORY, user("still below")])[-1] == user("still below")
    summarizer.gate.set()
    wait_until_prepared(manager)
    assert len(summarizer.requests) == 1  # asked for once, although two calls were above the threshold


def test_it_is_thrown_away_if_its_messages_no_longer_stand() -> None:
    summarizer = SlowSummarizer()
    manager, _ = watched(summarizer)
    manager.preflight("s", HISTORY)
    wait_until_prepared(manager)
    edited = [HISTORY[0], user("another beginning " + "word " * 38), *MORE[2:]]
    manager.preflight("s", edited)
    record = manager.current_plan("s").summary
    assert record is not None
    assert "ahead of time" not in record.reason
    assert len(summarizer.requests) == 2


def test_a_failure_while_preparing_harms_nobody(caplog: pytest.LogCaptureFixture) -> None:
    def failing(request: SummaryRequest) -> StructuredSummary:
        raise ConnectionError("away")

    manager, _ = watched(failing)
    manager.preflight("s", HISTORY)
    wait_until_prepared(manager)
    assert "will be written when it is needed" in caplog.text


def test_the_built_in_summariser_is_not_worth_a_thread() -> None:
    assert watched(None)[0]._preparer is None
    assert watched(None, summarizer={"prepare": "always"})[0]._preparer is not None
    assert watched(SlowSummarizer(), summarizer={"prepare": "never"})[0]._preparer is None
