"""The peers' benchmark runs their own code, our rules for frameworks are what they do, and our figures have floors."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from compact.measuring.framework_rules import FRAMEWORK_POLICIES
from compact.measuring.histories import MessageSizes, SessionHistory
from compact.measuring.needs import Commons
from compact.measuring.policies import PLAIN_POLICIES, Policy, PolicyLimits, PolicyPrompt, Prepare
from compact.measuring.recordings import Wire, recording_of
from compact.measuring.replay import replay_session
from compact.measuring.simulation import find_checkpoints
from compact.testing import assistant, tool_exchange, tool_run, user
from compact.tokens import get_tokenizer

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

from fidelity.sample.rows import sample_rows
from peers import agent_framework_peers, langchain_peers, litellm_peers, registry, strands_peers
from peers.document import BEGIN, END, PAGE, RESULTS, with_tables
from peers.measuring import PeerSession, interval, limits_of, measure_session, summarize_results

# Chosen: some points below what was measured on this session; cost is relative to sending everything.
FLOORS = {"recall": 0.70, "linked": 0.60, "user_text": 0.85, "lines": 0.55}
MOST_COST = 1.0
SUMMARY = "Here is a summary of the conversation to date:"


@pytest.fixture(scope="module")
def history() -> SessionHistory:
    """A coding session that the project makes itself."""
    row = sample_rows("sample-coding")[0]
    return SessionHistory(row["id"], row["source"], tuple(row["messages"]), MessageSizes(get_tokenizer("gpt-4o")))


def measured(history: SessionHistory, policy: Policy) -> PeerSession:
    recording = recording_of(history.id, history.source, history.messages)
    points = find_checkpoints(history, recording, limits_of(history), Commons([recording]))
    return measure_session(history, policy, points)


def prompts(history: SessionHistory, policy: Policy, limits: PolicyLimits) -> dict[int, list[Wire]]:
    """Every prompt; what stands in for a model's summary is left out, because the rule reads other messages for it."""
    sent = replay_session(history, policy, limits, keep=history.calls).prompts
    return {
        end: [{**one, "content": SUMMARY} if str(one.get("content")).startswith(SUMMARY) else one for one in prompt]
        for end, prompt in sent.items()
    }


def forget(history: SessionHistory, limits: PolicyLimits) -> Prepare:
    """A strategy that is broken on purpose: from the trigger on, the newest two messages."""

    def prepare(end: int) -> PolicyPrompt:
        first = 0 if history.tokens_before[end] < limits.trigger_tokens else end - 2
        return PolicyPrompt(list(history.messages[first:end]))

    return prepare


# -- ours ------------------------------------------------------------------------------------------------------------


def test_compact_reaches_its_floors_and_a_broken_strategy_does_not(history: SessionHistory) -> None:
    """Legal and within the window at every call, cheaper than everything; what forgets is far below."""
    ours, broken = measured(history, registry.ours()), measured(history, Policy("broken", "", forget))
    assert (ours.illegal, ours.overflows, ours.failures) == (0, 0, 0)
    assert ours.compactions > 1
    assert {name: share for name, share in ours.shares.items() if (share or 0) < FLOORS[name]} == {}
    assert ours.constraints_kept == ours.constraints
    assert ours.cost < MOST_COST
    assert all((broken.shares[name] or 0) < floor for name, floor in FLOORS.items())


# -- the frameworks' own code ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "policy",
    [*langchain_peers.POLICIES, *agent_framework_peers.POLICIES, *strands_peers.POLICIES],
    ids=lambda policy: policy.name,
)
def test_a_peer_shortens_by_its_own_code(history: SessionHistory, policy: Policy) -> None:
    """Each is below sending everything and above nothing; those that ask for a summary pay for it."""
    limits = limits_of(history)
    replayed = replay_session(history, policy, limits)
    largest = max(call.tokens for call in replayed.calls)
    assert 0.2 * limits.trigger_tokens < largest < 0.9 * history.largest_tokens
    assert any(call.is_changed for call in replayed.calls)
    assert not any(call.has_failed for call in replayed.calls)
    assert any(call.summary_output_tokens for call in replayed.calls) == ("Summar" in policy.name)


def test_litellm_splits_calls_from_their_results() -> None:
    """Its prompts are not legal; the benchmark says so."""
    messages = [user("Read them."), *tool_run(8, words=60)[1:], assistant("Done."), user("And?"), assistant("Fine.")]
    history = SessionHistory("small", "small", tuple(messages), MessageSizes(get_tokenizer("gpt-4o")))
    assert measured(history, litellm_peers.POLICIES[0]).illegal > 0


# -- the rules of `compact simulate` ---------------------------------------------------------------------------------


def test_our_rule_of_langchains_summaries_is_what_it_does(history: SessionHistory) -> None:
    """The same messages before, behind and beside the summary, at every call."""
    limits = limits_of(history)
    own = prompts(history, langchain_peers.POLICIES[2], limits)
    assert prompts(history, FRAMEWORK_POLICIES["langchain"], limits) == own
    assert any(message.get("content") == SUMMARY for message in own[history.calls[-1]])


def test_our_rule_of_strands_window_is_what_it_does() -> None:
    """The same messages at every call, in a window that no prompt fills."""
    messages: list[dict[str, Any]] = []
    for turn in range(12):
        messages.append(user(f"turn {turn}"))
        for number in range(turn % 5):
            messages += tool_exchange(f"c{turn}-{number}", f"result {number}")
        messages.append(assistant(f"answer {turn}"))
    messages += [user("and now a long one"), *tool_run(60)[1:], assistant("done"), user("thanks"), assistant("sure")]
    history = SessionHistory("turns", "turns", tuple(messages), MessageSizes(get_tokenizer("gpt-4o")))
    limits = PolicyLimits(1_000_000, 850_000)
    own = prompts(history, strands_peers.POLICIES[0], limits)
    assert prompts(history, FRAMEWORK_POLICIES["strands"], limits) == own
    assert len(own[history.calls[-1]]) < 45


def test_our_rule_of_clearing_is_what_langchain_does(history: SessionHistory) -> None:
    """The same stubs in the same places; it acts above its trigger, we at ours."""
    limits = limits_of(history)
    above = PolicyLimits(limits.window_tokens, limits.trigger_tokens + 1)
    own = prompts(history, langchain_peers.POLICIES[1], limits)
    assert prompts(history, PLAIN_POLICIES["clear"], above) == own


# -- the results -----------------------------------------------------------------------------------------------------


def test_an_interval_is_around_the_mean_and_the_same_every_time() -> None:
    """Bootstrap over sessions."""
    mean, low, high = interval([0.2, 0.4, 0.9, 0.5, 0.6], 7) or []
    assert low < mean < high
    assert interval([0.2, 0.4, 0.9, 0.5, 0.6], 7) == [mean, low, high]
    assert interval([], 7) is None
    assert summarize_results([])["recall"] is None


def test_the_tables_on_the_page_are_those_of_the_results() -> None:
    """`python benchmarks/peers --document` writes them; nobody edits them by hand."""
    page, results = PAGE.read_text(encoding="utf-8"), json.loads(RESULTS.read_text(encoding="utf-8"))
    assert with_tables(page, results) == page
    assert {"compact", "litellm trim_messages", "langchain SummarizationMiddleware"} <= set(results["peers"])
    changed = json.loads(json.dumps(results))
    changed["peers"]["compact"]["kept"]["recall"] = [0.123, 0.1, 0.2]
    assert with_tables(page, changed) != page
    with pytest.raises(ValueError, match="no marks"):
        with_tables(page.replace(BEGIN, "").replace(END, ""), results)
