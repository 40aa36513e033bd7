"""Ids, times and parents: what happens in an operation is a part of it, whoever drives it and wherever it ends."""

from __future__ import annotations

import asyncio
import gc
import random
import threading
from collections.abc import Callable
from contextvars import Context
from typing import Any

import pytest

from compact.core.engine.emitter import EventEmitter
from compact.core.engine.events import (
    CompactionCheckStartedEvent,
    CompactionCompletedEvent,
    CompactionEvent,
    NoticeEvent,
    OperationEndedEvent,
    OperationStartedEvent,
    SummaryCreatedEvent,
    TokenEstimateEvent,
)
from compact.core.session.session import Session
from compact.core.summary.summarizer import SummaryRequest
from compact.core.summary.summary import StructuredSummary
from compact.telemetry.emitters import Dispatcher
from compact.testing import RecordingSink, dialogue
from telemetry.event_samples import full_history, watched


def announced() -> tuple[EventEmitter, RecordingSink]:
    sink = RecordingSink()
    return EventEmitter(Dispatcher([sink])), sink


def alone(action: Callable[[], Any]) -> Any:
    """Run something where nothing else is open."""
    return Context().run(action)


def ended(sink: RecordingSink) -> list[OperationEndedEvent]:
    return sink.of(OperationEndedEvent)


def test_operations_nest() -> None:
    emitter, sink = announced()
    session = Session("s")

    def work() -> None:
        with emitter.operation(session, "preflight"):
            with emitter.operation(session, "compaction"):
                emitter.notice(session, "inside")
            emitter.notice(session, "between")
        emitter.notice(session, "after")

    alone(work)
    preflight, compaction = sink.of(OperationStartedEvent)
    inside, between, after = sink.of(NoticeEvent)
    assert preflight.parent_id == after.parent_id == ""
    assert compaction.parent_id == between.parent_id == preflight.event_id
    assert inside.parent_id == compaction.event_id
    assert [event.event_id for event in ended(sink)] == [compaction.event_id, preflight.event_id]
    ids = {event.event_id for event in sink.events}
    assert len(ids) == 5
    assert all(len(known) == 16 and int(known, 16) for known in ids)


def test_times_never_run_backwards() -> None:
    """What is told later is later, and nothing in an operation is outside of its times."""
    with watched(on_event=(sink := RecordingSink())) as manager:
        manager.preflight("s", full_history())
    starts = [event for event in sink.events if not isinstance(event, OperationEndedEvent | SummaryCreatedEvent)]
    moments = [event.ended_at for event in starts]
    assert moments == sorted(moments)
    whole = {event.event_id: event for event in ended(sink)}
    inner = [event for event in sink.events if event.parent_id]
    assert len(inner) > 8
    for event in inner:
        above = whole[event.parent_id]
        assert above.started_at <= event.started_at <= event.ended_at <= above.ended_at


def test_what_lasts_has_the_times_of_its_operation() -> None:
    with watched(on_event=(sink := RecordingSink())) as manager:
        manager.preflight("s", full_history())
    (completed,) = sink.of(CompactionCompletedEvent)
    (compaction,) = [event for event in ended(sink) if event.operation == "compaction"]
    assert completed.started_at == compaction.started_at
    assert 0 < completed.duration_seconds <= compaction.duration_seconds
    (estimate,) = sink.of(TokenEstimateEvent)
    assert estimate.duration_seconds == 0


def test_an_exception_makes_it_an_error() -> None:
    emitter, sink = announced()

    def work() -> None:
        with pytest.raises(ZeroDivisionError), emitter.operation(Session("s"), "compaction"):
            raise ZeroDivisionError

    alone(work)
    (end,) = ended(sink)
    assert (end.status, end.error_type) == ("error", "ZeroDivisionError")


def test_threads_have_operations_of_their_own() -> None:
    emitter, sink = announced()
    inside, leave = threading.Barrier(3, timeout=30), threading.Barrier(3, timeout=30)

    def work(name: str) -> None:
        session = Session(name)
        with emitter.operation(session, "compaction"):
            inside.wait()
            emitter.notice(session, name)
            leave.wait()

    threads = [threading.Thread(target=work, args=(name,)) for name in ("a", "b")]
    for thread in threads:
        thread.start()
    inside.wait()
    leave.wait()
    for thread in threads:
        thread.join(30)
    began = {event.session_id: event.event_id for event in sink.of(OperationStartedEvent)}
    assert {event.session_id: event.parent_id for event in sink.of(NoticeEvent)} == began


