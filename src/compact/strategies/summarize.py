"""Have one summary stand for what the free strategies left."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import takewhile

from compact.core.messages.structure import all_but
from compact.core.plan.durability import ToolDurabilityPolicy, envelope, tool_policies
from compact.core.plan.plan import CompactionAction, ExternalizationRecord, SpanReference, SummarizationRecord
from compact.core.plan.strategy import MIN_SUMMARY_TOKENS, SUMMARIZE, CompactionProposal, PlanningContext
from compact.core.plurals import quantity
from compact.strategies.span import Span, choose_span, span_beside_focus

# Chosen: the share of the target that pointers to artifacts may take; hundreds of them must not crowd out the rest.
_POINTER_SHARE = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class SummarizeStrategy:
    """Proposes the part of the remainder with the least value as one span, with what the summary before stood for.

    So much goes that the rest fits the target as messages, beside a summary of the goal's share of the room. The
    summary may take `max_tokens`, or all that is left up to the target if it `fills_target`, but no more than
    `target_token_ratio` of what it replaces, unless what users asked to hold there takes more.

    Results that may never be cleared (`never_evict`, `policies`) stay, with their calls; a summary that would free less
    than `min_span_tokens` is not proposed. Pointers to artifacts stay too, the newest of them: what is externalised
    comes before what is summarised. Those there is no room for are named in the summary.
    """

    name: str = SUMMARIZE
    max_tokens: int = 4096
    target_token_ratio: float = 0.5
    fills_target: bool = False
    min_span_messages: int = 2
    min_span_tokens: int = 100
    never_evict: tuple[str, ...] = ()
    policies: Mapping[str, ToolDurabilityPolicy] = field(default_factory=dict[str, ToolDurabilityPolicy])

    def propose(self, context: PlanningContext) -> Iterator[CompactionProposal]:
        """Propose at most one record: there is exactly one summary in a prompt."""
        kept = self._never_cleared(context)
        free = [i for i in context.shown if i in context.layers.remainder and i not in kept]
        pointers = _standing_pointers(context, free)
        rest = [i for i in free if i not in pointers]
        if len(rest) < self.min_span_messages or context.turn.should_skip_aggressive_compaction():
            return
        standing = context.plan.summary
        earlier = standing.span.ids if standing else frozenset[str]()
        prefetched = self._prefetched(context, free, earlier)
        if prefetched:
            yield prefetched
            return
        span = self._span(context, rest)
        if not span.indices or len(span.indices) < self.min_span_messages:
            return
        replaced = sum(map(context.weight, span.indices)) + (standing.tokens_after if standing else 0)
        if replaced < self.min_span_tokens + MIN_SUMMARY_TOKENS:
            return
        going = frozenset(span.indices)
        staying = [index for index in _beside(context, earlier) if index not in going]
        record = SummarizationRecord(
            span=SpanReference(tuple(all_but(list(context.places), staying))),
            strategy=self.name,
            reason=f"{quantity(len(span.indices), 'message')} of the least value for what comes next",
            version=standing.version + 1 if standing else 1,
        )
        record = replace(record, max_tokens=self._room(context, span, record, replaced))
        yield CompactionProposal(record, pinned=_pinned_before(context, record.span))

    def _span(self, context: PlanningContext, rest: list[int]) -> Span:
        """Return what the summary stands for: all of the remainder if one was asked for without need."""
        goal = context.goal
        most = goal.target_tokens if self.fills_target else self.max_tokens
        if goal.is_exact or context.total_tokens() > goal.target_tokens:
            return choose_span(context, rest, max_summary_tokens=most, ratio=self.target_token_ratio)
        room = min(most, int(goal.summary_share * goal.settle_tokens))
        return span_beside_focus(context, rest, room) if context.focus_shares else Span(rest, room)

    def _room(self, context: PlanningContext, span: Span, record: SummarizationRecord, replaced: int) -> int:
        """Return the most that the summary may take; what it replaces counts in full, even if it was cleared before."""
        allowed = span.room_tokens if self.fills_target else min(self.max_tokens, span.room_tokens)
        full = sum(context.tokens[index] - context.weight(index) for index in span.indices) + replaced
        most = replaced - self.min_span_tokens
        room = min(allowed, int(full * self.target_token_ratio))
        held = context.constraint_tokens(record) if room < most else 0
        if not self.fills_target:
            held = min(held, self.max_tokens)
        return max(min(max(room, held), most), MIN_SUMMARY_TOKENS)

    def _prefetched(
        self, context: PlanningContext, rest: list[int], earlier: frozenset[str]
    ) -> CompactionProposal | None:
        """Return the summary that was prefetched, if all its messages are still there and it frees enough."""
        record = context.prefetched
        free = {context.messages[index].id for index in rest}
        if record is None or not earlier <= record.span.ids <= free | earlier:
            return None
        weighed = context.weigh(record)
        if not self.fills_target and weighed.tokens_after > self.max_tokens:  # written under other settings
            return None
        if context.total_tokens() - weighed.tokens_freed > context.goal.settle_tokens:
            return None
        return CompactionProposal(record, pinned=_pinned_before(context, record.span))

    def _never_cleared(self, context: PlanningContext) -> frozenset[int]:
        """Return the groups with a result that may neither be cleared nor stands in an artifact."""
        policies = tool_policies(self.never_evict, self.policies)

        def stays(index: int) -> bool:
            message, call = context.messages[index], context.answered[index]
            result = envelope(message, tool_name=call.name, arguments=call.arguments, policies=policies)
            return not result.may_clear and context.plan.get_action(message.id)[0] is not CompactionAction.EXTERNALIZE

        groups = (g.indices for g in context.shown_groups if g.is_tool and any(stays(i) for i in g.indices[1:]))
        return frozenset(index for indices in groups for index in indices)


def _beside(context: PlanningContext, span: frozenset[str]) -> list[int]:
    """Return the places of what is not in a span that has all of the summary before: few of a long history."""
    return [index for index in context.outside if context.messages[index].id not in span]


def _pinned_before(context: PlanningContext, span: SpanReference) -> tuple[str, ...]:
    """Return the pinned messages that stand before the summary: those older than every other message that stays.

    Attachments in use are among them.
    """
    first, beside = context.layers.before_summary, _beside(context, span.ids)
    staying = frozenset(beside)
    last = next(index for index in reversed(range(len(context.messages))) if index not in staying)
    older = (index for index in beside if index < last)
    return tuple(context.messages[index].id for index in takewhile(first.__contains__, older))


def _standing_pointers(context: PlanningContext, free: list[int]) -> set[int]:
    """Return the groups whose pointer to an artifact stays: the newest ones, as many as there is room for."""
    if not context.plan.externalizations:
        return set()
    goal, inside, layers = context.goal, set(free), context.layers
    others = sum(context.weight(i) for i in context.shown if i not in inside)
    share = int(_POINTER_SHARE * (goal.target_tokens - sum(map(context.weight, layers.pinned))))
    room = min(share, goal.settle_tokens - others - MIN_SUMMARY_TOKENS)
    stay = set[int]()
    for group in reversed(list(context.shown_groups)):
        records = (context.plan.get_action(context.messages[i].id)[1] for i in group.indices)
        # A message whose attachments were moved still speaks for itself: it stays or goes by its value.
        has_pointer = any(isinstance(record, ExternalizationRecord) and not record.attachments for record in records)
        if not inside.issuperset(group.indices) or not has_pointer:
            continue
        room -= sum(map(context.weight, group.indices))
        if room < 0:
            break
        stay.update(group.indices)
    return stay
