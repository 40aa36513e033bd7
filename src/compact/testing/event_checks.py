"""The conformance suite for event sinks: whatever happens in a session is taken, from any thread, and never changed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import MISSING, fields, is_dataclass
from functools import partial
from typing import Any, TypeAlias, cast, get_origin, get_type_hints

from compact.core.audit.report import CompactionReport
from compact.core.engine.events import CompactionEvent, EventSink, OperationEndedEvent, OperationStartedEvent

Sink: TypeAlias = EventSink | object
_ODD_TEXTS = ("text", "", "two\nlines", "lone \ud800 half", "[bold]{x}%s\x1b[31m\x00", "漢字 🧠", "long " * 20_000)
_THREADS = 4


def sample_events(text: str = "text", *, session_id: str = "s-1") -> tuple[CompactionEvent, ...]:
    """Return one event of each kind, with this text wherever there is one.

    Args:
        text: The text.
        session_id: The session that they are of.

    Example:
        >>> from compact.testing import sample_events
        >>> len({event.name for event in sample_events()}) > 10
        True
    """
    return tuple(_sample(kind, text, session_id) for kind in _kinds())


def check_event_sink(make_sink: Callable[[], Sink], *, delivered: Callable[[Any], int] | None = None) -> None:
    """Check what the engine relies on in an event sink: a callable, or an object with `emit(event)`.

    It takes events of every kind, with odd texts, out of order and from several threads, raises nothing, and leaves
    them as they are; a sink that can be flushed and closed takes that at any time.

    Args:
        make_sink: Returns a new sink.
        delivered: Returns how many events have arrived where a sink sends them to: none may be missing.

    Raises:
        AssertionError: It got something wrong; the message says what.

    Example:
        >>> from compact.testing import RecordingSink, check_event_sink
        >>> check_event_sink(RecordingSink, delivered=lambda sink: len(sink.events))
    """
    sent = 0
    sink = make_sink()
    emit = _emit_of(sink)
    for text in _ODD_TEXTS:
        for event in sample_events(text):
            _check_taken(emit, event)
            sent += 1
    for event in reversed(sample_events()):  # an operation may end whose beginning was never seen
        _check_taken(emit, event)
        sent += 1
    with ThreadPoolExecutor(_THREADS) as pool:
        taking = [pool.submit(_take_all, emit, f"s-{number}") for number in range(_THREADS)]
        sent += sum(future.result() for future in taking)
    _call(sink, "flush")
    if delivered:
        arrived = delivered(sink)
        assert arrived == sent, f"of {sent} events, {arrived} arrived"
    _call(sink, "close")
    _call(sink, "close")
    for event in sample_events():
        _check_taken(emit, event)


def _emit_of(sink: Sink) -> EventSink:
    if callable(sink):
        return cast(EventSink, sink)
    emit = getattr(sink, "emit", None)
    assert callable(emit), "a sink is a callable, or has a method `emit`"
    return cast(EventSink, emit)


def _call(sink: Sink, name: str) -> None:
    method = getattr(sink, name, None)
    if callable(method):
        method()


def _check_taken(emit: EventSink, event: CompactionEvent) -> None:
    before = repr(event.to_dict())
    result: object = cast(Callable[[CompactionEvent], object], emit)(event)
    assert result is None, f"a sink returns nothing; for {event.name} it returned {result!r}"
    assert repr(event.to_dict()) == before, f"{event.name} was changed: other sinks get the same event"


def _take_all(emit: EventSink, session_id: str) -> int:
    taken = sample_events(session_id=session_id)
    for event in taken:
        emit(event)
    return len(taken)


# -- one of each kind --------------------------------------------------------------------------------------------------


def _kinds(base: type[CompactionEvent] = CompactionEvent) -> Iterator[type[CompactionEvent]]:
    """Yield every kind of event that is emitted."""
    for kind in base.__subclasses__():
        # A dataclass with slots is made twice; the first one is not what its module has.
        if getattr(sys.modules[kind.__module__], kind.__name__, None) is kind:
            if hasattr(kind, "type"):
                yield kind
            yield from _kinds(kind)


def _sample(kind: type[CompactionEvent], text: str, session_id: str) -> CompactionEvent:
    hints = get_type_hints(kind)
    assert is_dataclass(kind), f"{kind.__name__} is no dataclass"
    values: dict[str, Any] = {}
    for spec in fields(kind):
        if spec.default is MISSING and spec.default_factory is MISSING:
            values[spec.name] = _value(hints[spec.name], text)
    values |= {"session_id": session_id, "event_id": f"{kind.__name__}-{session_id}", "parent_id": ""}
    values |= {"started_at": 1_700_000_000.0, "ended_at": 1_700_000_001.5, "metadata": {"label": text}}
    if issubclass(kind, OperationEndedEvent):
        values["began"] = OperationStartedEvent(session_id=session_id, operation=text, event_id=values["event_id"])
    return kind(**values)


def _value(hint: Any, text: str) -> Any:
    """Return a value of a type."""
    simple: Mapping[Any, Any] = {str: text, int: 7, float: 0.5, bool: True}
    if hint in simple:
        return simple[hint]
    if get_origin(hint) is tuple:
        return (text, "m2")
    if hint == Callable[[], CompactionReport]:
        return partial(
            CompactionReport,
            session_id="s-1",
            version=1,
            reason=text,
            tokens_before=900,
            tokens_after=100,
            removed_ids=("m1",),
            items=(),
        )
    assert get_origin(hint) is not None, f"no sample for a field of the type {hint}: add one to this suite"
    return {text: 1}
