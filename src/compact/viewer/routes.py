"""What can be asked of the viewer: a handler for each question, which waits in a thread for the store."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from urllib.parse import unquote

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from compact import __version__
from compact.viewer import listing, pages, plan_view, session_view
from compact.viewer.answers import Answer, Refusal
from compact.viewer.bodies import API_BYTES, INGEST_BYTES, read_json
from compact.viewer.call_view import call_page
from compact.viewer.hub import Hub, Subscriber
from compact.viewer.ingest import InvalidEvents, moment, read_events
from compact.viewer.live import Live
from compact.viewer.losses import Losses
from compact.viewer.numbers import CONTENT_TYPE
from compact.viewer.ring import Kept
from compact.viewer.settings import ViewerSettings
from compact.viewer.source import Source

_MOST_ROWS = 1_000
_MOST_NUMBER = 2**53
_STREAM = {"cache-control": "no-store", "x-accel-buffering": "no"}


# -- what is asked ------------------------------------------------------------------------------------------------


def _id(request: Request, name: str = "id") -> str:
    """A part of the path as it was before it was put there."""
    return unquote(request.path_params[name])


def _number(request: Request, name: str, usual: int | None = None, *, most: int = _MOST_NUMBER) -> int:
    """A number of the path or the query, not below zero."""
    text = request.path_params.get(name) or request.query_params.get(name)
    if text is None and usual is not None:
        return usual
    if text is None or not text.isascii() or not text.isdecimal() or len(text) > 16:
        raise Refusal(400, f"{name} is not a number", f"give {name} as digits")
    return min(int(text), most)


def _choice(request: Request, name: str, choices: tuple[str, ...]) -> str:
    value = request.query_params.get(name) or choices[0]
    if value not in choices:
        raise Refusal(400, f"{name} is {value[:40]!r}", f"use one of {', '.join(choices)}")
    return value


def _source(request: Request) -> Source:
    return request.app.state.source


def _live(request: Request) -> Live:
    return request.app.state.live


# -- the page's questions -----------------------------------------------------------------------------------------


async def meta(request: Request) -> Response:
    """What the page needs before anything else."""
    settings: ViewerSettings = request.app.state.settings
    return Answer(
        {
            "version": __version__,
            "csrf": settings.csrf,
            "state": _source(request).kind,
            "read_only": settings.is_read_only,
            "now": time.time(),
        }
    )


async def login(request: Request) -> Response:
    """A token for a cookie."""
    settings: ViewerSettings = request.app.state.settings
    body = await read_json(request, limit_bytes=API_BYTES)
    given = body.get("token") if isinstance(body, dict) else None
    if not settings.token or not isinstance(given, str) or not settings.is_token(given):
        raise Refusal(401, "this is not the token", "open the address that `compact view` printed")
    response = Answer({"ok": True})
    pages.give_cookie(response, settings)
    return response


async def sessions(request: Request) -> Response:
    """The list."""
    wanted = listing.Wanted(
        words=request.query_params.get("q", "")[:500],
        state=_choice(request, "state", listing.STATES),
        sort=_choice(request, "sort", listing.SORTS),
        offset=_number(request, "offset", 0),
        limit=_number(request, "limit", 50, most=200),
    )
    losses: Losses = request.app.state.losses
    in_error = _live(request).ring.threads_in_error()
    return Answer(await run_in_threadpool(listing.list_sessions, _source(request), losses, in_error, wanted))


async def session(request: Request) -> Response:
    """One session; whoever looks at it will want to know what its compactions cost."""
    _source(request).warm_up()
    return Answer(await run_in_threadpool(session_view.session_page, _source(request), _id(request)))


async def plan(request: Request) -> Response:
    """One compaction."""
    asked = plan_view.Asked(
        version=_number(request, "version"),
        against=_number(request, "against") if request.query_params.get("against") else None,
        offset=_number(request, "offset", 0),
        limit=_number(request, "limit", 200, most=_MOST_ROWS),
        only_changed=_choice(request, "only", ("changed", "all")) == "changed",
        report=_choice(request, "report", plan_view.REPORTS),
    )
    return Answer(await run_in_threadpool(plan_view.plan_page, _source(request), _id(request), asked))


async def call(request: Request) -> Response:
    """One model call."""
    page = {"offset": _number(request, "offset", 0), "limit": _number(request, "limit", 200, most=_MOST_ROWS)}
    number = _number(request, "number")
    return Answer(await run_in_threadpool(lambda: call_page(_source(request), _id(request), number, **page)))


async def messages(request: Request) -> Response:
    """A page of the log."""
    page = {"offset": _number(request, "offset", 0), "limit": _number(request, "limit", 200, most=_MOST_ROWS)}
    source, session_id = _source(request), _id(request)
    return Answer(await run_in_threadpool(lambda: session_view.messages_page(source, session_id, **page)))


async def message(request: Request) -> Response:
    """One log entry."""
    wanted = _id(request), _id(request, "message_id")
    return Answer(await run_in_threadpool(session_view.message_page, _source(request), *wanted))


async def why(request: Request) -> Response:
    """Where a phrase went."""
    phrase = request.query_params.get("q", "")[:2_000]
    return Answer(await run_in_threadpool(session_view.why_page, _source(request), _id(request), phrase))


async def undo(request: Request) -> Response:
    """Take the last compaction back."""
    body = await _change(request)
    return await _restored(request, None, seen=_version(body, "version"))


async def restore(request: Request) -> Response:
    """Bring a plan back."""
    body = await _change(request)
    return await _restored(request, _version(body, "version"), seen=_version(body, "from"))


async def _change(request: Request) -> object:
    """What is to be changed, if anything may."""
    body = await read_json(request, limit_bytes=API_BYTES)
    if request.app.state.settings.is_read_only:
        raise Refusal(403, "this viewer only reads", "start it without --read-only")
    return body


def _version(body: object, name: str) -> int:
    version = body.get(name) if isinstance(body, dict) else None
    if isinstance(version, bool) or not isinstance(version, int) or not 0 <= version <= _MOST_NUMBER:
        hint = 'undo takes {"version": the one in force}, restore {"version": N, "from": the one in force}'
        raise Refusal(400, f"{name} is not a number", hint)
    return version


async def _restored(request: Request, version: int | None, *, seen: int) -> Response:
    session_id = _id(request)
    plan, tokens = await run_in_threadpool(lambda: _source(request).restore(session_id, version, seen=seen))
    _live(request).tell_session(session_id)
    return Answer({"plan_version": plan.version, "tokens": tokens})


async def traces(request: Request) -> Response:
    """The traces that came in last."""
    session_id = request.query_params.get("session", "")
    limit = _number(request, "limit", 50, most=_MOST_ROWS)
    # Who is in the ring is looked up here, where nobody writes to it meanwhile; reading them takes longer.
    found = _live(request).ring.find(session_id=session_id, limit=limit)
    return await run_in_threadpool(lambda: Answer({"traces": [trace.about() for trace in found]}))


async def trace(request: Request) -> Response:
    """One trace with its spans."""
    found = _live(request).ring.find_one(_id(request))
    if found is None:
        raise Refusal(404, "there is no such trace in memory", "the oldest make room for new ones")
    return await run_in_threadpool(lambda: Answer(found.whole()))


async def live(request: Request) -> Response:
    """What moves, for the page."""
    return _stream(_live(request).pages, _live(request).look())


# -- Ariadne's wire -----------------------------------------------------------------------------------------------


async def ingest(request: Request) -> Response:
    """Events from an exporter."""
    try:
        events = read_events(await read_json(request, limit_bytes=INGEST_BYTES))
    except InvalidEvents as error:
        return Answer({"error": "Validation failed", "details": error.details[:100]}, status_code=400)
    _live(request).take_in(events)
    return Answer({"success": True, "count": len(events)})


async def events(request: Request) -> Response:
    """Events as they come in; with `replay=1` those in memory first."""
    query = request.query_params
    replay = query.get("replay", "") in ("1", "true")
    return _stream(_live(request).events, _live(request).listen(_filter(request), replay=replay))


def _filter(request: Request) -> Callable[[Kept], bool]:
    """Which events somebody wants: of a trace, of some kinds, since a time."""
    query = request.query_params
    trace_id, since = query.get("traceId", ""), query.get("since", "")
    kinds = {kind.strip() for kind in query.get("kinds", "").split(",") if kind.strip()}
    try:
        earliest = (moment(since) if "T" in since else float(since)) if since else 0.0
    except (ValueError, OverflowError):
        raise Refusal(400, "since is not a time", "give it in ISO 8601 with a Z, or in seconds") from None
    earliest = earliest / 1000 if earliest > 1e11 else earliest  # as JavaScript counts

    def wants(kept: Kept) -> bool:
        is_kind = not kinds or kept.kind in kinds or (kept.type == "trace" and "trace" in kinds)
        return is_kind and (not trace_id or kept.trace_id == trace_id) and kept.at >= earliest

    return wants


async def healthz(request: Request) -> Response:
    """Whether we are alive."""
    ring = _live(request).ring
    kept = {"count": len(ring), "capacity": ring.capacity}
    return Answer({"status": "ok", "timestamp": time.time(), "events": kept})


async def metrics(request: Request) -> Response:
    """Prometheus text."""
    live = _live(request)
    return Response(live.numbers.render(live), media_type=CONTENT_TYPE)


def _stream(hub: Hub, subscriber: Subscriber) -> Response:
    async def frames() -> AsyncIterator[str]:
        try:
            async for frame in subscriber.frames():
                yield frame
        finally:
            hub.unsubscribe(subscriber)

    return StreamingResponse(frames(), media_type="text/event-stream", headers=_STREAM)


_SESSION = "/api/sessions/{id}"
ROUTES = [
    Route("/", pages.index),
    Route("/static/{name:path}", pages.static),
    Route("/api/meta", meta),
    Route("/api/login", login, methods=["POST"]),
    Route("/api/sessions", sessions),
    Route("/api/live", live),
    Route("/api/traces", traces),
    Route("/api/traces/{id}", trace),
    Route(_SESSION, session),
    Route(f"{_SESSION}/plans/{{version}}", plan),
    Route(f"{_SESSION}/calls/{{number}}", call),
    Route(f"{_SESSION}/messages", messages),
    Route(f"{_SESSION}/messages/{{message_id}}", message),
    Route(f"{_SESSION}/why", why),
    Route(f"{_SESSION}/undo", undo, methods=["POST"]),
    Route(f"{_SESSION}/restore", restore, methods=["POST"]),
    Route("/ingest", ingest, methods=["POST"]),
    Route("/events", events),
    Route("/healthz", healthz),
    Route("/metrics", metrics),
]
