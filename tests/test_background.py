"""Summaries written ahead: off the critical path, one at a time, used if their messages still stand; nobody waits."""

from __future__ import annotations

import asyncio
import gc
import logging
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from compact import CompactConfig, CompactManager, StructuredSummary, SummaryRequest
from compact.core.engine.events import (
    CompactionCompletedEvent,
    CompactionErrorEvent,
    NoticeEvent,
    SummaryCreatedEvent,
    TriggerDecisionEvent,
)
from compact.core.plan.plan import SummarizationRecord
from compact.core.session.session import Session
from compact.core.steps import Steps
from compact.prefetching.background import InProcessPrefetcher
from compact.runner import run_steps
from compact.summarizers.extractive import extractive_summary
from compact.testing import RecordingSink, Wire, WordTokenizer, assistant, dialogue, system, tool_run, user


class SlowSummarizer:
    """Counts its calls, and answers only when it is let."""

    def __init__(self, told: StructuredSummary | None = None, *, is_open: bool = True) -> None:
        self.told = told
        self.requests: list[SummaryRequest] = []
        self.gate = threading.Event()
        if is_open:
            self.gate.set()

    def __call__(self, request: SummaryRequest) -> StructuredSummary:
        self.requests.append(request)
        assert self.gate.wait(20)
        return self.told or extractive_summary(request)


class FailingSummarizer:
    """Counts its calls, and never answers."""

    def __init__(self) -> None:
        self.requests: list[SummaryRequest] = []

    def __call__(self, request: SummaryRequest) -> StructuredSummary:
        self.requests.append(request)
        raise ConnectionError("away")


def watched(writer: Any, **settings: Any) -> tuple[CompactManager, RecordingSink]:
    sink = RecordingSink()
    policy = {"hard_cap_buffer": 0, "keep_recent_turns": 2, **settings.pop("policy", {})}
    config = CompactConfig(
        max_context_tokens=settings.pop("window", 1_000), policy=policy, telemetry={"exporter": "none"}, **settings
    )
    return CompactManager(config, tokenizer=WordTokenizer(), summarizer=writer, on_event=sink), sink


def preparer_of(manager: CompactManager) -> InProcessPrefetcher:
    preparer = manager._prefetcher
    assert isinstance(preparer, InProcessPrefetcher)
    return preparer


def wait_until_prepared(manager: CompactManager) -> None:
    assert preparer_of(manager).wait(20)


def wait_until_asked(summarizer: SlowSummarizer, *, times: int = 1) -> None:
    deadline = time.monotonic() + 20
    while len(summarizer.requests) < times:
        assert time.monotonic() < deadline, f"asked {len(summarizer.requests)} times, not {times}"
        time.sleep(0.005)


def summary_of(manager: CompactManager) -> SummarizationRecord:
    record = manager.current_plan("s").summary
    assert record is not None
    return record


def is_written_ahead(manager: CompactManager) -> bool:
    return ", prefetched" in summary_of(manager).reason


def notices(sink: RecordingSink) -> list[str]:
    return [event.message for event in sink.of(NoticeEvent) if event.session_id]


HISTORY = [system("be careful"), *dialogue(9, words=40)]  # 722 of 1,000: above prefetch, below the trigger
MORE = [*HISTORY, *dialogue(2, words=40)]  # 882: above the trigger
TOO_MUCH = [*HISTORY, *dialogue(4, words=40)]  # 1,042: above the ceiling


# -- used, or thrown away ---------------------------------------------------------------------------------------------


