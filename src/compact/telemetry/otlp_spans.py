"""Events as OpenTelemetry spans: one `compact` for each call, what happened in it as its events, model calls below it.

The names of the GenAI conventions are still moving and have no package of constants, so they stand here.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, cast

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import NonRecordingSpan, Span, SpanContext, SpanKind, Status, StatusCode, Tracer

from compact.core.engine.events import (
    CompactionCompletedEvent,
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
from compact.core.facts.text import encodable
from compact.core.json_data import is_list
from compact.telemetry.truncation import to_json_value
from compact.telemetry.worker import OutgoingEvent

# Chosen: the end of an operation may have been dropped; of more than these, the oldest are ended.
_MAX_OPEN = 1000
# Chosen: a summary fits, and a batch of spans stays small.
_MAX_TEXT, _MAX_ITEMS = 20_000, 100
# Fields that stand on the span itself.
_SPAN_FIELDS = frozenset({"event", "session_id", "event_id", "parent_id", "started_at", "ended_at", "metadata"})
Attributes = dict[str, Any]


class SpanTree:
    """Starts and ends spans at the times of the events."""

    def __init__(self, tracer: Tracer, *, content: bool) -> None:
        self._tracer, self._content = tracer, content
        # Operations within an operation lead to the same span.
        self._open: OrderedDict[str, Span] = OrderedDict()

    def add(self, outgoing: OutgoingEvent) -> None:
        """Add one event."""
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
                self._add_event(event, outgoing)

    def close(self) -> None:
        """End what is still open."""
        while self._open:
            self._open.popitem(last=False)[1].end()

    def _start(self, event: OperationStartedEvent, outgoing: OutgoingEvent) -> None:
        span = self._open.get(event.parent_id)
        if span is None:
            attributes = {
                **_about(event, "compact", "CHAIN"),
                "compaction.operation": event.operation,
                **{f"metadata.{name}": _json(value) for name, value in outgoing.data["metadata"].items()},
            }
            span = self._tracer.start_span(
                "compact",
                _below(outgoing.context),
                SpanKind.INTERNAL,
                _encodable(attributes),
                start_time=_ns(event.started_at),
            )
        self._open[event.event_id] = span
        if len(self._open) > _MAX_OPEN:
            oldest = self._open.popitem(last=False)[1]
            if oldest.is_recording():
                oldest.end()

    def _end(self, event: OperationEndedEvent) -> None:
        span = self._open.pop(event.event_id, None)
        if span is None:
            return
        if event.failure:  # of a part of the call as well: a summary that failed, though the call went on
            span.set_attribute("error.type", event.failure)
            span.set_status(Status(StatusCode.ERROR, f"{event.operation}: {event.failure}"))
        if event.parent_id in self._open:
            return
        span.set_attribute("compaction.duration_ms", round(event.duration_seconds * 1000, 3))
        span.set_attribute("compaction.plan_version", event.plan_version)
        span.end(_ns(event.ended_at))

    def _add_event(self, event: CompactionEvent, outgoing: OutgoingEvent) -> None:
        span = self._open.get(event.parent_id)
        attributes = self._event_attributes(event, outgoing.data)
        if span is not None:
            span.add_event(event.name, _encodable(attributes), _ns(event.ended_at))
            span.set_attributes(_encodable(self._call_attributes(event, outgoing.data)))
        elif event.session_id:
            attributes = {**_about(event, "compact", "CHAIN"), **attributes}
            span = self._start_short(event, event.name, SpanKind.INTERNAL, attributes, outgoing.context)
            if event.failure:
                span.set_status(Status(StatusCode.ERROR, event.failure))
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
        if event.failure:
            attributes["error.type"] = event.failure
        span = self._start_short(event, f"chat {event.model}", SpanKind.CLIENT, attributes, None)
        if event.failure:
            span.set_status(Status(StatusCode.ERROR, event.failure))
        span.end(_ns(event.ended_at))

    def _memory(self, event: ContentRecalledEvent | ContentRehydratedEvent, outgoing: OutgoingEvent) -> None:
        """Add a search of the log, or of the artifacts."""
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
            attributes["input.value"] = _json(outgoing.data["query"])
        self._start_short(event, f"search_memory {store}", SpanKind.INTERNAL, attributes, outgoing.context).end(
            _ns(event.ended_at)
        )

    def _start_short(
        self, event: CompactionEvent, name: str, kind: SpanKind, attributes: Attributes, context: object
    ) -> Span:
        parent = self._open.get(event.parent_id)
        below = trace.set_span_in_context(parent, Context()) if parent else _below(context)
        started = _ns(event.started_at)
        return self._tracer.start_span(encodable(name), below, kind, _encodable(attributes), start_time=started)

    def _call_attributes(self, event: CompactionEvent, data: Mapping[str, Any]) -> Attributes:
        """Return what an event says about the call that it is a part of."""
        match event:
            case TokenEstimateEvent():
                return {
                    "gen_ai.request.model": event.model,
                    "compaction.before.tokens": event.t_est,
                    "input.value": f"{event.t_est:,} of {event.max_tokens:,} tokens",
                }
            case TriggerDecisionEvent():
                strategy = str(event.policy.get("strategy", ""))
                decision = {"compaction.triggered": event.triggered, "compaction.reason": str(data["reason"])}
                return {**decision, **({"compaction.strategy": strategy} if strategy else {})}
            case CompactionCompletedEvent():
                return {
                    "compaction.before.tokens": event.tokens_before,
                    "compaction.after.tokens": event.tokens_after,
                    "compaction.before.messages": event.messages_before,
                    "compaction.after.messages": event.messages_after,
                    **({} if self._content else {"output.value": f"{event.tokens_after:,} tokens"}),
                }
            case SummaryCreatedEvent() if self._content:
                part = {"type": "compaction", "id": event.event_id, "content": _json(data["summary"])}
                messages = [{"role": "assistant", "parts": [part]}]
                return {
                    "output.value": _json(data["summary"]),
                    "gen_ai.input.messages": json.dumps(messages, ensure_ascii=False),
                }
            case _:
                return {}

    def _event_attributes(self, event: CompactionEvent, data: Mapping[str, Any]) -> Attributes:
        """Return the fields of an event; of content that may not leave, how many items there are."""
        attributes: Attributes = {}
        for name, value in data.items():
            if name in _SPAN_FIELDS:
                continue
            if self._content or name not in event.spec.content:
                _flatten(name, _json(value), attributes)
            elif isinstance(value, list | tuple):
                attributes[f"{name}.count"] = len(cast("list[Any]", value))
        return attributes


def mark_compacted(span: Span) -> None:
    """Mark the span of a model call: its prompt was compacted."""
    if span.is_recording():
        span.set_attribute("gen_ai.conversation.compacted", True)


def is_model_call(span: Span) -> bool:
    """Return True for a span that is one by the names of the GenAI conventions."""
    attributes: Mapping[str, Any] = getattr(span, "attributes", None) or {}
    return attributes.get("gen_ai.operation.name") in ("chat", "generate_content")


def _about(event: CompactionEvent, operation: str, openinference_kind: str) -> Attributes:
    return {
        "gen_ai.operation.name": operation,
        "gen_ai.conversation.id": event.session_id,
        "session.id": event.session_id,
        "openinference.span.kind": openinference_kind,
    }


def _below(context: object) -> Context:
    """Return the place below the span that was current for the agent, whatever is current in this thread."""
    if isinstance(context, SpanContext) and context.is_valid:
        return trace.set_span_in_context(NonRecordingSpan(context), Context())
    return Context()


def _ns(seconds: float) -> int:
    return int(seconds * 1_000_000_000)


def _json(value: Any) -> Any:
    return to_json_value(value, max_text=_MAX_TEXT, max_items=_MAX_ITEMS)


def _encodable(attributes: Attributes) -> Attributes:
    """Return attributes that can be sent; the SDK would leave out those that cannot."""

    def clean(value: Any) -> Any:
        return encodable(value) if isinstance(value, str) else value

    return {
        encodable(name): [clean(item) for item in value] if is_list(value) else clean(value)
        for name, value in attributes.items()
    }


def _flatten(name: str, value: Any, into: Attributes) -> None:
    """Add a value as attributes, which know no nesting: `policy.trigger_pct`."""
    if isinstance(value, dict):
        for key, item in cast("dict[str, Any]", value).items():
            _flatten(f"{name}.{key}", item, into)
    elif isinstance(value, list):
        into[name] = list(map(str, cast("list[Any]", value)))
    elif value is not None:
        into[name] = value
