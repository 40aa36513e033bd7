"""Clear what is provably stale: a read that was repeated later, or whose file was edited since.

With `near_duplicates`, also a result that a later one of the same tool repeats almost word for word: the lines in which
it differs stay.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from compact.core.facts.outcomes import failure_of
from compact.core.facts.tool_calls import PATH_ARGUMENTS, READS, WRITES, files_changed, fits_name, path_of
from compact.core.json_data import is_list
from compact.core.messages.message import ToolCall
from compact.core.plan.durability import ToolDurabilityPolicy, envelope, tool_policies
from compact.core.plan.plan import ClearRecord, SpanReference
from compact.core.plan.strategy import CompactionProposal, PlanningContext
from compact.core.plurals import quantity
from compact.strategies.near_duplicates import LaterTexts


@dataclass(frozen=True, slots=True, kw_only=True)
class DeduplicateStrategy:
    """The newest copy of what was read stays; `reads` and `writes` are patterns of tool names.

    Of a near duplicate at least `min_similarity` is in the later result, by characters and in the same order. Results
    that may never be cleared (`never_evict`, `policies`) stay.
    """

    name: str = "deduplicate"
    reads: tuple[str, ...] = READS
    writes: tuple[str, ...] = WRITES
    path_arguments: tuple[str, ...] = PATH_ARGUMENTS
    min_tokens: int = 60
    near_duplicates: bool = False
    min_similarity: float = 0.8  # chosen: below it the lines that differ say less than the whole
    never_evict: tuple[str, ...] = ()
    policies: Mapping[str, ToolDurabilityPolicy] = field(default_factory=dict[str, ToolDurabilityPolicy])

    def propose(self, context: PlanningContext) -> Iterator[CompactionProposal]:
        """Propose to clear stale reads, oldest first; found from the newest result backwards."""
        read_again: dict[tuple[str, str], str] = {}
        edited: dict[str, str] = {}
        later: dict[str, LaterTexts] = {}
        stale: list[CompactionProposal] = []
        for index in context.newest_results:
            call, message = context.answered[index], context.messages[index]
            message_id, has_failed = message.id, bool(failure_of(message, call))
            reason = self._staleness(call, read_again, edited) if self._is_read(call) else None
            if reason and self._may_clear(context, index):
                record = ClearRecord(span=SpanReference((message_id,)), strategy=self.name, reason=reason)
                stale.append(CompactionProposal(record))
            elif self.near_duplicates and self._is_whole(context, index):
                texts = later.setdefault(call.name, LaterTexts(self.min_similarity))
                record = self._near_duplicate(context, index, texts)
                if record:
                    stale.append(CompactionProposal(record))
                else:
                    texts.add(message_id, message.text)
            if self._is_read(call):
                if not has_failed:
                    read_again.setdefault((call.name, call.arguments), message_id)
            elif not has_failed:
                for path in files_changed(call, self.writes, self.path_arguments):
                    edited.setdefault(path, message_id)
        yield from reversed(stale)

    def _staleness(
        self, call: ToolCall, read_again: Mapping[tuple[str, str], str], edited: Mapping[str, str]
    ) -> str | None:
        later = read_again.get((call.name, call.arguments))
        if later:
            return f"{call.name} was called again, see {later}"
        path = path_of(call, self.path_arguments)
        edit = edited.get(path or "")
        return f"{path} was edited later, in {edit}" if edit else None

    def _near_duplicate(self, context: PlanningContext, index: int, later: LaterTexts) -> ClearRecord | None:
        """Return a record that leaves of a result only what a later one does not have; None if there is no such."""
        message, call = context.messages[index], context.answered[index]
        # Two results whose pictures differ may have the same text.
        is_text = all("text" in part for part in message.content) if is_list(message.content) else True
        found = later.find(message.text) if is_text and self._may_clear(context, index) else None
        if found is None:
            return None
        but_for = ", but for what is kept here" if found.differing else ""
        added = f", with {quantity(found.added_pieces, 'line')} between not here" if found.added_pieces else ""
        return ClearRecord(
            span=SpanReference((message.id,)),
            strategy=self.name,
            reason=f"the later {call.name} result {found.later_id} has the same{but_for}{added}",
            kept=found.differing,
        )

    def _is_whole(self, context: PlanningContext, index: int) -> bool:
        untouched = context.plan.get_action(context.messages[index].id)[1] is None
        return untouched and context.tokens[index] >= self.min_tokens

    def _may_clear(self, context: PlanningContext, index: int) -> bool:
        if index in context.layers.pinned or index in context.layers.tool_io or not self._is_whole(context, index):
            return False
        call, policies = context.answered[index], tool_policies(self.never_evict, self.policies)
        message = context.messages[index]
        return envelope(message, tool_name=call.name, arguments=call.arguments, policies=policies).may_clear

    def _is_read(self, call: ToolCall) -> bool:
        return fits_name(call.name, self.reads)
