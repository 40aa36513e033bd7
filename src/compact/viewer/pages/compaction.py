"""One compaction: before and after, message by message, with its price, its summary and what it lost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from compact.core.audit.cost import by_version
from compact.core.audit.failures import failures_data, plan_failures
from compact.core.audit.records import ModelCall, SessionInfo, StoredMessage
from compact.core.audit.report import CompactionReport
from compact.core.messages.message import Message
from compact.core.plan.plan import ClearRecord, CompactionAction, CompactionPlan, ExternalizationRecord, Record
from compact.core.plan.stubs import render_cleared, render_externalized
from compact.viewer.pages.session import entry_row, tool_names
from compact.viewer.pages.summary import summary_data
from compact.viewer.pages.traces import compaction_span
from compact.viewer.source import DataSource

REPORT_CHOICES = ("with", "without", "only")
_STATE_NAMES = {"kept": "kept", "in_ledger": "ledger", "retrievable": "retrievable", "lost": "lost"}
# Chosen: what a page can list, and what a row can show.
_MAX_ITEMS = 500
_TEXT_CHARS = 2_000
# Chosen: how many entries before a row are read to find the call that it answers, and how far apart two rows may be
# to be read at once.
_ENTRIES_BEFORE = 10
_MAX_GAP = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionQuery:
    """Which plan version to show, compared with which, and which of its rows.

    The loss report is slow for a long log: `report` is `with`, `without` or `only`.
    """

    version: int
    against: int | None = None
    offset: int = 0
    limit: int = 200
    only_changed: bool = True
    report: str = "with"


def compaction_page(source: DataSource, session_id: str, query: CompactionQuery) -> dict[str, Any]:
    """Return the change from one plan version to another."""
    info = source.info(session_id)
    entry = source.plan(info, query.version)
    previous = _previous_version(source, info, query.version)
    against = previous if query.against is None else query.against
    # What was lost and paid is known of the change that was made, not of any two versions.
    was_made = against == previous
    wants_report = query.report != "without" and query.version > 0 and was_made
    report = _report_data(source.report(info, query.version)) if wants_report else None
    if query.report == "only":
        return {"version": query.version, "against": against, "report": report}
    calls = source.calls(session_id)
    first_call = next((call for call in calls if call.plan_version >= query.version), None)
    before, plan = source.plan(info, against).plan, entry.plan
    rows = _MessageRows(source, info, before, plan, first_call)
    cost = by_version(source.cost(info, calls)).get(plan.version) if was_made else None
    return {
        "version": plan.version,
        "against": against,
        "at": entry.at,
        "reason": plan.reason,
        "restored_from": plan.origin,
        "tokens_before": plan.tokens_before,
        "tokens_after": plan.tokens_after,
        "messages_before": rows.messages_under(before),
        "messages_after": rows.messages_under(plan),
        "cost": cost.to_dict() if cost else None,
        "failures": failures_data(plan_failures(plan)),
        "seconds": plan.run.seconds if plan.run else None,
        "trace": compaction_span(source, session_id, plan.version),
        "versions": [0, *(listed.plan.version for listed in source.plans(info))],
        **rows.page(query),
        "summary": summary_data(plan),
        "report": report,
    }


def _previous_version(source: DataSource, info: SessionInfo, version: int) -> int:
    """Return the version that was in force before."""
    return max((e.plan.version for e in source.plans(info) if e.plan.version < version), default=0)


# -- message by message -------------------------------------------------------------------------------------------


class _MessageRows:
    """The messages of the log at the time of a compaction, with what two plans do to each."""

    def __init__(
        self,
        source: DataSource,
        info: SessionInfo,
        before: CompactionPlan,
        after: CompactionPlan,
        first_call: ModelCall | None,
    ) -> None:
        self._source, self._session_id = source, info.session_id
        self._before, self._after = before, after
        outline = source.store.outline(info.session_id)
        self._outline = outline[: first_call.last_seq] if first_call else outline

    def messages_under(self, plan: CompactionPlan) -> int:
        """Return how many messages a prompt of this log has under a plan."""
        absent = (CompactionAction.SUMMARIZE, CompactionAction.DROP)
        present = sum(plan.get_action(message_id)[0] not in absent for message_id, _ in self._outline)
        return present + (plan.summary is not None)

    def page(self, query: CompactionQuery) -> dict[str, Any]:
        """Return the rows of a page; `changed_total` counts those that the plans treat differently."""
        changed = [seq for seq, (message_id, _) in enumerate(self._outline, 1) if self._is_changed(message_id)]
        wanted: Sequence[int] = changed if query.only_changed else range(1, len(self._outline) + 1)
        page = wanted[query.offset : query.offset + query.limit]
        entries = {entry.seq: entry for entry in self._entries(page)}
        tools = tool_names(entry.message for entry in entries.values())
        is_changed = set(changed)
        rows = [self._row(entries[seq], tools, is_changed=seq in is_changed) for seq in page if seq in entries]
        return {"rows_total": len(wanted), "changed_total": len(changed), "rows": rows}

    def _entries(self, seqs: Sequence[int]) -> list[StoredMessage]:
        """Return these log entries, and a few before them: those made the calls that they answer."""
        entries: list[StoredMessage] = []
        for first, last in _ranges(seqs):
            start = max(0, first - 1 - _ENTRIES_BEFORE)
            entries += self._source.store.messages(self._session_id, after_seq=start, limit=last - start)
        return entries

    def _is_changed(self, message_id: str) -> bool:
        before, after = self._before.get_action(message_id)[1], self._after.get_action(message_id)[1]
        if before is None or after is None:
            return before is not after
        # The same message under a newer summary has not changed; the summary has. (Its span is long to compare, too.)
        return before.action is not after.action or (isinstance(after, ClearRecord) and before != after)

    def _row(self, entry: StoredMessage, tools: dict[str, str], *, is_changed: bool) -> dict[str, Any]:
        row, message = entry_row(entry, tools), entry.message
        before, after = self._before.get_action(message.id)[1], self._after.get_action(message.id)[1]
        tokens = row.pop("tokens")
        return {
            **row,
            "before": {"action": _action(before), "tokens": _tokens(before, tokens)},
            "after": {"action": _action(after), "tokens": _tokens(after, tokens), "text": _stub_text(message, after)},
            "by": after.strategy if after else "",
            "reason": after.reason if after else "",
            "changed": is_changed,
            "artifact_id": after.artifact_id if isinstance(after, ExternalizationRecord) else "",
        }


def _ranges(seqs: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the ranges of the log to read: entries that are near each other are read at once."""
    first = last = 0
    for seq in seqs:
        if first and seq - last > _MAX_GAP:
            yield first, last
            first = 0
        first, last = first or seq, seq
    if first:
        yield first, last


