"""Injected content stands at the very end of one prompt, within its reserve, and leaves no trace."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable
from typing import Any

import pytest
from google.genai import types
from hypothesis import assume, given
from hypothesis import strategies as st

import dialect_conversations as written
from compact import CompactConfig, CompactManager, ConfigError, InsufficientBudget, Message
from compact.core.audit.records import Commit, SessionHead
from compact.core.audit.store import VersionConflict
from compact.core.engine.events import CompactionCompletedEvent, CompactionErrorEvent, HistoryBranchedEvent
from compact.core.errors import InjectionTooLarge
from compact.core.messages.entries import read_entry
from compact.core.messages.legality import check_chat
from compact.injection import Answer, InjectionContext, Injector
from compact.stores.memory import InMemoryCompactionStore
from compact.testing import RecordingSink, Wire, WordTokenizer, assistant, dialogue, system, tool_exchange, user
from conversations import histories


def watched(
    *injectors: Injector, window: int = 1_000, policy: dict[str, Any] | None = None, **settings: Any
) -> tuple[CompactManager, RecordingSink]:
    sink = RecordingSink()
    config = CompactConfig(
        max_context_tokens=window,
        policy={"hard_cap_buffer": 0, "keep_recent_turns": 3, "keep_tool_io_pairs": 2, **(policy or {})},
        telemetry={"exporter": "none"},
        **settings,
    )
    return CompactManager(config, tokenizer=WordTokenizer(), injectors=injectors, on_event=sink), sink


def numbered(name: str = "clock", *, words: int = 3, reserve: int = 50, **options: Any) -> Injector:
    """An injector that says something else every time."""
    count = iter(range(1, 10_000))

    def say(context: InjectionContext) -> Answer:
        return f"{name}-{next(count)}" + " word" * (words - 1)

    return Injector(name, reserve, say, **options)


def is_injected(message: Wire) -> bool:
    return str(message["content"]).startswith("[clock:")


def without_injected(prompt: list[Wire]) -> list[Wire]:
    return [message for message in prompt if not is_injected(message)]


def check(prompt: list[Wire]) -> tuple[object, ...]:
    return check_chat([read_entry(item, f"messages[{place}]") for place, item in enumerate(prompt)])


# -- where it stands ------------------------------------------------------------------------------------------------


def test_it_stands_behind_the_users_message() -> None:
    manager, _ = watched(numbered())
    history = [system("be careful"), user("which berth is free?")]
    out = manager.preflight("s", history)
    assert out[:-1] == history
    assert out[-1]["role"] == "user"
    assert out[-1]["content"] == "[clock: added for this call, not a message from the user]\nclock-1 word word"


def test_in_the_middle_of_a_turn_it_stands_behind_the_last_result() -> None:
    manager, _ = watched(numbered())
    history = [user("book"), *tool_exchange("a", "one"), *tool_exchange("b", "two")]
    out = manager.preflight("s", history)
    assert out[:-1] == history
    assert is_injected(out[-1])
    assert check(out) == ()


def test_a_call_without_its_result_is_answered_before_anything_is_injected() -> None:
    manager, _ = watched(numbered())
    out = manager.preflight("s", [user("book"), tool_exchange("a", "one")[0]])
    assert [m["role"] for m in out] == ["user", "assistant", "tool", "user"]
    assert check(out) == ()


def test_injectors_stand_in_their_order_and_may_say_nothing() -> None:
    silent: list[Callable[[InjectionContext], Answer]] = [lambda _: None, lambda _: "", lambda _: [], lambda _: "  "]
    injectors = [Injector(f"silent-{n}", 10, say) for n, say in enumerate(silent)]
    manager, _ = watched(numbered("first"), *injectors, numbered("second"))
    out = manager.preflight("s", [user("hello")])
    assert [m["content"].split(":")[0] for m in out[1:]] == ["[first", "[second"]


def test_messages_are_injected_as_they_are() -> None:
    note = {"role": "developer", "content": "answer in French", "x_extra": 1}
    manager, _ = watched(Injector("style", 50, lambda _: [note, Message("user", "thanks"), "and a text"]))
    out = manager.preflight("s", [user("hello")])
    assert out[1] == note
    assert out[2] == {"role": "user", "content": "thanks"}
    assert out[3]["content"].endswith("]\nand a text")


def test_a_list_of_messages_gets_messages_with_ids_of_their_own() -> None:
    manager, _ = watched(Injector("style", 50, lambda _: [{"role": "user", "content": "one"}, "two"]))
    out = manager.preflight("s", [Message("user", "hello")])
    assert [type(message) for message in out] == [Message] * 3
    assert [message.id for message in out[1:]] == ["compact-injected-style", "compact-injected-style-2"]


def test_an_injector_sees_the_prompt_and_its_room() -> None:
    seen: list[InjectionContext] = []

    def look(context: InjectionContext) -> Answer:
        seen.append(context)
        return None

    manager, _ = watched(Injector("look", 40, look))
    manager.preflight("s", [system("be careful"), *dialogue(2), user("and now?")])
    (context,) = seen
    assert (context.session_id, context.turn_number, context.reserve_tokens) == ("s", 3, 40)
    assert context.latest_ask == "and now?"
    assert [message.role for message in context.messages] == ["system", *["user", "assistant"] * 2, "user"]
    assert context.count_text("three little words") == 3


def test_one_that_is_asked_once_in_a_turn_stays_until_it_is_over() -> None:
    manager, _ = watched(numbered(once_per_turn=True))
    history = [user("book")]
    first = manager.preflight("s", history)[-1]
    history += tool_exchange("a", "one")
    assert manager.preflight("s", history)[-1] == first
    history += [assistant("done"), user("and now?")]
    assert manager.preflight("s", history)[-1]["content"].endswith("clock-2 word word")


# -- ephemeral -------------------------------------------------------------------------------------------------------


def test_nothing_of_it_is_in_the_log_or_in_the_next_prompt() -> None:
    manager, _ = watched(numbered())
    history = dialogue(3)
    out = manager.preflight("s", history)
    again = manager.preflight("s", [*out, user("go on")])
    assert without_injected(again) == [*history, user("go on")]
    assert [is_injected(message) for message in again] == [False] * 7 + [True]
    assert [message.original for message in manager.history("s")] == [*history, user("go on")]


def test_a_call_that_is_made_again_with_an_earlier_answer_finds_its_place() -> None:
    """A model call that failed is tried again with the list at hand, in which older content stands."""
    manager, sink = watched(numbered())
    history = dialogue(3)
    at_hand = [*manager.preflight("s", history), user("go on")]
    first = manager.preflight("s", at_hand)
    for _ in range(50):
        latest = manager.preflight("s", at_hand)
        assert without_injected(latest) == without_injected(first)
    assert manager.preflight("s", [*latest, assistant("gone on")])[:-1] == [
        *history,
        user("go on"),
        assistant("gone on"),
    ]
    assert len(manager.history("s")) == 8
    assert sink.of(HistoryBranchedEvent) == []


def test_it_is_known_in_a_prompt_of_long_ago() -> None:
    manager, _ = watched(numbered(), window=4_000)
    history = [user("do the task")]
    first = copy.deepcopy(manager.preflight("s", history))
    for number in range(40):
        history += [assistant(f"step {number}"), user(f"go on {number}")]
        manager.preflight("s", history)
    manager.preflight("s", [*first, *history[1:]])
    assert [message.original for message in manager.history("s")] == history


def test_the_same_holds_if_the_first_try_has_compacted() -> None:
    manager, sink = watched(numbered())
    at_hand = [*manager.preflight("s", dialogue(10, words=40)), *dialogue(1, words=80)]
    first = manager.preflight("s", at_hand)
    assert sink.of(CompactionCompletedEvent)
    assert without_injected(manager.preflight("s", at_hand)) == without_injected(first)
    assert len(manager.history("s")) == 22
    assert sink.of(HistoryBranchedEvent) == []


def test_errors_name_the_place_in_the_callers_own_list() -> None:
    manager, _ = watched(numbered())
    out = manager.preflight("s", dialogue(1))
    with pytest.raises(ValueError, match=r"messages\[4\]"):
        manager.preflight("s", [*out, user("fine"), {"role": "wizard"}])


def test_what_another_process_wrote_meanwhile_changes_nothing_about_it(tmp_path: Any) -> None:
    """The session is read anew from the store; that what we sent is not the caller's is still known."""
    url = f"sqlite:///{tmp_path}/state.db"
    manager, _ = watched(numbered(), state={"url": url})
    other, _ = watched(state={"url": url})
    history = dialogue(3)
    out = manager.preflight("s", history)
    other.preflight("s", [*history, user("from elsewhere")])
    again = manager.preflight("s", [*out, user("from elsewhere")])
    assert without_injected(again) == [*history, user("from elsewhere")]
    assert len(manager.history("s")) == 7
    manager.close()
    other.close()


