"""The manager: plans without writing, status, usage, caps, cadence, failures, threads and tasks."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest

from compact import (
    CompactConfig,
    CompactError,
    CompactManager,
    ConfigError,
    StructuredSummary,
    SummaryRequest,
    UnknownSession,
)
from compact.core.audit.records import Commit, SessionHead, StoredMessage
from compact.core.engine.events import (
    CompactionCompletedEvent,
    CompactionErrorEvent,
    CompactionEvent,
    NoticeEvent,
    TriggerDecisionEvent,
)
from compact.core.messages.entries import read_entry
from compact.core.messages.turn_order import LEFT_OUT
from compact.session_registry import SessionLock
from compact.stores.memory import InMemoryCompactionStore
from compact.summarizers.extractive import extractive_summary
from compact.testing import (
    RecordingSink,
    Wire,
    WordTokenizer,
    assistant,
    dialogue,
    system,
    tool_exchange,
    tool_run,
    user,
)


def watched(
    window: int = 1_000, *, settings: dict[str, Any] | None = None, **plugs: Any
) -> tuple[CompactManager, RecordingSink]:
    sink = RecordingSink()
    base: dict[str, Any] = {"policy": {"hard_cap_buffer": 0}, "telemetry": {"exporter": "none"}}
    config = CompactConfig(max_context_tokens=window, **{**base, **(settings or {})})
    return CompactManager(config, **{"tokenizer": WordTokenizer(), "on_event": sink, **plugs}), sink


# -- adding what was recorded elsewhere ----------------------------------------------------------------------------


class BusyStore(InMemoryCompactionStore):
    """Another process writes to every session before the first commit."""

    others = 1

    def commit(self, commit: Commit) -> SessionHead:
        if self.others:
            self.others -= 1
            other = StoredMessage(1, read_entry(user("said meanwhile"), "test"), 3)
            super().commit(Commit(session_id=commit.session_id, expected=SessionHead(), messages=(other,)))
        return super().commit(commit)


def test_an_added_history_is_in_the_log_and_no_call() -> None:
    store = InMemoryCompactionStore()
    manager, sink = watched(store=store)
    history = dialogue(20, words=40)
    for count in (10, 20, 40):
        manager.add_history("s", history[:count])
        (info,) = manager.sessions()
        assert (len(manager.history("s")), info.messages, info.model_calls) == (count, count, 0)
        assert (info.imported.turn_number, info.imported.limits["window"]) == (count // 2, 1_000)
        assert info.last_tokens == info.imported.tokens == manager.status("s").used_tokens
    assert info.last_tokens > 1_000, "nothing is compacted, however much there is"
    assert (manager.model_calls("s"), manager.cost("s").calls, manager.current_plan("s").version) == ((), (), 0)
    assert not sink.of(CompactionCompletedEvent)
    assert not sink.of(CompactionErrorEvent)
    later, _ = watched(store=store)
    prompt = later.preflight("s", [*history, user("go on")])
    (call,) = later.model_calls("s")
    assert (len(later.history("s")), call.messages, call.plan_version) == (41, len(prompt), 1)


def test_an_added_history_is_stored_behind_what_another_process_has_written() -> None:
    store = BusyStore()
    manager, _ = watched(store=store)
    manager.add_history("s", dialogue(3))
    assert store.others == 0
    assert watched(store=store)[0].history("s")[0].text == "said meanwhile"
    assert len(manager.history("s")) == 7
    manager.add_history("t", [])
    assert [info.session_id for info in manager.sessions()] == ["s"]


# -- asking --------------------------------------------------------------------------------------------------------


def test_a_plan_is_a_dry_run() -> None:
    asked: list[SummaryRequest] = []
    manager, sink = watched(summarizer=lambda request: asked.append(request) or StructuredSummary())  # type: ignore[func-returns-value]
    history = dialogue(20, words=40)
    result = manager.plan("s", history)
    assert result.tokens_before == 1_600
    assert result.pending_summary is not None
    assert (asked, sink.events) == ([], [])
    with pytest.raises(UnknownSession):
        manager.status("s")
    manager.preflight("t", history[:4])
    before = manager.status("t")
    manager.plan("t", history)
    assert manager.status("t") == before


def test_a_plan_says_how_far_a_target_would_go() -> None:
    manager, _ = watched(window=10_000)
    assert manager.plan("s", tool_run(30, words=100), target_tokens=800).tokens_after <= 800


def test_a_plan_says_when_there_is_nothing_to_do() -> None:
    manager, _ = watched(window=10_000)
    history = dialogue(20, words=40)
    result = manager.plan("s", history)
    assert (result.plan.records, result.tokens_freed) == ((), 0)
    assert "below the trigger of 8,500" in result.reason
    assert manager.plan("s", history, now=True).tokens_freed > 0


def test_the_status_says_how_full_what_is_in_it_and_why() -> None:
    manager, _ = watched()
    manager.preflight("s", [system("be careful"), *dialogue(20, words=40)])
    status = manager.status("s")
    assert status.layers["pinned"].messages == 1
    assert status.layers["summary"].messages == 1
    assert status.layers["recent"].tokens == 480 + len(LEFT_OUT.split())
    assert status.actions == {"include": 13, "summarize": 28}
    assert status.decision is not None
    assert status.decision.triggered
    assert "trigger is 850" in str(status)
    assert "41 messages: 13 include, 28 summarize" in str(status)


def test_questions_about_an_unknown_session() -> None:
    manager, _ = watched()
    for ask in (manager.status, manager.prompt, manager.history, lambda s: manager.observe_usage(s, 1)):
        with pytest.raises(UnknownSession, match="nothing is known of session 'nobody'"):
            ask("nobody")
    assert manager.current_plan("nobody").version == 0


# -- usage ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "usage",
    [
        900,
        {"prompt_tokens": 900},
        SimpleNamespace(input_tokens=900),
        SimpleNamespace(input_tokens=100, cache_read_input_tokens=700, cache_creation_input_tokens=100),
    ],
)
def test_reported_usage_triggers_before_our_own_estimate_does(usage: object) -> None:
    manager, sink = watched()
    history = dialogue(20, words=15)  # 600 of 1,000 by our count
    manager.preflight("s", history)
    assert sink.of(CompactionCompletedEvent) == []
    manager.observe_usage("s", usage)
    manager.preflight("s", [*history, user("next")])
    assert len(sink.of(CompactionCompletedEvent)) == 1
    manager.preflight("s", [*history, user("next"), user("and next")])
    assert len(sink.of(CompactionCompletedEvent)) == 1  # stale usage does not trigger again


def test_usage_below_our_estimate_changes_nothing() -> None:
    manager, _ = watched()
    manager.preflight("s", dialogue(20, words=15))
    manager.observe_usage("s", 10)
    assert manager.status("s").used_tokens == 603


def test_a_usage_report_without_tokens_is_refused() -> None:
    manager, _ = watched()
    manager.preflight("s", dialogue(2))
    with pytest.raises(ValueError, match="no input tokens"):
        manager.observe_usage("s", {"output_tokens": 3})


def test_tools_and_instructions_count() -> None:
    manager, _ = watched()
    tools = [{"type": "function", "function": {"name": "read", "description": "reads a file", "parameters": {}}}]
    manager.preflight("s", [user("hi")], tools=tools, instructions="be very careful")
    with_tools = manager.status("s").used_tokens
    manager.preflight("s", [user("hi")])
    assert with_tools > manager.status("s").used_tokens + 5


# -- caps, cadence, switches ---------------------------------------------------------------------------------------


def test_a_cap_on_tool_results_evicts_before_the_trigger() -> None:
    manager, sink = watched(settings={"policy": {"part_caps": {"tool_results": 0.3}, "hard_cap_buffer": 0}})
    manager.preflight("s", tool_run(6, words=100))  # 650 of 1,000, 600 of them results
    assert "tool_results is over its cap of 300" in sink.of(TriggerDecisionEvent)[0].reason
    assert dict(sink.of(CompactionCompletedEvent)[0].proposals) == {"clear": 2}


def test_every_call_clears_without_waiting_for_the_trigger() -> None:
    manager, sink = watched(window=100_000, settings={"policy": {"cadence": "every_call"}})
    manager.preflight("s", tool_run(6, words=200))
    assert dict(sink.of(CompactionCompletedEvent)[0].proposals) == {"clear": 2}
    assert manager.current_plan("s").summary is None


def test_reserves_that_leave_nothing_are_refused_at_once() -> None:
    with pytest.raises(ConfigError, match="a window of 1,000 tokens leaves nothing to use: 1,500 are reserved"):
        CompactManager(CompactConfig(max_context_tokens=1_000))


def test_compaction_can_be_switched_off() -> None:
    manager, sink = watched(settings={"policy": {"enabled": False, "hard_cap_buffer": 0}})
    history = dialogue(100, words=40)
    assert manager.preflight("s", history) == history
    assert "switched off" in sink.of(TriggerDecisionEvent)[0].reason


def test_without_a_summariser_the_free_strategies_and_cuts_do_it() -> None:
    manager, _ = watched(settings={"strategies": {"enabled": ["deduplicate", "clear", "externalize", "drop"]}})
    manager.preflight("s", [*dialogue(10, words=80), *tool_run(5, words=150)])
    assert manager.status("s").used_tokens <= 1_000
    assert manager.current_plan("s").summary is None


# -- failures ------------------------------------------------------------------------------------------------------


def failing(request: SummaryRequest) -> StructuredSummary:
    raise TimeoutError("the model is slow")


def test_on_failure_keep_leaves_all_as_it_is() -> None:
    manager, sink = watched(
        settings={"summarizer": {"on_failure": "keep"}, "policy": {"hard_cap_buffer": 0}}, summarizer=failing
    )
    history = dialogue(10, words=45)  # 900 of 1,000
    assert manager.preflight("s", history) == history
    assert sink.of(CompactionErrorEvent)[0].fallback == "keep"
    assert "on_failure is keep" in sink.of(TriggerDecisionEvent)[0].reason


def test_on_failure_keep_still_prunes_what_would_not_fit() -> None:
    manager, sink = watched(
        settings={"summarizer": {"on_failure": "keep"}, "policy": {"hard_cap_buffer": 0}}, summarizer=failing
    )
    manager.preflight("s", dialogue(20, words=45))
    assert sink.of(CompactionErrorEvent)[0].fallback == "pruning-only"
    assert manager.status("s").used_tokens <= 1_000


def test_on_failure_raise() -> None:
    manager, _ = watched(settings={"summarizer": {"on_failure": "raise"}}, summarizer=failing)
    with pytest.raises(TimeoutError):
        manager.preflight("s", dialogue(20, words=45))


def test_a_summary_that_is_too_long_is_not_used() -> None:
    manager, sink = watched(summarizer=lambda request: StructuredSummary(narrative="blah " * 9_000))
    manager.preflight("s", dialogue(20, words=45))
    assert "more than the" in sink.of(CompactionErrorEvent)[0].message
    assert manager.status("s").used_tokens <= 1_000


def test_a_sink_that_fails_is_reported_once_and_harms_nobody(caplog: pytest.LogCaptureFixture) -> None:
    def bad(event: CompactionEvent) -> None:
        raise OSError("disk full")

    config = CompactConfig(max_context_tokens=4_000, telemetry={"exporter": "none"})
    manager = CompactManager(config, tokenizer=WordTokenizer(), on_event=bad)
    history = dialogue(2)
    assert manager.preflight("s", history) == history
    assert len([record for record in caplog.records if "event sink" in record.message]) == 1


def test_what_happens_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger="compact")
    config = CompactConfig(max_context_tokens=1_000, policy={"hard_cap_buffer": 0})
    manager = CompactManager(config, tokenizer=WordTokenizer(), summarizer=failing)
    history = [*dialogue(20, words=45), *tool_exchange("c", "x")[:1]]
    manager.preflight("s", history)
    manager.preflight("s", history[:-3])
    text = caplog.text
    for words in (
        "TimeoutError",
        "compacted, plan v1",
        "repaired: call_without_result",
        "the past was edited",
        "token_estimate",
    ):
        assert words in text


def test_what_freed_nothing_is_not_tried_again_until_something_changed() -> None:
    manager, sink = watched()
    history = [user("word " * 900, protected=True)]
    manager.preflight("s", history)
    manager.preflight("s", history)
    manager.preflight("s", [*history, user("more")])
    first, second, third = (event.reason for event in sink.of(TriggerDecisionEvent))
    assert "nothing left to compact" in first
    assert "nothing has changed since" in second
    assert "nothing left to compact" in third


def test_what_a_repair_adds_counts() -> None:
    manager, _ = watched(256)
    manager.preflight("s", [user("word " * 250), tool_exchange("c", "never came")[0]])
    assert manager.status("s").used_tokens <= 256


def test_unknown_models_say_what_they_fell_back_to() -> None:
    sink = RecordingSink()
    CompactManager(CompactConfig(model="nobody-knows-this", telemetry={"exporter": "none"}), on_event=sink)
    notices = " ".join(event.message for event in sink.of(NoticeEvent))
    assert "nobody-knows-this" in notices
    assert "32,000" in notices
    assert "max_context_tokens" in notices


# -- threads and tasks ---------------------------------------------------------------------------------------------


def test_two_calls_for_one_session_never_interleave() -> None:
    inside: list[int] = []

    def slow(request: SummaryRequest) -> StructuredSummary:
        inside.append(1)
        assert len(inside) == 1
        time.sleep(0.05)
        inside.pop()
        return extractive_summary(request)

    manager, _ = watched(summarizer=slow)
    history = dialogue(40, words=45)

    def call(end: int) -> list[Wire]:
        return manager.preflight("s", history[:end])

    with ThreadPoolExecutor(8) as pool:
        outs = list(pool.map(call, [60, 60, 60, 60, 80, 80, 80, 80]))
    assert len(manager.history("s")) == 80
    assert all(outs)


def test_different_sessions_do_not_wait_for_each_other() -> None:
    release = threading.Event()

    def stuck(request: SummaryRequest) -> StructuredSummary:
        assert release.wait(10)
        return extractive_summary(request)

    manager, _ = watched(summarizer=stuck)
    with ThreadPoolExecutor(2) as pool:
        waiting = pool.submit(manager.preflight, "a", dialogue(20, words=45))
        quick = pool.submit(manager.preflight, "b", dialogue(2))
        assert quick.result(timeout=5) == dialogue(2)
        assert not waiting.done()
        release.set()
        waiting.result(timeout=5)


async def _async_summary(request: SummaryRequest) -> StructuredSummary:
    await asyncio.sleep(0.02)
    return extractive_summary(request)


def test_async_and_sync_give_the_same() -> None:
    history = dialogue(20, words=45)

    async def run() -> list[Wire]:
        async with watched(summarizer=_async_summary)[0] as manager:
            first = await manager.apreflight("s", history)
            assert await manager.apreflight("s", []) == []
            return await manager.amanual_compact("s", [*first, *dialogue(20, words=46)])

    with watched(summarizer=_async_summary)[0] as manager:
        first = manager.preflight("s", history)
        second = manager.manual_compact("s", [*first, *dialogue(20, words=46)])
    assert asyncio.run(run()) == second


def test_a_sync_call_inside_a_running_loop_works() -> None:
    async def run() -> list[Wire]:
        return watched(summarizer=_async_summary)[0].preflight("s", dialogue(20, words=45))

    assert len(asyncio.run(run())) < 40


def test_a_waiting_summary_does_not_block_the_loop() -> None:
    def blocking(request: SummaryRequest) -> StructuredSummary:
        time.sleep(0.2)
        return extractive_summary(request)

    async def run() -> int:
        manager, _ = watched(summarizer=blocking)
        call = asyncio.create_task(manager.apreflight("s", dialogue(20, words=45)))
        ticks = 0
        while not call.done():
            await asyncio.sleep(0.005)
            ticks += 1
        return ticks

    assert asyncio.run(run()) > 5


def test_a_failure_reaches_an_async_trip_too() -> None:
    async def run() -> list[Wire]:
        manager, sink = watched(summarizer=failing)
        out = await manager.apreflight("s", dialogue(20, words=45))
        assert sink.of(CompactionErrorEvent)
        return out

    assert len(asyncio.run(run())) < 40


def test_tasks_and_threads_share_one_lock_and_cancelled_tasks_are_passed_over() -> None:
    lock, order = SessionLock(), list[str]()

    async def task(name: str) -> None:
        async with lock.ahold():
            order.append(name)
            await asyncio.sleep(0.01)

    def thread() -> None:
        with lock.hold():
            order.append("thread")

    async def run() -> None:
        async with lock.ahold():
            cancelled = asyncio.create_task(task("cancelled"))
            tasks = [asyncio.create_task(task(f"task-{n}")) for n in range(3)]
            await asyncio.sleep(0.01)
            worker = asyncio.create_task(asyncio.to_thread(thread))
            await asyncio.sleep(0.01)
            cancelled.cancel()
            await asyncio.sleep(0.01)
        await asyncio.gather(*tasks, worker)
        with pytest.raises(asyncio.CancelledError):
            await cancelled

    asyncio.run(run())
    assert order == ["task-0", "task-1", "task-2", "thread"]
    with lock.hold():
        order.append("free again")


def test_a_lock_handed_to_a_task_that_is_cancelled_in_that_moment_is_not_lost() -> None:
    lock = SessionLock()

    async def run() -> None:
        async with lock.ahold():
            waiting = asyncio.create_task(lock.ahold().__aenter__())
            await asyncio.sleep(0.01)
        waiting.cancel()  # the lock was handed over when the block above ended
        with pytest.raises(asyncio.CancelledError):
            await waiting
        async with lock.ahold():
            pass

    asyncio.run(asyncio.wait_for(run(), 5))


def test_errors_are_one_family() -> None:
    assert issubclass(UnknownSession, CompactError)
    assert str(CompactError("what", hint="do this")) == "what\nhint: do this"
    assert str(CompactError("what")) == "what"


def test_what_is_set_aside_for_the_answer_is_not_filled() -> None:
    """A provider rejects a prompt that leaves no room for the answer that was asked for."""
    manager, _ = watched(4_000)
    history = dialogue(20, words=70)
    assert manager.preflight("s", history) == history
    assert manager.status("s").used_tokens > 2_000
    manager.preflight("s", history, output_tokens=2_000)
    assert manager.status("s").used_tokens <= 2_000


def test_sessions_that_nobody_uses_leave_memory_and_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("compact.manager._MAX_SESSIONS_IN_MEMORY", 3)
    manager, _ = watched()
    for number in range(10):
        manager.preflight(f"s{number}", [user(f"hello {number}")])
    assert len(list(manager._sessions)) == 3
    assert [message.text for message in manager.history("s0")] == ["hello 0"]
    manager.preflight("s0", [user("hello 0"), assistant("hi")])
    assert [message.text for message in manager.history("s0")] == ["hello 0", "hi"]


def test_leaving_waits_for_the_tasks_that_are_still_in_a_session() -> None:
    async def main() -> list[Any]:
        async with CompactManager(CompactConfig(state={"url": "memory:"}, telemetry={"exporter": "none"})) as manager:
            task = asyncio.create_task(manager.apreflight("s", dialogue(3)))
            await asyncio.sleep(0)
        return await task

    assert asyncio.run(asyncio.wait_for(main(), 60)) == dialogue(3)


def test_chat_messages_stay_chat_for_a_model_of_anthropics() -> None:
    """Gateways speak Chat Completions for every model."""
    manager, _ = watched(settings={"model": "claude-sonnet-4-5"})
    history = [{"role": "developer", "content": "be brief"}, user("hi"), {"role": "assistant", "content": None}]
    assert manager.preflight("s", history)[:2] == history[:2]


def test_a_mark_that_is_set_later_does_not_leave_either() -> None:
    manager, _ = watched()
    history = [user("first"), assistant("second")]
    manager.preflight("s", history)
    history[0]["meta"] = {"protected": True}
    assert not any("meta" in message for message in manager.preflight("s", history))