def test_what_was_prepared_is_used_at_the_trigger_without_asking_again() -> None:
    summarizer = SlowSummarizer()
    manager, sink = watched(summarizer)
    assert manager.preflight("s", HISTORY) == HISTORY
    wait_until_prepared(manager)
    assert len(summarizer.requests) == 1
    out = manager.preflight("s", MORE)
    assert len(summarizer.requests) == 1
    assert len(sink.of(CompactionCompletedEvent)) == 1
    assert is_written_ahead(manager)
    span = set(summary_of(manager).span)
    assert 10 <= len(span) <= 14  # of seven pairs older than the two kept when it was prepared
    others = [wire for wire, message in zip(MORE, manager.history("s"), strict=True) if message.id not in span]
    assert [out[0], *out[3:]] == others, "everything but the span stays as it is, also what came since"
    assert manager.status("s").used_tokens < 700, "below the threshold at which the next one is prepared"


def test_the_next_one_is_prepared_on_top_of_it() -> None:
    summarizer = SlowSummarizer()
    manager, _ = watched(summarizer)
    grown = list(MORE)
    for _ in range(24):
        manager.preflight("s", grown)
        wait_until_prepared(manager)
        grown += dialogue(1, words=40)
    assert summary_of(manager).version >= 3
    assert is_written_ahead(manager)
    ids = [message.id for message in manager.history("s")]
    assert list(summary_of(manager).span) == [i for i in ids if i in set(summary_of(manager).span)]
    # MORE jumped over the threshold: that first one was written while the agent waited; all others ahead.
    assert len(summarizer.requests) <= summary_of(manager).version + 1


def test_it_is_thrown_away_if_its_messages_no_longer_stand() -> None:
    summarizer = SlowSummarizer()
    manager, sink = watched(summarizer)
    manager.preflight("s", HISTORY)
    wait_until_prepared(manager)
    edited = [HISTORY[0], user("another beginning " + "word " * 38), *MORE[2:]]
    manager.preflight("s", edited)
    assert not is_written_ahead(manager)
    assert len(summarizer.requests) == 2
    assert any("no longer there" in notice for notice in notices(sink))


def test_it_is_not_used_again_after_an_undo() -> None:
    summarizer = SlowSummarizer()
    manager, _ = watched(summarizer)
    manager.preflight("s", HISTORY)
    wait_until_prepared(manager)
    manager.preflight("s", MORE)
    assert is_written_ahead(manager)
    manager.undo("s")
    manager.preflight("s", TOO_MUCH)
    assert not is_written_ahead(manager)
    assert len(summarizer.requests) == 2


def test_one_that_is_under_way_during_an_undo_is_thrown_away() -> None:
    summarizer = SlowSummarizer()
    manager, sink = watched(summarizer)
    manager.preflight("s", HISTORY)
    wait_until_prepared(manager)
    manager.preflight("s", MORE)
    summarizer.gate.clear()
    grown = [*MORE, *dialogue(4, words=40)]
    manager.preflight("s", grown)
    wait_until_asked(summarizer, times=2)
    manager.undo("s")
    summarizer.gate.set()
    wait_until_prepared(manager)
    assert any("the plan has changed" in notice for notice in notices(sink))


def test_a_deleted_session_leaves_nothing_for_the_next_one_of_its_name() -> None:
    summarizer = SlowSummarizer(is_open=False)
    manager, _ = watched(summarizer)
    manager.preflight("s", HISTORY[:3])
    manager.preflight("s", HISTORY)
    manager.delete("s")
    summarizer.gate.set()
    wait_until_prepared(manager)
    other = [system("be quick"), *dialogue(11, words=40)]
    manager.preflight("s", other)
    assert not is_written_ahead(manager)


def test_a_manual_compaction_uses_it_unless_it_has_a_note() -> None:
    for note, asked in ((None, 1), ("mind the tests", 2)):
        summarizer = SlowSummarizer()
        manager, _ = watched(summarizer)
        manager.preflight("s", HISTORY)
        wait_until_prepared(manager)
        manager.manual_compact("s", MORE[:-2], note)
        assert is_written_ahead(manager) is (note is None)
        assert len(summarizer.requests) == asked