def test_it_is_known_in_a_prompt_that_has_lost_an_older_message() -> None:
    manager, _ = watched(numbered())
    history = dialogue(4)
    sent = manager.preflight("s", history)
    assert is_injected(sent[-1])
    del sent[2]
    again = manager.preflight("s", sent)
    assert [message.original for message in manager.history("s")] == history
    assert without_injected(again) == [*history[:2], *history[3:]]


def test_it_is_known_with_the_callers_mark_for_a_cache_behind_it() -> None:
    """In an older prompt, which the caller goes back to: its mark stands behind the last item, whoever wrote that."""
    manager, _ = watched(numbered())
    history = dialogue(4)
    sent = manager.preflight("s", history)
    manager.preflight("s", [*history, assistant("gone on"), user("go on")])
    marked = {"type": "text", "text": sent[-1]["content"], "cache_control": {"type": "ephemeral"}}
    again = manager.preflight("s", [*sent[:-1], {"role": "user", "content": [marked]}])
    assert without_injected(again) == history
    assert len(manager.history("s")) == 10


def test_after_a_restart_it_is_known_by_its_label(tmp_path: Any) -> None:
    state = {"url": f"sqlite:///{tmp_path}/state.db"}
    first, _ = watched(numbered(), numbered("notes"), state=state)
    history = dialogue(3)
    out = first.preflight("s", history)
    first.close()
    second, sink = watched(numbered(), state=state)
    again = second.preflight("s", [*out, assistant("gone on"), user("go on")])
    assert without_injected(again) == [*history, assistant("gone on"), user("go on")]
    assert len(second.history("s")) == 8
    assert sink.of(HistoryBranchedEvent) == []
    second.close()


