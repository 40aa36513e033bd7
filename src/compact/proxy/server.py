"""The server that agents connect to: uvicorn, set to add nothing, log no request, and keep header names as written."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Any, cast

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from compact.core.errors import ConfigError
from compact.proxy.app import ProxyApp
from compact.proxy.client_request import RAW_HEADERS, Receive, Scope, Send
from compact.proxy.joined_writes import JoinedWrites
from compact.proxy.settings import ProxySettings

# Chosen: long enough for most answers to end.
_SHUTDOWN_SECONDS = 30
# Chosen: as many agents may connect at the same moment.
_WAITING_CONNECTIONS = 1024
# Chosen: longer than clients keep an idle connection, so that none uses one that is just being closed here.
_KEEPALIVE_SECONDS = 75


class RawHeadersProtocol(H11Protocol):
    """Hands the application header names as they were written; ASGI has them in lower case only."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        super().connection_made(cast(asyncio.Transport, JoinedWrites(transport)))

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        read_event, inner_app = self.conn.next_event, self.app
        raw_headers: list[tuple[bytes, bytes]] = []

        def next_event() -> Any:
            event = read_event()
            if isinstance(event, h11.Request):
                raw_headers[:] = event.headers.raw_items()
            return event

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            # The next request is not read before this one is answered.
            await inner_app({**scope, RAW_HEADERS: list(raw_headers)}, receive, send)  # pyright: ignore[reportArgumentType]

        self.conn.next_event = next_event
        self.app = app  # pyright: ignore[reportAttributeAccessIssue]


def listen(settings: ProxySettings) -> socket.socket:
    """Return a socket on the host and port of the settings; port 0 takes any that is free."""
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
        hint = "stop the program that listens there, or choose another --port; 0 takes any that is free"
        raise ConfigError(f"cannot listen on {where}: {error.strerror}", field="port", hint=hint) from None
    return listener


def build_server(app: ProxyApp) -> uvicorn.Server:
    """Return a server for the application; it finishes the answers that are under way before it stops."""
    return uvicorn.Server(
        uvicorn.Config(
            app,
            http=RawHeadersProtocol,
            ws="none",
            lifespan="on",
            access_log=False,
            log_config=None,
            log_level="critical",  # the application logs what fails
            server_header=False,
            date_header=False,
            proxy_headers=False,
            timeout_keep_alive=_KEEPALIVE_SECONDS,
            timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
        )
    )


def serve(app: ProxyApp, listener: socket.socket, *, ready: Callable[[], None] = lambda: None) -> None:
    """Serve until a signal comes, then finish the answers that are under way."""
    ready()
    build_server(app).run(sockets=[listener])
