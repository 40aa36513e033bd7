"""Move large tool results into artifacts: a stub with a preview stands for them, and their id restores them.

Planning writes nothing; whoever commits the plan stores the artifacts that its records name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from compact.core.audit.artifacts import artifact_id_for
from compact.core.errors import ConfigError
from compact.core.messages.message import Message
from compact.core.messages.sensitivity import OPEN_SENSITIVITIES, SENSITIVITIES, sensitivity_of
from compact.core.plan.durability import (
    ToolDurability,
    ToolDurabilityPolicy,
    ToolResultEnvelope,
    envelope,
    tool_policies,
)
from compact.core.plan.plan import ExternalizationRecord, SpanReference
from compact.core.plan.strategy import CompactionProposal, PlanningContext
from compact.core.plurals import quantity
from compact.strategies.clear import outcome_lines


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalizeStrategy:
    """Results from `min_tokens` on, those that cannot be had again already from `min_tokens_non_replayable` on.

    `policies` and `never_evict` mean what they mean for clearing, except that a result that may never be cleared
    may be moved: the artifact restores it word for word.
    """

    name: str = "externalize"
    min_tokens: int = 2000
    min_tokens_non_replayable: int = 200
    preview_lines: int = 6
    preview_chars: int = 600
    default_sensitivity: str = "internal"
    never_evict: tuple[str, ...] = ()
    policies: Mapping[str, ToolDurabilityPolicy] = field(default_factory=dict[str, ToolDurabilityPolicy])

    def __post_init__(self) -> None:
        if self.default_sensitivity not in SENSITIVITIES:
            hint = f"use one of {', '.join(SENSITIVITIES)}"
            raise ConfigError(
                f"unknown sensitivity {self.default_sensitivity!r}", field="default_sensitivity", hint=hint
            )

    def propose(self, context: PlanningContext) -> Iterator[CompactionProposal]:
        """Propose to move what cannot be had again first, then the largest, then the oldest."""
        # In a turn that rehydrated something nothing is moved, least of all what was rehydrated.
        if context.turn.should_skip_aggressive_compaction():
            return
        found = [(index, result) for index, result in self._movable(context) if self._may_move(context, index, result)]
        found.sort(key=lambda entry: (not _is_non_replayable(entry[1]), -context.tokens[entry[0]], entry[0]))
        for index, result in found:
            yield CompactionProposal(self._record(context, index, result))

    def _movable(self, context: PlanningContext) -> Iterator[tuple[int, ToolResultEnvelope]]:
        """Yield the results that their tool's own policy lets go."""
        policies = tool_policies(self.never_evict, self.policies)
        newest_turn = context.turns[-1] if context.turns else 0
        seen: Counter[str] = Counter()
        for index in context.newest_results:
            call, message = context.answered[index], context.messages[index]
            result = envelope(message, tool_name=call.name, arguments=call.arguments, policies=policies)
            seen[call.name] += 1
            is_young = newest_turn - context.turns[index] < (result.policy.keep_turns or 0)
            is_held = result.policy.never_evict or seen[call.name] <= (result.policy.keep_last or 0)
            if not is_young and not is_held:
                yield index, result

    def _may_move(self, context: PlanningContext, index: int, result: ToolResultEnvelope) -> bool:
        least = min(self.min_tokens_non_replayable, self.min_tokens) if _is_non_replayable(result) else self.min_tokens
        is_untouched = context.plan.get_action(result.message.id)[1] is None
        is_free = is_untouched and index in context.layers.remainder
        return is_free and context.tokens[index] >= least and _is_text(result.message)

    def _record(self, context: PlanningContext, index: int, result: ToolResultEnvelope) -> ExternalizationRecord:
        message, turns_ago = result.message, context.turns[-1] - context.turns[index]
        age = f", {quantity(turns_ago, 'turn')} ago" if turns_ago else ""
        sensitivity = sensitivity_of(message, self.default_sensitivity)
        # Plans are stored, printed and exported: they quote nothing that is more than internal.
        is_quotable = sensitivity in OPEN_SENSITIVITIES
        return ExternalizationRecord(
            span=SpanReference((message.id,)),
            strategy=self.name,
            reason=f"{'unique' if _is_non_replayable(result) else 'large'} {result.tool_name} result{age}",
            artifact_id=artifact_id_for(context.plan.session_id, message.id, message.text),
            preview=preview(message.text, self.preview_lines, self.preview_chars) if is_quotable else "",
            sensitivity=sensitivity,
        )


def preview(text: str, max_lines: int, max_chars: int) -> str:
    """Return the first lines and, behind them, the last ones that say how it went: verbatim, cut to the characters."""
    outcome = [text[start:end].strip() for start, end in outcome_lines(text, max_lines // 3)]
    opening = [line.rstrip() for line in text[:max_chars].splitlines() if line.strip()]
    head = opening[: max_lines - len(outcome)]
    end = "\n".join(line for line in outcome if line not in (shown.strip() for shown in head))
    if not end:
        return _cut("\n".join(opening[:max_lines]), max_chars)
    end = _cut(end, max_chars // 2)
    return _cut(_cut("\n".join(head), max_chars - len(end) - 3) + f"\n…\n{end}", max_chars)


def _cut(text: str, max_chars: int) -> str:
    if len(text) <= max_chars:
        return text
    return text[: max_chars - 1] + "…" if max_chars > 0 else ""


def _is_non_replayable(result: ToolResultEnvelope) -> bool:
    return result.policy.durability is ToolDurability.NON_REPLAYABLE


def _is_text(message: Message) -> bool:
    """Return True if an artifact, which is text, can hold all of the content."""
    parts = message.content
    return isinstance(parts, str) or (parts is not None and all(isinstance(part.get("text"), str) for part in parts))
