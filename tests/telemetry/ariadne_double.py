"""A double of Ariadne's server, as strict as the real one: what it does not know vanishes, what is wrong is refused."""

from __future__ import annotations

import json
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

MAX_BODY_BYTES = 262_144
MAX_NAME, MAX_TEXT = 1_024, 102_400
_TIME = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?Z")
_IDS = {"trace": ("trace_id",), "span": ("trace_id", "span_id")}
_KNOWN = {
    "trace": {"type", "trace_id", "name", "group_id", "started_at", "ended_at", "metadata"},
    "span": {"type", "trace_id", "span_id", "parent_id", "kind", "name", "started_at", "ended_at", "data", "status"},
}


def problems_of(event: Any, path: str) -> Iterator[dict[str, str]]:
    """What the schema has against an event."""
    if not isinstance(event, dict) or event.get("type") not in _KNOWN:
        yield {"path": path, "message": "Invalid discriminator value"}
        return
    for name in _KNOWN[event["type"]] & set(event):
        if not _is_right(name, event[name]):
            yield {"path": f"{path}.{name}", "message": f"Invalid: {event[name]!r}"}
    for name in _IDS[event["type"]]:
        if name not in event:
            yield {"path": f"{path}.{name}", "message": "Required"}
    if str(event.get("ended_at", "z")) < str(event.get("started_at", "")):
        yield {"path": f"{path}.ended_at", "message": "must not be before started_at"}


def _is_right(name: str, value: Any) -> bool:
    if name == "data":
        return isinstance(value, dict)
    if name == "metadata":
        return isinstance(value, dict) and all(isinstance(item, str) for item in value.values())
    if name == "status":
        return value in ("ok", "error")
    if name.endswith("_at"):
        return isinstance(value, str) and _TIME.fullmatch(value) is not None
    return isinstance(value, str) and (bool(value) or not name.endswith("_id"))


def as_kept(event: dict[str, Any]) -> dict[str, Any]:
    """What is left of an event: known fields alone, names and texts cut."""
    kept = {name: value for name, value in event.items() if name in _KNOWN[event["type"]]}
    if "name" in kept:
        kept["name"] = kept["name"][:MAX_NAME]
    if "data" in kept:
        kept["data"] = _cut(kept["data"])
    return kept


def _cut(value: Any) -> Any:
    if isinstance(value, str):
        return value[:MAX_TEXT]
    if isinstance(value, dict):
        return {name: _cut(item) for name, item in value.items()}
    return [_cut(item) for item in value] if isinstance(value, list) else value


@dataclass
class Ariadne:
    """What arrived, and how the server is to behave: `status` other than 200 answers with that, `hangs` never does.

    With `takes_updates` it answers as `compact view` does.
    """

    url: str = ""
    status: int = 200
    hangs: bool = False
    takes_updates: bool = False
    traces: dict[str, dict[str, Any]] = field(default_factory=dict)
    spans: dict[str, dict[str, Any]] = field(default_factory=dict)
    history: list[dict[str, Any]] = field(default_factory=list)
    raw: list[bytes] = field(default_factory=list)
    refusals: list[dict[str, Any]] = field(default_factory=list)
    requests: int = 0
    connections: int = 0
    headers: list[dict[str, str]] = field(default_factory=list)
    arrived: threading.Condition = field(default_factory=threading.Condition)
    released: threading.Event = field(default_factory=threading.Event)
    shut_down: Callable[[], None] = lambda: None

    def take(self, body: bytes) -> tuple[int, dict[str, Any]]:
        """Answer one request."""
        if len(body) > MAX_BODY_BYTES:
            return 413, {"error": "Payload too large"}
        try:
            payload = json.loads(body, parse_constant=_no_such_number)
        except ValueError:
            return 400, {"error": "Invalid JSON"}
        is_batch = isinstance(payload, dict) and "batch" in payload
        events = payload["batch"] if is_batch else [payload]
        problems = [
            problem
            for place, event in enumerate(events)
            for problem in problems_of(event, f"batch.{place}" if is_batch else "")
        ]
        if problems:
            return 400, {"error": "Validation failed", "details": problems}
        for event in map(as_kept, events):
            self.history.append(event)
            if event["type"] == "trace":
                self.traces[event["trace_id"]] = {**self.traces.get(event["trace_id"], {}), **event}
            else:
                known = self.spans.get(event["span_id"], {})
                self.spans[event["span_id"]] = {**known, **event, "received_at": time.time()}
        return 200, {"success": True, "count": len(events)}

    def of(self, name: str) -> list[dict[str, Any]]:
        """The spans with a name, in the order of their arrival."""
        return [span for span in self.spans.values() if span["name"] == name]

    def wait_for(self, count: int, *, seconds: float = 30.0) -> bool:
        """True once so many requests have come."""
        with self.arrived:
            return self.arrived.wait_for(lambda: self.requests >= count, seconds)


def _no_such_number(word: str) -> Any:
    raise ValueError(f"{word} is no JSON")


@contextmanager
def held_port() -> Iterator[int]:
    """A port that refuses every connection, and that nobody else gets; a server of ours may come and go on it."""
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", 0))  # and never listens
        yield holder.getsockname()[1]


@contextmanager
def ariadne_server(port: int = 0) -> Iterator[Ariadne]:
    """The double on a port of this machine."""
    double = Ariadne()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def setup(self) -> None:
            super().setup()
            double.connections += 1
            open_sockets.append(self.connection)

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if double.hangs:
                double.released.wait(60)
            status, answer = (double.status, {"error": "away"}) if double.status != 200 else double.take(body)
            if self.path != "/ingest":
                status, answer = 404, {"error": "Not found"}
            with double.arrived:
                double.requests += 1
                double.raw.append(body)
                double.headers.append(dict(self.headers))
                if status != 200:
                    double.refusals.append({"status": status, **answer})
                double.arrived.notify_all()
            data = json.dumps(answer).encode()
            try:
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.send_header("x-compact-updates", str(int(double.takes_updates)))
                self.end_headers()
                self.wfile.write(data)
            except OSError:
                self.close_connection = True  # who asked is gone

        def log_message(self, format: str, *args: Any) -> None:
            """Nobody reads it."""

    open_sockets: list[socket.socket] = []
    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    server.block_on_close = False
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    double.url = f"http://127.0.0.1:{server.server_address[1]}/ingest"

    def shut_down() -> None:
        """As if the process had been killed: what was connected is not any more."""
        double.released.set()
        server.shutdown()
        server.server_close()
        thread.join(10)
        for connected in open_sockets:
            with suppress(OSError):
                connected.shutdown(socket.SHUT_RDWR)

    double.shut_down = shut_down
    try:
        yield double
    finally:
        shut_down()
