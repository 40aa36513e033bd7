"""Clear old tool results: the call stays; how the result begins, how it went and a stub stand for it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from compact.core.facts.text import joined_ranges
from compact.core.plan.durability import ToolDurabilityPolicy, ToolResultEnvelope, envelope, tool_policies
from compact.core.plan.plan import ClearRecord, SpanReference
from compact.core.plan.strategy import CompactionProposal, PlanningContext

# The lines of a result that say how it went.
_OUTCOME = re.compile(
    r"\b(?:error|errors|failed|failure|exception|traceback|fatal|denied|refused|passed)\b", re.IGNORECASE
)
# Chosen: longer lines are dumps.
_MAX_LINE_CHARS = 240


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearStrategy:
    """Age-based (`keep_turns`) and count-based (`keep_last` per tool) retention; a tool's own policy overrules both.

    `policies` maps patterns of tool names to durability policies; `never_evict` names tools whose results are facts.
    """

    name: str = "clear"
    keep_turns: int = 0
    keep_last: int = 0
    min_tokens: int = 100
    keep_lines: int = 2
    # Where a size is asked for. How a result begins is worth three times as much as the rest: docs/measurements.md.
    keep_head_chars: int = 300
    never_evict: tuple[str, ...] = ()
    policies: Mapping[str, ToolDurabilityPolicy] = field(default_factory=dict[str, ToolDurabilityPolicy])

    def propose(self, context: PlanningContext) -> Iterator[CompactionProposal]:
        """Propose to clear results that are past their age and count, oldest first."""
        policies = tool_policies(self.never_evict, self.policies)
        missed = Counter(context.answered[i].name for i in context.layers.missed if i in context.answered)
        for index, result in reversed(list(self._expired(context, policies))):
            is_untouched = context.plan.get_action(result.message.id)[1] is None
            if is_untouched and index in context.layers.remainder and context.tokens[index] >= self.min_tokens:
                yield CompactionProposal(self._record(result, context, index, kept_longer=missed[result.tool_name]))

    def _expired(
        self, context: PlanningContext, policies: Mapping[str, ToolDurabilityPolicy]
    ) -> Iterator[tuple[int, ToolResultEnvelope]]:
        """Yield the results that are past their tool's age and count, newest first."""
        newest_turn = context.turns[-1] if context.turns else 0
        seen: Counter[str] = Counter()
        for index in sorted(context.answered, reverse=True):
            call, message = context.answered[index], context.messages[index]
            result = envelope(message, tool_name=call.name, arguments=call.arguments, policies=policies)
            seen[result.tool_name] += 1
            keep_last = self.keep_last if result.policy.keep_last is None else result.policy.keep_last
            keep_turns = self.keep_turns if result.policy.keep_turns is None else result.policy.keep_turns
            is_young = newest_turn - context.turns[index] < keep_turns
            if result.may_clear and not is_young and seen[result.tool_name] > keep_last:
                yield index, result

    def _record(
        self, result: ToolResultEnvelope, context: PlanningContext, index: int, *, kept_longer: int
    ) -> ClearRecord:
        text, turns_ago = result.message.text, context.turns[-1] - context.turns[index]
        again = "; calling it again gives the same" if result.determinism.is_verifiable else ""
        age = f", {turns_ago} turns ago" if turns_ago else ""
        missed = f"; {kept_longer} that came back kept longer" if kept_longer else ""
        # Where a size is asked for, results stay in what is left as messages; otherwise the summary takes them in.
        head = head_range(text, self.keep_head_chars) if context.goal.is_exact else ()
        return ClearRecord(
            span=SpanReference((result.message.id,)),
            strategy=self.name,
            reason=f"old {result.tool_name} result{age}{again}{missed}",
            kept=joined_ranges((*head, *outcome_lines(text, self.keep_lines))),
            preserved_fields=result.preserved_fields(),
        )


def head_range(text: str, max_chars: int) -> tuple[tuple[int, int], ...]:
    """Return how a text begins, half of it at most, up to the end of a line or a word, as a character range."""
    most = min(max_chars, len(text) // 2)
    line, word = (text.rfind(end, most // 2, most) for end in ("\n", " "))
    cut = line if line > 0 else word
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
