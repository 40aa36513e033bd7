"""Where requests are looked at: reads one, finds its session, has it preflighted, and takes in what was counted."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any

from compact.core.engine.events import (
    CompactionCompletedEvent,
    CompactionEvent,
    HistoryRepairedEvent,
    TokenEstimateEvent,
)
from compact.core.errors import CompactError, InsufficientBudget, UnknownSession
from compact.manager import CompactManager
from compact.proxy.sessions import SessionNames, mark_of
from compact.proxy.verdict import Verdict
from compact.proxy.wires import Body, Wire, has_meta, read_body, without_meta, write_body

_log = logging.getLogger("compact.proxy")
_heard: ContextVar[list[CompactionEvent] | None] = ContextVar("compact_proxy_heard", default=None)
_REMEMBERED_CALLS = 10_000
_STRIPES = 64


def hear(event: CompactionEvent) -> None:
    """A sink for the managers' events: what a preflight tells is heard by whoever asked for it."""
    heard = _heard.get()
    if heard is not None:
        heard.append(event)


@dataclass(slots=True)
class _Call:
    """The newest call of a session, and what was counted for it if that was not taken in yet."""

    number: int
    usage: Mapping[str, Any] | None = None


@dataclass(slots=True)
class Desk:
    """Looks at requests, one per thread; a failure of ours never stops one."""

    manager_of: Callable[[str], CompactManager]
    _names: SessionNames = field(default_factory=SessionNames)
    _calls: OrderedDict[str, _Call] = field(default_factory=OrderedDict[str, _Call])
    _counted: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)
    # What is counted for a call is taken in before the next one is measured, and sessions hardly wait for each other.
    _stripes: tuple[threading.Lock, ...] = field(
        default_factory=lambda: tuple(threading.Lock() for _ in range(_STRIPES))
    )

    def look_at(self, wire: Wire, raw: bytes, headers: Mapping[bytes, bytes]) -> Verdict:
        """What to send instead of a request, and what to say about it."""
        body = read_body(raw)
        items = wire.items(body) if body is not None else None
        if body is None or not items:
            return Verdict("skipped", reason="no-conversation")
        # Whatever happens below, our own marks do not reach the provider.
        plain = write_body({**body, wire.items_key: without_meta(items)}) if has_meta(items) else None
        elsewhere = wire.history_is_elsewhere(body)
        if elsewhere:
            return Verdict("stood-down", plain, reason=elsewhere)
        try:
            return self._preflight(wire, body, plain, headers)
        except InsufficientBudget as error:
            _log.warning("a request is passed on as it is: %s", error.message)
            return Verdict("over-budget", plain, tokens=error.needed_tokens)
        except Exception as error:
            # Its text may hold what somebody said.
            kind = error.code if isinstance(error, CompactError) else type(error).__name__
            _log.warning("a request to %s is passed on as it is: looking at it failed (%s)", wire.ending, kind)
            return Verdict("failed", plain, reason=kind)

    def _preflight(self, wire: Wire, body: Body, plain: bytes | None, headers: Mapping[bytes, bytes]) -> Verdict:
        model, items = str(body.get("model") or ""), wire.items(body) or []
        manager = self.manager_of(model)
        session_id = self._names.name(wire, body, headers, lambda opening: _first_answers(manager, opening))
        self.take_in_usage(manager, session_id)
        call = self._next_call(session_id)
        heard: list[CompactionEvent] = []
        token = _heard.set(heard)
        try:
            sent = manager.preflight(
                session_id,
                items,
                tools=wire.tools(body),
                instructions=wire.instructions(body),
                output_tokens=wire.output_tokens(body),
                dialect=wire.dialect,
            )
        finally:
            _heard.reset(token)
        verdict = replace(_verdict(heard), session_id=session_id, call=call, model=model)
        if len(sent) == len(items) and all(a is b for a, b in zip(sent, items, strict=True)):
            return replace(verdict, word="unchanged", plan=0, tokens_before=0)
        if verdict.word == "unchanged":  # but for our marks
            return replace(verdict, body=plain)
        return replace(verdict, body=write_body({**body, wire.items_key: sent}))

    def _next_call(self, session_id: str) -> int:
        with self._lock:
            self._counted += 1
            self._calls[session_id] = _Call(self._counted)
            self._calls.move_to_end(session_id)
            while len(self._calls) > _REMEMBERED_CALLS:
                self._calls.popitem(last=False)
            return self._counted

    def note_usage(self, verdict: Verdict, usage: Mapping[str, Any]) -> None:
        """Remember what was counted for a call, unless its session has gone on since."""
        with self._lock:
            call = self._calls.get(verdict.session_id)
            if call and call.number == verdict.call:
                call.usage = usage

    def take_in_usage(self, manager: CompactManager, session_id: str) -> None:
        """Have a manager correct its estimate by what was counted for a session's newest call, once."""
        with self._stripes[hash(session_id) % _STRIPES]:
            with self._lock:
                call = self._calls.get(session_id)
                usage = call.usage if call else None
                if call:
                    call.usage = None
            if usage is None:
                return
            try:
                manager.observe_usage(session_id, usage)
            except Exception as error:
                _log.warning("what was counted for %s could not be taken in (%s)", session_id, type(error).__name__)


def _first_answers(manager: CompactManager, session_id: str) -> frozenset[str]:
    """The marks by which the first answer in a session's log may be recognised."""
    try:
        log = manager.history(session_id)
    except UnknownSession:
        return frozenset()
    first = next((message for message in log if message.role == "assistant"), None)
    if first is None:
        return frozenset()
    return frozenset(mark_of(text) for text in (*(call.id for call in first.tool_calls), first.text.strip()) if text)


def _verdict(heard: list[CompactionEvent]) -> Verdict:
    """What a preflight did, as it told itself."""
    estimate = next((event for event in reversed(heard) if isinstance(event, TokenEstimateEvent)), None)
    done = next((event for event in reversed(heard) if isinstance(event, CompactionCompletedEvent)), None)
    plan = max((event.plan_version for event in heard), default=0)
    tokens = estimate.t_est if estimate else 0
    if estimate and done:
        # A compaction counts messages alone, as we do; an estimate all that is sent, as the provider does.
        scale = tokens / max(1, sum(estimate.breakdown.values()))
        after = round(tokens - scale * (done.tokens_before - done.tokens_after))
        return Verdict("compacted", plan=plan, tokens=after, tokens_before=tokens)
    if plan:
        return Verdict("in-force", plan=plan, tokens=tokens)
    is_repaired = any(isinstance(event, HistoryRepairedEvent) for event in heard)
    return Verdict("repaired" if is_repaired else "unchanged", tokens=tokens)
