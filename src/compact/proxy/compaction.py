"""Compacts the conversation in a request, and feeds the usage that its provider reports back to the manager."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

from compact.adapters.support import (
    SENT_UNCHANGED,
    OutgoingRequest,
    RequestPreparer,
    UsageFeedback,
    report_failure,
    same_objects,
    without_meta,
)
from compact.adapters.support.endpoints import Body, Endpoint, read_body, write_body
from compact.core.engine.events import (
    CompactionCompletedEvent,
    CompactionErrorEvent,
    CompactionEvent,
    HistoryRepairedEvent,
    TokenEstimateEvent,
)
from compact.core.errors import CompactError, InsufficientBudget, UnknownSession
from compact.manager import CompactManager
from compact.proxy.outcome import RequestOutcome
from compact.proxy.recall.exchanges import ExchangeMemory
from compact.proxy.recall.offer import OfferedSessions, RecallOffer, may_offer, offered_tool, with_tool
from compact.proxy.sessions import SessionNames, answer_fingerprint

_log = logging.getLogger("compact.proxy")
_captured: ContextVar[list[CompactionEvent] | None] = ContextVar("compact_proxy_captured", default=None)


def capture_event(event: CompactionEvent) -> None:
    """Give an event of a manager to the request that is being compacted now; for `on_event`."""
    captured = _captured.get()
    if captured is not None:
        captured.append(event)


@contextmanager
def _captured_events() -> Generator[list[CompactionEvent], None, None]:
    captured: list[CompactionEvent] = []
    token = _captured.set(captured)
    try:
        yield captured
    finally:
        _captured.reset(token)


@dataclass(slots=True)
class _IncomingRequest:
    """A request that holds a conversation; `call` is its number among the calls of its session, once it is known."""

    endpoint: Endpoint
    body: Body
    items: list[Any]
    headers: Mapping[bytes, bytes]
    call: int = 0


class RequestCompactor:
    """Compacts requests, one per thread; a failure here never stops a request."""

    def __init__(self, manager_for: Callable[[str], CompactManager], *, offers_recall: bool = True) -> None:
        self._manager_for = manager_for
        self._offers_recall = offers_recall
        self._recalling = OfferedSessions()
        self.hidden_exchanges = ExchangeMemory()
        self._names = SessionNames()
        self._usage = UsageFeedback()

    def compact(self, endpoint: Endpoint, raw: bytes, headers: Mapping[bytes, bytes]) -> RequestOutcome:
        """Return what to send instead of a request, and what to say about it."""
        body = read_body(raw)
        items = endpoint.items(body) if body is not None else None
        if body is None or not items:
            return RequestOutcome("skipped", reason="no-conversation")
        # Whatever happens below, our own marks do not reach the provider.
        bare = without_meta(items)
        unmarked = None if same_objects(bare, items) else write_body({**body, endpoint.items_key: bare})
        kept_by = endpoint.history_kept_by(body)
        if kept_by:
            return RequestOutcome("stood-down", unmarked, reason=kept_by)
        try:
            manager = self._manager_for(str(body.get("model") or ""))
        except Exception as error:  # noqa: BLE001 - a manager is made of plug-ins, which may raise anything
            _log_failure(error)
            return _failed(error, unmarked)
        return self._compact(manager, _IncomingRequest(endpoint, body, items, headers), unmarked)

    def _compact(self, manager: CompactManager, request: _IncomingRequest, unmarked: bytes | None) -> RequestOutcome:
        preparer: RequestPreparer[_IncomingRequest] = RequestPreparer(
            manager,
            "proxy",
            session_of=lambda incoming: self._session_of(manager, incoming),
            read=lambda incoming, session_id: self._read(manager, incoming, session_id),
            report=_report,
        )
        with _captured_events() as events:
            prepared = preparer.prepare(request)
        if prepared.items is None:
            return _failed(prepared.error, unmarked)
        body, endpoint = request.body, request.endpoint
        model = str(body.get("model") or "")
        outcome = replace(_outcome(events), session_id=prepared.session_id, call=request.call, model=model)
        if self._offers(request, prepared.session_id, outcome.plan):
            self._recalling.add(prepared.session_id)
            body = with_tool(endpoint, {**body, endpoint.items_key: without_meta(prepared.items)})
            offer = RecallOffer(manager, prepared.session_id, endpoint, body)
            return replace(outcome, recall=offer, body=write_body(body))
        if same_objects(prepared.items, request.items):
            return replace(outcome, status="unchanged", plan=0, tokens_before=0)
        if outcome.status == "unchanged":  # except for our marks
            return replace(outcome, body=unmarked)
        return replace(outcome, body=write_body({**body, endpoint.items_key: prepared.items}))

    def _offers(self, request: _IncomingRequest, session_id: str, plan: int = 0) -> bool:
        """Return True if a request offers the recall tool: from its session's first plan on, always."""
        has_begun = bool(plan) or self._recalling.has(session_id)
        return self._offers_recall and has_begun and may_offer(request.endpoint, request.body)

    def _session_of(self, manager: CompactManager, request: _IncomingRequest) -> str:
        return self._names.name(
            request.endpoint,
            request.body,
            request.headers,
            lambda session_id: _first_answers(manager, session_id),
        )

    def _read(self, manager: CompactManager, request: _IncomingRequest, session_id: str) -> OutgoingRequest:
        # What was reported for the last call is taken in before this one is measured.
        self._usage.apply(manager, session_id)
        request.call = self._usage.begin(session_id)
        endpoint, body = request.endpoint, request.body
        # The request that is compacted first has the tool, too; there it has room, and it counts from the next on.
        offers = self._offers(request, session_id)
        return OutgoingRequest(
            items=self.hidden_exchanges.restore(session_id, endpoint.dialect, request.items),
            tools=[*endpoint.tools(body), *([offered_tool(endpoint)] if offers else [])],
            instructions=endpoint.instructions(body),
            output_tokens=endpoint.output_tokens(body),
            dialect=endpoint.dialect,
        )

    def note_usage(self, outcome: RequestOutcome, usage: Mapping[str, Any]) -> None:
        """Keep what was reported for a call until it is applied, unless its session has sent another call since."""
        self._usage.report(outcome.session_id, outcome.call, usage)

    def apply_usage(self, outcome: RequestOutcome) -> None:
        """Have the manager correct its estimate by what was reported for the session's newest call, once."""
        self._usage.apply(self._manager_for(outcome.model), outcome.session_id)


