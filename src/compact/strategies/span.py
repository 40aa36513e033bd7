"""Which messages a summary stands for: those of the least value, as many as the target demands; the others stay."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from compact.core.facts.pieces import is_specific
from compact.core.facts.tool_calls import is_typed
from compact.core.facts.value import message_value
from compact.core.facts.value_table import VALUES
from compact.core.plan.strategy import MIN_SUMMARY_TOKENS, PlanningContext
from compact.core.summary.focus import ABOUT_SHARE, FOCUS_GAIN

# Chosen: what is kept and takes more than this share of the target is cut afterwards, and counts so much here; more of
# what a person typed, and of a result that the agent has not read yet.
_LARGEST_SHARE = 0.25
_TYPED_SHARE = 0.35
_UNREAD_SHARE = 0.5
# Chosen: of the room beside what is pinned, what a summary has in any case; for that much, kept messages give way.
_LEAST_SHARE = 0.15
# Chosen: where there is room for everything, the most that stays for a focus.
_FOCUS_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class Span:
    """The messages that a summary stands for, by their places, and the room that is left for it."""

    indices: list[int]
    room_tokens: int


def choose_span(context: PlanningContext, free: Sequence[int], *, max_summary_tokens: int, ratio: float) -> Span:
    """Return the span; a summary is at most `ratio` of what it stands for, and what it cannot use is for messages."""
    goal, standing = context.goal, context.plan.summary
    pinned = sum(map(context.weight, context.layers.pinned))
    room = min(goal.target_tokens, goal.ceiling_tokens) - _kept_tokens(context, frozenset(free))
    least = int(min(_LEAST_SHARE, goal.summary_share) * (goal.settle_tokens - pinned))
    units = _most_valuable_first(context, frozenset(free))
    reserve = max(min(max_summary_tokens, max(least, int(goal.summary_share * room))), MIN_SUMMARY_TOKENS)
    while True:
        stay = _affordable(context, units, room - reserve)
        lines = context.line_tokens(frozenset(free) - stay)
        if lines:
            stay = _affordable(context, units, room - reserve - lines)
        span = [index for index in free if index not in stay]
        full = sum(context.tokens[index] for index in span) + (standing.tokens_after if standing else 0)
        usable = max(int(full * ratio), MIN_SUMMARY_TOKENS)
        if usable >= reserve:
            return Span(span, max(reserve, room - lines - sum(_shown_tokens(context, index) for index in stay)))
        reserve = usable


def span_beside_focus(context: PlanningContext, free: Sequence[int], room_tokens: int) -> Span:
    """Return what a summary stands for that nothing but a person asked for: all but what is about the focus.

    Of that, as much stays as takes half of the tokens: otherwise there may be nothing to summarise.
    """
    about = [unit for unit in _most_valuable_first(context, frozenset(free)) if _focus_of(context, unit) >= ABOUT_SHARE]
    stay = _affordable(context, about, int(_FOCUS_SHARE * sum(map(context.weight, free))))
    return Span([index for index in free if index not in stay], room_tokens)


def _focus_of(context: PlanningContext, unit: _Unit) -> float:
    return max(context.focus_shares[index] for index in unit.indices)


def _kept_tokens(context: PlanningContext, free: frozenset[int]) -> int:
    """Return what stays in any case; where a size was asked for, as it will be cut."""
    target, messages, pinned = context.goal.target_tokens, context.messages, context.layers.pinned
    if not context.goal.is_exact:
        return sum(_shown_tokens(context, index) for index in context.shown if index not in free)
    kept = [index for index in range(len(messages)) if index not in free]
    last_answer = max((index for index in kept if messages[index].role == "assistant"), default=-1)

    def tokens(index: int) -> int:
        if index in pinned:
            return _shown_tokens(context, index)
        is_unread = messages[index].role == "tool" and index > last_answer
        share = _UNREAD_SHARE if is_unread else _TYPED_SHARE if is_typed(messages[index]) else _LARGEST_SHARE
        return min(_shown_tokens(context, index), int(share * target))

    return sum(map(tokens, kept))


def _shown_tokens(context: PlanningContext, index: int) -> int:
    """Return what it takes to show a message; one that is left out needs no repair."""
    repair = context.repairs.get(index, 0)  # nearly always none
    return context.weight(index) + (repair if repair and context.plan.shows(context.messages[index].id) else 0)


@dataclass(frozen=True, slots=True)
class _Unit:
    """Messages that stay or go together; `brings` is the question that an answer cannot be understood without."""

    indices: tuple[int, ...]
    brings: tuple[int, ...]
    density: float


def _most_valuable_first(context: PlanningContext, free: frozenset[int]) -> list[_Unit]:
    """Return what may stay, what has the highest value for its tokens first; of equals, the newest.

    A message that says nothing specific, such as a greeting, is not among it.
    """
    ages, behind = dict[int, int](), 0
    for index in reversed(context.shown):
        ages[index] = behind
        behind += context.weight(index)

    def density(indices: Sequence[int]) -> float:
        weights = [(context.messages[index], context.weight(index), ages[index]) for index in indices]
        total = sum(message_value(message, weight, age, VALUES) for message, weight, age in weights)
        focus = max((context.focus_shares[index] for index in indices), default=0.0) if context.focus_shares else 0.0
        return total * (1 + FOCUS_GAIN * focus) / max(1, sum(weight for _, weight, _ in weights))

    units: list[_Unit] = []
    question, asked_in = tuple[int, ...](), 0
    for group in context.shown_groups:
        is_user = context.messages[group.indices[0]].role == "user"
        if free.issuperset(group.indices) and (group.is_tool or is_specific(context.messages[group.indices[0]])):
            # Nothing else was asked in between, not even what is no longer shown.
            is_answer = not is_user and not group.is_tool
            asked = question if is_answer and asked_in == context.turns[group.indices[0]] else ()
            units.append(_Unit(group.indices, asked, density(group.indices)))
        if is_user:
            question = group.indices if free.issuperset(group.indices) else ()
            asked_in = context.turns[group.indices[0]]
    return sorted(units, key=lambda unit: (unit.density, unit.indices), reverse=True)


def _affordable(context: PlanningContext, units: Iterable[_Unit], room: int) -> set[int]:
    """Return the messages of the first units that there is room for."""
    stay = set[int]()
    for unit in units:
        needed = [index for index in (*unit.brings, *unit.indices) if index not in stay]
        tokens = sum(_shown_tokens(context, index) for index in needed)
        if tokens <= room:
            room -= tokens
            stay.update(needed)
    return stay
