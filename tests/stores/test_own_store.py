"""A store with the eleven methods that the engine needs, and no more: what works on it, and what says what to write."""

from __future__ import annotations

import ast
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from compact import CompactConfig, CompactManager, StructuredSummary, SummaryRequest
from compact.assembly.storage import build_shared
from compact.core.audit.artifacts import ArtifactStore
from compact.core.audit.records import Commit, ModelCall, PlanVersion, SessionHead, SessionInfo, StoredSession
from compact.core.audit.store import (
    CompactionTransaction,
    SessionReader,
    SessionStore,
    SharedStore,
    StoreError,
    VersionConflict,
)
from compact.core.plan.plan import CompactionPlan
from compact.stores.memory import InMemoryCompactionStore, InProcessSharedStore
from compact.stores.scanning import ScanningReader, reader_of
from compact.summarizers.extractive import extractive_summary
from compact.testing import (
    ScriptedModel,
    WordTokenizer,
    assistant,
    check_session_store,
    dialogue,
    say_json,
    tool_exchange,
    tool_run,
    user,
)
from reachable import texts_with

ROOT = Path(__file__).parents[2]
MARK = "quayside-4711"


class BareStore:
    """All that the engine needs of a store, and nothing else."""

    blocks = False

    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        self._inner = InMemoryCompactionStore(clock=clock)

    @property
    def artifacts(self) -> ArtifactStore:
        return self._inner.artifacts

    def head(self, session_id: str) -> SessionHead:
        return self._inner.head(session_id)

    def load(self, session_id: str) -> StoredSession | None:
        return self._inner.load(session_id)

    def commit(self, commit: Commit) -> SessionHead:
        return self._inner.commit(commit)

    def plans(self, session_id: str) -> tuple[PlanVersion, ...]:
        return self._inner.plans(session_id)

    def report_usage(self, session_id: str, tokens: int, **told: int | None) -> None:
        self._inner.report_usage(session_id, tokens, **told)

    def delete(self, session_id: str) -> bool:
        return self._inner.delete(session_id)

    def close(self) -> None:
        pass


class ReadableStore(BareStore, ScanningReader):
    """A bare store that also knows its calls and its sessions; the rest is scanned."""

    def model_calls(self, session_id: str) -> tuple[ModelCall, ...]:
        return self._inner.model_calls(session_id)

    def sessions(self) -> tuple[SessionInfo, ...]:
        return self._inner.sessions()


def public_names(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


def manager_on(store: SessionStore, **plugs: Any) -> CompactManager:
    summarizer = plugs.pop("summarizer_settings", {"prefetch": "never"})
    config = CompactConfig(
        max_context_tokens=1_000,
        policy={"hard_cap_buffer": 0, "keep_recent_turns": 2, "keep_tool_io_pairs": 1},
        summarizer=summarizer,
        storage={"adapter": "none"},
        telemetry={"exporter": "none"},
    )
    return CompactManager(config, store=store, tokenizer=WordTokenizer(), **plugs)


def history() -> list[dict[str, Any]]:
    """An answer that is externalised, then enough work to compact."""
    asking = tool_exchange("ask-1", f"berth 42, {MARK}. " + "detail " * 340, tool="ask_user", question="which?")
    return [user("book a berth"), *asking, *tool_run(4, words=150)[1:]]


# -- the socket ----------------------------------------------------------------------------------------------------


def test_the_engine_needs_eleven_methods_and_two_attributes() -> None:
    methods = (public_names(SessionStore) | public_names(ArtifactStore)) - {"artifacts", "blocks"}
    assert len(methods) == 11, sorted(methods)
    assert public_names(BareStore) == public_names(SessionStore)
    store = BareStore()
    assert not isinstance(store, SessionReader)
    assert not isinstance(store, SharedStore)
    check_session_store(lambda clock: BareStore(clock=clock))


def test_the_example_has_exactly_these() -> None:
    tree = ast.parse((ROOT / "examples" / "own_store.py").read_text(encoding="utf-8"))
    (store,) = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "JsonStore"]
    methods = {node.name for node in store.body if isinstance(node, ast.FunctionDef)}
    attributes = {t.id for node in store.body if isinstance(node, ast.Assign) for t in node.targets}  # type: ignore[attr-defined]
    public = {name for name in methods | attributes if not name.startswith("_")}
    assert public == public_names(SessionStore) | public_names(ArtifactStore)


