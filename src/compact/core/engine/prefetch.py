"""Prefetch summaries: written in the background before they are needed, and what a turn does while one is under way."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from compact.core.engine.claims import SummaryClaiming
from compact.core.engine.emitter import EventEmitter
from compact.core.errors import WaitTimeout
from compact.core.messages.groups import Group
from compact.core.messages.message import Message
from compact.core.plan.layers import KeepRules, partition
from compact.core.plan.strategy import Goal
from compact.core.session.decisions import TriggerDecision
from compact.core.session.session import Session
from compact.core.steps import SlowStep, Steps


def _none_running(session: Session) -> Steps[None] | None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefetch:
    """Starts prefetching, and knows whether it is under way.

    `start` begins to write a summary for a session, unless one is under way, and never waits; `running` returns how to
    wait for the one that this process is writing. What other processes do is asked of the store.

    A summary that code writes is quick (`is_quick`): a turn waits the moment until it is there, so that the same calls
    have the same prompts, as long as one is made after the other. A turn does not wait for another process: of two that
    are at one session at once, each takes what is there.
    """

    claiming: SummaryClaiming
    emitter: EventEmitter
    start: Callable[[Session], None]
    running: Callable[[Session], Steps[None] | None] = _none_running
    is_quick: bool = False

    def postpones_compaction(self, session: Session, decision: TriggerDecision, *, fits: bool) -> Steps[bool]:
        """Return True if a summary is being written and the prompt still fits: the turn does not wait for it.

        A prompt that no longer fits does wait: a second summary would take as long, and cost as much again.
        """
        if self.is_quick or not fits:
            yield from self.wait(session)
            return False
        if not (self.running(session) or (yield from self.claiming.prefetch_elsewhere(session))):
            return False
        reason = f"{decision.reason}; a summary is being prefetched, until then the prompt stays as it is"
        postponed = TriggerDecision(False, reason)
        session.decide(postponed)
        self.emitter.decision(session, postponed)
        return True

    def wait(self, session: Session) -> Steps[None]:
        """Wait for the summary that is being written for a session, here or in another process, if one is."""
        try:
            here = self.running(session)
            if here:
                yield from here
            if self.is_quick:  # the turn is as quick as another process
                return
            elsewhere = yield from self.claiming.prefetch_elsewhere(session)
            if elsewhere:
                yield SlowStep(elsewhere, "the process that prefetches the summary")
        except WaitTimeout as error:
            self.emitter.error(session, error, fallback="continued without waiting for the prefetched summary")


def prefetch_goal(goal: Goal, growth_tokens: int) -> Goal:
    """Return the goal of a summary that will be used when the prompt has grown by so much, all of it kept verbatim."""
    growth = max(0, growth_tokens)
    return replace(goal, target_tokens=goal.target_tokens - growth, settle_tokens=goal.settle_tokens - growth)


def smaller_rules(rules: KeepRules) -> tuple[KeepRules, ...]:
    """Return how far rules may be reduced for a prefetched summary: when it is used, the newest turn is another one."""
    reduced = tuple(rules.reductions())
    return (*reduced, replace(reduced[-1], tool_io_pairs=0))


def rules_without(
    span: Iterable[str],
    messages: Sequence[Message],
    groups: Sequence[Group],
    rules: KeepRules,
    may_pin: Sequence[int] | None = None,
) -> KeepRules | None:
    """Return the first of ever smaller rules that keep nothing of a span; None if the rules do so, or none do."""
    inside = set(span)
    for smaller in smaller_rules(rules):
        if inside.isdisjoint(messages[index].id for index in partition(messages, groups, smaller, may_pin).kept):
            return smaller if smaller != rules else None
    return None
