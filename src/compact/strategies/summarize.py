"""Have one summary stand for what the free strategies left."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import exp

from compact.core.log.groups import Group
from compact.core.plan.durability import ToolDurabilityPolicy, envelope, tool_policies
from compact.core.plan.plan import CompactionAction, SpanReference, SummarizationRecord
from compact.core.plan.strategy import SUMMARIZE, CompactionProposal, PlanningContext

# Chosen: a shorter one would say nothing.
_MIN_SUMMARY_TOKENS = 40
# Chosen: what is kept and takes more than this share of the target is cut afterwards, and counts so much here.
_LARGEST_SHARE = 0.25
_UNREAD_SHARE = 0.5  # of a result that the agent has not read yet
# Chosen: the share of the target that pointers to artifacts may take; hundreds of them must not crowd out the rest.
_POINTER_SHARE = 0.25
# What a token of each role is worth for what the agent writes next, against each other, and how that falls with age.
# Chosen by the measurements in docs/measurements.md: words hold their value, results lose it.
_VALUES = {"user": 400.0, "assistant": 230.0, "tool": 110.0}
_NEW_VALUE, _NEW_AGE_TOKENS = 6.0, 500
_RECENT_VALUE, _RECENT_AGE_TOKENS = 2.0, 3_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SummarizeStrategy:
    """Proposes the remainder as one span, together with what the previous summary stood for.

    Where an exact size is asked for, it takes only the part of the least value, and the rest stays as messages.

    The summary may take `max_tokens`, but no more than `target_token_ratio` of what it replaces and the goal's share of
    the room there is: for that much, kept messages give way. One that `fills_target` takes what is left up to that
    share, or all that is left if so many tokens were asked for.

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
        free = [i for i in sorted(context.layers.remainder - kept) if self._is_free(context, i)]
        pointers = _standing_pointers(context, free)
        rest = [i for i in free if i not in pointers]
        if len(rest) < self.min_span_messages or context.turn.should_skip_aggressive_compaction():
            return
        standing = context.plan.summary
        earlier = standing.span.message_ids if standing else ()
        prefetched = self._prefetched(context, free, earlier)
        if prefetched:
            yield prefetched
            return
        if context.goal.is_exact:
            rest = self._span(context, rest)
            if len(rest) < self.min_span_messages:
                return
        replaced = sum(map(context.weight, rest)) + (standing.tokens_after if standing else 0)
        if replaced < self.min_span_tokens + _MIN_SUMMARY_TOKENS:
            return
        record = SummarizationRecord(
            span=SpanReference((*earlier, *(context.messages[i].id for i in rest))),
            strategy=self.name,
            reason=f"{len(rest):,} messages older than what is kept verbatim",
            version=standing.version + 1 if standing else 1,
            max_tokens=self._room(context, rest, replaced),
        )
        yield CompactionProposal(record, pinned=self._pinned_before(context, rest[-1], earlier))

    def _span(self, context: PlanningContext, rest: list[int]) -> list[int]:
        """Return the messages that the summary stands for: those of the least value, as many as the target demands.

        The others stay as messages, with what was cleared in them: resolution falls with age.
        """
        goal, free, pinned = context.goal, set(rest), context.layers.pinned
        pinned_tokens = sum(map(context.weight, pinned))
        kept = [i for i in range(len(context.messages)) if i not in free and i not in pinned]
        room = goal.target_tokens - pinned_tokens - int(goal.summary_share * (goal.settle_tokens - pinned_tokens))
        last_answer = max((i for i in kept if context.messages[i].role == "assistant"), default=-1)
        for index in kept:
            is_unread = context.messages[index].role == "tool" and index > last_answer
            share = _UNREAD_SHARE if is_unread else _LARGEST_SHARE
            room -= min(context.weight(index), int(share * goal.target_tokens))
        ages = _ages(context)
        groups = [group for group in context.groups if free.issuperset(group.indices)]
        stay = set[int]()
        for group in sorted(groups, key=lambda group: -_value(context, group, ages[group.indices[0]])):
            tokens = sum(map(context.weight, group.indices))
            if tokens <= room:
                room -= tokens
                stay.update(group.indices)
        return [index for index in rest if index not in stay]

    def _room(self, context: PlanningContext, rest: list[int], replaced: int) -> int:
        """Return the most that the summary may take; what it replaces counts in full, even if it was cleared before."""
        goal, others = context.goal, context.total_tokens() - replaced
        pinned = sum(map(context.weight, context.layers.pinned))
        share = int(goal.summary_share * (goal.settle_tokens - pinned))
        allowed = min(self.max_tokens, share)
        if self.fills_target:
            left = goal.target_tokens - others
            allowed = max(allowed, left if goal.is_exact else min(left, share))
        full = sum(context.tokens[index] for index in rest) + (replaced - sum(map(context.weight, rest)))
        most = replaced - self.min_span_tokens
        return max(min(allowed, int(full * self.target_token_ratio), most), _MIN_SUMMARY_TOKENS)

    def _prefetched(
        self, context: PlanningContext, rest: list[int], earlier: tuple[str, ...]
    ) -> CompactionProposal | None:
        """Return the summary that was prefetched, if all its messages are still there and it frees enough."""
        record = context.prefetched
        free = {context.messages[index].id for index in rest}
        if record is None or not set(earlier) <= set(record.span) <= free | set(earlier):
            return None
        weighed = context.weigh(record)
        if context.total_tokens() - weighed.tokens_freed > context.goal.settle_tokens:
            return None
        last = max(context.places[message_id] for message_id in record.span)
        return CompactionProposal(record, pinned=self._pinned_before(context, last, earlier))

    def _never_cleared(self, context: PlanningContext) -> frozenset[int]:
        """Return the groups with a result that may neither be cleared nor stands in an artifact."""
        policies = tool_policies(self.never_evict, self.policies)

        def stays(index: int) -> bool:
            message, call = context.messages[index], context.answered[index]
            result = envelope(message, tool_name=call.name, arguments=call.arguments, policies=policies)
            return not result.may_clear and context.plan.get_action(message.id)[0] is not CompactionAction.EXTERNALIZE

        groups = (g.indices for g in context.groups if g.is_tool and any(stays(i) for i in g.indices[1:]))
        return frozenset(index for indices in groups for index in indices)

    def _is_free(self, context: PlanningContext, index: int) -> bool:
        action = context.plan.get_action(context.messages[index].id)[0]
        return action not in (CompactionAction.SUMMARIZE, CompactionAction.DROP)

    def _pinned_before(self, context: PlanningContext, last: int, earlier: tuple[str, ...]) -> tuple[str, ...]:
        """Return the pinned messages that are older than the end of the span: they stand before the summary."""
        last = max([last, *(context.places[message_id] for message_id in earlier)])
        return tuple(context.messages[index].id for index in sorted(context.layers.pinned) if index < last)