def test_plans_by_themselves_work_on_every_store() -> None:
    store = BareStore()
    first, second = CompactionTransaction(store, "s"), CompactionTransaction(store, "s")
    assert (first.plan, first.version) == (CompactionPlan("s"), 0)
    assert first.commit(CompactionPlan("s", reason="mine")) == 1
    with pytest.raises(VersionConflict):
        second.commit(CompactionPlan("s"))
    assert CompactionTransaction(store, "s").plan.reason == "mine"


# -- a manager on it -----------------------------------------------------------------------------------------------


def test_a_session_is_compacted_resumed_recalled_and_undone() -> None:
    store, messages = BareStore(), history()
    with manager_on(store) as manager:
        out = manager.preflight("s", messages)
        assert out != messages
        artifact_id = manager.current_plan("s").externalizations[0].artifact_id
        assert MARK in str(manager.preflight("s", [*messages, assistant(f"I need {artifact_id}")])[-1]["content"])
        manager.observe_usage("s", 700)
    with manager_on(store) as manager:
        assert len(manager.history("s")) == len(messages) + 1
        for query in ("m3", artifact_id, f"berth {MARK}"):
            assert manager.recall("s", query).found[0].message_id == "m3", query
        assert manager.recall("s", "nowhere to be found").found == ()
        assert manager.status("s").used_tokens > 0
        assert [entry.plan.version for entry in manager.plans("s")] == [1]
        assert manager.undo("s").origin == 0
        assert manager.delete("s")
        assert not manager.delete("s")


@pytest.mark.parametrize(
    ("method", "ask"),
    [
        ("model_calls", lambda manager: manager.model_calls("s")),
        ("model_calls", lambda manager: manager.why("s", "berth")),
        ("model_calls", lambda manager: manager.report("s")),
        ("sessions", lambda manager: manager.sessions()),
    ],
)
def test_what_a_store_does_not_know_says_what_to_write(method: str, ask: Callable[[CompactManager], object]) -> None:
    with manager_on(BareStore()) as manager:
        manager.preflight("s", history())
        with pytest.raises(StoreError, match="the store BareStore cannot return") as refused:
            ask(manager)
    hint = f"hint: let BareStore inherit compact.stores.scanning.ScanningReader, and write its method {method}"
    assert hint in str(refused.value)


def test_a_store_that_inherits_the_scan_answers_with_what_it_adds() -> None:
    store = ReadableStore()
    assert reader_of(store) is store
    with manager_on(store) as manager:
        manager.preflight("s", history())
        manager.preflight("t", dialogue(2))
        assert [info.session_id for info in manager.sessions()] == ["t", "s"]
        assert [call.number for call in manager.model_calls("s")] == [1]
        assert manager.why("s", MARK)[0].message_id == "m3"
        assert [report.version for report in manager.report("s")] == [1]
        assert store.sessions_with(MARK) == {"s"}
        assert store.recent_calls(["s", "t"], 5) == {name: manager.model_calls(name) for name in ("s", "t")}
        assert store.outline("t")[0].message_id == "m1"
        with pytest.raises(StoreError, match="the prompt of an earlier model call"):
            store.sent("s", 1)


# -- claims and cached summaries -----------------------------------------------------------------------------------


