"""Clear what is provably stale: a read that was repeated later, or whose file was edited since."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from compact.core.facts.outcomes import failure_line
from compact.core.facts.tool_calls import PATH_ARGUMENTS, READS, WRITES, files_changed, fits_name, path_of
from compact.core.log.messages import ToolCall
from compact.core.plan.plan import ClearRecord, SpanReference
from compact.core.plan.strategy import CompactionProposal, PlanningContext


@dataclass(frozen=True, slots=True, kw_only=True)
class DeduplicateStrategy:
    """The newest copy of what was read stays; `reads` and `writes` are patterns of tool names."""

    name: str = "deduplicate"
    reads: tuple[str, ...] = READS
    writes: tuple[str, ...] = WRITES
    path_arguments: tuple[str, ...] = PATH_ARGUMENTS
    min_tokens: int = 60

    def propose(self, context: PlanningContext) -> Iterator[CompactionProposal]:
        """Propose to clear stale reads, oldest first; found from the newest result backwards."""
        read_again: dict[tuple[str, str], str] = {}
        edited: dict[str, str] = {}
        stale: list[CompactionProposal] = []
        for index in sorted(context.answered, reverse=True):
            call, message = context.answered[index], context.messages[index]
            message_id, has_failed = message.id, bool(failure_line(message.text, call))
            if self._is_read(call):
                reason = self._staleness(call, path_of(call, self.path_arguments), read_again, edited)
                if reason and self._may_clear(context, index):
                    record = ClearRecord(span=SpanReference((message_id,)), strategy=self.name, reason=reason)
                    stale.append(CompactionProposal(record))
                if not has_failed:
                    read_again.setdefault((call.name, call.arguments), message_id)
            elif not has_failed:
                for path in files_changed(call, self.writes, self.path_arguments):
                    edited.setdefault(path, message_id)
        yield from reversed(stale)

    def _staleness(
        self, call: ToolCall, path: str | None, read_again: Mapping[tuple[str, str], str], edited: Mapping[str, str]
    ) -> str | None:
        later = read_again.get((call.name, call.arguments))
        if later:
            return f"{call.name} was called again, see {later}"
        edit = edited.get(path or "")
        return f"{path} was edited later, in {edit}" if edit else None

    def _may_clear(self, context: PlanningContext, index: int) -> bool:
        kept = index in context.layers.pinned or index in context.layers.tool_io
        untouched = context.plan.get_action(context.messages[index].id)[1] is None
        return not kept and untouched and context.tokens[index] >= self.min_tokens

    def _is_read(self, call: ToolCall) -> bool:
        return fits_name(call.name, self.reads)
