"""Run the strategies, cheapest first, until the goal is met; then keep fewer recent messages, one by one.

Planning never waits: a summary that is not written yet weighs the most it may weigh.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from compact.core.errors import InsufficientBudget
from compact.core.facts.constraints import ConstraintFinder, NoConstraints
from compact.core.messages.groups import Group
from compact.core.messages.legality import repair_chat
from compact.core.messages.message import Message, Slot
from compact.core.messages.structure import HistoryStructure
from compact.core.plan.economics import Economics
from compact.core.plan.layers import KeepRules, Layers, partition
from compact.core.plan.line_index import LineIndex
from compact.core.plan.parts import PromptPart, in_order, part_of
from compact.core.plan.plan import (
    CompactionPlan,
    SummarizationRecord,
)
from compact.core.plan.strategy import (
    SUMMARIZE,
    CompactionProposal,
    CompactionStrategy,
    Goal,
    PlanningContext,
)
from compact.core.plan.turn import TurnContext
from compact.core.planning.attachment_moves import beside_attachments, keep_attached, taking, without_attachments
from compact.core.planning.last_resort import with_last_resort, without_last_resort
from compact.core.planning.squeeze import Squeezer
from compact.core.short_repr import short_repr
from compact.core.summary.focus import ABOUT_SHARE, message_shares

# Chosen: below this size the frame of a tool exchange, or a line for what was left out, costs more than it says.
_SMALL_PROMPT_TOKENS = 2000
# Chosen: the most tokens that a repair adds to a message it changes.
_REPAIR_TOKENS = 16


@dataclass(frozen=True, slots=True)
class StrategyFailure:
    """A strategy that raised, and was left out."""

    strategy: str
    error: Exception


@dataclass(frozen=True, slots=True)
class ProposalCount:
    """What became of one strategy's proposals."""

    strategy: str
    accepted: int = 0
    rejected: int = 0
    tokens_freed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionResult:
    """The next plan, and how it came about.

    `manager.plan(session_id, messages)` returns one, without putting it in force.

    Attributes:
        plan: The plan.
        layers: Which messages are pinned, recent, or left over for strategies.
        rules: What was kept verbatim in the end; less than the settings ask for, if that did not fit.
        tokens_before: The size of the prompt before it.
        tokens_after: The size of the prompt with it.
        proposals: The new records of each strategy, counted.
        failures: The strategies that raised and were left out.
        counts: What became of each strategy's proposals.
        reason: Why there was something to do, or nothing.
        economics: What it costs, what it saves, and when that is paid back; None if nothing changes.
        line_tokens: The tokens of lines between turns, where a whole turn was left out.

    Example:
        >>> from compact import CompactConfig, CompactManager
        >>> from compact.testing import tool_run
        >>> manager = CompactManager(CompactConfig(max_context_tokens=8_000))
        >>> result = manager.plan("chat-1", tool_run(60, words=200))
        >>> result.tokens_freed > 0, sorted(result.proposals)
        (True, ['clear', 'summarize'])
    """

    plan: CompactionPlan
    layers: Layers
    rules: KeepRules
    tokens_before: int
    tokens_after: int
    proposals: Mapping[str, int]
    failures: tuple[StrategyFailure, ...] = ()
    counts: tuple[ProposalCount, ...] = ()
    reason: str = ""
    economics: Economics | None = None
    line_tokens: int = 0
    __repr__ = short_repr

    @property
    def tokens_freed(self) -> int:
        """How much smaller the prompt gets."""
        return self.tokens_before - self.tokens_after

    @property
    def pending_summary(self) -> SummarizationRecord | None:
        """The summary that is still to be written."""
        summary = self.plan.summary
        return summary if summary and summary.summary is None else None


@dataclass(frozen=True, slots=True)
class _Proposed:
    """What the strategies made of a prompt, with the rules by which messages were kept."""

    context: PlanningContext
    rules: KeepRules
    failures: Sequence[StrategyFailure] = ()
    counts: Sequence[ProposalCount] = ()


