"""Run the strategies, cheapest first, until the goal is met; then keep fewer recent messages, one by one.

Planning never waits: a summary that is not written yet weighs the most it may weigh.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from compact.core.errors import InsufficientBudget
from compact.core.facts.constraints import ConstraintFinder, NoConstraints
from compact.core.log.attachment_use import messages_in_use, repeated_attachments
from compact.core.log.attachments import attachments_of
from compact.core.log.groups import Group
from compact.core.log.legality import repair_chat
from compact.core.log.messages import Message, Slot
from compact.core.log.structure import HistoryStructure
from compact.core.plan.economics import Economics
from compact.core.plan.layers import KeepRules, Layers, partition
from compact.core.plan.parts import PromptPart, in_order, part_of
from compact.core.plan.plan import (
    ClearRecord,
    CompactionPlan,
    DropRecord,
    ExternalizationRecord,
    Record,
    SpanReference,
    SummarizationRecord,
)
from compact.core.plan.renderer import summary_message
from compact.core.plan.shortening import SHORTEN, SMALLEST_TOKENS, Candidate, Shortener
from compact.core.plan.strategy import (
    CLEAR,
    MIN_SUMMARY_TOKENS,
    SUMMARIZE,
    CompactionProposal,
    CompactionStrategy,
    Goal,
    PlanningContext,
)
from compact.core.plan.stubs import ATTACHMENTS, attachments_record, render_cleared, render_externalized
from compact.core.plan.turn import TurnContext
from compact.core.short_repr import short_repr
from compact.core.summary.fitting import cut_to
from compact.core.summary.focus import ABOUT_SHARE, message_shares
from compact.core.summary.summary import StructuredSummary

# Chosen: below this size the frame of a tool exchange, or a line for what was left out, costs more than it says.
_SMALL_PROMPT_TOKENS = 2000
# Chosen: room below the target that is worth filling, and how much of what was cleared is read to fill it.
_MIN_SPARE_TOKENS = 100
_MIN_SPARE_SHARE = 0.05
_REFILL_CHOICE = 8
# Chosen: a message above this share of the ceiling is cut before the others.
_LARGE_SHARE = 0.25
# Chosen: what is left of an older message before the newest is cut: its stub, and a few words.
_NEARLY_NOTHING_TOKENS = 16
# Chosen: the most that attachments in use may take of the ceiling together; and from which share of the target on the
# rest is not made smaller for them.
_ATTACHED_SHARE = 0.75
_HEAVY_SHARE = 0.5
# Chosen: the most tokens that a repair adds to a message it changes.
_REPAIR_TOKENS = 16
# The name under which a plan says what was left out because nothing smaller could stand for it.
LAST_RESORT = "last_resort"
NO_ROOM_AT_ALL = "there is no room beside what is pinned and newest"
# Why attachments were moved; the last is told to whoever operates the agent.
_NOT_IN_USE, _SENT_AGAIN, NO_ROOM = "not in use any more", "sent again later", "in use, but there is no room for it"


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
        structure = structure or HistoryStructure(messages)
        groups, places = structure.groups, structure.places
        if structure.attached:
            rules = self._with_attached(messages, plan, tokens, rules, goal)
        goal = _beside_attachments(goal, sum(tokens[places[i]] for i in rules.attached if i in places))
        start = PlanningContext(
            messages=messages,
            tokens=tokens,
            groups=groups,
            group_numbers=structure.group_numbers,
            turns=structure.turns,
            answered=structure.answered,
            layers=partition(messages, groups, rules),
            places=places,
            attached=structure.attached,
            outside=_outside(messages, plan),
            plan=replace(plan, shows_gaps=goal.settle_tokens >= _SMALL_PROMPT_TOKENS, lines=None),
            goal=goal,
            count_message=count_message,
            turn_order=structure.turn_order,
            turn=turn or TurnContext(),
            prefetched=prefetched,
            focus_shares=message_shares(goal.focus, messages) if goal.focus else (),
            repairs={} if structure.is_legal else _repairs(messages, count_message),
        )
        before = start.total_tokens()
        start = replace(start, plan=_without_last_resort(start.plan))
        context, kept, failures, counts = start, rules, list[StrategyFailure](), list[ProposalCount]()
        for kept in _reductions(rules, goal):
            layers = within_part(partition(messages, groups, kept), groups, goal.part)
            context, failures, counts = self._run_strategies(replace(start, layers=layers))
            if context.total_tokens() <= goal.settle_tokens:
                break
        if goal.part is PromptPart.DIALOGUE:
            context = self._trim_dialogue(replace(context, layers=partition(messages, groups, rules)), rules)
        context = self._squeeze(context)
        if goal.may_drop:
            context = _with_last_resort(context)
        if goal.part is None:
            context = self._refill(context, plan)
        after = context.total_tokens()
        if after > goal.ceiling_tokens:
            budget = goal.ceiling_tokens + sum(goal.fixed.values())
            raise InsufficientBudget(budget_tokens=budget, parts=_parts(context, rules))
        return CompactionResult(
            plan=context.plan,
            layers=context.layers,
            rules=kept,
            tokens_before=before,
            tokens_after=after,
            proposals=_new_records(plan, context.plan),
            failures=tuple(failures),
            counts=tuple(counts),
            line_tokens=context.line_tokens(),
        )

    def _with_attached(
        self,
        messages: Sequence[Message],
        plan: CompactionPlan,
        tokens: Sequence[int],
        rules: KeepRules,
        goal: Goal,
    ) -> KeepRules:
        """Return the rules with the attachments that are in use; the oldest give way where they take too much."""
        asked = ((constraint.source_id, constraint.text) for constraint in self.constraints.standing(messages))
        used = messages_in_use(messages, recent_turns=rules.attachment_turns, instructions=asked)
        weights = {message.id: weight for message, weight in zip(messages, tokens, strict=True)}
        room, kept = int(_ATTACHED_SHARE * goal.ceiling_tokens), set[str]()
        for message_id in reversed(used):
            room -= weights[message_id]
            if plan.get_action(message_id)[1] is not None:
                continue
            if room < 0 and kept:
                break
            kept.add(message_id)
        return replace(rules, attached=frozenset(kept))

    def _run_strategies(
        self, context: PlanningContext
    ) -> tuple[PlanningContext, list[StrategyFailure], list[ProposalCount]]:
        context = _without_attachments(context)
        total, failures, counts = context.total_tokens(), list[StrategyFailure](), list[ProposalCount]()
        for strategy in self.strategies:
            if not _is_wanted(strategy.name, total, context.goal):
                continue
            try:
                accepted, rejected = self._accept(strategy, context, total - context.goal.target_tokens)
            except Exception as error:  # noqa: BLE001 - a plug-in that fails is left out; the turn goes on
                failures.append(StrategyFailure(strategy.name, error))
                continue
            context = _apply(context, accepted)
            freed = sum(proposal.record.tokens_freed for proposal in accepted)
            counts.append(ProposalCount(strategy.name, len(accepted), rejected, freed))
            total -= freed
        return context, failures, counts

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

    def _squeeze(self, context: PlanningContext) -> PlanningContext:
        """Cut what is too large, older messages before the newest; results first, then the summary, then the rest.

        A message that takes more than a large share of the prompt is cut down to that share before any other, unless
        cutting the older ones is enough. A newest call and its result are cut down to it before what was said: what a
        tool printed can be had again, the options that a user has just chosen from cannot.
        """
        large, newest = int(_LARGE_SHARE * context.goal.ceiling_tokens), _newest(context)

        def is_older(message: Message, tokens: int) -> bool:
            return context.places[message.id] not in newest

        def is_bulky(message: Message, tokens: int) -> bool:
            is_large = tokens > large and (message.role == "user" or bool(message.tool_calls))
            return message.role == "tool" or (is_large and not _shows_attachments(start, message))

        def is_older_bulky(message: Message, tokens: int) -> bool:
            return is_older(message, tokens) and is_bulky(message, tokens)

        def is_older_found(message: Message, tokens: int) -> bool:
            return is_older(message, tokens) and message.role != "user"

        def is_exchange(message: Message, tokens: int) -> bool:
            return message.role == "tool" or bool(message.tool_calls)

        start = context = _with_bare_stubs(context)
        older = self._cut_large(self._shorten(context, is_older_bulky), is_exchange, large)
        older = self._shorten(older, is_older)
        if older.total_tokens() <= context.goal.ceiling_tokens:
            return older
        context = self._shorten(self._cut_large(context, is_bulky, large), is_older_bulky)
        context = _squeeze_summary(context, max(MIN_SUMMARY_TOKENS, context.goal.ceiling_tokens // 3))
        context = _with_attachments_that_fit(context)
        context = self._shorten(context, is_older)
        shorter = self._shorten(context, is_older_found, least_tokens=_NEARLY_NOTHING_TOKENS)
        if shorter.total_tokens() <= context.goal.ceiling_tokens:
            return shorter
        for may_cut in (is_bulky, _anything):
            context = self._shorten(context, may_cut)
        return _squeeze_summary(context, MIN_SUMMARY_TOKENS)

    def _cut_large(
        self, context: PlanningContext, is_bulky: Callable[[Message, int], bool], large_tokens: int
    ) -> PlanningContext:
        """Cut what takes more than so many tokens, but no further than down to these."""
        above = {
            context.messages[index].id: weight - large_tokens
            for index in context.shown
            if (weight := context.weight(index)) > large_tokens
            and is_bulky(context.messages[index], context.tokens[index])
        }
        excess = min(context.total_tokens() - context.goal.ceiling_tokens, sum(above.values()))
        return self._cut(context, excess, lambda message, _: message.id in above)

    def _refill(self, context: PlanningContext, before: CompactionPlan) -> PlanningContext:
        """Keep more of what was cleared now, the newest first, where more was cleared than the target demands."""
        spare = min(context.goal.target_tokens, context.goal.ceiling_tokens) - context.total_tokens()
        if spare < max(_MIN_SPARE_TOKENS, _MIN_SPARE_SHARE * context.goal.target_tokens):
            return context
        cleared = _newly_cleared(context, before, _REFILL_CHOICE * spare)
        if not cleared:
            return context
        shown = (context.messages[index] for index in context.shown)
        around = [message for message in shown if message.id in cleared or _stands(context.plan, message)]
        candidates = [
            Candidate(message, context.tokens[context.places[message.id]], cleared[message.id].tokens_after)
            for message in around
            if message.id in cleared
        ]
        shortener = Shortener(around, context.count_message, self.constraints)
        longer = shortener.lengthen(candidates, cleared, spare)
        return _apply(context, [CompactionProposal(record) for record in longer])

    def _trim_dialogue(self, context: PlanningContext, rules: KeepRules) -> PlanningContext:
        """Cut what was said, and the arguments of calls, until the dialogue is as small as its cap wants it.

        What no summary could take in is left for this: the words and arguments of calls whose results stay.
        """
        tokens = 0
        for index, message in enumerate(context.messages):
            record = context.plan.get_action(message.id)[1]
            if part_of(message, record, rules) is PromptPart.DIALOGUE:
                tokens += context.weight(index)
        old = {context.messages[index].id for index in context.layers.remainder}
        return self._cut(
            context, tokens - context.goal.part_tokens, lambda message, _: message.id in old and message.role != "tool"
        )

    def _shorten(
        self, context: PlanningContext, may_cut: Callable[[Message, int], bool], least_tokens: int = SMALLEST_TOKENS
    ) -> PlanningContext:
        """Cut messages until the prompt fits its ceiling, each down to so many tokens."""
        return self._cut(context, context.total_tokens() - context.goal.ceiling_tokens, may_cut, least_tokens)

    def _cut(
        self,
        context: PlanningContext,
        excess: int,
        may_cut: Callable[[Message, int], bool],
        least_tokens: int = SMALLEST_TOKENS,
    ) -> PlanningContext:
        """Cut messages that are too large; pinned ones and what a strategy already deals with are left alone."""
        if excess <= 0:
            return context
        standing = [index for index in context.shown if _stands(context.plan, context.messages[index])]
        candidates = [
            _candidate(context, index)
            for index in standing
            if index not in context.layers.pinned and may_cut(context.messages[index], context.tokens[index])
        ]
        shortener = Shortener([context.messages[index] for index in standing], context.count_message, self.constraints)
        records = (_beside_pointers(context, record) for record in shortener.shorten(candidates, excess, least_tokens))
        return _apply(context, [CompactionProposal(record) for record in records])


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


def _outside(messages: Sequence[Message], plan: CompactionPlan) -> tuple[int, ...]:
    """Return the places of the messages that the summary in force does not stand for: few of a long history."""
    inside = plan.summarized_ids()
    return tuple(index for index, message in enumerate(messages) if message.id not in inside)


def _new_records(before: CompactionPlan, after: CompactionPlan) -> dict[str, int]:
    """Return how many records each strategy has added; those that a later one overruled are not in the plan."""
    standing = {id(record) for record in before.records}
    return dict(Counter(record.strategy for record in after.records if id(record) not in standing))


def _apply(context: PlanningContext, proposals: Sequence[CompactionProposal]) -> PlanningContext:
    plan = context.plan
    for proposal in proposals:
        if isinstance(proposal.record, SummarizationRecord):
            # What the summary takes in is named in it, attachments that were too small to be moved included.
            taken_in = [one for one in _attached_messages(context) if one.id in proposal.record.span.ids]
            plan = plan.adding(*_moved(context, taken_in, _NOT_IN_USE))
            plan = plan.summarizing(proposal.record, proposal.pinned)
    others = [p.record for p in proposals if not isinstance(p.record, SummarizationRecord)]
    return replace(context, plan=plan.adding(*others) if others else plan)


def _newly_cleared(context: PlanningContext, before: CompactionPlan, max_tokens: int) -> dict[str, ClearRecord]:
    """Return what this compaction has cleared, the newest first, up to so many tokens in full."""
    standing = {id(record) for record in before.records}
    found: dict[str, ClearRecord] = {}
    for index in reversed(context.shown):
        record = context.plan.get_action(context.messages[index].id)[1]
        if isinstance(record, ClearRecord) and record.strategy == CLEAR and id(record) not in standing:
            found[record.span.first] = record
            max_tokens -= context.tokens[index]
            if max_tokens <= 0:
                break
    return found


def _stands(plan: CompactionPlan, message: Message) -> bool:
    """Return True if a message stands in the prompt in its own words, whole or cut."""
    record = plan.get_action(message.id)[1]
    return record is None or record.strategy in (SHORTEN, ATTACHMENTS)


# -- attachments ------------------------------------------------------------------------------------------------------


def _beside_attachments(goal: Goal, attached_tokens: int) -> Goal:
    """Return the goal for a prompt with large attachments in use: what is beside them has its usual share of the rest.

    Otherwise everything else would be given up for a document, although there is room for both.
    """
    ceiling = goal.ceiling_tokens
    if goal.is_exact or goal.part or ceiling <= 0 or attached_tokens <= _HEAVY_SHARE * goal.target_tokens:
        return goal

    def beside(tokens: int) -> int:
        return max(tokens, attached_tokens + (ceiling - attached_tokens) * tokens // ceiling)

    if attached_tokens >= ceiling:
        return goal
    return replace(goal, target_tokens=beside(goal.target_tokens), settle_tokens=beside(goal.settle_tokens))


def _attached_messages(context: PlanningContext) -> list[Message]:
    return [context.messages[index] for index in context.attached]


def _moved(context: PlanningContext, messages: Iterable[Message], reason: str) -> list[ExternalizationRecord]:
    """Return records that move the attachments of users' messages that are still in the prompt."""
    records = [
        attachments_record(message, context.plan.session_id, reason=reason)
        for message in messages
        if message.role == "user" and attachments_of(message) and context.plan.get_action(message.id)[1] is None
    ]
    return [record for record in map(context.weigh, records) if isinstance(record, ExternalizationRecord)]


