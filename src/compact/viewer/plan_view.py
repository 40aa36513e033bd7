"""One compaction: before and after, message by message, with its price, its summary and what it lost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from compact.core.audit.records import ModelCall, SessionInfo, StoredMessage
from compact.core.audit.report import CompactionReport
from compact.core.log.messages import Message
from compact.core.plan.plan import ClearRecord, CompactionAction, CompactionPlan, ExternalizationRecord, Record
from compact.core.plan.stubs import render_cleared, render_externalization_text
from compact.viewer.price_view import price_view
from compact.viewer.session_view import about, tool_names
from compact.viewer.source import Source
from compact.viewer.summary_view import summary_view

REPORTS = ("with", "without", "only")
_MOST_ITEMS = 500
_AFTER_CHARS = 2_000
_BACK = 10
_GAP = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Which step is to be shown, and which of its rows; `report` is slow for a long log and can be had on its own."""

    version: int
    against: int | None = None
    offset: int = 0
    limit: int = 200
    only_changed: bool = True
    report: str = "with"


def plan_page(source: Source, session_id: str, asked: Asked) -> dict[str, Any]:
    """The step from one plan to another."""
    info = source.info(session_id)
    entry = source.plan(info, asked.version)
    usual = _version_before(source, info, asked.version)
    against = usual if asked.against is None else asked.against
    report = _report(source.report(info, asked.version)) if _wants_report(asked, usual, against) else None
    if asked.report == "only":
        return {"version": asked.version, "against": against, "report": report}
    calls = source.calls(session_id)
    first = next((call for call in calls if call.plan_version >= asked.version), None)
    before, plan = source.plan(info, against).plan, entry.plan
    rows = _Rows(source, info, before, plan, first)
    return {
        "version": plan.version,
        "against": against,
        "at": entry.at,
        "reason": plan.reason,
        "restored_from": plan.origin,
        "tokens_before": plan.tokens_before,
        "tokens_after": plan.tokens_after,
        "messages_before": rows.shown_under(before),
        "messages_after": rows.shown_under(plan),
        "economics": source.priced(info, plan, lambda: price_view(source, info, calls, plan))
        if against == usual
        else None,
        **rows.page(asked),
        "summary": summary_view(plan),
        "report": report,
    }


def _version_before(source: Source, info: SessionInfo, version: int) -> int:
    """The version that was in force until then."""
    return max((e.plan.version for e in source.plans(info) if e.plan.version < version), default=0)


def _wants_report(asked: Asked, usual: int, against: int) -> bool:
    """What was lost is told of the step that was made, not of others."""
    return asked.report != "without" and asked.version > 0 and against == usual


class _Rows:
    """The messages of a step, as the log was when it was made."""

    def __init__(
        self, source: Source, info: SessionInfo, before: CompactionPlan, after: CompactionPlan, first: ModelCall | None
    ) -> None:
        self._source, self._session_id = source, info.session_id
        self._before, self._after = before, after
        outline = source.store.outline(info.session_id)
        self._outline = outline[: first.last_seq] if first else outline

    def shown_under(self, plan: CompactionPlan) -> int:
        """How many messages a prompt of this log has under a plan."""
        unseen = (CompactionAction.SUMMARIZE, CompactionAction.DROP)
        shown = sum(plan.get_action(message_id)[0] not in unseen for message_id, _ in self._outline)
        return shown + (plan.summary is not None)

    def page(self, asked: Asked) -> dict[str, Any]:
        """The rows that were asked for; `changed_total` counts those that the step changed."""
        changed = [seq for seq, (message_id, _) in enumerate(self._outline, 1) if self._is_changed(message_id)]
        wanted: Sequence[int] = changed if asked.only_changed else range(1, len(self._outline) + 1)
        page = wanted[asked.offset : asked.offset + asked.limit]
        entries = {entry.seq: entry for entry in self._entries(page)}
        tools = tool_names(entry.message for entry in entries.values())
        is_changed = set(changed)
        rows = [self._row(entries[seq], tools, is_changed=seq in is_changed) for seq in page if seq in entries]
        return {"rows_total": len(wanted), "changed_total": len(changed), "rows": rows}

    def _entries(self, places: Sequence[int]) -> list[StoredMessage]:
        """The log entries at these places, and a few before them: those made the calls that they answer."""
        entries: list[StoredMessage] = []
        for first, last in _runs(places):
            start = max(0, first - 1 - _BACK)
            entries += self._source.store.messages(self._session_id, after_seq=start, limit=last - start)
        return entries

    def _is_changed(self, message_id: str) -> bool:
        before, after = self._before.get_action(message_id)[1], self._after.get_action(message_id)[1]
        if before is None or after is None:
            return before is not after
        # The same message under a newer summary has not changed; the summary has. (Its span is long to compare, too.)
        return before.action is not after.action or (isinstance(after, ClearRecord) and before != after)

    def _row(self, entry: StoredMessage, tools: dict[str, str], *, is_changed: bool) -> dict[str, Any]:
        known, message = about(entry, tools), entry.message
        before, after = self._before.get_action(message.id)[1], self._after.get_action(message.id)[1]
        tokens = known.pop("tokens")
        return {
            **known,
            "before": {"action": _action(before), "tokens": _tokens(before, tokens)},
            "after": {"action": _action(after), "tokens": _tokens(after, tokens), "text": _text(message, after)},
            "by": after.strategy if after else "",
            "reason": after.reason if after else "",
            "changed": is_changed,
            "artifact_id": after.artifact_id if isinstance(after, ExternalizationRecord) else "",
        }


def _runs(places: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Where to read from and to: places that are not far from each other are read at once."""
    first = last = 0
    for place in places:
        if first and place - last > _GAP:
            yield first, last
            first = 0
        first, last = first or place, place
    if first:
        yield first, last


def _action(record: Record | None) -> str:
    return record.action.value if record else CompactionAction.INCLUDE.value


def _tokens(record: Record | None, tokens: int) -> int:
    """What a message takes in the prompt; one that others share a summary with takes nothing of its own."""
    if record is None:
        return tokens
    return record.tokens_after if isinstance(record, ClearRecord | ExternalizationRecord) else 0


def _text(message: Message, record: Record | None) -> str:
    """What stands for a message."""
    match record:
        case ClearRecord():
            cleared = render_cleared(message, record)
            text = cleared.text or ", ".join(f"{call.name}({call.arguments})" for call in cleared.tool_calls)
        case ExternalizationRecord():
            text = render_externalization_text(record)
        case _:
            text = ""
    return text[:_AFTER_CHARS]


def _report(report: CompactionReport | None) -> dict[str, Any] | None:
    if report is None:
        return None
    words = {"kept": "kept", "in_ledger": "ledger", "retrievable": "retrievable", "lost": "lost"}
    counts = {kind: {words[state]: count for state, count in states.items()} for kind, states in report.counts.items()}
    items = [
        {
            "text": item.text[:_AFTER_CHARS],
            "kind": item.kind,
            "where": words[item.state.value],
            "ids": [item.message_id] if item.message_id else [],
            "is_touched": item.is_touched,
        }
        for item in report.items[:_MOST_ITEMS]
    ]
    return {
        "counts": counts,
        "items": items,
        "items_total": len(report.items),
        "missing_constraints": [item.text for item in report.missing_constraints],
    }
