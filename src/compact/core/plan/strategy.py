"""The socket for strategies: what one may look at, what it proposes, and how far a compaction goes.

Planning never waits: a summary that is not written yet weighs the most it may weigh.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import takewhile
from typing import Protocol

from compact.core.facts.constraints import ConstraintFinder, NoConstraints
from compact.core.facts.ledger import Fact, FactKind, Ledger
from compact.core.messages.groups import Group
from compact.core.messages.message import Message, ToolCall
from compact.core.messages.turn_order import LEFT_OUT, TurnOrder
from compact.core.plan.layers import Layers
from compact.core.plan.parts import PromptPart
from compact.core.plan.plan import (
    ClearRecord,
    CompactionAction,
    CompactionPlan,
    DropRecord,
    ExternalizationRecord,
    Record,
    SpanReference,
    SummarizationRecord,
)
from compact.core.plan.renderer import summary_message
from compact.core.plan.stubs import render_cleared, render_externalized
from compact.core.plan.turn import TurnContext
from compact.core.summary.summary import StructuredSummary

SUMMARIZE = "summarize"
CLEAR = "clear"
# Chosen: a shorter summary would say nothing.
MIN_SUMMARY_TOKENS = 40
# Chosen: the share of the ceiling that what users asked to hold may take in a summary before it is cut, too.
_MAX_CONSTRAINTS_SHARE = 1 / 3
# Where a summary stands, whatever it says.
_SUMMARY = Message("assistant", "", id="compact-summary")


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """How far to go, in estimated tokens of messages alone.

    Strategies run until `target_tokens`; fewer recent messages are kept until `settle_tokens`; beyond `ceiling_tokens`
    nothing may be sent. `summary_share` of the room is held free for a summary, which also gets what messages leave
    over. `must_run` names strategies that run even if the target is already met, `skip` those that do not run at all.
    `fixed` has the tokens of the parts that are sent beside the messages; errors name them. `is_exact` says that a
    caller named the tokens to come down to. `focus` is what a person wants kept first. Unless `may_drop`, what cannot
    be made smaller is an error, even where the prompt would fit without it.

    For a cap on one part of the prompt, `part` is the only one that may shrink, to `part_tokens`. A compaction that
    would free less than `min_freed_tokens` is not done.
    """

    target_tokens: int
    settle_tokens: int
    ceiling_tokens: int
    summary_share: float = 0.25  # chosen: the summary must not crowd out what is verbatim
    must_run: frozenset[str] = frozenset()
    skip: frozenset[str] = frozenset()
    fixed: Mapping[PromptPart, int] = field(default_factory=dict[PromptPart, int])
    part: PromptPart | None = None
    part_tokens: int = 0
    min_freed_tokens: int = 1
    is_exact: bool = False
    may_drop: bool = True
    focus: str = ""


@dataclass(frozen=True, slots=True)
class CompactionProposal:
    """A record that a strategy would like in the plan; the coordinator decides, and measures what it frees.

    Args:
        record: What is to be done with which messages.
        pinned: The messages to stand before the summary, if the record is one.

    Example:
        >>> from compact import CompactionProposal, SpanReference
        >>> from compact.core.plan.plan import DropRecord
        >>> record = DropRecord(span=SpanReference(("m4",)), strategy="drop_greetings", reason="says only hello")
        >>> CompactionProposal(record).record.reason
        'says only hello'
    """

    record: Record
    pinned: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class PlanningContext:
    """All that a strategy may look at; its `propose(context)` gets one.

    Attributes:
        messages: The log, the oldest first.
        tokens: The tokens of each message as it came.
        groups: The places of messages that stay or go together: a call and all its results.
        group_numbers: The number of each message's group.
        turns: The number of each message's turn.
        answered: The call that is answered at each place with a tool result.
        layers: The places that are pinned, recent, or left over: a strategy touches only `layers.remainder`.
        places: The place of each message id.
        attached: The places of messages with attachments.
        outside: The places of messages that the summary in force, if there is one, does not stand for.
        plan: The plan so far, with what earlier strategies proposed.
        goal: How far to go, in tokens.
        count_message: Counts the tokens of a message, such as a stub.
        turn_order: Where lines between turns would stand.
        turn: What was shown again in this turn.
        prefetched: A summary that was written before it is needed.
        focus_shares: With a focus, how much of it each message has.
        repairs: The tokens that a message costs beside its own because the history is not legal there.
        may_pin: The places of messages with marks, or of a role that is pinned.
        constraints: Finds what users asked to hold.

    Example:
        >>> from compact import CompactConfig, CompactManager
        >>> from compact.testing import tool_run
        >>> class Look:
        ...     name = "look"
        ...
        ...     def propose(self, context):
        ...         Look.context = context  # to show it here
        ...         return []  # or CompactionProposals
        >>> manager = CompactManager(CompactConfig(max_context_tokens=8_000), strategies=[Look()])
        >>> result = manager.plan("chat-1", tool_run(60, words=200))
        >>> context = Look.context
        >>> len(context.messages), len(context.layers.remainder)
        (121, 118)
    """

    messages: Sequence[Message]
    tokens: Sequence[int]
    groups: Sequence[Group]
    group_numbers: Sequence[int]
    turns: Sequence[int]
    answered: Mapping[int, ToolCall]
    layers: Layers
    places: Mapping[str, int]
    attached: Sequence[int]
    outside: Sequence[int]
    plan: CompactionPlan
    goal: Goal
    count_message: Callable[[Message], int]
    turn_order: TurnOrder
    turn: TurnContext = field(default_factory=TurnContext)
    prefetched: SummarizationRecord | None = None
    focus_shares: Sequence[float] = ()
    repairs: Mapping[int, int] = field(default_factory=dict[int, int])
    may_pin: Sequence[int] = ()
    constraints: ConstraintFinder = field(default_factory=NoConstraints)

    def focus_share(self, span: Iterable[str]) -> float:
        """Return how much of the focus the messages of a span have.

        Args:
            span: Ids of messages.

        Returns:
            The largest share among them, from 0 to 1; 0 without a focus.

        Example:
            >>> context.focus_share([context.messages[0].id])
            0.0
        """
        return max((self.focus_shares[self.places[one]] for one in span), default=0.0) if self.focus_shares else 0.0

    def weigh(self, record: Record) -> Record:
        """Return the record with its tokens filled in: what its messages take now, and what will stand for them.

        Strategies propose, the coordinator measures: a saving that is only claimed would end in a prompt too large.

        Args:
            record: A record of messages in `messages`.

        Example:
            >>> from compact import SpanReference
            >>> from compact.core.plan.plan import DropRecord
            >>> one = context.messages[2]
            >>> weighed = context.weigh(DropRecord(span=SpanReference((one.id,)), strategy="look", reason="an example"))
            >>> weighed.tokens_before == context.tokens[2], weighed.tokens_after
            (True, 0)
        """
        now = sum(map(self.weight, self._shown_of(record.span)))
        record = replace(record, tokens_before=now)
        message = self.messages[self.places[record.span.first]]
        match record:
            case ClearRecord():
                after = self.count_message(render_cleared(message, record))
            case ExternalizationRecord():
                after = self.count_message(render_externalized(message, record))
            case SummarizationRecord():
                standing = self.plan.summary
                record = replace(record, tokens_before=now + (standing.tokens_after if standing else 0))
                after = self.count_message(summary_message(record)) if record.summary else record.max_tokens
            case DropRecord():
                after = 0
        return replace(record, tokens_after=after)

    def constraint_tokens(self, record: SummarizationRecord) -> int:
        """Return what a summary takes that has nothing but what users asked to hold in the messages of its span.

        Args:
            record: A record of messages in `messages`; its own summary is not looked at.

        Returns:
            The tokens, no more than a third of the ceiling; 0 if its messages hold no constraint.

        Example:
            >>> from compact import SpanReference
            >>> from compact.core.plan.plan import SummarizationRecord
            >>> one = context.messages[2]
            >>> record = SummarizationRecord(span=SpanReference((one.id,)), strategy="look", reason="an example")
            >>> context.constraint_tokens(record)
            0
        """
        standing = [one for one in self.constraints.standing(self.messages) if one.source_id in record.span.ids]
        if not standing:
            return 0
        facts = tuple(Fact(FactKind.CONSTRAINT, one.text, source_ids=(one.source_id,)) for one in standing)
        held = replace(record, summary=StructuredSummary(ledger=Ledger(facts)))
        return min(self.count_message(summary_message(held)), int(_MAX_CONSTRAINTS_SHARE * self.goal.ceiling_tokens))

    def _shown_of(self, span: SpanReference) -> Iterable[int]:
        """Return those places of a span that have a weight: in a summary's there are thousands that do not."""
        if len(span) <= len(self.shown):
            return (self.places[message_id] for message_id in span)
        return (index for index in self.shown if self.messages[index].id in span.ids)

    @cached_property
    def shown(self) -> tuple[int, ...]:
        """The places of the messages that are in the prompt as planned so far: of a long history a small part.

        Example:
            >>> len(context.shown) == len(context.messages)
            True
        """
        return tuple(index for index in self.outside if self.plan.shows(self.messages[index].id))

    @property
    def shown_groups(self) -> Iterator[Group]:
        """The groups of which something is in the prompt as planned so far, in the order in which they begin.

        Example:
            >>> [group.indices for group in context.shown_groups][:2]
            [(0,), (1, 2)]
        """
        return (self.groups[number] for number in sorted({self.group_numbers[index] for index in self.shown}))

    @property
    def newest_results(self) -> Iterator[int]:
        """The places of tool results, the newest first, down to the oldest that is in the prompt as it came.

        What is older was dealt with before, and tells nothing about what is newer.

        Example:
            >>> list(context.newest_results)[:3]
            [120, 118, 116]
        """
        results = (index for index in self.shown if index in self.answered)
        as_they_came = (index for index in results if self.plan.get_action(self.messages[index].id)[1] is None)
        oldest = next(as_they_came, len(self.messages))
        return (index for index in range(len(self.messages) - 1, oldest - 1, -1) if index in self.answered)

    def weight(self, index: int) -> int:
        """Return the tokens a message takes in the prompt as planned so far.

        Args:
            index: The place of the message in `messages`.

        Example:
            >>> context.weight(2) == context.tokens[2]
            True
        """
        known = self._weights.get(index)
        if known is None:
            known = self._weights[index] = self._weight_in_plan(index)
        return known

    @cached_property
    def _weights(self) -> dict[int, int]:
        """What was weighed so far: a plan is asked for the same messages a dozen times."""
        return {}

    def _weight_in_plan(self, index: int) -> int:
        action, record = self.plan.get_action(self.messages[index].id)
        if record is None:
            return self.tokens[index]
        return record.tokens_after if action in (CompactionAction.CLEAR, CompactionAction.EXTERNALIZE) else 0

    def total_tokens(self) -> int:
        """Return the tokens of the whole prompt as planned so far.

        Example:
            >>> context.total_tokens() == sum(context.tokens)
            True
        """
        summary = self.plan.summary
        messages = sum(map(self.weight, self.shown))
        return messages + (summary.tokens_after if summary else 0) + self.line_tokens() + self.repair_tokens()

    def repair_tokens(self) -> int:
        """Return what makes the prompt legal takes: of what is left out, nothing has to be repaired.

        Example:
            >>> context.repair_tokens()
            0
        """
        return sum(tokens for index, tokens in self.repairs.items() if self.plan.shows(self.messages[index].id))

    def line_tokens(self, leaving: Collection[int] = ()) -> int:
        """Return what the lines between turns take, also once the messages at some places are summarised.

        Args:
            leaving: The places of messages that would be summarised.

        Example:
            >>> context.line_tokens()
            0
        """
        shown = [index for index in self.shown if index not in leaving]
        if len(shown) == len(self.messages):
            return 0
        prompt = [self.messages[index] for index in shown]
        if leaving or self.plan.summary:
            # A message that stood before the summary may have been edited since.
            standing = {self.places[message_id] for message_id in self.plan.pinned if message_id in self.places}
            before = self.layers.before_summary if leaving else standing
            prompt.insert(sum(1 for _ in takewhile(before.__contains__, shown)), _SUMMARY)
        # The same line in many places: it is counted once for each speaker, since this is asked often.
        lines = self.turn_order.lines_for(prompt, only_first=not self.plan.shows_gaps)
        found = Counter(line.role for _, line in lines)
        return sum(times * self.count_message(Message(role, LEFT_OUT)) for role, times in found.items())


class CompactionStrategy(Protocol):
    """Proposes plan records, best first; pure. The coordinator takes as many as it needs."""

    @property
    def name(self) -> str:
        """The word that stands in the plan for who decided."""
        ...

    def propose(self, context: PlanningContext) -> Iterable[CompactionProposal]:
        """Yield proposals for the messages this strategy may touch."""
        ...
