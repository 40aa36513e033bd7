"""A provider on a plain socket: keeps every request byte for byte, and answers with the very bytes a test gives it."""

from __future__ import annotations

import json
import socket
import socketserver
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import urlsplit

C = TypeVar("C")
PATIENCE_SECONDS = 30.0
# Clients of a test, to be closed when it is over.
OPEN: list[Any] = []


def until_the_end(client: C) -> C:
    """A client that is closed when the test is over."""
    OPEN.append(client)
    return client


class Cut:
    """The connection breaks here."""


@dataclass(frozen=True)
class Received:
    """One request: its first line and headers as they were, and its body without chunks."""

    head: bytes
    body: bytes

    @property
    def method(self) -> str:
        return self.head.split(b" ", 1)[0].decode()

    @property
    def target(self) -> str:
        return self.head.split(b" ", 2)[1].decode()

    @property
    def path(self) -> str:
        return self.target.split("?")[0]

    @property
    def headers(self) -> list[tuple[str, str]]:
        lines = self.head.decode("latin-1").split("\r\n")[1:]
        return [(name, value.strip()) for name, _, value in (line.partition(":") for line in lines)]

    def header(self, name: str) -> str:
        return next((value for own, value in self.headers if own.lower() == name.lower()), "")

    @property
    def json(self) -> dict[str, Any]:
        return json.loads(self.body)


Part = bytes | threading.Event | Cut
Answer = Callable[[Received], Iterable[Part]]


class Provider:
    """Answers by a function of the request; an event in an answer is waited for, a cut breaks it off."""

    def __init__(self, answer: Answer) -> None:
        self.received: list[Received] = []
        self.hangups = threading.Semaphore(0)
        self.errors: list[BaseException] = []
        self._answer = answer
        self._server = _Server(self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Provider:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        assert not self.errors, self.errors

    def handle(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as stream:
            request = _read(stream)
            if request is None:
                return
            self.received.append(request)
            try:
                for part in self._answer(request):
                    if isinstance(part, threading.Event):
                        if not self._waits(part, connection):
                            return
                    elif isinstance(part, Cut):
                        return
                    else:
                        connection.sendall(part)
            except ConnectionError:
                self.hangups.release()
            except BaseException as error:
                self.errors.append(error)
                raise

    def _waits(self, event: threading.Event, connection: socket.socket) -> bool:
        """Wait for an event; False if the other side hung up."""
        connection.settimeout(0.05)
        for _ in range(int(PATIENCE_SECONDS / 0.05)):
            if event.is_set():
                connection.settimeout(None)
                return True
            try:
                if connection.recv(1, socket.MSG_PEEK) == b"":
                    self.hangups.release()
                    return False
                event.wait(0.05)
            except TimeoutError:
                continue
        raise AssertionError("nobody let this answer go on")


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    request_queue_size = 256

    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        super().__init__(("127.0.0.1", 0), socketserver.BaseRequestHandler)

    def finish_request(self, request: Any, client_address: Any) -> None:
        self._provider.handle(request)


def _read(stream: Any) -> Received | None:
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        line = stream.readline()
        if not line:
            return None
        head += line
    request = Received(head.removesuffix(b"\r\n\r\n"), b"")
    if request.header("transfer-encoding") == "chunked":
        body = b""
        while size := int(stream.readline(), 16):
            body += stream.read(size)
            stream.readline()
        stream.readline()
    else:
        body = stream.read(int(request.header("content-length") or 0))
    return Received(request.head, body)


def head(status: str, *headers: tuple[str, str]) -> bytes:
    """The beginning of an answer."""
    lines = [f"HTTP/1.1 {status}", *(f"{name}: {value}" for name, value in headers), "Connection: close"]
    return "\r\n".join([*lines, "", ""]).encode()


def whole(status: str, body: bytes, *headers: tuple[str, str]) -> list[bytes]:
    """An answer of a known length."""
    return [head(status, *headers, ("Content-Length", str(len(body)))), body]


def as_json(value: Any, status: str = "200 OK", *headers: tuple[str, str]) -> list[bytes]:
    """An answer in JSON."""
    return whole(status, json.dumps(value).encode(), ("Content-Type", "application/json"), *headers)


def chunk(data: bytes) -> bytes:
    """One chunk of an answer without a known length."""
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


END = chunk(b"")


def streamed(content_type: str, parts: Iterable[bytes]) -> list[bytes]:
    """A stream, each part in a chunk of its own."""
    return [head("200 OK", ("Content-Type", content_type), ("Transfer-Encoding", "chunked")), *map(chunk, parts), END]


def talk(url: str, raw: bytes) -> bytes:
    """Everything that a server answers to these bytes until it hangs up."""
    where = urlsplit(url)
    with socket.create_connection((where.hostname or "", where.port or 0), timeout=PATIENCE_SECONDS) as connection:
        connection.sendall(raw.replace(b"{host}", where.netloc.encode()))
        answer = b""
        while part := connection.recv(65536):
            answer += part
        return answer


def request(method: str, target: str, *lines: str, body: bytes = b"") -> bytes:
    """A request as it is on the line; the host is filled in later."""
    first = [f"{method} {target} HTTP/1.1", "Host: {host}"]
    return "\r\n".join([*first, *lines, "Connection: close", "", ""]).encode() + body
