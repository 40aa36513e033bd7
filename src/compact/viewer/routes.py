"""One handler for each address of the viewer; what reads the store runs in a thread."""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections.abc import AsyncIterator, Callable
from typing import TypeVar, cast
from urllib.parse import unquote

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from compact import __version__
from compact.core.audit.store import StoreError
from compact.core.audit.trace_events import StoredEvent
from compact.viewer import static_files
from compact.viewer.json_http import API_BYTES, INGEST_BYTES, HttpError, JsonResponse, read_json
from compact.viewer.live.broadcast import Broadcaster, Subscriber
from compact.viewer.live.feed import LiveFeed
from compact.viewer.live.ingest import InvalidEvents, read_events, unix_seconds
from compact.viewer.live.metrics import CONTENT_TYPE
from compact.viewer.pages import compaction as compaction_pages
from compact.viewer.pages import export as export_pages
from compact.viewer.pages import log as log_pages
from compact.viewer.pages import restoring as restoring_pages
from compact.viewer.pages import session as session_pages
from compact.viewer.pages import sessions as sessions_pages
from compact.viewer.pages import traces as trace_pages
from compact.viewer.pages.call import call_page
from compact.viewer.pages.compare import CallRef, CompareQuery, compare_page
from compact.viewer.pages.costs import CostFinder
from compact.viewer.pages.losses import LossFinder
from compact.viewer.pages.why import WhyQuery, why_page
from compact.viewer.settings import ViewerSettings
from compact.viewer.source import DataSource

T = TypeVar("T")

# Chosen: more rows than a page asks for; the largest number that JavaScript holds exactly.
_MAX_ROWS = 1_000
_MAX_NUMBER = 2**53
# Chosen: how soon a search ends that nobody waits for.
_CONNECTION_CHECK_SECONDS = 0.05
# What a database keeps of each tenant (`compact.stores.sql_events`).
MAX_EVENTS = 100_000
_STREAM_HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}


# -- parameters --------------------------------------------------------------------------------------------------


def _id(request: Request, name: str = "id") -> str:
    """Return a segment of the path, decoded."""
    return unquote(request.path_params[name])


def _number(request: Request, name: str, default: int | None = None, *, most: int = _MAX_NUMBER) -> int:
    """Return a number of the path or the query, not below zero."""
    text = request.path_params.get(name) or request.query_params.get(name)
    if text is None and default is not None:
        return default
    if text is None or not text.isascii() or not text.isdecimal() or len(text) > 16:
        raise HttpError(400, f"{name} is not a number", f"give {name} as digits")
    return min(int(text), most)


def _choice(request: Request, name: str, choices: tuple[str, ...]) -> str:
    """Return a value of the query that must be one of the choices; the first is the default."""
    value = request.query_params.get(name) or choices[0]
    if value not in choices:
        raise HttpError(400, f"{name} is {value[:40]!r}", f"use one of {', '.join(choices)}")
    return value


def _source(request: Request) -> DataSource:
    return request.app.state.source


def _live(request: Request) -> LiveFeed:
    return request.app.state.live


# -- the data of the page ----------------------------------------------------------------------------------------


async def meta(request: Request) -> Response:
    """Answer with what the page needs before anything else."""
    settings: ViewerSettings = request.app.state.settings
    return JsonResponse(
        {
            "version": __version__,
            "csrf": settings.csrf,
            "state": _source(request).kind,
            "read_only": settings.is_read_only,
            "now": time.time(),
        }
    )


async def login(request: Request) -> Response:
    """Exchange the token for a cookie."""
    settings: ViewerSettings = request.app.state.settings
    body = await read_json(request, limit_bytes=API_BYTES)
    token = _field(body, "token")
    if not settings.token or not isinstance(token, str) or not settings.is_token(token):
        raise HttpError(401, "the token is wrong", "open the address that `compact view` printed")
    response = JsonResponse({"ok": True})
    static_files.set_cookie(response, settings)
    return response


async def sessions(request: Request) -> Response:
    """Answer with a page of the list of sessions."""
    query = sessions_pages.SessionQuery(
        words=request.query_params.get("q", "")[:500],
        state=_choice(request, "state", sessions_pages.STATES),
        sort=_choice(request, "sort", sessions_pages.SORTS),
        offset=_number(request, "offset", 0),
        limit=_number(request, "limit", 50, most=200),
    )
    losses: LossFinder = request.app.state.losses
    costs: CostFinder = request.app.state.costs
    return JsonResponse(await run_in_threadpool(sessions_pages.list_sessions, _source(request), losses, costs, query))


