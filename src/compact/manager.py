"""CompactManager: one call before each model call, and the questions an operator asks."""

from __future__ import annotations

import asyncio
import time
import warnings
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeVar, cast

from compact.arguments import (
    CallOptions,
    CompactionOptions,
    Tools,
    check_messages,
    check_plug,
    check_question,
    check_session_id,
    check_summarizer,
    check_text,
    checked_config,
    named_arguments,
)
from compact.assembly.engines import EngineBuilder
from compact.assembly.prefetch import build_prefetcher
from compact.assembly.recall import build_rehydration_config, build_semantic_search, usual_sensitivity
from compact.assembly.rules import build_constraints
from compact.assembly.storage import build_archive, build_event_writer, build_shared, build_store, without_unwritable
from compact.config import CompactConfig
from compact.config_sources import misspelt_variables_notice, unread_file_notice
from compact.core.audit.archive import StorageAdapter
from compact.core.audit.artifacts import SecurityContext
from compact.core.audit.cost import SessionCost, cost_of
from compact.core.audit.records import (
    ModelCall,
    PlanVersion,
    SessionInfo,
    StoredSession,
    version_before_compaction,
)
from compact.core.audit.report import CompactionReport, reports_of
from compact.core.audit.store import SessionStore
from compact.core.audit.why import PhraseTrace
from compact.core.engine.engine import Engine
from compact.core.engine.events import CompactionEvent, NoticeEvent
from compact.core.engine.status import SessionStatus, status_of
from compact.core.errors import CompactError, InvalidHistory, UnknownSession
from compact.core.facts.constraints import ConstraintFinder
from compact.core.messages.message import Message, SettledItems
from compact.core.messages.tokenizer import ProviderAwareTokenizer
from compact.core.plan.budget import TokenBudget
from compact.core.plan.plan import CompactionPlan
from compact.core.plan.renderer import RenderedPrompt
from compact.core.plan.strategy import CompactionStrategy
from compact.core.planning.coordinator import CompactionResult
from compact.core.plurals import quantity
from compact.core.session.prompt import CurrentPrompt
from compact.core.session.session import Session
from compact.core.steps import Steps
from compact.core.summary.summarizer import Summarizer
from compact.dialects import DIALECTS, Dialect
from compact.dialects.gateway import Gateway
from compact.dialects.translation import ShownList
from compact.injection import Injector
from compact.model_engines import ModelEngineBuilder, ModelEngines, ReportedOverflow
from compact.pricing import listed_prices
from compact.recall.phrase_finder import PhraseFinder
from compact.recall.rehydration import RehydrationConfig
from compact.recall.search import Recall
from compact.recall.semantic import Embed
from compact.redaction import Redactor
from compact.runner import arun_steps, run_blocking, run_steps
from compact.session_recall import SessionRecall, build_reminder
from compact.session_registry import HeldSession, SessionRegistry
from compact.stores.memory import InProcessSharedStore
from compact.stores.scanning import reader_of
from compact.summarizers.circuit_breaker import CircuitBreaker
from compact.telemetry.emitters import AnySink
from compact.telemetry.exporters import ExportSettings, build_dispatcher
from compact.tokens.exact import TiktokenTokenizer
from compact.tokens.usage import reported_usage
from compact.waiting.limits import WaitLimits

M = TypeVar("M")
T = TypeVar("T")
# Chosen. The store has all sessions, and loads again what left memory.
_MAX_SESSIONS_IN_MEMORY = 1_000
# Chosen: how long a deletion waits until the events that are on their way are written, and can be deleted.
_DELETE_FLUSH_SECONDS = 2.0
# Chosen: longer than it takes a loop to wake up, and little beside the answer of any model.
_LET_LOOP_RUN_SECONDS = 0.001
# What becomes of messages that a store could not take, when the manager is closed.
_LOST = "lost: this process ends"


