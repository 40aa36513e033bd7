"""What goes wrong once must not stay: failing counters and stores, cancelled calls, sessions deleted meanwhile."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from compact import CompactConfig, CompactManager, Message, StructuredSummary, SummaryRequest
from compact.core.audit.artifacts import Artifact
from compact.core.audit.records import Commit, SessionHead
from compact.core.engine.events import CompactionErrorEvent
from compact.core.errors import InvalidHistory, UnknownSession
from compact.stores.memory import InMemoryArtifactStore, InMemoryCompactionStore
from compact.testing import RecordingSink, Wire, WordTokenizer, dialogue, tool_exchange, tool_run, user


def manager_with(window: int = 1_000, **plugs: Any) -> CompactManager:
    settings = plugs.pop("settings", {})
    config = CompactConfig(
        max_context_tokens=window,
        policy={"hard_cap_buffer": 0, "keep_recent_turns": 2},
        telemetry={"exporter": "none"},
        **{"summarizer": {"prefetch": "never"}, **settings},
    )
    return CompactManager(config, **{"tokenizer": WordTokenizer(), **plugs})


class FailingArtifacts(InMemoryArtifactStore):
    """The artifacts of a store that may be down."""

    def __init__(self, store: FailingStore) -> None:
        super().__init__()
        self._store = store

    def store_artifact(self, artifact: Artifact) -> None:
        if self._store.is_down:
            raise ConnectionError("the store is down")
        super().store_artifact(artifact)


class FailingStore(InMemoryCompactionStore):
    """Takes nothing as long as it is down."""

    is_down = False

    def __init__(self) -> None:
        super().__init__()
        self.artifacts = FailingArtifacts(self)

    def commit(self, commit: Commit) -> SessionHead:
        if self.is_down:
            raise ConnectionError("the store is down")
        return super().commit(commit)


# -- dry runs ----------------------------------------------------------------------------------------------------------


def test_a_dry_run_teaches_the_live_session_nothing() -> None:
    """Marks and dialects that a plan was asked with are forgotten with it."""
    manager, history = manager_with(), dialogue(5)
    manager.preflight("s", history)
    marked = [{**history[0], "meta": {"protected": True}}, *history[1:]]
    manager.plan("s", marked)
    manager.plan("s", [{"role": "user", "content": [{"type": "text", "text": "hi"}]}], dialect="anthropic")
    manager.preflight("s", [*history, user("go on")])
    assert [message.original for message in manager.history("s")] == [*history, user("go on")]


def test_a_plan_of_a_short_history_that_needs_repair_has_nothing_to_do() -> None:
    orphan = {"role": "tool", "tool_call_id": "gone", "content": "word " * 50}
    result = manager_with().plan("s", [user("go"), orphan, user("on")])
    assert result.tokens_freed == 0
    assert not result.plan.records


# -- the tokenizer -----------------------------------------------------------------------------------------------------


class FlakyTokenizer:
    """Counts words, and fails while it is away."""

    is_away = False

    def __init__(self) -> None:
        self._words = WordTokenizer()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._words, name)

    def count_message(self, message: Message) -> int:
        if self.is_away:
            raise ConnectionError("the counter is away")
        return self._words.count_message(message)


def test_a_tokenizer_that_fails_once_changes_nothing() -> None:
    tokenizer = FlakyTokenizer()
    manager, history = manager_with(tokenizer=tokenizer), dialogue(3)
    manager.preflight("s", history)
    tokenizer.is_away = True
    with pytest.raises(ConnectionError):
        manager.preflight("s", [*history, user("one"), user("two")])
    tokenizer.is_away = False
    longer = [*history, user("one"), user("two")]
    assert manager.preflight("s", longer) == longer
    assert [message.original for message in manager.history("s")] == longer


# -- cancelled calls ---------------------------------------------------------------------------------------------------


def test_a_cancelled_call_leaves_no_claim(tmp_path: Path) -> None:
    begun = threading.Event()

    async def summarize(request: SummaryRequest) -> StructuredSummary:
        if not begun.is_set():
            begun.set()
            await asyncio.sleep(60)
        return StructuredSummary(narrative="the second one is quick")

    url = f"sqlite:///{tmp_path}/state.db"
    manager = manager_with(summarizer=summarize, settings={"state": {"url": url}})
    history = dialogue(20, words=40)

    async def cancel_and_retry() -> float:
        first = asyncio.create_task(manager.apreflight("s", history))
        while not begun.is_set():
            await asyncio.sleep(0.01)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        start = time.monotonic()
        await manager.apreflight("s", history)
        return time.monotonic() - start

    with manager:
        assert asyncio.run(cancel_and_retry()) < 10
        assert manager.current_plan("s").summary is not None


# -- deletion ----------------------------------------------------------------------------------------------------------


def summarizing_in(act: Callable[[], object]) -> Callable[[SummaryRequest], StructuredSummary]:
    def summarize(request: SummaryRequest) -> StructuredSummary:
        act()
        return StructuredSummary(narrative="too late")

    return summarize


def test_a_session_that_is_deleted_during_a_call_stays_deleted() -> None:
    store = InMemoryCompactionStore()
    manager: CompactManager = manager_with(store=store, summarizer=summarizing_in(lambda: manager.delete("s")))
    manager.preflight("s", dialogue(2))
    manager.preflight("s", dialogue(20, words=40))
    assert store.load("s") is None
    with pytest.raises(UnknownSession):
        manager.status("s")


def test_a_prefetched_summary_of_a_deleted_session_is_nowhere() -> None:
    store = InMemoryCompactionStore()
    manager: CompactManager = manager_with(store=store, summarizer=summarizing_in(lambda: manager.delete("s")))
    manager.preflight("s", dialogue(9, words=40))
    manager.prefetch_summary("s")
    assert store.load("s") is None
    assert store.claims.prefetched("s", 1) is None


# -- stores that fail --------------------------------------------------------------------------------------------------


def test_forgetting_keeps_what_the_store_could_not_take() -> None:
    store, sink = FailingStore(), RecordingSink()
    manager = manager_with(store=store, on_event=sink)
    store.is_down = True
    history = dialogue(3)
    manager.preflight("s", history)
    manager.forget("s")
    assert [message.original for message in manager.history("s")] == history
    store.is_down = False
    manager.forget("s")
    stored = store.load("s")
    assert stored is not None
    assert len(stored.messages) == len(history)
    assert {event.fallback for event in sink.of(CompactionErrorEvent)} >= {"kept in memory"}


def test_closing_says_what_is_lost() -> None:
    store, sink = FailingStore(), RecordingSink()
    manager = manager_with(store=store, on_event=sink)
    store.is_down = True
    manager.preflight("s", dialogue(3))
    manager.close()
    assert sink.of(CompactionErrorEvent)[-1].fallback == "lost: this process ends"


def test_artifacts_of_a_plan_that_was_replaced_before_it_was_stored_are_stored() -> None:
    store = FailingStore()
    manager = manager_with(
        8_000,
        store=store,
        settings={"strategies": {"externalize": {"min_tokens": 100}, "enabled": ["externalize", "summarize"]}},
    )
    history: list[Wire] = [user("go"), *tool_run(12, words=600)]
    store.is_down = True
    manager.preflight("s", history)
    moved = [record.artifact_id for record in manager.current_plan("s").externalizations]
    assert moved
    manager.restore("s", 0)
    assert not manager.current_plan("s").artifacts
    store.is_down = False
    manager.preflight("s", [*history, user("on")])
    assert all(manager.recall("s", artifact_id).found for artifact_id in moved)


def test_a_store_that_is_falsy_is_used_all_the_same() -> None:
    class Empty(InMemoryCompactionStore):
        def __len__(self) -> int:
            return 0

    store = Empty()
    manager = manager_with(store=store)
    manager.preflight("s", dialogue(2))
    assert manager.store is store
    assert store.load("s") is not None


# -- memory ------------------------------------------------------------------------------------------------------------


def test_reading_many_sessions_does_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("compact.manager._MAX_SESSIONS_IN_MEMORY", 5)
    store = InMemoryCompactionStore()
    manager = manager_with(store=store)
    for number in range(12):
        manager.preflight(f"s{number}", dialogue(1))
    for number in range(12):
        manager.status(f"s{number}")
    assert len(list(manager._sessions)) == 5


# -- the past, edited --------------------------------------------------------------------------------------------------


def test_undo_after_an_edited_past_undoes_the_compaction() -> None:
    settings = {"strategies": {"enabled": ["clear"]}}
    manager, history = manager_with(2_000, settings=settings), [user("go"), *tool_run(9, words=200)]
    manager.preflight("s", history)
    before = manager.current_plan("s")
    place = next(n for n, message in enumerate(history) if message["role"] == "tool")
    edited = [*history[:place], {**history[place], "content": "something else " * 200}, *history[place + 1 :]]
    manager.preflight("s", edited)
    plan = manager.current_plan("s")
    assert plan.reason == "the past was edited"
    assert 0 < len(plan.records) < len(before.records)
    assert not plan.held
    assert plan.tokens_after == sum(map(WordTokenizer().count_message, manager.prompt("s").messages))
    assert not manager.undo("s").records


# -- bad input ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("function", ["f", {"name": "f", "arguments": {1}}], ids=["a name", "a set"])
def test_a_tool_call_that_makes_no_sense_is_named_with_its_place(function: object) -> None:
    call = {"id": "c", "function": function}
    with pytest.raises(InvalidHistory, match=r"messages\[1\]\.tool_calls\[0\]"):
        manager_with().preflight("s", [user("go"), {"role": "assistant", "content": None, "tool_calls": [call]}])


def test_keys_of_several_types_do_not_stop_an_edit_of_the_past() -> None:
    odd: Wire = {"role": "user", "content": "x", "extra": {1: "a", "b": 2}}
    manager = manager_with()
    manager.preflight("s", [user("one"), odd, *tool_exchange("c", "result")])
    assert manager.preflight("s", [user("other"), odd, user("on")])
