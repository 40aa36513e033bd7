"""Events as OpenTelemetry spans: one `compact` for each call, what happened in it as its events, model calls below it.

The names of the GenAI conventions are still moving and have no package of constants, so they stand here.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import NonRecordingSpan, Span, SpanContext, SpanKind, Status, StatusCode, Tracer

from compact.core.engine.events import (
    CompactionCompletedEvent,
    CompactionErrorEvent,
    CompactionEvent,
    ContentRecalledEvent,
    ContentRehydratedEvent,
    OperationEndedEvent,
    OperationStartedEvent,
    SummarizerCallEvent,
    SummaryCreatedEvent,
    TokenEstimateEvent,
    TriggerDecisionEvent,
)
from compact.telemetry.fitting import plain
from compact.telemetry.worker import Outgoing

# Of an operation whose end was dropped nothing more is heard.
_MOST_OPEN = 1000
_MAX_TEXT, _MAX_ITEMS = 20_000, 100
_NOT_TOLD = frozenset({"event", "session_id", "event_id", "parent_id", "started_at", "ended_at", "metadata"})
# What people and models wrote; only for those who ask for it.
_CONTENT = frozenset({"summary", "query", "note", "missing_constraints"})
Attributes = dict[str, Any]


class SpanTree:
    """Starts and ends spans as events tell, at the times they tell."""

    def __init__(self, tracer: Tracer, *, content: bool) -> None:
        self._tracer, self._content = tracer, content
        # Operations within an operation lead to the same span.
        self._open: OrderedDict[str, Span] = OrderedDict()

    def add(self, outgoing: Outgoing) -> None:
        """Tell one event."""
        match outgoing.event:
            case OperationStartedEvent() as event:
                self._start(event, outgoing)
            case OperationEndedEvent() as event:
                self._end(event)
            case SummarizerCallEvent() as event:
                self._model_call(event)
            case ContentRecalledEvent() | ContentRehydratedEvent() as event:
                self._memory(event, outgoing)
            case event:
                self._happened(event, outgoing)

    def close(self) -> None:
        """End what is still open."""
        while self._open:
            self._open.popitem(last=False)[1].end()

    def _start(self, event: OperationStartedEvent, outgoing: Outgoing) -> None:
        span = self._open.get(event.parent_id)
        if span is None:
            attributes = {
                **_about(event, "compact", "CHAIN"),
                "compaction.operation": event.operation,
                **{f"metadata.{name}": _plain(value) for name, value in outgoing.data["metadata"].items()},
            }
            span = self._tracer.start_span(
                "compact", _context(outgoing.seen), SpanKind.INTERNAL, attributes, start_time=_ns(event.started_at)
            )
        self._open[event.event_id] = span
        if len(self._open) > _MOST_OPEN:
            oldest = self._open.popitem(last=False)[1]
            if oldest.is_recording():
                oldest.end()

    def _end(self, event: OperationEndedEvent) -> None:
        span = self._open.pop(event.event_id, None)
        if span is None or event.parent_id in self._open:
            return
        span.set_attribute("compaction.duration_ms", round(event.duration_seconds * 1000, 3))
        span.set_attribute("compaction.plan_version", event.plan_version)
        if event.status == "error":
            span.set_attribute("error.type", event.error_type)
            span.set_status(Status(StatusCode.ERROR, event.error_type))
        span.end(_ns(event.ended_at))

    def _happened(self, event: CompactionEvent, outgoing: Outgoing) -> None:
        span = self._open.get(event.parent_id)
        told = self._told(outgoing.data)
        if span is not None:
            span.add_event(event.name, told, _ns(event.ended_at))
            span.set_attributes(self._said_of_the_whole(event, outgoing.data))
        elif event.session_id:
            attributes = {**_about(event, "compact", "CHAIN"), **told}
            span = self._short(event, event.name, SpanKind.INTERNAL, attributes, outgoing.seen)
            if isinstance(event, CompactionErrorEvent):
                span.set_status(Status(StatusCode.ERROR, event.error_type))
            span.end(_ns(event.ended_at))

    def _model_call(self, event: SummarizerCallEvent) -> None:
        attributes = {
            **_about(event, "chat", "LLM"),
            "gen_ai.request.model": event.model,
            "gen_ai.usage.input_tokens": event.input_tokens,
            "gen_ai.usage.output_tokens": event.output_tokens,
            "llm.model_name": event.model,
            "llm.token_count.prompt": event.input_tokens,
            "llm.token_count.completion": event.output_tokens,
        }
        if event.provider:
            attributes["gen_ai.provider.name"] = event.provider
        if event.cache_read_tokens:
            attributes["gen_ai.usage.cache_read.input_tokens"] = event.cache_read_tokens
        if event.error_type:
            attributes["error.type"] = event.error_type
        span = self._short(event, f"chat {event.model}", SpanKind.CLIENT, attributes, None)
        if event.error_type:
            span.set_status(Status(StatusCode.ERROR, event.error_type))
        span.end(_ns(event.ended_at))

    def _memory(self, event: ContentRecalledEvent | ContentRehydratedEvent, outgoing: Outgoing) -> None:
        """What was asked for again: of the log, or of the artifacts."""
        is_recall = isinstance(event, ContentRecalledEvent)
        ids = event.message_ids if is_recall else (event.artifact_id,)
        store = "compact.log" if is_recall else "compact.artifacts"
        attributes = {
            **_about(event, "search_memory", "RETRIEVER"),
            "gen_ai.memory.store.id": store,
            "gen_ai.memory.record.id": list(ids[:_MAX_ITEMS]),
            "gen_ai.memory.record.count": len(ids),
        }
        if is_recall and self._content:
            attributes["input.value"] = _plain(outgoing.data["query"])
        self._short(event, f"search_memory {store}", SpanKind.INTERNAL, attributes, outgoing.seen).end(
            _ns(event.ended_at)
        )

    def _short(self, event: CompactionEvent, name: str, kind: SpanKind, attributes: Attributes, seen: object) -> Span:
        above = self._open.get(event.parent_id)
        context = trace.set_span_in_context(above, Context()) if above else _context(seen)
        return self._tracer.start_span(name, context, kind, attributes, start_time=_ns(event.started_at))

    def _said_of_the_whole(self, event: CompactionEvent, data: Mapping[str, Any]) -> Attributes:
        """What an event says of the call it happened in."""
        match event:
            case TokenEstimateEvent():
                return {
                    "gen_ai.request.model": event.model,
                    "compaction.before.tokens": event.t_est,
                    "input.value": f"{event.t_est:,} of {event.max_tokens:,} tokens",
                }
            case TriggerDecisionEvent():
                strategy = str(event.policy.get("strategy", ""))
                said = {"compaction.triggered": event.triggered, "compaction.reason": str(data["reason"])}
                return {**said, **({"compaction.strategy": strategy} if strategy else {})}
            case CompactionCompletedEvent():
                return {
                    "compaction.before.tokens": event.tokens_before,
                    "compaction.after.tokens": event.tokens_after,
                    "compaction.before.messages": event.messages_before,
                    "compaction.after.messages": event.messages_after,
                    **({} if self._content else {"output.value": f"{event.tokens_after:,} tokens"}),
                }
            case SummaryCreatedEvent() if self._content:
                part = {"type": "compaction", "id": event.event_id, "content": _plain(data["summary"])}
                messages = [{"role": "assistant", "parts": [part]}]
                return {
                    "output.value": _plain(data["summary"]),
                    "gen_ai.input.messages": json.dumps(messages, ensure_ascii=False),
                }
            case _:
                return {}

    def _told(self, data: Mapping[str, Any]) -> Attributes:
        left_out = _NOT_TOLD if self._content else _NOT_TOLD | _CONTENT
        told: Attributes = {}
        for name, value in data.items():
            if name not in left_out:
                _flatten(name, _plain(value), told)
            elif name == "missing_constraints":
                told[f"{name}.count"] = len(value)
        return told


def mark_compacted(span: Span) -> None:
    """Tell on the span of a model call that its prompt was compacted."""
    if span.is_recording():
        span.set_attribute("gen_ai.conversation.compacted", True)


def is_model_call(span: Span) -> bool:
    """True if it says so itself, by the names of the GenAI conventions."""
    attributes: Mapping[str, Any] = getattr(span, "attributes", None) or {}
    return attributes.get("gen_ai.operation.name") in ("chat", "generate_content")


def _about(event: CompactionEvent, operation: str, openinference_kind: str) -> Attributes:
    return {
        "gen_ai.operation.name": operation,
        "gen_ai.conversation.id": event.session_id,
        "session.id": event.session_id,
        "openinference.span.kind": openinference_kind,
    }


def _context(seen: object) -> Context:
    """Below the span that was current where it happened; nowhere else, whatever is current in this thread."""
    if isinstance(seen, SpanContext) and seen.is_valid:
        return trace.set_span_in_context(NonRecordingSpan(seen), Context())
    return Context()


def _ns(seconds: float) -> int:
    return int(seconds * 1_000_000_000)


def _plain(value: Any) -> Any:
    return plain(value, max_text=_MAX_TEXT, max_items=_MAX_ITEMS)


def _flatten(name: str, value: Any, into: Attributes) -> None:
    """Attributes know no nesting: `policy.trigger_pct`."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            _flatten(f"{name}.{key}", item, into)
    elif isinstance(value, list):
        into[name] = [str(item) for item in value]
    elif value is not None:
        into[name] = value
