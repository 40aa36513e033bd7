"""Asks the strategies, cheapest first, until the goal is met; then gives up kept messages, one by one.

Planning never waits: a summary that is not written yet weighs the most it may weigh.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from compact.core.economics import Economics
from compact.core.errors import InsufficientBudget
from compact.core.groups import Group, calls_answered, group_messages, turn_numbers
from compact.core.layers import KeepRules, Layers, partition
from compact.core.messages import Message, ToolCall
from compact.core.plan import (
    ClearRecord,
    CompactionAction,
    CompactionPlan,
    DropRecord,
    ExternalizationRecord,
    Record,
    SummarizationRecord,
)
from compact.core.protocols import CompactionStrategy
from compact.core.renderer import summary_message
from compact.core.shortening import SHORTEN, Candidate, Shortener
from compact.core.stubs import render_cleared, render_externalization_text
from compact.core.turn import TurnContext

SUMMARIZE = "summarize"
# A summary of less says nothing.
_SMALLEST_SUMMARY_TOKENS = 40
_SMALL_PROMPT_TOKENS = 2000
_LARGE_SHARE = 0.25
Failure: TypeAlias = tuple[str, Exception]


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """How far to go, in estimated tokens of messages alone.

    Strategies run until `target_tokens`; kept messages are given up until `settle_tokens`, and for a summary of up to
    `summary_share` of the room; beyond `ceiling_tokens` nothing may be sent. `must_run` names strategies that run even
    if the target is already met, `skip` those that do not run at all; `fixed` is what is sent beside the messages, for
    the record.
    """

    target_tokens: int
    settle_tokens: int
    ceiling_tokens: int
    summary_share: float = 0.25
    must_run: frozenset[str] = frozenset()
    skip: frozenset[str] = frozenset()
    fixed: Mapping[str, int] = field(default_factory=dict[str, int])

    @property
    def is_exact(self) -> bool:
        """True if somebody asked for so many tokens: no more, and no fewer than it takes."""
        return self.target_tokens == self.ceiling_tokens


@dataclass(frozen=True, slots=True)
class CompactionProposal:
    """A record that a strategy would like in the plan; `pinned` are the messages to stand before its summary."""

    record: Record
    pinned: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanningContext:
    """All that a strategy may look at."""

    messages: Sequence[Message]
    tokens: Sequence[int]
    groups: Sequence[Group]
    turns: Sequence[int]
    answered: Mapping[int, ToolCall]
    layers: Layers
    places: Mapping[str, int]
    plan: CompactionPlan
    goal: Goal
    count_message: Callable[[Message], int]
    turn: TurnContext = field(default_factory=TurnContext)
    prepared: SummarizationRecord | None = None

    def weigh(self, record: Record) -> Record:
        """The record with its tokens filled in: what its messages take now, and what will stand for them.

        Strategies propose, the coordinator measures: a saving that is only claimed would end in a prompt too large.
        """
        now = sum(self.weight(self.places[message_id]) for message_id in record.span)
        record = replace(record, tokens_before=now)
        message = self.messages[self.places[record.span.first]]
        match record:
            case ClearRecord():
                after = self.count_message(render_cleared(message, record))
            case ExternalizationRecord():
                after = self.count_message(replace(message, content=render_externalization_text(record)))
            case SummarizationRecord():
                standing = self.plan.summary
                record = replace(record, tokens_before=now + (standing.tokens_after if standing else 0))
                after = self.count_message(summary_message(record)) if record.summary else record.max_tokens
            case DropRecord():
                after = 0
        return replace(record, tokens_after=after)

    def weight(self, index: int) -> int:
        """The tokens a message takes in the prompt as planned so far."""
        action, record = self.plan.get_action(self.messages[index].id)
        if record is None:
            return self.tokens[index]
        return record.tokens_after if action in (CompactionAction.CLEAR, CompactionAction.EXTERNALIZE) else 0

    def total_tokens(self) -> int:
        """The tokens of the whole prompt as planned so far."""
        summary = self.plan.summary
        return sum(map(self.weight, range(len(self.messages)))) + (summary.tokens_after if summary else 0)


@dataclass(frozen=True, slots=True)
class Tally:
    """What became of one strategy's proposals."""

    strategy: str
    accepted: int = 0
    rejected: int = 0
    tokens_freed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionResult:
    """What planning came to, and how: `proposals` counts the new records of each strategy."""

    plan: CompactionPlan
    layers: Layers
    rules: KeepRules
    tokens_before: int
    tokens_after: int
    proposals: Mapping[str, int]
    failures: tuple[Failure, ...] = ()
    tallies: tuple[Tally, ...] = ()
    reason: str = ""
    economics: Economics | None = None

    @property
    def tokens_freed(self) -> int:
        """How much smaller the prompt gets."""
        return self.tokens_before - self.tokens_after

    @property
    def pending_summary(self) -> SummarizationRecord | None:
        """The summary that is still to be written."""
        summary = self.plan.summary
        return summary if summary and summary.summary is None else None


