"""Where the viewer's data comes from: a manager and its store; what does not change any more is read once."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from compact.assembly.budget import build_budget
from compact.assembly.engines import EngineBuilder
from compact.assembly.storage import build_store
from compact.config import CompactConfig
from compact.core.audit.cost import SessionCost, cost_of
from compact.core.audit.records import ModelCall, PlanVersion, SentPrompt, SessionHead, SessionInfo, StoredSession
from compact.core.audit.regret_finder import regrets_of
from compact.core.audit.report import CompactionReport
from compact.core.audit.store import EventStore, TracedStore
from compact.core.audit.trace_events import StoredEvent, TraceEvent
from compact.core.engine.events import CompactionEvent
from compact.core.errors import UnknownSession
from compact.core.messages.entries import write_entry
from compact.core.messages.message import Slot
from compact.core.plan.parts import PromptPart
from compact.core.plan.plan import CompactionPlan
from compact.core.plan.regret import Regret
from compact.core.session.session import Session
from compact.manager import CompactManager
from compact.pricing import listed_prices
from compact.recall.phrase_finder import PhraseFinder
from compact.redaction import Redactor
from compact.viewer.json_http import HttpError

V = TypeVar("V")


class LruCache(Generic[V]):
    """The values that were asked for last, up to a number; safe between threads."""

    def __init__(self, max_values: int) -> None:
        self._max_values = max_values
        self._lock = threading.Lock()
        self._values: OrderedDict[Hashable, V] = OrderedDict()

    def get(self, key: Hashable, compute: Callable[[], V]) -> V:
        """Return the value of a key, computed if it is not known."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key]
        value = compute()
        with self._lock:
            self._values[key] = value
            while len(self._values) > self._max_values:
                self._values.popitem(last=False)
        return value


@dataclass(frozen=True, slots=True, kw_only=True)
class RebuiltPrompt:
    """A prompt that was sent, rendered again: its slots, with the tokens and the part of each, and what was added."""

    sent: SentPrompt
    slots: tuple[Slot, ...]
    tokens: tuple[int, ...]
    parts: tuple[PromptPart, ...]
    sources: tuple[str, ...]
    contents: Mapping[str, Mapping[str, int]]
    added_tokens: tuple[int, ...]
    # The same as entries of a list, as they were before their dialect wrote them, and the place of the summary.
    entries: tuple[Any, ...] = ()
    summary_place: int | None = None

    @property
    def fixed_tokens(self) -> int:
        """The tokens beside the messages: instructions, tool schemas, wire overhead."""
        return max(0, self.sent.call.tokens_estimated - sum(self.tokens) - sum(self.added_tokens))


