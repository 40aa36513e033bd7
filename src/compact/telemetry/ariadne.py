"""Send events to Ariadne's trace viewer, or to `compact view`, which stands in for it.

A session is a trace, an event or an operation a span. The server drops fields that it does not know, so everything that
an event says stands in `data`, and the text to read in `data.output`. Times end in `Z`; what has no value is left out.

Ariadne's page keeps the version of a span that it saw first, so each span is sent once, when it has ended. `compact
view` shows the newest version, and says so in its answers: it gets an operation when it begins, too.
"""

from __future__ import annotations

import http.client
import json
from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import SplitResult, urlsplit

from compact.core.engine.event_spec import fill
from compact.core.engine.events import CompactionEvent, OperationEndedEvent, OperationStartedEvent
from compact.core.errors import ConfigError
from compact.telemetry.truncation import encode_json, truncate_text, truncate_to_size
from compact.telemetry.worker import DeliveryFailed, OutgoingEvent, ThrottledWarnings

# Chosen: a viewer is near; one that takes longer is away.
_TIMEOUT_SECONDS = 2.0
# Chosen: a session that was introduced is introduced again after so many others, which does no harm.
_MAX_TRACES = 10_000
# The server is there, but cannot take it now.
_RETRY_STATUS = frozenset({408, 425, 429, 500, 502, 503, 504})
# Enough of an answer to say what the server did not like.
_MAX_ANSWER_BYTES = 10_000
# The server cuts texts at 102,400 characters and refuses bodies over 262,144 bytes; these leave room for the rest.
_MAX_TEXT = 100_000
_MAX_EVENT_BYTES = 200_000
_MAX_BODY_BYTES = 256_000
_MAX_NAME = 1_000
# The trace of what happens outside of any session.
_NO_SESSION = "compact"
# `compact view` answers with this: it shows the newest version of a span.
_UPDATES_HEADER = "x-compact-updates"
# Fields that stand on the span itself.
_SPAN_FIELDS = frozenset({"event_id", "parent_id", "started_at", "ended_at"})


@dataclass(frozen=True, slots=True)
class _PendingRequest:
    """The body of a request, and how many events are in it."""

    body: bytes
    events: int


class AriadneExporter:
    """Posts batches over one connection that is kept open, and writes on stderr what went wrong."""

    name = "ariadne"

    def __init__(self, url: str, *, token: str = "", timeout_seconds: float = _TIMEOUT_SECONDS) -> None:
        self._address = _parse_address(url)
        self._url = f"{self._address.scheme}://{self._address.hostname}:{self._port}{self._address.path}"
        self._timeout_seconds = timeout_seconds
        self._headers = {"Content-Type": "application/json", "User-Agent": "compact"}
        if token := _header_safe(token):
            self._headers["Authorization"] = f"Bearer {token}"
        self._connection: http.client.HTTPConnection | None = None
        self._traces: OrderedDict[str, None] = OrderedDict()
        self._pending: deque[_PendingRequest] = deque()
        self._lost = 0
        self._takes_updates = False
        self.warn = ThrottledWarnings("[Ariadne]")

    def capture_context(self, event: CompactionEvent) -> object:
        """Return nothing: the event is all that is needed."""
        return None

    def add(self, batch: Sequence[OutgoingEvent]) -> None:
        """Encode the bodies of the requests: each session is introduced once, before its first span."""
        events: list[dict[str, Any]] = []
        for outgoing in batch:
            try:
                span, is_cut = _span(outgoing)
                trace = _trace(outgoing)
            except Exception as error:  # noqa: BLE001
                # An event may hold anything; one that cannot be encoded keeps no other from being sent.
                self.warn(f"{outgoing.event.name} could not be encoded: {type(error).__name__}")
                self._lost += 1
                continue
            if is_cut:
                self.warn(f"{outgoing.event.name} is longer than the server takes: it was cut, and marked")
            if span["trace_id"] not in self._traces:
                events.append(trace)
            self._add_trace(span["trace_id"])
            if "ended_at" in span or self._takes_updates:
                events.append(span)
        self._pending.extend(_bodies(events))

    def _add_trace(self, trace_id: str) -> None:
        self._traces[trace_id] = None
        self._traces.move_to_end(trace_id)
        if len(self._traces) > _MAX_TRACES:
            self._traces.popitem(last=False)

    def send(self) -> int:
        """Post what waits, in order; what the server refuses for good is dropped, with a warning, and counted."""
        try:
            while self._pending:
                self._send_first()
        except DeliveryFailed:
            raise
        except Exception:  # it would fail in the same way for ever, and the queue would never end
            self._pending.clear()
            self._lost = 0
            self.close()
            raise
        lost, self._lost = self._lost, 0
        return lost

    def _send_first(self) -> None:
        request = self._pending[0]
        status, answer = self._post(request.body)
        if status in _RETRY_STATUS:
            raise DeliveryFailed(f"{self._url} answered {status}; trying again later")
        if status != 200:
            self.warn(f"{self._url} answered {status}, so a batch is lost: {_first_problem(answer)}")
            self._lost += request.events
        self._pending.popleft()

    def _post(self, body: bytes) -> tuple[int, str]:
        was_open = self._connection is not None
        try:
            return self._request(body)
        except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError) as error:
            if not was_open:
                raise self._unreachable(error) from error
        except (OSError, http.client.HTTPException) as error:
            raise self._unreachable(error) from error
        self.close()  # the server may close a connection that is kept open at any time: once more on a new one
        return self._post(body)

    def _unreachable(self, error: Exception) -> DeliveryFailed:
        self.close()
        self._traces.clear()  # a server that comes back may have forgotten them
        self._takes_updates = False  # and it may be another one
        return DeliveryFailed(f"{self._url} cannot be reached ({type(error).__name__}: {error}); trying again later")

    def _request(self, body: bytes) -> tuple[int, str]:
        if self._connection is None:
            self._connection = self._connect()
        self._connection.request("POST", self._path, body, self._headers)
        answer = self._connection.getresponse()
        text = answer.read(_MAX_ANSWER_BYTES).decode("utf-8", "replace")
        self._takes_updates = answer.getheader(_UPDATES_HEADER) == "1"
        if not answer.isclosed():
            self.close()  # the rest would be read as the next answer
        return answer.status, text

    @property
    def _port(self) -> int:
        return self._address.port or (443 if self._address.scheme == "https" else 80)

    @property
    def _path(self) -> str:
        query = f"?{self._address.query}" if self._address.query else ""
        return (self._address.path or "/ingest") + query

    def _connect(self) -> http.client.HTTPConnection:
        kind = http.client.HTTPSConnection if self._address.scheme == "https" else http.client.HTTPConnection
        return kind(self._address.hostname or "localhost", self._port, timeout=self._timeout_seconds)

    def reset_after_fork(self) -> None:
        """Drop the connection and what waits: they belong to the original process."""
        self._connection = None
        self._pending.clear()
        self._lost = 0

    def close(self) -> None:
        """Close the connection."""
        connection, self._connection = self._connection, None
        if connection:
            connection.close()


