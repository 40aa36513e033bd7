"""The viewer's server: an application that reads one store, and what runs it."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Callable

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response

from compact.config import CompactConfig
from compact.core.audit.store import StoreError, VersionConflict
from compact.core.errors import CompactError, UnknownSession
from compact.viewer.answers import Refusal, refused
from compact.viewer.guard import Guard
from compact.viewer.live import Live
from compact.viewer.losses import Losses
from compact.viewer.ring import Ring
from compact.viewer.routes import ROUTES
from compact.viewer.settings import ViewerSettings
from compact.viewer.source import Source


def create_app(
    config: CompactConfig,
    settings: ViewerSettings | None = None,
    *,
    pricing: CompactConfig | None = None,
    ring: Ring | None = None,
) -> Starlette:
    """The viewer of the store that a configuration names; `pricing` is where prices come from, if from another."""
    settings = settings or ViewerSettings()
    app = Starlette(
        routes=ROUTES,
        middleware=[Middleware(Guard, settings=settings)],
        exception_handlers={CompactError: _refuse, HTTPException: _refuse_http},
        lifespan=_lifespan,
    )
    app.state.settings = settings
    app.state.source = Source(config, pricing=pricing)
    app.state.live = Live(app.state.source, ring=ring)
    app.state.losses = Losses(app.state.source)
    return app


@contextlib.asynccontextmanager
async def _lifespan(app: Starlette) -> AsyncIterator[None]:
    live: Live = app.state.live
    losses: Losses = app.state.losses
    loop = asyncio.get_running_loop()

    def tell(session_id: str) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended, and everybody has gone
            loop.call_soon_threadsafe(live.tell_session, session_id)

    losses.on_known = tell
    await run_in_threadpool(app.state.settings.learn_names)
    await live.ask()  # before anybody looks, so that whatever comes later is news
    watch = asyncio.create_task(live.watch())
    yield
    watch.cancel()
    live.close()
    losses.close()
    app.state.source.close()


async def _refuse(request: Request, error: Exception) -> Response:
    match error:
        case Refusal():
            return refused(error.status, error.message, error.hint)
        case UnknownSession():
            return refused(404, error.message, "the list of sessions shows all there are")
        case VersionConflict():
            return refused(409, error.message, error.hint)
        case StoreError():
            return refused(503, error.message, error.hint)
        case _:
            return refused(400, getattr(error, "message", str(error)), getattr(error, "hint", ""))


async def _refuse_http(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    said = {404: ("there is nothing here", "the page is at /"), 405: ("this is not how to ask", "")}
    return refused(status, *said.get(status, ("the request was not understood", "")))


class ViewerServer(uvicorn.Server):
    """Runs the viewer; whoever listens is sent home first, or the end would wait for them."""

    def __init__(
        self, app: Starlette, settings: ViewerSettings, *, on_started: Callable[[], None] = lambda: None
    ) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                host=settings.host,
                port=settings.port,
                log_level="warning",
                access_log=False,
                server_header=False,
                # The parser that limits how much of a request's head it takes.
                http="h11",
                ws="none",
                timeout_graceful_shutdown=3,
                limit_concurrency=256,
                h11_max_incomplete_event_size=64 * 1024,
            )
        )
        self._app, self._on_started = app, on_started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen, and say so."""
        await super().startup(sockets)
        if self.started:
            self._on_started()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End all streams, then the rest."""
        self._app.state.live.close()
        await super().shutdown(sockets)
