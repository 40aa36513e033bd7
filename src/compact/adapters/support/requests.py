"""Prepare a request to a model: compact it, send it unchanged if that fails, and feed reported usage back.

An adapter says which session a request belongs to and what is in it; `RequestPreparer` does the rest. An agent never
stops because of a failure here: the failure is reported as an event, and the request goes out as it is.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Generic, TypeVar

from compact.adapters.support.items import without_meta
from compact.adapters.support.overflow import find_overflow
from compact.adapters.support.sessions import RecentDict
from compact.core.engine.events import CompactionErrorEvent, NoticeEvent
from compact.core.errors import ConfigError, InsufficientBudget
from compact.dialects import Dialect
from compact.manager import CompactManager
from compact.session_registry import SessionLock
from compact.tokens.usage import ReportedUsage

# What an event says is done instead of what failed.
SENT_UNCHANGED = "the request goes out as it is"
USAGE_IGNORED = "the reported usage is not taken in"
OVERFLOW_PASSED_ON = "the provider's error is passed on"

R = TypeVar("R")
A = TypeVar("A")


def checked_manager(manager: CompactManager) -> CompactManager:
    """Return the manager; raise ConfigError if it is none, such as the configuration of one."""
    if not hasattr(manager, "preflight"):
        got, hint = type(manager).__name__, "pass CompactManager(CompactConfig(model=…))"
        raise ConfigError(f"expected a CompactManager, got {got}", field="manager", hint=hint)
    return manager


def report_failure(manager: CompactManager, session_id: str, error: Exception, fallback: str = SENT_UNCHANGED) -> None:
    """Emit what failed and what is done instead; for a request that cannot fit, a warning of high severity."""
    if isinstance(error, InsufficientBudget):
        # The engine has emitted the error itself; what it cannot know is that the request goes out all the same.
        warning = f"{fallback}, though it cannot be made to fit, and may be rejected: {error.message}"
        manager.emit(NoticeEvent(session_id=session_id, message=warning, severity="high"))
        return
    kind = type(error).__name__
    manager.emit(CompactionErrorEvent(session_id=session_id, error_type=kind, message=str(error), fallback=fallback))


@dataclass(frozen=True, slots=True, kw_only=True)
class OutgoingRequest:
    """What an adapter has read from a request: the messages, what is sent beside them, and their dialect.

    `output_tokens` is the most that the answer may have, as the request or the framework's default says, 0 if neither
    does; `model` is the name that is sent, empty if the framework does not tell.
    `restore` turns prepared items back into the framework's own messages, if `items` were a copy of them as data.
    """

    items: Sequence[Any]
    tools: Sequence[Mapping[str, Any]] = ()
    instructions: str = ""
    output_tokens: int = 0
    model: str = ""
    dialect: str | Dialect | None = None
    restore: Callable[[Sequence[Any]], list[Any]] = list[Any]

    @property
    def options(self) -> dict[str, Any]:
        """The keyword arguments for `preflight`."""
        return {
            "tools": self.tools,
            "instructions": self.instructions,
            "output_tokens": self.output_tokens,
            "model": self.model,
            "dialect": self.dialect,
        }


@dataclass(frozen=True, slots=True)
class PreparedRequest:
    """What to send for a request.

    `items` is None if the framework's own messages are to be sent: because compaction failed, with this `error`, or
    because the adapter wanted none. `session_id` is empty if it could not be found out. `stored` ends once it is
    stored what is sent; None if it is.
    """

    session_id: str
    items: list[Any] | None = None
    error: Exception | None = None
    stored: asyncio.Task[list[Any]] | None = None

    def items_or(self, own: Sequence[Any]) -> list[Any]:
        """Return the items to send: those prepared, or the caller's own without our `meta`."""
        return without_meta(own) if self.items is None else self.items