def _without_attachments(context: PlanningContext) -> PlanningContext:
    """Move attachments that are not in use: of messages that may leave, and those that were sent again later."""
    again, layers = repeated_attachments(_attached_messages(context)), context.layers
    attached = [(index, context.messages[index]) for index in context.attached]
    free = [message for index, message in attached if index in layers.remainder and message.id not in again]
    repeated = [message for index, message in attached if message.id in again and index not in layers.pinned]
    moved = (*_moved(context, repeated, _SENT_AGAIN), *_moved(context, free, _NOT_IN_USE))
    return _apply(context, [CompactionProposal(record) for record in moved if record.tokens_freed > 0])


def _with_attachments_that_fit(context: PlanningContext) -> PlanningContext:
    """Move attachments that are in use, the oldest first, until the prompt fits its ceiling."""
    excess = context.total_tokens() - context.goal.ceiling_tokens
    moved: list[CompactionProposal] = []
    free = (index for index in context.attached if index not in context.layers.pinned)
    standing = [context.messages[index] for index in free] if excess > 0 else ()
    for record in _moved(context, standing, NO_ROOM):
        if excess > 0 and record.tokens_freed > 0:
            excess -= record.tokens_freed
            moved.append(CompactionProposal(record))
    return _apply(context, moved)


def _shows_attachments(context: PlanningContext, message: Message) -> bool:
    """Return True for a message of a user whose attachments are in the prompt."""
    is_whole = context.plan.get_action(message.id)[1] is None
    return is_whole and message.role == "user" and bool(attachments_of(message))