def test_a_manual_compaction_waits_for_the_one_that_is_under_way() -> None:
    summarizer = SlowSummarizer(is_open=False)
    manager, _ = watched(summarizer)
    manager.preflight("s", HISTORY)
    threading.Timer(0.1, summarizer.gate.set).start()
    manager.manual_compact("s", HISTORY)
    assert is_written_ahead(manager)
    assert len(summarizer.requests) == 1


def test_what_free_strategies_can_do_is_not_paid_for() -> None:
    summarizer = SlowSummarizer()
    manager, sink = watched(summarizer, policy={"keep_tool_io_pairs": 1}, window=10_000)
    grown = [system("be careful"), *tool_run(6, words=1_000)]
    for number in range(7, 12):
        grown += tool_run(number, words=1_000)[-2:]
        manager.preflight("s", grown)
        wait_until_prepared(manager)
    assert len(sink.of(CompactionCompletedEvent)) == 1
    assert manager.current_plan("s").clearings
    assert summarizer.requests == []


def test_what_would_be_too_little_by_then_is_not_prepared_yet() -> None:
    """With a threshold far below the trigger, most of what will be there then has not even come."""
    summarizer = SlowSummarizer(StructuredSummary(narrative="They talked."))
    manager, _ = watched(summarizer, policy={"prefetch_pct": 0.4, "target_pct": 0.3})
    asked: list[int] = []
    for pairs in range(5, 12):  # 402 to 882
        manager.preflight("s", [system("be careful"), *dialogue(pairs, words=40)])
        wait_until_prepared(manager)
        asked.append(len(summarizer.requests))
    assert asked[0] == 0
    assert asked[-1] == 1
    assert is_written_ahead(manager)


def test_where_too_little_can_go_nothing_is_prepared() -> None:
    summarizer = SlowSummarizer()
    manager, _ = watched(summarizer, window=10_000)
    manager.preflight("s", [system("rule " * 5_700), *dialogue(8, words=100)])  # 7,300, of which 5,700 stay in any case
    wait_until_prepared(manager)
    assert summarizer.requests == []


def test_for_what_was_prepared_a_little_less_is_kept() -> None:
    """What had to be summarised to make room for what was to come is among the newest few when the trigger comes."""
    summarizer = SlowSummarizer()
    manager, sink = watched(summarizer, policy={"keep_recent_turns": 4, "keep_tool_io_pairs": 1})
    large = [system("be careful"), *dialogue(1, words=120), *dialogue(4, words=60)]  # 722: a large pair and four others
    manager.preflight("s", large)
    wait_until_prepared(manager)
    assert len(summarizer.requests[0].messages) >= 2, "the large one at least"
    manager.preflight("s", [*large, *tool_run(4, words=32)[1:]])  # 858: as it came, all four others could be kept
    assert is_written_ahead(manager)
    assert len(summarizer.requests) == 1
    assert notices(sink) == []


def test_one_that_would_not_free_enough_is_not_used_and_the_next_one_is_tried() -> None:
    summarizer = SlowSummarizer()
    manager, sink = watched(summarizer)
    manager.preflight("s", HISTORY)
    wait_until_prepared(manager)
    jump = [*HISTORY, *dialogue(8, words=40)]  # 1,362: without the prepared span still 802
    manager.preflight("s", jump)
    assert not is_written_ahead(manager)
    assert manager.status("s").used_tokens < 700
    assert any("would not free enough" in notice for notice in notices(sink))
    while manager.status("s").used_tokens < 700:
        jump += dialogue(1, words=40)
        manager.preflight("s", jump)
    wait_until_prepared(manager)
    manager.preflight("s", [*jump, *dialogue(2, words=40)])
    assert is_written_ahead(manager)


# -- nobody waits -----------------------------------------------------------------------------------------------------


def test_the_agent_does_not_wait_for_it() -> None:
    summarizer = SlowSummarizer(is_open=False)
    manager, _ = watched(summarizer)
    assert manager.preflight("s", HISTORY) == HISTORY
    assert manager.preflight("s", [*HISTORY, user("still below")])[-1] == user("still below")
    summarizer.gate.set()
    wait_until_prepared(manager)
    assert len(summarizer.requests) == 1  # asked for once, although two calls were above the threshold