def test_tasks_have_operations_of_their_own() -> None:
    """Many sessions in one loop, each waiting for its summary while others go on."""

    async def slow(request: SummaryRequest) -> StructuredSummary:
        await asyncio.sleep(0.01)
        return StructuredSummary(narrative="it went on")

    async def everything() -> None:
        async with manager:
            await asyncio.gather(*(manager.apreflight(f"s-{n}", full_history()) for n in range(5)))

    manager = watched(on_event=(sink := RecordingSink()), summarizer=slow)
    asyncio.run(everything())
    began = {event.event_id: event for event in sink.of(OperationStartedEvent)}
    assert len([event for event in began.values() if event.operation == "summary"]) == 5
    for event in sink.events:
        if event.parent_id:
            assert began[event.parent_id].session_id == event.session_id
        else:
            assert isinstance(event, CompactionCheckStartedEvent | OperationEndedEvent | NoticeEvent)


def test_a_task_that_is_cancelled_ends_its_operation_and_no_other() -> None:
    """The next call in the same task begins anew, whatever was left open."""
    asked = asyncio.Event()

    async def never(request: SummaryRequest) -> StructuredSummary:
        asked.set()
        await asyncio.sleep(60)
        raise AssertionError

    async def everything() -> None:
        task = asyncio.ensure_future(manager.apreflight("s", full_history()))
        await asyncio.wait_for(asked.wait(), 30)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        del task
        gc.collect()
        await manager.apreflight("s", full_history()[:3])

    manager = watched(on_event=(sink := RecordingSink()), summarizer=never)
    asyncio.run(everything())
    abandoned = [event for event in ended(sink) if event.error_type]
    assert {event.operation for event in abandoned} == {"preflight", "compaction", "summary"}
    assert {event.error_type for event in abandoned} == {"Abandoned"}
    began = {event.event_id for event in sink.of(OperationStartedEvent)}
    assert {event.event_id for event in ended(sink)} == began
    last = sink.of(CompactionCheckStartedEvent)[-1]
    assert last.parent_id == ""
    assert [event.parent_id for event in sink.of(TokenEstimateEvent)][-1] == last.event_id


def test_what_is_ended_elsewhere_ends_what_it_began() -> None:
    """A trip that nobody drives any more is closed by the collector, in the middle of somebody else's operation."""
    emitter, sink = announced()

    def trip() -> Any:
        with emitter.operation(Session("left"), "preflight"):
            yield

    left = trip()
    Context().run(next, left)

    def work() -> None:
        session = Session("mine")
        with emitter.operation(session, "preflight"):
            left.close()
            emitter.notice(session, "still mine")

    alone(work)
    mine = next(event for event in sink.of(CompactionCheckStartedEvent) if event.session_id == "mine")
    assert sink.of(NoticeEvent)[0].parent_id == mine.event_id
    first, second = ended(sink)
    assert (first.session_id, first.error_type) == ("left", "Abandoned")
    assert (second.session_id, second.event_id) == ("mine", mine.event_id)


def test_a_call_is_never_a_part_of_what_was_left_open() -> None:
    """Not even of the same session in the same task, and not of what was ended by somebody else."""
    emitter, sink = announced()
    session, here = Session("s"), Context()

    def trip() -> Any:
        with emitter.operation(session, "compaction"):
            yield

    left = trip()
    here.run(next, left)

    def work() -> None:
        with emitter.operation(session, "preflight"):
            emitter.notice(session, "in the call")

    here.run(work)
    call = sink.of(CompactionCheckStartedEvent)[0]
    assert call.parent_id == ""
    assert sink.of(NoticeEvent)[0].parent_id == call.event_id
    here.run(emitter.notice, session, "in what was left")
    assert sink.of(NoticeEvent)[1].parent_id == sink.of(OperationStartedEvent)[0].event_id
    alone(left.close)
    here.run(emitter.notice, session, "after it")
    assert sink.of(NoticeEvent)[2].parent_id == ""