# -- the budget ------------------------------------------------------------------------------------------------------


def test_a_compaction_leaves_room_for_all_reserves() -> None:
    manager, _ = watched(numbered(reserve=100), numbered("other", reserve=150))
    assert manager._models.configured.budget.window.injection_reserve == 250
    manager.preflight("s", dialogue(30, words=40))
    assert manager.status("s").thresholds["ceiling"] == 750


def test_one_that_takes_more_than_its_reserve_is_named() -> None:
    manager, sink = watched(numbered("fine"), numbered("greedy", words=60, reserve=50))
    with pytest.raises(
        InjectionTooLarge, match="the injector 'greedy' returned 71 tokens, 21 more than the 50"
    ) as caught:
        manager.preflight("s", dialogue(2))
    error = caught.value
    assert (error.injector, error.reserve_tokens, error.actual_tokens) == ("greedy", 50, 71)
    assert "hint: " in str(error)
    assert error.code == "injection_too_large"
    (event,) = sink.of(CompactionErrorEvent)
    assert event.error_type == "InjectionTooLarge"
    assert "word" not in event.message  # what it wanted to inject is nobody's business


def test_after_that_the_session_goes_on() -> None:
    words = [60, 3]
    manager, _ = watched(Injector("greedy", 50, lambda _: "word " * words.pop(0)))
    with pytest.raises(InjectionTooLarge):
        manager.preflight("s", dialogue(2))
    assert manager.preflight("s", [*dialogue(2), user("again")])[:-1] == [*dialogue(2), user("again")]


def test_injected_tokens_are_measured_and_recorded() -> None:
    manager, _ = watched(numbered(words=9))
    manager.preflight("s", dialogue(2))
    assert manager.status("s").used_tokens == 4 + 3 + 20
    (call,) = manager.model_calls("s")
    assert call.tokens_estimated == 27
    assert call.parts == {"dialogue": 4, "injected": 20, "overhead": 3}


def test_what_is_reported_for_it_does_not_look_like_growth() -> None:
    """The next decision is made without what was injected last time."""
    manager, sink = watched(numbered(words=200, reserve=300))
    history = dialogue(13, words=20)  # 520 of 1,000; the trigger is at 700
    for _ in range(3):
        manager.preflight("s", history)
        manager.observe_usage("s", manager.status("s").used_tokens)
    assert sink.of(CompactionCompletedEvent) == []
    assert manager.status("s").used_tokens == 520 + 3 + 211