class CompactionCoordinator:
    """Runs strategies in the order given, each until the target is met: planning without a manager or a store.

    Args:
        strategies: The strategies, cheapest first.
        constraints: Finds what users asked to hold: where a message has to be cut, that stays.
        max_proposals_per_run: The most proposals that are taken of one strategy.

    Example:
        >>> from compact import CompactionCoordinator, CompactionPlan
        >>> from compact.core.plan.layers import KeepRules
        >>> from compact.core.plan.strategy import Goal
        >>> from compact.strategies import ClearStrategy
        >>> from compact.testing import WordTokenizer, as_log, tool_run
        >>> log, count = as_log(tool_run(10, words=500)), WordTokenizer().count_message
        >>> coordinator = CompactionCoordinator([ClearStrategy()])
        >>> result = coordinator.coordinate(
        ...     log,
        ...     CompactionPlan("chat-1"),
        ...     tokens=[count(message) for message in log],
        ...     count_message=count,
        ...     rules=KeepRules(tool_io_pairs=2),
        ...     goal=Goal(target_tokens=2_000, settle_tokens=2_500, ceiling_tokens=4_000),
        ... )
        >>> result.proposals, result.tokens_after <= 2_000
        ({'clear': 7}, True)
    """

    def __init__(
        self,
        strategies: Sequence[CompactionStrategy],
        *,
        constraints: ConstraintFinder | None = None,
        max_proposals_per_run: int = 100_000,
    ) -> None:
        self.strategies = tuple(strategies)
        self.constraints = constraints or NoConstraints()
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
        prefetched: SummarizationRecord | None = None,
        structure: HistoryStructure | None = None,
        index: LineIndex | None = None,
        constraints: ConstraintFinder | None = None,
    ) -> CompactionResult:
        """Make the next plan: strategies first, then fewer kept messages, then cuts in what is too large.

        Args:
            messages: The log, each entry with an id of its own.
            plan: The plan in force; `CompactionPlan(session_id)` if there is none.
            tokens: The tokens of each message.
            count_message: Counts the tokens of a message, such as a stub.
            rules: Which messages are kept verbatim.
            goal: How far to go, in tokens.
            turn: What was shown again in this turn.
            prefetched: A summary that was written before it is needed.
            structure: How `messages` are built, if that is known.
            index: Which of `messages` have marks, if that is known.
            constraints: The coordinator's finder, if it has read some of `messages` already.

        Raises:
            InsufficientBudget: What must stay takes more than `goal.ceiling_tokens`.

        Example:
            >>> again = coordinator.coordinate(
            ...     log,
            ...     result.plan,
            ...     tokens=[count(message) for message in log],
            ...     count_message=count,
            ...     rules=KeepRules(tool_io_pairs=2),
            ...     goal=Goal(target_tokens=2_000, settle_tokens=2_500, ceiling_tokens=4_000),
            ... )
            >>> again.tokens_freed
            0
        """
        structure, constraints = structure or HistoryStructure(messages), constraints or self.constraints
        groups, places = structure.groups, structure.places
        if structure.attached:
            rules = keep_attached(messages, plan, tokens, rules, goal, constraints)
        may_pin = (index or LineIndex(messages)).may_pin(rules.pinned_roles)
        goal = beside_attachments(goal, sum(tokens[places[i]] for i in rules.attached if i in places))
        start = PlanningContext(
            messages=messages,
            tokens=tokens,
            groups=groups,
            group_numbers=structure.group_numbers,
            turns=structure.turns,
            answered=structure.answered,
            layers=partition(messages, groups, rules, may_pin),
            places=places,
            attached=structure.attached,
            outside=plan.places_outside(structure),
            may_pin=may_pin,
            plan=replace(plan, shows_gaps=goal.settle_tokens >= _SMALL_PROMPT_TOKENS, lines=None),
            goal=goal,
            count_message=count_message,
            turn_order=structure.turn_order,
            turn=turn or TurnContext(),
            prefetched=prefetched,
            focus_shares=message_shares(goal.focus, messages) if goal.focus else (),
            repairs={} if structure.is_legal else _repairs(messages, count_message),
            constraints=constraints,
        )
        return self._coordinated(start, plan, rules)

    def _coordinated(self, start: PlanningContext, before: CompactionPlan, rules: KeepRules) -> CompactionResult:
        """Make the next plan of what is in force before it; raise if what must stay does not fit."""
        run = self._proposed(replace(start, plan=without_last_resort(start.plan)), rules)
        context = self._fitted(run.context, before, rules)
        after, goal = context.total_tokens(), context.goal
        if after > goal.ceiling_tokens:
            budget = goal.ceiling_tokens + sum(goal.fixed.values())
            raise InsufficientBudget(budget_tokens=budget, parts=_parts(context, rules))
        return CompactionResult(
            plan=context.plan,
            layers=context.layers,
            rules=run.rules,
            tokens_before=start.total_tokens(),
            tokens_after=after,
            proposals=_new_records(before, context.plan),
            failures=tuple(run.failures),
            counts=tuple(run.counts),
            line_tokens=context.line_tokens(),
        )

    def _proposed(self, start: PlanningContext, rules: KeepRules) -> _Proposed:
        """Run the strategies, and again with fewer kept messages, until what they leave is small enough."""
        run = _Proposed(start, rules)
        for kept in _reductions(rules, start.goal):
            is_first = kept is rules  # what the context has was made by them
            layers = start.layers if is_first else partition(start.messages, start.groups, kept, start.may_pin)
            layers = within_part(layers, start.groups, start.goal.part)
            run = self._run_strategies(replace(start, layers=layers), kept)
            if run.context.total_tokens() <= start.goal.settle_tokens:
                break
        return run

    def _fitted(self, context: PlanningContext, before: CompactionPlan, rules: KeepRules) -> PlanningContext:
        """Cut what is still too large for the ceiling, and fill up what is left below the target."""
        squeezer, goal = Squeezer(context.constraints), context.goal
        if goal.part is PromptPart.DIALOGUE:
            whole = replace(context, layers=partition(context.messages, context.groups, rules, context.may_pin))
            context = squeezer.trim_dialogue(whole, rules)
        context = squeezer.squeeze(context)
        if goal.may_drop:
            context = with_last_resort(context)
        return squeezer.refill(context, before) if goal.part is None else context

    def _run_strategies(self, context: PlanningContext, rules: KeepRules) -> _Proposed:
        context = without_attachments(context)
        total, failures, counts = context.total_tokens(), list[StrategyFailure](), list[ProposalCount]()
        for strategy in self.strategies:
            if not _is_wanted(strategy.name, total, context.goal):
                continue
            try:
                accepted, rejected = self._accept(strategy, context, total - context.goal.target_tokens)
            except Exception as error:  # noqa: BLE001 - a plug-in that fails is left out; the turn goes on
                failures.append(StrategyFailure(strategy.name, error))
                continue
            context = taking(context, accepted)
            freed = sum(proposal.record.tokens_freed for proposal in accepted)
            counts.append(ProposalCount(strategy.name, len(accepted), rejected, freed))
            total -= freed
        return _Proposed(context, rules, failures, counts)

    def _accept(
        self, strategy: CompactionStrategy, context: PlanningContext, tokens_to_free: int
    ) -> tuple[list[CompactionProposal], int]:
        """Take proposals, in the strategy's order, until enough is freed; how many were rejected: they free nothing."""
        accepted: list[CompactionProposal] = []
        rejected = 0
        for proposal in self._in_order(strategy, context):
            record = context.weigh(proposal.record)
            if record.tokens_freed <= 0:
                rejected += 1
                continue
            accepted.append(replace(proposal, record=record))
            tokens_to_free -= record.tokens_freed
            if tokens_to_free <= 0 or len(accepted) >= self.max_proposals_per_run:
                break
        return accepted, rejected

    def _in_order(self, strategy: CompactionStrategy, context: PlanningContext) -> Iterable[CompactionProposal]:
        """Return proposals in the strategy's order; with a focus, what is about it goes last.

        If there is a summary to come, what is about it does not go at all: the summary tells it better than a stub.
        """
        proposals = strategy.propose(context)
        if not context.focus_shares or strategy.name == SUMMARIZE:
            return proposals
        shares = [(context.focus_share(proposal.record.span), proposal) for proposal in proposals]
        is_summarized = SUMMARIZE not in context.goal.skip and any(s.name == SUMMARIZE for s in self.strategies)
        staying = ABOUT_SHARE if is_summarized else math.inf
        return [proposal for share, proposal in sorted(shares, key=lambda pair: pair[0]) if share < staying]


