"""Listens: uvicorn, told to add nothing, to log no request, and to keep header names as they were written."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from compact.core.errors import ConfigError
from compact.proxy.app import ProxyApp
from compact.proxy.client import RAW_HEADERS, Receive, Scope, Send
from compact.proxy.settings import ProxySettings

_SHUTDOWN_SECONDS = 30
_WAITING_CONNECTIONS = 1024
# Longer than clients keep a quiet connection: none is used by one that is just being closed here.
_KEEPALIVE_SECONDS = 75


class FaithfulProtocol(H11Protocol):
    """Tells the application header names as they were written; ASGI has them in lower case only."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        read, answer = self.conn.next_event, self.app
        names: list[tuple[bytes, bytes]] = []

        def next_event() -> Any:
            event = read()
            if isinstance(event, h11.Request):
                names[:] = event.headers.raw_items()
            return event

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            # The next request is not read before this one is answered.
            await answer({**scope, RAW_HEADERS: list(names)}, receive, send)  # pyright: ignore[reportArgumentType]

        self.conn.next_event = next_event
        self.app = app  # pyright: ignore[reportAttributeAccessIssue]


def listen(settings: ProxySettings) -> socket.socket:
    """A socket on the host and port of the settings; port 0 is any that is free."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    # The protocol is named because asyncio sends small parts at once (TCP_NODELAY) only where it is.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((settings.host.strip("[]"), settings.port))
        listener.listen(_WAITING_CONNECTIONS)
    except OSError as error:
        listener.close()
        where = f"{settings.host}:{settings.port}"
        hint = "stop what is listening there, or choose another --port; 0 takes any that is free"
        raise ConfigError(f"cannot listen on {where}: {error.strerror}", field="port", hint=hint) from None
    return listener


def build_server(app: ProxyApp) -> uvicorn.Server:
    """A server for the application; it ends what is under way before it stops."""
    return uvicorn.Server(
        uvicorn.Config(
            app,
            http=FaithfulProtocol,
            ws="none",
            lifespan="on",
            access_log=False,
            log_config=None,
            log_level="critical",  # what goes wrong is told by the application
            server_header=False,
            date_header=False,
            proxy_headers=False,
            timeout_keep_alive=_KEEPALIVE_SECONDS,
            timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
        )
    )


def serve(app: ProxyApp, listener: socket.socket, *, ready: Callable[[], None] = lambda: None) -> None:
    """Answer until a signal comes, then end what is under way."""
    ready()
    build_server(app).run(sockets=[listener])