class RequestPreparer(Generic[R]):
    """Compacts the requests of one adapter; `R` is what the framework's hook is handed.

    `session_of` returns the session of a request, and `read` what is in it, or None if it must be left alone. If
    either of them or the compaction fails, the failure is reported (by `report`) and the prepared request has no
    items; with `strict` the error is raised.
    """

    def __init__(
        self,
        manager: CompactManager,
        adapter: str,
        *,
        session_of: Callable[[R], str],
        read: Callable[[R, str], OutgoingRequest | None],
        strict: bool = False,
        report: Callable[[CompactManager, str, Exception], None] = report_failure,
    ) -> None:
        self.manager = checked_manager(manager)
        self._adapter = adapter  # stands in events for a session that could not be found out
        self._session_of = session_of
        self._read = read
        self._strict = strict
        self._report = report
        self._noticed: RecentDict[tuple[str, str], None] = RecentDict()

    def prepare(self, request: R) -> PreparedRequest:
        """Return what to send for a request."""
        session_id = ""
        try:
            session_id = self._session_of(request)
            return self._compacted(request, session_id)
        except Exception as error:  # noqa: BLE001
            # Whatever fails, in the caller's functions or in ours, must not stop the agent.
            return self._fall_back(session_id, error)

    async def aprepare(self, request: R) -> PreparedRequest:
        """Return what to send for a request, without blocking the event loop."""
        return await self._or_fall_back(request, self._acompacted)

    async def abegin(self, request: R) -> PreparedRequest:
        """Do what `aprepare` does, and return as soon as it is known what to send: `stored` is to be awaited."""
        return await self._or_fall_back(request, self._abegun)

    async def _or_fall_back(
        self, request: R, compacted: Callable[[R, str], Awaitable[PreparedRequest]]
    ) -> PreparedRequest:
        session_id = ""
        try:
            session_id = self._session_of(request)
            return await compacted(request, session_id)
        except Exception as error:  # noqa: BLE001 - as in `prepare`
            return self._fall_back(session_id, error)

    def _compacted(self, request: R, session_id: str) -> PreparedRequest:
        outgoing = self._read(request, session_id)
        if outgoing is None:
            return PreparedRequest(session_id)
        items = self.manager.preflight(session_id, outgoing.items, **outgoing.options)
        return PreparedRequest(session_id, outgoing.restore(items))

    async def _acompacted(self, request: R, session_id: str) -> PreparedRequest:
        outgoing = self._read(request, session_id)
        if outgoing is None:
            return PreparedRequest(session_id)
        items = await self.manager.apreflight(session_id, outgoing.items, **outgoing.options)
        return PreparedRequest(session_id, outgoing.restore(items))

    async def _abegun(self, request: R, session_id: str) -> PreparedRequest:
        outgoing = self._read(request, session_id)
        if outgoing is None:
            return PreparedRequest(session_id)
        items, stored = await self.manager.abegin_preflight(session_id, outgoing.items, **outgoing.options)
        return PreparedRequest(session_id, outgoing.restore(items), stored=stored)

    def _fall_back(self, session_id: str, error: Exception) -> PreparedRequest:
        if self._strict:
            raise error
        self._report(self.manager, session_id or self._adapter, error)
        return PreparedRequest(session_id, error=error)

    # -- a provider that refuses a prompt as too long -----------------------------------------------------------------

    def send(self, request: R, call: Callable[[PreparedRequest], A]) -> tuple[PreparedRequest, A]:
        """Send a request with `call`, and once more, smaller, if it is refused as too long.

        Returns what was sent last, and its answer. Every other error is the caller's, and so is a second refusal.
        """
        prepared = self.prepare(request)
        try:
            return prepared, call(prepared)
        except Exception as error:
            again = self.prepare_again(request, prepared, error)
            if again is None:
                raise
        try:
            return again, call(again)
        except Exception as error:
            self.learn(again, error)
            raise

    async def asend(self, request: R, call: Callable[[PreparedRequest], Awaitable[A]]) -> tuple[PreparedRequest, A]:
        """Do what `send` does in an event loop."""
        prepared = await self.aprepare(request)
        try:
            return prepared, await call(prepared)
        except Exception as error:
            again = await self.aprepare_again(request, prepared, error)
            if again is None:
                raise
        try:
            return again, await call(again)
        except Exception as error:
            await self.alearn(again, error)
            raise

    def prepare_again(self, request: R, refused: PreparedRequest, error: Exception) -> PreparedRequest | None:
        """Return a smaller request for one that was refused as too long; None if there is none, or for other errors."""
        if not self.learn(refused, error):
            return None
        try:
            return _if_changed(self._compacted(request, refused.session_id), refused)
        except Exception as failure:  # noqa: BLE001 - whatever fails here, the caller must see the provider's error
            report_failure(self.manager, refused.session_id, failure, OVERFLOW_PASSED_ON)
            return None

    async def aprepare_again(self, request: R, refused: PreparedRequest, error: Exception) -> PreparedRequest | None:
        """Do what `prepare_again` does in an event loop."""
        if not await self.alearn(refused, error):
            return None
        try:
            return _if_changed(await self._acompacted(request, refused.session_id), refused)
        except Exception as failure:  # noqa: BLE001 - as in `prepare_again`
            report_failure(self.manager, refused.session_id, failure, OVERFLOW_PASSED_ON)
            return None

    def learn(self, refused: PreparedRequest, error: Exception) -> bool:
        """Have the manager learn from the error of a request that was prepared; return True if it was an overflow."""
        return refused.items is not None and observe_overflow(self.manager, refused.session_id, error)

    async def alearn(self, refused: PreparedRequest, error: Exception) -> bool:
        """Do what `learn` does in an event loop."""
        return refused.items is not None and await aobserve_overflow(self.manager, refused.session_id, error)

    # -- notices ------------------------------------------------------------------------------------------------------

    def notice_provider_keeps_history(self, session_id: str, reason: str) -> None:
        """Emit, once for each session, that nothing is compacted because the provider keeps the history."""
        message = f"the provider keeps the history of this conversation ({reason}): nothing is compacted here"
        self.notice_once(session_id, message)

    def notice_once(self, session_id: str, message: str, severity: str = "normal") -> None:
        """Emit a notice, once for each session."""
        session_id = session_id or self._adapter
        if (session_id, message) not in self._noticed:
            self._noticed[session_id, message] = None
            self.manager.emit(NoticeEvent(session_id=session_id, message=message, severity=severity))