def _pointers(context: PlanningContext, message: Message) -> ExternalizationRecord | None:
    """Return the record with the pointers that stand, or would stand, for the attachments of a user's message."""
    if message.role != "user" or not attachments_of(message):
        return None
    record = context.plan.get_action(message.id)[1]
    if isinstance(record, ExternalizationRecord):
        return record
    fresh = attachments_record(message, context.plan.session_id, reason=NO_ROOM)
    return replace(fresh, tokens_before=context.tokens[context.places[message.id]])


def _candidate(context: PlanningContext, index: int) -> Candidate:
    """Return a message that may be cut; of one with attachments only the text, since pointers stay for the others."""
    message, weight = context.messages[index], context.weight(index)
    record = _pointers(context, message)
    if record is None:
        return Candidate(message, context.tokens[index], weight)
    text = replace(message, content=message.text)
    pointers = context.count_message(render_externalized(replace(message, content=""), replace(record, kept=None)))
    return Candidate(text, context.count_message(text), max(0, weight - pointers))


def _beside_pointers(context: PlanningContext, record: ClearRecord) -> ClearRecord | ExternalizationRecord:
    """Return the record of a message that was cut; one with attachments has pointers beside what stays of its text."""
    message = context.messages[context.places[record.span.first]]
    standing = _pointers(context, message)
    if standing is None:
        return record
    cut = replace(standing, kept=record.kept)
    return replace(cut, tokens_after=context.count_message(render_externalized(message, cut)))