def _standing_pointers(context: PlanningContext, free: list[int]) -> set[int]:
    """Return the groups whose pointer to an artifact stays: the newest ones, as many as there is room for."""
    goal, inside, layers = context.goal, set(free), context.layers
    others = sum(context.weight(i) for i in range(len(context.messages)) if i not in inside)
    share = int(_POINTER_SHARE * (goal.target_tokens - sum(map(context.weight, layers.pinned))))
    room = min(share, goal.settle_tokens - others - _MIN_SUMMARY_TOKENS)
    stay = set[int]()
    for group in reversed(context.groups):
        actions = (context.plan.get_action(context.messages[i].id)[0] for i in group.indices)
        if not inside.issuperset(group.indices) or CompactionAction.EXTERNALIZE not in actions:
            continue
        room -= sum(map(context.weight, group.indices))
        if room < 0:
            break
        stay.update(group.indices)
    return stay


def _ages(context: PlanningContext) -> list[int]:
    """Return how many tokens there are behind each message."""
    ages, behind = [0] * len(context.messages), 0
    for index in range(len(context.messages) - 1, -1, -1):
        ages[index] = behind
        behind += context.weight(index)
    return ages


def _value(context: PlanningContext, group: Group, age_tokens: int) -> float:
    """Return the value of a token of a group."""
    weights = [(context.messages[index].role, context.weight(index)) for index in group.indices]
    tokens = max(1, sum(weight for _, weight in weights))
    by_role = sum(_VALUES.get(role, _VALUES["user"]) * weight for role, weight in weights) / tokens
    new, recent = exp(-age_tokens / _NEW_AGE_TOKENS), exp(-age_tokens / _RECENT_AGE_TOKENS)
    return by_role * (1 + _NEW_VALUE * new + _RECENT_VALUE * recent)