def test_a_session_is_prepared_once_at_a_time_and_again_when_it_has_grown() -> None:
    gate, prepared = threading.Event(), list[int]()

    def prepare(session: Session) -> Steps[None]:
        yield lambda: gate.wait(20)
        prepared.append(session.prompt_tokens)

    preparer, session = InProcessPrefetcher(prepare, run_steps), Session("s")
    for tokens in (100, 200):
        session.prompt.tokens = tokens
        preparer(session)
    gate.set()
    assert preparer.wait(20)
    assert prepared == [100], "one at a time, however much the session grows"
    for tokens in (105, 110):
        session.prompt.tokens = tokens
        preparer(session)
        assert preparer.wait(20)
    assert prepared == [100, 110]


def test_one_that_is_not_ready_at_the_trigger_is_used_later_if_everything_still_fits() -> None:
    summarizer = SlowSummarizer(is_open=False)
    manager, sink = watched(summarizer)
    manager.preflight("s", HISTORY)
    assert manager.preflight("s", MORE) == MORE
    decision = sink.of(TriggerDecisionEvent)[-1]
    assert not decision.triggered
    assert "trigger is 850; a summary is being prefetched" in decision.reason
    decided = manager.status("s").decision
    assert decided is not None
    assert "being prefetched" in decided.reason
    summarizer.gate.set()
    wait_until_prepared(manager)
    assert manager.preflight("s", MORE) != MORE, "the very same call again, now that it is ready"
    assert is_written_ahead(manager)
    assert len(summarizer.requests) == 1


def test_who_no_longer_fits_waits_for_it_instead_of_paying_twice() -> None:
    summarizer = SlowSummarizer(is_open=False)
    manager, _ = watched(summarizer)
    manager.preflight("s", HISTORY)
    threading.Timer(0.2, summarizer.gate.set).start()
    assert manager.preflight("s", TOO_MUCH) != TOO_MUCH
    assert is_written_ahead(manager)
    assert len(summarizer.requests) == 1


def test_who_waits_for_one_that_has_not_begun_writes_it_alone() -> None:
    summarizer = SlowSummarizer(is_open=False)
    manager, _ = watched(summarizer)
    preparer_of(manager).max_threads = 1
    manager.preflight("another", HISTORY)
    manager.preflight("s", HISTORY)
    threading.Timer(0.2, summarizer.gate.set).start()
    manager.preflight("s", TOO_MUCH)
    assert not is_written_ahead(manager)
    wait_until_prepared(manager)
    assert len(summarizer.requests) == 2


def test_an_event_loop_goes_on_while_a_call_waits() -> None:
    summarizer = SlowSummarizer(is_open=False)
    manager, _ = watched(summarizer)

    async def play() -> int:
        assert await manager.apreflight("s", HISTORY) == HISTORY
        call, ticks = asyncio.create_task(manager.apreflight("s", TOO_MUCH)), 0
        while not call.done():
            await asyncio.sleep(0.005)
            ticks += 1
            if ticks == 20:
                assert not call.done()
                summarizer.gate.set()
        assert await call != TOO_MUCH
        return ticks

    assert asyncio.run(play()) >= 20
    assert is_written_ahead(manager)


def test_an_async_summariser_is_prepared_with_from_both_kinds_of_callers() -> None:
    asked: list[str] = []

    async def writer(request: SummaryRequest) -> StructuredSummary:
        asked.append(threading.current_thread().name)
        await asyncio.sleep(0.01)
        return extractive_summary(request)

    async def play(manager: CompactManager) -> None:
        await manager.apreflight("s", HISTORY)
        await asyncio.to_thread(wait_until_prepared, manager)
        await manager.apreflight("s", MORE)

    manager, _ = watched(writer)
    asyncio.run(play(manager))
    assert is_written_ahead(manager)
    other, _ = watched(writer)
    other.preflight("s", HISTORY)
    wait_until_prepared(other)
    other.preflight("s", MORE)
    assert is_written_ahead(other)
    assert len(asked) == 2
    assert "MainThread" not in asked


