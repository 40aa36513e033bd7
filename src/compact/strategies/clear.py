"""Clear old tool results: the call stays; how the result begins, how it went and a stub stand for it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from compact.core.facts.text import joined_ranges
from compact.core.messages.sensitivity import is_open
from compact.core.plan.durability import ToolDurabilityPolicy, ToolResultEnvelope, envelope, tool_policies
from compact.core.plan.plan import ClearRecord, SpanReference
from compact.core.plan.strategy import CLEAR, CompactionProposal, PlanningContext
from compact.core.plurals import quantity

# The lines of a result that say how it went.
_OUTCOME = re.compile(
    r"\b(?:error|errors|failed|failure|exception|traceback|fatal|denied|refused|passed)\b", re.IGNORECASE
)
# Chosen: longer lines are dumps.
_MAX_LINE_CHARS = 240
# Chosen: of the target, what how the newest results begin may take together, and the most of one. The value of a result
# falls with its age (core/facts/value_table.py), and so does what stays of it.
_NEWEST_SHARE = 0.15
_MAX_HEAD_CHARS = 2000
_CHARS_BY_TOKEN = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearStrategy:
    """Age-based (`keep_turns`) and count-based (`keep_last` per tool) retention; a tool's own policy overrules both.

    `policies` maps patterns of tool names to durability policies; `never_evict` names tools whose results are facts.
    `default_sensitivity` is that of results that do not name theirs.
    """

    name: str = CLEAR
    keep_turns: int = 0
    keep_last: int = 0
    min_tokens: int = 100
    keep_lines: int = 2
    # How a result begins has more value than the rest of it; with 0, nothing of it stays.
    keep_head_chars: int = 300
    default_sensitivity: str = "internal"
    never_evict: tuple[str, ...] = ()
    policies: Mapping[str, ToolDurabilityPolicy] = field(default_factory=dict[str, ToolDurabilityPolicy])

    def propose(self, context: PlanningContext) -> Iterator[CompactionProposal]:
        """Propose to clear results that are past their age and count, oldest first."""
        policies = tool_policies(self.never_evict, self.policies)
        expired = [
            (index, result)
            for index, result in self._expired(context, policies)
            if index in context.layers.remainder and context.tokens[index] >= self.min_tokens
        ]
        heads = self._heads(context, [index for index, _ in expired])
        for index, result in reversed(expired):
            yield CompactionProposal(self._record(result, context, index, head_chars=heads[index]))

    def _heads(self, context: PlanningContext, newest_first: Iterable[int]) -> dict[int, int]:
        """Return how many characters of its beginning each result keeps: `keep_head_chars`, the newest some more.

        Where one part of the prompt is over its cap, a result keeps nothing: the cap is for results that are whole.
        """
        if context.goal.part is not None or not self.keep_head_chars:
            return dict.fromkeys(newest_first, 0)
        room = int(_NEWEST_SHARE * context.goal.target_tokens)
        heads: dict[int, int] = {}
        for index in newest_first:
            heads[index] = max(self.keep_head_chars, min(_MAX_HEAD_CHARS, _CHARS_BY_TOKEN * room))
            room -= min(context.tokens[index], heads[index] // _CHARS_BY_TOKEN)
        return heads

    def _expired(
        self, context: PlanningContext, policies: Mapping[str, ToolDurabilityPolicy]
    ) -> Iterator[tuple[int, ToolResultEnvelope]]:
        """Yield the results that stand as they came and are past their tool's age and count, newest first."""
        newest_turn = context.turns[-1] if context.turns else 0
        seen: Counter[str] = Counter()
        for index in context.newest_results:
            call, message = context.answered[index], context.messages[index]
            seen[call.name] += 1
            if context.plan.get_action(message.id)[1] is not None:
                continue
            result = envelope(message, tool_name=call.name, arguments=call.arguments, policies=policies)
            keep_last = self.keep_last if result.policy.keep_last is None else result.policy.keep_last
            keep_turns = self.keep_turns if result.policy.keep_turns is None else result.policy.keep_turns
            is_young = newest_turn - context.turns[index] < keep_turns
            if result.may_clear and not is_young and seen[call.name] > keep_last:
                yield index, result

    def _record(
        self, result: ToolResultEnvelope, context: PlanningContext, index: int, *, head_chars: int
    ) -> ClearRecord:
        text, turns_ago = result.message.text, context.turns[-1] - context.turns[index]
        again = "; calling it again gives the same" if result.determinism.is_verifiable else ""
        age = f", {quantity(turns_ago, 'turn')} ago" if turns_ago else ""
        head = head_range(text, head_chars)
        return ClearRecord(
            span=SpanReference((result.message.id,)),
            strategy=self.name,
            reason=f"old {result.tool_name} result{age}{again}",
            kept=joined_ranges((*head, *outcome_lines(text, self.keep_lines))),
            # Plans are stored, printed and exported: they quote nothing that is more than internal.
            preserved_fields=result.preserved_fields() if is_open(result.message, self.default_sensitivity) else {},
        )


def head_range(text: str, max_chars: int) -> tuple[tuple[int, int], ...]:
    """Return how a text begins, half of it at most, up to the end of a line or a word if there is one, as a range."""
    most = min(max_chars, len(text) // 2)
    line, word = (text.rfind(end, most // 2, most) for end in ("\n", " "))
    cut = line if line > 0 else word if word > 0 else most
    return ((0, cut),) if cut > 0 and text[:cut].strip() else ()


def outcome_lines(text: str, limit: int) -> tuple[tuple[int, int], ...]:
    """Return the last few lines that say how it went, as character ranges; long lines are left out."""
    if not limit:
        return ()
    chosen: list[tuple[int, int]] = []
    end = len(text)
    while end >= 0 and len(chosen) < limit:
        start = text.rfind("\n", 0, end) + 1
        if end - start <= _MAX_LINE_CHARS and _OUTCOME.search(text, start, end):
            chosen.append((start, end))
        end = start - 1
    return tuple(reversed(chosen))
