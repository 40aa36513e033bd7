"""A summariser that fails again and again is left alone, for longer and longer, and comes back when it works."""

from __future__ import annotations

import threading

import pytest

from compact import CompactConfig, CompactManager, StructuredSummary, SummaryRequest
from compact.core.engine.events import CompactionErrorEvent
from compact.core.errors import SpendLimitReached, SummarizerPaused
from compact.summarizers.circuit_breaker import CircuitBreaker
from compact.testing import RecordingSink, WordTokenizer, dialogue


class Clock:
    """Time that a test moves."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


def broken(clock: Clock, failures: int = 3) -> CircuitBreaker:
    breaker = CircuitBreaker(failures=3, pause_seconds=30, longest_pause_seconds=100, clock=clock)
    for _ in range(failures):
        breaker.check()
        breaker.report(ConnectionError("away"))
    return breaker


def test_it_opens_after_failures_in_a_row_and_says_why() -> None:
    breaker = broken(Clock(), failures=2)
    breaker.check()
    breaker.report(TimeoutError("too slow"))
    with pytest.raises(SummarizerPaused, match=r"failed 3 times in a row .* 30 seconds; .* TimeoutError: too slow"):
        breaker.check()


def test_a_success_in_between_starts_the_count_anew() -> None:
    breaker = broken(Clock(), failures=2)
    breaker.report(None)
    for _ in range(2):
        breaker.report(ConnectionError())
    breaker.check()


def test_one_try_is_let_through_after_the_pause_and_decides() -> None:
    clock = Clock()
    breaker = broken(clock)
    clock.now += 31
    breaker.check()
    with pytest.raises(SummarizerPaused):
        breaker.check()  # the others wait for how that goes
    breaker.report(None)
    breaker.check()
    breaker.check()


def test_pauses_double_up_to_a_limit() -> None:
    clock = Clock()
    breaker = broken(clock)
    pauses: list[float] = []
    for _ in range(4):
        started = clock.now
        while True:
            try:
                breaker.check()
                break
            except SummarizerPaused:
                clock.now += 1
        pauses.append(clock.now - started)
        breaker.report(ConnectionError())
    assert pauses == [30, 60, 100, 100]


def test_a_try_that_never_comes_back_does_not_close_it_for_good() -> None:
    clock = Clock()
    breaker = broken(clock)
    clock.now += 31
    breaker.check()
    clock.now += 31
    breaker.check()


def test_what_was_not_tried_is_no_failure() -> None:
    breaker = broken(Clock(), failures=2)
    for error in (SummarizerPaused("later"), SpendLimitReached("enough")):
        breaker.report(error)
    breaker.check()


def test_it_counts_right_between_threads() -> None:
    breaker = CircuitBreaker(failures=400)
    threads = [
        threading.Thread(target=lambda: [breaker.report(ConnectionError()) for _ in range(100)]) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with pytest.raises(SummarizerPaused, match="failed 400 times"):
        breaker.check()


def test_a_manager_stops_asking_goes_on_without_and_says_so() -> None:
    asked: list[SummaryRequest] = []

    def away(request: SummaryRequest) -> StructuredSummary:
        asked.append(request)
        raise ConnectionError("away")

    sink = RecordingSink()
    config = CompactConfig(
        max_context_tokens=1_000,
        policy={"hard_cap_buffer": 0, "keep_recent_turns": 2},
        telemetry={"exporter": "none"},
        summarizer={"prefetch": "never"},
    )
    manager = CompactManager(
        config,
        tokenizer=WordTokenizer(),
        summarizer=away,
        circuit_breaker=CircuitBreaker(failures=2),
        on_event=sink,
    )
    for number in range(4):
        out = manager.preflight(f"session-{number}", dialogue(20, words=45))
        assert len(out) < 40
    assert len(asked) == 2
    told = [(event.error_type, event.fallback) for event in sink.of(CompactionErrorEvent)]
    assert told == [("ConnectionError", "pruning-only")] * 2 + [("SummarizerPaused", "pruning-only")] * 2
    manager.preflight("small", dialogue(2))  # nothing to do is no failure, and needs no leave
    assert len(sink.of(CompactionErrorEvent)) == 4
