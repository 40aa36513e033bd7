"""A sliding window on dialogue; off unless configured, because nothing stands for what leaves it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from compact.core.plan.plan import DropRecord, SpanReference
from compact.core.plan.strategy import CompactionProposal, PlanningContext
from compact.core.plan.stubs import ATTACHMENTS


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowStrategy:
    """Keeps the dialogue of the newest turns, or the newest tokens of it, whichever cap is set."""

    name: str = "window"
    max_turns: int | None = None
    max_tokens: int | None = None

    def propose(self, context: PlanningContext) -> Iterator[CompactionProposal]:
        """Propose to drop dialogue outside the window, oldest first; tool groups are left to other strategies."""
        outside = list(self._outside(context))
        for index in reversed(outside):
            span = SpanReference((context.messages[index].id,))
            yield CompactionProposal(DropRecord(span=span, strategy=self.name, reason=self._reason()))

    def _outside(self, context: PlanningContext) -> Iterator[int]:
        newest_turn = context.turns[-1] if context.turns else 0
        spent = 0
        for group in reversed(context.groups):
            index = group.indices[0]
            if group.is_tool or index in context.layers.pinned:
                continue
            spent += context.weight(index)
            too_old = self.max_turns is not None and newest_turn - context.turns[index] >= self.max_turns
            too_much = self.max_tokens is not None and spent > self.max_tokens
            record = context.plan.get_action(context.messages[index].id)[1]
            speaks = record is None or record.strategy == ATTACHMENTS
            if (too_old or too_much) and index in context.layers.remainder and speaks:
                yield index

    def _reason(self) -> str:
        caps = (("turns", self.max_turns), ("tokens", self.max_tokens))
        return "outside the dialogue window of " + ", ".join(f"{cap:,} {unit}" for unit, cap in caps if cap is not None)