def _header_safe(token: str) -> str:
    """Return the token without the blanks around it; refuse one that no header can carry, without repeating it."""
    token = token.strip()
    if not (token.isascii() and token.isprintable()):
        hint = "copy it again: it may have printable ASCII characters only, in one line"
        raise ConfigError("the token cannot stand in a header", field="telemetry.ariadne_token", hint=hint)
    return token


def _parse_address(url: str) -> SplitResult:
    hint = "give it as http://host:port/ingest"
    try:
        address = urlsplit(url)
        is_whole = address.scheme in ("http", "https") and bool(address.hostname) and (address.port or 1) > 0
    except ValueError:
        is_whole, address = False, urlsplit("")
    if not is_whole:
        raise ConfigError(f"{url!r} is not an address to send events to", field="telemetry.ariadne_url", hint=hint)
    return address


def _first_problem(answer: str) -> str:
    """Return the first problem that a server names."""
    try:
        first = json.loads(answer)["details"][0]
        return f"{first['path']}: {first['message']}"
    except (ValueError, LookupError, TypeError):
        return answer[:300]


# -- the wire ---------------------------------------------------------------------------------------------------------


def trace_and_span(outgoing: OutgoingEvent) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the trace that an event belongs to, and its span, as they go over the wire."""
    return _trace(outgoing), _span(outgoing)[0]


def _trace(outgoing: OutgoingEvent) -> dict[str, Any]:
    """Return the trace of a session; its name is not redacted, the caller's metadata is."""
    event = outgoing.event
    session = event.session_id or _NO_SESSION
    trace = {
        "type": "trace",
        "trace_id": session,
        "name": truncate_text(session, _MAX_NAME),
        "started_at": _wire_time(event.started_at),
    }
    metadata = {str(name): truncate_text(str(value), _MAX_NAME) for name, value in outgoing.data["metadata"].items()}
    return {**trace, "metadata": metadata} if metadata else trace


def _span(outgoing: OutgoingEvent) -> tuple[dict[str, Any], bool]:
    """Return the span of an event, and whether anything in it had to be cut."""
    event = outgoing.event
    data, is_cut = truncate_to_size(_data(event, outgoing.data), max_text=_MAX_TEXT, max_bytes=_MAX_EVENT_BYTES)
    span: dict[str, Any] = {
        "type": "span",
        "trace_id": event.session_id or _NO_SESSION,
        "span_id": event.event_id,
        "kind": event.spec.span_kind,
        "name": _name(event),
        "started_at": _wire_time(event.started_at),
        "data": data,
    }
    if event.parent_id:
        span["parent_id"] = event.parent_id
    if not isinstance(event, OperationStartedEvent):  # an operation stays open until its end is sent
        span["ended_at"] = _wire_time(max(event.started_at, event.ended_at))
        span["status"] = "error" if event.failure else "ok"
    return span, is_cut


def _data(event: CompactionEvent, redacted: Mapping[str, Any]) -> dict[str, Any]:
    """Return what an event says, how long it took, and the text to read as `output`."""
    data = {name: value for name, value in redacted.items() if name not in _SPAN_FIELDS and value is not None}
    data["duration_seconds"] = round(event.duration_seconds, 6)
    if not data.get("metadata"):
        data.pop("metadata", None)
    output = fill(event.spec.output, data)
    return {**data, "output": output} if output else data


def _name(event: CompactionEvent) -> str:
    """Return the name of the span: that of an operation is the same at its start and its end."""
    if isinstance(event, OperationStartedEvent | OperationEndedEvent):
        return f"compact.{event.operation}"
    return event.name


def _wire_time(seconds: float) -> str:
    """Return ISO 8601 with `Z`: the server takes no other offset."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def _bodies(events: Iterable[Mapping[str, Any]], *, max_bytes: int = _MAX_BODY_BYTES) -> Iterator[_PendingRequest]:
    """Yield requests that each stay below the limit, in order."""
    parts: list[bytes] = []
    size = spans = 0
    for event in events:
        part = encode_json(event)
        if parts and size + len(part) + 1 > max_bytes:
            yield _PendingRequest(_join(parts), spans)
            parts, size, spans = [], 0, 0
        parts.append(part)
        size += len(part) + 1
        spans += event["type"] == "span"
    if parts:
        yield _PendingRequest(_join(parts), spans)


def _join(parts: list[bytes]) -> bytes:
    return b'{"batch":[' + b",".join(parts) + b"]}"
