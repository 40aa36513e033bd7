"""CompactManager: one call before each model call, and the questions an operator asks."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar, cast

from compact.assembly import build_archive, build_budget, build_engine, build_store
from compact.background import InProcessPreparer
from compact.config import CompactConfig
from compact.core.ahead import Ahead
from compact.core.budget import TokenBudget
from compact.core.coordinator import CompactionResult
from compact.core.errors import ConfigError, InvalidHistory
from compact.core.events import NoticeEvent
from compact.core.messages import copy_plain
from compact.core.protocols import CompactionStrategy, EventSink, ProviderAwareTokenizer, Summarizer
from compact.core.records import CompactionStore
from compact.core.session import Session
from compact.core.status import SessionStatus, status_of
from compact.driving import adrive, drive
from compact.injection import Injector
from compact.redaction import Redactor
from compact.session_desk import GuardedSession, SessionDesk
from compact.telemetry.dispatcher import Dispatcher
from compact.tokens import model_info
from compact.tokens.usage import reported_input_tokens

M = TypeVar("M")
Tools = Sequence[Mapping[str, Any]]


class Preparer(Protocol):
    """Has summaries written ahead."""

    def __call__(self, session: Session) -> None:
        """Start preparing for a session, without waiting."""
        ...

    def close(self) -> None:
        """Wait for what is under way here."""
        ...


class CompactManager(SessionDesk):
    """Keeps histories inside their window, one session beside the other.

    Safe to share between threads and tasks: two calls for one session never interleave, different sessions never
    wait for each other. `on_event` gets every event; `tokenizer`, `strategies`, `summarizer` and `store` stand in for
    what the configuration would choose, and `redaction_callback` has the last word on every text that leaves.
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
        on_event: EventSink | None = None,
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
        self._events = Dispatcher.for_exporter(
            self.config.telemetry.exporter,
            on_event,
            archive=archive,
            archive_may_wait=self.config.storage.adapter == "s3",
            redact=self._redactor.value,
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
        self._preparer = self._build_preparer(summarizer)
        if self._preparer:
            self._engine = replace(self._engine, ahead=self._build_ahead(self._preparer))
        self._budget = build_budget(self.config, injectors)
        self._sessions: dict[str, GuardedSession] = {}
        self._registry = threading.Lock()
        self._count_instructions = lru_cache(maxsize=64)(self._engine.tokenizer.count_text)
        self._tools_counted: tuple[object, int] = ([], 0)
        for notice in model_info(self.config.model).notices:
            self._events(NoticeEvent(thread_id="", message=notice))
        exporter = self.config.telemetry.exporter
        if exporter not in ("console", "none"):
            notice = (
                f"telemetry.exporter {exporter} is not in this version yet: events only reach on_event and the archive"
            )
            self._events(NoticeEvent(thread_id="", message=notice))
        if not self._redactor.is_enabled:
            warning = "redaction is switched off: archives and exports hold secrets as they are"
            self._events(NoticeEvent(thread_id="", message=warning, severity="high"))

    def preflight(
        self, session_id: str, messages: Sequence[M], *, tools: Tools = (), instructions: str = ""
    ) -> list[M]:
        """The history as it should be sent: unchanged below the trigger, compacted from there on.

        Pass the tool schemas and instructions that are sent beside the messages, so that they are counted.
        """
        guarded, budget = self._enter(session_id, messages, tools, instructions)
        with guarded.lock.hold():
            return cast(list[M], drive(self._engine.preflight(guarded.session, messages, budget)))

    async def apreflight(
        self, session_id: str, messages: Sequence[M], *, tools: Tools = (), instructions: str = ""
    ) -> list[M]:
        """`preflight` for event loops: waits for a summary without blocking."""
        guarded, budget = self._enter(session_id, messages, tools, instructions)
        async with guarded.lock.ahold():
            return cast(list[M], await adrive(self._engine.preflight(guarded.session, messages, budget)))

    def manual_compact(
        self,
        session_id: str,
        messages: Sequence[M],
        note: str | None = None,
        target_tokens: int | None = None,
        *,
        tools: Tools = (),
        instructions: str = "",
    ) -> list[M]:
        """Compact now, whatever the usage; with `target_tokens`, the whole list returned fits it."""
        guarded, budget = self._enter(session_id, messages, tools, instructions)
        with guarded.lock.hold():
            trip = self._engine.manual_compact(
                guarded.session, messages, budget, note=note or "", target_tokens=target_tokens
            )
            return cast(list[M], drive(trip))

    async def amanual_compact(
        self,
        session_id: str,
        messages: Sequence[M],
        note: str | None = None,
        target_tokens: int | None = None,
        *,
        tools: Tools = (),
        instructions: str = "",
    ) -> list[M]:
        """`manual_compact` for event loops."""
        guarded, budget = self._enter(session_id, messages, tools, instructions)
        async with guarded.lock.ahold():
            trip = self._engine.manual_compact(
                guarded.session, messages, budget, note=note or "", target_tokens=target_tokens
            )
            return cast(list[M], await adrive(trip))

    def plan(
        self,
        session_id: str,
        messages: Sequence[object],
        *,
        now: bool = False,
        target_tokens: int | None = None,
        tools: Tools = (),
        instructions: str = "",
    ) -> CompactionResult:
        """What `preflight` would do with this history, or with `now` or a target what `manual_compact` would do.

        Nothing is written and no summary is asked for. Nothing to do is a plan without new records, and its `reason`.
        `economics` says what it would cost and when it has paid for itself: `print(result.economics)`.
        """
        guarded, budget = self._enter(session_id, messages, tools, instructions, register=False)
        with guarded.lock.hold():
            drive(self._engine.refresh(guarded.session))
            trial = guarded.session.fork()
        silent = self._engine.silent()
        return silent.dry_run(trial, messages, budget, now=now, target_tokens=target_tokens)

    def status(self, session_id: str) -> SessionStatus:
        """How full the window is, what is in it, and why it did or did not compact."""
        with self._opened(session_id) as session:
            used = self._engine.decider.used_tokens(session, session.budget or self._budget)
            session.budget = session.budget or self._budget
            return status_of(session, self._engine.compactor.rules, used_tokens=used)

    def observe_usage(self, session_id: str, usage: object) -> None:
        """Take in the input tokens a provider reported for the last prompt: a number, or its `usage` as it is."""
        reported = reported_input_tokens(usage)
        with self._opened(session_id) as session:
            estimated = self._engine.decider.estimated_tokens(session, session.budget or self._budget)
            session.calibration = session.calibration.observe(estimated_tokens=estimated, reported_tokens=reported)
            drive(self._engine.keeper.report_usage(session, reported))

    def delete(self, session_id: str) -> bool:
        """Remove a session and all that belongs to it, from memory and from the store."""
        with self._registry:
            self._sessions.pop(session_id, None)
        return self._store.delete(session_id)

    def close(self) -> None:
        """Let go of everything that is held open; the manager is not used after this."""
        if self._preparer:
            self._preparer.close()
        for guarded in self._sessions.values():
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
        self.close()

    def _enter(
        self, session_id: str, messages: object, tools: Tools, instructions: str, *, register: bool = True
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
        return guarded, self._budget_with(tools, instructions)

    def prepare_summary(self, session_id: str) -> bool:
        """Write the summary that a session's next compaction will need; False if it needs none."""
        with self._opened(session_id) as session:
            trial = session.fork()
        trial.budget = trial.budget or self._budget
        return drive(self._engine.prepare(trial, waits=True))

    def _build_preparer(self, summarizer: Summarizer | None) -> Preparer | None:
        """Who writes summaries ahead: nobody for the built-in summariser, which is quicker than a job."""
        wish = self.config.summarizer.prepare
        is_quick = summarizer is None and not self.config.summarizer.uses_model
        if wish == "never" or (wish == "auto" and is_quick):
            return None
        if self.config.state.url.startswith("postgresql"):
            from compact.job_queue import QueuePreparer  # procrastinate is only loaded by those who use it

            return QueuePreparer(self.config.state.url, tenant_id=self.config.state.tenant_id)
        return InProcessPreparer(lambda session: drive(self._engine.prepare(session)))

    def _build_ahead(self, preparer: Preparer) -> Ahead:
        """Who has summaries written ahead; what a queue is asked for is under way in another process."""
        keeper, announcer = self._engine.keeper, self._engine.announcer
        if isinstance(preparer, InProcessPreparer):
            return Ahead(keeper=keeper, announcer=announcer, start=preparer, under_way=preparer.under_way)
        return Ahead(keeper=keeper, announcer=announcer, start=preparer)

    def _budget_with(self, tools: Tools, instructions: str) -> TokenBudget:
        if not tools and not instructions:
            return self._budget
        counted, tokens = self._tools_counted
        if list(tools) != counted:  # schemas are the same from call to call: counted once, compared in C
            counted, tokens = copy_plain(list(tools)), self._engine.tokenizer.count_tools(tools)
            self._tools_counted = (counted, tokens)
        system = self._count_instructions(instructions) if instructions else 0
        return replace(self._budget, tool_schema_tokens=tokens, system_tokens=system)