async def session(request: Request) -> Response:
    """Answer with one session."""
    source, session_id = _source(request), _id(request)
    until = _number(request, "until") if request.query_params.get("until") else None
    page = session_pages.session_page
    return JsonResponse(await run_in_threadpool(lambda: page(source, session_id, until_call=until)))


async def calls(request: Request) -> Response:
    """Answer with a page of the calls of a session, newest first."""
    page = {"offset": _number(request, "offset", 0), "limit": _number(request, "limit", 200, most=_MAX_ROWS)}
    source, session_id = _source(request), _id(request)
    return JsonResponse(await run_in_threadpool(lambda: session_pages.calls_page(source, session_id, **page)))


async def prompt(request: Request) -> Response:
    """Answer with the prompt of one call in its wire form, to send it again."""
    form, number = _choice(request, "form", export_pages.WIRE_FORMS), _number(request, "number")
    source, session_id = _source(request), _id(request)
    return JsonResponse(await run_in_threadpool(lambda: export_pages.prompt_request(source, session_id, number, form)))


async def export(request: Request) -> Response:
    """Answer with the full log of a session, without secrets, as a file."""
    source, session_id = _source(request), _id(request)
    content = await run_in_threadpool(lambda: b"".join(export_pages.session_lines(source, session_id)))
    # A name of plain characters: any other could end the header, or leave the folder.
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", session_id)[:80].strip("-") or "session"
    headers = {"content-disposition": f'attachment; filename="{name}.jsonl"'}
    return Response(content, media_type="application/x-ndjson", headers=headers)


async def plan(request: Request) -> Response:
    """Answer with one compaction."""
    query = compaction_pages.CompactionQuery(
        version=_number(request, "version"),
        against=_number(request, "against") if request.query_params.get("against") else None,
        offset=_number(request, "offset", 0),
        limit=_number(request, "limit", 200, most=_MAX_ROWS),
        only_changed=_choice(request, "only", ("changed", "all")) == "changed",
        report=_choice(request, "report", compaction_pages.REPORT_CHOICES),
    )
    return JsonResponse(
        await run_in_threadpool(compaction_pages.compaction_page, _source(request), _id(request), query)
    )


async def call(request: Request) -> Response:
    """Answer with the prompt of one model call."""
    page = {"offset": _number(request, "offset", 0), "limit": _number(request, "limit", 200, most=_MAX_ROWS)}
    number = _number(request, "number")
    query = request.query_params
    part, sent_by = query.get("part", "")[:100], query.get("source", "")[:500]
    source, session_id = _source(request), _id(request)
    return JsonResponse(
        await run_in_threadpool(lambda: call_page(source, session_id, number, **page, part=part, sent_by=sent_by))
    )


async def compare(request: Request) -> Response:
    """Answer with two prompts side by side."""

    def side(name: str) -> CallRef:
        number = _number(request, f"{name}_call") if request.query_params.get(f"{name}_call") else None
        return CallRef(request.query_params.get(name, ""), number)

    query = CompareQuery(
        sides=(side("a"), side("b")),
        offset=_number(request, "offset", 0),
        limit=_number(request, "limit", 200, most=_MAX_ROWS),
        only_changed=_choice(request, "only", ("changed", "all")) == "changed",
    )
    return JsonResponse(await run_in_threadpool(compare_page, _source(request), query))


async def messages(request: Request) -> Response:
    """Answer with a page of the log, or of what matches a filter."""
    page = {"offset": _number(request, "offset", 0), "limit": _number(request, "limit", 200, most=_MAX_ROWS)}
    query = request.query_params
    wanted = log_pages.LogFilter(
        role=query.get("role", ""),
        tool=query.get("tool", ""),
        action=query.get("action", ""),
        words=query.get("q", "")[:500],
    )
    source, session_id = _source(request), _id(request)
    return JsonResponse(await run_in_threadpool(lambda: log_pages.messages_page(source, session_id, wanted, **page)))


async def facets(request: Request) -> Response:
    """Answer with what the log of a session can be filtered by."""
    return JsonResponse(await run_in_threadpool(log_pages.facets_page, _source(request), _id(request)))


