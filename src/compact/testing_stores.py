"""Conformance suites for stores: what the engine relies on, for ours and for yours.

Each suite makes stores with the function it is given and raises AssertionError with what one of them got wrong. A
store is made empty, and with the clock it is to read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

from compact.core.audit.artifacts import Artifact, ArtifactMetadata, ArtifactStore, SecurityContext
from compact.core.audit.records import AddedMessage, Commit, ModelCall, PrefetchedSummary, SessionHead, StoredMessage
from compact.core.audit.store import (
    CompactionStore,
    CompactionTransaction,
    SessionReader,
    SessionStore,
    SharedStore,
    SummaryCache,
    SummaryClaims,
    VersionConflict,
    commit_plan,
    get_current_plan,
)
from compact.core.facts.ledger import Fact, FactKind, Ledger
from compact.core.log.entries import read_entry
from compact.core.log.messages import Message, ToolCall
from compact.core.plan.plan import (
    ClearRecord,
    CompactionPlan,
    DropRecord,
    ExternalizationRecord,
    SpanReference,
    SummarizationRecord,
)
from compact.core.summary.summarizer import SummaryCacheKey
from compact.core.summary.summary import OpenItem, StructuredSummary, ToolOutcome

Clock = Callable[[], float]

# Texts that some database or encoding does not take as they are.
ODD_TEXTS = ("", "漢字 и 🧠 é", "a\x00b", "lone \ud800 half", "quote ' \" \\ %s {x} :y", "../../etc", "line\nbreak\r\t")
# What a framework may put beside the fields that we know, in every shape that JSON has.
ODD_FIELDS: dict[str, Any] = {"x": [1, 2.5, None, True, {"deep": [{"er": "\x00\ud83e"}]}], "": "no name", "漢": {}}


@dataclass(slots=True)
class ManualClock:
    """A clock that stands still until it is told how much time has passed."""

    now: float = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        """Let some time pass."""
        self.now += seconds


class ReadableStore(SessionStore, SessionReader, Protocol):
    """A store that serves the engine and readers alike."""


class MakeSummaryCache(Protocol):
    """Makes an empty cache of a size."""

    def __call__(self, *, max_entries: int, ttl_seconds: float, clock: Clock) -> SummaryCache:
        """An empty cache."""
        ...


def stored_messages(*originals: object, after: int = 0, tokens: int = 7) -> tuple[StoredMessage, ...]:
    """Log entries as the engine would hand them to a store, with the ids `m1`, `m2`, … by their place."""
    read = read_entry
    return tuple(
        StoredMessage(seq, replace(read(original, "suite"), id=f"m{seq}"), tokens)
        for seq, original in enumerate(originals, after + 1)
    )


S = TypeVar("S", bound=SessionStore)


def _run(checks: Sequence[Callable[[S, ManualClock], None]], make_store: Callable[[Clock], S]) -> None:
    for check in checks:
        clock = ManualClock()
        store = make_store(clock)
        try:
            check(store, clock)
        finally:
            store.close()


def check_session_store(make_store: Callable[[Clock], SessionStore]) -> None:
    """What the engine relies on in a store of sessions, its artifacts included: all that a store of one's own needs."""
    _run(_ENGINE_CHECKS, make_store)
    check_artifact_store(lambda clock: make_store(clock).artifacts)


def check_session_reader(make_store: Callable[[Clock], ReadableStore]) -> None:
    """What operators, the command line and the viewer rely on in a store that answers readers."""
    _run(_READER_CHECKS, make_store)


def check_shared_store(make_store: Callable[[Clock], SessionStore]) -> None:
    """What several processes rely on in a store that they share: its claims, and that they go with a session."""
    _run(_SHARED_CHECKS, make_store)
    check_summary_claims(lambda clock: _shared(make_store(clock)).claims)


def check_compaction_store(make_store: Callable[[Clock], CompactionStore]) -> None:
    """What the engine and readers rely on in a store; and other processes, if it has claims and summaries."""
    check_session_store(make_store)
    check_session_reader(make_store)
    _run(_PLAN_METHOD_CHECKS, make_store)
    store = make_store(ManualClock())
    store.close()
    if isinstance(store, SharedStore):
        check_shared_store(make_store)


def _shared(store: object) -> SharedStore:
    assert isinstance(store, SharedStore), f"{type(store).__name__} has no claims and summaries to share"
    return store


def check_artifact_store(make_store: Callable[[Clock], ArtifactStore]) -> None:
    """What rehydration and recall rely on in a store of artifacts: who sees what, and until when."""
    for check in _ARTIFACT_CHECKS:
        clock = ManualClock()
        check(make_store(clock), clock)


def check_summary_claims(make_claims: Callable[[Clock], SummaryClaims]) -> None:
    """What keeps two processes from writing the same summary."""
    for check in _CLAIM_CHECKS:
        clock = ManualClock()
        check(make_claims(clock), clock)


def check_summary_cache(make_cache: MakeSummaryCache) -> None:
    """What summarisers rely on in a cache: what was used longest ago goes first, and nothing stays too long."""
    for check in _CACHE_CHECKS:
        clock = ManualClock()
        check(make_cache(max_entries=3, ttl_seconds=60, clock=clock), clock)


# -- builders ------------------------------------------------------------------------------------------------------


def _user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def _write(store: SessionStore, *texts: str, session_id: str = "s", **more: Any) -> SessionHead:
    """Append messages to a session, wherever it stands."""
    head = store.head(session_id)
    entries = stored_messages(*map(_user, texts), after=head.last_seq)
    return store.commit(Commit(session_id=session_id, expected=head, messages=entries, **more))


