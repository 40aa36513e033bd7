"""Calls from one event loop: none of them blocks it, starves the process, or waits for another for ever."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pytest

from compact import CompactConfig, CompactManager, StructuredSummary, SummaryRequest, runner
from compact.adapters.support import SessionFinder, UsageFeedback, aobserve_usage
from compact.core.audit.records import Commit, SessionHead
from compact.core.engine.events import CompactionCompletedEvent, CompactionErrorEvent
from compact.core.errors import WaitTimeout
from compact.core.steps import SlowStep, Steps, StoreStep
from compact.prefetching.background import InProcessPrefetcher
from compact.runner import arun_steps, run_steps
from compact.stores.memory import InMemoryCompactionStore
from compact.summarizers.extractive import extractive_summary
from compact.testing import RecordingSink, Wire, WordTokenizer, dialogue, user
from compact.waiting.limits import CallThreads, WaitLimits, stalled_stores
from sizes import SOAK
from soak_counts import SoakCounts
from stalls import own_clock, stall_limit, watched_loop

HELLO = [user("Hello")]
_LINES = (
    "def total(invoice: Invoice) -> Decimal:",
    "    return sum((line.amount for line in invoice.lines), Decimal(0))",
    "    raise ValueError(f'no rate for {country} on {day}')",
    "INFO  billing.worker: sent 12 invoices to https://example.org/v2/invoices in 0.31 s",
    "ERROR billing.worker: 503 from the ledger, retry 3 of 5",
)


def slow_summarizer(seconds: float) -> Callable[[SummaryRequest], StructuredSummary]:
    def summarize(request: SummaryRequest) -> StructuredSummary:
        time.sleep(seconds)
        return StructuredSummary(narrative=f"{len(request.messages)} messages about billing.")

    return summarize


def long_session(tokens: int) -> list[Wire]:
    """Return an agent's session of about so many tokens: asks, calls, and results that look like a program's output."""
    random = Random(tokens)
    history: list[Wire] = [user("Port the billing service to the new API. Never touch the invoices of closed years.")]
    for number in range(tokens // 2_960):
        path = f"src/billing/part_{random.randrange(200)}.py"
        call_id = f"call-{number}"
        call = {"name": "read_file", "arguments": json.dumps({"path": path})}
        calls = [{"id": call_id, "type": "function", "function": call}]
        lines = (f"{n:4} {random.choice(_LINES)} {random.getrandbits(40):x}" for n in range(110))
        history += [
            {"role": "assistant", "content": f"I read {path} next.", "tool_calls": calls},
            {"role": "tool", "tool_call_id": call_id, "content": "\n".join(lines)},
        ]
        if number % 5 == 4:
            history += [{"role": "assistant", "content": f"Part {number} is done."}, user(f"Now part {number + 1}.")]
    return history


def manager_at(folder: Path, *, window: int = 128_000, **parts: Any) -> CompactManager:
    config = CompactConfig(
        max_context_tokens=window,
        state={"url": f"sqlite:///{folder / 'compact.db'}"},
        storage={"path": str(folder / "archive")},
        telemetry={"exporter": "none"},
    )
    return CompactManager(config, **parts)


async def one_user(manager: CompactManager, session_id: str) -> None:
    await manager.apreflight(session_id, HELLO)
    await aobserve_usage(manager, session_id, 9)


def test_a_crowd_that_says_hello_at_once_is_served(tmp_path: Path) -> None:
    """They share a session, and each reports usage while others wait for it."""

    async def run() -> None:
        async with manager_at(tmp_path) as manager, asyncio.timeout(20):
            await asyncio.gather(*(one_user(manager, "all") for _ in range(200)))
            assert (await manager.astatus("all")).messages_in_log == 1

    asyncio.run(run())


def test_late_usage_of_a_crowd_is_taken_in(tmp_path: Path) -> None:
    async def report(manager: CompactManager, usage: UsageFeedback, call: int) -> None:
        usage.report("all", call, 9)
        await usage.aapply(manager, "all")

    async def run() -> None:
        usage = UsageFeedback()
        async with manager_at(tmp_path) as manager, asyncio.timeout(20):
            await manager.apreflight("all", HELLO)
            calls = [usage.begin("all") for _ in range(100)]
            preflights = (manager.apreflight("all", HELLO) for _ in calls)
            await asyncio.gather(*preflights, *(report(manager, usage, call) for call in calls))
            newest = manager.model_calls("all")
        assert any(call.tokens_reported == 9 for call in newest)

    asyncio.run(run())


def test_slow_summaries_stall_neither_other_sessions_nor_the_process(tmp_path: Path) -> None:
    history = long_session(40_000)
    settings: dict[str, Any] = {"summarizer": slow_summarizer(2.0), "window": 32_000}

    async def quick(manager: CompactManager) -> float:
        started = own_clock()
        await manager.apreflight("quick", HELLO)
        await asyncio.get_running_loop().getaddrinfo("127.0.0.1", 80, type=socket.SOCK_STREAM)
        return own_clock() - started

    async def run() -> None:
        async with manager_at(tmp_path, **settings) as manager, watched_loop() as longest:
            slow = [asyncio.create_task(manager.amanual_compact(f"slow-{n}", history)) for n in range(12)]
            await asyncio.sleep(1.0)
            waits = [await quick(manager) for _ in range(5)]
            assert not any(task.done() for task in slow), "the quick calls were made while the slow ones waited"
            prompts = await asyncio.gather(*slow)
        assert max(waits) < stall_limit()
        assert all(len(prompt) < len(history) for prompt in prompts)
        assert longest.seconds < stall_limit()

    asyncio.run(run())


def test_the_same_hello_at_the_same_time_is_another_conversation() -> None:
    busy = set[str]()
    finder = SessionFinder("chat", is_busy=busy.__contains__)
    first = finder.find(HELLO)
    assert finder.find(HELLO) == first  # made again
    busy.add(first)
    second = finder.find(HELLO)
    assert second != first
    answer: Wire = {"role": "assistant", "content": "Hi"}
    assert finder.find([*HELLO, answer, user("more")]) in {first, second}


# -- cancelled --------------------------------------------------------------------------------------------------------


def test_a_call_that_is_made_again_after_a_cancel_does_not_wait_for_the_first_one(tmp_path: Path) -> None:
    history = long_session(40_000)
    asked = threading.Event()
    end = threading.Event()
    calls: list[SummaryRequest] = []

    def summarize(request: SummaryRequest) -> StructuredSummary:
        calls.append(request)
        asked.set()
        if len(calls) == 1:
            end.wait(30)
        return extractive_summary(request)

    async def run() -> None:
        async with manager_at(tmp_path, summarizer=summarize, window=32_000) as manager:
            first = asyncio.create_task(manager.amanual_compact("s", history))
            while not asked.is_set():
                await asyncio.sleep(0.01)
            first.cancel()
            with pytest.raises(asyncio.CancelledError):
                await first
            started = time.perf_counter()
            prompt = await manager.amanual_compact("s", history)
            assert time.perf_counter() - started < 10, "a claim that is not given back is held for 30 s"
            assert len(prompt) < len(history)
            end.set()

    asyncio.run(run())


def test_wherever_a_call_is_cancelled_the_next_one_is_served_at_once(tmp_path: Path) -> None:
    history = long_session(12_000)

    async def run() -> None:
        settings: dict[str, Any] = {"summarizer": slow_summarizer(0.02), "window": 9_000}
        async with manager_at(tmp_path, **settings) as manager, asyncio.timeout(60):
            for number in range(25):
                session_id = f"s{number}"
                first = asyncio.create_task(manager.apreflight(session_id, history))
                await asyncio.sleep(number * 0.004)
                first.cancel()
                await asyncio.wait([first])
                started = time.perf_counter()
                await manager.apreflight(session_id, history)
                assert time.perf_counter() - started < 10, f"cancelled after {number * 4} ms"

    asyncio.run(run())


def test_a_claim_that_is_granted_in_the_moment_of_a_cancel_is_given_back() -> None:
    granting, granted = threading.Event(), threading.Event()
    given_back: list[bool] = []

    def claim() -> None:
        granting.set()
        assert granted.wait(10)

    def steps() -> Steps[None]:
        yield claim
        try:
            yield SlowStep(lambda: None)
        except GeneratorExit:
            given_back.append(True)
            raise

    async def run() -> None:
        task = asyncio.create_task(arun_steps(steps()))
        while not granting.is_set():
            await asyncio.sleep(0.001)
        task.cancel()
        await asyncio.sleep(0.01)
        assert not task.done(), "a step of the store is waited for"
        task.cancel()
        granted.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert given_back == [True]

    asyncio.run(run())


@dataclass(frozen=True, slots=True)
class CountingThreads(WordTokenizer):
    """Notes which threads count."""

    threads: set[str] = field(default_factory=set[str])

    def count_text(self, text: str) -> int:
        self.threads.add(threading.current_thread().name)
        return WordTokenizer.count_text(self, text)


def test_no_work_is_done_in_the_thread_of_the_loop(tmp_path: Path) -> None:
    tokenizer = CountingThreads()

    async def run() -> None:
        async with manager_at(tmp_path, window=4_000, tokenizer=tokenizer) as manager:
            tokenizer.threads.clear()
            history = long_session(30_000)
            for length in (20, len(history)):
                await manager.apreflight("s", history[:length], instructions="Be brief.", tools=[{"name": "read_file"}])
            await manager.amanual_compact("s", history)
            await manager.aobserve_usage("s", 900)
            assert len(manager.plans("s")) > 1, "it was compacted"

    asyncio.run(run())
    assert tokenizer.threads
    assert all(name.startswith("compact-") for name in tokenizer.threads), tokenizer.threads


# -- the loop's own clock ---------------------------------------------------------------------------------------------


async def longest_stall(folder: Path, tokens: int, window: int) -> float:
    """Return the longest stall of the loop while a session grows to its window and is compacted."""
    history = long_session(tokens)
    async with manager_at(folder, window=window) as manager:
        await manager.apreflight("warm", long_session(6_000))
        async with watched_loop() as longest:
            for length in range(len(history) // 2, len(history), 4):
                await manager.apreflight("s", history[:length])
            prompt = await manager.apreflight("s", history)
        assert prompt != history, "it was compacted"
    return longest.seconds


# Measured on two quiet cores: 18 ms and 45 ms. The limits are those of a machine that does other things as well; a soak
# wants the 50 ms that are promised.
@pytest.mark.soak
@pytest.mark.parametrize(("tokens", "limit"), [(120_000, 0.050 if SOAK else 0.100), (1_000_000, 0.250)])
def test_the_loop_gets_its_turn(tmp_path: Path, tokens: int, limit: float, soak: SoakCounts) -> None:
    stalls = [asyncio.run(longest_stall(tmp_path / str(n), tokens, tokens)) for n in range(3)]
    least, most = 1000 * min(stalls), 1000 * max(stalls)
    soak.figure(f"{tokens:,} tokens compacted: the loop waited {least:.0f} to {most:.0f} ms at most, in three runs")
    assert min(stalls) < limit, f"longest stalls in ms: {[round(1000 * stall, 1) for stall in stalls]}"


# -- calls of a store -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("asks_store", [False, True], ids=["worker first", "store thread first"])
def test_steps_that_ask_a_store_go_on_in_its_thread(asks_store: bool) -> None:
    threads: list[str] = []

    def noted() -> str:
        threads.append(threading.current_thread().name)
        return threads[-1]

    def steps() -> Steps[list[str]]:
        noted()
        first = yield StoreStep(noted, "store")
        noted()
        second = yield StoreStep(noted, "store")
        noted()
        return [first, second]

    asked = asyncio.run(arun_steps(steps(), WaitLimits(store_seconds=5.0), asks_store=asks_store))
    assert asked == [threads[1], threads[3]]
    assert all(name.startswith("compact-store") for name in threads[0 if asks_store else 1 :]), threads
    assert len(set(threads[1:])) == 1, threads


def test_a_store_that_hangs_is_left_and_its_late_answer_goes_nowhere() -> None:
    end, answered = threading.Event(), threading.Event()
    seen: list[object] = []

    def hangs() -> str:
        end.wait(10)
        answered.set()
        return "too late"

    def slow() -> str:
        end.set()
        assert answered.wait(10)
        time.sleep(0.2)  # the steps wait for this, and the thread of the store could go on with them
        return "slow"

    def steps() -> Steps[str]:
        seen.append((yield StoreStep(lambda: "in time", "a store")))
        try:
            seen.append((yield StoreStep(hangs, "a store")))
        except WaitTimeout:
            seen.append("left")
        seen.append((yield SlowStep(slow)))
        return "done"

    assert asyncio.run(arun_steps(steps(), WaitLimits(store_seconds=0.2), asks_store=True)) == "done"
    assert seen == ["in time", "left", "slow"]


def test_what_a_store_grants_in_the_moment_of_a_cancel_is_given_back() -> None:
    granting, granted = threading.Event(), threading.Event()
    given_back: list[object] = []

    def claim() -> str:
        granting.set()
        assert granted.wait(10)
        return "a claim"

    def steps() -> Steps[None]:
        claimed = yield StoreStep(claim, "store")
        try:
            yield StoreStep(lambda: given_back.append("asked again"), "store")
        except GeneratorExit:
            given_back.append(claimed)
            raise

    async def run() -> None:
        task = asyncio.create_task(arun_steps(steps(), WaitLimits(store_seconds=10.0), asks_store=True))
        while not granting.is_set():
            await asyncio.sleep(0.001)
        task.cancel()
        await asyncio.sleep(0.01)
        assert not task.done(), "the store is waited for"
        granted.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())
    assert given_back == ["a claim"]


# -- a queue of our own ------------------------------------------------------------------------------------------------


def asking(step: Callable[[], Any], *, times: int = 1) -> Steps[list[Any]]:
    answers: list[Any] = []
    for _ in range(times):
        answers.append((yield step))
    return answers


def nap() -> None:
    time.sleep(0.1)


@pytest.fixture
def two_threads(monkeypatch: pytest.MonkeyPatch) -> int:
    """Leave two threads of each kind to all calls: a queue without a crowd of threads, which would be slow itself."""
    for pool in (runner._store_threads, runner._waiters):
        monkeypatch.setattr(runner, pool.__name__, cache(lambda name=pool.__name__: CallThreads(name.strip("_"), 2)))
    return 2


@pytest.mark.parametrize("step", [StoreStep(nap, "a store"), SlowStep(nap, "a model", 1.0)], ids=["store", "slow"])
@pytest.mark.parametrize("is_async", [True, False], ids=["loop", "threads"])
def test_a_queue_for_our_own_threads_is_not_taken_for_a_slow_store(
    step: StoreStep | SlowStep, is_async: bool, two_threads: int
) -> None:
    """Each answer takes a tenth of the time it may take, and the last of those who ask begins after that time."""
    limits, crowd = WaitLimits(store_seconds=1.0), two_threads * 14

    async def run() -> None:
        await asyncio.gather(*(arun_steps(asking(step), limits) for _ in range(crowd)))

    started = time.monotonic()
    if is_async:
        asyncio.run(run())
    else:
        with ThreadPoolExecutor(crowd) as pool:
            for done in [pool.submit(run_steps, asking(step), limits) for _ in range(crowd)]:
                done.result()
    assert time.monotonic() - started > 1.2, "some waited longer than an answer may take"


@pytest.mark.parametrize("is_async", [True, False], ids=["loop", "thread"])
def test_waiting_for_a_thread_ends_with_the_time_of_the_call(is_async: bool) -> None:
    end = threading.Event()
    hangs = StoreStep(lambda: end.wait(30), "hangs")
    patient, hasty = WaitLimits(store_seconds=60.0), WaitLimits(call_seconds=0.2, store_seconds=20.0)
    others = [threading.Thread(target=run_steps, args=(asking(hangs), patient)) for _ in range(32)]
    for other in others:
        other.start()
    try:
        steps = asking(StoreStep(lambda: "answered", "free"))
        with pytest.raises(WaitTimeout, match="no thread was free") as raised:
            asyncio.run(arun_steps(steps, hasty)) if is_async else run_steps(steps, hasty)
        assert "policy.max_wait_seconds" in str(raised.value)
        assert stalled_stores()._stalled == {}, "it was never asked, so it does not hang"
    finally:
        end.set()
        for other in others:
            other.join()


def test_a_call_that_waits_for_a_thread_gets_one_when_those_that_hang_are_left() -> None:
    end, limits = threading.Event(), WaitLimits(store_seconds=0.3)
    hangs, free = StoreStep(lambda: end.wait(30), "hangs"), StoreStep(lambda: "answered", "free")

    async def run() -> list[Any]:
        hanging = [asyncio.create_task(arun_steps(asking(hangs), limits)) for _ in range(32)]
        await asyncio.sleep(0.1)
        answers = await asyncio.wait_for(arun_steps(asking(free, times=2), limits), 10)
        told = await asyncio.gather(*hanging, return_exceptions=True)
        assert all(isinstance(each, WaitTimeout) for each in told)
        return answers

    try:
        assert asyncio.run(run()) == ["answered", "answered"]
    finally:
        end.set()


_FROZEN = """
import asyncio, sys, threading, time
from compact.core.steps import SlowStep, StoreStep
from compact.runner import arun_steps, run_steps
from compact.waiting.limits import WaitLimits