def _with_bare_stubs(context: PlanningContext) -> PlanningContext:
    """Keep nothing of results that were cleared or moved, the oldest first, until the prompt fits its ceiling."""
    excess = context.total_tokens() - context.goal.ceiling_tokens
    bare: list[CompactionProposal] = []
    for index in context.shown if excess > 0 else ():
        record = context.plan.get_action(context.messages[index].id)[1]
        stub = _bare(context, record) if excess > 0 else None
        if record and stub:
            excess -= record.tokens_after - stub.tokens_after
            bare.append(CompactionProposal(stub))
    return _apply(context, bare)


def _bare(context: PlanningContext, record: Record | None) -> Record | None:
    """Return the record of a result that keeps nothing of it; None if it keeps nothing already.

    Its stub says what the result took, so it is counted with that, not with what stands for the result now.
    """
    if isinstance(record, ClearRecord) and record.strategy == CLEAR and record.kept:
        message, bare = context.messages[context.places[record.span.first]], replace(record, kept=())
        return replace(bare, tokens_after=context.count_message(render_cleared(message, bare)))
    if isinstance(record, ExternalizationRecord) and record.preview:
        message, moved = context.messages[context.places[record.span.first]], replace(record, preview="")
        return replace(moved, tokens_after=context.count_message(render_externalized(message, moved)))
    return None


