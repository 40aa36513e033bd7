"""Caps on one part of the prompt: only that part shrinks, and what cannot be met is not tried at every call."""

from __future__ import annotations

from typing import Any

import pytest

from compact import CompactConfig, CompactManager
from compact.core.engine.events import CompactionCompletedEvent, SummaryCreatedEvent, TriggerDecisionEvent
from compact.core.messages.entries import read_entry
from compact.core.messages.legality import check_chat
from compact.stores.memory import InMemoryCompactionStore
from compact.testing import RecordingSink, Wire, WordTokenizer, assistant, dialogue, system, tool_exchange, user

WINDOW = 10_000


def capped(
    caps: dict[str, float], store: InMemoryCompactionStore | None = None, **settings: Any
) -> tuple[CompactManager, RecordingSink]:
    sink = RecordingSink()
    policy = {"hard_cap_buffer": 0, "keep_recent_turns": 2, "keep_tool_io_pairs": 1, "expected_calls": 10_000}
    config = CompactConfig(
        max_context_tokens=WINDOW,
        policy={**policy, "part_caps": caps, **settings.pop("policy", {})},
        telemetry={"exporter": "none"},
        **settings,
    )
    return CompactManager(config, tokenizer=WordTokenizer(), on_event=sink, store=store), sink


def results(count: int, *, words: int = 100) -> list[Wire]:
    exchanges = (tool_exchange(f"c{n}", f"result {n} " + "row " * words, path=f"f{n}.py") for n in range(count))
    return [message for exchange in exchanges for message in exchange]


def talk_and_results() -> list[Wire]:
    """2,000 tokens of talk, 3,000 of results, then two pairs that stay."""
    return [system("be careful"), *results(15, words=100), *dialogue(20, words=100), *results(15, words=100)]


def contents(messages: list[Wire], role: str) -> list[Any]:
    return [message["content"] for message in messages if message["role"] == role]


def test_a_cap_on_dialogue_shrinks_dialogue_and_nothing_else() -> None:
    manager, sink = capped({"dialogue": 0.2})
    history = talk_and_results()
    prompt = manager.preflight("s", history)
    assert "dialogue is over its cap of 2,000" in sink.of(TriggerDecisionEvent)[0].reason
    assert contents(prompt, "tool") == contents(history, "tool")
    assert prompt[0] == history[0]
    newest = [
        message for message in history if message["role"] in ("user", "assistant") and not message.get("tool_calls")
    ]
    assert [message for message in newest[-4:] if message not in prompt] == []
    assert manager.status("s").parts["dialogue"].tokens <= 2_000
    assert manager.current_plan("s").summary is not None
    assert {record.strategy for record in manager.current_plan("s").records} <= {"summarize", "shorten"}
    assert check_chat([read_entry(message, "x") for message in prompt]) == ()


def test_a_cap_that_is_met_is_not_looked_at_again() -> None:
    manager, sink = capped({"dialogue": 0.2})
    history = talk_and_results()
    prompt = manager.preflight("s", history)
    version = manager.current_plan("s").version
    assert manager.preflight("s", history) == prompt
    for number in range(5):
        history += [user(f"and {number}?"), assistant(f"yes {number}")]
        prompt = [*prompt, *history[-2:]]
        assert manager.preflight("s", history) == prompt
    assert manager.current_plan("s").version == version
    assert len(sink.of(CompactionCompletedEvent)) == 1


def test_a_cap_that_cannot_be_met_is_not_tried_at_every_call() -> None:
    """All of the dialogue is among the newest pairs: nothing of it may go."""
    manager, sink = capped({"dialogue": 0.05}, policy={"keep_recent_turns": 30})
    history = [*results(10), *dialogue(10, words=80)]
    planned: list[int] = []
    coordinate = manager._engine.compactor.coordinator.coordinate

    def counting(*args: Any, **options: Any) -> Any:
        planned.append(len(planned))
        return coordinate(*args, **options)

    manager._engine.compactor.coordinator.coordinate = counting  # type: ignore[method-assign]
    for number in range(6):
        history += [user(f"and {number}?"), assistant(f"yes {number}")]
        assert manager.preflight("s", history) == history
    assert len(planned) == 1
    assert manager.current_plan("s").version == 0
    reasons = [event.reason for event in sink.of(TriggerDecisionEvent)]
    assert all("dialogue is over its cap of 500; less than 125 tokens of it can go" in reason for reason in reasons)
    history += dialogue(3, words=80)
    manager.preflight("s", history)
    assert len(planned) == 2, "the prompt has grown: it is looked at again"