def _call(**fields: Any) -> ModelCall:
    usual = {"turn_number": 1, "plan_version": 0, "summary_version": 0, "last_seq": 2, "messages": 2, "evicted": 0}
    return ModelCall(**{**usual, "tokens_estimated": 14, **fields})


def _plan(version: int = 1, session_id: str = "s") -> CompactionPlan:
    """A plan with a record of each kind, and texts that are hard to keep."""
    about: dict[str, Any] = {"strategy": "suite", "tokens_before": 9, "tokens_after": 2}
    odd = "\x00 \ud800 漢"
    kept = {"kept": ((0, 3), (9, 12)), "preserved_fields": {"status": odd}, "kept_arguments": ((2, 40),)}
    records = (
        ClearRecord(span=SpanReference(("m1",)), reason=odd, **kept, **about),
        SummarizationRecord(
            span=SpanReference(("m2", "m3")), reason="", version=3, max_tokens=50, summary=_summary(odd), **about
        ),
        ExternalizationRecord(span=SpanReference(("m4",)), reason="", artifact_id="art-1", preview=odd, **about),
        DropRecord(span=SpanReference(("m5",)), reason="", **about),
    )
    return CompactionPlan(session_id, version, records, ("m1",), "because", 45, 10, origin=0, held=True)


def _summary(text: str) -> StructuredSummary:
    outcomes, items = (ToolOutcome("read", text, ("m2",)),), (OpenItem(text, "high", ("m3",)),)
    ledger = Ledger((Fact(FactKind.TASK, text, source_ids=("m1",)), Fact(FactKind.FILE, text, "modified")))
    return StructuredSummary(ledger=ledger, facts=(text, "two"), tool_outcomes=outcomes, open_items=items)


def _artifact(artifact_id: str = "art-1", content: str = "content", **known: Any) -> Artifact:
    usual = {"session_id": "s", "message_id": "m1", "tenant_id": "t"}
    return Artifact(ArtifactMetadata(artifact_id=artifact_id, **{**usual, **known}), content)


def _raises_conflict(action: Callable[[], object]) -> bool:
    try:
        action()
    except VersionConflict:
        return True
    return False


# -- sessions ------------------------------------------------------------------------------------------------------


def _check_unknown_session(store: SessionStore, clock: ManualClock) -> None:
    assert store.head("nobody") == SessionHead(), "a session that is not there is at the very beginning"
    assert store.load("nobody") is None, "there is nothing to load of a session that is not there"
    assert store.plans("nobody") == (), "it has no plans"
    assert get_current_plan(store, "nobody") == (CompactionPlan("nobody"), 0), "its plan changes nothing"
    assert store.delete("nobody") is False, "there is nothing to delete"
    store.report_usage("nobody", 5)
    assert store.load("nobody") is None, "a report of usage makes no session"


def _check_round_trip(store: SessionStore, clock: ManualClock) -> None:
    entries = stored_messages(_user("one"), _user("two"))
    commit = Commit(session_id="s", expected=SessionHead(), messages=entries, plan=_plan(), call=_call())
    after = store.commit(commit)
    assert after == SessionHead(last_seq=2, plan_version=1), f"two messages and a plan lead to {after}"
    assert store.head("s") == after, "the head is what the commit returned"
    loaded = store.load("s")
    assert loaded is not None, "what was committed can be loaded"
    assert (loaded.session_id, loaded.head) == ("s", after), "it says which session it is, and how far it has come"
    assert loaded.messages == entries, "messages come back as they were, in order, with their tokens"
    assert loaded.view_ids == ("m1", "m2"), "the view is the whole log as long as nobody edits the past"
    assert loaded.plan == _plan(), "the plan comes back equal, odd texts and all"
    assert loaded.last_report is None, "no usage was reported yet"
    store.report_usage("s", 17)
    _write(store, "three", call=_call())
    again = store.load("s")
    assert again is not None
    assert again.last_report is not None, "the newest call with usage comes back"
    assert replace(again.last_report, number=0, at=0.0) == _call(tokens_reported=17), "with what was reported"


def _check_append_only(store: SessionStore, clock: ManualClock) -> None:
    _write(store, "one", "two")
    _write(store, "three")
    head = _write(store)
    loaded = store.load("s")
    assert loaded is not None
    assert [stored.message.text for stored in loaded.messages] == ["one", "two", "three"], "commits add to the log"
    assert [stored.seq for stored in loaded.messages] == [1, 2, 3], "numbers go up by one"
    assert head == SessionHead(last_seq=3), "a commit of nothing leaves the head where it is"


def _check_conflicts(store: SessionStore, clock: ManualClock) -> None:
    before = _write(store, "one", "two", plan=_plan(1), view_ids=("m1", "m2"))
    stale = (
        SessionHead(),
        replace(before, last_seq=1),
        replace(before, last_seq=3),
        replace(before, plan_version=0),
        replace(before, branch=0),
    )
    for expected in stale:
        late = Commit(
            session_id="s",
            expected=expected,
            messages=stored_messages(_user("late"), after=2),
            view_ids=("m1",),
            plan=_plan(2),
            call=_call(),
        )
        assert _raises_conflict(lambda late=late: store.commit(late)), f"{expected} is not where the session is"
    nowhere = Commit(session_id="nobody", expected=SessionHead(last_seq=3))
    assert _raises_conflict(lambda: store.commit(nowhere)), "a session that is not there is not at 3"
    loaded = store.load("s")
    assert loaded is not None
    left = (loaded.head, len(loaded.messages), loaded.view_ids, len(store.plans("s")))
    assert left == (before, 2, ("m1", "m2"), 1), "a commit that conflicts leaves nothing behind"
    store.report_usage("s", 9)
    again = store.load("s")
    assert again is not None
    assert again.last_report is None, "not even its model call"
    assert store.load("nobody") is None, "a commit that conflicts makes no session"


