"""CompactManager: one call before each model call, and the questions an operator asks."""

from __future__ import annotations

import threading
from asyncio import to_thread
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any, Self, TypeVar, cast

from compact.assembly import (
    build_ahead,
    build_archive,
    build_budget,
    build_engine,
    build_preparer,
    build_store,
)
from compact.config import CompactConfig
from compact.core.audit.store import CompactionStore
from compact.core.engine.events import CompactionEvent, NoticeEvent
from compact.core.engine.session import Session
from compact.core.engine.status import SessionStatus, status_of
from compact.core.errors import ConfigError, InvalidHistory
from compact.core.log.tokenizer import ProviderAwareTokenizer
from compact.core.plan.budget import TokenBudget
from compact.core.plan.coordinator import CompactionResult
from compact.core.plan.strategy import CompactionStrategy
from compact.core.steps import Trip
from compact.core.summary.summarizer import Summarizer
from compact.dialects import Dialect
from compact.driving import adrive, drive
from compact.injection import Injector
from compact.redaction import Redactor
from compact.request_budget import RequestBudget, Tools
from compact.session_desk import GuardedSession, SessionDesk
from compact.telemetry.emitters import AnySink
from compact.telemetry.exporters import ExportSettings, build_dispatcher
from compact.tokens import model_info
from compact.tokens.usage import reported_input_tokens

M = TypeVar("M")
# Sessions in memory; the store has all of them, and brings back what is asked for.
_MOST_SESSIONS = 1_000


