"""Compacts the conversation in a request, and feeds the usage that its provider reports back to the manager."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Hashable, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass, replace
from typing import Any

from compact.adapters.support import (
    SENT_UNCHANGED,
    OutgoingRequest,
    PreparedRequest,
    RecentDict,
    RequestPreparer,
    UsageFeedback,
    report_failure,
    same_objects,
    without_meta,
)
from compact.adapters.support.endpoints import Body, Endpoint, write_body
from compact.core.engine.events import (
    CompactionCompletedEvent,
    CompactionErrorEvent,
    CompactionEvent,
    HistoryRepairedEvent,
    TokenEstimateEvent,
)
from compact.core.errors import CompactError, InsufficientBudget, UnknownSession
from compact.core.messages.message import SettledItems
from compact.manager import CompactManager
from compact.model_engines import ReportedOverflow
from compact.proxy.bodies.reading import BodyMemory, ReadBody
from compact.proxy.caller_keys import hashed_key
from compact.proxy.outcome import RequestOutcome
from compact.proxy.recall.exchanges import ExchangeMemory
from compact.proxy.recall.offer import OfferedSessions, RecallOffer, may_offer, offered_tool, with_tool
from compact.proxy.sessions import SessionNames, answer_fingerprint, call_text
from compact.runner import run_short

_log = logging.getLogger("compact.proxy")
# Chosen: so many characters of JSON are read in a millisecond or two; a thread for it takes as long on a busy machine.
_READ_AT_ONCE = 262_144
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


@dataclass(frozen=True, slots=True, kw_only=True)
class IncomingBody:
    """The body of a request that may hold a conversation, and what else tells whose it is."""

    endpoint: Endpoint
    raw: bytes
    path: str
    key: bytes = b""
    session_name: bytes = b""

    @property
    def caller(self) -> Hashable:
        """Whose conversations this may be one of."""
        return self.endpoint.dialect, hashed_key(self.key), self.session_name


@dataclass(slots=True)
class _ReadConversation:
    """A conversation that was read from a request, and the manager for its model.

    `session_id` and `call`, its number among the calls of its session, are known later. `unmarked` is the body without
    our own marks, which must not reach the provider whatever happens; None if it has none.
    """

    source: IncomingBody
    text: ReadBody
    body: Body
    items: list[Any]
    model: str
    window_tokens: int
    unmarked: bytes | None = None
    session_id: str = ""
    call: int = 0

    def with_items(self, items: Sequence[Any]) -> bytes:
        """Return the body with other items."""
        return write_body({**self.body, self.source.endpoint.items_key: items})


class RequestCompactor:
    """Compacts the requests of one event loop, and never blocks it; a failure here never stops a request.

    `manager_for` takes the name of a model, and the window that a request asks for, 0 if it asks for none.
    """

    def __init__(self, manager_for: Callable[[str, int], CompactManager], *, offers_recall: bool = True) -> None:
        self._manager_for = manager_for
        # Those that were asked for last: a new one is made in a thread, and one that is known needs none.
        self._managers: RecentDict[tuple[str, int], CompactManager] = RecentDict()
        self._offers_recall = offers_recall
        self._recalling = OfferedSessions()
        self.hidden_exchanges = ExchangeMemory()
        self._bodies = BodyMemory()
        self._names = SessionNames()
        self._usage = UsageFeedback()

    async def compact(self, incoming: IncomingBody) -> RequestOutcome:
        """Return what to send instead of a request, and what to say about it."""
        conversation = await self._read_body(incoming)
        if conversation is None:
            return RequestOutcome("skipped", reason="no-conversation")
        kept_by = incoming.endpoint.history_kept_by(conversation.body)
        if kept_by:
            return RequestOutcome("stood-down", conversation.unmarked, reason=kept_by)
        try:
            manager = await self._manager_of(conversation.model, conversation.window_tokens)
        except Exception as error:  # noqa: BLE001 - a manager is made of plug-ins, which may raise anything
            log_failure(error)
            return _failed(error, conversation.unmarked)
        with _captured_events() as events:
            prepared = await self._prepare(manager, conversation)
        if prepared.items is None:
            return _failed(prepared.error, conversation.unmarked)
        outcome = replace(
            _outcome(events),
            session_id=prepared.session_id,
            call=conversation.call,
            model=conversation.model,
            window_tokens=conversation.window_tokens,
            stored=prepared.stored,
        )
        items = prepared.items
        if same_objects(items, conversation.items) and not self._offers(conversation, outcome.session_id, outcome.plan):
            return replace(outcome, status="unchanged", plan=0, tokens_before=0)
        return await run_short(lambda: self._with_body(outcome, conversation, manager, items))

    async def _read_body(self, incoming: IncomingBody) -> _ReadConversation | None:
        unread = self._bodies.find(incoming.caller, incoming.raw)
        if unread is None:
            return None
        items_key = incoming.endpoint.items_key
        is_short = unread.new_size <= _READ_AT_ONCE
        read = unread.read(items_key) if is_short else await run_short(lambda: unread.read(items_key))
        return _conversation(incoming, read) if read else None

    async def _prepare(self, manager: CompactManager, conversation: _ReadConversation) -> PreparedRequest:
        preparer: RequestPreparer[_ReadConversation] = RequestPreparer(
            manager, "proxy", session_of=lambda one: one.session_id, read=self._read, report=_report
        )
        incoming = conversation.source
        try:
            conversation.session_id = await self._names.name(
                incoming.endpoint,
                conversation.body,
                key=incoming.key,
                given=incoming.session_name,
                find_answers=lambda session_id: _first_answers(manager, session_id),
            )
        except Exception as error:  # noqa: BLE001 - a store may raise anything, and the request must go on
            _report(manager, "proxy", error)
            return PreparedRequest("", error=error)
        self._bodies.keep(incoming.caller, conversation.session_id, conversation.text)
        # What was reported for the last call is taken in before this one is measured.
        await self._usage.aapply(manager, conversation.session_id)
        return await preparer.abegin(conversation)

    def _read(self, conversation: _ReadConversation, session_id: str) -> OutgoingRequest:
        conversation.call, endpoint = self._usage.begin(session_id), conversation.source.endpoint
        # The manager was chosen by the model, unless the settings name one for all requests.
        outgoing = endpoint.outgoing(conversation.body, model="")
        # The request that is compacted first has the tool, too; there it has room, and it counts from the next on.
        offered = [offered_tool(endpoint)] if self._offers(conversation, session_id) else []
        items = self.hidden_exchanges.restore(session_id, endpoint.dialect, list(outgoing.items))
        return replace(outgoing, items=SettledItems(items), tools=[*outgoing.tools, *offered])

    def _offers(self, conversation: _ReadConversation, session_id: str, plan: int = 0) -> bool:
        """Return True if a request offers the recall tool: from its session's first plan on, always."""
        has_begun = bool(plan) or self._recalling.has(session_id)
        return self._offers_recall and has_begun and may_offer(conversation.source.endpoint, conversation.body)

    def _with_body(
        self, outcome: RequestOutcome, conversation: _ReadConversation, manager: CompactManager, items: list[Any]
    ) -> RequestOutcome:
        """Return an outcome with the body to send, which is not the one that came."""
        endpoint, session_id = conversation.source.endpoint, outcome.session_id
        if self._offers(conversation, session_id, outcome.plan):
            self._recalling.add(session_id)
            body = with_tool(endpoint, {**conversation.body, endpoint.items_key: without_meta(items)})
            return replace(outcome, recall=RecallOffer(manager, session_id, endpoint, body), body=write_body(body))
        if outcome.status == "unchanged":  # except for our marks
            return replace(outcome, body=conversation.unmarked)
        return replace(outcome, body=conversation.with_items(items))

    async def _manager_of(self, model: str, window_tokens: int) -> CompactManager:
        known = self._managers.get((model, window_tokens))
        if known is None:
            known = await run_short(lambda: self._manager_for(model, window_tokens))
            self._managers[model, window_tokens] = known
        return known

    def note_usage(self, outcome: RequestOutcome, usage: Mapping[str, Any]) -> None:
        """Keep what was reported for a call until it is applied, unless its session has sent another call since."""
        self._usage.report(outcome.session_id, outcome.call, usage)

    async def learn(self, refused: RequestOutcome, overflow: ReportedOverflow) -> bool:
        """Have the manager learn from a refusal; return False if it cannot."""
        try:
            manager = await self._manager_of(refused.model, refused.window_tokens)
            await manager.aobserve_overflow(refused.session_id, **asdict(overflow))
        except Exception as error:  # noqa: BLE001 - the agent must get the provider's own answer
            log_failure(error)
            return False
        return True

    def forget(self, session_id: str) -> None:
        """Keep nothing of a session that leaves memory: no text of it, and no hidden exchange."""
        self._bodies.forget(session_id)
        self.hidden_exchanges.forget(session_id)

    async def apply_usage(self, outcome: RequestOutcome) -> None:
        """Have the manager correct its estimate by what was reported for the session's newest call, once."""
        manager = await self._manager_of(outcome.model, outcome.window_tokens)
        await self._usage.aapply(manager, outcome.session_id)