def _check_race(store: SessionStore, clock: ManualClock) -> None:
    for round_ in range(3):
        head = store.head("s")
        entries = stored_messages(_user(f"round {round_}"), after=head.last_seq)
        commit = Commit(session_id="s", expected=head, messages=entries)
        with ThreadPoolExecutor(6) as pool:
            lost = list(pool.map(lambda _, c=commit: _raises_conflict(lambda: store.commit(c)), range(6)))
        assert lost.count(False) == 1, f"of six that commit from one head, {lost.count(False)} won"
    loaded = store.load("s")
    assert loaded is not None
    assert len(loaded.messages) == 3, "who lost has written nothing"


def _check_branches(store: SessionStore, clock: ManualClock) -> None:
    def view() -> tuple[str, ...]:
        loaded = store.load("s")
        return loaded.view_ids if loaded else ()

    _write(store, "one", "two", "three")
    assert _write(store, "two, edited", view_ids=("m1", "m4")).branch == 1, "an edited past is a new branch"
    assert view() == ("m1", "m4"), "the view is the line the caller is on"
    _write(store, "five", "six")
    assert view() == ("m1", "m4", "m5", "m6"), "what comes later is behind the edit"
    _write(store, view_ids=("m1", "m2", "m3"))
    assert view() == ("m1", "m2", "m3"), "the view can go back to what was left"
    _write(store, "seven")
    assert view() == ("m1", "m2", "m3", "m7"), "and grow from there"
    loaded = store.load("s")
    assert loaded is not None
    assert len(loaded.messages) == 7, "the log keeps what a view leaves out"
    assert loaded.head == SessionHead(last_seq=7, branch=2), "each edit counts"
    _write(store, view_ids=())
    assert view() == (), "the view can be empty"
    _write(store, "eight")
    assert view() == ("m8",), "and begin anew"


def _check_sessions_are_apart(store: SessionStore, clock: ManualClock) -> None:
    _write(store, "apple", session_id="a", plan=_plan(1, "a"), call=_call())
    _write(store, "berry", "cherry", session_id="b", view_ids=("m2",))
    a, b = store.load("a"), store.load("b")
    assert a is not None
    assert b is not None
    assert ([m.message.text for m in a.messages], a.view_ids) == (["apple"], ("m1",)), "a has its own"
    assert ([m.message.text for m in b.messages], b.view_ids) == (["berry", "cherry"], ("m2",)), "b has its own"
    assert store.plans("b") == (), "plans belong to one session"
    store.report_usage("b", 9)
    again = store.load("a")
    assert again is not None
    assert again.last_report is None, "and so does usage"


# -- plans, calls, lists -------------------------------------------------------------------------------------------


def _check_plans(store: SessionStore, clock: ManualClock) -> None:
    assert commit_plan(store, "s", _plan(99), 0) == 1, "a plan gets the next version"
    clock.advance(10)
    assert commit_plan(store, "s", CompactionPlan("s"), 1) == 2, "versions go up by one"
    assert _raises_conflict(lambda: commit_plan(store, "s", _plan(), 1)), "version 1 is no longer in force"
    assert _raises_conflict(lambda: commit_plan(store, "s", _plan(), 7)), "version 7 never was in force"
    assert get_current_plan(store, "s") == (CompactionPlan("s", 2), 2), "the plan in force is the newest one"
    plans = store.plans("s")
    assert [entry.plan for entry in plans] == [_plan(1), CompactionPlan("s", 2)], "every plan is kept, oldest first"
    assert [clock.now - entry.at for entry in plans] == [10, 0], "each with its time"
    assert _write(store, "one") == SessionHead(last_seq=1, plan_version=2), "messages go on under the plan in force"


def _check_superseded_plans(store: SessionStore, clock: ManualClock) -> None:
    _write(store, "one", plan=_plan(1))
    head = _write(store, "two", superseded=(_plan(2), _plan(3)), plan=_plan(4))
    assert head == SessionHead(last_seq=2, plan_version=4), "the last plan of a commit is in force"
    versions = [entry.plan.version for entry in store.plans("s")]
    assert versions == [1, 2, 3, 4], f"plans that could not be written in time are kept too, not {versions}"


def _check_plan_methods(store: CompactionStore, clock: ManualClock) -> None:
    assert store.get_current_plan("s") == (CompactionPlan("s"), 0), "a new session has the plan that changes nothing"
    assert store.commit_plan("s", _plan(99), 0) == 1, "the store gives a plan its version"
    assert _raises_conflict(lambda: store.commit_plan("s", _plan(), 0)), "version 0 is no longer in force"
    assert store.get_current_plan("s") == (_plan(1), 1), "the plan in force is the newest one"


def _check_transaction(store: SessionStore, clock: ManualClock) -> None:
    first, second = CompactionTransaction(store, "s"), CompactionTransaction(store, "s")
    assert (first.plan, first.version) == (CompactionPlan("s"), 0), "a transaction begins with the plan in force"
    assert first.commit(_plan()) == 1, "who is first commits"
    assert _raises_conflict(lambda: second.commit(_plan())), "who is second is told"
    assert first.commit(_plan()) == 2, "a transaction knows its own version"