def test_a_session_within_a_session() -> None:
    """A summariser that is an agent with a manager of its own: neither is a part of the other."""
    inner_sink, outer_sink = RecordingSink(), RecordingSink()
    inner = watched(on_event=inner_sink)

    def agent(request: SummaryRequest) -> StructuredSummary:
        inner.preflight("inner", full_history()[:4])
        return StructuredSummary(narrative="it went on")

    with watched(on_event=outer_sink, summarizer=agent) as outer:
        outer.preflight("outer", full_history())
    assert inner_sink.of(CompactionCheckStartedEvent)[0].parent_id == ""
    (summary,) = outer_sink.of(SummaryCreatedEvent)
    operations = {event.operation: event.event_id for event in outer_sink.of(OperationStartedEvent)}
    assert summary.parent_id == operations["summary"]
    assert {event.session_id for event in outer_sink.events} == {"outer"}


def test_what_is_prepared_in_the_background_is_a_tree_of_its_own() -> None:
    def writes(request: SummaryRequest) -> StructuredSummary:
        return StructuredSummary(narrative="it went on")

    sink = RecordingSink()
    with watched(window=5_200, on_event=sink, summarizer=writes) as manager:
        manager.preflight("s", dialogue(40, words=50))
        manager._prefetcher.wait(30)  # pyright: ignore[reportAttributeAccessIssue]
    (prepare,) = [event for event in sink.of(OperationStartedEvent) if event.operation == "prefetch"]
    assert prepare.parent_id == ""
    (summary,) = sink.of(SummaryCreatedEvent)
    above = next(event for event in ended(sink) if event.event_id == summary.parent_id)
    assert (above.operation, above.parent_id) == ("summary", prepare.event_id)


def test_an_event_without_a_session_is_of_the_one_in_hand() -> None:
    emitter, sink = announced()
    session = Session("s")

    def work() -> None:
        with emitter.operation(session, "summary"):
            emitter.sink(NoticeEvent(session_id="", message="from below"))
            emitter.sink(NoticeEvent(session_id="another", message="not ours"))
        emitter.sink(NoticeEvent(session_id="", message="outside"))

    alone(work)
    below, other, outside = sink.of(NoticeEvent)
    assert (below.session_id, below.parent_id) == ("s", sink.of(OperationStartedEvent)[0].event_id)
    assert (other.session_id, other.parent_id) == ("another", "")
    assert (outside.session_id, outside.parent_id) == ("", "")


def test_metadata_is_in_every_event() -> None:
    with watched(on_event=(sink := RecordingSink()), event_metadata={"run": 7}) as manager:
        manager.preflight("s", full_history())
        manager.recall("s", "migrations")
    assert len(sink.events) > 10
    assert all(event.metadata == {"run": 7} for event in sink.events)


def test_an_event_keeps_its_own_metadata() -> None:
    sink = RecordingSink()
    Dispatcher([sink], metadata={"run": 7, "team": "x"})(NoticeEvent(session_id="", message="", metadata={"run": 8}))
    assert sink.events[0].metadata == {"run": 8, "team": "x"}


def test_nothing_is_remembered_of_what_is_over() -> None:
    from compact.telemetry import operations

    before = dict(operations._running)
    with watched(on_event=RecordingSink()) as manager:
        manager.preflight("s", full_history())
        with pytest.raises(Exception, match="token"):
            manager.manual_compact("s", full_history(), target_tokens=1)
    assert operations._running == before


def test_a_callers_seeded_sequence_stays_as_it_is() -> None:
    """Ids are not drawn from the generator that everybody shares."""
    random.seed(7)
    expected = random.random()
    random.seed(7)
    sink = RecordingSink()
    for _ in range(100):
        Dispatcher([sink])(NoticeEvent(session_id="s", message=""))
    assert random.random() == expected
    ids = {event.event_id for event in sink.events}
    assert len(ids) == 100
    assert all(len(event_id) == 16 and int(event_id, 16) for event_id in ids)


def test_a_dispatcher_without_sinks_does_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def must_not(*args: object) -> CompactionEvent:
        raise AssertionError

    monkeypatch.setattr("compact.telemetry.emitters.add_context", must_not)
    Dispatcher([])(NoticeEvent(session_id="", message=""))