# -- what goes wrong --------------------------------------------------------------------------------------------------


def test_a_failure_while_preparing_harms_nobody_and_is_told_once() -> None:
    summarizer = FailingSummarizer()
    manager, sink = watched(summarizer)
    assert manager.preflight("s", HISTORY) == HISTORY
    wait_until_prepared(manager)
    manager.preflight("s", HISTORY)
    wait_until_prepared(manager)
    failures = sink.of(CompactionErrorEvent)
    assert [(failure.error_type, failure.message) for failure in failures] == [("ConnectionError", "away")]
    assert "written when it is needed" in failures[0].fallback


def test_after_a_failure_it_is_tried_again_once_the_prompt_has_grown() -> None:
    summarizer = FailingSummarizer()
    manager, _ = watched(summarizer)
    for pairs in (9, 10):  # 722, 802
        manager.preflight("s", [system("be careful"), *dialogue(pairs, words=40)])
        wait_until_prepared(manager)
    assert len(summarizer.requests) == 2


def test_closing_waits_for_what_is_under_way_so_that_it_serves_the_next_process(tmp_path: Path) -> None:
    summarizer = SlowSummarizer(is_open=False)
    manager, sink = watched(summarizer, state={"url": f"sqlite:///{tmp_path}/state.db"})
    manager.preflight("s", HISTORY)
    threading.Timer(0.2, summarizer.gate.set).start()
    manager.close()
    assert len(sink.of(SummaryCreatedEvent)) == 1


def test_closing_does_not_wait_for_ever(caplog: pytest.LogCaptureFixture) -> None:
    summarizer = SlowSummarizer(is_open=False)
    manager, _ = watched(summarizer)
    manager.preflight("s", HISTORY)
    preparer_of(manager).close_seconds = 0.1
    start = time.monotonic()
    with caplog.at_level(logging.WARNING, logger="compact"):
        manager.close()
    assert time.monotonic() - start < 5
    assert "still being prefetched" in caplog.text
    summarizer.gate.set()
    wait_until_prepared(manager)


def test_nothing_is_kept_of_what_is_over() -> None:
    manager, _ = watched(SlowSummarizer())
    preparer = preparer_of(manager)
    for number in range(20):
        manager.preflight(f"s{number}", HISTORY)
        wait_until_prepared(manager)
        manager.delete(f"s{number}")
    gc.collect()
    assert len(preparer._attempts) == 0
    deadline = time.monotonic() + 10
    while any(thread.name == "compact-prefetch" for thread in threading.enumerate()):
        assert time.monotonic() < deadline, "a thread without work ends"
        time.sleep(0.01)


# -- what code writes --------------------------------------------------------------------------------------------------


def test_a_summary_by_code_is_prefetched_too() -> None:
    manager, sink = watched(None)
    assert preparer_of(manager).is_quick
    manager.preflight("s", HISTORY)
    wait_until_prepared(manager)
    assert len(sink.of(SummaryCreatedEvent)) == 1
    manager.preflight("s", MORE)
    assert is_written_ahead(manager)
    assert len(sink.of(SummaryCreatedEvent)) == 1, "the call that crosses the trigger takes what is there"


@pytest.mark.parametrize("prefetch", ["never", "always", "auto"])
def test_whether_a_summary_by_code_is_prefetched_can_be_chosen(prefetch: str) -> None:
    manager, _ = watched(None, summarizer={"prefetch": prefetch})
    assert (manager._prefetcher is None) == (prefetch == "never")
    assert watched(SlowSummarizer(), summarizer={"prefetch": "never"})[0]._prefetcher is None
    slow, _ = watched(SlowSummarizer(), summarizer={"prefetch": prefetch})
    assert prefetch == "never" or not preparer_of(slow).is_quick