def within_part(layers: Layers, groups: Sequence[Group], part: PromptPart | None) -> Layers:
    """Return the layers with only one part of the prompt in the remainder: what is not of that part is kept."""
    if part is None:
        return layers
    tools = {index for group in groups if group.is_tool for index in group.indices}
    if part is PromptPart.TOOL_RESULTS:
        return replace(layers, remainder=layers.remainder & tools, recent=layers.recent | (layers.remainder - tools))
    return replace(layers, remainder=layers.remainder - tools, tool_io=layers.tool_io | (layers.remainder & tools))


def _reductions(rules: KeepRules, goal: Goal) -> Iterator[KeepRules]:
    """Yield ever smaller rules, down to what is asked and what was not read yet.

    Where a person asked for a very small prompt, not even that: there the frame of a tool exchange costs more than what
    it says, and the summary has the best of it. An agent that goes on has to see the result it is waiting for.
    """
    smallest = rules
    for smallest in rules.reductions():
        yield smallest
    smallest = replace(smallest, tool_io_pairs=0)
    yield smallest
    if goal.is_exact and goal.settle_tokens < _SMALL_PROMPT_TOKENS:
        yield replace(smallest, unread_results=False)
        yield replace(smallest, unread_results=False, recent_turns=0)


def _is_wanted(strategy: str, total_tokens: int, goal: Goal) -> bool:
    return strategy not in goal.skip and (total_tokens > goal.target_tokens or strategy in goal.must_run)


