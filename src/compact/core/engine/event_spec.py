"""What an event is, and what its class declares once for all sinks: severity, sentence, metrics, content fields.

`events.py` is the table of them; no sink has a table of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field, fields
from enum import Enum
from math import isfinite
from string import Formatter
from types import MappingProxyType
from typing import Any, ClassVar, Literal, TypeAlias, TypeVar, cast, dataclass_transform

from compact.core.plurals import quantity

Severity: TypeAlias = Literal["debug", "info", "warning", "error"]
MetricKind: TypeAlias = Literal["counter", "gauge", "histogram"]
SpanKind: TypeAlias = Literal["event", "operation", "generation"]
# `CompactionEvent.to_dict()`, perhaps redacted, perhaps read back from JSON.
EventData: TypeAlias = Mapping[str, Any]
# The name of a field, or a function of all of them.
FieldReader: TypeAlias = str | Callable[[EventData], Any]

# Upper bounds of a histogram. Chosen: from a preflight without work (a millisecond) to a slow summary (a minute).
SECONDS_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
# Chosen: windows of models double, and the largest have two million tokens.
TOKEN_BUCKETS = (1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 128_000, 256_000, 512_000, 1_000_000, 2_000_000)


def whole_event(data: EventData) -> Iterable[EventData]:
    """Return the data as the only row."""
    return (data,)


@dataclass(frozen=True, slots=True)
class Measurement:
    """One value of a metric, with its label in Prometheus and its attributes in OpenTelemetry."""

    metric: Metric
    value: float
    label: str
    attributes: Mapping[str, str]


@dataclass(frozen=True, slots=True, eq=False)
class Metric:
    """A metric of OpenTelemetry and of Prometheus, and how it is read out of an event's data.

    `name` is OpenTelemetry's, empty if it is exported to Prometheus only; `prometheus` is given where the usual rule
    makes another name. `label` is exported to both, `attributes` to OpenTelemetry only, because Prometheus keeps a
    series for each combination. `rows` splits an event that has several values, or none.
    """

    name: str
    help: str
    _: KW_ONLY
    unit: str
    prometheus: str = ""
    kind: MetricKind = "counter"
    prometheus_kind: MetricKind | None = None  # the same as `kind`, unless it is given
    value: int | FieldReader = 1
    label: tuple[str, FieldReader] | None = None
    attributes: Mapping[str, FieldReader] = field(default_factory=dict[str, FieldReader])
    rows: Callable[[EventData], Iterable[EventData]] = whole_event

    @property
    def prometheus_name(self) -> str:
        """Its name in Prometheus: `compact.recalls` is `compact_recalls_total`."""
        return self.prometheus or self.name.replace(".", "_") + "_total"

    @property
    def buckets(self) -> tuple[float, ...]:
        """The upper bounds of a histogram."""
        return SECONDS_BUCKETS if self.unit == "s" else TOKEN_BUCKETS

    def measure(self, data: EventData) -> Iterator[Measurement]:
        """Yield the values in an event; an attribute that is None is left out."""
        for row in self.rows(data):
            value = self.value if isinstance(self.value, int) else _number(_read(self.value, row))
            label = str(_read(self.label[1], row)) if self.label else ""
            read = {name: _read(reader, row) for name, reader in self.attributes.items()}
            attributes = {name: str(found) for name, found in read.items() if found is not None}
            if self.label:
                attributes[self.label[0]] = label
            yield Measurement(self, max(0, value), label, attributes)  # a counter never falls; no size is below nothing


def duration_metric(
    name: str,
    prometheus: str,
    *,
    help: str,
    attributes: Mapping[str, FieldReader] | None = None,
    rows: Callable[[EventData], Iterable[EventData]] = whole_event,
) -> Metric:
    """Return a histogram of how long events took."""
    return Metric(
        name,
        help,
        unit="s",
        prometheus=prometheus,
        kind="histogram",
        value=duration_seconds,
        attributes=attributes or {},
        rows=rows,
    )


@dataclass(frozen=True, slots=True)
class EventSpec:
    """All that a sink has to know about an event class; texts are templates over `to_dict()`, see `fill`."""

    severity: Severity
    # What a person reads in a log.
    sentence: str
    _: KW_ONLY
    # What a trace viewer shows as the text of the span.
    output: str = ""
    span_kind: SpanKind = "event"
    metrics: tuple[Metric, ...] = ()
    # Fields with words of people or models: they leave by `otlp` and `agents` only where `telemetry.content` allows it.
    content: tuple[str, ...] = ()
    # The field with the type of an error, and the sentence for an event that has one there.
    failure: str = ""
    failed_sentence: str = ""
    # Fields for this process alone, and values that `to_dict` adds to the fields, with their types.
    hidden: tuple[str, ...] = ()
    computed: Mapping[str, str] = field(default_factory=dict[str, str])
    # Emitted by every call, even if nothing is compacted.
    every_call: bool = False
    # Takes as long as the operation that it is emitted in.
    lasts_as_operation: bool = False
    # `to_dict` computes for a while: not for sinks that run where the agent waits.
    slow: bool = False

    def line(self, data: EventData) -> str:
        """Return the sentence about an event."""
        has_failed = bool(self.failed_sentence and data[self.failure])
        return fill(self.failed_sentence if has_failed else self.sentence, data)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionEvent:
    """What every event says: which session, which turn, which plan version, when, and as a part of what.

    `CompactManager(on_event=…)` gets them; each kind is a class of its own in `compact.core.engine.events`, with more
    fields. All of them are listed in the page on observability.

    Attributes:
        session_id: The conversation; empty for an event about the manager itself.
        turn_number: The turn it happened in.
        plan_version: The plan that was in force.
        event_id: Its own id, added by telemetry.
        parent_id: The id of the operation that it is part of, added by telemetry.
        started_at: When it began, in seconds since 1970.
        ended_at: When it was over; the same for most events, which are a moment.
        metadata: Your own values: `CompactManager(event_metadata=…)`.

    Example:
        >>> from compact import CompactConfig, CompactManager
        >>> from compact.testing import tool_run
        >>> events = []
        >>> manager = CompactManager(CompactConfig(max_context_tokens=8_000), on_event=events.append)
        >>> prompt = manager.preflight("chat-1", tool_run(60, words=200))
        >>> event = next(event for event in events if event.name == "compact.summary_created")
        >>> event.session_id, event.turn_number
        ('chat-1', 1)
    """

    type: ClassVar[Enum]
    spec: ClassVar[EventSpec]
    session_id: str
    turn_number: int = 0
    plan_version: int = 0
    event_id: str = ""
    parent_id: str = ""
    started_at: float = 0.0
    ended_at: float = 0.0
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def name(self) -> str:
        """The name on the wire."""
        return str(self.type.value)

    @property
    def thread_id(self) -> str:
        """Another name for `session_id`, in frameworks that call a session a thread."""
        return self.session_id

    @property
    def timestamp(self) -> float:
        """When it was emitted, in seconds since 1970."""
        return self.ended_at

    @property
    def duration_seconds(self) -> float:
        """How long it took; 0 for a moment."""
        return max(0.0, self.ended_at - self.started_at)

    @property
    def failure(self) -> str:
        """The type of the error that the event is about; empty if it is about none."""
        return str(getattr(self, self.spec.failure)) if self.spec.failure else ""

    @property
    def is_routine(self) -> bool:
        """True for an event that says nothing but that a call was made."""
        return self.spec.every_call

    @property
    def status(self) -> str:
        """`error` if the event is about a failure, else `ok`."""
        return "error" if self.failure else "ok"

    def settle(self) -> None:
        """Wait for what is not known yet, if there is anything: only where the agent does not wait.

        Example:
            >>> event.settle()
        """

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for logs and exporters.

        Example:
            >>> event.to_dict()["status"]
            'ok'
        """
        values = {each.name: getattr(self, each.name) for each in fields(self) if each.name not in self.spec.hidden}
        return {"event": self.name, "status": self.status, **values}


