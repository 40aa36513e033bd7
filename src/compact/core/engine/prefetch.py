"""Summaries written ahead of their need: whether one is on its way, and what the turn in hand does about it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from compact.core.engine.emitter import Announcer
from compact.core.engine.persistence import Keeper
from compact.core.engine.session import Decision, Session
from compact.core.log.groups import group_messages
from compact.core.log.messages import Message
from compact.core.plan.layers import KeepRules, partition
from compact.core.plan.strategy import Goal
from compact.core.steps import Trip

# What to call to wait for somebody.
Wait: TypeAlias = Callable[[], object]


def _nobody(session: Session) -> Wait | None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ahead:
    """Has summaries written ahead, and knows who is at one.

    `start` begins to write one for a session, unless one is under way, and never waits; `under_way` is how to wait for
    the one that this process is writing for a session. What other processes do is asked of the store.
    """

    keeper: Keeper
    announcer: Announcer
    start: Callable[[Session], None]
    under_way: Callable[[Session], Wait | None] = _nobody

    def goes_on(self, session: Session, decision: Decision, *, fits: bool) -> Trip[bool]:
        """True if a summary is being written and the prompt still fits: the newest turn does not wait for it.

        One that no longer fits does wait: a second summary would take as long, and cost as much again.
        """
        if not fits:
            yield from self.awaited(session)
            return False
        if not (self.under_way(session) or (yield from self.keeper.ahead_elsewhere(session))):
            return False
        reason = f"{decision.reason}; a summary is being prepared, until then it goes on as it is"
        self.announcer.decided(session, Decision(False, reason))
        return True

    def awaited(self, session: Session) -> Trip[None]:
        """Wait for the summary that is being written for a session, here or in another process, if one is."""
        here = self.under_way(session)
        if here:
            yield here
        elsewhere = yield from self.keeper.ahead_elsewhere(session)
        if elsewhere:
            yield elsewhere


def goal_ahead(goal: Goal, growth_tokens: int) -> Goal:
    """The goal of a summary that will be used when the prompt has grown by so much, all of it kept verbatim."""
    growth = max(0, growth_tokens)
    return replace(goal, target_tokens=goal.target_tokens - growth, settle_tokens=goal.settle_tokens - growth)


def smaller_rules(rules: KeepRules) -> tuple[KeepRules, ...]:
    """How far the rules may be reduced for a summary written ahead: when it is used, the newest turn is another one."""
    reduced = tuple(rules.reductions())
    return (*reduced, replace(reduced[-1], tool_io_pairs=0))


def rules_leaving(span: Iterable[str], messages: Sequence[Message], rules: KeepRules) -> KeepRules | None:
    """The first of ever smaller rules that keep nothing of a span; None if that takes no smaller ones, or none do."""
    inside, groups = set(span), group_messages(messages)
    for smaller in smaller_rules(rules):
        if inside.isdisjoint(messages[index].id for index in partition(messages, groups, smaller).kept):
            return smaller if smaller != rules else None
    return None
