"""Remove tool exchanges of which only stubs are left and whose results are ephemeral."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from compact.core.messages.groups import Group
from compact.core.plan.durability import ToolDurability, ToolDurabilityPolicy, envelope
from compact.core.plan.plan import ClearRecord, DropRecord, SpanReference
from compact.core.plan.strategy import CompactionProposal, PlanningContext


@dataclass(frozen=True, slots=True, kw_only=True)
class DropStrategy:
    """Drops whole groups, and only ephemeral ones whose every result was cleared before; what the agent said stays."""

    name: str = "drop"
    policies: Mapping[str, ToolDurabilityPolicy] = field(default_factory=dict[str, ToolDurabilityPolicy])

    def propose(self, context: PlanningContext) -> Iterator[CompactionProposal]:
        """Propose to drop such groups, oldest first."""
        for group in context.shown_groups:
            if group.is_tool and context.layers.remainder.issuperset(group.indices) and self._may_drop(context, group):
                span = SpanReference(tuple(context.messages[i].id for i in group.indices))
                record = DropRecord(span=span, strategy=self.name, reason="ephemeral, and cleared before")
                yield CompactionProposal(record)

    def _may_drop(self, context: PlanningContext, group: Group) -> bool:
        call, *results = group.indices
        if context.messages[call].text.strip():
            return False  # what the agent said is no stub
        return bool(results) and all(self._is_cleared_ephemeral(context, index) for index in results)

    def _is_cleared_ephemeral(self, context: PlanningContext, index: int) -> bool:
        message, call = context.messages[index], context.answered[index]
        if not isinstance(context.plan.get_action(message.id)[1], ClearRecord):
            return False
        result = envelope(message, tool_name=call.name, arguments=call.arguments, policies=self.policies)
        return result.policy.durability is ToolDurability.EPHEMERAL