async def message(request: Request) -> Response:
    """Answer with one log entry."""
    ids = _id(request), _id(request, "message_id")
    return JsonResponse(await run_in_threadpool(log_pages.message_page, _source(request), *ids))


async def why(request: Request) -> Response:
    """Answer with where a phrase is now; the search ends when the page does not wait for it any more."""
    stop = threading.Event()
    query = WhyQuery(
        phrase=request.query_params.get("q", "")[:2_000],
        offset=_number(request, "offset", 0),
        limit=_number(request, "limit", 100, most=_MAX_ROWS),
        should_stop=stop.is_set,
    )
    source, session_id = _source(request), _id(request)
    return JsonResponse(await _while_connected(request, stop, lambda: why_page(source, session_id, query)))


async def _while_connected(request: Request, stop: threading.Event, work: Callable[[], T]) -> T:
    """Run work in a thread; tell it to stop when the client goes away."""
    task = asyncio.ensure_future(run_in_threadpool(work))
    while not (await asyncio.wait({task}, timeout=_CONNECTION_CHECK_SECONDS))[0]:
        if await request.is_disconnected():
            stop.set()
    return await task


async def regrets(request: Request) -> Response:
    """Answer with what the agent asked for again after it was removed."""
    return JsonResponse(await run_in_threadpool(session_pages.regrets_page, _source(request), _id(request)))


async def undo(request: Request) -> Response:
    """Undo the last compaction."""
    body = await _read_change(request)
    return await _restore(request, None, seen_version=_version(body, "version"))


async def restore(request: Request) -> Response:
    """Restore a plan version."""
    body = await _read_change(request)
    return await _restore(request, _version(body, "version"), seen_version=_version(body, "from"))


async def _read_change(request: Request) -> object:
    """Return the body of a request that changes something; an error if this viewer is read-only."""
    body = await read_json(request, limit_bytes=API_BYTES)
    if request.app.state.settings.is_read_only:
        raise HttpError(403, "this viewer is read-only", "start it without --read-only")
    return body


def _field(body: object, name: str) -> object:
    """Return a field of a body; None if there is none."""
    return cast(dict[str, object], body).get(name) if isinstance(body, dict) else None


def _version(body: object, name: str) -> int:
    version = _field(body, name)
    if isinstance(version, bool) or not isinstance(version, int) or not 0 <= version <= _MAX_NUMBER:
        hint = 'undo takes {"version": the version in force}, restore {"version": N, "from": the version in force}'
        raise HttpError(400, f"{name} is not a plan version", hint)
    return version


async def _restore(request: Request, version: int | None, *, seen_version: int) -> Response:
    session_id = _id(request)
    source = _source(request)

    def restore_plan() -> dict[str, int]:
        plan = source.restore(session_id, version, seen_version=seen_version)
        tokens = restoring_pages.tokens_under(source, source.info(session_id), plan)
        return {"plan_version": plan.version, "tokens": tokens}

    done = await run_in_threadpool(restore_plan)
    _live(request).publish_session(session_id)
    return JsonResponse(done)


async def restore_preview(request: Request) -> Response:
    """Answer with what an undo, or the restore of a version, comes to."""
    version = _number(request, "version") if request.query_params.get("version") else None
    return JsonResponse(await run_in_threadpool(restoring_pages.restore_page, _source(request), _id(request), version))


async def traces(request: Request) -> Response:
    """Answer with the traces that were updated last."""
    query = trace_pages.TraceQuery(
        session_id=request.query_params.get("session", ""),
        with_errors=_choice(request, "state", ("all", "errors")) == "errors",
        offset=_number(request, "offset", 0),
        limit=_number(request, "limit", 50, most=_MAX_ROWS),
    )
    return await run_in_threadpool(lambda: JsonResponse(trace_pages.traces_page(_source(request), query)))


async def trace(request: Request) -> Response:
    """Answer with one trace and its newest spans, or those before one."""
    before = _number(request, "before") if request.query_params.get("before") else None
    page = trace_pages.trace_page
    return await run_in_threadpool(lambda: JsonResponse(page(_source(request), _id(request), before=before)))


async def live(request: Request) -> Response:
    """Stream updates to a page."""
    return _stream(_live(request).pages, _live(request).subscribe_page())