def test_a_provider_that_counts_more_than_we_do_still_gets_no_more_than_it_takes() -> None:
    manager, _ = watched(numbered(words=139, reserve=150))
    history = dialogue(5, words=40)
    for _ in range(30):
        manager.preflight("s", history)
        assert manager.status("s").used_tokens <= 1_000
        manager.observe_usage("s", round(1.5 * manager._engine.trigger.estimated_tokens(*_session(manager))))
        history += dialogue(1, words=20)


def _session(manager: CompactManager) -> tuple[Any, Any]:
    session = manager._sessions.find("s").session
    return session, session.budget


def test_a_target_holds_for_the_whole_list() -> None:
    manager, _ = watched(numbered(words=29, reserve=50))
    out = manager.manual_compact("s", dialogue(20, words=20), target_tokens=300)
    assert is_injected(out[-1])
    read = [read_entry(item, "x") for item in out]
    assert sum(map(WordTokenizer().count_message, read)) <= 300


def test_a_target_below_the_reserve_says_what_takes_the_room() -> None:
    manager, _ = watched(numbered(reserve=300))
    with pytest.raises(InsufficientBudget) as caught:
        manager.manual_compact("s", dialogue(20, words=20), target_tokens=200)
    assert caught.value.parts["reserved"] == 300
    assert "let injectors reserve less" in caught.value.hint


def test_compaction_is_not_entered_again_for_what_was_injected() -> None:
    """Content that lifts the prompt over the trigger is sent: its reserve is what it has room in."""
    manager, sink = watched(numbered(words=89, reserve=100))
    out = manager.preflight("s", dialogue(21, words=20))  # 843 with overhead; the trigger is 850
    assert manager.status("s").used_tokens == 943
    assert sink.of(CompactionCompletedEvent) == []
    assert len(out) == 43


def test_injectors_run_once_in_a_call_after_the_compaction() -> None:
    lengths: list[int] = []
    manager, _ = watched(Injector("look", 10, lambda context: lengths.append(len(context.messages))))
    out = manager.preflight("s", dialogue(30, words=40))
    assert lengths == [len(out)]
    assert len(out) < 60


class LosingStore(InMemoryCompactionStore):
    """A store in which somebody else was quicker, once."""

    losses = 1

    def commit(self, commit: Commit) -> SessionHead:
        if self.losses:
            self.losses -= 1
            raise VersionConflict("somebody else was quicker")
        return super().commit(commit)


def test_a_lost_race_does_not_ask_them_again() -> None:
    config = CompactConfig(max_context_tokens=1_000, policy={"hard_cap_buffer": 0}, telemetry={"exporter": "none"})
    store = LosingStore()
    manager = CompactManager(config, tokenizer=WordTokenizer(), injectors=[numbered()], store=store)
    out = manager.preflight("s", dialogue(2))
    assert store.losses == 0
    assert [message["content"].splitlines()[-1] for message in out if is_injected(message)] == ["clock-1 word word"]


def test_a_plan_asks_no_injector() -> None:
    asked: list[InjectionContext] = []
    manager, _ = watched(Injector("look", 10, asked.append))
    manager.plan("s", dialogue(30, words=40))
    assert asked == []


# -- failures --------------------------------------------------------------------------------------------------------


