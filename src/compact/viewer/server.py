"""The viewer's application, which reads one store, and the server that runs it."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncGenerator, Callable

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
from compact.viewer.access import AccessMiddleware
from compact.viewer.connections import MAX_CONNECTIONS, BoundedHttpProtocol
from compact.viewer.json_http import HttpError, error_response
from compact.viewer.live.feed import LiveFeed
from compact.viewer.pages.costs import CostFinder
from compact.viewer.pages.losses import LossFinder
from compact.viewer.routes import ROUTES
from compact.viewer.settings import ViewerSettings
from compact.viewer.source import DataSource


def create_app(
    config: CompactConfig,
    settings: ViewerSettings | None = None,
) -> Starlette:
    """Return the viewer of the store that a configuration names."""
    settings = settings or ViewerSettings()
    app = Starlette(
        routes=ROUTES,
        middleware=[Middleware(AccessMiddleware, settings=settings)],
        exception_handlers={CompactError: _compact_error_response, HTTPException: _http_error_response},
        lifespan=_lifespan,
    )
    app.state.settings = settings
    app.state.source = DataSource(config, read_only=settings.is_read_only)
    app.state.live = LiveFeed(app.state.source)
    app.state.losses = LossFinder(app.state.source)
    app.state.costs = CostFinder(app.state.source)
    return app


@contextlib.asynccontextmanager
async def _lifespan(app: Starlette) -> AsyncGenerator[None]:
    live: LiveFeed = app.state.live
    losses: LossFinder = app.state.losses
    costs: CostFinder = app.state.costs
    loop = asyncio.get_running_loop()

    def publish_session(session_id: str) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended, and every stream with it
            loop.call_soon_threadsafe(live.publish_session, session_id)

    losses.notify(publish_session)
    costs.notify(publish_session)
    await run_in_threadpool(app.state.settings.look_up_names)
    await live.poll_store()  # before the first page, so that whatever comes later is news
    watch = asyncio.create_task(live.watch_store())
    yield
    watch.cancel()
    live.close()
    losses.close()
    costs.close()
    app.state.source.close()


async def _compact_error_response(request: Request, error: Exception) -> Response:
    match error:
        case HttpError():
            return error_response(error.status, error.message, error.hint)
        case UnknownSession():
            return error_response(404, error.message, "the list of sessions has them all")
        case VersionConflict():
            return error_response(409, error.message, error.hint)
        case StoreError():
            return error_response(503, error.message, error.hint)
        case _:
            return error_response(400, getattr(error, "message", str(error)), getattr(error, "hint", ""))


async def _http_error_response(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    known = {404: ("there is no such address", "the page is at /"), 405: ("this address does not take the method", "")}
    return error_response(status, *known.get(status, ("the request was not understood", "")))


# Chosen: longer than clients keep an idle connection, so that none uses one that is just being closed here.
_KEEPALIVE_SECONDS = 75


class ViewerServer(uvicorn.Server):
    """Runs the viewer; its streams are ended first, or the shutdown would wait for them."""

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
                # The parser that limits the size of a request's head, and how long it may take.
                http=BoundedHttpProtocol,
                ws="none",
                # Chosen: a shutdown of seconds.
                timeout_graceful_shutdown=3,
                limit_concurrency=MAX_CONNECTIONS,
                timeout_keep_alive=_KEEPALIVE_SECONDS,
                h11_max_incomplete_event_size=64 * 1024,
            )
        )
        self._app, self._on_started = app, on_started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen, and call `on_started`."""
        await super().startup(sockets)
        if self.started:
            self._on_started()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End all streams, then the server."""
        self._app.state.live.close()
        await super().shutdown(sockets)