def _check_model_calls(store: ReadableStore, clock: ManualClock) -> None:
    first = _call(
        parts={"system": 3, "dialogue": 4},
        evicted=2,
        summary_version=1,
        plan_version=5,
        branch=3,
        limits={"window": 100, "trigger": 85},
        reason="85 tokens \x00",
    )
    _write(store, "one", call=first)
    _write(store, "elsewhere", session_id="other", call=_call())
    clock.advance(5)
    _write(store, "two", call=_call(turn_number=2))
    _write(store, "three")
    store.report_usage("s", 400)
    store.report_usage("s", 500)
    calls = store.model_calls("s")
    assert [call.turn_number for call in calls] == [1, 2], "each call is kept, oldest first"
    assert replace(calls[0], number=0, at=0.0) == first, "with all that was said about it"
    assert calls[0].number < calls[1].number, "numbers go up"
    assert [call.at for call in calls] == [clock.now - 5, clock.now], "each has its time"
    assert [call.tokens_reported for call in calls] == [None, 500], (
        "usage belongs to the newest call, the last one counts"
    )
    assert store.model_calls("other")[0].tokens_reported is None, "and to no other session's"


def _check_sent_prompts(store: ReadableStore, clock: ManualClock) -> None:
    note = Message(role="user", content="a note\x00", id="note", meta={"injector": "clock"})
    again = Message(role="user", content="shown again", id="art-1")
    added = (AddedMessage("rehydrated", again), AddedMessage("injected", note))

    def number() -> int:
        return store.model_calls("s")[-1].number

    def shown(call: int) -> list[str]:
        sent = store.sent("s", call)
        return [entry.message.text for entry in sent.messages] if sent else []

    _write(store, "one", "two", "three", call=_call(last_seq=3), added=added)
    first = number()
    sent = store.sent("s", first)
    assert sent is not None, "a call is found by its number"
    assert sent.call == store.model_calls("s")[0], "with all that was said about it"
    assert [entry.kind for entry in sent.added] == ["rehydrated", "injected"], "with what stood beside the log"
    assert [entry.message for entry in sent.added] == [again, note], "as it was"
    assert sent.plan.version == 0, "under the plan of that time"
    # An edited past: `two` is left out, `four` is new; then everything but a stub goes under a summary.
    _write(store, "four", view_ids=("m1", "m3", "m4"), call=_call(last_seq=4, branch=1))
    second = number()
    _write(store, "five", plan=_plan(1), call=_call(last_seq=5, branch=1, plan_version=1))
    third = number()
    assert shown(first) == ["one", "two", "three"], "an earlier call shows what was there, on the line of its time"
    assert shown(second) == ["one", "three", "four"], "a later one the line it was on"
    hidden = {i for i, action in _plan(1).actions(f"m{n}" for n in range(1, 6)).items() if action.value in _UNSEEN}
    line = {"m1": "one", "m3": "three", "m4": "four", "m5": "five"}
    assert shown(third) == [text for i, text in line.items() if i not in hidden], "what left the prompt is not there"
    assert store.sent("s", 10**6) is None, "a call that never was is not there"
    assert store.sent("other", first) is None, "and no other session's"


def _check_pages(store: ReadableStore, clock: ManualClock) -> None:
    _write(store, "one alpha", "two", "three alpha beta")
    _write(store, "four beta", session_id="other")
    for number in range(5):
        _write(store, call=_call(tokens_estimated=number))
    assert [entry.seq for entry in store.messages("s", after_seq=1, limit=1)] == [2], "so many entries behind a place"
    assert [entry.message.text for entry in store.messages("s")] == ["one alpha", "two", "three alpha beta"], (
        "all of it"
    )
    assert store.messages("s", after_seq=3) == (), "behind the last there is nothing"
    assert store.messages("nobody") == (), "nor of a session that is not there"
    assert store.outline("s") == (("m1", 7), ("m2", 7), ("m3", 7)), "the outline has every entry with its tokens"
    recent = store.recent_calls(["s", "other"], 2)
    assert [call.tokens_estimated for call in recent["s"]] == [3, 4], "the newest calls come oldest first"
    assert recent["other"] == (), "a session without calls has none"
    assert store.sessions_with("alpha beta") == {"s"}, "all the words in one entry"
    assert store.sessions_with("beta") == {"s", "other"}, "in every session"
    assert store.sessions_with("gamma") == store.sessions_with(" ") == frozenset(), "what is not there is not found"


_UNSEEN = ("summarize", "drop")


def _check_readers_of_nothing(store: ReadableStore, clock: ManualClock) -> None:
    nothing = (
        store.model_calls("nobody"),
        store.search("nobody", "word", 5),
        store.sessions(),
        store.outline("nobody"),
    )
    assert nothing == ((), (), (), ()), "a session that is not there has no calls or words, and is in no list"
    assert store.message("nobody", "m1") is None, "it has no messages"
    store.report_usage("nobody", 5)
    assert store.sessions() == (), "a report of usage makes no session"


def _check_readers_stay_in_a_session(store: ReadableStore, clock: ManualClock) -> None:
    _write(store, "apple", session_id="a", call=_call())
    head = _write(store, "berry", "cherry", session_id="b")
    late = Commit(session_id="b", expected=replace(head, last_seq=1), call=_call())
    assert _raises_conflict(lambda: store.commit(late)), "the session is not at 1"
    assert store.model_calls("b") == (), "calls belong to one session, and none to a commit that conflicts"
    assert store.search("b", "apple", 5) == (), "a search stays inside its session"
    found = store.message("b", "m1")
    assert found is not None
    assert found.message.text == "berry", "an id belongs to one session"


