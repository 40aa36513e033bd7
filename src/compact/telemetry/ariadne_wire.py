"""Events as Ariadne's viewer, and ours, read them: a trace for each session, a span for each event and operation.

What the wire does not know it drops without a word, so everything that an event says stands in `data`, and the text
to read in `data.output`. Times end in `Z`; what has no value is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from compact.core.engine.events import (
    CompactionCompletedEvent,
    CompactionErrorEvent,
    CompactionEvent,
    ContentRecalledEvent,
    HistoryRepairedEvent,
    NoticeEvent,
    OperationEndedEvent,
    OperationStartedEvent,
    SummarizerCallEvent,
    SummaryCreatedEvent,
    TriggerDecisionEvent,
    VersionConflictEvent,
)
from compact.telemetry.fitting import cut_text, fitted, to_json
from compact.telemetry.worker import Outgoing

# The server cuts texts at 102,400 characters and refuses bodies over 262,144 bytes; both leave room for the rest.
MAX_TEXT = 100_000
MAX_EVENT_BYTES = 200_000
MAX_BODY_BYTES = 256_000
_MAX_NAME = 1_000
# What happened outside of any session.
_NO_SESSION = "compact"
# They stand in the span itself.
_ON_THE_SPAN = frozenset({"event_id", "parent_id", "started_at", "ended_at"})


def trace_of(outgoing: Outgoing) -> dict[str, Any]:
    """The trace that a session is; its name is not redacted, the caller's metadata is."""
    event = outgoing.event
    session = event.session_id or _NO_SESSION
    trace = {
        "type": "trace",
        "trace_id": session,
        "name": cut_text(session, _MAX_NAME),
        "started_at": wire_time(event.started_at),
    }
    metadata = {str(name): cut_text(str(value), _MAX_NAME) for name, value in outgoing.data["metadata"].items()}
    return {**trace, "metadata": metadata} if metadata else trace


def span_of(outgoing: Outgoing) -> tuple[dict[str, Any], bool]:
    """The span of an event, and whether anything in it had to be cut."""
    event = outgoing.event
    data, is_cut = fitted(data_of(event, outgoing.data), max_text=MAX_TEXT, max_bytes=MAX_EVENT_BYTES)
    span: dict[str, Any] = {
        "type": "span",
        "trace_id": event.session_id or _NO_SESSION,
        "span_id": event.event_id,
        "kind": _kind(event),
        "name": _name(event),
        "started_at": wire_time(event.started_at),
        "data": data,
    }
    if event.parent_id:
        span["parent_id"] = event.parent_id
    if not isinstance(event, OperationStartedEvent):  # an operation stays open until its end is sent
        span["ended_at"] = wire_time(max(event.started_at, event.ended_at))
        span["status"] = "error" if is_error(event) else "ok"
    return span, is_cut


def data_of(event: CompactionEvent, told: Mapping[str, Any]) -> dict[str, Any]:
    """What an event says, with how long it took, and the text to read as `output`."""
    data = {name: value for name, value in told.items() if name not in _ON_THE_SPAN and value is not None}
    data["duration_seconds"] = round(event.duration_seconds, 6)
    if not data.get("metadata"):
        data.pop("metadata", None)
    output = _output(event, data)
    return {**data, "output": output} if output else data


def _output(event: CompactionEvent, data: Mapping[str, Any]) -> str:
    """The text that somebody wants to read first, made of what is redacted already."""
    match event:
        case SummaryCreatedEvent():
            return str(data["summary"])
        case CompactionErrorEvent():
            return f"{data['error_type']}: {data['message']}\nfallback: {data['fallback']}"
        case NoticeEvent() | VersionConflictEvent():
            return str(data["message"])
        case TriggerDecisionEvent():
            return str(data["reason"])
        case CompactionCompletedEvent():
            return f"{data['tokens_before']:,} → {data['tokens_after']:,} tokens: {data['reason']}"
        case HistoryRepairedEvent():
            return "\n".join(map(str, data["repairs"]))
        case ContentRecalledEvent():
            return str(data["query"])
        case _:
            return ""


def is_error(event: CompactionEvent) -> bool:
    """True if it is to be shown as one."""
    match event:
        case CompactionErrorEvent():
            return True
        case OperationEndedEvent():
            return event.status == "error"
        case SummarizerCallEvent():
            return bool(event.error_type)
        case _:
            return False


def _kind(event: CompactionEvent) -> str:
    match event:
        case OperationStartedEvent() | OperationEndedEvent():
            return "operation"
        case SummarizerCallEvent():
            return "generation"
        case _:
            return "event"


def _name(event: CompactionEvent) -> str:
    """An operation has one name from its beginning to its end."""
    if isinstance(event, OperationStartedEvent | OperationEndedEvent):
        return f"compact.{event.operation}"
    return event.name


def wire_time(seconds: float) -> str:
    """ISO 8601 with `Z`: no other offset is taken."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def bodies(events: Iterable[Mapping[str, Any]], *, max_bytes: int = MAX_BODY_BYTES) -> Iterator[tuple[bytes, int]]:
    """Requests that each stay below the limit, in order, and how many spans are in each."""
    parts: list[bytes] = []
    size = spans = 0
    for event in events:
        part = to_json(event)
        if parts and size + len(part) + 1 > max_bytes:
            yield _body(parts), spans
            parts, size, spans = [], 0, 0
        parts.append(part)
        size += len(part) + 1
        spans += event["type"] == "span"
    if parts:
        yield _body(parts), spans


def _body(parts: list[bytes]) -> bytes:
    return b'{"batch":[' + b",".join(parts) + b"]}"
