"""Conformance suites for stores: what the engine relies on, for ours and for yours.

Each suite makes stores with the function it is given and raises AssertionError with what one of them got wrong. A
store is made empty, and with the clock it is to read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from compact.core.audit.artifacts import SecurityContext
from compact.core.audit.records import Commit, PrefetchedSummary, SessionHead
from compact.core.audit.store import (
    CompactionStore,
    CompactionTransaction,
    PruningStore,
    SessionStore,
    SharedStore,
    TracedStore,
    commit_plan,
    get_current_plan,
)
from compact.core.log.forms import EntryForm
from compact.core.plan.plan import (
    CompactionPlan,
)
from compact.core.summary.summarizer import SummaryCacheKey
from compact.testing.store_part_checks import check_artifact_store, check_event_store, check_summary_claims
from compact.testing.store_reader_checks import READER_CHECKS, ReadableStore
from compact.testing.store_samples import (
    ODD_NAMES,
    ODD_TEXTS,
    Clock,
    ManualClock,
    append_large_entries,
    append_texts,
    append_under_odd_names,
    as_shared,
    in_threads,
    odd_originals,
    raises_conflict,
    sample_artifact,
    sample_call,
    sample_plan,
    sample_summary,
    stored_messages,
    user_entry,
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
    """Check what the engine relies on in a store of sessions, its artifacts included: all that an own store needs.

    Args:
        make_store: Returns an empty store that goes by the clock it is given.

    Raises:
        AssertionError: The store got something wrong; the message says what.

    Example:
        >>> from compact.stores.memory import InMemoryCompactionStore
        >>> from compact.testing import check_session_store
        >>> check_session_store(lambda clock: InMemoryCompactionStore(clock=clock))
    """
    _run(_ENGINE_CHECKS, make_store)
    check_artifact_store(lambda clock: make_store(clock).artifacts)


def check_session_reader(make_store: Callable[[Clock], ReadableStore]) -> None:
    """Check what operators, the command line and the viewer rely on in a store that answers readers.

    Args:
        make_store: Returns an empty store that goes by the clock it is given.

    Raises:
        AssertionError: The store got something wrong; the message says what.

    Example:
        >>> from compact.stores.memory import InMemoryCompactionStore
        >>> from compact.testing import check_session_reader
        >>> check_session_reader(lambda clock: InMemoryCompactionStore(clock=clock))
    """
    _run(READER_CHECKS, make_store)


def check_shared_store(make_store: Callable[[Clock], SessionStore]) -> None:
    """Check what several processes rely on in a store that they share: its claims, and that they go with a session.

    Args:
        make_store: Returns an empty store that goes by the clock it is given.

    Raises:
        AssertionError: The store got something wrong; the message says what.

    Example:
        >>> from uuid import uuid4
        >>> from compact.stores.database import Database
        >>> from compact.stores.sql import SqlCompactionStore
        >>> from compact.testing import check_shared_store
        >>> check_shared_store(lambda clock: SqlCompactionStore(Database(f"sqlite:///{uuid4()}.db"), clock=clock))
    """
    _run(_SHARED_CHECKS, make_store)
    check_summary_claims(lambda clock: as_shared(make_store(clock)).claims)


def check_compaction_store(make_store: Callable[[Clock], CompactionStore]) -> None:
    """Check what the engine and readers rely on; and other processes, if it has claims and summaries, or events.

    Args:
        make_store: Returns an empty store that goes by the clock it is given.

    Raises:
        AssertionError: The store got something wrong; the message says what.

    Example:
        >>> from compact.stores.memory import InMemoryCompactionStore
        >>> from compact.testing import check_compaction_store
        >>> check_compaction_store(lambda clock: InMemoryCompactionStore(clock=clock))
    """
    check_session_store(make_store)
    check_session_reader(make_store)
    _run(_OWN_CHECKS, make_store)
    store = make_store(ManualClock())
    store.close()
    if isinstance(store, SharedStore):
        check_shared_store(make_store)
    if isinstance(store, TracedStore):
        check_event_store(make_store)


def _check_unknown_session(store: SessionStore, clock: ManualClock) -> None:
    assert store.head("nobody") == SessionHead(), "a session that is not there is at the very beginning"
    assert store.load("nobody") is None, "there is nothing to load of a session that is not there"
    assert store.plans("nobody") == (), "it has no plans"
    assert get_current_plan(store, "nobody") == (CompactionPlan("nobody"), 0), "its plan changes nothing"
    assert store.delete("nobody") is False, "there is nothing to delete"
    store.report_usage("nobody", 5)
    assert store.load("nobody") is None, "a report of usage makes no session"


def _check_round_trip(store: SessionStore, clock: ManualClock) -> None:
    entries = stored_messages(user_entry("one"), user_entry("two"))
    commit = Commit(session_id="s", expected=SessionHead(), messages=entries, plan=sample_plan(), call=sample_call())
    after = store.commit(commit)
    assert after == SessionHead(last_seq=2, plan_version=1), f"two messages and a plan lead to {after}"
    assert store.head("s") == after, "the head is what the commit returned"
    loaded = store.load("s")
    assert loaded is not None, "what was committed can be loaded"
    assert (loaded.session_id, loaded.head) == ("s", after), "it says which session it is, and how far it has come"
    assert loaded.messages == entries, "messages come back as they were, in order, with their tokens"
    assert loaded.view_ids == ("m1", "m2"), "the view is the whole log as long as nobody edits the past"
    assert loaded.plan == sample_plan(), "the plan comes back equal, odd texts and all"
    assert loaded.last_report is None, "no usage was reported yet"
    store.report_usage("s", 17)
    append_texts(store, "three", call=sample_call())
    again = store.load("s")
    assert again is not None
    assert again.last_report is not None, "the newest call with usage comes back"
    assert replace(again.last_report, number=0, at=0.0) == sample_call(tokens_reported=17), "with what was reported"


def _check_append_only(store: SessionStore, clock: ManualClock) -> None:
    append_texts(store, "one", "two")
    append_texts(store, "three")
    head = append_texts(store)
    loaded = store.load("s")
    assert loaded is not None
    assert [stored.message.text for stored in loaded.messages] == ["one", "two", "three"], "commits add to the log"
    assert [stored.seq for stored in loaded.messages] == [1, 2, 3], "numbers go up by one"
    assert head == SessionHead(last_seq=3), "a commit of nothing leaves the head where it is"


def _check_conflicts(store: SessionStore, clock: ManualClock) -> None:
    before = append_texts(store, "one", "two", plan=sample_plan(1), view_ids=("m1", "m2"))
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
            messages=stored_messages(user_entry("late"), after=2),
            view_ids=("m1",),
            plan=sample_plan(2),
            call=sample_call(),
        )
        assert raises_conflict(lambda late=late: store.commit(late)), f"{expected} is not where the session is"
    nowhere = Commit(session_id="nobody", expected=SessionHead(last_seq=3))
    assert raises_conflict(lambda: store.commit(nowhere)), "a session that is not there is not at 3"
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
        entries = stored_messages(user_entry(f"round {round_}"), after=head.last_seq)
        commit = Commit(session_id="s", expected=head, messages=entries)
        lost = in_threads(*[lambda c=commit: raises_conflict(lambda: store.commit(c))] * 6)
        assert lost.count(False) == 1, f"of six that commit from one head, {lost.count(False)} won"
    loaded = store.load("s")
    assert loaded is not None
    assert len(loaded.messages) == 3, "the one that lost has written nothing"


def _check_branches(store: SessionStore, clock: ManualClock) -> None:
    def view() -> tuple[str, ...]:
        loaded = store.load("s")
        return loaded.view_ids if loaded else ()

    append_texts(store, "one", "two", "three")
    assert append_texts(store, "two, edited", view_ids=("m1", "m4")).branch == 1, "an edited past is a new branch"
    assert view() == ("m1", "m4"), "the view is the line the caller is on"
    append_texts(store, "five", "six")
    assert view() == ("m1", "m4", "m5", "m6"), "what comes later is behind the edit"
    append_texts(store, view_ids=("m1", "m2", "m3"))
    assert view() == ("m1", "m2", "m3"), "the view can go back to what was left"
    append_texts(store, "seven")
    assert view() == ("m1", "m2", "m3", "m7"), "and grow from there"
    loaded = store.load("s")
    assert loaded is not None
    assert len(loaded.messages) == 7, "the log keeps what a view leaves out"
    assert loaded.head == SessionHead(last_seq=7, branch=2), "each edit counts"
    append_texts(store, view_ids=())
    assert view() == (), "the view can be empty"
    append_texts(store, "eight")
    assert view() == ("m8",), "and begin anew"


def _check_forms(store: SessionStore, clock: ManualClock) -> None:
    def forms() -> tuple[object, object]:
        loaded = store.load("s")
        return (dict(loaded.forms), dict(loaded.unseen)) if loaded else ({}, {})

    short, shorter = EntryForm(12, 2, "", 4), EntryForm(14, 2, "\u6f22", 3)
    append_texts(store, "one", "two", "three")
    assert forms() == ({}, {}), "entries are as they came"
    assert append_texts(store, forms={"m1": short}).branch == 1, "the same view in other forms is a branch"
    assert append_texts(store, unseen={"m2": short}).branch == 2, "so it is with forms that nobody sees"
    append_texts(store, "four", forms={"m2": shorter}, unseen={"m2": None, "m3": short})
    assert forms() == ({"m1": short, "m2": shorter}, {"m3": short}), "forms are kept until others come, or None"
    append_texts(store, view_ids=("m1", "m2"), forms={"m1": shorter}, unseen={"m2": short})
    assert forms() == ({"m1": shorter}, {"m2": short}), "a new view comes with all of its forms"


def _check_sessions_are_apart(store: SessionStore, clock: ManualClock) -> None:
    append_texts(store, "apple", session_id="a", plan=sample_plan(1, "a"), call=sample_call())
    append_texts(store, "berry", "cherry", session_id="b", view_ids=("m2",))
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


def _check_plans(store: SessionStore, clock: ManualClock) -> None:
    assert commit_plan(store, "s", sample_plan(99), 0) == 1, "a plan gets the next version"
    clock.advance(10)
    assert commit_plan(store, "s", CompactionPlan("s"), 1) == 2, "versions go up by one"
    assert raises_conflict(lambda: commit_plan(store, "s", sample_plan(), 1)), "version 1 is no longer in force"
    assert raises_conflict(lambda: commit_plan(store, "s", sample_plan(), 7)), "version 7 never was in force"
    assert get_current_plan(store, "s") == (CompactionPlan("s", 2), 2), "the plan in force is the newest one"
    plans = store.plans("s")
    assert [entry.plan for entry in plans] == [sample_plan(1), CompactionPlan("s", 2)], (
        "every plan is kept, oldest first"
    )
    assert [clock.now - entry.at for entry in plans] == [10, 0], "each with its time"
    assert append_texts(store, "one") == SessionHead(last_seq=1, plan_version=2), (
        "messages go on under the plan in force"
    )


def _check_superseded_plans(store: SessionStore, clock: ManualClock) -> None:
    append_texts(store, "one", plan=sample_plan(1))
    head = append_texts(store, "two", superseded=(sample_plan(2), sample_plan(3)), plan=sample_plan(4))
    assert head == SessionHead(last_seq=2, plan_version=4), "the last plan of a commit is in force"
    versions = [entry.plan.version for entry in store.plans("s")]
    assert versions == [1, 2, 3, 4], f"plans that could not be written in time are kept too, not {versions}"


def _check_plan_methods(store: CompactionStore, clock: ManualClock) -> None:
    assert store.get_current_plan("s") == (CompactionPlan("s"), 0), "a new session has the plan that changes nothing"
    assert store.commit_plan("s", sample_plan(99), 0) == 1, "the store gives a plan its version"
    assert raises_conflict(lambda: store.commit_plan("s", sample_plan(), 0)), "version 0 is no longer in force"
    assert store.get_current_plan("s") == (sample_plan(1), 1), "the plan in force is the newest one"


def _check_session_info(store: CompactionStore, clock: ManualClock) -> None:
    append_texts(store, "one", session_id="other", call=sample_call(tokens_estimated=10))
    append_texts(store, "one", session_id="uncalled")
    append_texts(store, "one", call=sample_call(tokens_estimated=20))
    listed = {info.session_id: info for info in store.sessions()}
    for name in ("s", "other", "uncalled"):
        assert store.session_info(name) == listed[name], "a session alone is the same as in the list"
    for odd in ODD_TEXTS:
        assert store.session_info(odd) is None, f"no session has the id {odd!r}"


def _check_transaction(store: SessionStore, clock: ManualClock) -> None:
    first, second = CompactionTransaction(store, "s"), CompactionTransaction(store, "s")
    assert (first.plan, first.version) == (CompactionPlan("s"), 0), "a transaction begins with the plan in force"
    assert first.commit(sample_plan()) == 1, "the first one commits"
    assert raises_conflict(lambda: second.commit(sample_plan())), "the second one gets a conflict"
    assert first.commit(sample_plan()) == 2, "a transaction knows its own version"


def _check_lines(store: SessionStore, clock: ManualClock) -> None:
    """Check that an entry still says which conversation it is of: recall must not mix them."""
    entries = [replace(e, message=replace(e.message, line=n)) for n, e in enumerate(stored_messages(*odd_originals()))]
    store.commit(Commit(session_id="s", expected=SessionHead(), messages=tuple(entries)))
    loaded = store.load("s")
    assert loaded is not None
    assert [stored.message.line for stored in loaded.messages] == list(range(len(entries))), "the line comes back"


def _check_originals(store: SessionStore, clock: ManualClock) -> None:
    originals = odd_originals()
    entries = stored_messages(*originals)
    store.commit(Commit(session_id="s", expected=SessionHead(), messages=entries))
    loaded = store.load("s")
    assert loaded is not None
    for original, entry, stored in zip(originals, entries, loaded.messages, strict=True):
        again = stored.message
        assert again == entry.message, f"{original!r} came back as {again!r}"
        assert again.original == original, f"{original!r} came back as {again.original!r}"
        assert type(again.original) is type(original), f"{original!r} came back as another kind of message"
        assert repr(again.original) == repr(original), "fields come back in the order they had"


def _check_odd_names(store: SessionStore, clock: ManualClock) -> None:
    append_under_odd_names(store)
    for name in ODD_NAMES:
        loaded = store.load(name)
        assert loaded is not None, f"a session can be named {name!r}"
        assert [stored.message.text for stored in loaded.messages] == [f"in {name}"], f"{name!r} has its own messages"
        assert (loaded.session_id, loaded.view_ids) == (name, (name,)), f"{name!r} comes back as it was"
        assert loaded.messages[0].message.id == name, f"the id {name!r} comes back as it was"
    assert all([store.delete(name) for name in ODD_NAMES]), "each can be deleted"  # noqa: C419  all of them, always


def _check_large_entries(store: SessionStore, clock: ManualClock) -> None:
    """Check that a result of several megabytes does not keep the session from being written."""
    lengths = append_large_entries(store)
    loaded = store.load("s")
    assert loaded is not None
    assert [len(stored.message.text) for stored in loaded.messages] == lengths


def _check_deletion(store: SessionStore, clock: ManualClock) -> None:
    for name in ("gone", "stays"):
        append_texts(store, "needle", session_id=name, plan=sample_plan(1, name), call=sample_call(), view_ids=("m1",))
        store.artifacts.store_artifact(sample_artifact(f"art-{name}", session_id=name, tenant_id=""))
    assert store.delete("gone") is True, "deleting says that there was something"
    left = (store.head("gone"), store.load("gone"), store.plans("gone"))
    assert left == (SessionHead(), None, ()), "nothing is left of it"
    anyone = SecurityContext()
    assert store.artifacts.list_artifacts("gone", anyone) == (), "its artifacts go with it"
    assert store.artifacts.retrieve_artifact("art-gone", anyone) is None, "and cannot be read by their id"
    assert store.delete("gone") is False, "it is only gone once"
    assert store.load("stays") is not None, "other sessions stay"
    assert len(store.artifacts.list_artifacts("stays", anyone)) == 1, "with their artifacts"
    assert append_texts(store, "again", session_id="gone") == SessionHead(last_seq=1), "the name can be used again"


def _check_deletion_of_unused_sessions(store: SessionStore, clock: ManualClock) -> None:
    """Many at once, if the store can: those that were used since stay, and so does whatever was not named."""
    if not isinstance(store, PruningStore):
        return
    for name in ("gone", "gone too", "not named"):
        append_texts(store, "needle", session_id=name, plan=sample_plan(1, name))
    clock.advance(60)
    append_texts(store, "needle", session_id="used")
    named = ["gone", "gone too", "used", "nobody"]
    assert store.delete_unused(named, before=clock()) == {"gone", "gone too"}, "it says which are gone"
    left = {name for name in (*named, "not named") if store.load(name)}
    assert left == {"used", "not named"}, "only what was named and was not used is gone"
    assert store.plans("gone") == (), "with all that belongs to it"
    assert store.delete_unused(named, before=clock()) == frozenset(), "and only once"
    assert store.delete_unused([], before=clock()) == frozenset(), "nothing is named, nothing is deleted"


def _check_deletion_of_what_is_shared(store: SessionStore, clock: ManualClock) -> None:
    shared = as_shared(store)
    for name in ("gone", "stays"):
        append_texts(store, "needle", session_id=name)
        assert shared.claims.claim(name, "span", stale_after_seconds=60), "a new span can be claimed"
        shared.claims.finish(name, "span", sample_summary("done"))
        shared.claims.store_prefetched(name, "span", PrefetchedSummary(("m1",), 1, sample_summary("done")))
        shared.summaries.put(SummaryCacheKey(name), sample_summary("done"), session_id=name)
    assert store.delete("gone") is True, "deleting says that there was something"
    assert shared.claims.finished("gone", "span") is None, "its summaries go with it"
    assert shared.claims.prefetched("gone", 1) is None, "those that were prefetched too"
    assert shared.summaries.get(SummaryCacheKey("gone")) is None, "and those in the cache"
    assert shared.claims.finished("stays", "span") == sample_summary("done"), "other sessions keep theirs"
    assert shared.claims.prefetched("stays", 1) == PrefetchedSummary(("m1",), 1, sample_summary("done")), "all of them"
    assert shared.summaries.get(SummaryCacheKey("stays")) == sample_summary("done"), "in the cache as well"


_ENGINE_CHECKS = (
    _check_unknown_session,
    _check_round_trip,
    _check_append_only,
    _check_conflicts,
    _check_race,
    _check_branches,
    _check_forms,
    _check_sessions_are_apart,
    _check_plans,
    _check_superseded_plans,
    _check_transaction,
    _check_originals,
    _check_lines,
    _check_odd_names,
    _check_large_entries,
    _check_deletion,
    _check_deletion_of_unused_sessions,
)


_OWN_CHECKS = (_check_plan_methods, _check_session_info)


_SHARED_CHECKS = (_check_deletion_of_what_is_shared,)