def _check_session_list(store: ReadableStore, clock: ManualClock) -> None:
    for name in ("old", "new", "middle"):
        _write(store, "one", session_id=name, call=_call(tokens_estimated=10))
        clock.advance(1)
    _write(store, "two", session_id="new", plan=_plan(1, "new"), call=_call(tokens_estimated=20))
    listed = store.sessions()
    assert [info.session_id for info in listed] == ["new", "middle", "old"], "who wrote last is first"
    newest = listed[0]
    assert (newest.messages, newest.plan_version, newest.model_calls, newest.last_tokens) == (2, 1, 2, 20), f"{newest}"
    assert (newest.created_at, newest.updated_at) == (clock.now - 2, clock.now), "begun then, written to now"


# -- messages ------------------------------------------------------------------------------------------------------


def _odd_originals() -> list[object]:
    """Messages in every shape that a caller may hand in."""
    function = {"name": "read", "arguments": '{"path": "\\ud800"}', "x_more": 1}
    calls = [{"id": "c1", "type": "function", "function": function, "index": 0}]
    parts = [{"type": "text", "text": "part \x00"}, {"type": "image_url", "image_url": {"url": "data:x"}, "n": 1.5}]
    return [
        *({"role": "user", "content": text} for text in ODD_TEXTS),
        {"role": "assistant", "content": None, "tool_calls": calls, "refusal": None, **ODD_FIELDS},
        {"role": "tool", "tool_call_id": "c1", "content": parts, "name": "read", "meta": {"protected": True}},
        {"content": "fields in another order", "id": "own-id", "role": "user"},
        *(Message("user", text, id="own", meta={"label": text, "n": [1, None]}) for text in ODD_TEXTS),
        Message("assistant", None, (ToolCall("c2", "read", '{"a": "\ud800"}'), ToolCall("c3", "write"))),
        Message("tool", ({"type": "text", "text": "漢"},), tool_call_id="c2", name="read"),
    ]


def _check_originals(store: SessionStore, clock: ManualClock) -> None:
    originals = _odd_originals()
    entries = stored_messages(*originals)
    store.commit(Commit(session_id="s", expected=SessionHead(), messages=entries))
    loaded = store.load("s")
    assert loaded is not None
    for original, entry, stored in zip(originals, entries, loaded.messages, strict=True):
        again = stored.message
        assert again == entry.message, f"{original!r} came back as {again!r}"
        assert again.original == original, f"{original!r} came back as {again.original!r}"
        assert type(again.original) is type(original), f"{original!r} came back as another kind of message"
        if isinstance(original, dict) and isinstance(again.original, dict):
            assert list(again.original) == list(original), "fields come back in the order they had"


def _check_messages_alone(store: ReadableStore, clock: ManualClock) -> None:
    entries = stored_messages(*_odd_originals())
    store.commit(Commit(session_id="s", expected=SessionHead(), messages=entries))
    for entry in entries:
        alone = store.message("s", entry.message.id)
        assert alone == entry, "a message alone is the same as in the whole log"
        assert alone is not None
        assert alone.message.original == entry.message.original, "with the same original"


def _check_message_by_id(store: ReadableStore, clock: ManualClock) -> None:
    _write(store, "one", "two")
    found = store.message("s", "m2")
    assert found is not None
    assert (found.seq, found.message.text, found.tokens) == (2, "two", 7), "a message is found by its id"
    assert store.message("s", "m") is None, "ids are compared whole"
    for odd in ODD_TEXTS:
        assert store.message("s", odd) is None, f"no message has the id {odd!r}"


# Whatever a caller names its sessions and messages, they are kept apart.
_ODD_NAMES = (*filter(None, ODD_TEXTS), "Case", "case", " space ", "x" * 500, "null", "%", "_", "\\u0000", '"\\ud800"')


def _write_odd_names(store: SessionStore) -> None:
    for name in _ODD_NAMES:
        entry = stored_messages(_user(f"in {name}"))[0]
        named = replace(entry, message=replace(entry.message, id=name))
        commit = Commit(session_id=name, expected=SessionHead(), messages=(named,), view_ids=(name,), call=_call())
        store.commit(commit)


def _check_odd_names(store: SessionStore, clock: ManualClock) -> None:
    _write_odd_names(store)
    for name in _ODD_NAMES:
        loaded = store.load(name)
        assert loaded is not None, f"a session can be named {name!r}"
        assert [stored.message.text for stored in loaded.messages] == [f"in {name}"], f"{name!r} has its own messages"
        assert (loaded.session_id, loaded.view_ids) == (name, (name,)), f"{name!r} comes back as it was"
        assert loaded.messages[0].message.id == name, f"the id {name!r} comes back as it was"
    assert all([store.delete(name) for name in _ODD_NAMES]), "each can be deleted"  # noqa: C419  all of them, always


def _check_odd_names_read(store: ReadableStore, clock: ManualClock) -> None:
    _write_odd_names(store)
    for name in _ODD_NAMES:
        found = store.message(name, name)
        assert found is not None, f"a message can have the id {name!r}"
        assert found.message.id == name, f"the id {name!r} comes back as it was"
    assert sorted(info.session_id for info in store.sessions()) == sorted(_ODD_NAMES), "the list has every name once"


def _write_large_entries(store: SessionStore) -> list[int]:
    words = " ".join(f"word{number}" for number in range(200_000))
    texts = (f"needle {words}", "x" * 3_000_000, "漢" * 500_000)
    _write(store, *texts)
    return [len(text) for text in texts]


def _check_large_entries(store: SessionStore, clock: ManualClock) -> None:
    """A result of several megabytes is an entry like any other: it must not keep the session from being written."""
    lengths = _write_large_entries(store)
    loaded = store.load("s")
    assert loaded is not None
    assert [len(stored.message.text) for stored in loaded.messages] == lengths