def grown_prompts(manager: CompactManager, *, settle: bool) -> list[list[Wire]]:
    """The prompts of a session that grows through some compactions."""
    prompts: list[list[Wire]] = []
    for pairs in range(6, 40):
        prompts.append(manager.preflight("s", [system("be careful"), *dialogue(pairs, words=40)]))
        if settle:
            wait_until_prepared(manager)
    return prompts


def test_the_same_calls_have_the_same_prompts_however_busy_the_process_is() -> None:
    idle, _ = watched(None)
    expected = grown_prompts(idle, settle=True)
    assert summary_of(idle).version >= 3
    assert is_written_ahead(idle)
    hasty, sink = watched(None)
    assert grown_prompts(hasty, settle=False) == expected
    assert not [event for event in sink.of(TriggerDecisionEvent) if "is being prefetched" in event.reason]
    no_thread_free, _ = watched(None)
    preparer_of(no_thread_free).max_threads = 0
    assert grown_prompts(no_thread_free, settle=False) == expected
    slow, _ = watched(None)
    write = preparer_of(slow).prefetch

    def write_slowly(session: Session) -> Steps[object]:
        yield lambda: time.sleep(0.05)
        return (yield from write(session))

    preparer_of(slow).prefetch = write_slowly
    assert grown_prompts(slow, settle=False) == expected


def test_the_same_calls_have_the_same_prompts_whichever_process_makes_them(tmp_path: Path) -> None:
    stays, _ = watched(None)
    expected = grown_prompts(stays, settle=True)
    for pairs, prompt in zip(range(6, 40), expected, strict=True):
        with watched(None, state={"url": f"sqlite:///{tmp_path}/state.db"}, storage={"adapter": "none"})[0] as manager:
            assert manager.preflight("s", [system("be careful"), *dialogue(pairs, words=40)]) == prompt


@pytest.mark.parametrize("is_once", [True, False])
def test_a_session_is_looked_at_once_for_each_plan_if_so_asked(is_once: bool) -> None:
    manager, _ = watched(None, summarizer={"prefetch": "never"})
    manager.preflight("s", HISTORY)
    claiming = manager._engine.compactor.claiming
    with manager._open("s") as session:
        begun: list[bool] = []
        for _ in range(2):
            begun.append(run_steps(claiming.begin_prefetch(session, is_once=is_once)))
            run_steps(claiming.end_prefetch(session))
    assert begun == [True, not is_once]


@pytest.mark.parametrize("is_in_database", [True, False])
def test_of_looking_once_for_each_plan_only_the_newest_plan_leaves_a_claim(
    is_in_database: bool, tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path}/state.db" if is_in_database else "memory:"
    manager, sink = watched(None, state={"url": url}, storage={"adapter": "none"})
    grown_prompts(manager, settle=True)
    manager.restore("s", 2)
    assert manager.current_plan("s").version >= 4
    begins = "prefetch on plan "
    if is_in_database:
        with closing(sqlite3.connect(tmp_path / "state.db")) as database:
            keys = [key for (key,) in database.execute("select span_key from compact_summaries")]
    else:
        keys = list(manager.store.claims._claims["s"])
    assert {key for key in keys if key.startswith("prefetch")} <= {f"{begins}{manager.current_plan('s').version}"}
    assert keys, "summaries stay"
    assert not sink.of(CompactionErrorEvent)


def test_a_prefetch_by_code_that_fails_leaves_the_turn_to_itself() -> None:
    manager, _ = watched(None)

    def fail(session: Session) -> Steps[None]:
        yield lambda: None
        raise RuntimeError("no")

    preparer_of(manager).prefetch = fail
    for threads in (4, 0):
        preparer_of(manager).max_threads = threads
        session_id = f"s{threads}"
        manager.preflight(session_id, HISTORY)
        manager.preflight(session_id, MORE)
        summary = manager.current_plan(session_id).summary
        assert summary is not None
        assert ", prefetched" not in summary.reason