def _broken(_: InjectionContext) -> Answer:
    raise RuntimeError("the password is hunter2")


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (_broken, "RuntimeError"),
        (lambda _: {"role": "wizard", "content": "x"}, "InvalidHistory"),
        (lambda _: 7, "InvalidHistory"),
        (lambda _: assistant("I begin"), "CompactError"),
        (lambda _: tool_exchange("a", "one"), "CompactError"),
        (lambda _: {"role": "user", "content": None}, "CompactError"),
    ],
)
def test_one_that_fails_adds_nothing_and_is_named(answer: Any, kind: str) -> None:
    manager, sink = watched(Injector("broken", 50, answer), numbered())
    out = manager.preflight("s", [user("hello")])
    assert [is_injected(message) for message in out] == [False, True]
    (event,) = sink.of(CompactionErrorEvent)
    assert (event.error_type, event.message) == (kind, "the injector 'broken' failed")
    assert "hunter2" not in str(event.to_dict())


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: Injector("", 10, lambda _: None), "has no name"),
        (lambda: Injector("x", 0, lambda _: None), "'x' reserves 0 tokens"),
        (lambda: watched(numbered(), numbered()), "several injectors are named clock"),
        (lambda: watched(numbered(reserve=1_000)), "leaves nothing to use"),
    ],
)
def test_injectors_that_make_no_sense_are_refused_at_once(wrong: Callable[[], object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        wrong()


# -- waiting ---------------------------------------------------------------------------------------------------------


async def _slowly(context: InjectionContext) -> Answer:
    await asyncio.sleep(0.001)
    return f"asked for {context.latest_ask}"


def test_async_injectors_work_behind_both_doors() -> None:
    manager, _ = watched(Injector("slow", 50, _slowly))
    assert manager.preflight("s", [user("bread")])[-1]["content"].endswith("asked for bread")
    out = asyncio.run(manager.apreflight("t", [user("milk")]))
    assert out[-1]["content"].endswith("asked for milk")


def test_a_sync_injector_does_not_block_the_loop() -> None:
    import threading

    threads: list[int] = []
    manager, _ = watched(Injector("look", 10, lambda _: threads.append(threading.get_ident())))
    asyncio.run(manager.apreflight("s", [user("hello")]))
    assert threads
    assert threads[0] != threading.get_ident()


# -- always ----------------------------------------------------------------------------------------------------------


@given(histories(), st.sampled_from([400, 700, 1500]), st.integers(1, 60))
def test_the_prompt_is_legal_within_the_budget_and_else_the_same(history: list[Wire], window: int, words: int) -> None:
    assume(history)
    manager, _ = watched(numbered(words=words, reserve=80), window=window)
    plain, _ = watched(Injector("silent", 80, lambda context: None), window=window)
    before = copy.deepcopy(history)
    try:
        out = manager.preflight("s", history)
    except InsufficientBudget:
        assume(False)
        raise
    assert history == before
    assert check(out) == ()
    assert is_injected(out[-1])
    assert out[:-1] == plain.preflight("s", history)
    assert manager.status("s").used_tokens <= window
    assert [message.original for message in manager.history("s")] == before


@given(histories(legal=True, min_size=6, max_size=40), st.sampled_from([400, 1500]), st.booleans())
def test_between_compactions_the_rest_of_the_prompt_only_grows(
    history: list[Wire], window: int, sends_back: bool
) -> None:
    """Whether the caller sends its raw history or our last answer, all but the very end stays as it was."""
    manager, _ = watched(numbered(words=20), window=window)
    previous, ours, version, start = [], [], 0, 0
    for end in range(1, len(history) + 1):
        if end < len(history) and history[end]["role"] == "tool":
            continue  # a model is called when all results are there
        try:
            ours = manager.preflight("s", [*ours, *history[start:end]] if sends_back else history[:end])
        except InsufficientBudget:
            assume(False)
        out, start = without_injected(ours), end
        assert sum(map(is_injected, ours)) == 1
        if manager.current_plan("s").version == version:
            assert out[: len(previous)] == previous
        previous, version = out, manager.current_plan("s").version
    assert [message.original for message in manager.history("s")] == history


def test_what_is_injected_once_a_turn_is_asked_for_again_when_the_caller_goes_back() -> None:
    manager, _ = watched(Injector("notes", 50, lambda context: f"on {context.latest_ask}", once_per_turn=True))
    older = [user("hello"), assistant("hi"), user("refunds")]
    before = manager.preflight("s", older)
    assert str(before[-1]["content"]).endswith("on refunds")
    manager.preflight("s", [*older, assistant("done"), user("berths")])
    assert manager.preflight("s", copy.deepcopy(older)) == before


@pytest.mark.parametrize("has_call_between", [False, True], ids=["at once", "after another call"])
@pytest.mark.parametrize("dialect", ["chat", "responses", "anthropic", "gemini", "converse", "vercel"])
def test_what_was_injected_is_not_logged_when_another_process_gets_it_back(
    dialect: str, has_call_between: bool
) -> None:
    """Where a dialect puts it into one item with the user's words, too."""
    store, clock = InMemoryCompactionStore(), Injector("clock", 50, lambda context: "it is noon")
    write = getattr(written, dialect)
    history = [written.Step("user", "hello"), written.Step("model", "hi"), written.Step("user", "what time is it?")]
    manager = CompactManager(injectors=[clock], store=store)
    sent = copy.deepcopy(manager.preflight("s", write(history), dialect=dialect))
    assert "it is noon" in str(sent)
    manager.close()
    with CompactManager(injectors=[clock], store=store) as manager:
        if has_call_between:
            more = [written.Step("model", "noon"), written.Step("user", "thanks")]
            manager.preflight("s", write([*history, *more]), dialect=dialect)
        more = [written.Step("model", "midnight"), written.Step("user", "really?")]
        manager.preflight("s", [*sent, *write(more)], dialect=dialect)
        line = [message_id for slot in manager.prompt("s").slots for message_id in slot.ids]
        by_id = {message.id: message.text for message in manager.history("s")}
        assert [by_id[i] for i in line if i in by_id] == ["hello", "hi", "what time is it?", "midnight", "really?"]
        assert not any("it is noon" in text for text in by_id.values())


def test_what_was_injected_into_a_content_of_geminis_sdk_is_taken_out_after_a_restart() -> None:
    """A process that did not send it gives the user's words back without it, as the one that did."""
    store, clock = InMemoryCompactionStore(), Injector("clock", 50, lambda context: "it is noon")

    def contents(*said: str) -> list[Any]:
        turns = (("model" if place % 2 else "user", text) for place, text in enumerate(said))
        return [types.Content(role=role, parts=[types.Part(text=text)]) for role, text in turns]

    with (
        CompactManager(injectors=[clock], store=store) as first,
        CompactManager(injectors=[clock], store=store) as other,
    ):
        sent = [
            *first.preflight("s", contents("hello", "hi", "what time is it?")),
            *contents("", "noon", "really?")[1:],
        ]
        prompt = first.preflight("s", copy.deepcopy(sent))
        assert str(prompt).count("it is noon") == 1
        assert other.preflight("s", copy.deepcopy(sent)) == prompt


@pytest.mark.parametrize("edit", ["none", "before", "rewound"])
@pytest.mark.parametrize("dialect", ["chat", "responses", "anthropic", "gemini", "converse", "vercel", "ollama"])
def test_an_older_prompt_is_known_by_its_label_after_a_restart_whatever_was_edited(dialect: str, edit: str) -> None:
    """It is not the newest prompt, or an item of it is gone: what was added stands behind a message that is known."""
    store, clock = InMemoryCompactionStore(), Injector("clock", 50, lambda context: "it is noon")
    write = getattr(written, dialect)
    said = ["hello", "hi", "who are you?", "an agent", "what time is it?"]
    history = [written.Step("model" if place % 2 else "user", text) for place, text in enumerate(said)]
    with CompactManager(injectors=[clock], store=store) as manager:
        sent = copy.deepcopy(manager.preflight("s", write(history), dialect=dialect))
        if edit == "rewound":
            manager.preflight("s", write([*history[:2], written.Step("user", "go on")]), dialect=dialect)
        elif edit == "none":
            more = [written.Step("model", "noon"), written.Step("user", "thanks")]
            manager.preflight("s", write([*history, *more]), dialect=dialect)
    if edit == "before":
        del sent[1:3], said[1:3]
    with CompactManager(injectors=[clock], store=store) as manager:
        assert "it is noon" in str(manager.preflight("s", sent, dialect=dialect))
        stored = store.load("s")
        by_id = {entry.message.id: entry.message.text for entry in stored.messages}
        assert [by_id[message_id] for message_id in stored.view_ids] == said
        assert not any("it is noon" in text for text in by_id.values())


@pytest.mark.parametrize("has_answered", [False, True])
@pytest.mark.parametrize("before", ["answer", "system"])
def test_a_user_who_quotes_a_label_in_place_of_the_last_question_is_heard(before: str, has_answered: bool) -> None:
    """What stands before it is known, but no prompt has ended there."""
    store, clock = InMemoryCompactionStore(), Injector("clock", 50, lambda context: "it is noon")
    history = [system("be brief"), user("hello"), assistant("hi"), user("what time is it?")]
    with CompactManager(store=store, injectors=[clock]) as manager:
        manager.preflight("s", history)
    with CompactManager(store=store, injectors=[clock]) as manager:
        if has_answered:
            manager.preflight("s", history)
        manager.preflight("s", [*(history[:3] if before == "answer" else history[:1]), LABELLED])
        assert manager.history("s")[-1].text == LABELLED["content"]


def test_a_user_who_quotes_a_label_behind_something_new_is_heard() -> None:
    """Also where the list is none that is known: the message before it was edited."""
    store, clock = InMemoryCompactionStore(), Injector("clock", 50, lambda context: "it is noon")
    with CompactManager(store=store, injectors=[clock]) as manager:
        manager.preflight("s", [user("hello"), assistant("hi"), user("what time is it?")])
    with CompactManager(store=store, injectors=[clock]) as manager:
        manager.preflight("s", [user("hello"), assistant("hi"), user("what day is it?"), LABELLED])
        assert manager.history("s")[-1].text == LABELLED["content"]


@pytest.mark.parametrize("dialect", ["chat", "responses", "anthropic", "gemini", "converse", "vercel", "ollama"])
def test_a_protected_message_before_what_was_injected_comes_back_as_it_was(dialect: str) -> None:
    clock, write = Injector("clock", 50, lambda context: "it is noon"), getattr(written, dialect)
    history = write([written.Step("user", "hello"), written.Step("model", "hi"), written.Step("user", "keep this")])
    history[-1]["meta"] = {"protected": True}
    more = write([written.Step("model", "I will"), written.Step("user", "go on")])
    with CompactManager(injectors=[clock]) as manager:
        sent = copy.deepcopy(manager.preflight("s", history, dialect=dialect))
        manager.preflight("s", [*sent, *more], dialect=dialect)
        logged = manager.history("s")
        assert [message.text for message in logged] == ["hello", "hi", "keep this", "I will", "go on"]
        assert logged[2].meta == {"protected": True}


def test_a_user_who_quotes_a_label_is_heard_after_a_restart() -> None:
    store, label = InMemoryCompactionStore(), "[clock: added for this call, not a message from the user]"
    history = [user("hello"), assistant("hi"), user("go on")]
    with CompactManager(store=store) as manager:
        manager.preflight("s", history)
    with CompactManager(store=store) as manager:
        for words in ("what is this?", f"{label} what does that mean?", "and now?"):
            history = [*history, assistant("yes"), user(words)]
            assert manager.preflight("s", copy.deepcopy(history)) == history
        assert [message.text for message in manager.history("s")] == [item["content"] for item in history]
        edited = [user("good evening"), *history[1:]]
        assert manager.preflight("s", edited) == edited, "also where the list is read again"


LABELLED = user("[clock: added for this call, not a message from the user]\nwhat does this line mean?")


@pytest.mark.parametrize("dialect", ["chat", "anthropic"])
def test_a_user_who_quotes_a_label_right_behind_what_is_known_is_heard(dialect: str) -> None:
    store = InMemoryCompactionStore()
    history = [user("hello"), assistant("hi")]
    with CompactManager(store=store) as manager:
        manager.preflight("s", history, dialect=dialect)
    with CompactManager(store=store) as manager:
        assert manager.preflight("s", [*history, LABELLED], dialect=dialect)[-1] == LABELLED, "nobody adds anything"


def test_a_user_who_quotes_a_label_after_a_call_that_failed_is_heard() -> None:
    """This process has answered: it knows what it has added."""
    store, silent = InMemoryCompactionStore(), Injector("clock", 50, lambda context: None)
    history = [user("hello"), assistant("hi"), user("what time is it?")]
    with CompactManager(store=store, injectors=[silent]) as manager:
        manager.preflight("s", history[:1])
    with CompactManager(store=store, injectors=[silent]) as manager:
        manager.preflight("s", history)
        assert manager.preflight("s", [*history, LABELLED])[-1] == LABELLED


def test_what_is_injected_once_a_turn_is_asked_for_once_after_a_restart() -> None:
    store, asked = InMemoryCompactionStore(), list[str]()
    notes = Injector("notes", 50, lambda context: asked.append("once") or "a note", once_per_turn=True)
    history = [user("hello"), assistant("hi"), user("refunds")]
    with CompactManager(store=store, injectors=[notes]) as manager:
        manager.preflight("s", history)
    with CompactManager(store=store, injectors=[notes]) as manager:
        manager.preflight("s", history)
        manager.preflight("s", [history[0], assistant("good day"), history[2]])
    assert len(asked) == 2, "by each process"


def test_an_attachment_behind_a_label_stays_with_it() -> None:
    """As a rehydrated one does, in an item with the user's words."""
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
    label = "[clock: added for this call, not a message from the user]"
    said, added = ({"type": "text", "text": text} for text in ("look", f"{label} see"))
    with CompactManager() as manager:
        manager.preflight("s", [{"role": "user", "content": [said, added, image]}], dialect="anthropic")
        assert [message.text for message in manager.history("s")] == ["look", f"{label} see"]
        own = [said, added, {"type": "text", "text": "my own words"}]
        manager.preflight("t", [{"role": "user", "content": own}], dialect="anthropic")
        assert len(manager.history("t")) == 1, "what a person has written is one message"


CLOCK = Injector("clock", 50, lambda context: "it is noon")


@pytest.mark.parametrize("content", ["what time is it?", [{"type": "text", "text": "what time is it?"}]])
def test_a_mark_that_moved_on_does_not_stay_on_what_was_sent_back_with_it(content: Any) -> None:
    """A provider takes four marks. Another process writes the same bytes, also where the caller has plain text."""
    store, mark = InMemoryCompactionStore(), {"cache_control": {"type": "ephemeral"}}
    asked = {"role": "user", "content": content}
    if isinstance(content, list):
        asked["content"] = [{**content[0], **mark}]
    with CompactManager(injectors=[CLOCK], store=store) as manager:
        sent = copy.deepcopy(manager.preflight("s", [user("hello"), assistant("hi"), asked], dialect="anthropic"))
        assert ["it is noon" in str(part) for part in sent[-1]["content"]] == [False, True]
        sent[-1]["content"][0].pop("cache_control", None)
        more = [assistant("noon"), {"role": "user", "content": [{"type": "text", "text": "really?", **mark}]}]
        first = manager.preflight("s", [*sent, *more], dialect="anthropic")
    assert first[2] == {"role": "user", "content": content}
    assert [str(item).count("cache_control") for item in first] == [0, 0, 0, 0, 1]
    with CompactManager(injectors=[CLOCK], store=store) as manager:
        assert manager.preflight("s", [*sent, *more], dialect="anthropic") == first
        assert len(manager.history("s")) == 5


@pytest.mark.parametrize("content", ["what time is it?", [{"type": "text", "text": "what time is it?"}]])
def test_what_comes_back_with_it_to_another_process_is_shown_as_its_caller_has_it(content: Any) -> None:
    store, asked = InMemoryCompactionStore(), {"role": "user", "content": content}
    with CompactManager(injectors=[CLOCK], store=store) as manager:
        sent = copy.deepcopy(manager.preflight("s", [user("hello"), assistant("hi"), asked], dialect="anthropic"))
    with CompactManager(injectors=[CLOCK], store=store) as manager:
        prompt = manager.preflight("s", [*sent, assistant("noon"), user("really?")], dialect="anthropic")
    assert prompt[2] == asked


def test_it_is_not_in_a_list_that_does_not_have_it() -> None:
    """A prompt comes back, and then the caller's own list, which never had what was injected."""
    with CompactManager(injectors=[CLOCK]) as manager:
        sent = manager.preflight("s", [user("hello")], dialect="anthropic")
        manager.preflight("s", copy.deepcopy(sent), dialect="anthropic")
        results = [{"type": "tool_result", "tool_use_id": "c1", "content": "found"}]
        history = [
            {"role": "user", "content": [{"type": "text", "text": "hello"}]},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "find", "input": {}}]},
            {"role": "user", "content": results},
        ]
        sent = manager.preflight("s", copy.deepcopy(history), dialect="anthropic")
        assert sent[:2] == history[:2]
        more = [assistant("done"), user("thanks")]
        manager.preflight("s", [*copy.deepcopy(sent), *more], dialect="anthropic")
        assert [message.text for message in manager.history("s")] == ["hello", "", "found", "done", "thanks"]


@pytest.mark.parametrize("dialect", ["chat", "anthropic", "gemini"])
def test_a_prompt_that_comes_back_alone_after_a_restart_has_nothing_new(dialect: str) -> None:
    """A call that failed is made again: what stands last was added by the process before."""
    store, write = InMemoryCompactionStore(), getattr(written, dialect)
    history = [written.Step("user", "hello"), written.Step("model", "hi"), written.Step("user", "what time is it?")]
    with CompactManager(injectors=[CLOCK], store=store) as manager:
        sent = copy.deepcopy(manager.preflight("s", write(history), dialect=dialect))
    with CompactManager(injectors=[CLOCK], store=store) as manager:
        assert manager.preflight("s", copy.deepcopy(sent), dialect=dialect) == sent
        assert [message.text for message in manager.history("s")] == ["hello", "hi", "what time is it?"]