def _check_large_entries_found(store: ReadableStore, clock: ManualClock) -> None:
    _write_large_entries(store)
    assert [found.seq for found in store.search("s", "needle", 5)] == [1], "the beginning of a large entry is found"


def _check_search(store: ReadableStore, clock: ManualClock) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "grep", "arguments": '{"path": "src/app/main.py"}'}}
    originals = (
        _user("The Harbour master counts berths"),
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "def parse_header(raw): raise ValueError('id-4711')"},
        _user("the берег is near, the master says"),
        {"role": "user", "content": [{"type": "text", "text": "lighthouse"}]},
        _user("a\x00b \ud800 beacon"),
    )
    store.commit(Commit(session_id="s", expected=SessionHead(), messages=stored_messages(*originals)))

    def found(words: str, limit: int = 10) -> list[int]:
        return sorted(stored.seq for stored in store.search("s", words, limit))

    expected = {
        "harbour": [1],
        "HARBOUR berths": [1],
        "master": [1, 4],
        "master counts near": [],
        "берег": [4],
        "lighthouse": [5],
        "beacon": [6],
        "grep": [2],
        "main.py": [2],
        "src/app/main.py": [2],
        "parse_header": [3],
        "id-4711": [3],
        "ValueError('id-4711')": [3],
    }
    for words, places in expected.items():
        assert found(words) == places, f"{words!r} is in {places}, found in {found(words)}"
    assert len(found("master", 1)) == 1, "no more than asked for"
    for words in (
        "nowhere",
        "",
        "   ",
        "?!",
        '"',
        '"unclosed',
        "NOT",
        "AND OR",
        "NEAR(x y)",
        "q:z*",
        "-",
        "\x00",
        "\ud800",
    ):
        assert found(words) == [], f"{words!r} is nowhere"


def _check_deletion(store: SessionStore, clock: ManualClock) -> None:
    for name in ("gone", "stays"):
        _write(store, "needle", session_id=name, plan=_plan(1, name), call=_call(), view_ids=("m1",))
        store.artifacts.store_artifact(_artifact(f"art-{name}", session_id=name, tenant_id=""))
    assert store.delete("gone") is True, "deleting says that there was something"
    left = (store.head("gone"), store.load("gone"), store.plans("gone"))
    assert left == (SessionHead(), None, ()), "nothing is left of it"
    anyone = SecurityContext()
    assert store.artifacts.list_artifacts("gone", anyone) == (), "its artifacts go with it"
    assert store.artifacts.retrieve_artifact("art-gone", anyone) is None, "and cannot be read by their id"
    assert store.delete("gone") is False, "it is only gone once"
    assert store.load("stays") is not None, "other sessions stay"
    assert len(store.artifacts.list_artifacts("stays", anyone)) == 1, "with their artifacts"
    assert _write(store, "again", session_id="gone") == SessionHead(last_seq=1), "the name can be used again"


def _check_deletion_for_readers(store: ReadableStore, clock: ManualClock) -> None:
    for name in ("gone", "stays"):
        _write(store, "needle", session_id=name, call=_call())
    number = store.model_calls("gone")[0].number
    assert store.delete("gone") is True, "deleting says that there was something"
    assert (store.model_calls("gone"), store.sent("gone", number)) == ((), None), "its calls go with it"
    assert (store.search("gone", "needle", 5), store.message("gone", "m1")) == ((), None), "not even by words or id"
    assert store.sessions_with("needle") == {"stays"}, "nor among all sessions"
    assert [info.session_id for info in store.sessions()] == ["stays"], "nor in the list"
    assert store.search("stays", "needle", 5) != (), "other sessions stay"


def _check_deletion_of_what_is_shared(store: SessionStore, clock: ManualClock) -> None:
    shared = _shared(store)
    for name in ("gone", "stays"):
        _write(store, "needle", session_id=name)
        assert shared.claims.claim(name, "span", stale_after_seconds=60), "a new span can be claimed"
        shared.claims.finish(name, "span", _summary("done"))
        shared.claims.store_prefetched(name, "span", PrefetchedSummary(("m1",), 1, _summary("done")))
        shared.summaries.put(SummaryCacheKey(name), _summary("done"), session_id=name)
    assert store.delete("gone") is True, "deleting says that there was something"
    assert shared.claims.finished("gone", "span") is None, "its summaries go with it"
    assert shared.claims.prefetched("gone", 1) is None, "those that were prefetched too"
    assert shared.summaries.get(SummaryCacheKey("gone")) is None, "and those in the cache"
    assert shared.claims.finished("stays", "span") == _summary("done"), "other sessions keep theirs"
    assert shared.claims.prefetched("stays", 1) == PrefetchedSummary(("m1",), 1, _summary("done")), "all of them"
    assert shared.summaries.get(SummaryCacheKey("stays")) == _summary("done"), "in the cache as well"


_ENGINE_CHECKS = (
    _check_unknown_session,
    _check_round_trip,
    _check_append_only,
    _check_conflicts,
    _check_race,
    _check_branches,
    _check_sessions_are_apart,
    _check_plans,
    _check_superseded_plans,
    _check_transaction,
    _check_originals,
    _check_odd_names,
    _check_large_entries,
    _check_deletion,
)
_READER_CHECKS = (
    _check_readers_of_nothing,
    _check_readers_stay_in_a_session,
    _check_model_calls,
    _check_sent_prompts,
    _check_pages,
    _check_session_list,
    _check_messages_alone,
    _check_message_by_id,
    _check_odd_names_read,
    _check_large_entries_found,
    _check_search,
    _check_deletion_for_readers,
)
_PLAN_METHOD_CHECKS = (_check_plan_methods,)
_SHARED_CHECKS = (_check_deletion_of_what_is_shared,)