def _new_records(before: CompactionPlan, after: CompactionPlan) -> dict[str, int]:
    """Return how many records each strategy has added; those that a later one overruled are not in the plan."""
    standing = {id(record) for record in before.records}
    return dict(Counter(record.strategy for record in after.records if id(record) not in standing))


def _repairs(messages: Sequence[Message], count_message: Callable[[Message], int]) -> dict[int, int]:
    """Return what it costs beside each message to make a history legal: changes to it, and results that are missing."""
    slots = [Slot(message, (message.id,)) for message in messages]
    repaired, repairs = repair_chat(slots)
    places = {message.id: index for index, message in enumerate(messages)}
    tokens: Counter[int] = Counter()
    for repair in repairs:
        tokens[places[repair.message_id]] += _REPAIR_TOKENS
    before = 0
    for slot in repaired:
        if slot.ids:
            before = places[slot.ids[0]]
        else:  # a placeholder, which stands behind its call and the other results of that
            tokens[before] += count_message(slot.message)
    return dict(tokens)


def _parts(context: PlanningContext, rules: KeepRules) -> dict[str, int]:
    """Return the tokens of each part of a prompt that is still too large."""
    tokens: Counter[PromptPart] = Counter(context.goal.fixed)
    for index, message in enumerate(context.messages):
        record = context.plan.get_action(message.id)[1]
        tokens[part_of(message, record, rules)] += context.weight(index)
    tokens[PromptPart.SUMMARY] += context.plan.summary.tokens_after if context.plan.summary else 0
    tokens[PromptPart.STUBS] += context.line_tokens()
    tokens[PromptPart.OVERHEAD] += context.repair_tokens()
    return in_order(tokens)
