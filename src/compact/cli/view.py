"""`compact view`: a page in the browser that shows what compaction did, and what the model saw."""

from __future__ import annotations

import errno
import os
import socket
import sys
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated
from urllib.parse import quote

import typer

from compact.cli import screen
from compact.cli.options import ConfigFile, Store
from compact.cli.settings import load_config, open_store
from compact.core.errors import CompactError, ConfigError

if TYPE_CHECKING:
    from compact.config import CompactConfig
    from compact.viewer.settings import ViewerSettings

_TOKEN_VARIABLE = "COMPACT_VIEW_TOKEN"

Host = Annotated[str, typer.Option("--host", metavar="ADDRESS", help="Where to listen; not only here needs a token.")]
Port = Annotated[int, typer.Option("--port", metavar="N", min=0, max=65535, help="0 takes any that is free.")]
Token = Annotated[
    str | None, typer.Option("--token", metavar="TEXT", help=f"What lets a browser in; better as {_TOKEN_VARIABLE}.")
]
OneSession = Annotated[str | None, typer.Option("--session", metavar="ID", help="Show this session first.")]
NoOpen = Annotated[bool, typer.Option("--no-open", help="Do not open a browser.")]
ReadOnly = Annotated[bool, typer.Option("--read-only", help="No undo and no restore from the page.")]


def view(
    host: Host = "127.0.0.1",
    port: Port = 5175,
    token: Token = None,
    session: OneSession = None,
    no_open: NoOpen = False,
    read_only: ReadOnly = False,
    store: Store = None,
    config: ConfigFile = None,
) -> None:
    """Show the sessions of a store in the browser.

    Reads the store, and takes the events that agents send to it (telemetry exporter ariadne): it stands in for Ariadne
    on the same port. Only this machine reaches it, unless --host and a token say otherwise. Ctrl-C stops it.
    """
    from compact.viewer.settings import ViewerSettings

    _check_packages()
    chosen = token if token is not None else os.environ.get(_TOKEN_VARIABLE, "")
    viewer = ViewerSettings(host=host, port=port, token=chosen, is_read_only=read_only)
    with open_store(config, store, may_be_new=session is None) as opened:
        if session is not None:
            opened.session(session)
        elif not opened.manager.sessions():
            screen.remark("no sessions in the store yet: they appear as agents run")
        settings = opened.manager.config
    with closing(_listen(host, port)) as listening:
        viewer = replace(viewer, port=listening.getsockname()[1])
        _run(viewer, listening, settings, load_config(config), session=session, opens=not no_open)


def _run(
    viewer: ViewerSettings,
    listening: socket.socket,
    settings: CompactConfig,
    pricing: CompactConfig,
    *,
    session: str | None,
    opens: bool,
) -> None:
    from compact.viewer.server import ViewerServer, create_app

    address = _address(viewer, session, token=viewer.token)

    def tell() -> None:
        # Whoever reads a log or the other end of a pipe need not be whoever may come in.
        is_seen = screen.is_live(sys.stdout)
        screen.line(f"viewer at {address if is_seen else _address(viewer, session)}")
        if viewer.token and not is_seen:
            screen.remark("add ?token=… to the address: the token is only shown on a terminal")
        screen.remark("Ctrl-C stops it")
        if opens and is_seen:
            typer.launch(address)

    app = create_app(settings, viewer, pricing=pricing)
    with suppress(KeyboardInterrupt):
        ViewerServer(app, viewer, on_started=tell).run(sockets=[listening])


def _address(viewer: ViewerSettings, session: str | None, *, token: str = "") -> str:
    """Where to look; a token in it is taken out of it at once."""
    query = f"?token={quote(token)}" if token else ""
    return viewer.url + query + (f"#/s/{quote(session, safe='')}" if session is not None else "")


def _listen(host: str, port: int) -> socket.socket:
    """Listen before anything is said, so that the address that is told is the right one."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP, flags=socket.AI_PASSIVE
        )[0]
        # With its protocol named, or small answers wait for the other side to acknowledge the part before.
        listening = socket.socket(family, kind, protocol)
        with ExitStack() as unless_it_listens:
            unless_it_listens.callback(listening.close)
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(address)
            listening.listen(128)
            unless_it_listens.pop_all()
    except OSError as error:
        is_taken = error.errno == errno.EADDRINUSE
        hint = "another viewer may be running; take another one with --port, or any with --port 0"
        raise CompactError(
            f"cannot listen on {host}:{port}: {error.strerror or error}",
            hint=hint if is_taken else "check --host and --port",
        ) from error
    return listening


def _check_packages() -> None:
    try:
        import starlette
        import uvicorn
    except ModuleNotFoundError as error:
        hint = "pip install 'compact-context[viewer]'"
        raise ConfigError(f"the viewer needs the package {error.name}", field="viewer", hint=hint) from error
    del starlette, uvicorn