class CompactManager:
    """Keeps the histories of sessions inside their model's window.

    Safe to share between threads and tasks: two calls for one session never interleave, different sessions never wait
    for each other. Close it at the end, or use it in a `with` statement.

    Args:
        config: The settings; `CompactConfig()` by default.
        tokenizer: Counts tokens; by default the counter of the configured model.
        strategies: Propose what leaves the prompt, cheapest first; by default those that the settings enable.
        summarizer: Writes summaries: a function of a `SummaryRequest`, async or not. By default code writes them, or
            the model that the settings name.
        constraints: Finds what users asked to hold for the rest of the session.
        store: Where log, plans, model calls and artifacts are kept; by default the one at `state.url`.
        archive: Where transcripts for people are written; by default as `storage` says.
        rehydration: Which artifacts are shown again by themselves, and how much of them.
        circuit_breaker: Pauses a summariser that fails again and again.
        injectors: Add content to the end of every prompt, each within the tokens it reserves.
        embed: Makes a vector of each text, so that recall also finds what is said in other words.
        on_event: Gets every event: a function, or an object with `emit(event)`.
        event_metadata: Your own values, which every event has in `metadata`.
        redaction_callback: Has the last word on every text that leaves the process.

    Raises:
        ConfigError: A setting or an argument makes no sense; the error names its path.

    Example:
        >>> from compact import CompactConfig, CompactManager
        >>> from compact.testing import tool_run
        >>> manager = CompactManager(CompactConfig(model="gpt-4o", max_context_tokens=8_000))
        >>> history = tool_run(60, words=200)  # a request, and sixty tool calls with their results
        >>> prompt = manager.preflight("chat-1", history)  # before each model call
        >>> len(history), len(prompt) < len(history)
        (121, True)
    """

    @named_arguments
    def __init__(
        self,
        config: CompactConfig | None = None,
        *,
        tokenizer: ProviderAwareTokenizer | None = None,
        strategies: Sequence[CompactionStrategy] | None = None,
        summarizer: Summarizer | None = None,
        constraints: ConstraintFinder | None = None,
        store: SessionStore | None = None,
        archive: StorageAdapter | None = None,
        rehydration: RehydrationConfig | None = None,
        circuit_breaker: CircuitBreaker | None = None,
        injectors: Sequence[Injector] = (),
        embed: Embed | None = None,
        on_event: AnySink | None = None,
        event_metadata: Mapping[str, Any] | None = None,
        redaction_callback: Callable[[str], str] | None = None,
    ) -> None:
        check_summarizer(summarizer)
        check_plug(tokenizer, "tokenizer", needs="count_message", setting='tokenizer="simple"')
        check_plug(store, "store", needs="commit", setting='state={"url": "sqlite:///…"}')
        check_plug(archive, "archive", needs="save_transcript", setting='storage={"path": "…"}')
        self.config = checked_config(config)
        redaction = self.config.redaction
        self._redactor = Redactor(redaction.enabled, redaction.patterns, redaction_callback)
        usable, unwritable = without_unwritable(self.config, with_store=store is None, with_archive=archive is None)
        self._store = build_store(usable) if store is None else store
        rehydration = build_rehydration_config(self.config) if rehydration is None else rehydration
        self._usual_sensitivity = usual_sensitivity(self.config, strategies)
        self._reader = reader_of(self._store)
        self._phrases = PhraseFinder(self._store, self._reader)
        self._shared = build_shared(self._store)
        self._constraints = build_constraints() if constraints is None else constraints
        chosen_archive = build_archive(usable) if archive is None else archive
        self._event_writer = build_event_writer(usable, self._store, self._redactor)
        self._events = build_dispatcher(
            ExportSettings(**self.config.telemetry.for_exporters()),
            on_event,
            archive=chosen_archive,
            event_writer=self._event_writer,
            redact=self._redactor.event,
            metadata=event_metadata,
        )
        self._prefetcher = build_prefetcher(
            self.config, self._prefetch, self._run_in_background, is_quick=summarizer is None
        )
        self._sessions = SessionRegistry(_MAX_SESSIONS_IN_MEMORY)
        self._recalling = self._build_recall(embed)
        injectors = (*build_reminder(self._recalling.remind, self.config.recall.reminder_tokens), *injectors)
        engines = EngineBuilder(
            emit=self._events,
            store=self._store,
            shared=self._shared,
            archive=chosen_archive,
            archive_name=type(archive).__name__ if archive is not None else usable.storage.adapter,
            redactor=self._redactor,
            tokenizer=tokenizer,
            strategies=strategies,
            summarizer=summarizer,
            constraints=self._constraints,
            rehydration=rehydration,
            circuit_breaker=circuit_breaker,
            injectors=injectors,
        ).with_one_summarizer(self.config)
        self._models = ModelEngines(
            self.config, ModelEngineBuilder(engines=engines, prefetcher=self._prefetcher), self._notice_model
        )
        # For what is the same with every model: the store, the log, the events.
        self._engine = self._models.configured.engine
        self._background_limits = WaitLimits(store_seconds=self.config.state.timeout_seconds)
        self._limits = replace(self._background_limits, call_seconds=self.config.policy.max_wait_seconds)
        self._notice_settings(unwritable)
        if isinstance(self._engine.tokenizer, TiktokenTokenizer):
            self._engine.tokenizer.start_loading()

    def _build_recall(self, embed: Embed | None) -> SessionRecall:
        return SessionRecall(
            sessions=self._sessions,
            store=self._store,
            reader=self._reader,
            semantic=build_semantic_search(self.config, embed, self._usual_sensitivity),
            tenant_id=self.config.state.tenant_id,
            default_sensitivity=self._usual_sensitivity,
            emit=self._events,
        )

    def __repr__(self) -> str:
        sessions = len(self._sessions)
        held = f"{quantity(sessions, 'session')} in memory"
        window = self._models.configured.budget.window.max_context_tokens
        return f"<CompactManager for {self.config.model}, {window:,} tokens, {held}>"

    def _notice_model(self, text: str, severity: str) -> None:
        self._events(NoticeEvent(session_id="", message=text, severity=severity))

    def _notice_settings(self, unwritable: str) -> None:
        if unwritable:
            self._events(NoticeEvent(session_id="", message=unwritable))
        if self.config.file is None and (unread := unread_file_notice()):
            self._events(NoticeEvent(session_id="", message=unread))
        if misspelt := misspelt_variables_notice(CompactConfig):
            self._events(NoticeEvent(session_id="", message=misspelt))
        if not self._redactor.is_enabled:
            warning = "redaction is switched off: archives and exports hold secrets as they are"
            self._events(NoticeEvent(session_id="", message=warning, severity="high"))

    def _run(self, steps: Steps[T]) -> T:
        """Run the steps of a call in this thread, within the limits of its waiting."""
        return run_steps(steps, self._limits)

    async def _arun(self, steps: Steps[T]) -> T:
        """Run the steps of a call in an event loop, within the limits of its waiting."""
        return await arun_steps(steps, self._limits, asks_store=self._store.blocks)

    # -- before a model call ----------------------------------------------------------------------------------------

    def preflight(
        self,
        session_id: str,
        messages: Sequence[M],
        *,
        tools: Tools = (),
        instructions: str = "",
        output_tokens: int = 0,
        model: str = "",
        dialect: str | Dialect | None = None,
    ) -> list[M]:
        """Return the history as it should be sent: unchanged below the trigger, compacted from there on.

        Call it before each model call, with the whole history or with the prompt it returned last and what is new
        behind it. If compaction fails, the history comes back as it is, or shorter, and an event says why.

        Args:
            session_id: Names the conversation; any text that is not empty.
            messages: The history: Chat Completions messages, Responses items, Anthropic messages, Gemini contents,
                Bedrock Converse or Vercel AI SDK messages, as dicts or as objects of the client.
            tools: The tool schemas that are sent beside the messages, so that they are counted.
            instructions: The instructions that are sent beside the messages, so that they are counted.
            output_tokens: The tokens that the request sets aside for its answer (`max_tokens`), so that both fit the
                window.
            model: The model that the request is for, if it is not the configured one: its window is used, unless one is
                set.
            dialect: `chat`, `responses`, `anthropic`, `gemini`, `converse`, `vercel` or a dialect of your own; by
                default it is recognised.

        Returns:
            The messages to send. What was not changed is the caller's own object.

        Raises:
            InsufficientBudget: What must stay takes more tokens than there are; the error says which part takes how
                many.
            InvalidHistory: The list cannot be read as messages; the error names the place.
            InjectionTooLarge: An injector returned more tokens than it reserves.
            SummaryFailed: The summary failed, and `summarizer.on_failure` is `raise`.

        Example:
            >>> prompt = manager.preflight("chat-1", history, instructions="Be brief.", output_tokens=1_000)
            >>> prompt[-1] is history[-1]
            True
        """
        options = CallOptions(tools, instructions, output_tokens, model, dialect)
        held = self._enter(session_id, messages)
        with held.lock.hold():
            return self._run(self._preflight(held, messages, options))

    async def apreflight(
        self,
        session_id: str,
        messages: Sequence[M],
        *,
        tools: Tools = (),
        instructions: str = "",
        output_tokens: int = 0,
        model: str = "",
        dialect: str | Dialect | None = None,
    ) -> list[M]:
        """`preflight` for an event loop: it waits for a summary without blocking; same arguments, result and errors.

        Example:
            >>> import asyncio
            >>> prompt = asyncio.run(manager.apreflight("chat-1", history))
        """
        options = CallOptions(tools, instructions, output_tokens, model, dialect)
        held = self._enter(session_id, messages)
        async with held.lock.ahold():
            # A copy: the work is done in another thread, while the loop may add to the list.
            return await self._arun(self._preflight(held, list(messages), options))

    async def abegin_preflight(
        self,
        session_id: str,
        messages: Sequence[M],
        *,
        tools: Tools = (),
        instructions: str = "",
        output_tokens: int = 0,
        model: str = "",
        dialect: str | Dialect | None = None,
    ) -> tuple[list[M], asyncio.Task[list[M]]]:
        """Do what `apreflight` does, and return as soon as the prompt is known, while it is still being stored.

        For a program that asks the model itself, such as a proxy: the store and the model work at the same time.

        Args:
            session_id: Names the conversation.
            messages: The history, as for `preflight`.
            tools: The tool schemas that are sent beside the messages, so that they are counted.
            instructions: The instructions that are sent beside the messages, so that they are counted.
            output_tokens: The tokens that the request sets aside for its answer.
            model: The model that the request is for, if it is not the configured one.
            dialect: The wire format of the messages; by default it is recognised.

        Returns:
            The messages to send, and the task that ends once they are stored. Await it before the answer is passed on:
            then nothing that anybody has seen can be lost. A prompt with a new plan is returned when it is stored.

        Raises:
            InsufficientBudget: What must stay takes more tokens than there are.
            InvalidHistory: The list cannot be read as messages.

        Example:
            >>> import asyncio
            >>> async def call_model():
            ...     prompt, stored = await manager.abegin_preflight("chat-1", history)
            ...     answer = {"role": "assistant", "content": "…"}  # ask the model for it here
            ...     return [*(await stored), answer] == [*prompt, answer]
            >>> asyncio.run(call_model())
            True
        """
        options = CallOptions(tools, instructions, output_tokens, model, dialect)
        held = self._enter(session_id, messages)
        known: asyncio.Future[list[M]] = asyncio.get_running_loop().create_future()
        # The caller may go on with its list at once.
        items = messages if isinstance(messages, SettledItems) else list(messages)
        task = asyncio.ensure_future(self._abegun(held, items, options, known))
        try:
            await asyncio.wait((known, task), return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            task.cancel()
            await asyncio.wait((task,))
            raise
        return (known.result() if known.done() else await task), task

    async def _abegun(
        self, held: HeldSession, messages: Sequence[M], options: CallOptions, known: asyncio.Future[list[M]]
    ) -> list[M]:
        loop = known.get_loop()

        def tell(items: list[M]) -> None:
            # From a thread: the task may be cancelled, or over, by the time that the loop gets to it.
            loop.call_soon_threadsafe(lambda: known.done() or known.set_result(items))
            # Only one thread runs at a time. If this one went on at once, the loop would have to wait until it asks the
            # store; the model is asked first.
            time.sleep(_LET_LOOP_RUN_SECONDS)

        async with held.lock.ahold():
            return await self._arun(self._preflight(held, messages, options, tell))

    def _preflight(
        self,
        held: HeldSession,
        messages: Sequence[M],
        options: CallOptions,
        on_known: Callable[[list[M]], None] | None = None,
    ) -> Steps[list[M]]:
        call = yield from self._begin(held, options)

        def to_items(prompt: list[object]) -> list[M]:
            return cast(list[M], self._to_items(call, held, prompt))

        def tell(prompt: list[object]) -> None:
            if on_known:
                on_known(to_items(prompt))

        on_prompt = tell if on_known else None
        with _unread_forgotten(held):
            entries = yield from self._taken_in(call, held, messages)
            prompt = yield from call.engine.preflight(held.session, entries, call.budget, on_known=on_prompt)
        return to_items(prompt)

    def add_history(
        self, session_id: str, messages: Sequence[object], *, model: str = "", dialect: str | Dialect | None = None
    ) -> None:
        """Write a history into a session's log without a model call: one that another program has recorded.

        Nothing is compacted, and no call or price is on record for it. What the log has already is not written again.

        Args:
            session_id: Names the conversation.
            messages: The whole history, as for `preflight`.
            model: The model that it was recorded with, by which it is counted.
            dialect: The wire format of the messages; by default it is recognised.

        Raises:
            InvalidHistory: The list cannot be read as messages.

        Example:
            >>> manager.add_history("imported-1", history)
            >>> len(manager.history("imported-1")) == len(history), manager.model_calls("imported-1")
            (True, ())
        """
        options = CallOptions(model=model, dialect=dialect)
        held = self._enter(session_id, messages)
        with held.lock.hold():
            self._run(self._add_history(held, messages, options))

    def _add_history(self, held: HeldSession, messages: Sequence[object], options: CallOptions) -> Steps[None]:
        call = yield from self._begin(held, options)
        with _unread_forgotten(held):
            entries = yield from self._taken_in(call, held, messages)
            yield from call.engine.add_history(held.session, entries, call.budget)

    def manual_compact(
        self,
        session_id: str,
        messages: Sequence[M],
        note: str | None = None,
        target_tokens: int | None = None,
        *,
        focus: str | None = None,
        tools: Tools = (),
        instructions: str = "",
        model: str = "",
        dialect: str | Dialect | None = None,
    ) -> list[M]:
        """Compact now, whatever the usage: what a chat does for `/compact`.

        Args:
            session_id: Names the conversation.
            messages: The history, as for `preflight`.
            note: A reason for the record, which a model that writes the summary is told too.
            target_tokens: The most tokens that the whole returned list may take; by default as the settings say.
            focus: What is kept first, with a model and without one: `"the refund policy"`.
            tools: The tool schemas that are sent beside the messages, so that they are counted.
            instructions: The instructions that are sent beside the messages, so that they are counted.
            model: The model that the request is for, if it is not the configured one.
            dialect: The wire format of the messages; by default it is recognised.

        Returns:
            The messages to send.

        Raises:
            InsufficientBudget: What must stay takes more tokens than `target_tokens`, or than there are.
            InvalidHistory: The list cannot be read as messages, or an argument is not what it must be.
            SummaryFailed: The summary failed, and `summarizer.on_failure` is `raise`.

        Example:
            >>> prompt = manager.manual_compact("chat-1", history, target_tokens=2_000, focus="result-7")
            >>> "result-7 " in str(prompt)
            True
        """
        options = CallOptions(tools, instructions, model=model, dialect=dialect)
        asked = CompactionOptions(note, focus, target_tokens)
        held = self._enter(session_id, messages)
        with held.lock.hold():
            return self._run(self._manual_compact(held, messages, options, asked))

    async def amanual_compact(
        self,
        session_id: str,
        messages: Sequence[M],
        note: str | None = None,
        target_tokens: int | None = None,
        *,
        focus: str | None = None,
        tools: Tools = (),
        instructions: str = "",
        model: str = "",
        dialect: str | Dialect | None = None,
    ) -> list[M]:
        """`manual_compact` for an event loop; same arguments, result and errors.

        Example:
            >>> import asyncio
            >>> prompt = asyncio.run(manager.amanual_compact("chat-1", history, target_tokens=2_000))
        """
        options = CallOptions(tools, instructions, model=model, dialect=dialect)
        asked = CompactionOptions(note, focus, target_tokens)
        held = self._enter(session_id, messages)
        async with held.lock.ahold():
            return await self._arun(self._manual_compact(held, list(messages), options, asked))

    def _manual_compact(
        self, held: HeldSession, messages: Sequence[M], options: CallOptions, asked: CompactionOptions
    ) -> Steps[list[M]]:
        call = yield from self._begin(held, options)
        target, note, focus = asked.target_tokens, asked.note or "", asked.kept_first
        with _unread_forgotten(held):
            entries = yield from self._taken_in(call, held, messages)
            prompt = yield from call.engine.manual_compact(
                held.session, entries, call.budget, target_tokens=target, note=note, focus=focus
            )
        return cast(list[M], self._to_items(call, held, prompt))

    def _to_items(self, call: _Call, held: HeldSession, prompt: list[object]) -> list[Any]:
        """Return a prompt as the caller's items: joined as we do from the first thing of ours that can be in one."""
        session = held.session
        has_ours = session.plan.version > 0 or call.engine.inject is not None
        return held.gateway.to_items(prompt, summary_place=session.prompt.summary_place, joins=has_ours)

    def _enter(self, session_id: str, messages: object) -> HeldSession:
        """Return the session of a call, registered as the most recently used."""
        check_session_id(session_id)
        check_messages(messages)
        return self._sessions.use(session_id)

    def _begin(self, held: HeldSession, options: CallOptions) -> Steps[_Call]:
        """Make room for a session in memory, and find what its call is compacted with."""
        yield from self._forget_oldest()
        return self._call(held, options)

    def _call(self, held: HeldSession, options: CallOptions) -> _Call:
        chosen = self._models.for_model(options.model)
        budget = chosen.budget.of_request(options.tools, options.instructions, options.output_tokens)
        return _Call(held.session, chosen.model, chosen.engine, budget, options.dialect)

    def _taken_in(self, call: _Call, held: HeldSession, messages: Sequence[object]) -> Steps[Sequence[object]]:
        """Return a caller's list as entries of the log, and have its session know which dialect it is in."""
        with held.gateway.reading():
            entries = yield from self._to_entries(call, held.gateway, messages)
        if known := held.gateway.known_dialect:
            held.session.mark_dialect(known)
        return entries

    def _to_entries(self, call: _Call, gateway: Gateway, messages: Sequence[object]) -> Steps[Sequence[object]]:
        """Return a caller's list as entries of the log, in whatever dialect it is."""
        gateway.select_dialect(messages, call.dialect, likely=call.likely_dialect)
        session = call.session
        yield from call.engine.refresh(session)
        if gateway.must_learn(session.reads):
            # What the store says of the session is known now: in which dialect text alone is.
            gateway.select_dialect(messages, call.dialect, likely=call.likely_dialect)
            gateway.learn(_shown(session.prompt), _own_list(session), session.reads)
        entries = gateway.entries_at_hand()
        if entries is not None:
            return entries
        own = _own_list(session)
        prompts = [session.prompt, *(yield from call.engine.earlier_prompts(session))]
        return gateway.to_entries((own, *map(_shown, prompts)))

    def plan(
        self,
        session_id: str,
        messages: Sequence[object],
        *,
        now: bool = False,
        target_tokens: int | None = None,
        focus: str | None = None,
        tools: Tools = (),
        instructions: str = "",
        output_tokens: int = 0,
        model: str = "",
        dialect: str | Dialect | None = None,
    ) -> CompactionResult:
        """Return what `preflight` would do with this history, or with `now` what `manual_compact` would do.

        Nothing is written and no summary is asked for. Nothing to do is a plan without new records, and its `reason`.

        Args:
            session_id: Names the conversation; it need not be known yet.
            messages: The history, as for `preflight`.
            now: Plan as `manual_compact` does, whatever the usage.
            target_tokens: The most tokens of the result; means `now`.
            focus: What is kept first; means `now`.
            tools: The tool schemas that are sent beside the messages, so that they are counted.
            instructions: The instructions that are sent beside the messages, so that they are counted.
            output_tokens: The tokens that the request sets aside for its answer.
            model: The model that the request is for, if it is not the configured one.
            dialect: The wire format of the messages; by default it is recognised.

        Returns:
            The plan, the tokens before and after it, and in `economics` what it costs and when it has paid for itself.

        Raises:
            InsufficientBudget: What must stay takes more tokens than there are.
            InvalidHistory: The list cannot be read as messages, or an argument is not what it must be.

        Example:
            >>> result = manager.plan("another-chat", history)
            >>> result.tokens_freed > 0
            True
            >>> result.economics.pays_back_within(20)
            True
        """
        held = self._sessions.find(session_id)
        check_messages(messages)
        call = self._call(held, CallOptions(tools, instructions, output_tokens, model, dialect))
        asked = CompactionOptions(focus=focus, target_tokens=target_tokens)
        with held.lock.hold():
            self._run(call.engine.refresh(held.session))
            self._run(call.engine.read_plans(held.session))
            entries = self._run(self._to_entries(call, held.gateway.fork(), messages))
            trial = held.session.fork()
        return call.engine.silent().dry_run(
            trial, entries, call.budget, now=now, target_tokens=asked.target_tokens, focus=asked.kept_first
        )

    def is_busy(self, session_id: str) -> bool:
        """Return True if a call for this session is under way in this process: another would wait for it.

        Args:
            session_id: Names the conversation.

        Example:
            >>> manager.is_busy("chat-1")
            False
        """
        held = self._sessions.get(session_id)
        return held is not None and held.lock.is_held

    def observe_usage(self, session_id: str, usage: object) -> None:
        """Take in what a provider counted for the last prompt, which corrects the estimate for the next one.

        Args:
            session_id: Names the conversation.
            usage: A number of input tokens, or the provider's `usage` as it is. Of the usage as it is, what was served
                from the cache is kept too: `cost` goes by it.

        Raises:
            UnknownSession: Nothing is known of the session.
            ValueError: The usage has no number of input tokens.

        Example:
            >>> manager.observe_usage("chat-1", {"prompt_tokens": 4_100})  # or the client's own `response.usage`
            >>> manager.model_calls("chat-1")[-1].tokens_reported
            4100
        """
        with self._open(session_id) as session:
            self._run(self._observe_usage(session, usage))

    async def aobserve_usage(self, session_id: str, usage: object) -> None:
        """`observe_usage` for an event loop; same arguments, result and errors.

        Example:
            >>> import asyncio
            >>> asyncio.run(manager.aobserve_usage("chat-1", 4_200))
        """
        held = self._sessions.find(session_id)
        async with held.lock.ahold():
            await self._arun(self._observe_usage_of(held, usage))
        await self._aforget_oldest()

    def _observe_usage_of(self, held: HeldSession, usage: object) -> Steps[None]:
        yield from self._refresh(held)
        yield from self._observe_usage(held.session, usage)

    def _observe_usage(self, session: Session, usage: object) -> Steps[None]:
        reported = reported_usage(usage)
        budget = self._models.of_session(session).budget_of(session)
        estimated = self._engine.trigger.estimated_tokens(session, budget)
        if estimated > 0 and not budget.believes(reported_tokens=reported.input_tokens, estimated_tokens=estimated):
            self._notice_unbelieved(session, reported.input_tokens, estimated)
            return
        session.observe_usage(estimated_tokens=estimated, reported_tokens=reported.input_tokens)
        yield from self._engine.persistence.report_usage(
            session,
            reported.input_tokens,
            cache_read_tokens=reported.cache_read_tokens,
            cache_write_tokens=reported.cache_write_tokens,
        )

    def _notice_unbelieved(self, session: Session, reported_tokens: int, estimated_tokens: int) -> None:
        if session.note_once("usage that is not believed"):
            message = (
                f"a reported usage of {reported_tokens:,} tokens for a prompt that we estimate at {estimated_tokens:,} "
                "is not taken in, nor are others like it: it may be the sum of several calls; pass the usage of one"
            )
            self._events(NoticeEvent(session_id=session.session_id, message=message))

    def observe_overflow(
        self,
        session_id: str,
        *,
        limit_tokens: int | None = None,
        prompt_tokens: int | None = None,
        output_tokens: int | None = None,
        limits_input: bool = False,
    ) -> None:
        """Learn from a provider that refused the last prompt as too long, so that the next one fits.

        A limit below the known window is the window of the model from now on, in this manager, for all sessions. What
        was counted corrects the estimate, as reported usage does. If the provider gave no limit, four fifths of what we
        count for the refused request are taken for it. Figures that cannot be true are not believed; the event
        `compact.context_overflow` says what was learned. Adapters, wrapped clients and the proxy call this by
        themselves; call `preflight` again after it, and send what it returns.

        Args:
            session_id: Names the conversation.
            limit_tokens: The limit that the provider named; never taken for more than the window that is known.
            prompt_tokens: What the provider counted for the prompt.
            output_tokens: What it set aside for the answer.
            limits_input: The limit is for the prompt alone, and not for prompt and answer together.

        Raises:
            UnknownSession: Nothing is known of the session.

        Example:
            >>> manager.observe_overflow("chat-1", limit_tokens=7_000, prompt_tokens=7_900)
            >>> manager.status("chat-1").max_context_tokens
            7000
        """
        with self._open(session_id) as session:
            self._observe_overflow(
                session,
                ReportedOverflow(
                    limit_tokens=limit_tokens,
                    prompt_tokens=prompt_tokens,
                    output_tokens=output_tokens,
                    limits_input=limits_input,
                ),
            )

    async def aobserve_overflow(
        self,
        session_id: str,
        *,
        limit_tokens: int | None = None,
        prompt_tokens: int | None = None,
        output_tokens: int | None = None,
        limits_input: bool = False,
    ) -> None:
        """`observe_overflow` for an event loop; same arguments, result and errors.

        Example:
            >>> import asyncio
            >>> asyncio.run(manager.aobserve_overflow("chat-1", limit_tokens=7_000))
        """
        async with self._aopen(session_id) as session:
            self._observe_overflow(
                session,
                ReportedOverflow(
                    limit_tokens=limit_tokens,
                    prompt_tokens=prompt_tokens,
                    output_tokens=output_tokens,
                    limits_input=limits_input,
                ),
            )

    def _observe_overflow(self, session: Session, report: ReportedOverflow) -> None:
        self._events(self._models.of_session(session).observe_overflow(session, report))

    def prefetch_summary(self, session_id: str) -> bool:
        """Write the summary that a session's next compaction will need, so that no model call waits for it.

        A manager does this by itself in the background; call it from a job of your own, or in a quiet moment.

        Args:
            session_id: Names the conversation.

        Returns:
            True if a summary was written, False if the next compaction needs none.

        Raises:
            UnknownSession: Nothing is known of the session.

        Example:
            >>> manager.prefetch_summary("chat-1")
            True
        """
        with self._open(session_id) as session:
            trial = session.fork()
        chosen = self._models.of_session(trial)
        trial.set_budget(chosen.budget_of(trial))
        return self._run_in_background(chosen.engine.prefetch_summary(trial, waits=True))

    def prepare_summary(self, session_id: str) -> bool:
        """Deprecated: use `prefetch_summary`."""
        warnings.warn("prepare_summary is now prefetch_summary", DeprecationWarning, stacklevel=2)
        return self.prefetch_summary(session_id)

    def _prefetch(self, session: Session) -> Steps[bool]:
        """Do the work of the prefetcher."""
        return (yield from self._models.of_session(session).engine.prefetch_summary(session))

    def _run_in_background(self, steps: Steps[T]) -> T:
        """Run steps off the critical path, where they may take as long as it takes."""
        return run_steps(steps, self._background_limits)

    # -- what happened, and why -------------------------------------------------------------------------------------

    def status(self, session_id: str) -> SessionStatus:
        """Return how full the window is, what is in it, and why it did or did not compact.

        Args:
            session_id: Names the conversation.

        Returns:
            The status; `print(status)` shows it, and `to_markdown` makes a chat message of it.

        Raises:
            UnknownSession: Nothing is known of the session.

        Example:
            >>> status = manager.status("chat-1")
            >>> status.messages_in_log, status.used_tokens < status.max_context_tokens
            (121, True)
        """
        with self._open(session_id) as session:
            return self._status(session)

    async def astatus(self, session_id: str) -> SessionStatus:
        """`status` for an event loop; same arguments, result and errors.

        Example:
            >>> import asyncio
            >>> status = asyncio.run(manager.astatus("chat-1"))
        """
        async with self._aopen(session_id) as session:
            return self._status(session)

    def _status(self, session: Session) -> SessionStatus:
        budget = self._models.of_session(session).budget_of(session)
        session.set_budget(budget)
        return status_of(session, used_tokens=self._engine.trigger.used_tokens(session, budget))

    def current_plan(self, session_id: str) -> CompactionPlan:
        """Return the plan in force; an empty one for a session that is not known yet.

        Args:
            session_id: Names the conversation.

        Returns:
            The plan: what is cleared, summarised, externalised or dropped, by which strategy, and why.

        Example:
            >>> plan = manager.current_plan("chat-1")
            >>> plan.version, plan.tokens_after < plan.tokens_before
            (1, True)
        """
        try:
            with self._open(session_id) as session:
                return session.plan
        except UnknownSession:
            return CompactionPlan(session_id)

    async def acurrent_plan(self, session_id: str) -> CompactionPlan:
        """`current_plan` for an event loop; same arguments, result and errors.

        Example:
            >>> import asyncio
            >>> plan = asyncio.run(manager.acurrent_plan("chat-1"))
        """
        try:
            async with self._aopen(session_id) as session:
                return session.plan
        except UnknownSession:
            return CompactionPlan(session_id)

    def prompt(self, session_id: str) -> RenderedPrompt:
        """Return the prompt as it was last returned, with the log entries that each place of it stands for.

        Args:
            session_id: Names the conversation.

        Returns:
            The prompt in slots; its `messages` are what the model sees.

        Raises:
            UnknownSession: Nothing is known of the session.

        Example:
            >>> summary = next(slot for slot in manager.prompt("chat-1").slots if len(slot.ids) > 1)
            >>> summary.message.text.splitlines()[0]
            '<COMPACT-SUMMARY v1>'
        """
        with self._open(session_id) as session:
            return session.prompt.rendered

    async def aprompt(self, session_id: str) -> RenderedPrompt:
        """`prompt` for an event loop; same arguments, result and errors.

        Example:
            >>> import asyncio
            >>> prompt = asyncio.run(manager.aprompt("chat-1"))
        """
        async with self._aopen(session_id) as session:
            return session.prompt.rendered

    def history(self, session_id: str) -> tuple[Message, ...]:
        """Return the log: everything that ever arrived, in order, whatever was compacted or edited since.

        Args:
            session_id: Names the conversation.

        Returns:
            The entries of the log, the oldest first.

        Raises:
            UnknownSession: Nothing is known of the session.

        Example:
            >>> [message.role for message in manager.history("chat-1")[:3]]
            ['user', 'assistant', 'tool']
        """
        with self._open(session_id) as session:
            return tuple(session.log.entries)

    async def ahistory(self, session_id: str) -> tuple[Message, ...]:
        """`history` for an event loop; same arguments, result and errors.

        Example:
            >>> import asyncio
            >>> log = asyncio.run(manager.ahistory("chat-1"))
        """
        async with self._aopen(session_id) as session:
            return tuple(session.log.entries)

    def plans(self, session_id: str) -> tuple[PlanVersion, ...]:
        """Return every plan that was ever in force, oldest first.

        Args:
            session_id: Names the conversation.

        Returns:
            The plans, each with the time it was put in force; none for a session that is not known.

        Example:
            >>> [entry.plan.version for entry in manager.plans("chat-1")]
            [1]
        """
        return self._store.plans(session_id)

    def model_calls(self, session_id: str) -> tuple[ModelCall, ...]:
        """Return every prompt that went out, oldest first.

        Args:
            session_id: Names the conversation.

        Returns:
            One record for each call: its plan, its size, its parts; none for a session that is not known.

        Example:
            >>> call = manager.model_calls("chat-1")[-1]
            >>> call.number, call.plan_version
            (1, 1)
        """
        return self._reader.model_calls(session_id)

    def cost(self, session_id: str) -> SessionCost:
        """Return what a session cost, call by call and compaction by compaction, and what compaction saved so far.

        Prices are those that were recorded with each call. For a model without any, the bundled list is read, and the
        first time this may wait for it.

        Args:
            session_id: Names the conversation.

        Returns:
            The costs; sums are over the calls whose price is known.

        Example:
            >>> cost = manager.cost("chat-1")
            >>> len(cost.calls), cost.unpriced_calls
            (1, 0)
        """
        return cost_of(self.model_calls(session_id), self.plans(session_id), find_prices=listed_prices)

    def sessions(self) -> tuple[SessionInfo, ...]:
        """Return all sessions in the store, the newest first.

        Example:
            >>> [(session.session_id, session.messages) for session in manager.sessions()]
            [('chat-1', 121)]
        """
        return self._reader.sessions()

    def why(self, session_id: str, phrase: str) -> PhraseTrace:
        """Return whether the newest prompt has a phrase, where, and which calls went out without it.

        Args:
            session_id: Names the conversation.
            phrase: The words to look for.

        Returns:
            A trace of the phrase. Iterating over it yields each message of the log that has the phrase, and what became
            of it.

        Raises:
            UnknownSession: Nothing is known of the session.

        Example:
            >>> trace = manager.why("chat-1", "do the whole thing")
            >>> trace.count > 0, trace.calls_without
            (True, ())
        """
        check_session_id(session_id)
        check_text(phrase, "phrase")
        return self._phrases.find(session_id, phrase)

    async def awhy(self, session_id: str, phrase: str) -> PhraseTrace:
        """`why` for an event loop; same arguments, result and errors.

        Example:
            >>> import asyncio
            >>> trace = asyncio.run(manager.awhy("chat-1", "do the whole thing"))
        """
        return await run_blocking(partial(self.why, session_id, phrase))

    def report(self, session_id: str, *, version: int | None = None) -> tuple[CompactionReport, ...]:
        """Return what each compaction did to what it took out, oldest first.

        Args:
            session_id: Names the conversation.
            version: The plan version to report on; by default all of them.

        Returns:
            One report for each compaction: which strings are kept, in the summary's ledger, retrievable or lost.

        Raises:
            UnknownSession: Nothing is known of the session.
            CompactError: The session has no plan of that version; the hint lists those that it has.

        Example:
            >>> (report,) = manager.report("chat-1")
            >>> report.missing_constraints
            ()
        """
        stored, plans = self._load(session_id), self._store.plans(session_id)
        known = [entry.plan.version for entry in plans]
        if version is not None and version not in known:
            hint = f"its versions are: {', '.join(map(str, known))}" if known else "it was never compacted"
            raise CompactError(f"session {session_id!r} has no plan version {version}", hint=hint)
        calls = self._reader.model_calls(session_id)
        reports = reports_of(
            stored,
            plans,
            calls,
            constraints=self._constraints,
            version=version,
            default_sensitivity=self._usual_sensitivity,
        )
        return tuple(reports)

    async def areport(self, session_id: str, *, version: int | None = None) -> tuple[CompactionReport, ...]:
        """`report` for an event loop; same arguments, result and errors.

        Example:
            >>> import asyncio
            >>> reports = asyncio.run(manager.areport("chat-1"))
        """
        return await run_blocking(partial(self.report, session_id, version=version))

    def recall(
        self, session_id: str, query: str, *, max_tokens: int = 2000, security: SecurityContext | None = None
    ) -> Recall:
        """Return what left the prompt: the entry of an id, or the best matches for a question.

        Args:
            session_id: Names the conversation.
            query: A question, some words, or the id of a message or an artifact.
            max_tokens: The most tokens of the answer; long entries are cut to the passage that the query is about.
            security: Who asks, and what they may read; by default whoever belongs to the configured tenant.

        Returns:
            What was found, the best match first; `str(answer)` is the text for an agent.

        Raises:
            StoreError: The store is away, and this process does not know the session.

        Example:
            >>> answer = manager.recall("chat-1", "result-3", max_tokens=300)
            >>> "result-3 word" in str(answer)
            True
        """
        check_question(query, max_tokens)
        count_text = self._engine.tokenizer.count_text
        return self._recalling.recall(
            session_id, query, max_tokens=max_tokens, count_text=count_text, security=security
        )

    async def arecall(
        self, session_id: str, query: str, *, max_tokens: int = 2000, security: SecurityContext | None = None
    ) -> Recall:
        """`recall` for an event loop; same arguments, result and errors.

        Example:
            >>> import asyncio
            >>> answer = asyncio.run(manager.arecall("chat-1", "result-3"))
        """
        call = partial(self.recall, session_id, query, max_tokens=max_tokens, security=security)
        return await run_blocking(call)

    def undo(self, session_id: str) -> CompactionPlan:
        """Take the last compaction back; the plan before it stays in force until the budget forbids it.

        Args:
            session_id: Names the conversation.

        Returns:
            The plan that is in force now; the same as before if there was nothing to undo.

        Raises:
            UnknownSession: Nothing is known of the session.

        Example:
            >>> plan = manager.undo("chat-1")
            >>> plan.version, plan.origin, plan.records
            (2, 0, ())
        """
        with self._open(session_id) as session:
            return self._run(self._undo(session))

    async def aundo(self, session_id: str) -> CompactionPlan:
        """`undo` for an event loop; same arguments, result and errors.

        Example:
            >>> import asyncio
            >>> plan = asyncio.run(manager.aundo("chat-1"))
        """
        async with self._aopen(session_id) as session:
            return await self._arun(self._undo(session))

    def _undo(self, session: Session) -> Steps[CompactionPlan]:
        plans = yield from self._engine.persistence.call_store(lambda: self._store.plans(session.session_id))
        version = version_before_compaction(session.plan, plans)
        return session.plan if version is None else (yield from self._restore(session, version))

    def restore(self, session_id: str, version: int) -> CompactionPlan:
        """Restore an earlier plan exactly; it stays in force until the budget forbids it.

        Args:
            session_id: Names the conversation.
            version: The version of the plan; 0 is the history without any compaction.

        Returns:
            The plan that is in force now: a new version, whose `origin` is the one that was asked for.

        Raises:
            UnknownSession: Nothing is known of the session.
            CompactError: The session has no plan of that version.

        Example:
            >>> manager.restore("chat-1", 0).records
            ()
            >>> manager.restore("chat-1", 1).origin
            1
        """
        with self._open(session_id) as session:
            return self._run(self._restore(session, version))

    async def arestore(self, session_id: str, version: int) -> CompactionPlan:
        """`restore` for an event loop; same arguments, result and errors.

        Example:
            >>> import asyncio
            >>> plan = asyncio.run(manager.arestore("chat-1", 0))
        """
        async with self._aopen(session_id) as session:
            return await self._arun(self._restore(session, version))

    def _restore(self, session: Session, version: int) -> Steps[CompactionPlan]:
        yield from self._engine.restore(session, version)
        return session.plan

    def _load(self, session_id: str) -> StoredSession:
        stored = self._store.load(session_id)
        if stored is None:
            raise UnknownSession(session_id)
        return stored

    @contextmanager
    def _open(self, session_id: str) -> Generator[Session]:
        """Hold a session that is known, here or in the store."""
        held = self._sessions.find(session_id)
        with held.lock.hold():
            self._run(self._refresh(held))
            yield held.session
        self._run(self._forget_oldest())

    @asynccontextmanager
    async def _aopen(self, session_id: str) -> AsyncGenerator[Session]:
        """Do what `_open` does in an event loop: a thread that waits for a session could be one that it needs."""
        held = self._sessions.find(session_id)
        async with held.lock.ahold():
            await self._arun(self._refresh(held))
            yield held.session
        await self._aforget_oldest()

    def _refresh(self, held: HeldSession) -> Steps[None]:
        """Take in what other processes wrote to a session; raise if there is no such session."""
        session_id = held.session.session_id
        yield from self._engine.refresh(held.session)
        if not held.session.log.entries:
            # Raises if the store is away: the session may well be in it.
            yield from self._engine.persistence.call_store(lambda: self._store.head(session_id))
            raise UnknownSession(session_id)
        self._sessions.register(held)

    # -- events, and the end ----------------------------------------------------------------------------------------

    @property
    def store(self) -> SessionStore:
        """Where log, plans, model calls and artifacts live."""
        return self._store

    def emit(self, event: CompactionEvent) -> None:
        """Send an event to every sink: something that happened around this manager, in an adapter for instance.

        Args:
            event: The event; identity, time and `event_metadata` are added on the way.

        Example:
            >>> from compact.core.engine.events import NoticeEvent
            >>> manager.emit(NoticeEvent(session_id="chat-1", message="the agent was restarted"))
        """
        self._events(event)

    def flush(self, timeout_seconds: float = 5.0) -> bool:
        """Have every event sent that waits to be.

        Args:
            timeout_seconds: How long to wait at most.

        Returns:
            False if that took too long.

        Example:
            >>> manager.flush(timeout_seconds=2)
            True
        """
        return self._events.flush(timeout_seconds)

    def forget(self, session_id: str) -> None:
        """Remove a session from memory; the store still has it, and the next call loads it again.

        A session that the store could not take stays in memory.

        Args:
            session_id: Names the conversation; one that is not known is no error.

        Example:
            >>> manager.forget("chat-1")
            >>> len(manager.history("chat-1"))
            121
        """
        held = self._sessions.pop(session_id)
        if held:
            with held.lock.hold():
                if not self._run(self._engine.flush(held.session)):
                    self._sessions.register(held)
                    return
        self._forget_shared(session_id)

    async def aforget(self, session_id: str) -> None:
        """`forget` for an event loop; same arguments, result and errors.

        Example:
            >>> import asyncio
            >>> asyncio.run(manager.aforget("chat-1"))
        """
        held = self._sessions.pop(session_id)
        if held:
            async with held.lock.ahold():
                if not await self._arun(self._engine.flush(held.session)):
                    self._sessions.register(held)
                    return
        self._forget_shared(session_id)

    def _forget_oldest(self) -> Steps[None]:
        while held := self._sessions.pop_excess():
            try:
                is_written = yield from self._engine.flush(held.session)
            except BaseException:  # the call was cancelled
                self._sessions.register(held)
                raise
            finally:
                held.lock.release()
            if not is_written:
                self._sessions.register(held)
                return
            self._forget_shared(held.session.session_id)

    async def _aforget_oldest(self) -> None:
        if self._sessions.has_excess:  # nearly always not, and then no thread is needed to find that out
            await self._arun(self._forget_oldest())

    def _forget_shared(self, session_id: str) -> None:
        if isinstance(self._shared, InProcessSharedStore):
            self._shared.forget(session_id)
        self._phrases.forget(session_id)
        if self._recalling.semantic:
            self._recalling.semantic.forget(session_id)

    def delete(self, session_id: str) -> bool:
        """Remove a session and all that belongs to it, from memory and from the store.

        The archive keeps what was written there.

        Args:
            session_id: Names the conversation.

        Returns:
            True if the store had it.

        Example:
            >>> manager.delete("chat-1")
            True
            >>> manager.sessions()
            ()
        """
        held = self._sessions.pop(session_id)
        if held:
            held.session.mark_deleted()  # a call that is under way writes nothing any more
        self._forget_shared(session_id)
        if self._event_writer:  # what waits would be written behind the deletion
            self._event_writer.flush(_DELETE_FLUSH_SECONDS)
        return self._store.delete(session_id)

    def close(self) -> None:
        """Close everything that is held open; the manager is not used after this.

        Example:
            >>> manager.close()
        """
        if self._prefetcher:
            self._prefetcher.close()
        for held in self._sessions:
            with held.lock.hold():
                self._run(self._engine.flush(held.session, fallback=_LOST))
        self._close_outputs()

    async def aclose(self) -> None:
        """`close` for an event loop; same arguments, result and errors.

        Tasks that are still in a session are waited for.

        Example:
            >>> import asyncio
            >>> asyncio.run(manager.aclose())
        """
        if self._prefetcher:
            await run_blocking(self._prefetcher.close)
        for held in self._sessions:
            async with held.lock.ahold():
                await self._arun(self._engine.flush(held.session, fallback=_LOST))
        await run_blocking(self._close_outputs)

    def _close_outputs(self) -> None:
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
        await self.aclose()


@dataclass(frozen=True, slots=True)
class _Call:
    """One call for a session: the model it is for, the engine that compacts for that, and the budget it has."""

    session: Session
    model: str
    engine: Engine
    budget: TokenBudget
    dialect: str | Dialect | None

    @property
    def likely_dialect(self) -> str:
        """What plain text is taken for, which could be in any dialect: what the session was in before.

        Before that is known, it is what the model's own provider takes.
        """
        before = self.session.plan.dialect
        if before in DIALECTS:
            return before
        return "anthropic" if self.model.startswith("claude") else "chat"


@contextmanager
def _unread_forgotten(held: HeldSession) -> Generator[None]:
    """Forget which dialect a list was taken for if the log cannot read it: nothing of it is logged."""
    dialect = held.session.plan.dialect
    try:
        with held.gateway.reading(InvalidHistory):
            yield
    except InvalidHistory:
        held.session.mark_dialect(dialect)
        raise


def _own_list(session: Session) -> ShownList:
    return ShownList([message.original for message in session.log.view])


def _shown(prompt: CurrentPrompt) -> ShownList:
    return ShownList(prompt.items.originals, prompt.items.owners, prompt.summary_place)
