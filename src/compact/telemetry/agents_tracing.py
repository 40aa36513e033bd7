"""Events as spans of the OpenAI Agents SDK, below the span in which the agent calls us."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from agents.tracing import Span, custom_span, get_current_trace

from compact.core.engine.events import (
    CompactionErrorEvent,
    CompactionEvent,
    CompactionReportEvent,
    OperationEndedEvent,
    OperationStartedEvent,
    SummarizerCallEvent,
)
from compact.telemetry.fitting import plain

# Of an operation whose end never came nothing more is heard.
_MOST_OPEN = 1000
_MAX_TEXT, _MAX_ITEMS = 20_000, 100
_ON_THE_SPAN = frozenset({"event", "event_id", "parent_id", "started_at", "ended_at"})
# What people and models wrote; only for those who ask for it.
_CONTENT = frozenset({"summary", "query", "note", "missing_constraints"})


class AgentsTracing:
    """A custom span for each operation and each event, where a trace is current; nothing is done elsewhere.

    The SDK's own processors send them, by default to OpenAI: secrets are taken out before they get them. What a
    compaction lost is not told here, because that is worked out, and the agent would wait for it.
    """

    def __init__(self, redact: Callable[[Any], Any] = lambda value: value, *, content: bool = False) -> None:
        self._redact, self._content = redact, content
        self._open: OrderedDict[str, Span[Any]] = OrderedDict()

    def __call__(self, event: CompactionEvent) -> None:
        if isinstance(event, OperationEndedEvent):
            self._end(event)
        elif isinstance(event, OperationStartedEvent):
            self._start(event)
        elif not isinstance(event, CompactionReportEvent):
            self._tell(event)

    def emit(self, event: CompactionEvent) -> None:
        """The same, by its other name."""
        self(event)

    def _start(self, event: OperationStartedEvent) -> None:
        above = self._open.get(event.parent_id)
        if above is None and get_current_trace() is None:
            return
        span = custom_span(f"compact.{event.operation}", self._data(event), parent=above)
        span.start()
        self._open[event.event_id] = span
        if len(self._open) > _MOST_OPEN:
            self._open.popitem(last=False)[1].finish()

    def _end(self, event: OperationEndedEvent) -> None:
        span = self._open.pop(event.event_id, None)
        if span is None:
            return
        span.span_data.data.update(self._data(event))
        if event.status == "error":
            span.set_error({"message": event.error_type, "data": None})
        span.finish()

    def _tell(self, event: CompactionEvent) -> None:
        above = self._open.get(event.parent_id)
        if above is None and get_current_trace() is None:
            return
        data = self._data(event)
        span = custom_span(event.name, data, parent=above)
        span.start()
        if isinstance(event, CompactionErrorEvent):
            span.set_error({"message": f"{data['error_type']}: {data['message']}", "data": None})
        elif isinstance(event, SummarizerCallEvent) and event.error_type:
            span.set_error({"message": event.error_type, "data": None})
        span.finish()

    def _data(self, event: CompactionEvent) -> dict[str, Any]:
        left_out = _ON_THE_SPAN if self._content else _ON_THE_SPAN | _CONTENT
        told = {name: value for name, value in event.to_dict().items() if name not in left_out}
        told["duration_seconds"] = round(event.duration_seconds, 6)
        return plain(self._redact(told), max_text=_MAX_TEXT, max_items=_MAX_ITEMS)
