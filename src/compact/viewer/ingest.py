"""Ariadne's wire: which events are taken, what of them is kept, and what is said about the others."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeAlias

Event: TypeAlias = dict[str, Any]
Detail: TypeAlias = dict[str, Any]

_NAME_CHARS = 1_024
_TEXT_CHARS = 102_400
_DEEPEST = 64
_TIME = re.compile(r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d+)?)?Z$")
_STATUSES = ("ok", "error")


class InvalidEvents(Exception):
    """A request with something wrong in it: none of it is taken."""

    def __init__(self, details: Sequence[Detail]) -> None:
        super().__init__("Validation failed")
        self.details = list(details)


@dataclass(frozen=True, slots=True)
class _Field:
    """How one field is checked (a complaint, or nothing) and what of it is kept."""

    complain: Callable[[Any], str]
    keep: Callable[[Any], Any] = lambda value: value
    is_required: bool = False


def read_events(body: object) -> list[Event]:
    """One event, or those of a batch; raises InvalidEvents if a single one is wrong."""
    if not isinstance(body, Mapping):
        raise InvalidEvents([_detail([], "expected an event, or an object with a batch of them")])
    if "batch" not in body:
        events, problems = _read_all([body], lambda place: [])
    elif not isinstance(body["batch"], list):
        raise InvalidEvents([_detail(["batch"], "expected an array of events")])
    else:
        events, problems = _read_all(body["batch"], lambda place: ["batch", place])
    if problems:
        raise InvalidEvents(problems)
    return events


def moment(text: str) -> float:
    """A time on the wire as unix seconds."""
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def _read_all(items: Sequence[object], path: Callable[[int], list[Any]]) -> tuple[list[Event], list[Detail]]:
    events: list[Event] = []
    problems: list[Detail] = []
    for place, item in enumerate(items):
        found = [_detail([*path(place), *where], message) for where, message in _problems(item)]
        problems += found
        if not found and isinstance(item, Mapping):
            events.append(_kept(item))
    return events, problems


def _problems(item: object) -> Iterator[tuple[list[str], str]]:
    if not isinstance(item, Mapping):
        yield [], "expected an object"
        return
    kind = item.get("type")
    if not isinstance(kind, str) or kind not in _FIELDS:
        yield ["type"], "expected trace or span"
        return
    is_sound = True
    for name, field in _FIELDS[kind].items():
        missing = "required" if field.is_required else ""
        complaint = field.complain(item[name]) if name in item else missing
        if complaint:
            is_sound = False
            yield [name], complaint
    if is_sound and {"started_at", "ended_at"} <= item.keys() and moment(item["ended_at"]) < moment(item["started_at"]):
        yield ["ended_at"], "must not be before started_at"


def _kept(item: Mapping[str, Any]) -> Event:
    """What is known of an event; everything else is dropped without a word."""
    fields = _FIELDS[item["type"]]
    return {"type": item["type"], **{name: field.keep(item[name]) for name, field in fields.items() if name in item}}


def _detail(path: list[Any], message: str) -> Detail:
    return {"path": path, "message": message}


# -- fields -------------------------------------------------------------------------------------------------------


def _text(value: object) -> str:
    return "" if isinstance(value, str) else "expected a string"


def _id(value: object) -> str:
    return "" if isinstance(value, str) and value else "expected a string that is not empty"


def _time(value: object) -> str:
    if not isinstance(value, str) or not _TIME.match(value):
        return "expected a time in ISO 8601 that ends in Z"
    try:
        moment(value)
    except (ValueError, OverflowError, OSError):
        return "expected a time that there is"
    return ""


def _texts(value: object) -> str:
    is_sound = isinstance(value, Mapping) and all(isinstance(text, str) for text in value.values())
    return "" if is_sound else "expected an object of strings"


def _object(value: object) -> str:
    if not isinstance(value, Mapping):
        return "expected an object"
    return "" if _is_shallow(value) else f"nested more than {_DEEPEST} deep"


def _status(value: object) -> str:
    return "" if value in _STATUSES else "expected ok or error"


def _is_shallow(value: object) -> bool:
    """Looked at without recursion: what is nested too deeply must not take us with it."""
    level: list[object] = [value]
    for _ in range(_DEEPEST):
        inner: list[object] = []
        for entry in level:
            if isinstance(entry, Mapping):
                inner.extend(entry.values())
            elif isinstance(entry, list):
                inner.extend(entry)
        if not inner:
            return True
        level = inner
    return False


def _shortened(value: Any) -> Any:
    """Data whose every text is cut to the length that is kept."""
    if isinstance(value, str):
        return value[:_TEXT_CHARS]
    if isinstance(value, Mapping):
        return {name: _shortened(entry) for name, entry in value.items()}
    if isinstance(value, list):
        return [_shortened(entry) for entry in value]
    return value


_ID = _Field(_id, is_required=True)
_NAME = _Field(_text, lambda name: name[:_NAME_CHARS])
_TIMES = {"started_at": _Field(_time), "ended_at": _Field(_time)}
_FIELDS: Mapping[str, Mapping[str, _Field]] = {
    "trace": {"trace_id": _ID, "name": _NAME, "group_id": _Field(_text), **_TIMES, "metadata": _Field(_texts)},
    "span": {
        "trace_id": _ID,
        "span_id": _ID,
        "parent_id": _Field(_id),
        "kind": _Field(_text),
        "name": _NAME,
        **_TIMES,
        "data": _Field(_object, _shortened),
        "status": _Field(_status),
    },
}
