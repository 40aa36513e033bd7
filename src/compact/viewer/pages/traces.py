"""Traces: the list of them, and one with its spans."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from compact.core.audit.trace_events import StoredEvent
from compact.core.engine.events import CompactionEventType
from compact.viewer.json_http import HttpError
from compact.viewer.source import DataSource

# Chosen: more spans than are looked through at once; earlier ones are read when they are asked for.
_MAX_SPANS = 5_000
_MAX_SESSIONS = 20
# Chosen: what happened after a span, and the operation it belongs to, which is written when it ends.
_SPANS_BEHIND = 100
_COMPLETED = CompactionEventType.COMPLETED.value


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceQuery:
    """Which traces to list: of a session, with errors, and which page of them."""

    session_id: str = ""
    with_errors: bool = False
    offset: int = 0
    limit: int = 50


def traces_page(source: DataSource, query: TraceQuery) -> dict[str, Any]:
    """Return a page of traces, the one updated last first; `more` says that there are others behind it."""
    found = source.events.traces(
        session_id=query.session_id, with_errors=query.with_errors, offset=query.offset, limit=query.limit + 1
    )
    traces = [{**info.to_dict(), "sessions": list(info.sessions[:_MAX_SESSIONS])} for info in found[: query.limit]]
    return {"traces": traces, "more": len(found) > query.limit}


def compaction_span(source: DataSource, session_id: str, version: int) -> dict[str, Any] | None:
    """Return where a compaction stands in the traces: its trace, its span, and the number to read it by."""
    for event in reversed(source.events.named(session_id, _COMPLETED)):
        if event.event().get("data", {}).get("plan_version") == version:
            return {"trace_id": event.trace_id, "span_id": event.span_id, "before": event.number + _SPANS_BEHIND}
    return None


def trace_page(source: DataSource, trace_id: str, *, before: int | None = None) -> dict[str, Any]:
    """Return one trace with its newest spans, or those before the one with a number."""
    info = source.events.trace(trace_id)
    if info is None:
        raise HttpError(404, "there is no such trace", "the oldest traces are removed for new ones")
    spans = source.events.spans(trace_id, before=before, limit=_MAX_SPANS)
    return {
        **info.to_dict(),
        "sessions": list(info.sessions[:_MAX_SESSIONS]),
        "spans_total": info.spans,
        "errors_total": info.errors,
        "spans": sorted((_span(span) for span in spans), key=_start_order),
        "earlier": spans[0].number if len(spans) == _MAX_SPANS else None,
    }


def _span(event: StoredEvent) -> dict[str, Any]:
    return {**event.to_dict(), "start": event.started_at or event.received_at}


def _start_order(span: Mapping[str, Any]) -> tuple[float, float]:
    return span["start"], span["received_at"]
