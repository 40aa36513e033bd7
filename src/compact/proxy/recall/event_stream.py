"""Cuts a stream of server-sent events into its events; each keeps the bytes it came in."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

_END_OF_EVENT = re.compile(rb"\r\n\r\n|\n\n|\r\r")


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """One event: the bytes it came in, its name (empty if it has none) and its data."""

    raw: bytes
    name: str
    data: bytes

    @property
    def fields(self) -> dict[str, Any] | None:
        """The data as a JSON object; None if it is something else."""
        try:
            value = json.loads(self.data)
        except (ValueError, RecursionError):
            return None
        return cast("dict[str, Any]", value) if isinstance(value, dict) else None


class EventSplitter:
    """Takes the bytes of a stream as they come, and returns the events that are complete."""

    def __init__(self) -> None:
        self._kept = b""

    def feed(self, data: bytes) -> Iterator[StreamEvent]:
        """Yield the events that these bytes complete."""
        self._kept += data
        start = 0
        for end in _END_OF_EVENT.finditer(self._kept):
            yield _read(self._kept[start : end.end()])
            start = end.end()
        self._kept = self._kept[start:]

    def rest(self) -> bytes:
        """Return the bytes behind the last event."""
        return self._kept


def write_event(fields: Mapping[str, Any], name: str = "") -> bytes:
    """Return an event in bytes."""
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(fields, separators=(',', ':'))}\n\n".encode()


def _read(raw: bytes) -> StreamEvent:
    name, data = "", list[bytes]()
    for line in raw.splitlines():
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"event":
            name = value.decode("utf-8", "replace")
        elif field == b"data":
            data.append(value)
    return StreamEvent(raw, name, b"\n".join(data))
