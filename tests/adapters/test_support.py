"""What all adapters share: fallback, usage, recall, and the way from messages to data and back."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from compact import CompactConfig, CompactManager, InsufficientBudget
from compact.adapters.support import (
    OutgoingRequest,
    PlainItems,
    PreparedRequest,
    RecentDict,
    RequestPreparer,
    UsageFeedback,
    aanswer_recall,
    answer_recall,
    call_positions,
    insert_calls,
    instruction_text,
    named_session,
    observe_usage,
    prompt_tokens,
    same_objects,
    without_meta,
)
from compact.core.engine.events import CompactionErrorEvent, NoticeEvent
from compact.dialects.objects import plain_item
from compact.testing import RecordingSink, tool_run

HELLO: list[Any] = [{"role": "user", "content": "Hello.", "meta": {"protected": True}}]


def prepare(preparer: RequestPreparer[Any], request: Any, is_async: bool) -> PreparedRequest:
    return asyncio.run(preparer.aprepare(request)) if is_async else preparer.prepare(request)


def preparer_of(manager: CompactManager, **options: Any) -> RequestPreparer[Any]:
    """A preparer for requests that are plain lists."""
    parts: dict[str, Any] = {
        "session_of": lambda _: "s",
        "read": lambda request, _: OutgoingRequest(items=request, dialect="chat"),
    }
    return RequestPreparer(manager, "my_adapter", **{**parts, **options})


def fails(*args: Any) -> Any:
    raise RuntimeError("no luck today")


@pytest.mark.parametrize("is_async", [False, True])
class TestPreparing:
    """A request is compacted, or goes out as it is."""

    def test_what_fits_is_the_callers_own(self, is_async: bool) -> None:
        manager = CompactManager()
        messages = [{"role": "user", "content": "Hello."}]
        prepared = prepare(preparer_of(manager), messages, is_async)
        assert prepared.session_id == "s"
        assert prepared.error is None
        assert same_objects(prepared.items_or([]), messages)

    def test_what_does_not_fit_is_compacted_and_restored(self, is_async: bool) -> None:
        """What `restore` makes of the prompt is what comes out."""
        manager = CompactManager(CompactConfig(model="gpt-4o", max_context_tokens=4_000))
        history = tool_run(30, words=200)
        read = lambda request, _: OutgoingRequest(items=request, restore=lambda prompt: [len(prompt)])  # noqa: E731
        prepared = prepare(preparer_of(manager, read=read), history, is_async)
        assert prepared.items is not None
        assert 0 < prepared.items[0] < len(history)

    def test_a_failed_compaction_is_reported_and_the_request_goes_out(self, is_async: bool) -> None:
        sink = RecordingSink()
        manager = CompactManager(on_event=sink)
        messages = [*HELLO, {"role": "nobody"}]
        prepared = prepare(preparer_of(manager), messages, is_async)
        assert prepared.items is None
        assert type(prepared.error).__name__ == "InvalidHistory"
        assert prepared.items_or(messages) == [{"role": "user", "content": "Hello."}, {"role": "nobody"}]
        (event,) = sink.of(CompactionErrorEvent)
        assert (event.session_id, event.fallback) == ("s", "the request goes out as it is")
        with pytest.raises(Exception, match="nobody"):
            prepare(preparer_of(manager, strict=True), messages, is_async)

    @pytest.mark.parametrize(("part", "session_id"), [("session_of", "my_adapter"), ("read", "s")])
    def test_a_failure_of_the_adapter_itself_is_one_too(self, is_async: bool, part: str, session_id: str) -> None:
        """Reported for its session, as far as that is known."""
        sink = RecordingSink()
        prepared = prepare(preparer_of(CompactManager(on_event=sink), **{part: fails}), HELLO, is_async)
        assert prepared.session_id == ("s" if part == "read" else "")
        assert [event.session_id for event in sink.of(CompactionErrorEvent)] == [session_id]

    def test_what_cannot_fit_is_reported_loudly(self, is_async: bool) -> None:
        sink = RecordingSink()
        manager = CompactManager(CompactConfig(model="gpt-4o", max_context_tokens=4_000), on_event=sink)
        huge = [{"role": "system", "content": "word " * 6_000}, {"role": "user", "content": "Go."}]
        prepared = prepare(preparer_of(manager), huge, is_async)
        assert isinstance(prepared.error, InsufficientBudget)
        (notice,) = [event for event in sink.of(NoticeEvent) if event.severity == "high"]
        assert "cannot be made to fit" in notice.message

    def test_a_request_may_be_left_alone(self, is_async: bool) -> None:
        """Then nothing is logged or reported, and a notice says why once in a session."""
        sink = RecordingSink()
        manager = CompactManager(on_event=sink)
        preparer = preparer_of(manager, read=lambda request, _: None)
        for _ in range(2):
            assert prepare(preparer, HELLO, is_async) == PreparedRequest("s")
            preparer.notice_provider_keeps_history("s", "conversation_id")
        preparer.notice_provider_keeps_history("other", "conversation_id")
        assert not manager.sessions()
        assert [notice.session_id for notice in sink.of(NoticeEvent)] == ["s", "other"]


class TestUsage:
    """What a provider has counted."""

    def manager(self, sink: RecordingSink | None = None) -> CompactManager:
        manager = CompactManager(on_event=sink)
        manager.preflight("s", [{"role": "user", "content": "Hello."}])
        return manager

    def reported(self, manager: CompactManager) -> list[int | None]:
        return [call.tokens_reported for call in manager.model_calls("s")]

    def test_it_is_taken_in(self) -> None:
        manager = self.manager()
        observe_usage(manager, "s", 0)
        observe_usage(manager, "s", None)
        assert self.reported(manager) == [None]
        observe_usage(manager, "s", {"prompt_tokens": 12})
        assert self.reported(manager) == [12]

    def test_a_failure_is_reported_and_never_raised(self) -> None:
        sink = RecordingSink()
        observe_usage(self.manager(sink), "nobody", 12)
        assert [event.fallback for event in sink.of(CompactionErrorEvent)] == ["the reported usage is not taken in"]

    def test_late_usage_counts_once_and_only_for_the_newest_call(self) -> None:
        manager, feedback = self.manager(), UsageFeedback()
        first, second = feedback.begin("s"), feedback.begin("s")
        feedback.report("s", first, 99)
        feedback.apply(manager, "s")
        assert self.reported(manager) == [None]
        for tokens in (12, 13):
            feedback.report("s", second, tokens)
            feedback.apply(manager, "s")
        assert self.reported(manager) == [12]

    def test_whoever_comes_second_waits_until_it_is_taken_in(self, monkeypatch: pytest.MonkeyPatch) -> None:
        manager, feedback = self.manager(), UsageFeedback()
        begun, go_on = threading.Event(), threading.Event()
        done: list[str] = []

        def slow(session_id: str, usage: object) -> None:
            begun.set()
            assert go_on.wait(30)
            done.append("taken in")

        monkeypatch.setattr(manager, "observe_usage", slow)
        feedback.report("s", feedback.begin("s"), 12)
        first = threading.Thread(target=feedback.apply, args=(manager, "s"))
        first.start()
        assert begun.wait(30)
        second = threading.Thread(target=lambda: (feedback.apply(manager, "s"), done.append("second")))
        second.start()
        second.join(0.1)
        assert second.is_alive()
        go_on.set()
        for thread in (first, second):
            thread.join(30)
        assert done == ["taken in", "second"]

    def test_cached_tokens_count_wherever_they_are_reported(self) -> None:
        assert prompt_tokens(reported=10, output=5, total=105) == 100
        assert prompt_tokens(reported=100, output=None, total=None) == 100


@pytest.mark.parametrize("arguments", ['{"query": "m1"}', {"query": "m1"}])
def test_a_call_of_the_recall_tool_is_answered(arguments: Any) -> None:
    manager = CompactManager()
    manager.preflight("s", [{"role": "user", "content": "The code is 4711."}])
    assert "4711" in answer_recall(manager, "s", arguments)
    assert "4711" in answer_recall(manager, lambda: "s", arguments, max_tokens=50)
    assert "4711" in asyncio.run(aanswer_recall(manager, "s", arguments))


@pytest.mark.parametrize("arguments", ["nonsense", "[]", {}, {"query": 3}, {"query": " "}])
def test_wrong_arguments_are_answered_with_a_sentence(arguments: Any) -> None:
    assert "call recall with" in answer_recall(CompactManager(), "s", arguments)


def test_a_recall_that_fails_is_reported_and_said() -> None:
    sink = RecordingSink()
    assert (
        answer_recall(CompactManager(on_event=sink), fails, {"query": "m1"}) == "nothing can be read now: no luck today"
    )
    assert [event.fallback for event in sink.of(CompactionErrorEvent)] == ["the answer says so"]


def test_a_session_may_be_named_by_a_text_or_a_function() -> None:
    assert named_session("mine") == "mine"
    assert named_session(lambda one, two: f"{one}-{two}", 1, 2) == "1-2"
    assert named_session(None) == ""


def test_only_the_latest_entries_are_kept() -> None:
    recent: RecentDict[str, int] = RecentDict(2)
    recent["a"], recent["b"], recent["a"], recent["c"] = 1, 2, 3, 4
    assert dict(recent) == {"a": 3, "c": 4}


class Model:
    """An object of a client library."""

    def model_dump(self, *, mode: str, exclude_none: bool) -> dict[str, Any]:
        assert mode == "json"
        assert exclude_none
        return {"role": "assistant", "content": "Hi."}


def test_data_that_nobody_changed_is_the_callers_own_object() -> None:
    own = [{"role": "user", "content": "Hello."}, Model()]
    items = PlainItems[Any].read(own, plain_item)
    assert items.plain[0] is own[0]
    assert items.plain[1] == {"role": "assistant", "content": "Hi."}
    new = {"role": "user", "content": "new"}
    assert same_objects(items.restore([*items.plain, new]), [*own, new])
    assert items.restore([new], lambda data: data["content"]) == ["new"]


def test_our_marks_are_taken_off_and_nothing_else() -> None:
    other = {"role": "user", "content": "Hello."}
    assert without_meta([*HELLO, other, 42]) == [other, other, 42]
    assert without_meta([other])[0] is other


def test_instructions_are_text_whatever_they_are_wrapped_in() -> None:
    assert (instruction_text(None), instruction_text("a")) == ("", "a")
    assert instruction_text([{"text": "a"}, {"cachePoint": {}}, "b"]) == "a\nb"


@pytest.mark.parametrize("places", [(), (0,), (1, 3), (2, 3)])
def test_calls_go_back_to_where_they_stood(places: tuple[int, ...]) -> None:
    blocks = [{"call": n} if n in places else {"text": n} for n in range(4)]
    calls, rest = ([block for block in blocks if key in block] for key in ("call", "text"))
    native = call_positions(blocks, calls)
    assert insert_calls(rest, calls, native) == blocks


def test_calls_whose_place_is_gone_stand_at_the_end() -> None:
    calls = [{"call": 1}, {"call": 2}]
    assert insert_calls([{"text": "shorter"}], calls, {"calls_at": [1, 3]}) == [{"text": "shorter"}, *calls]
