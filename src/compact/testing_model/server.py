"""The server itself: one thread that listens, one for each request, and answers as the desk says."""

from __future__ import annotations

import json
import select
import socket
import threading
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import cast

from compact.testing_model.desk import WIRES, Desk
from compact.testing_model.openai_wire import OpenAIWire
from compact.testing_model.rules import Fields, Rejected, Rules, Wire, count_pieces
from compact.testing_model.steps import Answer, Cut, Echo, Failure, ModelRequest, Raw, Script, Step


class ScriptedModel:
    """A model server on loopback that answers by script: one step a request, the last one again and again.

    `window_tokens` counts prompt and answer, with `count`. With `api_key` every other key gets a 401, with `models`
    every other model a 404. `reasoning` is the manner of OpenAI's thinking models, which take neither `max_tokens` nor
    a temperature.
    """

    def __init__(
        self,
        *script: Script,
        window_tokens: int = 128_000,
        api_key: str | None = None,
        models: Sequence[str] = (),
        reasoning: bool = False,
        count: Callable[[str], int] = count_pieces,
    ) -> None:
        if not script:
            raise ValueError("a script needs at least one step\nhint: ScriptedModel(say('hello'))")
        known = tuple(models) or ("scripted-model",)
        self._desk = Desk(script, Rules(window_tokens, api_key, known, not models, reasoning, count))
        self._server = _Server(self._desk)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    def __enter__(self) -> ScriptedModel:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop, without waiting for slow steps; a function of the script that failed is raised here."""
        self._desk.closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        if self._desk.script_errors:
            first = self._desk.script_errors[0]
            raise RuntimeError(f"a function of the script raised {first!r}") from first

    @property
    def anthropic_url(self) -> str:
        """What the Anthropic client takes as its base URL."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def base_url(self) -> str:
        """What the OpenAI client takes as its base URL."""
        return f"{self.anthropic_url}/v1"

    @property
    def requests(self) -> tuple[ModelRequest, ...]:
        """Every request that could be parsed, oldest first, rejected ones included."""
        with self._desk.changed:
            return tuple(self._desk.requests)

    @property
    def rejections(self) -> tuple[str, ...]:
        """Why requests were not taken; empty if the client did everything right."""
        with self._desk.changed:
            return tuple(self._desk.rejections)

    @property
    def hangups(self) -> int:
        """How many clients left before they had their answer."""
        with self._desk.changed:
            return self._desk.hangups

    def wait_for(self, *, requests: int = 0, hangups: int = 0, timeout_seconds: float = 10.0) -> bool:
        """Wait until so many requests have arrived and so many clients have left; False if they have not."""
        desk = self._desk
        with desk.changed:
            return desk.changed.wait_for(
                lambda: len(desk.requests) >= requests and desk.hangups >= hangups, timeout_seconds
            )


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, desk: Desk) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.desk = desk


class _Handler(BaseHTTPRequestHandler):
    """One request per connection, so that nothing is left open when the server stops."""

    protocol_version = "HTTP/1.1"
    server_version = "ScriptedModel"
    disable_nagle_algorithm = True

    @property
    def desk(self) -> Desk:
        return cast("_Server", self.server).desk

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: requests are recorded, not printed."""

    def do_GET(self) -> None:
        wire = OpenAIWire()
        try:
            if self.path != "/v1/models":
                raise Rejected(f"Invalid URL (GET {self.path})", status=404)
            self.desk.check_key(wire.key(self._lower_headers()))
        except Rejected as rejected:
            self._reject(rejected, wire)
            return
        names = self.desk.rules.models
        entries = [{"id": name, "object": "model", "created": 1, "owned_by": "script"} for name in names]
        self._send_json(200, {"object": "list", "data": entries})

    def do_POST(self) -> None:
        payload = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path = self.path.split("?")[0]
        wire: Wire = WIRES[path][1] if path in WIRES else OpenAIWire()
        try:
            request = self.desk.receive(path, payload, self._lower_headers())
        except Rejected as rejected:
            self._reject(rejected, wire)
            return
        self._take(self.desk.next_step(request), request, wire)

    def _lower_headers(self) -> dict[str, str]:
        return {name.lower(): value for name, value in self.headers.items()}

    def _reject(self, rejected: Rejected, wire: Wire) -> None:
        self.desk.rejected(rejected.message)
        self._send_json(rejected.status, wire.error(rejected))

    def _take(self, step: Step, request: ModelRequest, wire: Wire) -> None:
        match step:
            case Answer():
                self._send_json(200, self.desk.complete(step, request))
            case Echo():
                self._send_json(200, self.desk.complete(Answer(request.asked), request))
            case Failure():
                error = Rejected(step.message, status=step.status, code=step.code, param=step.param)
                extra = {} if step.retry_after is None else {"Retry-After": f"{step.retry_after:g}"}
                self._send_json(step.status, wire.error(error), extra)
            case Raw():
                self._send(step.status, step.body, {"Content-Type": step.content_type})
            case Cut():
                whole = json.dumps(self.desk.complete(Answer(step.text), request)).encode()
                announced = {"Content-Type": "application/json", "Content-Length": str(len(whole))}
                self._send(200, whole[: len(whole) // 2], announced)
            case _:
                raise TypeError(f"not a step that can be answered: {step!r}")

    def _send_json(self, status: int, body: Fields, extra: dict[str, str] | None = None) -> None:
        self._send(status, json.dumps(body).encode(), {"Content-Type": "application/json", **(extra or {})})

    def _send(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.close_connection = True
        try:
            if self._client_left():
                self.desk.hung_up()
                return
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **headers, "Connection": "close"}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)
        except ConnectionError:
            self.desk.hung_up()

    def _client_left(self) -> bool:
        # Writing to a client that has gone succeeds the first time, so ask the socket instead.
        readable, _, _ = select.select([self.connection], [], [], 0)
        return bool(readable) and self.connection.recv(1, socket.MSG_PEEK) == b""
