"""The peers' benchmark runs their own code, our rules for frameworks are what they do, and our figures have floors."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from importlib import import_module
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
from peers import langchain_peers, litellm_peers, registry, strands_peers
from peers.command import keep_speeds
from peers.conversion import run
from peers.document import BEGIN, END, PAGE, RESULTS, tables, with_tables
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
    """A strategy that is broken on purpose: from the trigger on, the newest message, often a lone result."""

    def prepare(end: int) -> PolicyPrompt:
        first = 0 if history.tokens_before[end] < limits.trigger_tokens else end - 1
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


PEERS = {peer.policy.name: peer for peer in registry.installed_peers()[0][1:]}
# Where the work of each row is done, in the peer's own code; functions where the row's file has them from.
CALLED = {
    "langchain trim_messages": "peers.langchain_peers:trim_messages",
    "langchain ClearToolUsesEdit": "langchain.agents.middleware:ClearToolUsesEdit.apply",
    "langchain SummarizationMiddleware": "langchain.agents.middleware:SummarizationMiddleware.before_model",
    "agent-framework TruncationStrategy": "agent_framework:TruncationStrategy.__call__",
    "agent-framework ContextWindowCompactionStrategy": "agent_framework:ContextWindowCompactionStrategy.__call__",
    "agent-framework TokenBudgetComposedStrategy": "agent_framework:TokenBudgetComposedStrategy.__call__",
    "strands SlidingWindowConversationManager": "strands.agent.conversation_manager:"
    "SlidingWindowConversationManager.reduce_context",
    "strands SummarizingConversationManager": "strands.agent.conversation_manager:"
    "SummarizingConversationManager.reduce_context",
    "google-adk EventsCompactionConfig": "google.adk.apps.llm_event_summarizer:"
    "LlmEventSummarizer.maybe_summarize_events",
    "google-adk ContextFilterPlugin": "google.adk.plugins.context_filter_plugin:"
    "ContextFilterPlugin.before_model_callback",
    "pydantic-ai SlidingWindowCompaction": "pydantic_ai_harness.compaction:SlidingWindowCompaction.compact",
    "pydantic-ai ClearToolResults": "pydantic_ai_harness.compaction:ClearToolResults.compact",
    "pydantic-ai SummarizingCompaction": "pydantic_ai_harness.compaction:SummarizingCompaction.compact",
    "pydantic-ai TieredCompaction": "pydantic_ai_harness.compaction:TieredCompaction.before_model_request",
    "litellm trim_messages": "peers.litellm_peers:trim_messages",
    "headroom compress": "peers.headroom_peers:compress",
}
# Those that ask for summaries and do not say so in their name.
SUMMARISING = ("google-adk EventsCompactionConfig", "agent-framework TokenBudgetComposedStrategy")
# Headroom finds nothing to compress in the sample; LiteLLM's prompts are looked at below, in a shorter session.
SHORTENING = [name for name in PEERS if not name.startswith(("headroom", "litellm"))]


class AskedPeer(Exception):
    """The peer's own code was reached."""


def test_no_peer_is_left_out_unseen() -> None:
    """What our own lock has is measured everywhere; in the environment of `make bench-peers` all are."""
    packages = {peer.package for peer in PEERS.values()}
    assert packages >= {"langchain", "agent-framework-core", "strands-agents", "google-adk", "litellm"}
    assert set(PEERS) <= set(CALLED)
    if Path(sys.prefix).name == ".venv-peers":
        assert set(PEERS) == set(CALLED)


