"""A budget is refused only where nothing fits: if what is pinned and the newest message fit, a prompt comes back."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from compact import CompactConfig, CompactManager, InsufficientBudget
from compact.core.engine.events import NoticeEvent
from compact.core.messages.entries import read_entry
from compact.core.messages.groups import group_messages
from compact.core.messages.legality import check_chat, repair_chat
from compact.core.messages.message import Message, Slot
from compact.core.messages.turn_order import LEFT_OUT
from compact.core.plan.layers import KeepRules
from compact.core.plan.plan import ClearRecord, SpanReference
from compact.core.plan.stubs import render_cleared
from compact.strategies import ClearStrategy
from compact.testing import RecordingSink, WordTokenizer, assistant, tool_exchange, user
from conversations import SMALL_STRATEGIES, Wire, histories
from sizes import SCALE

BUFFER = 10
# What primes the reply, and the most that a repair is thought to add.
PRIMING, REPAIR = 3, 16


class CharacterTokenizer(WordTokenizer):
    """Counts four characters as a token and four for each message, as a provider would: nothing is free."""

    def count_text(self, text: str) -> int:
        return -(-len(text) // 4)

    def count_message(self, message: Message) -> int:
        texts = (message.text, *(text for call in message.tool_calls for text in (call.name, call.arguments)))
        return 4 + sum(map(self.count_text, texts))


def manager_for(window: int, tokenizer: WordTokenizer, **plugs: Any) -> CompactManager:
    config = CompactConfig(
        max_context_tokens=window, policy={"hard_cap_buffer": BUFFER}, telemetry={"exporter": "none"}
    )
    return CompactManager(config, **{"tokenizer": tokenizer, "strategies": SMALL_STRATEGIES, **plugs})


def smallest_tokens(history: Sequence[Wire], count: Callable[[Message], int]) -> int:
    """Return what the smallest legal prompt takes: what is pinned, the newest message as a stub, and one line."""
    entries = (read_entry(item, f"messages[{place}]") for place, item in enumerate(history))
    messages = [replace(entry, id=f"m{place + 1}") for place, entry in enumerate(entries)]
    rules, stay = KeepRules(), list[Message]()
    for group in group_messages(messages):
        members = [messages[place] for place in group.indices]
        if any(map(rules.pins, members)):
            stay += members
        elif group.indices[-1] == len(messages) - 1:
            stay += [min(member, _stub(member, count), key=count) for member in members]
    slots, repairs = repair_chat([Slot(message, (message.id,)) for message in stay])
    # Where what the user began with was left out, a line stands for it.
    return (
        sum(count(slot.message) for slot in slots) + REPAIR * len(repairs) + count(Message("user", LEFT_OUT)) + PRIMING
    )


def _stub(message: Message, count: Callable[[Message], int]) -> Message:
    record = ClearRecord(
        span=SpanReference((message.id,)),
        strategy="shorten",
        reason="too large",
        tokens_before=count(message),
        kept_arguments=() if message.tool_calls else None,
    )
    return render_cleared(message, record)


_lines = {
    "words": lambda size: " ".join(f"berth_{n}" for n in range(size)),
    "one word": lambda size: "berth " * size,
    "no blanks": lambda size: "".join(f"{n:x}" for n in range(size)),
    "marks": lambda size: "- " * size,
    "nothing": lambda size: "",
}
_sizes = st.sampled_from([1, 3, 30, 300, 1_500, 4_000])
long_lines = st.builds(lambda kind, size: _lines[kind](size), st.sampled_from(sorted(_lines)), _sizes)


@st.composite
def _long_chunk(draw: st.DrawFn) -> list[Wire]:
    if draw(st.booleans()):
        return [{"role": draw(st.sampled_from(["user", "assistant"])), "content": draw(long_lines)}]
    results = draw(st.lists(long_lines, min_size=1, max_size=3))
    calls = [
        {
            "id": f"long-{place}",
            "type": "function",
            "function": {"name": "read", "arguments": json.dumps({"path": draw(st.one_of(st.just("a"), long_lines))})},
        }
        for place in range(len(results))
    ]
    answers = [{"role": "tool", "tool_call_id": f"long-{place}", "content": text} for place, text in enumerate(results)]
    return [{"role": "assistant", "content": None, "tool_calls": calls}, *answers]


long_chunks = st.lists(_long_chunk(), max_size=6).map(lambda chunks: [message for chunk in chunks for message in chunk])
conversations = st.builds(
    lambda pinned, first, second, newest: [
        {"role": "system", "content": "rule " * pinned},
        *first,
        *second,
        *newest,
    ],
    st.integers(0, 800),
    long_chunks,
    histories(max_size=8),
    long_chunks,
)
TINY = [{"role": role, "content": "yes"} for _ in range(300) for role in ("user", "assistant")]


@settings(max_examples=60 * SCALE)
@given(conversations, st.sampled_from([260, 400, 800]), st.sampled_from([WordTokenizer(), CharacterTokenizer()]))
@example([{"role": "system", "content": "rule " * 640}, *TINY], 700, WordTokenizer())
@example([*TINY, {"role": "user", "content": "berth " * 18_000}], 300, CharacterTokenizer())
def test_if_what_is_pinned_and_the_newest_message_fit_a_prompt_comes_back(
    history: list[Wire], window: int, tokenizer: WordTokenizer
) -> None:
    manager = manager_for(window, tokenizer)
    smallest = smallest_tokens(history, tokenizer.count_message)
    error, out = _sent(manager, history)
    if error:
        assert smallest > window - BUFFER
        assert error.needed_tokens == sum(error.parts.values()) > error.budget_tokens == window - BUFFER
        assert f"{error.needed_tokens - error.budget_tokens:,} more than the budget" in str(error)
        assert all(name in str(error) for name in error.parts)
        assert error.hint
        return
    assert manager.status("s").used_tokens <= window - BUFFER
    assert not check_chat([read_entry(item, "messages") for item in out])
    newest = manager.history("s")[-1].id
    assert any(newest in slot.ids for slot in manager.prompt("s").slots)
    assert manager.current_plan("s").shows(newest)
    assert manager.preflight("s", history) == out


def _sent(manager: CompactManager, history: list[Wire]) -> tuple[InsufficientBudget | None, list[Wire]]:
    try:
        return None, manager.preflight("s", history)
    except InsufficientBudget as error:
        return error, []


@pytest.mark.parametrize(
    "history",
    [
        [{"role": "user", "content": "yes"}] * 3_000,
        [{"role": role, "content": ""} for _ in range(1_000) for role in ("user", "assistant")],
        [message for place in range(700) for message in tool_exchange(f"c{place}", "", path="a")],
        [message for place in range(700) for message in tool_exchange(f"c{place}", "ok", path="a")[:1]],
    ],
    ids=["tiny", "empty", "empty results", "no results"],
)
@pytest.mark.parametrize("strategies", [SMALL_STRATEGIES, (ClearStrategy(),)], ids=["all", "clear alone"])
def test_thousands_of_tiny_messages_fit(history: list[Wire], strategies: tuple[Any, ...]) -> None:
    manager = manager_for(600, CharacterTokenizer(), strategies=strategies)
    out = manager.preflight("s", history)
    assert 0 < manager.status("s").used_tokens <= 600 - BUFFER
    assert not check_chat([read_entry(item, "messages") for item in out])


def test_nothing_is_set_aside_for_repairs_of_messages_that_leave() -> None:
    """Results that are missing cost a line each: those of calls that a summary stands for do not."""
    unanswered = [m for n in range(200) for m in tool_exchange(f"c{n}", "ok", path=f"src/{n}.py")[:1]]
    manager = manager_for(400, WordTokenizer())
    manager.preflight("s", [{"role": "user", "content": "Read them all."}, *unanswered, *TINY[:1]])
    plan = manager.current_plan("s")
    assert plan.summary
    assert not plan.drops
    assert manager.status("s").used_tokens <= 400 - BUFFER


def test_what_is_left_out_without_a_summary_is_told_and_is_taken_in_by_the_next_summary() -> None:
    sink = RecordingSink()
    manager = manager_for(300, WordTokenizer(), on_event=sink)
    rules = {"role": "system", "content": "rule " * 270}
    talk = [{"role": "user", "content": f"berth {n} is taken until the {n}th of May"} for n in range(30)]
    out = manager.preflight("s", [rules, *talk])
    assert [message["content"] for message in out if message["role"] != "system"][-1].endswith("29th of May")
    assert sum(len(record.span) for record in manager.current_plan("s").drops) > 20
    (notice,) = [event for event in sink.events if isinstance(event, NoticeEvent) and "left out" in event.message]
    assert "no room beside what is pinned" in notice.message
    shorter = {"role": "system", "content": "rule " * 20}
    more = [{"role": "user", "content": f"quay {n} lies dry until the {n}th of June"} for n in range(60)]
    manager.preflight("s", [shorter, *talk, *more])
    plan = manager.current_plan("s")
    assert not plan.drops
    assert plan.summary
    assert {f"m{place}" for place in range(2, 20)} <= {*plan.summary.span}


def test_a_target_that_holds_no_message_is_refused_where_the_newest_is_an_answer() -> None:
    history: list[Wire] = []
    for number in range(12):
        history += [{"role": "user", "content": f"question {number} " + "word " * 40}]
        history += [{"role": "assistant", "content": f"answer {number} " + "word " * 40}]
    nowhere: Any = {"state": {"url": "memory:"}, "storage": {"adapter": "none"}}
    with CompactManager(CompactConfig(max_context_tokens=8_000, **nowhere), tokenizer=WordTokenizer()) as manager:
        with pytest.raises(InsufficientBudget):
            manager.manual_compact("s", history, target_tokens=1)
        assert manager.manual_compact("s", history, target_tokens=60)


def test_what_users_asked_to_hold_is_left_out_last() -> None:
    """Without a summary nothing else can say it: other messages leave first, however new they are."""
    rules = [f"Never touch the file config/berth_{number}.py." for number in range(4)]
    with manager_for(260, WordTokenizer(), strategies=(ClearStrategy(),)) as manager:
        history, prompt = [user("Sort the berths."), assistant("I will.")], list[Wire]()
        for number in range(30):
            history.append(
                user(f"{rules[number] if number < 4 else ''} Go on with berth {number}, {'and so on ' * 10}")
            )
            prompt = manager.preflight("s", history)
            assert all(rule in json.dumps(prompt) for rule in rules[: number + 1])
            history.append(assistant(f"berth {number} is free {'as I said ' * 10}"))
    assert len(prompt) < len(history) / 2
    assert prompt[-1] == history[-2]


@pytest.mark.parametrize("rules", [5, 6])
def test_a_summary_has_room_for_what_users_asked_to_hold_before_anything_else(rules: int) -> None:
    """Its share of a small window would be less than that; what else is said is cut or left out for it."""
    held = [f"Never touch the file config/berth_{number}.py." for number in range(rules)]
    history: list[Wire] = []
    for number, rule in enumerate(held):
        history += [user(f"{rule} Go on with berth {number}, {'and so on ' * 5}")]
        history += [assistant(f"berth {number} is free {'as I said ' * 5}")]
    for number in range(4):
        history += [user(f"question {number} {'word ' * 6}"), assistant(f"answer {number} {'word ' * 6}")]
    history += [{**user(f"Read the ledger, all of it. {'line ' * 10}"), "meta": {"protected": True}}]
    history += tool_exchange("c1", " ".join(f"entry{number}" for number in range(180)), path="ledger.py")
    config = CompactConfig(
        max_context_tokens=260,
        policy={"hard_cap_buffer": 0},
        telemetry={"exporter": "none"},
        state={"url": "memory:"},
        storage={"adapter": "none"},
    )
    with CompactManager(config, tokenizer=WordTokenizer()) as manager:
        prompt = json.dumps(manager.preflight("s", history))
        assert manager.status("s").used_tokens <= 260
    assert [rule for rule in held if rule not in prompt] == []