def call():
    time.sleep(0.5)  # it is frozen here
    time.sleep(0.3)
    return "answered"

def steps():
    return (yield {step})

run = run_steps if sys.argv[1] == "thread" else lambda *args: asyncio.run(arun_steps(*args))
print("asks", flush=True)
print(run(steps(), WaitLimits(store_seconds=1.0)))
"""


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="a process cannot be stopped here")
@pytest.mark.parametrize(
    "step", ["StoreStep(call, 'a store')", "SlowStep(call, 'a model', 1.0)"], ids=["store", "slow"]
)
@pytest.mark.parametrize("way", ["thread", "loop"])
def test_a_process_that_was_frozen_does_not_take_its_store_for_a_slow_one(step: str, way: str) -> None:
    """It takes less than a second to answer, in the midst of which the process stands still for four."""
    code = [sys.executable, "-c", _FROZEN.format(step=step), way]
    with subprocess.Popen(code, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "asks\n"
        time.sleep(0.25)
        process.send_signal(signal.SIGSTOP)
        time.sleep(4.0)
        process.send_signal(signal.SIGCONT)
        assert process.stdout.read() == "answered\n"


def test_a_loop_starts_no_threads_for_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever starts a thread waits until it runs, which takes long in a busy process."""
    started: list[tuple[str, str]] = []
    start = threading.Thread.start

    def noted(thread: threading.Thread) -> None:
        started.append((threading.current_thread().name, thread.name))
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", noted)
    threads = CallThreads("noted", 2)

    async def run() -> None:
        await asyncio.gather(*(asyncio.wrap_future(threads.submit(nap)) for _ in range(4)))

    asyncio.run(run())
    assert [by for by, name in started if name == "compact-noted"] == ["compact-starter"] * 2


