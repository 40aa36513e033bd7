"""Nothing is waited for longer than it may, a call that breaks off leaves no trace, and lost races are made good."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from compact import CompactConfig, CompactManager, Message, StructuredSummary, SummaryRequest
from compact.core.audit.records import Commit, SessionHead
from compact.core.audit.store import VersionConflict
from compact.core.engine.events import CompactionErrorEvent
from compact.core.session.session import Session
from compact.stores.memory import InMemoryCompactionStore
from compact.testing import RecordingSink, WordTokenizer, dialogue, user
from compact.waiting.progress import note_progress

HISTORY = dialogue(20, words=40)


def manager_with(settings: dict[str, Any] | None = None, **plugs: Any) -> tuple[CompactManager, RecordingSink]:
    sink = RecordingSink()
    config = CompactConfig(
        max_context_tokens=1_000,
        policy={"hard_cap_buffer": 0, "keep_recent_turns": 2},
        telemetry={"exporter": "none"},
        **{"summarizer": {"prefetch": "never", "timeout_seconds": 0.3}, **(settings or {})},
    )
    return CompactManager(config, **{"tokenizer": WordTokenizer(), "on_event": sink, **plugs}), sink


def errors(sink: RecordingSink) -> list[str]:
    return [event.error_type for event in sink.of(CompactionErrorEvent)]


# -- summarisers -------------------------------------------------------------------------------------------------------


def sleeps(request: SummaryRequest) -> StructuredSummary:
    time.sleep(1.5)
    return StructuredSummary(narrative="too late")


async def asleeps(request: SummaryRequest) -> StructuredSummary:
    await asyncio.sleep(60)
    return StructuredSummary(narrative="too late")


def is_huge(request: SummaryRequest) -> StructuredSummary:
    return StructuredSummary(narrative="word " * 2_000_000)


def raises_what_is_no_exception(request: SummaryRequest) -> StructuredSummary:
    raise asyncio.CancelledError


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize(
    ("summarizer", "error"),
    [
        (sleeps, "WaitTimeout"),
        (asleeps, "WaitTimeout"),
        (is_huge, "SummaryTooLong"),
        (raises_what_is_no_exception, "CompactError"),
    ],
)
def test_a_summariser_that_misbehaves_costs_its_summary(
    summarizer: Callable[[SummaryRequest], Any], error: str, is_async: bool
) -> None:
    manager, sink = manager_with(summarizer=summarizer)
    started = time.monotonic()
    prompt = asyncio.run(manager.apreflight("s", HISTORY)) if is_async else manager.preflight("s", HISTORY)
    assert time.monotonic() - started < 20
    assert len(prompt) < len(HISTORY)
    assert errors(sink)[-1] == error
    manager.close()


def test_a_summariser_that_edits_what_it_gets_edits_nothing_of_ours() -> None:
    def edits(request: SummaryRequest) -> StructuredSummary:
        for message in (*request.messages, *request.history):
            assert isinstance(message.original, dict)
            message.original["content"] = "edited"
        return StructuredSummary(narrative="done")

    manager, _ = manager_with(summarizer=edits)
    manager.preflight("s", HISTORY)
    assert [message.original for message in manager.history("s")] == HISTORY


# -- stores ------------------------------------------------------------------------------------------------------------


class HangingStore(InMemoryCompactionStore):
    """Hangs as long as it is told to, for the sessions whose name begins with `slow`."""

    blocks = True

    def __init__(self) -> None:
        super().__init__()
        self.goes_on = threading.Event()

    def head(self, session_id: str) -> SessionHead:
        if session_id.startswith("slow"):
            self.goes_on.wait(30)
        return super().head(session_id)


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_a_store_that_hangs_holds_up_one_turn_and_is_written_to_when_it_is_back(is_async: bool) -> None:
    store = HangingStore()
    manager, sink = manager_with({"state": {"timeout_seconds": 0.3}}, store=store)

    def preflight(length: int) -> float:
        started = time.monotonic()
        call = manager.apreflight if is_async else manager.preflight
        prompt = call("slow", HISTORY[:length])
        assert (asyncio.run(prompt) if asyncio.iscoroutine(prompt) else prompt) == HISTORY[:length]
        return time.monotonic() - started

    assert preflight(3) < 10
    assert "WaitTimeout" in errors(sink)
    assert store.load("slow") is None
    assert preflight(4) < 0.29, "a store that is known to hang is not waited for"
    store.goes_on.set()
    for _ in range(200):
        preflight(5)
        if (stored := store.load("slow")) is not None:
            break
        time.sleep(0.01)
    assert stored is not None
    assert [entry.message.original for entry in stored.messages] == HISTORY[:5]
    manager.close()


class LargeStore(InMemoryCompactionStore):
    """Takes twice as long for a commit as it may, and says that it comes on."""

    blocks = True

    def commit(self, commit: Commit) -> SessionHead:
        for _ in range(8):
            time.sleep(0.25)
            note_progress()
        return super().commit(commit)


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_a_store_that_has_much_to_do_and_says_so_is_waited_for(is_async: bool) -> None:
    store = LargeStore()
    manager, sink = manager_with({"state": {"timeout_seconds": 1}}, store=store)
    if is_async:
        asyncio.run(manager.apreflight("s", HISTORY[:3]))
    else:
        manager.preflight("s", HISTORY[:3])
    assert errors(sink) == []
    stored = store.load("s")
    assert stored is not None
    assert len(stored.messages) == 3
    manager.close()


def test_sessions_that_wait_for_their_store_delay_no_other() -> None:
    store = HangingStore()
    manager, _ = manager_with({"state": {"timeout_seconds": 30}}, store=store)

    async def run() -> float:
        await manager.apreflight("quick", HISTORY[:1])
        waiting = [asyncio.create_task(manager.apreflight(f"slow-{n}", HISTORY[:1])) for n in range(12)]
        await asyncio.sleep(0.05)
        started = time.monotonic()
        await manager.apreflight("quick", HISTORY[:2])
        taken = time.monotonic() - started
        store.goes_on.set()
        await asyncio.gather(*waiting)
        return taken

    assert asyncio.run(run()) < 5, "the store hangs for 30 s"


class RacedStore(InMemoryCompactionStore):
    """Another process is always quicker, as long as it is raced for."""

    is_raced = False

    def commit(self, commit: Commit) -> SessionHead:
        if self.is_raced:
            raise VersionConflict("another process was quicker")
        return super().commit(commit)


@pytest.mark.parametrize("then", ["next call", "forget", "close"])
def test_a_turn_that_lost_every_race_says_so_and_is_stored_later(then: str) -> None:
    store = RacedStore()
    manager, sink = manager_with(store=store)
    manager.preflight("s", HISTORY[:2])
    store.is_raced = True
    assert manager.preflight("s", HISTORY[:3]) == HISTORY[:3]
    assert [event.fallback for event in sink.of(CompactionErrorEvent)] == [
        "sent unsaved; stored later, at the next call"
    ]
    store.is_raced = False
    if then == "next call":  # whose list does not have what was lost
        manager.preflight("s", [*HISTORY[:2], user("something else")])
    elif then == "forget":
        manager.forget("s")
    else:
        manager.close()
    stored = store.load("s")
    assert stored is not None
    assert HISTORY[2] in [entry.message.original for entry in stored.messages]


# -- calls that break off ----------------------------------------------------------------------------------------------


class InterruptedTokenizer:
    """Counts words; its n-th count ends with an interrupt."""

    def __init__(self, interrupt: BaseException) -> None:
        self._words, self._interrupt, self.left = WordTokenizer(), interrupt, -1

    def __getattr__(self, name: str) -> Any:
        return getattr(self._words, name)

    def count_message(self, message: Message) -> int:
        self.left -= 1
        if self.left == 0:
            raise self._interrupt
        return self._words.count_message(message)


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt(), RuntimeError("no such model")], ids=["ctrl-c", "error"])
def test_a_call_that_breaks_off_while_counting_leaves_a_session_that_works(interrupt: BaseException) -> None:
    whole, _ = manager_with()
    whole.preflight("s", HISTORY[:10])
    expected = whole.preflight("s", HISTORY)
    for number in (1, 2, 15, 31, 34, 40, 60):
        tokenizer = InterruptedTokenizer(interrupt)
        manager, _ = manager_with(tokenizer=tokenizer)
        manager.preflight("s", HISTORY[:10])
        tokenizer.left = number
        try:
            manager.preflight("s", HISTORY)
        except (KeyboardInterrupt, RuntimeError):
            assert len(manager.history("s")) in (10, len(HISTORY)), "all of a list, or nothing of it"
        assert manager.preflight("s", HISTORY) == expected, f"after an interrupt at count {number}"


def test_a_call_that_is_interrupted_behind_the_log_leaves_what_the_store_has(monkeypatch: pytest.MonkeyPatch) -> None:
    """The list is in the log then, and not in the prompt: the session is read from its store again."""
    whole, _ = manager_with()
    whole.preflight("s", HISTORY[:10])
    expected = whole.preflight("s", HISTORY)
    manager, _ = manager_with()
    manager.preflight("s", HISTORY[:10])

    def interrupted(session: Session, match: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Session, "find_regrets", interrupted)
        with pytest.raises(KeyboardInterrupt):
            manager.preflight("s", HISTORY)
    assert len(manager.history("s")) == 10
    assert manager.preflight("s", HISTORY) == expected


def test_a_dry_run_never_changes_a_live_session() -> None:
    manager, _ = manager_with()
    other, _ = manager_with()
    for length in range(2, len(HISTORY), 3):
        for planned in (HISTORY, HISTORY[: length // 2], [user("another past"), *HISTORY[1:length]]):
            manager.plan("s", planned)
            manager.plan("s", planned, now=True)
        assert manager.preflight("s", HISTORY[:length]) == other.preflight("s", HISTORY[:length])
    assert manager.plans("s") is not None
    assert [entry.plan for entry in manager.plans("s")] == [entry.plan for entry in other.plans("s")]