def _report(manager: CompactManager, session_id: str, error: Exception) -> None:
    """Report a failure without its text, which may quote the conversation."""
    _log_failure(error)
    if isinstance(error, InsufficientBudget):  # its text has only sizes
        report_failure(manager, session_id, error)
        return
    message = "the compaction of a request failed; the text of the error is left out, it may quote the conversation"
    manager.emit(
        CompactionErrorEvent(session_id=session_id, error_type=_kind(error), message=message, fallback=SENT_UNCHANGED)
    )


def _log_failure(error: Exception) -> None:
    why = error.message if isinstance(error, InsufficientBudget) else f"compacting it failed ({_kind(error)})"
    _log.warning("a request is passed on as it is: %s", why)


def _kind(error: Exception) -> str:
    return error.code if isinstance(error, CompactError) else type(error).__name__


def _failed(error: Exception | None, body: bytes | None) -> RequestOutcome:
    if isinstance(error, InsufficientBudget):
        return RequestOutcome("over-budget", body, tokens=error.needed_tokens)
    return RequestOutcome("failed", body, reason=_kind(error) if error else "")


def _first_answers(manager: CompactManager, session_id: str) -> frozenset[str]:
    """Return the fingerprints by which the first answer in a session's log may be recognised."""
    try:
        log = manager.history(session_id)
    except UnknownSession:
        return frozenset()
    first = next((message for message in log if message.role == "assistant"), None)
    if first is None:
        return frozenset()
    texts = (*(call.id for call in first.tool_calls), first.text.strip())
    return frozenset(answer_fingerprint(text) for text in texts if text)


def _outcome(events: list[CompactionEvent]) -> RequestOutcome:
    """Return what a preflight did, by the events that it emitted."""
    estimate = next((event for event in reversed(events) if isinstance(event, TokenEstimateEvent)), None)
    completed = next((event for event in reversed(events) if isinstance(event, CompactionCompletedEvent)), None)
    plan = max((event.plan_version for event in events), default=0)
    tokens = estimate.t_est if estimate else 0
    if estimate and completed:
        # The event of a compaction counts messages only, by our own count; an estimate counts all that is sent, as the
        # provider counts it.
        scale = tokens / max(1, sum(estimate.breakdown.values()))
        after = round(tokens - scale * (completed.tokens_before - completed.tokens_after))
        return RequestOutcome("compacted", plan=plan, tokens=after, tokens_before=tokens)
    if plan:
        return RequestOutcome("in-force", plan=plan, tokens=tokens)
    is_repaired = any(isinstance(event, HistoryRepairedEvent) for event in events)
    return RequestOutcome("repaired" if is_repaired else "unchanged", tokens=tokens)