def test_a_crowd_that_needs_summaries_at_once_is_served(tmp_path: Path) -> None:
    """No thread is free to prefetch them: each turn writes its own, and must not wait for the threads of the others."""
    sink, crowd = RecordingSink(), [f"s{number}" for number in range(40)]

    async def run() -> None:
        parts: dict[str, Any] = {"tokenizer": WordTokenizer(), "on_event": sink}
        async with manager_at(tmp_path, window=2_500, **parts) as manager, asyncio.timeout(60):
            prefetcher = manager._prefetcher
            assert isinstance(prefetcher, InProcessPrefetcher)
            prefetcher.max_threads = 0
            for pairs in (12, 14):  # a summary is prefetched, then needed
                history = dialogue(pairs, words=40)
                await asyncio.gather(*(manager.apreflight(session_id, history) for session_id in crowd))

    asyncio.run(run())
    assert [event.message for event in sink.of(CompactionErrorEvent)] == []
    assert len({event.session_id for event in sink.of(CompactionCompletedEvent)}) == len(crowd)


# -- a prompt that is known before it is stored -----------------------------------------------------------------------


class SlowToWrite(InMemoryCompactionStore):
    """Writes when it is let."""

    blocks = True

    def __init__(self) -> None:
        super().__init__()
        self.may_write = threading.Event()

    def commit(self, commit: Commit) -> SessionHead:
        assert self.may_write.wait(10)
        return super().commit(commit)