# -- artifacts -----------------------------------------------------------------------------------------------------

_OWNER = SecurityContext("me", "t")


def _check_artifact_round_trip(store: ArtifactStore, clock: ManualClock) -> None:
    for number, text in enumerate((*ODD_TEXTS, "long " * 100_000)):
        artifact = _artifact(f"art-{number}", text, tool_name=text[:50], message_id=f"m{number}", tokens=9)
        store.store_artifact(artifact)
        assert store.retrieve_artifact(f"art-{number}", _OWNER) == artifact, f"{text[:50]!r} comes back exactly"
    assert store.retrieve_artifact("art-nobody", _OWNER) is None, "what is not there is nothing"


def _check_artifacts_stay_as_they_are(store: ArtifactStore, clock: ManualClock) -> None:
    store.store_artifact(_artifact())
    store.store_artifact(_artifact())
    store.store_artifact(_artifact(content="other"))
    found = store.retrieve_artifact("art-1", _OWNER)
    assert found is not None
    assert found.content == "content", "the first content of an id stays"
    assert len(store.list_artifacts("s", _OWNER)) == 1, "the same artifact again is one artifact"
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda _: store.store_artifact(_artifact("art-race")), range(6)))
    assert len(store.list_artifacts("s", _OWNER)) == 2, "and so it is when several store it at once"


def _check_artifact_list(store: ArtifactStore, clock: ManualClock) -> None:
    for number in (3, 1, 2):
        store.store_artifact(_artifact(f"art-{number}"))
        clock.advance(1)
    store.store_artifact(_artifact("art-elsewhere", session_id="other"))
    listed = [known.artifact_id for known in store.list_artifacts("s", _OWNER)]
    assert listed == ["art-3", "art-1", "art-2"], f"a session's artifacts, oldest first, not {listed}"


def _check_artifact_tenants(store: ArtifactStore, clock: ManualClock) -> None:
    store.store_artifact(_artifact(content="ours"))
    everything = frozenset(f"read:{level}" for level in ("public", "internal", "confidential", "restricted"))
    for tenant in ("", "T", "t ", "u", "%", "t\x00"):
        stranger = SecurityContext("me", tenant, everything)
        assert store.retrieve_artifact("art-1", stranger) is None, f"tenant {tenant!r} reads what is not its own"
        assert store.list_artifacts("s", stranger) == (), f"tenant {tenant!r} sees what is not its own"
        assert store.delete_artifact("art-1", stranger) is False, f"tenant {tenant!r} deletes what is not its own"
    store.store_artifact(_artifact(content="theirs", tenant_id="u"))
    both = [store.retrieve_artifact("art-1", SecurityContext("me", tenant)) for tenant in ("t", "u")]
    assert [found and found.content for found in both] == ["ours", "theirs"], "two tenants may use the same id"
    assert store.delete_artifact("art-1", _OWNER) is True, "the owner may delete"
    assert store.retrieve_artifact("art-1", _OWNER) is None, "and then it is gone"
    assert store.retrieve_artifact("art-1", SecurityContext("me", "u")) is not None, "for the owner only"


def _check_artifact_sensitivity(store: ArtifactStore, clock: ManualClock) -> None:
    levels = ("public", "internal", "confidential", "restricted")
    for level in levels:
        store.store_artifact(_artifact(f"art-{level}", sensitivity=level))
    expected = {
        frozenset[str](): levels[:2],
        frozenset({"read:confidential"}): levels[:3],
        frozenset({"read:restricted"}): (*levels[:2], "restricted"),
    }
    for permissions, visible in expected.items():
        who = SecurityContext("me", "t", permissions)
        seen = tuple(level for level in levels if store.retrieve_artifact(f"art-{level}", who))
        listed = {known.sensitivity for known in store.list_artifacts("s", who)}
        assert seen == visible, f"with {set(permissions)} one sees {visible}, not {seen}"
        assert listed == set(visible), f"with {set(permissions)} one finds {visible} in the list, not {listed}"
    assert store.delete_artifact("art-restricted", _OWNER) is False, "who may not see it may not delete it"


def _check_artifact_expiry(store: ArtifactStore, clock: ManualClock) -> None:
    store.store_artifact(_artifact("art-short", expires_at=clock.now + 10))
    store.store_artifact(_artifact("art-long"))
    store.store_artifact(_artifact("art-never-was", expires_at=0.0))

    def visible() -> list[str]:
        return [known.artifact_id for known in store.list_artifacts("s", _OWNER)]

    assert sorted(visible()) == ["art-long", "art-short"], "an artifact is there until it expires"
    clock.advance(10)
    assert visible() == ["art-long"], "and not in the list from then on"
    assert store.retrieve_artifact("art-short", _OWNER) is None, "nor to be read"


_ARTIFACT_CHECKS = (
    _check_artifact_round_trip,
    _check_artifacts_stay_as_they_are,
    _check_artifact_list,
    _check_artifact_tenants,
    _check_artifact_sensitivity,
    _check_artifact_expiry,
)


# -- claims --------------------------------------------------------------------------------------------------------


def _check_one_claim(claims: SummaryClaims, clock: ManualClock) -> None:
    def claim(session_id: str = "s", span_key: str = "span") -> bool:
        return claims.claim(session_id, span_key, stale_after_seconds=60)

    assert claim(), "the first gets the claim"
    assert not claim(), "the second does not"
    assert claim(span_key="other span"), "another span is free"
    assert claim(session_id="other"), "another session is free"
    assert claims.finished("s", "span") is None, "a claim is no summary"
    assert claims.wait("s", "span", timeout_seconds=0.01) is None, "waiting ends"