# -- Ariadne's interface ------------------------------------------------------------------------------------------


async def ingest(request: Request) -> Response:
    """Take events from an exporter."""
    try:
        events = read_events(await read_json(request, limit_bytes=INGEST_BYTES))
    except InvalidEvents as error:
        return JsonResponse({"error": "Validation failed", "details": error.problems[:100]}, status_code=400)
    await _live(request).receive(events)
    # Ariadne keeps the first version of a span, we the newest: our exporter sends operations when they begin, too.
    return JsonResponse({"success": True, "count": len(events)}, headers={"x-compact-updates": "1"})


async def events(request: Request) -> Response:
    """Stream events as they come in; with `replay=1` the newest of the store first."""
    query = request.query_params
    replay = query.get("replay", "") in ("1", "true")
    subscriber = await _live(request).subscribe_to_events(_filter(request), replay=replay)
    return _stream(_live(request).events, subscriber)


def _filter(request: Request) -> Callable[[StoredEvent], bool]:
    """Return which events a client wants: of a trace, of some kinds, since a time."""
    query = request.query_params
    trace_id, since = query.get("traceId", ""), query.get("since", "")
    kinds = {kind.strip() for kind in query.get("kinds", "").split(",") if kind.strip()}
    try:
        earliest = (unix_seconds(since) if "T" in since else float(since)) if since else 0.0
    except (ValueError, OverflowError):
        raise HttpError(400, "since is not a time", "give it in ISO 8601 with a Z, or in seconds") from None
    earliest = earliest / 1000 if earliest > 1e11 else earliest  # milliseconds, as JavaScript counts

    def wants(event: StoredEvent) -> bool:
        is_kind = not kinds or event.kind in kinds or (event.type == "trace" and "trace" in kinds)
        return is_kind and (not trace_id or event.trace_id == trace_id) and event.at >= earliest

    return wants


async def healthz(request: Request) -> Response:
    """Answer that the server is running, and how many events the store has, if it can be read."""
    count = await run_in_threadpool(_count_events, _source(request))
    events = {"count": count, "capacity": MAX_EVENTS}
    return JsonResponse({"status": "ok", "timestamp": time.time(), "events": events})


def _count_events(source: DataSource) -> int | None:
    try:
        return source.events.count()
    except StoreError:
        return None  # the server is running all the same


async def metrics(request: Request) -> Response:
    """Answer with the metrics as Prometheus text."""
    return Response(_live(request).metrics_text(), media_type=CONTENT_TYPE)


def _stream(broadcaster: Broadcaster, subscriber: Subscriber) -> Response:
    async def frames() -> AsyncIterator[str]:
        try:
            async for frame in subscriber.frames():
                yield frame
        finally:
            broadcaster.unsubscribe(subscriber)

    return StreamingResponse(frames(), media_type="text/event-stream", headers=_STREAM_HEADERS)


_SESSION = "/api/sessions/{id}"
ROUTES = [
    Route("/", static_files.index),
    Route("/static/{name:path}", static_files.static),
    Route("/api/meta", meta),
    Route("/api/login", login, methods=["POST"]),
    Route("/api/sessions", sessions),
    Route("/api/live", live),
    Route("/api/compare", compare),
    Route("/api/traces", traces),
    Route("/api/traces/{id}", trace),
    Route(_SESSION, session),
    Route(f"{_SESSION}/plans/{{version}}", plan),
    Route(f"{_SESSION}/calls", calls),
    Route(f"{_SESSION}/calls/{{number}}", call),
    Route(f"{_SESSION}/calls/{{number}}/prompt", prompt),
    Route(f"{_SESSION}/export", export),
    Route(f"{_SESSION}/facets", facets),
    Route(f"{_SESSION}/messages", messages),
    Route(f"{_SESSION}/messages/{{message_id}}", message),
    Route(f"{_SESSION}/why", why),
    Route(f"{_SESSION}/regrets", regrets),
    Route(f"{_SESSION}/undo", undo, methods=["POST"]),
    Route(f"{_SESSION}/restore", restore, methods=["POST"]),
    Route(f"{_SESSION}/restore", restore_preview),
    Route("/ingest", ingest, methods=["POST"]),
    Route("/events", events),
    Route("/healthz", healthz),
    Route("/metrics", metrics),
]
