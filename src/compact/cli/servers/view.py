"""`compact view`: the viewer, a page in the browser that shows what compaction did and what the model saw."""

from __future__ import annotations

import errno
import os
import socket
import sys
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated
from urllib.parse import quote

import typer

from compact.cli import screen
from compact.cli.options import ConfigFile, Store
from compact.cli.settings import load_config, without_side_effects
from compact.cli.store import open_store
from compact.core.errors import CompactError, ConfigError
from compact.extras import install_line

if TYPE_CHECKING:
    from compact.config import CompactConfig
    from compact.viewer.settings import ViewerSettings

_TOKEN_VARIABLE = "COMPACT_VIEW_TOKEN"

Host = Annotated[
    str,
    typer.Option(
        "--host", metavar="ADDRESS", help="The address to listen on; one that other machines can reach needs a token."
    ),
]
Port = Annotated[
    int, typer.Option("--port", metavar="N", min=0, max=65535, help="The port to listen on; 0 takes a free one.")
]
Token = Annotated[
    str | None,
    typer.Option(
        "--token",
        metavar="TEXT",
        help=f"The token that a browser needs; {_TOKEN_VARIABLE} is safer: others cannot read it.",
    ),
]
OneSession = Annotated[str | None, typer.Option("--session", metavar="ID", help="Open this session.")]
NoOpen = Annotated[bool, typer.Option("--no-open", help="Do not open a browser.")]
Log = Annotated[
    str | None,
    typer.Argument(
        metavar="LOG", help="A log of an agent, or a folder of them, to show instead of the store; nothing is kept."
    ),
]
ReadOnly = Annotated[
    bool, typer.Option("--read-only", help="Write nothing to the store: no undo, no events, no new tables.")
]


def view(
    log: Log = None,
    host: Host = "127.0.0.1",
    port: Port = 5175,
    token: Token = None,
    session: OneSession = None,
    no_open: NoOpen = False,
    read_only: ReadOnly = False,
    store: Store = None,
    config: ConfigFile = None,
) -> None:
    """Open the viewer: the sessions of a store or of a log.

    Reads the store, and receives events from agents whose telemetry exporter is ariadne (the format and port of
    Ariadne, a local trace viewer). Only this machine can reach it, unless you give --host and a token. Stop it with
    Ctrl-C.
    """
    from compact.viewer.settings import ViewerSettings

    _check_packages()
    secret = token if token is not None else os.environ.get(_TOKEN_VARIABLE, "")
    viewer = ViewerSettings(host=host, port=port, token=secret, is_read_only=read_only)
    with ExitStack() as cleanup:
        if log is not None:
            store, session = _import(log, session, store, config, cleanup)
        _open(viewer, session, store, config, opens=not no_open)


def _import(
    log: str, session: str | None, store: str | None, config: Path | None, cleanup: ExitStack
) -> tuple[str, str | None]:
    """Put an agent's logs into a store that goes when the viewer ends; return it, and the only session of it."""
    from compact.cli.transcripts.files import read_transcripts
    from compact.cli.transcripts.logs import import_transcripts

    if store is not None:
        raise CompactError("a log is shown from a store of its own", hint="leave out --store, or import it first")
    folder = cleanup.enter_context(TemporaryDirectory(prefix="compact-view-"))
    url = f"sqlite:///{folder}/state.db"
    transcripts = read_transcripts(log)
    rows = list(import_transcripts(transcripts, without_side_effects(load_config(config, store=url))))
    screen.notice(f"{screen.quantity(len(rows), 'session')} read from {log}; nothing of it is kept")
    return url, session or (rows[0][0] if len(rows) == 1 else None)


def _open(viewer: ViewerSettings, session: str | None, store: str | None, config: Path | None, *, opens: bool) -> None:
    host, port, read_only = viewer.host, viewer.port, viewer.is_read_only
    may_be_new = session is None and not read_only
    with open_store(config, store, may_be_new=may_be_new, read_only=read_only) as opened:
        if session is not None:
            opened.session(session)
        elif not opened.manager.sessions():
            screen.notice("no sessions in the store yet: they appear as agents run")
        # How long events are kept: the commands that only read keep none.
        settings = opened.manager.config.model_copy(update={"state": load_config(config, store=store).state})
    with closing(_listen(host, port)) as listening:
        viewer = replace(viewer, port=listening.getsockname()[1])
        _run(viewer, listening, settings, session=session, opens=opens)


def _run(
    viewer: ViewerSettings,
    listening: socket.socket,
    settings: CompactConfig,
    *,
    session: str | None,
    opens: bool,
) -> None:
    from compact.viewer.server import ViewerServer, create_app

    address = _address(viewer, session, token=viewer.token)

    def print_address() -> None:
        # Output in a log or a pipe may be read by people who must not get the token.
        is_terminal = screen.is_terminal(sys.stdout)
        screen.line(f"viewer at {address if is_terminal else _address(viewer, session)}")
        if viewer.token and not is_terminal:
            screen.notice("add ?token=… to the address: the token is only shown on a terminal")
        screen.notice("Ctrl-C stops it")
        if opens and is_terminal:
            typer.launch(address)

    app = create_app(settings, viewer)
    with suppress(KeyboardInterrupt):
        ViewerServer(app, viewer, on_started=print_address).run(sockets=[listening])


def _address(viewer: ViewerSettings, session: str | None, *, token: str = "") -> str:
    """Return the address of the page; the page removes a token from it at once."""
    query = f"?token={quote(token)}" if token else ""
    return viewer.url + query + (f"#/s/{quote(session, safe='')}" if session is not None else "")


def _listen(host: str, port: int) -> socket.socket:
    """Return a listening socket; opened before the address is printed, so that the address is right."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP, flags=socket.AI_PASSIVE
        )[0]
        # The protocol is named so that asyncio switches off Nagle's algorithm, which delays small responses.
        listening = socket.socket(family, kind, protocol)
        with ExitStack() as cleanup:
            cleanup.callback(listening.close)
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(address)
            listening.listen(128)
            cleanup.pop_all()
    except OSError as error:
        is_taken = error.errno == errno.EADDRINUSE
        hint = "another viewer may be running; choose another port with --port, or a free one with --port 0"
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
        message = f"the viewer needs the package {error.name}"
        raise ConfigError(message, field="viewer", hint=install_line("viewer")) from error
    del starlette, uvicorn