def _check_finished_claims(claims: SummaryClaims, clock: ManualClock) -> None:
    claims.claim("s", "span", stale_after_seconds=60)
    claims.finish("s", "span", _summary("\x00 \ud800 done"))
    assert claims.finished("s", "span") == _summary("\x00 \ud800 done"), "the summary comes back exactly"
    assert claims.wait("s", "span", timeout_seconds=1) == _summary("\x00 \ud800 done"), "who waits gets it"
    clock.advance(1_000)
    assert not claims.claim("s", "span", stale_after_seconds=60), "what is written is never written again"
    assert claims.finished("s", "other span") is None, "a summary belongs to one span"
    assert claims.finished("other", "span") is None, "of one session"


def _check_claims_given_up(claims: SummaryClaims, clock: ManualClock) -> None:
    claims.claim("s", "span", stale_after_seconds=60)
    claims.finish("s", "span", None)
    assert claims.wait("s", "span", timeout_seconds=5) is None, "nobody waits for a claim that was given up"
    assert claims.claim("s", "span", stale_after_seconds=60), "it is free again"
    claims.finish("s", "span", _summary("first"))
    claims.finish("s", "span", None)
    assert claims.finished("s", "span") == _summary("first"), "who gives up late takes nothing away"
    claims.finish("s", "span", _summary("second"))
    assert claims.finished("s", "span") == _summary("first"), "the first summary of a span stays"


def _check_prefetched_summaries(claims: SummaryClaims, clock: ManualClock) -> None:
    assert claims.prefetched("s", 1) is None, "nothing is prefetched yet"
    for span, text in (("older", "first"), ("newer", "second")):
        claims.claim("s", span, stale_after_seconds=60)
        claims.finish("s", span, _summary(text))
        claims.store_prefetched("s", span, PrefetchedSummary((f"m-{text}",), 1, _summary(text)))
        clock.advance(1)
    assert claims.prefetched("s", 1) == PrefetchedSummary(("m-second",), 1, _summary("second")), "the newest counts"
    assert claims.prefetched("s", 2) is None, "for the version it was written for"
    assert claims.prefetched("other", 1) is None, "of its session"
    claims.finish("s", "never claimed", _summary("late"))
    assert claims.finished("s", "never claimed") is None, "a claim that is gone takes no summary"


def _check_stale_claims(claims: SummaryClaims, clock: ManualClock) -> None:
    claims.claim("s", "span", stale_after_seconds=60)
    clock.advance(59)
    assert not claims.claim("s", "span", stale_after_seconds=60), "a claim holds for its time"
    clock.advance(2)
    with ThreadPoolExecutor(6) as pool:
        won = list(pool.map(lambda _: claims.claim("s", "span", stale_after_seconds=60), range(6)))
    assert won.count(True) == 1, f"a stale claim is given to one of six, not to {won.count(True)}"


_CLAIM_CHECKS = (
    _check_one_claim,
    _check_finished_claims,
    _check_claims_given_up,
    _check_prefetched_summaries,
    _check_stale_claims,
)


# -- summary cache -------------------------------------------------------------------------------------------------


def _check_cache_keys(cache: SummaryCache, clock: ManualClock) -> None:
    keys = (
        SummaryCacheKey("hash"),
        SummaryCacheKey("hash", model="large"),
        SummaryCacheKey("hash", policy_version="large"),
    )
    for number, key in enumerate(keys):
        assert cache.get(key) is None, "an empty cache knows nothing"
        cache.put(key, _summary(f"{number} \x00 \ud800"))
    for number, key in enumerate(keys):
        assert cache.get(key) == _summary(f"{number} \x00 \ud800"), "every part of a key counts"
    cache.put(keys[0], _summary("new"))
    assert cache.get(keys[0]) == _summary("new"), "the newest summary of a key counts"
    cache.invalidate(keys[0])
    cache.invalidate(keys[0])
    assert cache.get(keys[0]) is None, "what is invalid is gone"
    assert cache.get(keys[1]) is not None, "and nothing else"


def _check_cache_size(cache: SummaryCache, clock: ManualClock) -> None:
    def known(names: str) -> str:
        return "".join(name for name in names if cache.get(SummaryCacheKey(name)))

    for name in "abc":
        cache.put(SummaryCacheKey(name), _summary(name))
        clock.advance(1)
    assert known("a") == "a", "three fit"
    clock.advance(1)
    cache.put(SummaryCacheKey("d"), _summary("d"))
    assert known("abcd") == "acd", "of four, the one that was not used for longest goes"


def _check_cache_age(cache: SummaryCache, clock: ManualClock) -> None:
    key = SummaryCacheKey("hash")
    cache.put(key, _summary("old"))
    clock.advance(59)
    assert cache.get(key) is not None, "a summary is good for its time"
    clock.advance(2)
    assert cache.get(key) is None, "and not longer, however often it is used"
    cache.put(key, _summary("new"))
    assert cache.get(key) == _summary("new"), "a new one is good again"


def _check_cache_race(cache: SummaryCache, clock: ManualClock) -> None:
    keys: Sequence[SummaryCacheKey] = [SummaryCacheKey(str(number % 5)) for number in range(20)]
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda key: cache.put(key, _summary("same")), keys))
    left = sum(cache.get(key) is not None for key in set(keys))
    assert 0 < left <= 3, f"several may write at once, and {left} are left"


_CACHE_CHECKS = (_check_cache_keys, _check_cache_size, _check_cache_age, _check_cache_race)