@pytest.mark.parametrize("name", PEERS)
def test_a_row_goes_through_the_peers_own_code(
    history: SessionHistory, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The function that does the work is the peer's, and a row whose function fails has no figures."""
    peer, (module, _, path) = PEERS[name], CALLED[name].partition(":")
    owner: Any = import_module(module)
    *outer, last = path.split(".")
    for part in outer:
        owner = getattr(owner, part)
    own = getattr(owner, last)
    package = peer.statement.split()[1].split(".")[0]
    assert own.__module__.split(".")[0] in {package, f"{package}_core"}

    def fail(*given: Any, **named: Any) -> Any:
        raise AskedPeer

    monkeypatch.setattr(owner, last, fail)
    # ADK goes on with everything when its summary fails: then what is missing are summaries.
    try:
        calls = replay_session(history, peer.policy, limits_of(history)).calls
    except AskedPeer:
        return
    assert name == "google-adk EventsCompactionConfig"
    assert not any(call.is_changed for call in calls)


@pytest.mark.parametrize("name", SHORTENING)
def test_a_peer_shortens_by_its_own_code(history: SessionHistory, name: str) -> None:
    """Each is below sending everything and above nothing; those that ask for a summary pay for it."""
    limits = limits_of(history)
    replayed = replay_session(history, PEERS[name].policy, limits)
    largest = max(call.tokens for call in replayed.calls)
    assert 0.2 * limits.trigger_tokens < largest < 0.9 * history.largest_tokens
    assert any(call.is_changed for call in replayed.calls)
    assert not any(call.has_failed for call in replayed.calls)
    summarises = "Summar" in name or name in SUMMARISING
    assert any(call.summary_output_tokens for call in replayed.calls) == summarises


@pytest.mark.parametrize("name", SHORTENING)
def test_what_a_peer_keeps_is_what_the_session_had(history: SessionHistory, name: str) -> None:
    """Every prompt is legal; messages are the recorded ones in their order, cut or cleared results, or summaries."""
    policy, limits = PEERS[name].policy, limits_of(history)
    assert measured(history, policy).illegal == 0
    answered = {message["tool_call_id"] for message in history.messages if message["role"] == "tool"}
    sent = replay_session(history, policy, limits, keep=history.calls).prompts
    for prompt in sent.values():
        new = [message for message in prompt if message not in history.messages]
        following = iter(history.messages)
        # Each is looked for behind the one before.
        assert all(message in following for message in prompt if message not in new)
        assert all(message["role"] in ("user", "assistant", "tool") for message in new)
        assert {message["tool_call_id"] for message in new if message["role"] == "tool"} <= answered
        assert not any(message.get("tool_calls") for message in new)


def test_an_illegal_prompt_is_counted(history: SessionHistory) -> None:
    """A strategy that keeps results without their calls is refused at each such prompt."""
    broken = measured(history, Policy("broken", "", forget))
    assert 0 < broken.illegal <= broken.calls


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
    assert set(results["peers"]) == {"compact", *CALLED}
    changed = json.loads(json.dumps(results))
    changed["peers"]["compact"]["kept"]["recall"] = [0.123, 0.1, 0.2]
    assert with_tables(page, changed) != page
    with pytest.raises(ValueError, match="no marks"):
        with_tables(page.replace(BEGIN, "").replace(END, ""), results)


def test_the_page_names_who_is_better() -> None:
    """Whoever has a better mean than Compact is listed with it, and with the share of its prompts that is refused."""
    results = json.loads(RESULTS.read_text(encoding="utf-8"))
    peer = results["peers"]["agent-framework TruncationStrategy"]["kept"]
    peer |= {"recall": [0.999, 0.99, 1.0], "cost": [9.0, 8.0, 10.0], "calls": 200, "illegal": 0, "too_large": 50}
    told = {line.split("**")[1]: line for line in tables(results).splitlines() if line.startswith("- **")}
    assert "`agent-framework TruncationStrategy` 100 (25 % refused)" in told["recall"]
    assert "TruncationStrategy" not in told["cost"]
    peer |= {"recall": [0.0, 0.0, 0.1], "cost": [0.01, 0.01, 0.02], "too_large": 0}
    told = {line.split("**")[1]: line for line in tables(results).splitlines() if line.startswith("- **")}
    assert "TruncationStrategy" not in told["recall"]
    assert ": `agent-framework TruncationStrategy` 0.01," in told["cost"] + ","


async def _own_loop() -> asyncio.AbstractEventLoop:
    return asyncio.get_running_loop()


def test_a_framework_does_not_pay_for_a_loop_at_each_call() -> None:
    """A program has one; to make it, and to write down the task that ends with it, took longer than some peers."""
    assert run(_own_loop()) is run(_own_loop())


def test_memory_is_that_of_the_process_itself() -> None:
    """A process that a large one started is not as large."""
    held = b"x" * 300_000_000
    code = "from peers.speed import peak_mb; print(peak_mb())"
    folder = Path(__file__).resolve().parents[2] / "benchmarks"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder)
    assert len(held) / 1_000_000 > 2 * float(done.stdout) > 0


def test_speeds_stay_that_are_not_measured_again() -> None:
    """`--no-speed` leaves them as they are, but for a peer that has another version now."""
    before = json.loads(RESULTS.read_text(encoding="utf-8"))["peers"]
    measured = {name: {key: peer[key] for key in ("version", "kept")} for name, peer in before.items()}
    measured["headroom compress"]["version"] = "0"
    keep_speeds({"peers": measured})
    assert measured["compact"] == {key: before["compact"][key] for key in ("version", "kept", "speed", "import_s")}
    assert "speed" not in measured["headroom compress"]


def test_speeds_that_were_not_measured_are_not_told() -> None:
    """Without them there is one table; a peer that took too long is not the faster one."""
    results = json.loads(RESULTS.read_text(encoding="utf-8"))
    for peer in results["peers"].values():
        peer["speed"]["100"] = {"first_s": 1.0, "next_s": 0.1, "memory_mb": 1.0}
    results["peers"]["litellm trim_messages"]["speed"]["100"] = None
    results["peers"]["headroom compress"]["speed"]["100"]["next_s"] = 0.05
    assert "- **100 turns**: 0 at the first call, 1 at the next" in tables(results)
    for peer in results["peers"].values():
        del peer["speed"], peer["import_s"]
    assert "turns" not in tables(results)