class CompactManager(SessionDesk):
    """Keeps histories inside their window, one session beside the other.

    Safe to share between threads and tasks: two calls for one session never interleave, different sessions never
    wait for each other. `on_event` gets every event, with `event_metadata` in each; `tokenizer`, `strategies`,
    `summarizer` and `store` stand in for what the configuration would choose, and `redaction_callback` has the last
    word on every text that leaves.
    `injectors` add content to the end of every prompt, each within the tokens it reserves.
    """

    def __init__(
        self,
        config: CompactConfig | None = None,
        *,
        tokenizer: ProviderAwareTokenizer | None = None,
        strategies: Sequence[CompactionStrategy] | None = None,
        summarizer: Summarizer | None = None,
        store: CompactionStore | None = None,
        injectors: Sequence[Injector] = (),
        on_event: AnySink | None = None,
        event_metadata: Mapping[str, Any] | None = None,
        redaction_callback: Callable[[str], str] | None = None,
    ) -> None:
        if summarizer is not None and not callable(summarizer):
            hint = "pass a function of a SummaryRequest; a model is named in the configuration, as summarizer.model"
            raise ConfigError(f"expected a callable, got {summarizer!r}", field="summarizer", hint=hint)
        self.config = config or CompactConfig()
        redaction = self.config.redaction
        self._redactor = Redactor(redaction.enabled, redaction.patterns, redaction_callback)
        self._store = store or build_store(self.config)
        archive = build_archive(self.config)
        self._events = build_dispatcher(
            ExportSettings(**self.config.telemetry.for_exporters()),
            on_event,
            archive=archive,
            archive_may_wait=self.config.storage.adapter == "s3",
            redact=self._redactor.value,
            metadata=event_metadata,
        )
        self._engine = build_engine(
            self.config,
            emit=self._events,
            store=self._store,
            adapter=archive,
            redactor=self._redactor,
            tokenizer=tokenizer,
            strategies=strategies,
            summarizer=summarizer,
            injectors=injectors,
        )
        self._preparer = build_preparer(self.config, self._prepare, is_quick=summarizer is None)
        if self._preparer:
            self._engine = replace(self._engine, ahead=build_ahead(self._engine, self._preparer))
        self._budget = RequestBudget(build_budget(self.config, injectors), self._engine.tokenizer)
        self._sessions: OrderedDict[str, GuardedSession] = OrderedDict()
        self._registry = threading.Lock()
        for notice in model_info(self.config.model).notices:
            self._events(NoticeEvent(thread_id="", message=notice))
        if not self._redactor.is_enabled:
            warning = "redaction is switched off: archives and exports hold secrets as they are"
            self._events(NoticeEvent(thread_id="", message=warning, severity="high"))

    def preflight(
        self,
        session_id: str,
        messages: Sequence[M],
        *,
        tools: Tools = (),
        instructions: str = "",
        output_tokens: int = 0,
        dialect: str | Dialect | None = None,
    ) -> list[M]:
        """The history as it should be sent: unchanged below the trigger, compacted from there on.

        Pass the tool schemas and instructions that are sent beside the messages, so that they are counted, and the
        tokens that the request sets aside for its answer (`max_tokens`), so that both fit the window. The dialect
        (`chat`, `responses`, `anthropic`, `gemini`) is found out unless it is named.
        """
        guarded, budget = self._enter(session_id, messages, tools, instructions, output_tokens=output_tokens)
        with guarded.lock.hold():
            return drive(self._preflight(guarded, messages, budget, dialect))

    async def apreflight(
        self,
        session_id: str,
        messages: Sequence[M],
        *,
        tools: Tools = (),
        instructions: str = "",
        output_tokens: int = 0,
        dialect: str | Dialect | None = None,
    ) -> list[M]:
        """`preflight` for event loops: waits for a summary without blocking."""
        guarded, budget = self._enter(session_id, messages, tools, instructions, output_tokens=output_tokens)
        async with guarded.lock.ahold():
            return await adrive(self._preflight(guarded, messages, budget, dialect))

    def _preflight(
        self, guarded: GuardedSession, messages: Sequence[M], budget: TokenBudget, dialect: str | Dialect | None
    ) -> Trip[list[M]]:
        entries = yield from self._come_in(guarded, messages, dialect)
        prompt = yield from self._engine.preflight(guarded.session, entries, budget)
        return cast(list[M], guarded.door.leave(prompt))

    def manual_compact(
        self,
        session_id: str,
        messages: Sequence[M],
        note: str | None = None,
        target_tokens: int | None = None,
        *,
        tools: Tools = (),
        instructions: str = "",
        dialect: str | Dialect | None = None,
    ) -> list[M]:
        """Compact now, whatever the usage; with `target_tokens`, the whole list returned fits it."""
        guarded, budget = self._enter(session_id, messages, tools, instructions)
        with guarded.lock.hold():
            return drive(self._manual_compact(guarded, messages, budget, dialect, note or "", target_tokens))

    async def amanual_compact(
        self,
        session_id: str,
        messages: Sequence[M],
        note: str | None = None,
        target_tokens: int | None = None,
        *,
        tools: Tools = (),
        instructions: str = "",
        dialect: str | Dialect | None = None,
    ) -> list[M]:
        """`manual_compact` for event loops."""
        guarded, budget = self._enter(session_id, messages, tools, instructions)
        async with guarded.lock.ahold():
            return await adrive(self._manual_compact(guarded, messages, budget, dialect, note or "", target_tokens))

    def _manual_compact(
        self,
        guarded: GuardedSession,
        messages: Sequence[M],
        budget: TokenBudget,
        dialect: str | Dialect | None,
        note: str,
        target_tokens: int | None,
    ) -> Trip[list[M]]:
        entries = yield from self._come_in(guarded, messages, dialect)
        trip = self._engine.manual_compact(guarded.session, entries, budget, note=note, target_tokens=target_tokens)
        return cast(list[M], guarded.door.leave((yield from trip)))

    def _come_in(
        self, guarded: GuardedSession, messages: Sequence[object], dialect: str | Dialect | None
    ) -> Trip[Sequence[object]]:
        """A caller's list as entries of the log, in whatever dialect it is."""
        door = guarded.door
        door.choose(messages, dialect, likely=self._likely_dialect)
        if door.must_learn:
            yield from self._engine.refresh(guarded.session)
            door.learn(guarded.session.shown)
        return door.enter(messages)

    @property
    def _likely_dialect(self) -> str:
        """What plain text is taken for, which could be in any dialect: what the model's own provider takes."""
        return "anthropic" if self.config.model.startswith("claude") else "chat"

    def plan(
        self,
        session_id: str,
        messages: Sequence[object],
        *,
        now: bool = False,
        target_tokens: int | None = None,
        tools: Tools = (),
        instructions: str = "",
        dialect: str | Dialect | None = None,
    ) -> CompactionResult:
        """What `preflight` would do with this history, or with `now` or a target what `manual_compact` would do.

        Nothing is written and no summary is asked for. Nothing to do is a plan without new records, and its `reason`.
        `economics` says what it would cost and when it has paid for itself: `print(result.economics)`.
        """
        guarded, budget = self._enter(session_id, messages, tools, instructions, register=False)
        with guarded.lock.hold():
            drive(self._engine.refresh(guarded.session))
            entries = drive(self._come_in(guarded, messages, dialect))
            trial = guarded.session.fork()
        silent = self._engine.silent()
        return silent.dry_run(trial, entries, budget, now=now, target_tokens=target_tokens)

    def status(self, session_id: str) -> SessionStatus:
        """How full the window is, what is in it, and why it did or did not compact."""
        with self._opened(session_id) as session:
            used = self._engine.decider.used_tokens(session, session.budget or self._budget.window)
            session.budget = session.budget or self._budget.window
            return status_of(session, self._engine.compactor.rules, used_tokens=used)

    def observe_usage(self, session_id: str, usage: object) -> None:
        """Take in the input tokens a provider reported for the last prompt: a number, or its `usage` as it is."""
        reported = reported_input_tokens(usage)
        with self._opened(session_id) as session:
            estimated = self._engine.decider.estimated_tokens(session, session.budget or self._budget.window)
            session.calibration = session.calibration.observe(estimated_tokens=estimated, reported_tokens=reported)
            drive(self._engine.keeper.report_usage(session, reported))

    @property
    def store(self) -> CompactionStore:
        """Where log, plans, model calls and artifacts live."""
        return self._store

    def emit(self, event: CompactionEvent) -> None:
        """Have every sink hear of something that happened around this manager, in an adapter for instance."""
        self._events(event)

    def forget(self, session_id: str) -> None:
        """Let a session go from memory; the store still has it, and the next call brings it back."""
        with self._registry:
            guarded = self._sessions.pop(session_id, None)
        if guarded:
            with guarded.lock.hold():
                drive(self._engine.keeper.flush(guarded.session))

    def delete(self, session_id: str) -> bool:
        """Remove a session and all that belongs to it, from memory and from the store."""
        with self._registry:
            self._sessions.pop(session_id, None)
        return self._store.delete(session_id)

    def close(self) -> None:
        """Let go of everything that is held open; the manager is not used after this."""
        if self._preparer:
            self._preparer.close()
        for guarded in list(self._sessions.values()):
            with guarded.lock.hold():
                drive(self._engine.keeper.flush(guarded.session))
        self._events.close()
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await to_thread(self.close)  # a task may still be in a session: waiting for it must not stop it

    def _enter(
        self,
        session_id: str,
        messages: object,
        tools: Tools,
        instructions: str,
        *,
        output_tokens: int = 0,
        register: bool = True,
    ) -> tuple[GuardedSession, TokenBudget]:
        if not isinstance(session_id, str) or not session_id:
            raise InvalidHistory(f"expected a text that is not empty, got {session_id!r}", place="session_id")
        if not isinstance(messages, list | tuple):
            hint = "pass the conversation as a list of messages"
            raise InvalidHistory(f"expected a list, got {type(messages).__name__}", place="messages", hint=hint)
        with self._registry:
            guarded = self._sessions.get(session_id) or GuardedSession(Session(session_id))
            if register:
                self._sessions[session_id] = guarded
                self._sessions.move_to_end(session_id)
        if len(self._sessions) > _MOST_SESSIONS:
            self._forget_oldest()
        return guarded, self._budget.beside(tools, instructions, output_tokens)

    def _forget_oldest(self) -> None:
        """Let go of the session that nobody has used for longest; one that somebody is in stays."""
        with self._registry:
            oldest = next((known for known, guarded in self._sessions.items() if not guarded.lock.is_held), None)
        if oldest is not None:
            self.forget(oldest)

    def prepare_summary(self, session_id: str) -> bool:
        """Write the summary that a session's next compaction will need; False if it needs none."""
        with self._opened(session_id) as session:
            trial = session.fork()
        trial.budget = trial.budget or self._budget.window
        return drive(self._engine.prepare(trial, waits=True))

    def _prepare(self, session: Session) -> bool:
        """What a preparer does, off the critical path."""
        return drive(self._engine.prepare(session))
