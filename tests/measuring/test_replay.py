"""A replay makes the calls of a session again, and counts what a provider's cache would have read and written."""

from __future__ import annotations

from typing import Any

import pytest

from compact.core.errors import InsufficientBudget
from compact.core.messages.entries import read_entry
from compact.core.messages.legality import check_chat
from compact.core.plan.economics import Prices
from compact.measuring.framework_rules import FRAMEWORK_POLICIES
from compact.measuring.histories import MessageSizes, SessionHistory, call_places
from compact.measuring.policies import CLEARED, KEPT_RESULTS, PLAIN_POLICIES, Policy, PolicyLimits, PolicyPrompt
from compact.measuring.replay import replay_session, shared_messages
from compact.testing import assistant, system, tool_exchange, tool_run, user
from compact.tokens import get_tokenizer

Wire = dict[str, Any]
PRICES = Prices(fresh=1.0, cache_read=0.1, cache_write=1.25, output=5.0)


def history_of(messages: list[Wire], fixed_tokens: int = 0) -> SessionHistory:
    """A history with the sizes of gpt-4o."""
    sizes = MessageSizes(get_tokenizer("gpt-4o"))
    return SessionHistory("one", "one.jsonl", tuple(messages), sizes, fixed_tokens=fixed_tokens)


def long_history(exchanges: int = 40) -> SessionHistory:
    """A session that a trigger of 2,000 tokens cuts early."""
    return history_of(
        [system("Be careful."), user("Read them all."), *tool_run(exchanges, words=60), assistant("Done.")]
    )


def test_a_call_is_what_came_before_a_reply() -> None:
    """Two messages of the assistant in a row are one reply."""
    messages = [
        system("s"),
        user("u"),
        *tool_exchange("c1", "r"),
        assistant("a"),
        assistant("b"),
        user("u"),
        assistant("c"),
    ]
    assert call_places(messages) == [2, 4, 7]


def test_without_compaction_every_prompt_extends_the_last() -> None:
    """Each token is written once, and read at every later call; the schemas of tools are part of the prompt."""
    history = history_of([user("one two three"), assistant("four"), user("five"), assistant("six")], fixed_tokens=100)
    first, second = replay_session(history, PLAIN_POLICIES["none"], PolicyLimits(1_000, 900)).calls
    size = history.tokens
    assert (first.read_tokens, first.written_tokens) == (0, 100 + size[0])
    assert (second.read_tokens, second.written_tokens) == (100 + size[0], size[1] + size[2])
    assert not second.is_changed
    assert second.cost(lambda tokens: PRICES) == pytest.approx(0.1 * second.read_tokens + 1.25 * second.written_tokens)


def test_a_changed_beginning_is_written_again() -> None:
    """A window that slides loses the cache at every call, and the replay says so."""
    history, limits = long_history(), PolicyLimits(3_000, 2_000)
    calls = replay_session(history, PLAIN_POLICIES["window"], limits).calls
    late = calls[-1]
    assert late.is_changed
    assert late.written_tokens > 10 * late.read_tokens
    assert max(call.tokens for call in calls) < 2_000


@pytest.mark.parametrize("name", [*PLAIN_POLICIES, *FRAMEWORK_POLICIES])
def test_every_policy_sends_legal_prompts_that_end_with_the_newest_message(name: str) -> None:
    """No result without its call, and the system prompt first."""
    history = long_history()
    policy = {**PLAIN_POLICIES, **FRAMEWORK_POLICIES}[name]
    prompts = replay_session(history, policy, PolicyLimits(3_000, 2_000), keep=history.calls).prompts
    assert list(prompts) == history.calls
    for end, prompt in prompts.items():
        assert check_chat([read_entry(message, "prompt") for message in prompt]) == ()
        assert prompt[0] == history.messages[0]
        assert prompt[-1] == history.messages[end - 1]


def test_clearing_keeps_the_newest_results() -> None:
    """All others are stubs."""
    history = long_history()
    end = history.calls[-1]
    prompt = replay_session(history, PLAIN_POLICIES["clear"], PolicyLimits(3_000, 2_000), keep=[end]).prompts[end]
    results = [message["content"] for message in prompt if message["role"] == "tool"]
    assert results[:-KEPT_RESULTS] == [CLEARED] * (len(results) - KEPT_RESULTS)
    assert CLEARED not in results[-KEPT_RESULTS:]


def test_a_summary_of_a_framework_is_paid_for() -> None:
    """What its model reads and writes is part of the price, and what was summarised is gone."""
    history = long_history()
    end = history.calls[-1]
    replayed = replay_session(history, FRAMEWORK_POLICIES["langchain"], PolicyLimits(3_000, 2_000), keep=[end])
    paid = [call for call in replayed.calls if call.summary_input_tokens]
    assert paid
    assert all(call.is_changed and call.summary_output_tokens for call in paid)
    assert replayed.prompts[end][1]["content"].startswith("Here is a summary of the conversation to date:")
    assert history.messages[1] not in replayed.prompts[end]


def test_a_policy_that_cannot_fit_sends_the_history_and_counts_as_failed() -> None:
    """As an agent would: the turn goes on."""
    history = history_of([user("one"), assistant("two")])

    def start(_: SessionHistory, __: PolicyLimits) -> Any:
        def prepare(end: int) -> PolicyPrompt:
            raise InsufficientBudget(budget_tokens=1, parts={"tail": 2})

        return prepare

    (call,) = replay_session(history, Policy("broken", "", start), PolicyLimits(1_000, 900)).calls
    assert (call.has_failed, call.tokens) == (True, history.tokens[0])


def test_prompts_share_what_is_equal_from_the_beginning() -> None:
    """Equal counts, not only the same object."""
    one, two = user("one"), user("two")
    assert shared_messages([one, two], [dict(one), dict(two), user("three")]) == 2
    assert shared_messages([one, two], [two, one]) == 0