def _conversation(incoming: IncomingBody, text: ReadBody) -> _ReadConversation | None:
    endpoint, body = incoming.endpoint, text.fields
    items = endpoint.items(body)
    if not items:
        return None
    conversation = _ReadConversation(
        incoming, text, body, items, endpoint.model(body, incoming.path), endpoint.window_tokens(body)
    )
    bare = without_meta(items)
    conversation.unmarked = None if same_objects(bare, items) else conversation.with_items(bare)
    return conversation


def _report(manager: CompactManager, session_id: str, error: Exception) -> None:
    """Report a failure without its text, which may quote the conversation."""
    log_failure(error)
    if isinstance(error, InsufficientBudget):  # its text has only sizes
        report_failure(manager, session_id, error)
        return
    message = "the compaction of a request failed; the text of the error is left out, it may quote the conversation"
    manager.emit(
        CompactionErrorEvent(session_id=session_id, error_type=_kind(error), message=message, fallback=SENT_UNCHANGED)
    )


def log_failure(error: Exception) -> None:
    """Log what failed, without its text, which may quote the conversation."""
    why = error.message if isinstance(error, InsufficientBudget) else f"compacting it failed ({_kind(error)})"
    _log.warning("a request is passed on as it is: %s", why)


def _kind(error: Exception) -> str:
    return error.code if isinstance(error, CompactError) else type(error).__name__


def _failed(error: Exception | None, body: bytes | None) -> RequestOutcome:
    if isinstance(error, InsufficientBudget):
        return RequestOutcome("over-budget", body, tokens=error.needed_tokens)
    return RequestOutcome("failed", body, reason=_kind(error) if error else "")


async def _first_answers(manager: CompactManager, session_id: str) -> frozenset[str]:
    """Return the fingerprints by which the first answer in a session's log may be recognised."""
    try:
        log = await manager.ahistory(session_id)
    except UnknownSession:
        return frozenset()
    first = next((message for message in log if message.role == "assistant"), None)
    if first is None:
        return frozenset()
    calls = [text for call in first.tool_calls for text in (call.id, call_text(call.name, call.arguments))]
    texts = (*calls, first.text.strip())
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