def test_a_prompt_is_there_before_it_is_stored_and_a_new_plan_only_once_it_is(tmp_path: Path) -> None:
    store, history = SlowToWrite(), long_session(12_000)

    async def run() -> None:
        async with manager_at(tmp_path, window=9_000, store=store) as manager, asyncio.timeout(60):
            prompt, stored = await manager.abegin_preflight("s", HELLO)
            assert prompt[0] is HELLO[0]
            assert not stored.done()
            assert store.head("s").last_seq == 0, "it is not written yet"
            store.may_write.set()
            assert await stored == prompt
            assert store.head("s").last_seq == 1

            store.may_write.clear()
            compacted = asyncio.create_task(manager.abegin_preflight("long", history))
            await asyncio.sleep(1.0)
            assert not compacted.done(), "a plan that nobody has stored may be lost"
            store.may_write.set()
            prompt, stored = await compacted
            assert stored.done()
            assert prompt != history
            assert len(manager.plans("long")) == 1

    asyncio.run(run())


def test_a_call_is_on_record_as_it_is_without_a_prompt_that_is_known_first(tmp_path: Path) -> None:
    """Also what of it the provider has cached: that is told by the call before it."""
    history = dialogue(6, words=20)

    async def run() -> None:
        async with manager_at(tmp_path) as manager, asyncio.timeout(60):
            for end in (4, 8, 12):
                await manager.apreflight("usual", history[:end])
                _, stored = await manager.abegin_preflight("begun", history[:end])
                await stored
            usual, begun = (manager.model_calls(session_id) for session_id in ("usual", "begun"))
            assert [call.details for call in begun] == [call.details for call in usual]
            cached = [call.details["tokens_cached"] for call in begun]
            assert 0 == cached[0] < cached[1] < cached[2] < begun[2].tokens_estimated

    asyncio.run(run())


def test_a_preflight_that_was_begun_and_is_cancelled_leaves_nothing_behind(tmp_path: Path) -> None:
    asked = threading.Event()

    class Asked(SlowToWrite):
        def head(self, session_id: str) -> SessionHead:
            asked.set()
            time.sleep(0.1)
            return super().head(session_id)

    store = Asked()
    store.may_write.set()

    async def run() -> None:
        async with manager_at(tmp_path, store=store) as manager, asyncio.timeout(60):
            task = asyncio.create_task(manager.abegin_preflight("s", HELLO))
            while not asked.is_set():
                await asyncio.sleep(0.001)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert not manager.is_busy("s")
            assert await manager.apreflight("s", HELLO) == HELLO

    asyncio.run(run())
