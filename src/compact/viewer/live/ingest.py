"""Checks the events of a request, in the form that Ariadne takes: what is kept of them, and what is wrong with them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeAlias, cast

TraceEvent: TypeAlias = dict[str, Any]
Problem: TypeAlias = dict[str, Any]

# Chosen: names are shown on one line, texts on a page; deeper data than this is nobody's by accident.
_NAME_CHARS = 1_024
_TEXT_CHARS = 102_400
_MAX_DEPTH = 64
# The most that every database takes in an index, whatever characters an id has.
_MAX_ID_BYTES = 2_000
_TIME = re.compile(r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d+)?)?Z$")
_STATUSES = ("ok", "error")


class InvalidEvents(Exception):
    """A request with something wrong in it: none of its events is taken."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("Validation failed")
        self.problems = list(problems)


@dataclass(frozen=True, slots=True)
class _Field:
    """How one field is checked (what is wrong with a value, or an empty text) and what of it is kept."""

    check: Callable[[Any], str]
    keep: Callable[[Any], Any] = lambda value: value
    is_required: bool = False


def read_events(body: object) -> list[TraceEvent]:
    """Return the event of a request, or those of its batch; raise InvalidEvents if a single one is wrong."""
    if not isinstance(body, Mapping):
        raise InvalidEvents([_problem([], "expected an event, or an object with a batch of them")])
    request = cast(Mapping[str, Any], body)
    if "batch" not in request:
        events, problems = _read_all([request], lambda index: [])
    elif not isinstance(request["batch"], list):
        raise InvalidEvents([_problem(["batch"], "expected an array of events")])
    else:
        events, problems = _read_all(cast(list[object], request["batch"]), lambda index: ["batch", index])
    if problems:
        raise InvalidEvents(problems)
    return events


def unix_seconds(text: str) -> float:
    """Return a time of an event in seconds since 1970."""
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def _read_all(items: Sequence[object], path: Callable[[int], list[Any]]) -> tuple[list[TraceEvent], list[Problem]]:
    events: list[TraceEvent] = []
    problems: list[Problem] = []
    for index, item in enumerate(items):
        found = [_problem([*path(index), *where], message) for where, message in _problems(item)]
        problems += found
        if not found:
            events.append(_known_fields(cast(Mapping[str, Any], item)))
    return events, problems


def _problems(item: object) -> Iterator[tuple[list[str], str]]:
    """Yield what is wrong with an event: the path of the field, and what was expected."""
    if not isinstance(item, Mapping):
        yield [], "expected an object"
        return
    event = cast(Mapping[str, Any], item)
    kind = event.get("type")
    if not isinstance(kind, str) or kind not in _FIELDS:
        yield ["type"], "expected trace or span"
        return
    is_valid = True
    for name, field in _FIELDS[kind].items():
        missing = "required" if field.is_required else ""
        wrong = field.check(event[name]) if name in event else missing
        if wrong:
            is_valid = False
            yield [name], wrong
    if is_valid and _ends_before_it_starts(event):
        yield ["ended_at"], "must not be before started_at"


def _ends_before_it_starts(event: Mapping[str, Any]) -> bool:
    if "started_at" not in event or "ended_at" not in event:
        return False
    return unix_seconds(event["ended_at"]) < unix_seconds(event["started_at"])


def _known_fields(event: Mapping[str, Any]) -> TraceEvent:
    """Return an event with the fields that we know; others are dropped."""
    fields = _FIELDS[event["type"]]
    return {"type": event["type"], **{name: field.keep(event[name]) for name, field in fields.items() if name in event}}


def _problem(path: list[Any], message: str) -> Problem:
    return {"path": path, "message": message}


# -- fields -------------------------------------------------------------------------------------------------------


def _check_text(value: object) -> str:
    return "" if isinstance(value, str) else "expected a string"


def _check_id(value: object) -> str:
    if not isinstance(value, str) or not value:
        return "expected a string that is not empty"
    return "" if _fits_an_index(value) else f"longer than {_MAX_ID_BYTES:,} bytes"


def _fits_an_index(text: str) -> bool:
    return len(json.dumps(text)) <= _MAX_ID_BYTES


def _check_session(data: Mapping[str, object]) -> str:
    session_id = data.get("session_id", "")
    is_fine = not isinstance(session_id, str) or _fits_an_index(session_id)
    return "" if is_fine else f"session_id is longer than {_MAX_ID_BYTES:,} bytes"


def _check_time(value: object) -> str:
    if not isinstance(value, str) or not _TIME.match(value):
        return "expected a time in ISO 8601 that ends in Z"
    try:
        unix_seconds(value)
    except (ValueError, OverflowError, OSError):
        return "expected a date and time that exist"
    return ""


def _check_texts(value: object) -> str:
    if not isinstance(value, Mapping):
        return "expected an object of strings"
    texts = cast(Mapping[str, object], value).values()
    return "" if all(isinstance(text, str) for text in texts) else "expected an object of strings"


def _check_object(value: object) -> str:
    if not isinstance(value, Mapping):
        return "expected an object"
    data = cast(Mapping[str, object], value)
    return _check_session(data) if _is_shallow(data) else f"nested more than {_MAX_DEPTH} levels deep"


def _check_status(value: object) -> str:
    return "" if value in _STATUSES else "expected ok or error"


def _is_shallow(value: object) -> bool:
    """Return True if data is not nested too deeply; without recursion, which could exhaust the stack."""
    level: list[object] = [value]
    for _ in range(_MAX_DEPTH):
        inner: list[object] = []
        for entry in level:
            if isinstance(entry, Mapping):
                inner.extend(cast(Mapping[str, object], entry).values())
            elif isinstance(entry, list):
                inner.extend(cast(list[object], entry))
        if not inner:
            return True
        level = inner
    return False


def _with_short_texts(value: object) -> object:
    """Return data with every text cut to the length that is kept."""
    if isinstance(value, str):
        return value[:_TEXT_CHARS]
    if isinstance(value, Mapping):
        return {name: _with_short_texts(entry) for name, entry in cast(Mapping[str, object], value).items()}
    if isinstance(value, list):
        return [_with_short_texts(entry) for entry in cast(list[object], value)]
    return value


_ID = _Field(_check_id, is_required=True)
_NAME = _Field(_check_text, lambda name: name[:_NAME_CHARS])
_TIMES = {"started_at": _Field(_check_time), "ended_at": _Field(_check_time)}
_FIELDS: Mapping[str, Mapping[str, _Field]] = {
    "trace": {
        "trace_id": _ID,
        "name": _NAME,
        "group_id": _Field(_check_text),
        **_TIMES,
        "metadata": _Field(_check_texts),
    },
    "span": {
        "trace_id": _ID,
        "span_id": _ID,
        "parent_id": _Field(_check_id),
        "kind": _Field(_check_text),
        "name": _NAME,
        **_TIMES,
        "data": _Field(_check_object, _with_short_texts),
        "status": _Field(_check_status),
    },
}
