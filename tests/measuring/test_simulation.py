"""A simulation adds up what policies cost and keep, and recommends one by a rule that can be checked."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from compact import CompactConfig
from compact.core.plan.economics import USD, Prices
from compact.measuring.histories import MessageSizes, SessionHistory
from compact.measuring.policies import PLAIN_POLICIES, Policy, PolicyLimits, PolicyPrompt, Prepare, compact_policy
from compact.measuring.recommendation import recommend
from compact.measuring.simulation import PolicyResult, Simulation, evenly, simulate
from compact.testing import assistant, tool_exchange, user
from compact.tokens import get_tokenizer

PRICES = Prices(fresh=1.0, cache_read=0.1, cache_write=1.25, output=5.0)
LIMITS = PolicyLimits(3_000, 2_550)


def session() -> SessionHistory:
    """An agent that comes back at its end to a code from its beginning, and was told what must hold."""
    messages: list[dict[str, Any]] = [user("Book cabin ZX4471 for Marlowe. Never book anything before noon.")]
    for number in range(40):
        messages += tool_exchange(f"c{number}", f"berth {number}: " + "the tide comes in slowly " * 15, tool="look")
    messages += [assistant("Cabin ZX4471 is booked for Marlowe."), user("Thanks."), assistant("Anything else?")]
    sizes = MessageSizes(get_tokenizer("gpt-4o"))
    return SessionHistory("harbour", "harbour.jsonl", tuple(messages), sizes)


def ours(**settings: Any) -> Policy:
    config = CompactConfig(
        max_context_tokens=3_000,
        policy={"hard_cap_buffer": 100},
        state={"url": "memory:"},
        storage={"adapter": "none"},
        telemetry={"exporter": "none"},
        **settings,
    )
    return compact_policy("compact", config)


def forget_everything(history: SessionHistory, limits: PolicyLimits) -> Prepare:
    """A strategy that is broken on purpose: of each prompt only the newest group is left."""
    newest = {end: [n for n in range(end) if n >= end - 2] for end in history.calls}
    return lambda end: PolicyPrompt([history.messages[place] for place in newest[end]])


@pytest.fixture(scope="module")
def simulation() -> Simulation:
    policies = [PLAIN_POLICIES["none"], PLAIN_POLICIES["window"], ours(), Policy("broken", "", forget_everything)]
    return simulate([session()], policies, LIMITS, price_of=lambda tokens: PRICES, currency=USD)


def result(simulation: Simulation, policy: str) -> PolicyResult:
    found = simulation.of(policy)
    assert found
    return found


def test_what_the_agent_needed_is_kept_or_lost(simulation: Simulation) -> None:
    """Sending everything keeps all; a window loses the first message; ours keeps it and the constraint."""
    none, window, compact = (result(simulation, name) for name in ("none", "window", "compact"))
    assert (none.recall, none.user_text, none.constraints_kept) == (1, 1, none.constraints)
    assert none.constraints > 0
    assert (window.user_text, window.constraints_kept) == (0, 0)
    assert (compact.recall, compact.user_text) == (1, 1)
    assert compact.constraints_kept == compact.constraints


def test_a_broken_strategy_lowers_the_figures(simulation: Simulation) -> None:
    """It is the cheapest, and keeps the least."""
    broken, compact = result(simulation, "broken"), result(simulation, "compact")
    assert broken.cost < compact.cost
    assert (broken.recall, broken.user_text, broken.constraints_kept) == (0, 0, 0)
    assert (broken.fidelity or 0) < (compact.fidelity or 0) - 0.5


def test_sizes_and_overflows_are_counted(simulation: Simulation) -> None:
    """Only sending everything outgrows the window; tokens are those of all prompts."""
    none, compact = result(simulation, "none"), result(simulation, "compact")
    assert none.overflows > 0
    assert not none.fits
    assert (compact.overflows, compact.failures) == (0, 0)
    assert compact.largest_prompt_tokens <= LIMITS.window_tokens
    assert 0 < compact.compactions < result(simulation, "window").compactions
    assert compact.input_tokens < none.input_tokens
    calls = next(one.calls for one in simulation.sessions if one.policy == "none")
    assert sum(call.tokens for call in calls) == none.input_tokens


def test_the_recommendation_names_what_fits_and_keeps_most(simulation: Simulation) -> None:
    """And says what sending everything would have come to."""
    name, reason = recommend(simulation)
    assert name == "compact"
    assert reason.startswith("Use compact: of the policies whose prompts all fit the window it keeps most")
    assert "would be larger than the window" in reason


def test_among_equals_the_cheapest_is_recommended(simulation: Simulation) -> None:
    """A few points of fidelity are not paid for."""
    compact = result(simulation, "compact")
    cheap = replace(compact, policy="cheap", cost=compact.cost / 2, recall=0.97)
    name, reason = recommend(replace(simulation, policies=(*simulation.policies, cheap)))
    assert name == "cheap"
    assert "about as much as the best, for less" in reason


@pytest.mark.parametrize(
    ("measured", "named"),
    [
        ({"recall", "linked", "user_text", "lines"}, " on average over recall, linked, user text and lines;"),
        ({"recall", "lines"}, " on average over recall and lines;"),
        ({"user_text"}, "% in user text;"),
        (set[str](), "(an unknown share; "),
    ],
)
def test_the_recommendation_names_what_was_measured_alone(
    simulation: Simulation, measured: set[str], named: str
) -> None:
    """Where nothing came up again later, there is no recall."""
    names = ("recall", "linked", "user_text", "lines")
    shares: dict[str, Any] = {name: 0.5 if name in measured else None for name in names}
    policies = tuple(replace(one, **shares) for one in simulation.policies)
    assert named in recommend(replace(simulation, policies=policies))[1]


def test_sessions_that_fit_need_no_compaction(simulation: Simulation) -> None:
    """Neither below the trigger nor below the window; and if nothing fits, that is said."""
    limits = PolicyLimits(100_000, 85_000)
    small = simulate([session()], [PLAIN_POLICIES["none"]], limits, price_of=lambda tokens: PRICES, currency=USD)
    assert recommend(small)[0] == "none"
    assert "No session reaches the trigger of 85,000 tokens" in recommend(small)[1]
    fitting = tuple(replace(one, overflows=0) for one in simulation.policies)
    assert recommend(replace(simulation, policies=fitting))[1].startswith("Use none: every prompt fits")
    refused = tuple(replace(one, overflows=1) for one in simulation.policies)
    assert recommend(replace(simulation, policies=refused))[0] == ""


def test_checkpoints_are_evenly_apart() -> None:
    """All of few, and the first of many."""
    assert evenly([1, 2], 4) == [1, 2]
    assert evenly(list(range(100)), 4) == [0, 25, 50, 75]