_Event = TypeVar("_Event", bound=CompactionEvent)
_declared: dict[str, type[CompactionEvent]] = {}


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
def event(undeclared: type[_Event]) -> type[_Event]:
    """Make a class one of the table: a frozen dataclass that sinks find by its wire name."""
    kind = dataclass(frozen=True, slots=True, kw_only=True)(undeclared)
    _declared[kind.type.value] = kind
    return kind


def declared_events() -> Mapping[str, type[CompactionEvent]]:
    """Return every event class that was declared, by its wire name."""
    return MappingProxyType(_declared)


class _Template(Formatter):
    """`str.format` for lists, too: joined, or with `:lines` below each other.

    `{ids:n message}` is a number, or that of a list, with its noun: 1 message, 2 messages.
    A value that was redacted is text, whatever the template expects; one that was left out is empty.
    """

    def get_value(self, key: int | str, args: Any, kwargs: Mapping[str, Any]) -> Any:
        return kwargs.get(str(key), "")

    def format_field(self, value: Any, format_spec: str) -> Any:
        is_counted, thing = format_spec.startswith("n "), format_spec[2:]
        if is_counted and isinstance(value, int):
            return quantity(value, thing)
        if isinstance(value, list | tuple):
            items = cast("list[Any]", value)
            if is_counted:
                return quantity(len(items), thing)
            return ("\n" if format_spec == "lines" else "; ").join(map(str, items))
        if is_counted:
            return f"{value} {thing}s"
        return super().format_field(value, "" if isinstance(value, str) else format_spec)


_TEMPLATE = _Template()


def fill(template: str, data: EventData) -> str:
    """Return a template of an `EventSpec` with an event's values in it."""
    return _TEMPLATE.vformat(template, (), data)


def duration_seconds(data: EventData) -> float:
    """Return how long an event took; a trace viewer gets it as a field of its own."""
    if "duration_seconds" in data:
        return max(0.0, float(data["duration_seconds"]))
    return max(0.0, float(data.get("ended_at", 0)) - float(data.get("started_at", 0)))


def _read(reader: FieldReader, data: EventData) -> Any:
    return data[reader] if isinstance(reader, str) else reader(data)


def _number(value: Any) -> float:
    """Return a number that can be added up; raise ValueError or TypeError for anything else."""
    number: float = value if isinstance(value, int) else float(value)
    if not isfinite(number):
        raise ValueError(f"{value!r} cannot be counted")
    return number