def _squeeze_summary(context: PlanningContext, least_tokens: int) -> PlanningContext:
    """Let the summary give way, down to a size."""
    summary, excess = context.plan.summary, context.total_tokens() - context.goal.ceiling_tokens
    if excess <= 0 or summary is None:
        return context
    room = min(summary.tokens_after, max(least_tokens, summary.tokens_after - excess))
    if summary.summary is None:
        smaller = replace(summary, max_tokens=room, tokens_after=room)
    else:
        smaller = _shorter_summary(context, summary, summary.summary, room)
    return replace(context, plan=context.plan.adding(smaller))


def _shorter_summary(
    context: PlanningContext, record: SummarizationRecord, written: StructuredSummary, max_tokens: int
) -> SummarizationRecord:
    """Return a summary that is written already, cut to the room there is; the next version of it if it is shorter."""

    def tokens(summary: StructuredSummary) -> int:
        return context.count_message(summary_message(replace(record, summary=summary, version=record.version + 1)))

    cut = cut_to(written, lambda candidate: tokens(candidate) <= max_tokens)
    if tokens(cut) >= record.tokens_after:
        return record
    version = record.version + 1
    return replace(record, summary=cut, version=version, max_tokens=max_tokens, tokens_after=tokens(cut))


# -- what is left where next to nothing fits ---------------------------------------------------------------------------


def _newest(context: PlanningContext) -> set[int]:
    """Return what is cut last: the newest message, with its call and the other results of that, and what is asked."""
    newest = {*_last_group(context)}
    asked = next((i for i in range(len(context.messages) - 1, -1, -1) if context.messages[i].role == "user"), None)
    return newest if asked is None else newest | {asked}