def _action(record: Record | None) -> str:
    return record.action.value if record else CompactionAction.INCLUDE.value


def _tokens(record: Record | None, tokens: int) -> int:
    """Return what a message takes in the prompt; one that a summary stands for takes nothing of its own."""
    if record is None:
        return tokens
    return record.tokens_after if isinstance(record, ClearRecord | ExternalizationRecord) else 0


def _stub_text(message: Message, record: Record | None) -> str:
    """Return the stub that stands for a message, if there is one."""
    match record:
        case ClearRecord():
            cleared = render_cleared(message, record)
            text = cleared.text or ", ".join(f"{call.name}({call.arguments})" for call in cleared.tool_calls)
        case ExternalizationRecord():
            text = render_externalized(message, record).text
        case _:
            text = ""
    return text[:_TEXT_CHARS]


# -- the loss report ----------------------------------------------------------------------------------------------


def _report_data(report: CompactionReport | None) -> dict[str, Any] | None:
    if report is None:
        return None
    counts = {
        kind: {_STATE_NAMES[state]: count for state, count in states.items()} for kind, states in report.counts.items()
    }
    items = [
        {
            "text": item.text[:_TEXT_CHARS],
            "kind": item.kind,
            "where": _STATE_NAMES[item.state.value],
            "ids": [item.message_id] if item.message_id else [],
            "is_touched": item.is_touched,
        }
        for item in report.items[:_MAX_ITEMS]
    ]
    return {
        "counts": counts,
        "items": items,
        "items_total": len(report.items),
        "missing_constraints": [item.text for item in report.missing_constraints],
    }
