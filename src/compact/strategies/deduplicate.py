"""Clears what is provably stale: a read that was repeated later, or whose file was edited since."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, cast

from compact.core.coordinator import CompactionProposal, PlanningContext
from compact.core.messages import ToolCall
from compact.core.plan import ClearRecord, SpanReference

_READS = ("read*", "view*", "cat*", "open*", "get_file*", "list*", "ls", "glob*", "grep*", "search*", "find*", "fetch*")
_WRITES = ("write*", "edit*", "str_replace*", "apply_patch*", "create_file*", "delete_file*", "move*", "multi_edit*")
_PATH_ARGUMENTS = ("path", "file_path", "filepath", "filename", "file", "target_file", "notebook_path", "absolute_path")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeduplicateStrategy:
    """The newest copy of what was read stays; `reads` and `writes` are patterns of tool names."""

    name: str = "deduplicate"
    reads: tuple[str, ...] = _READS
    writes: tuple[str, ...] = _WRITES
    path_arguments: tuple[str, ...] = _PATH_ARGUMENTS
    min_tokens: int = 60

    def propose(self, context: PlanningContext) -> Iterator[CompactionProposal]:
        """Walk back from the newest result, remembering what was read and written; propose oldest first."""
        read_again: dict[tuple[str, str], str] = {}
        edited: dict[str, str] = {}
        stale: list[CompactionProposal] = []
        for index in sorted(context.answered, reverse=True):
            call, message_id = context.answered[index], context.messages[index].id
            path = self._path(call)
            if self._is_read(call):
                reason = self._staleness(call, path, read_again, edited)
                if reason and self._may_clear(context, index):
                    record = ClearRecord(span=SpanReference((message_id,)), strategy=self.name, reason=reason)
                    stale.append(CompactionProposal(record))
                read_again.setdefault((call.name, call.arguments), message_id)
            elif path and _fits(call.name, self.writes):
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
        return _fits(call.name, self.reads)

    def _path(self, call: ToolCall) -> str | None:
        try:
            arguments = json.loads(call.arguments)
        except (ValueError, RecursionError):
            return None
        if not isinstance(arguments, dict):
            return None
        named = cast(dict[str, Any], arguments)
        return next((str(named[name]) for name in self.path_arguments if named.get(name)), None)


def _fits(tool_name: str, patterns: tuple[str, ...]) -> bool:
    lowered = tool_name.lower()
    return any(fnmatchcase(lowered, pattern) for pattern in patterns)
