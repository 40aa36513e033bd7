"""Events as spans of the OpenAI Agents SDK, below the span in which the agent calls us."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from agents.tracing import Span, custom_span, get_current_trace

from compact.core.engine.event_spec import fill
from compact.core.engine.events import CompactionEvent, OperationEndedEvent, OperationStartedEvent
from compact.telemetry.truncation import to_json_value

# Chosen: an operation may never end; of more than these, the oldest are finished.
_MAX_OPEN = 1000
# Chosen: a summary fits, and a batch of spans stays small.
_MAX_TEXT, _MAX_ITEMS = 20_000, 100
# Fields that stand on the span itself.
_SPAN_FIELDS = frozenset({"event", "event_id", "parent_id", "started_at", "ended_at"})


class AgentsTracing:
    """Makes a custom span of each operation and each event, where a trace is current.

    The SDK's own processors send them, by default to OpenAI: secrets are removed before. An event whose data is slow to
    compute, `compact.report`, is left out, because the agent would wait for it.
    """

    def __init__(self, redact: Callable[[Any], Any] = lambda value: value, *, content: bool = False) -> None:
        self._redact, self._content = redact, content
        self._open: OrderedDict[str, Span[Any]] = OrderedDict()

    def __call__(self, event: CompactionEvent) -> None:
        if isinstance(event, OperationEndedEvent):
            self._end(event)
        elif isinstance(event, OperationStartedEvent):
            self._start(event)
        elif not event.spec.slow:
            self._add(event)

    def emit(self, event: CompactionEvent) -> None:
        """Do the same as a call."""
        self(event)

    def _start(self, event: OperationStartedEvent) -> None:
        parent = self._open.get(event.parent_id)
        if parent is None and get_current_trace() is None:
            return
        span = custom_span(f"compact.{event.operation}", self._data(event), parent=parent)
        span.start()
        self._open[event.event_id] = span
        if len(self._open) > _MAX_OPEN:
            self._open.popitem(last=False)[1].finish()

    def _end(self, event: OperationEndedEvent) -> None:
        span = self._open.pop(event.event_id, None)
        if span is None:
            return
        span.span_data.data.update(self._data(event))
        if event.failure:
            span.set_error({"message": event.failure, "data": None})
        span.finish()

    def _add(self, event: CompactionEvent) -> None:
        parent = self._open.get(event.parent_id)
        if parent is None and get_current_trace() is None:
            return
        data = self._data(event)
        span = custom_span(event.name, data, parent=parent)
        span.start()
        if event.failure:
            span.set_error({"message": fill(event.spec.output, data) or event.failure, "data": None})
        span.finish()

    def _data(self, event: CompactionEvent) -> dict[str, Any]:
        left_out = _SPAN_FIELDS if self._content else _SPAN_FIELDS.union(event.spec.content)
        data = {name: value for name, value in event.to_dict().items() if name not in left_out}
        data["duration_seconds"] = round(event.duration_seconds, 6)
        return to_json_value(self._redact(data), max_text=_MAX_TEXT, max_items=_MAX_ITEMS)
