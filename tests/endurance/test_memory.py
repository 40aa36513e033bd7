"""A session that left the process leaves nothing behind in memory."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from compact import CompactConfig, CompactManager
from compact.core.engine.events import CompactionCompletedEvent, CompactionReportEvent
from compact.core.messages.message import Message
from compact.core.plan.plan import CompactionPlan
from compact.core.session.session import Session
from compact.core.summary.summary import StructuredSummary
from compact.session_registry import HeldSession
from compact.testing import RecordingSink, WordTokenizer, dialogue, tool_run, user

# What a session consists of in memory.
OF_A_SESSION = (Session, HeldSession, Message, CompactionPlan, StructuredSummary)


def left_in_memory() -> list[object]:
    gc.collect()
    return [each for each in gc.get_objects() if type(each) in OF_A_SESSION]


def manager_at(url: str, **settings: Any) -> tuple[CompactManager, RecordingSink]:
    config = CompactConfig(
        max_context_tokens=1_500,
        policy={"hard_cap_buffer": 0},
        state={"url": url},
        storage={"adapter": "none"},
        telemetry={"exporter": "none"},
        **settings,
    )
    sink = RecordingSink()
    return CompactManager(config, tokenizer=WordTokenizer(), on_event=sink), sink


def use(manager: CompactManager, leave: str) -> None:
    """Ask a manager all that one can ask about a session, and let it go."""
    history = [user("the task"), *tool_run(30, words=60), *dialogue(10, words=30)]
    for length in range(8, len(history) + 1, 8):
        manager.preflight("s", history[:length])
    manager.observe_usage("s", 1_000)
    manager.recall("s", "result-3")
    manager.why("s", "the task")
    manager.report("s")
    manager.undo("s")
    manager.manual_compact("s", history)
    getattr(manager, leave)("s")


async def ause(manager: CompactManager, leave: str) -> None:
    """The same in an event loop."""
    history = [user("the task"), *tool_run(30, words=60), *dialogue(10, words=30)]
    for length in range(8, len(history) + 1, 8):
        await manager.apreflight("s", history[:length])
    await manager.aobserve_usage("s", 1_000)
    await manager.arecall("s", "result-3")
    await manager.awhy("s", "the task")
    await manager.areport("s")
    await manager.aundo("s")
    await manager.amanual_compact("s", history)
    if leave == "forget":
        await manager.aforget("s")
    else:
        manager.delete("s")


def sync_use(manager: CompactManager, leave: str) -> None:
    asyncio.run(ause(manager, leave))


@pytest.mark.parametrize("prefetch", ["never", "auto"])
@pytest.mark.parametrize("play", [use, sync_use], ids=["sync", "async"])
@pytest.mark.parametrize(("store", "leave"), [("sqlite", "forget"), ("sqlite", "delete"), ("memory", "delete")])
def test_nothing_of_a_session_is_left_when_it_is_gone(
    tmp_path: Path, store: str, leave: str, play: Callable[[CompactManager, str], None], prefetch: str
) -> None:
    """Though somebody keeps its events: a report that was read does not hold what it was made from."""
    url = f"sqlite:///{tmp_path}/state.db" if store == "sqlite" else "memory:"
    before = {id(each) for each in left_in_memory()}
    manager, sink = manager_at(url, summarizer={"prefetch": prefetch})
    with manager:
        play(manager, leave)
        assert sink.of(CompactionCompletedEvent)
        assert all(event.report for event in sink.of(CompactionReportEvent))
        assert manager.flush()
        # A summary that is still prefetched is thrown away when it is ready; a thread that waits for work holds none.
        ends_at = time.monotonic() + 4
        while (left := [e for e in left_in_memory() if id(e) not in before]) and time.monotonic() < ends_at:
            del left
            time.sleep(0.05)
        assert left == []
