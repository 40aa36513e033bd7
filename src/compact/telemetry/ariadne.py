"""Sends events to Ariadne's trace viewer, or to `compact view`, which stands in for it."""

from __future__ import annotations

import http.client
import json
from collections import OrderedDict, deque
from collections.abc import Sequence
from typing import Any
from urllib.parse import SplitResult, urlsplit

from compact.core.engine.events import CompactionEvent
from compact.core.errors import ConfigError
from compact.telemetry.ariadne_wire import bodies, span_of, trace_of
from compact.telemetry.complaints import Complaints
from compact.telemetry.worker import Outgoing, Undelivered

_TIMEOUT_SECONDS = 2.0
_MOST_TRACES = 10_000
# The server is there, but cannot take it now.
_TRY_AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504})


class AriadneExporter:
    """Posts batches over one connection that is kept open; never raises, and says on stderr what went wrong."""

    name = "ariadne"

    def __init__(self, url: str, *, token: str = "", timeout_seconds: float = _TIMEOUT_SECONDS) -> None:
        self._place = _parsed(url)
        self._url = f"{self._place.scheme}://{self._place.hostname}:{self._port}{self._place.path}"
        self._timeout_seconds = timeout_seconds
        self._headers = {"Content-Type": "application/json", "User-Agent": "compact"}
        if token := _header_safe(token):
            self._headers["Authorization"] = f"Bearer {token}"
        self._connection: http.client.HTTPConnection | None = None
        self._traces: OrderedDict[str, None] = OrderedDict()
        # The bodies of requests, and how many events are in each.
        self._pending: deque[tuple[bytes, int]] = deque()
        self._lost = 0
        self.complain = Complaints("[Ariadne]")

    def see(self, event: CompactionEvent) -> object:
        """Nothing is needed but the event."""
        return None

    def take(self, batch: Sequence[Outgoing]) -> None:
        """Write the bodies of the requests: each session is introduced once, before its first span."""
        events: list[dict[str, Any]] = []
        for outgoing in batch:
            try:
                span, is_cut = span_of(outgoing)
                trace = trace_of(outgoing)
            except Exception as error:  # one event that cannot be told keeps no other from being sent
                self.complain(f"{outgoing.event.name} could not be written: {type(error).__name__}")
                self._lost += 1
                continue
            if is_cut:
                self.complain(f"{outgoing.event.name} is longer than the server takes: it was cut, and marked")
            if span["trace_id"] not in self._traces:
                events.append(trace)
            self._remember(span["trace_id"])
            events.append(span)
        self._pending.extend(bodies(events))

    def _remember(self, trace_id: str) -> None:
        self._traces[trace_id] = None
        self._traces.move_to_end(trace_id)
        if len(self._traces) > _MOST_TRACES:
            self._traces.popitem(last=False)

    def send(self) -> int:
        """Post what waits, in order; what the server will never take is left out, said, and counted."""
        try:
            while self._pending:
                self._send_first()
        except Undelivered:
            raise
        except Exception:  # it would fail in the same way for ever, and what waits would never end
            self._pending.clear()
            self._lost = 0
            self.close()
            raise
        lost, self._lost = self._lost, 0
        return lost

    def _send_first(self) -> None:
        body, events = self._pending[0]
        status, answer = self._post(body)
        if status in _TRY_AGAIN:
            raise Undelivered(f"{self._url} answered {status}; trying again later")
        if status != 200:
            self.complain(f"{self._url} answered {status}, so a batch is lost: {_details(answer)}")
            self._lost += events
        self._pending.popleft()

    def _post(self, body: bytes) -> tuple[int, str]:
        was_open = self._connection is not None
        try:
            return self._request(body)
        except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError) as error:
            if not was_open:
                raise self._away(error) from error
        except (OSError, http.client.HTTPException) as error:
            raise self._away(error) from error
        self.close()  # one that was kept open may be closed by the other side at any time: once more on a new one
        return self._post(body)

    def _away(self, error: Exception) -> Undelivered:
        self.close()
        self._traces.clear()  # when it comes back it may know nothing of what it was told
        return Undelivered(f"{self._url} cannot be reached ({type(error).__name__}: {error}); trying again later")

    def _request(self, body: bytes) -> tuple[int, str]:
        if self._connection is None:
            self._connection = self._connect()
        self._connection.request("POST", self._path, body, self._headers)
        answer = self._connection.getresponse()
        text = answer.read(10_000).decode("utf-8", "replace")
        if not answer.isclosed():
            self.close()  # more than anybody needs
        return answer.status, text

    @property
    def _port(self) -> int:
        return self._place.port or (443 if self._place.scheme == "https" else 80)

    @property
    def _path(self) -> str:
        query = f"?{self._place.query}" if self._place.query else ""
        return (self._place.path or "/ingest") + query

    def _connect(self) -> http.client.HTTPConnection:
        kind = http.client.HTTPSConnection if self._place.scheme == "https" else http.client.HTTPConnection
        return kind(self._place.hostname or "localhost", self._port, timeout=self._timeout_seconds)

    def forget_connections(self) -> None:
        """In a copy of the process, the connection is the original's."""
        self._connection = None
        self._pending.clear()
        self._lost = 0

    def close(self) -> None:
        """Close the connection."""
        connection, self._connection = self._connection, None
        if connection:
            connection.close()


def _header_safe(token: str) -> str:
    """The token without the blanks around it; one that no header can carry is refused, and not repeated."""
    token = token.strip()
    if not (token.isascii() and token.isprintable()):
        hint = "copy it again: it may have printable ASCII characters only, in one line"
        raise ConfigError("the token cannot stand in a header", field="telemetry.ariadne_token", hint=hint)
    return token


def _parsed(url: str) -> SplitResult:
    hint = "give it as http://host:port/ingest"
    try:
        place = urlsplit(url)
        is_whole = place.scheme in ("http", "https") and bool(place.hostname) and (place.port or 1) > 0
    except ValueError:
        is_whole, place = False, urlsplit("")
    if not is_whole:
        raise ConfigError(f"{url!r} is no address to send to", field="telemetry.ariadne_url", hint=hint)
    return place


def _details(answer: str) -> str:
    """The first thing a server says it did not like."""
    try:
        first = json.loads(answer)["details"][0]
        return f"{first['path']}: {first['message']}"
    except (ValueError, LookupError, TypeError):
        return answer[:300]
