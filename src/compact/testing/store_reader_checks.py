"""What readers rely on in a store: lists, search, the prompt of an earlier call."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from compact.core.audit.records import AddedMessage, Commit, ImportedHistory, SessionHead
from compact.core.audit.store import (
    CallHistoryReader,
    SessionReader,
    SessionStore,
)
from compact.core.messages.message import Message
from compact.testing.store_samples import (
    ODD_NAMES,
    ODD_TEXTS,
    UNSEEN,
    ManualClock,
    append_large_entries,
    append_texts,
    append_under_odd_names,
    odd_originals,
    raises_conflict,
    sample_call,
    sample_plan,
    stored_messages,
    user_entry,
)


class ReadableStore(SessionStore, SessionReader, Protocol):
    """A store that serves the engine and readers alike."""


def _check_model_calls(store: ReadableStore, clock: ManualClock) -> None:
    first = sample_call(
        parts={"system": 3, "dialogue": 4},
        evicted=2,
        summary_version=1,
        plan_version=5,
        branch=3,
        limits={"window": 100, "trigger": 85},
        reason="85 tokens \x00",
        details={"model": "漢 \ud800", "prices": {"fresh": 3e-06}, "contents": {"tool_results": {"read": 4}}},
    )
    append_texts(store, "one", call=first)
    append_texts(store, "elsewhere", session_id="other", call=sample_call())
    clock.advance(5)
    append_texts(store, "two", call=sample_call(turn_number=2))
    append_texts(store, "three")
    store.report_usage("s", 400)
    store.report_usage("s", 500, cache_read_tokens=450, cache_write_tokens=0)
    calls = store.model_calls("s")
    assert [call.turn_number for call in calls] == [1, 2], "each call is kept, oldest first"
    assert replace(calls[0], number=0, at=0.0) == first, "with all that was said about it"
    assert [call.number for call in calls] == [1, 2], "the calls of a session have the numbers 1, 2, 3"
    assert [call.number for call in store.model_calls("other")] == [1], "whatever happens in other sessions"
    assert [call.number for call in store.recent_calls(["s"], 1)["s"]] == [2], "the newest has the last number"
    loaded = store.load("s")
    assert loaded is not None
    assert loaded.last_report == calls[1], "the call whose usage was reported has its number, too"
    assert [call.at for call in calls] == [clock.now - 5, clock.now], "each has its time"
    assert [call.tokens_reported for call in calls] == [None, 500], (
        "usage belongs to the newest call, the last one counts"
    )
    assert calls[1].details == {"cache_read_tokens": 450, "cache_write_tokens": 0}, "with what was told of the cache"
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

    append_texts(store, "one", "two", "three", call=sample_call(last_seq=3), added=added)
    first = number()
    sent = store.sent("s", first)
    assert sent is not None, "a call is found by its number"
    assert sent.call == store.model_calls("s")[0], "with all that was said about it"
    assert [entry.kind for entry in sent.added] == ["rehydrated", "injected"], "with what stood beside the log"
    assert [entry.message for entry in sent.added] == [again, note], "as it was"
    assert sent.plan.version == 0, "under the plan of that time"
    # An edited past: `two` is left out, `four` is new; then everything but a stub goes under a summary.
    append_texts(store, "four", view_ids=("m1", "m3", "m4"), call=sample_call(last_seq=4, branch=1))
    second = number()
    append_texts(store, "five", plan=sample_plan(1), call=sample_call(last_seq=5, branch=1, plan_version=1))
    third = number()
    assert shown(first) == ["one", "two", "three"], "an earlier call shows what was there, on the line of its time"
    assert shown(second) == ["one", "three", "four"], "a later one the line it was on"
    hidden = {i for i, action in sample_plan(1).actions(f"m{n}" for n in range(1, 6)).items() if action.value in UNSEEN}
    line = {"m1": "one", "m3": "three", "m4": "four", "m5": "five"}
    assert shown(third) == [text for i, text in line.items() if i not in hidden], "what left the prompt is not there"
    _check_call_history(store, first)
    assert store.sent("s", 10**6) is None, "a call that never was is not there"
    assert store.sent("other", first) is None, "and no other session's"


def _check_call_history(store: ReadableStore, first: int) -> None:
    """Check a store that tells all calls at once: it says what it says of each."""
    if not isinstance(store, CallHistoryReader):
        return
    history = store.call_history("s")
    assert history is not None, "a session has a history of its calls"
    assert history.calls == store.model_calls("s"), "with every call, oldest first"
    for call in history.calls:
        sent = store.sent("s", call.number)
        assert sent is not None, "each is found by its number"
        assert history.added.get(call.number, ()) == sent.added, "with what stood beside the log"
    later = store.call_history("s", after_call=first)
    assert later is not None, "a part of the history can be asked for"
    assert later.calls == tuple(call for call in history.calls if call.number > first), "the calls behind one"
    assert set(history.branches) == {call.branch for call in history.calls} - {0}, "and the lines they were on"
    assert store.call_history("other") is None, "another session has none"


def _check_pages(store: ReadableStore, clock: ManualClock) -> None:
    append_texts(store, "one alpha", "two", "three alpha beta")
    append_texts(store, "four beta", session_id="other")
    for number in range(5):
        append_texts(store, call=sample_call(tokens_estimated=number))
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
    append_texts(store, "apple", session_id="a", call=sample_call())
    head = append_texts(store, "berry", "cherry", session_id="b")
    late = Commit(session_id="b", expected=replace(head, last_seq=1), call=sample_call())
    assert raises_conflict(lambda: store.commit(late)), "the session is not at 1"
    assert store.model_calls("b") == (), "calls belong to one session, and none to a commit that conflicts"
    assert store.search("b", "apple", 5) == (), "a search stays inside its session"
    found = store.message("b", "m1")
    assert found is not None
    assert found.message.text == "berry", "an id belongs to one session"


def _check_session_list(store: ReadableStore, clock: ManualClock) -> None:
    for name in ("old", "new", "middle"):
        append_texts(store, "one", session_id=name, call=sample_call(tokens_estimated=10))
        clock.advance(1)
    append_texts(store, "two", session_id="new", plan=sample_plan(1, "new"), call=sample_call(tokens_estimated=20))
    listed = store.sessions()
    assert [info.session_id for info in listed] == ["new", "middle", "old"], "who wrote last is first"
    newest = listed[0]
    assert (newest.messages, newest.plan_version, newest.model_calls, newest.last_tokens) == (2, 1, 2, 20), f"{newest}"
    assert (newest.created_at, newest.updated_at) == (clock.now - 2, clock.now), "begun then, written to now"
    assert newest.imported is None, "and not imported"


def _check_imported_history(store: ReadableStore, clock: ManualClock) -> None:
    read = ImportedHistory(turn_number=1, tokens=9, parts={"dialogue": 9}, contents={}, limits={"window": 100})
    entries = stored_messages({"role": "user", "content": "one"})
    head = store.commit(Commit(session_id="s", expected=SessionHead(), messages=entries, imported=read))
    (info,) = store.sessions()
    assert (info.imported, info.model_calls, info.last_tokens) == (read, 0, 9), "a history that went to no model"
    store.commit(Commit(session_id="s", expected=head, call=sample_call(tokens_estimated=20)))
    (info,) = store.sessions()
    assert (info.imported, info.model_calls, info.last_tokens) == (read, 1, 20), "and what went out since"


def _check_messages_alone(store: ReadableStore, clock: ManualClock) -> None:
    entries = stored_messages(*odd_originals())
    store.commit(Commit(session_id="s", expected=SessionHead(), messages=entries))
    for entry in entries:
        alone = store.message("s", entry.message.id)
        assert alone == entry, "a message alone is the same as in the whole log"
        assert alone is not None
        assert alone.message.original == entry.message.original, "with the same original"


def _check_message_by_id(store: ReadableStore, clock: ManualClock) -> None:
    append_texts(store, "one", "two")
    found = store.message("s", "m2")
    assert found is not None
    assert (found.seq, found.message.text, found.tokens) == (2, "two", 7), "a message is found by its id"
    assert store.message("s", "m") is None, "ids are compared whole"
    for odd in ODD_TEXTS:
        assert store.message("s", odd) is None, f"no message has the id {odd!r}"


def _check_odd_names_read(store: ReadableStore, clock: ManualClock) -> None:
    append_under_odd_names(store)
    for name in ODD_NAMES:
        found = store.message(name, name)
        assert found is not None, f"a message can have the id {name!r}"
        assert found.message.id == name, f"the id {name!r} comes back as it was"
    assert sorted(info.session_id for info in store.sessions()) == sorted(ODD_NAMES), "the list has every name once"


def _check_large_entries_found(store: ReadableStore, clock: ManualClock) -> None:
    append_large_entries(store)
    assert [found.seq for found in store.search("s", "needle", 5)] == [1], "the beginning of a large entry is found"


def _check_search(store: ReadableStore, clock: ManualClock) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "grep", "arguments": '{"path": "src/app/main.py"}'}}
    originals = (
        user_entry("The Harbour master counts berths"),
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "def parse_header(raw): raise ValueError('id-4711')"},
        user_entry("the берег is near, the master says"),
        {"role": "user", "content": [{"type": "text", "text": "lighthouse"}]},
        user_entry("a\x00b \ud800 beacon"),
        user_entry("one URL, two PRs"),
    )
    store.commit(Commit(session_id="s", expected=SessionHead(), messages=stored_messages(*originals)))

    def found(words: str, limit: int = 10) -> list[int]:
        return sorted(stored.seq for stored in store.search("s", words, limit))

    expected = {
        "harbour": [1],
        "HARBOUR berths": [1],
        "master": [1, 4],
        "master counts nowhere": [1, 4],
        "berth": [1],
        "counting": [1],
        "What is a lighthouse?": [5],
        "берег": [4],
        "lighthouse": [5],
        "beacon": [6],
        "which URLs do we use?": [7],
        "the PR": [7],
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
    for words, first in {
        "what did the master count": 1,
        "is the master near": 4,
        "who raised a value error": 3,
        "the master and main.py": 2,
        "the берег": 4,
    }.items():
        best = store.search("s", words, 1)
        assert [stored.seq for stored in best] == [first], f"{words!r} is about {first}, found {best}"
    for words in (
        "nowhere",
        "",
        "   ",
        "?!",
        '"',
        '"unclosed',
        "NOT",
        "AND OR",
        "FAR(x y)",
        "q:z*",
        "-",
        "\x00",
        "\ud800",
    ):
        assert found(words) == [], f"{words!r} is nowhere"


def _check_search_order(store: ReadableStore, clock: ManualClock) -> None:
    """What the order depends on, one thing at a time; the same in every store."""
    texts = (
        "refund limit",
        "the limit " + "of many other things that are said here as well " * 20,
        "limit limit refund",
        "a limit",
        "nothing of it",
        "the refunded refunds: limits of a refund_limit, src/app/limits.py",
        "a limit",
        *("unrelated",) * 20,
    )
    append_texts(store, *texts)

    def order(words: str) -> list[int]:
        return [stored.seq for stored in store.search("s", words, 10)]

    assert order("refund limit")[:3] == [6, 3, 1], "more of the words, and more often"
    assert order("limit") == [6, 3, 7, 4, 1, 2], "of equals the newest; a long entry counts less"
    assert order("what was said as well") == [2], "words of questions need not be there"
    assert order("nothing unrelated") == [5], "what matches so much less than the best is left out"
    assert order("refund_limit: limit limit refund")[0] == 6, "who has a name exactly comes first"
    assert order("app/limits.py")[0] == order("limits.py")[0] == 6, "a path is known by its end, too"


def _check_deletion_for_readers(store: ReadableStore, clock: ManualClock) -> None:
    for name in ("gone", "stays"):
        append_texts(store, "needle", session_id=name, call=sample_call())
    number = store.model_calls("gone")[0].number
    assert store.delete("gone") is True, "deleting says that there was something"
    assert (store.model_calls("gone"), store.sent("gone", number)) == ((), None), "its calls go with it"
    assert (store.search("gone", "needle", 5), store.message("gone", "m1")) == ((), None), "not even by words or id"
    assert store.sessions_with("needle") == {"stays"}, "nor among all sessions"
    assert [info.session_id for info in store.sessions()] == ["stays"], "nor in the list"
    assert store.search("stays", "needle", 5) != (), "other sessions stay"


READER_CHECKS = (
    _check_readers_of_nothing,
    _check_readers_stay_in_a_session,
    _check_model_calls,
    _check_sent_prompts,
    _check_pages,
    _check_session_list,
    _check_imported_history,
    _check_messages_alone,
    _check_message_by_id,
    _check_odd_names_read,
    _check_large_entries_found,
    _check_search,
    _check_search_order,
    _check_deletion_for_readers,
)