class CountingSummarizer:
    """Counts its calls."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, request: SummaryRequest) -> StructuredSummary:
        self.calls += 1
        return extractive_summary(request)


def test_a_store_without_claims_gets_some_for_the_process() -> None:
    shared = InMemoryCompactionStore()
    assert build_shared(shared) is shared
    assert isinstance(build_shared(BareStore()), InProcessSharedStore)
    writer = CountingSummarizer()
    settings = {"prefetch": "always"}
    with manager_on(BareStore(), summarizer=writer, summarizer_settings=settings) as manager:
        messages = dialogue(30, words=20)
        for length in range(2, len(messages) + 1, 2):
            manager.preflight("s", messages[:length])
            assert manager._prefetcher.wait(20)  # type: ignore[union-attr]
        summaries = [entry.plan.summary for entry in manager.plans("s") if entry.plan.summary]
        assert len(summaries) >= 1
        assert any(", prefetched" in summary.reason for summary in summaries), "a prefetched one was used"
        # One more may be prefetched for a compaction that did not come yet.
        assert len(summaries) <= writer.calls <= len(summaries) + 1


def test_a_store_without_a_cache_gets_one_for_the_process() -> None:
    with ScriptedModel(say_json({"narrative": "All is well."})) as model:
        settings = {"base_url": model.base_url, "model": "gpt-4o-mini", "prefetch": "never"}
        with manager_on(BareStore(), summarizer_settings=settings) as manager:
            for session_id in ("one", "two"):
                manager.manual_compact(session_id, dialogue(12, words=40))
        assert len(model.requests) == 1, "the second summary came out of the cache"


# -- what is deleted or forgotten is nowhere in memory ----------------------------------------------------------------


@pytest.fixture(params=["bare", "memory", "sqlite"])
def make_store(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], SessionStore]:
    if request.param == "sqlite":
        from compact.stores.database import Database
        from compact.stores.sql import SqlCompactionStore

        return lambda: SqlCompactionStore(Database(f"sqlite:///{tmp_path}/state.db"))
    return BareStore if request.param == "bare" else InMemoryCompactionStore


def test_nothing_of_a_deleted_session_stays_in_memory(make_store: Callable[[], SessionStore]) -> None:
    store = make_store()
    with ScriptedModel(say_json({"narrative": f"The berth is at {MARK}."})) as model:
        settings = {"base_url": model.base_url, "model": "gpt-4o-mini", "prefetch": "never"}
        with manager_on(store, summarizer_settings=settings) as manager:
            engine = manager._engine
            held = (store, manager._shared, manager._reader, engine.rehydrate, engine.compactor.claiming.claims)
            messages = history()
            manager.preflight("gone", messages)
            artifact_id = manager.current_plan("gone").externalizations[0].artifact_id
            messages += [assistant(f"I need {artifact_id}"), *dialogue(8, words=40)]
            manager.preflight("gone", messages)
            manager.manual_compact("gone", messages)
            assert model.requests
            manager.recall("gone", MARK)
            manager.preflight("stays", dialogue(2))
            if not store.blocks:
                assert texts_with(MARK, *held), "there is something to delete"
            assert manager.delete("gone")
            assert texts_with(MARK, *held) == []
            assert manager._sessions.get("gone") is None
            assert len(manager.history("stays")) == 4


def test_nothing_of_a_forgotten_session_stays_in_memory_but_what_the_store_has() -> None:
    store = BareStore()
    with ScriptedModel(say_json({"narrative": f"The berth is at {MARK}."})) as model:
        settings = {"base_url": model.base_url, "model": "gpt-4o-mini", "prefetch": "never"}
        with manager_on(store, summarizer_settings=settings) as manager:
            manager.manual_compact(
                "s", [user(f"Where is {MARK}? " + "word " * 90), assistant("At the end."), *dialogue(11, words=40)]
            )
            assert texts_with(MARK, manager._shared)
            manager.forget("s")
            assert texts_with(MARK, manager._shared) == []
            assert manager._sessions.get("s") is None
            assert len(manager.history("s")) == 24, "the store still has it"
            assert manager.current_plan("s").summary is not None
