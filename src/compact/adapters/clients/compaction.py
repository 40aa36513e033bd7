"""What the wrapped clients share: which session a request belongs to, compacting it, and taking in reported usage."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from compact.adapters.support import (
    USAGE_IGNORED,
    OutgoingRequest,
    PreparedRequest,
    RequestPreparer,
    SessionFinder,
    UsageFeedback,
    checked_manager,
    named_session,
    report_failure,
    same_objects,
)
from compact.dialects.dialect import without_cache_marks
from compact.manager import CompactManager

SessionId: TypeAlias = str | Callable[[Mapping[str, Any]], str] | None
A = TypeVar("A")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationRequest:
    """A request that holds a conversation: its body as it would be sent, and what was read from it.

    `session` is the session that the call itself names. `kept_by` is why the provider has the history, empty if all of
    it is in the request. `agent` tells requests of several agents apart that share a client under one name.
    """

    body: Mapping[str, Any]
    outgoing: OutgoingRequest
    session: str = ""
    kept_by: str = ""
    agent: str = ""


@dataclass(frozen=True, slots=True)
class PreparedCall:
    """The items to send, None if the request goes out as it is; `number` is the call in its session, 0 if uncounted."""

    session_id: str
    items: list[Any] | None = None
    number: int = 0


# A request that nothing is done about.
UNTOUCHED_CALL = PreparedCall("")


class ClientCompactor:
    """Compacts the requests of one wrapped client, and takes in the usage of their answers."""

    def __init__(self, manager: CompactManager, name: str, session_id: SessionId = None) -> None:
        self.manager = manager
        self._session_id = session_id
        self._finder = SessionFinder(name, normalise=without_cache_marks, is_busy=checked_manager(manager).is_busy)
        self._preparer: RequestPreparer[ConversationRequest] = RequestPreparer(
            manager, name, session_of=self._session_of, read=self._read
        )
        self._usage = UsageFeedback()

    def send(self, request: ConversationRequest | None, call: Callable[[PreparedCall], A]) -> tuple[PreparedCall, A]:
        """Send a request with `call`, once more if it is refused as too long; return what was sent, and its answer.

        None is a request that holds no conversation: it is sent as it is.
        """
        if request is None:
            return UNTOUCHED_CALL, call(UNTOUCHED_CALL)
        calls: list[PreparedCall] = []

        def attempt(prepared: PreparedRequest) -> A:
            calls.append(self._call(request, prepared))
            return call(calls[-1])

        _, answer = self._preparer.send(request, attempt)
        return calls[-1], answer

    async def asend(
        self, request: ConversationRequest | None, call: Callable[[PreparedCall], Awaitable[A]]
    ) -> tuple[PreparedCall, A]:
        """Do what `send` does in an event loop."""
        if request is None:
            return UNTOUCHED_CALL, await call(UNTOUCHED_CALL)
        calls: list[PreparedCall] = []

        def attempt(prepared: PreparedRequest) -> Awaitable[A]:
            calls.append(self._call(request, prepared))
            return call(calls[-1])

        _, answer = await self._preparer.asend(request, attempt)
        return calls[-1], answer

    def take_usage(self, call: PreparedCall, usage: object) -> None:
        """Take in what a provider counted for a call, once, and only if it is the newest of its session."""
        if call.number and usage:
            self._usage.report(call.session_id, call.number, usage)
            self._usage.apply(self.manager, call.session_id)

    async def atake_usage(self, call: PreparedCall, usage: object) -> None:
        """Do what `take_usage` does in an event loop."""
        if call.number and usage:
            self._usage.report(call.session_id, call.number, usage)
            await self._usage.aapply(self.manager, call.session_id)

    def report_unread(self, call: PreparedCall, error: Exception) -> None:
        """Report that the usage of an answer could not be read."""
        report_failure(self.manager, call.session_id, error, USAGE_IGNORED)

    def _call(self, request: ConversationRequest, prepared: PreparedRequest) -> PreparedCall:
        number = self._usage.begin(prepared.session_id) if prepared.items is not None else 0
        own = request.outgoing.items
        items = prepared.items_or(own)
        return PreparedCall(prepared.session_id, None if same_objects(items, own) else items, number)

    def _session_of(self, request: ConversationRequest) -> str:
        named = request.session or named_session(self._session_id, request.body)
        if request.agent:
            return self._finder.find(request.outgoing.items, base=named, agent=request.agent)
        # What the provider keeps is no list that continues: such requests are not told apart.
        return named or ("" if request.kept_by else self._finder.find(request.outgoing.items))

    def _read(self, request: ConversationRequest, session_id: str) -> OutgoingRequest | None:
        if request.kept_by:
            self._preparer.notice_provider_keeps_history(session_id, request.kept_by)
            return None
        return request.outgoing if request.outgoing.items else None