class DataSource:
    """Everything the viewer asks of a store; it blocks, so it is never called on the event loop."""

    def __init__(self, config: CompactConfig, *, read_only: bool = False) -> None:
        self._keep_seconds = config.state.events_days * 86_400.0
        # What the viewer itself does, to show a plan or restore one, is no event of the agent.
        config = config.model_copy(update={"state": config.state.model_copy(update={"events_days": 0})})
        self.config = config
        self.store = build_store(config, read_only=read_only)
        self._is_read_only = read_only
        redaction = config.redaction
        self.redactor = Redactor(redaction.enabled, redaction.patterns)
        self.manager = CompactManager(config, store=self.store, on_event=_ignore_event)
        self._engine = EngineBuilder(emit=_ignore_event, store=self.store)(config)
        self.phrases = PhraseFinder(self.store, self.store)
        # Chosen: what a few open pages show, and what goes back and forth between them.
        self._plans: LruCache[tuple[PlanVersion, ...]] = LruCache(16)
        self._reports: LruCache[CompactionReport | None] = LruCache(64)
        self._prompts: LruCache[RebuiltPrompt] = LruCache(8)
        self._regrets: LruCache[tuple[Regret, ...]] = LruCache(64)
        self._logs: LruCache[list[dict[str, Any]]] = LruCache(8)
        self._facets: LruCache[dict[str, Any]] = LruCache(16)
        self._costs: LruCache[SessionCost] = LruCache(256)

    @property
    def kind(self) -> str:
        """The kind of store; its address may contain a password and is not shown."""
        return self.config.state.url.partition(":")[0]

    @property
    def limits(self) -> dict[str, int]:
        """The thresholds as they are set here, for calls that did not record theirs."""
        budget = build_budget(self.config)
        return {
            "window": budget.max_context_tokens,
            "ceiling": budget.ceiling_tokens,
            "trigger": budget.trigger_tokens,
            "prefetch": budget.prefetch_tokens,
            "target": budget.target_tokens,
        }

    @property
    def events(self) -> EventStore:
        """The events in the store."""
        assert isinstance(self.store, TracedStore)  # as all stores are that a configuration can name
        return self.store.events

    def without_secrets(self, events: Sequence[TraceEvent]) -> list[TraceEvent]:
        """Return events as they may be stored and shown: what an agent let through is redacted here."""
        return [self._without_secrets(event) for event in events]

    def _without_secrets(self, event: TraceEvent) -> TraceEvent:
        clean = {name: self.redactor.value(event[name]) for name in ("name", "metadata", "data") if name in event}
        if "session_id" in event.get("data", {}):  # by which the session is found
            clean["data"] = {**clean["data"], "session_id": event["data"]["session_id"]}
        return {**event, **clean}

    def add_events(self, events: Sequence[TraceEvent]) -> tuple[StoredEvent, ...]:
        """Write events to the store, and return what they have become."""
        if self._is_read_only:
            raise HttpError(403, "this viewer is read-only: it keeps no events", "start it without --read-only")
        return self.events.add(events, keep_seconds=self._keep_seconds)

    def sessions(self) -> tuple[SessionInfo, ...]:
        """Return all sessions, the newest first."""
        return self.manager.sessions()

    def info(self, session_id: str) -> SessionInfo:
        """Return one session of the list."""
        found = self.store.session_info(session_id)
        if found is None:
            raise UnknownSession(session_id)
        return found

    def calls(self, session_id: str) -> tuple[ModelCall, ...]:
        """Return every call of a session."""
        return self.manager.model_calls(session_id)

    def plans(self, info: SessionInfo) -> tuple[PlanVersion, ...]:
        """Return every plan of a session; plans never change, there only are more of them."""
        key = (info.session_id, info.created_at, info.plan_version)
        return self._plans.get(key, lambda: self.manager.plans(info.session_id))

    def plan(self, info: SessionInfo, version: int) -> PlanVersion:
        """Return one plan; version 0 is the history without any compaction."""
        if version == 0:
            return PlanVersion(CompactionPlan(info.session_id), info.created_at)
        found = next((entry for entry in self.plans(info) if entry.plan.version == version), None)
        if found is None:
            hint = f"its versions are 0 to {info.plan_version}"
            raise HttpError(404, f"session {info.session_id!r} has no plan version {version}", hint)
        return found

    def report(self, info: SessionInfo, version: int) -> CompactionReport | None:
        """Return what one compaction kept and lost."""
        key = (info.session_id, info.created_at, version)
        return self._reports.get(key, lambda: self._report(info.session_id, version))

    def _report(self, session_id: str, version: int) -> CompactionReport | None:
        return next(iter(self.manager.report(session_id, version=version)), None)

    def regrets(self, info: SessionInfo) -> tuple[Regret, ...]:
        """Return what the agent of a session asked for again; its log is read for that."""
        key = (info.session_id, info.created_at, info.plan_version, info.messages)
        return self._regrets.get(key, lambda: self._read_regrets(info.session_id))

    def _read_regrets(self, session_id: str) -> tuple[Regret, ...]:
        stored = self.store.load(session_id)
        return regrets_of(stored) if stored else ()

    def prompt(self, info: SessionInfo, number: int) -> RebuiltPrompt:
        """Return the prompt of one call, rendered again."""
        key = (info.session_id, info.created_at, number)
        return self._prompts.get(key, lambda: self._prompt(info.session_id, number))

    def _prompt(self, session_id: str, number: int) -> RebuiltPrompt:
        sent = self.store.sent(session_id, number)
        if sent is None:
            raise HttpError(404, f"session {session_id!r} has no call {number}", "the session's page lists its calls")
        session = Session.resumed(
            StoredSession(
                session_id=session_id,
                head=SessionHead(),
                messages=sent.messages,
                view_ids=tuple(entry.message.id for entry in sent.messages),
                plan=sent.plan,
            )
        )
        self._engine.compactor.render(session)
        prompt, count = session.prompt, self._engine.tokenizer.count_message
        return RebuiltPrompt(
            sent=sent,
            slots=prompt.slots,
            tokens=tuple(prompt.slot_tokens),
            parts=tuple(prompt.slot_parts),
            sources=tuple(prompt.source_of(slot.message) for slot in prompt.slots),
            contents=prompt.contents,
            added_tokens=tuple(count(entry.message) for entry in sent.added),
            entries=(*prompt.items.originals, *_written(sent)),
            summary_place=prompt.summary_place,
        )

    def rendered_tokens(self, info: SessionInfo, plan: CompactionPlan) -> int:
        """Return the tokens of the messages of the whole log, as it is now, under a plan."""
        stored = self.store.load(info.session_id)
        if stored is None:
            raise UnknownSession(info.session_id)
        session = Session.resumed(replace(stored, plan=plan.standing_on(stored.view_ids)))
        self._engine.compactor.render(session)
        return session.prompt_tokens

    def tokens_beside_messages(self, info: SessionInfo) -> int:
        """Return the tokens that the newest call sent beside the log: instructions, tools, overhead, injections."""
        if not info.model_calls:
            return 0
        prompt = self.prompt(info, info.model_calls)
        injected = zip(prompt.sent.added, prompt.added_tokens, strict=True)
        return prompt.fixed_tokens + sum(tokens for added, tokens in injected if added.kind == "injected")

    def cached_log(self, key: Hashable, compute: Callable[[], list[dict[str, Any]]]) -> list[dict[str, Any]]:
        """Return the rows of a filtered log, found once: a page of them after the other is asked for."""
        return self._logs.get(key, compute)

    def cached_facets(self, key: Hashable, compute: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Return what a log can be filtered by, counted once."""
        return self._facets.get(key, compute)

    def cost(self, info: SessionInfo, calls: Sequence[ModelCall]) -> SessionCost:
        """Return what a session cost, by the prices that were recorded; these are all its calls."""
        reported = calls[-1].tokens_reported if calls else None
        key = (info.session_id, info.created_at, info.plan_version, len(calls), reported)
        return self._costs.get(key, lambda: cost_of(calls, self.plans(info), find_prices=listed_prices))

    def restore(self, session_id: str, version: int | None, *, seen_version: int) -> CompactionPlan:
        """Restore a plan, or undo the last compaction; return the plan in force.

        `seen_version` is the version in force when the person decided: if it is another by now, nothing is done.
        """
        # A manager of its own: the one that reads must not keep every session that was ever changed here.
        manager = CompactManager(self.config, store=self.store, on_event=_ignore_event)
        before = manager.current_plan(session_id)
        if before.version != seen_version:
            message = f"plan v{before.version} is in force by now, not v{seen_version}: nothing was changed"
            raise HttpError(409, message, "close this, look at the session again, and decide anew")
        plan = manager.undo(session_id) if version is None else manager.restore(session_id, version)
        if plan.version != before.version and self.store.get_current_plan(session_id)[1] != plan.version:
            raise HttpError(409, "another process changed the session meanwhile", "look at it again, and try once more")
        return plan

    def close(self) -> None:
        """Close the store."""
        self.manager.close()


def _written(sent: SentPrompt) -> list[object]:
    """Return what stood behind the log in a prompt, in the form of the caller's own messages."""
    like = sent.messages[-1].message.original if sent.messages else None
    return [write_entry(replace(entry.message, original=None), like) for entry in sent.added]


def _ignore_event(event: CompactionEvent) -> None:
    """Drop an event: the viewer must not export events of its own."""