class CompactionCoordinator:
    """Runs strategies in the order given, each until the target is met."""

    def __init__(self, strategies: Sequence[CompactionStrategy], *, max_proposals_per_run: int = 100_000) -> None:
        self.strategies = tuple(strategies)
        self.max_proposals_per_run = max_proposals_per_run

    def coordinate(
        self,
        messages: Sequence[Message],
        plan: CompactionPlan,
        *,
        tokens: Sequence[int],
        count_message: Callable[[Message], int],
        rules: KeepRules,
        goal: Goal,
        turn: TurnContext | None = None,
        prepared: SummarizationRecord | None = None,
    ) -> CompactionResult:
        """Make the next plan: strategies first, then fewer kept messages, then cuts in what is too large."""
        groups = group_messages(messages)
        start = PlanningContext(
            messages=messages,
            tokens=tokens,
            groups=groups,
            turns=turn_numbers(messages),
            answered=calls_answered(messages, groups),
            layers=partition(messages, groups, rules),
            places={message.id: index for index, message in enumerate(messages)},
            plan=plan,
            goal=goal,
            count_message=count_message,
            turn=turn or TurnContext(),
            prepared=prepared,
        )
        before = start.total_tokens()
        context, kept, failures, tallies = start, rules, list[Failure](), list[Tally]()
        for kept in _reductions(rules, goal):
            context, failures, tallies = self._run_strategies(replace(start, layers=partition(messages, groups, kept)))
            if context.total_tokens() <= goal.settle_tokens:
                break
        context = _squeeze(context)
        after = context.total_tokens()
        if after > goal.ceiling_tokens:
            budget = goal.ceiling_tokens + sum(goal.fixed.values())
            raise InsufficientBudget(budget_tokens=budget, parts={**goal.fixed, **_parts(context)})
        return CompactionResult(
            plan=context.plan,
            layers=context.layers,
            rules=kept,
            tokens_before=before,
            tokens_after=after,
            proposals=_new_records(plan, context.plan),
            failures=tuple(failures),
            tallies=tuple(tallies),
        )

    def _run_strategies(self, context: PlanningContext) -> tuple[PlanningContext, list[Failure], list[Tally]]:
        total, failures, tallies = context.total_tokens(), list[Failure](), list[Tally]()
        for strategy in self.strategies:
            if not _is_wanted(strategy.name, total, context.goal):
                continue
            try:
                accepted, rejected = self._accept(strategy, context, total - context.goal.target_tokens)
            except Exception as error:  # a plug-in that fails is left out; the turn goes on
                failures.append((strategy.name, error))
                continue
            context = _apply(context, accepted)
            freed = sum(proposal.record.tokens_freed for proposal in accepted)
            tallies.append(Tally(strategy.name, len(accepted), rejected, freed))
            total -= freed
        return context, failures, tallies

    def _accept(
        self, strategy: CompactionStrategy, context: PlanningContext, tokens_to_free: int
    ) -> tuple[list[CompactionProposal], int]:
        """Take proposals, in the strategy's order, until enough is freed; how many were rejected: they free nothing."""
        accepted: list[CompactionProposal] = []
        rejected = 0
        for proposal in strategy.propose(context):
            record = context.weigh(proposal.record)
            if record.tokens_freed <= 0:
                rejected += 1
                continue
            accepted.append(replace(proposal, record=record))
            tokens_to_free -= record.tokens_freed
            if tokens_to_free <= 0 or len(accepted) >= self.max_proposals_per_run:
                break
        return accepted, rejected