def test_a_cap_that_was_declined_is_declined_for_the_same_list_after_a_restart() -> None:
    """A look of another process would find more to clear by now; it waits for something new."""
    store, caps = InMemoryCompactionStore(), {"tool_results": 0.2}
    history = [user("begin"), *dialogue(10, words=200), *results(3, words=800)]
    longer = [*history, *tool_exchange("last", "small")]
    policy = {"keep_tool_io_pairs": 3}
    manager, sink = capped(caps, policy=policy, store=store)
    with manager:
        manager.preflight("s", history)
        sent = manager.preflight("s", longer)
        assert sent == longer
        assert "can go" in sink.of(TriggerDecisionEvent)[-1].reason
    manager, sink = capped(caps, policy=policy, store=store)
    with manager:
        assert manager.preflight("s", longer) == sent
        assert "nothing is new since the last call" in sink.of(TriggerDecisionEvent)[-1].reason
        manager.preflight("s", [*longer, *tool_exchange("next", "small")])
        assert manager.current_plan("s").version == 1


def test_every_new_plan_for_a_cap_frees_a_good_part_of_it() -> None:
    """A cap below what must stay would otherwise make a new plan, and a new prefix, of every new message."""
    manager, sink = capped({"dialogue": 0.1})
    history = [*results(5), *dialogue(20, words=60)]
    for number in range(40):
        history += [user(f"and {number}? " + "why " * 30), assistant(f"yes {number} " + "because " * 30)]
        manager.preflight("s", history)
    freed = [event.tokens_before - event.tokens_after for event in sink.of(CompactionCompletedEvent)]
    assert len(freed) < 12
    assert all(tokens >= 250 for tokens in freed), freed


def test_words_and_arguments_of_calls_are_cut_where_results_must_stay() -> None:
    manager, _ = capped({"dialogue": 0.2}, strategies={"enabled": ["deduplicate", "clear", "externalize"]})
    history: list[Wire] = [user("Write the files.")]
    for number in range(8):
        text = "\n".join(f"line {line} of file {number} says word" for line in range(60))
        history += tool_exchange(
            f"c{number}", f"written {number}", tool="write_file", path=f"f{number}.py", content=text
        )
    history += dialogue(2, words=10)
    prompt = manager.preflight("s", history)
    assert contents(prompt, "tool") == contents(history, "tool")
    assert 700 < manager.status("s").parts["dialogue"].tokens <= 2_000
    assert prompt[-4:] == history[-4:]
    calls = [message["tool_calls"][0]["function"] for message in prompt if message.get("tool_calls")]
    assert all(f'"f{number}.py"' in call["arguments"] for number, call in enumerate(calls))
    assert check_chat([read_entry(message, "x") for message in prompt]) == ()


def test_a_cap_on_results_leaves_dialogue_alone() -> None:
    manager, _ = capped({"tool_results": 0.1}, strategies={"enabled": ["clear", "window"], "window": {"max_turns": 1}})
    history = talk_and_results()
    prompt = manager.preflight("s", history)
    assert prompt != history
    for role in ("user", "assistant"):
        assert contents(prompt, role) == contents(history, role)


def test_with_two_caps_one_that_cannot_be_met_does_not_stop_the_other() -> None:
    manager, sink = capped({"dialogue": 0.05, "tool_results": 0.1}, policy={"keep_recent_turns": 30})
    history = [*results(15, words=120), *dialogue(25, words=80)]
    manager.preflight("s", history)
    manager.preflight("s", [*history, user("go on")])
    assert [event.reason.split("; ")[1] for event in sink.of(CompactionCompletedEvent)] == [
        "tool_results is over its cap of 1,000"
    ]


def test_a_dry_run_says_that_a_cap_cannot_be_met() -> None:
    manager, _ = capped({"dialogue": 0.05}, policy={"keep_recent_turns": 30})
    result = manager.plan("s", [*results(10), *dialogue(10, words=80)])
    assert result.plan.records == ()
    assert "less than 125 tokens of it can go" in result.reason


@pytest.mark.parametrize("expected_calls", [0, 10_000])
def test_a_summary_for_a_cap_must_pay(expected_calls: int) -> None:
    manager, sink = capped({"dialogue": 0.2}, policy={"expected_calls": expected_calls})
    manager.preflight("s", talk_and_results())
    assert bool(sink.of(SummaryCreatedEvent)) == bool(expected_calls)