def _if_changed(again: PreparedRequest, refused: PreparedRequest) -> PreparedRequest | None:
    """Return a request that differs from the refused one; to send the same again would be refused again."""
    return None if again.items is None or again.items == refused.items else again


# -- what providers report: refusals, and usage ------------------------------------------------------------------------


def observe_overflow(manager: CompactManager, session_id: str, error: BaseException) -> bool:
    """Have the manager learn from an error, if it is an overflow; a failure is reported, and never raised."""
    overflow = find_overflow(error)
    if overflow is None:
        return False
    try:
        manager.observe_overflow(session_id, **asdict(overflow))
    except Exception as failure:  # noqa: BLE001 - whatever fails here, the caller must see the provider's error
        report_failure(manager, session_id, failure, OVERFLOW_PASSED_ON)
        return False
    return True


async def aobserve_overflow(manager: CompactManager, session_id: str, error: BaseException) -> bool:
    """Do what `observe_overflow` does in an event loop."""
    overflow = find_overflow(error)
    if overflow is None:
        return False
    try:
        await manager.aobserve_overflow(session_id, **asdict(overflow))
    except Exception as failure:  # noqa: BLE001 - as in `observe_overflow`
        report_failure(manager, session_id, failure, OVERFLOW_PASSED_ON)
        return False
    return True


def observe_usage(manager: CompactManager, session_id: str, usage: object) -> None:
    """Have the manager correct its estimate by what a provider counted; a failure is reported, and never raised."""
    if not usage:
        return
    try:
        manager.observe_usage(session_id, usage)
    except Exception as error:  # noqa: BLE001 - the answer is there and paid for: no failure here may take it away
        report_failure(manager, session_id, error, USAGE_IGNORED)


async def aobserve_usage(manager: CompactManager, session_id: str, usage: object) -> None:
    """Do what `observe_usage` does in an event loop."""
    if not usage:
        return
    try:
        await manager.aobserve_usage(session_id, usage)
    except Exception as error:  # noqa: BLE001 - as in `observe_usage`
        report_failure(manager, session_id, error, USAGE_IGNORED)


def counted(input_tokens: int | None, *, cache_read: int | None = None, cache_write: int | None = None) -> object:
    """Return what a framework tells of a prompt, cached tokens included, as `observe_usage` takes it.

    Frameworks have 0 where a provider told nothing of its cache: only a cache that did something is taken to be told.
    """
    if not input_tokens or input_tokens < 0:
        return None
    is_told = bool(cache_read or cache_write)
    return ReportedUsage(
        input_tokens=input_tokens,
        cache_read_tokens=(cache_read or 0) if is_told else None,
        cache_write_tokens=(cache_write or 0) if is_told else None,
    )


def prompt_tokens(*, reported: int | None, output: int | None, total: int | None) -> int:
    """Return all tokens that a model has read: some providers count cached ones in the input, some beside it."""
    return max((total or 0) - (output or 0), reported or 0)


@dataclass(slots=True)
class _NewestCall:
    number: int
    usage: object = None
    is_reported: bool = False


class UsageFeedback:
    """Feeds usage that is reported late back to a manager, once, and only if it is about a session's newest prompt.

    Usage of an older prompt would correct the estimate of one that it was not counted for.
    """

    def __init__(self) -> None:
        self._newest: RecentDict[str, _NewestCall] = RecentDict()
        self._count = 0
        self._lock = threading.Lock()
        self._applying: RecentDict[str, SessionLock] = RecentDict()

    def begin(self, session_id: str) -> int:
        """Note that a new prompt of a session is about to be sent, and return the number of this call."""
        with self._lock:
            self._count += 1
            self._newest[session_id] = _NewestCall(self._count)
            return self._count

    def is_newest(self, session_id: str, call: int) -> bool:
        """Return True if no other prompt of the session was sent since this call."""
        with self._lock:
            newest = self._newest.get(session_id)
            return newest is not None and newest.number == call

    def report(self, session_id: str, call: int, usage: object) -> None:
        """Keep what was counted for a call until it is applied, if it is the newest and this the first report."""
        with self._lock:
            newest = self._newest.get(session_id)
            if newest and newest.number == call and not newest.is_reported:
                newest.usage, newest.is_reported = usage, True

    def apply(self, manager: CompactManager, session_id: str) -> None:
        """Have the manager take in what is kept for a session; calls made meanwhile wait until it has."""
        with self._lock_of(session_id).hold():
            observe_usage(manager, session_id, self._take(session_id))

    async def aapply(self, manager: CompactManager, session_id: str) -> None:
        """Do what `apply` does in an event loop."""
        async with self._lock_of(session_id).ahold():
            await aobserve_usage(manager, session_id, self._take(session_id))

    def _lock_of(self, session_id: str) -> SessionLock:
        with self._lock:
            return self._applying.setdefault(session_id, SessionLock())

    def _take(self, session_id: str) -> object:
        """Return what is kept for a session, once."""
        with self._lock:
            newest = self._newest.get(session_id)
            usage = newest.usage if newest else None
            if newest:
                newest.usage = None
            return usage
