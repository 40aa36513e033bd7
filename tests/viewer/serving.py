"""A real server on a free port, and one who listens to its streams."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import quote

import httpx

from compact import CompactConfig
from compact.viewer.server import ViewerServer, create_app
from compact.viewer.settings import ViewerSettings

# A busy machine may be slow; a condition that never comes true is a failure all the same.
PATIENCE_SECONDS = 30.0


class Running:
    """A viewer that answers, and a client that speaks to it as a program does."""

    def __init__(self, settings: ViewerSettings, config: CompactConfig, listening: socket.socket):
        self.settings, self.port = settings, settings.port
        self.app = create_app(config, settings)
        self.server = ViewerServer(self.app, settings)
        self._thread = threading.Thread(target=self.server.run, kwargs={"sockets": [listening]}, daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self.port}"
        self.client = httpx.Client(base_url=self.url, timeout=PATIENCE_SECONDS)
        until(lambda: self.server.started)

    def get(self, path: str, **query: Any) -> Any:
        """The data of an answer that must be a good one."""
        answer = self.client.get(path, params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def post(self, path: str, body: object, **headers: str) -> httpx.Response:
        """What the page does: with its token, and as JSON."""
        csrf = self.client.get("/api/meta").json()["csrf"]
        return self.client.post(path, json=body, headers={"X-Compact-CSRF": csrf, **headers})

    def send(self, *events: dict[str, Any]) -> None:
        """What an exporter does."""
        answer = self.client.post("/ingest", json={"batch": list(events)})
        assert answer.json() == {"success": True, "count": len(events)}, answer.text

    def stop(self) -> None:
        """End it as Ctrl-C would."""
        self.client.close()
        self.server.should_exit = True
        self._thread.join(PATIENCE_SECONDS)
        assert not self._thread.is_alive(), "it did not end"


@contextmanager
def running(url: str, **settings: Any) -> Iterator[Running]:
    """A viewer of a store."""
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.bind(("127.0.0.1", 0))
    listening.listen(64)
    usual = {"state": {"url": url}, "storage": {"adapter": "none"}, "telemetry": {"exporter": "none"}}
    config = CompactConfig(**usual, tokenizer="simple")
    viewer = Running(ViewerSettings(port=listening.getsockname()[1], **settings), config, listening)
    try:
        yield viewer
    finally:
        viewer.stop()
        listening.close()


class Listening:
    """One who takes what a stream sends, in a thread of its own, until it goes away or the other side ends it."""

    def __init__(self, viewer: Running, path: str, headers: dict[str, str] | None = None) -> None:
        self.frames: list[dict[str, Any]] = []
        self.has_ended = False
        head = [
            f"GET {path} HTTP/1.1",
            "Host: localhost",
            *(f"{name}: {value}" for name, value in (headers or {}).items()),
        ]
        self._connection = socket.create_connection(("127.0.0.1", viewer.port), timeout=PATIENCE_SECONDS)
        self._connection.sendall("\r\n".join([*head, "", ""]).encode())
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()
        until(lambda: self.frames or self.has_ended)

    def of(self, kind: str) -> list[dict[str, Any]]:
        """What has come of one kind."""
        return [frame for frame in self.frames if frame["type"] == kind]

    def _listen(self) -> None:
        # Whoever goes away while something is on its way hears of it; that is no failure.
        with suppress(OSError), self._connection, self._connection.makefile("rb") as lines:
            for line in lines:
                if line == b"0\r\n":
                    break
                # Each frame is a chunk of its own, so a line is never cut in two.
                if line.startswith(b"data: "):
                    self.frames.append(json.loads(line[6:]))
        self.has_ended = True

    def stop(self) -> None:
        """Go away."""
        with suppress(OSError):  # the other side was quicker
            self._connection.shutdown(socket.SHUT_RDWR)
        self._thread.join(PATIENCE_SECONDS)


def until(is_so: Callable[[], object]) -> None:
    """Wait for a condition."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not is_so():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)


def part(text: str) -> str:
    """A piece of a path, as the page writes it."""
    return quote(text, safe="")


def span(number: int = 1, **fields: Any) -> dict[str, Any]:
    """A span as an exporter sends it."""
    usual = {"type": "span", "trace_id": "t1", "span_id": f"s{number}", "name": f"span {number}"}
    times = {"started_at": "2026-01-01T10:00:00Z", "ended_at": f"2026-01-01T10:00:0{number % 10}.5Z"}
    return {**usual, **times, **fields}
