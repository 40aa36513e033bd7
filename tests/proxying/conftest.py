"""A proxy on loopback in this process, in front of whatever a test puts behind it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from compact import CompactConfig
from compact.proxy.app import ProxyApp
from compact.proxy.server import build_server, listen
from compact.proxy.settings import ProxySettings
from proxying.provider import OPEN, PATIENCE_SECONDS


@dataclass
class Running:
    """A proxy that listens."""

    app: ProxyApp
    url: str

    @property
    def v1(self) -> str:
        return f"{self.url}/v1"


@contextmanager
def running(upstream: str, config: CompactConfig | None = None, **settings: Any) -> Iterator[Running]:
    """A proxy in a thread of its own, until the end of the block."""
    told = ProxySettings(upstream=upstream, port=0, **settings)
    app = ProxyApp(told, config or CompactConfig())
    with listen(told) as listener:
        server = build_server(app)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        eventually(lambda: server.started)
        try:
            yield Running(app, f"http://127.0.0.1:{listener.getsockname()[1]}")
        finally:
            server.should_exit = True
            thread.join(PATIENCE_SECONDS)
    assert not thread.is_alive()


def eventually(condition: Callable[[], object], what: str = "") -> None:
    """Wait until something is so."""
    end = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < end, what or "it never came true"
        time.sleep(0.01)


@pytest.fixture(autouse=True)
def _closed_clients() -> Iterator[None]:
    """What a test leaves open is closed behind it."""
    yield
    while OPEN:
        OPEN.pop().close()