# -- several processes ------------------------------------------------------------------------------------------------

_PREPARE = """
from compact import CompactConfig, CompactManager
from compact.summarizers.extractive import extractive_summary
from compact.testing import WordTokenizer, dialogue, system

config = CompactConfig(
    max_context_tokens=1_000,
    policy={{"hard_cap_buffer": 0, "keep_recent_turns": 2}},
    telemetry={{"exporter": "none"}},
    storage={{"adapter": "none"}},
    state={{"url": {url!r}}},
)
with CompactManager(config, tokenizer=WordTokenizer(), summarizer=extractive_summary) as manager:
    manager.preflight("s", [system("be careful"), *dialogue(9, words=40)])
"""


def test_a_resumed_session_uses_what_another_process_has_prepared(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/state.db"
    subprocess.run([sys.executable, "-c", _PREPARE.format(url=url)], check=True, timeout=60)
    summarizer = FailingSummarizer()
    with watched(summarizer, state={"url": url})[0] as manager:
        manager.preflight("s", HISTORY)
        wait_until_prepared(manager)
        manager.preflight("s", MORE)
        assert is_written_ahead(manager)
    assert summarizer.requests == []


def test_two_processes_do_not_prepare_the_same_session(tmp_path: Path) -> None:
    slow, failing = SlowSummarizer(is_open=False), FailingSummarizer()
    url = f"sqlite:///{tmp_path}/state.db"
    one, other = watched(slow, state={"url": url})[0], watched(failing, state={"url": url})[0]
    with one, other:
        one.preflight("s", HISTORY)
        wait_until_asked(slow)
        other.preflight("s", HISTORY)
        wait_until_prepared(other)
        assert other.preflight("s", MORE) == MORE, "somebody is at it, and it still fits"
        threading.Timer(0.2, slow.gate.set).start()
        other.preflight("s", TOO_MUCH)
        assert is_written_ahead(other)
    assert len(slow.requests) == 1
    assert failing.requests == []


# -- how long it takes ------------------------------------------------------------------------------------------------


def turns_of(number: int) -> list[list[Wire]]:
    """What one turn adds before each of its two calls."""
    call, result = tool_run(number, words=60)[-2:]
    asked = user(f"question-{number}" + " word" * 60)
    return [[asked], [call, result, assistant(f"answer-{number}" + " word" * 60)]]


def test_with_a_slow_summariser_nearly_every_call_is_quick() -> None:
    """A small one of benchmarks/background.py: 200 turns of 40 ms, and a summariser that takes 300 ms."""

    def writer(request: SummaryRequest) -> StructuredSummary:
        time.sleep(0.3)
        return StructuredSummary(narrative="They went on with the questions.")

    config = CompactConfig(max_context_tokens=16_000, telemetry={"exporter": "none"})
    history, times, summaries = [system("be careful")], list[float](), list[SummarizationRecord]()
    with CompactManager(config, tokenizer=WordTokenizer(), summarizer=writer) as manager:
        for number in range(1, 201):
            for added in turns_of(number):
                history += added
                before = time.thread_time()
                manager.preflight("s", history)
                times.append(time.thread_time() - before)
                standing = manager.current_plan("s").summary
                if standing and (not summaries or summaries[-1].version < standing.version):
                    summaries.append(standing)
                time.sleep(0.02)
    waited_for = [summary for summary in summaries if ", prefetched" not in summary.reason]
    assert len(summaries) >= 3
    assert len(waited_for) <= 1, "a machine that is busy with other things may be late once"
    times.sort()
    # Only the time this thread computed: other tests run beside it.
    assert times[int(0.9 * len(times))] < 0.1