def _last_group(context: PlanningContext) -> tuple[int, ...]:
    """Return the places of the newest message, its call and the other results of that."""
    last = len(context.messages) - 1
    return next((group.indices for group in reversed(context.groups) if last in group.indices), ())


def _with_last_resort(context: PlanningContext) -> PlanningContext:
    """Leave out what cannot be made smaller until the prompt fits: in the end all but what is pinned and the newest.

    The oldest goes first, then the summary; then the newest messages are cut to bare stubs, and at last what was asked
    goes, if that is not the newest message itself, or the newest that is shown.
    """
    if not context.messages or _fits(context):
        return context
    newest, shown = _newest(context), {*context.shown}
    stays = newest | context.layers.pinned
    older = deque(g.indices for g in context.groups if shown.issuperset(g.indices) and stays.isdisjoint(g.indices))
    while older and (excess := context.total_tokens() - context.goal.ceiling_tokens) > 0:
        gone: list[int] = []
        while older and excess > 0:
            gone += older[0]
            excess -= sum(context.weight(i) + context.repairs.get(i, 0) for i in older.popleft())
        context = _dropping(context, gone)
    if not _fits(context) and context.plan.summary:
        context = _dropping(context, [context.places[i] for i in context.plan.summary.span])
    for index in sorted(newest & shown - context.layers.pinned):
        context = context if _fits(context) else _with_bare_stub(context, index)
    last = _last_group(context)
    asked = newest & shown - context.layers.pinned - {*last}
    if _fits(context) or not asked or shown.isdisjoint(last):
        return context
    return _dropping(context, sorted(asked))


def _fits(context: PlanningContext) -> bool:
    return context.total_tokens() <= context.goal.ceiling_tokens


def _dropping(context: PlanningContext, indices: Iterable[int]) -> PlanningContext:
    """Return the context with more messages left out: one record names all that are, the oldest first."""
    standing = [record for record in context.plan.drops if record.strategy == LAST_RESORT]
    places = {context.places[i] for record in standing for i in record.span} | {*indices}
    span = SpanReference(tuple(context.messages[place].id for place in sorted(places)))
    weighed = context.weigh(DropRecord(span=span, strategy=LAST_RESORT, reason=NO_ROOM_AT_ALL))
    freed = sum(record.tokens_before for record in standing)
    plan = context.plan.adding(replace(weighed, tokens_before=weighed.tokens_before + freed))
    # Nothing stands before a summary that is gone.
    return replace(context, plan=plan if plan.summary else replace(plan, pinned=()))


def _with_bare_stub(context: PlanningContext, index: int) -> PlanningContext:
    """Return the context with a message in its shortest form, if that is shorter."""
    message = context.messages[index]
    candidate = _candidate(context, index)
    record = ClearRecord(
        span=SpanReference((message.id,)),
        strategy=SHORTEN,
        reason="too large",
        tokens_before=candidate.tokens,
        kept_arguments=() if message.tool_calls else None,
    )
    bare = _beside_pointers(context, record)
    if isinstance(bare, ClearRecord):
        bare = replace(bare, tokens_after=context.count_message(render_cleared(message, bare)))
    is_shorter = bare.tokens_after < context.weight(index)
    return replace(context, plan=context.plan.adding(bare)) if is_shorter else context


def _without_last_resort(plan: CompactionPlan) -> CompactionPlan:
    """Return a plan without what it left out for want of room: there may be some now."""
    records = tuple(record for record in plan.records if record.strategy != LAST_RESORT)
    return plan if len(records) == len(plan.records) else replace(plan, records=records)


def _repairs(messages: Sequence[Message], count_message: Callable[[Message], int]) -> dict[int, int]:
    """Return what it costs beside each message to make a history legal: changes to it, and results that are missing."""
    slots = [Slot(message, (message.id,)) for message in messages]
    repaired, repairs = repair_chat(slots)
    if not repairs:
        return {}
    places = {message.id: index for index, message in enumerate(messages)}
    tokens: Counter[int] = Counter()
    for repair in repairs:
        tokens[places[repair.message_id]] += _REPAIR_TOKENS
    caller = 0
    for slot in repaired:
        if slot.ids and slot.message.role != "tool":
            caller = places[slot.ids[0]]
        elif not slot.ids:
            tokens[caller] += count_message(slot.message)
    return dict(tokens)


def _anything(message: Message, tokens: int) -> bool:
    return True


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