def _reductions(rules: KeepRules, goal: Goal) -> Iterator[KeepRules]:
    """Ever smaller rules, down to what is asked and what was not read yet; in a very small prompt not even that.

    There the frame of a tool exchange costs more than what it says: the summary has the best of it.
    """
    smallest = rules
    for smallest in rules.reductions():
        yield smallest
    smallest = replace(smallest, tool_io_pairs=0)
    yield smallest
    if goal.settle_tokens < _SMALL_PROMPT_TOKENS:
        yield replace(smallest, unread_results=False)
        yield replace(smallest, unread_results=False, recent_turns=0)


def _is_wanted(strategy: str, total_tokens: int, goal: Goal) -> bool:
    return strategy not in goal.skip and (total_tokens > goal.target_tokens or strategy in goal.must_run)


def _new_records(before: CompactionPlan, after: CompactionPlan) -> dict[str, int]:
    """How many records each strategy has added; those that a later one overruled are not in the plan any more."""
    standing = {id(record) for record in before.records}
    return dict(Counter(record.strategy for record in after.records if id(record) not in standing))


def _apply(context: PlanningContext, proposals: Sequence[CompactionProposal]) -> PlanningContext:
    plan = context.plan
    for proposal in proposals:
        if isinstance(proposal.record, SummarizationRecord):
            plan = plan.summarizing(proposal.record, proposal.pinned)
    others = [p.record for p in proposals if not isinstance(p.record, SummarizationRecord)]
    return replace(context, plan=plan.adding(*others) if others else plan)


def _squeeze(context: PlanningContext) -> PlanningContext:
    """Cut what is too large: results of tools and what fills the prompt on its own, then the summary, then the rest."""
    large = int(_LARGE_SHARE * context.goal.ceiling_tokens)

    def is_bulky(message: Message, tokens: int) -> bool:
        return message.role == "tool" or (tokens > large and (message.role == "user" or bool(message.tool_calls)))

    context = _shorten(context, is_bulky)
    context = _squeeze_summary(context, max(_SMALLEST_SUMMARY_TOKENS, context.goal.ceiling_tokens // 3))
    return _squeeze_summary(_shorten(context, lambda message, tokens: True), _SMALLEST_SUMMARY_TOKENS)


def _shorten(context: PlanningContext, may_cut: Callable[[Message, int], bool]) -> PlanningContext:
    """Cut messages that are too large; pinned ones and what a strategy already deals with are left alone."""
    excess = context.total_tokens() - context.goal.ceiling_tokens
    if excess <= 0:
        return context
    standing = [index for index, message in enumerate(context.messages) if _stands(context.plan, message)]
    candidates = [
        Candidate(context.messages[index], context.tokens[index], context.weight(index))
        for index in standing
        if index not in context.layers.pinned and may_cut(context.messages[index], context.tokens[index])
    ]
    shortener = Shortener([context.messages[index] for index in standing], context.count_message)
    return _apply(context, [CompactionProposal(record) for record in shortener.shorten(candidates, excess)])


def _stands(plan: CompactionPlan, message: Message) -> bool:
    """True if a message stands in the prompt in its own words, whole or cut."""
    record = plan.get_action(message.id)[1]
    return record is None or record.strategy == SHORTEN


def _squeeze_summary(context: PlanningContext, least_tokens: int) -> PlanningContext:
    """Let a summary that is still to be written give way, down to a size."""
    summary, excess = context.plan.summary, context.total_tokens() - context.goal.ceiling_tokens
    if excess <= 0 or summary is None or summary.summary is not None:
        return context
    room = min(summary.max_tokens, max(least_tokens, summary.max_tokens - excess))
    smaller = replace(summary, max_tokens=room, tokens_after=room)
    return replace(context, plan=context.plan.adding(smaller))


def _parts(context: PlanningContext) -> dict[str, int]:
    """The tokens of each layer of a prompt that is still too large."""
    summary = context.plan.summary
    layers = context.layers
    return {
        "pinned": sum(map(context.weight, layers.pinned)),
        "summary": summary.tokens_after if summary else 0,
        "recent dialogue": sum(map(context.weight, layers.recent)),
        "recent tool pairs": sum(map(context.weight, layers.tool_io)),
        "remainder": sum(map(context.weight, layers.remainder)),
    }
