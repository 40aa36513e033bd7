"""The trigger: whether a call compacts, why, and how far, by the tokens of one session."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from compact.core.audit.records import AddedMessage
from compact.core.engine.trigger import Trigger
from compact.core.messages.message import Message
from compact.core.plan.budget import TokenBudget
from compact.core.plan.layers import KeepRules
from compact.core.plan.parts import PromptPart
from compact.core.plan.plan import CompactionPlan
from compact.core.plan.renderer import PromptRenderer
from compact.core.plan.strategy import SUMMARIZE
from compact.core.plan.turn import RehydrationState, TurnContext
from compact.core.session.session import Session
from compact.testing import Wire, tool_exchange, user

BUDGET = TokenBudget(max_context_tokens=1_000, safety_buffer=0, formatting_overhead=0)


def counted(message: Message) -> int:
    """A message is as large as it says."""
    return int(message.text or 0)


def session_of(*items: Wire) -> Session:
    session = Session("s")
    session.set_budget(BUDGET)
    grown(session, items)
    return session


def grown(session: Session, items: Sequence[Wire]) -> None:
    match = session.ingest(list(items), counted)
    assert match is not None
    session.extend_prompt(match.new, PromptRenderer(), KeepRules())


def decided(session: Session, budget: TokenBudget = BUDGET, *, used: int | None = None, **policy: Any) -> str:
    """Whether it compacts, and the reason without the usage."""
    trigger = Trigger(**policy)
    decision, _ = trigger.decide(session, budget, trigger.used_tokens(session, budget) if used is None else used)
    assert not (decision.is_optional and not decision.triggered)
    kind = "optional" if decision.is_optional else "must" if decision.triggered else "no"
    return f"{kind}: {decision.reason.partition('; ')[2]}"


def test_what_counts_is_the_prompt_and_all_that_goes_with_it() -> None:
    session = session_of(user("100"))
    session.add_rehydrated(
        [AddedMessage("rehydrated", Message("user", "again"), 20)], TurnContext(1, ("a",)), RehydrationState({"a": 1})
    )
    session.inject((AddedMessage("injected", Message("user", "note"), 3),))
    budget = replace(BUDGET, system_tokens=4_000)
    assert Trigger().estimated_tokens(session, budget) == 4_123
    budget = replace(BUDGET, system_tokens=100)
    assert Trigger().goal(session, budget).ceiling_tokens == 880, "both take from the room of messages"


def test_from_the_trigger_on_a_history_is_compacted() -> None:
    assert decided(session_of(user("849"))) == "no: below the trigger of 850"
    assert decided(session_of(user("850"))) == "must: trigger is 850"
    assert decided(session_of(user("850")), enabled=False) == "no: compaction is switched off"
    limited = replace(BUDGET, trigger_limit_tokens=300)
    assert decided(session_of(user("300")), limited) == "must: trigger is 300 (policy.trigger_tokens)"


@pytest.mark.parametrize("kind", ["exhausted", "held"])
def test_what_would_come_out_the_same_waits_until_it_does_not_fit(kind: str) -> None:
    session = session_of(user("900"))
    if kind == "exhausted":
        session.mark_exhausted()
        reason = "nothing has changed since the last compaction"
    else:
        session.adopt(CompactionPlan("s", version=3, held=True), is_compaction=False)
        reason = f"held, because version {session.plan.origin} was restored"
    assert decided(session, used=1_000) == f"no: {reason}"
    assert decided(session, used=1_001) == "must: trigger is 850"


def test_the_part_that_is_furthest_above_its_cap_comes_first() -> None:
    session = session_of(user("300"), *tool_exchange("c1", "250"), user("50"))
    caps = replace(BUDGET, part_caps={"dialogue": 340, "tool_results": 200})
    assert decided(session, caps) == "optional: tool_results is over its cap of 200"
    caps = replace(BUDGET, part_caps={"tool_results": 240, "dialogue": 300})
    assert decided(session, caps) == "optional: dialogue is over its cap of 300"
    session.decline("too dear", PromptPart.DIALOGUE)
    assert decided(session, caps) == "optional: tool_results is over its cap of 240", (
        "the next one, if that did not pay"
    )
    at_its_cap = replace(BUDGET, part_caps={"dialogue": 350, "tool_results": 250})
    assert decided(session, at_its_cap) == "no: below the trigger of 850"


def test_a_cap_is_met_by_half_of_it() -> None:
    session = session_of(user("300"), *tool_exchange("c1", "250"), user("50"))
    for part, cap, skipped in (("tool_results", 200, {SUMMARIZE}), ("dialogue", 101, set[str]())):
        _, goal = Trigger().decide(session, replace(BUDGET, part_caps={part: cap}), 600)
        tokens = session.prompt.tokens_by_part[PromptPart(part)]
        assert (goal.part, goal.part_tokens) == (PromptPart(part), cap // 2)
        assert session.prompt_tokens - goal.target_tokens == tokens - goal.part_tokens, "as much as the part must lose"
        assert goal.min_freed_tokens == cap // 4
        assert goal.settle_tokens == goal.ceiling_tokens == 1_000
        assert goal.skip == skipped
    _, smallest = Trigger().decide(session, replace(BUDGET, part_caps={"dialogue": 3}), 600)
    assert smallest.min_freed_tokens == 1
    _, least = Trigger().decide(session_of(user("100")), replace(BUDGET, part_caps={"dialogue": 1}), 100)
    assert least.target_tokens == 0


def test_what_did_not_pay_is_looked_at_again_when_the_prompt_has_grown() -> None:
    session = session_of(user("100"))
    caps = replace(BUDGET, part_caps={"dialogue": 50})
    session.decline("too dear", PromptPart.DIALOGUE)
    assert decided(session, caps) == "no: dialogue is over its cap of 50; too dear"
    grown(session, [user("100"), user("5")])
    assert decided(session, caps) == "no: dialogue is over its cap of 50; too dear"
    grown(session, [user("100"), user("5"), user("1")])
    assert decided(session, caps) == "optional: dialogue is over its cap of 50"
    session.decline("too dear", PromptPart.DIALOGUE)
    session.adopt(CompactionPlan("s", version=2), is_compaction=True)
    assert decided(session, caps) == "optional: dialogue is over its cap of 50", "nor is it said of another plan"


def test_at_every_call_only_what_is_free_is_done() -> None:
    session = session_of(user("100"))
    assert decided(session, every_call=True) == "optional: cadence is every call"
    _, goal = Trigger(every_call=True).decide(session, BUDGET, 100)
    assert (goal.target_tokens, goal.skip) == (0, {SUMMARIZE})
    session.decline("too dear")
    assert decided(session, every_call=True) == "no: too dear"


def test_a_target_that_a_person_names_overrules_the_thresholds() -> None:
    session = session_of(user("600"))
    budget = replace(BUDGET, injection_reserve=40)
    plain = Trigger().manual_goal(session, budget, None, focus="the harbour")
    assert (plain.target_tokens, plain.is_exact, plain.must_run, plain.focus) == (
        500,
        False,
        {SUMMARIZE},
        "the harbour",
    )
    for injects, expected in ((False, 300), (True, 260)):
        goal = Trigger(injects=injects).manual_goal(session, budget, 300)
        assert (goal.target_tokens, goal.settle_tokens, goal.ceiling_tokens) == (expected,) * 3
        assert goal.fixed == {PromptPart.RESERVED: 300 - expected}
        assert goal.is_exact
    assert Trigger().manual_goal(session, budget, 5_000).target_tokens == 960, "no more than may be sent"
