"""Where the viewer's data comes from: a manager and its store, asked once for what does not change any more."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

from compact.assembly import build_budget, build_engine, build_pricer, build_store
from compact.config import CompactConfig
from compact.core.audit.records import ModelCall, PlanVersion, SentPrompt, SessionHead, SessionInfo, StoredSession
from compact.core.audit.report import CompactionReport
from compact.core.engine.events import CompactionEvent
from compact.core.engine.session import Session
from compact.core.errors import UnknownSession
from compact.core.log.messages import Message, Slot
from compact.core.plan.budget import TokenBudget
from compact.core.plan.economics import Pricer, PromptChange
from compact.core.plan.plan import CompactionPlan
from compact.manager import CompactManager
from compact.viewer.answers import Refusal

V = TypeVar("V")


class Remembered(Generic[V]):
    """The answers that were asked for last, so many at most; safe between threads."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._known: OrderedDict[Hashable, V] = OrderedDict()

    def get(self, key: Hashable, find: Callable[[], V]) -> V:
        """The answer to a question, found out if nobody has asked it before."""
        with self._lock:
            if key in self._known:
                self._known.move_to_end(key)
                return self._known[key]
        found = find()
        with self._lock:
            self._known[key] = found
            while len(self._known) > self._most:
                self._known.popitem(last=False)
        return found

    def peek(self, key: Hashable) -> V | None:
        """The answer, if it is known."""
        with self._lock:
            return self._known.get(key)


class Prompt:
    """A prompt that went out, made again: its slots, the tokens of each, and what it was made of."""

    def __init__(self, sent: SentPrompt, slots: tuple[Slot, ...], tokens: tuple[int, ...], added: list[int]) -> None:
        self.sent, self.slots, self.tokens, self.added_tokens = sent, slots, tokens, added

    @property
    def fixed_tokens(self) -> int:
        """What was sent beside the messages: instructions, tool schemas, wire overhead."""
        return max(0, self.sent.call.tokens_estimated - sum(self.tokens) - sum(self.added_tokens))


class Source:
    """Everything the viewer asks of a store; blocking, so never called on the event loop."""

    def __init__(self, config: CompactConfig, *, pricing: CompactConfig | None = None) -> None:
        self.config = config
        self.store = build_store(config)
        self.manager = CompactManager(config, store=self.store, on_event=_let_go)
        self._engine = build_engine(config, emit=_let_go, store=self.store)
        self.price: Pricer = build_pricer(pricing or config)
        self.pricing_model = (pricing or config).model
        self._plans: Remembered[tuple[PlanVersion, ...]] = Remembered(16)
        self._reports: Remembered[CompactionReport | None] = Remembered(64)
        self._prompts: Remembered[Prompt] = Remembered(8)
        self._prices: Remembered[Any] = Remembered(256)
        self._is_warm = threading.Event()

    @property
    def kind(self) -> str:
        """What kind of store it is; its address may hold a password, and is nobody's business."""
        return self.config.state.url.partition(":")[0]

    @property
    def budget(self) -> TokenBudget:
        """The window as it is set here, for calls that do not say theirs."""
        return build_budget(self.config)

    def sessions(self) -> tuple[SessionInfo, ...]:
        """All sessions, the newest first."""
        return self.manager.sessions()

    def info(self, session_id: str) -> SessionInfo:
        """One session of the list."""
        found = next((info for info in self.sessions() if info.session_id == session_id), None)
        if found is None:
            raise UnknownSession(session_id)
        return found

    def calls(self, session_id: str) -> tuple[ModelCall, ...]:
        """Every call of a session."""
        return self.manager.model_calls(session_id)

    def plans(self, info: SessionInfo) -> tuple[PlanVersion, ...]:
        """Every plan of a session; they never change, there only are more of them."""
        key = (info.session_id, info.created_at, info.plan_version)
        return self._plans.get(key, lambda: self.manager.plans(info.session_id))

    def plan(self, info: SessionInfo, version: int) -> PlanVersion:
        """One plan; version 0 is the history without any compaction."""
        if version == 0:
            return PlanVersion(CompactionPlan(info.session_id), info.created_at)
        found = next((entry for entry in self.plans(info) if entry.plan.version == version), None)
        if found is None:
            hint = f"its versions are 0 to {info.plan_version}"
            raise Refusal(404, f"session {info.session_id!r} has no plan version {version}", hint)
        return found

    def report(self, info: SessionInfo, version: int) -> CompactionReport | None:
        """What one compaction did to what it took out."""
        key = (info.session_id, info.created_at, version)
        return self._reports.get(key, lambda: self._report(info.session_id, version))

    def known_report(self, info: SessionInfo, version: int) -> CompactionReport | None:
        """The same, if it was worked out before."""
        return self._reports.peek((info.session_id, info.created_at, version))

    def _report(self, session_id: str, version: int) -> CompactionReport | None:
        return next(iter(self.manager.report(session_id, version=version)), None)

    def prompt(self, info: SessionInfo, number: int) -> Prompt:
        """The prompt of one call, made again."""
        key = (info.session_id, info.created_at, number)
        return self._prompts.get(key, lambda: self._prompt(info.session_id, number))

    def _prompt(self, session_id: str, number: int) -> Prompt:
        sent = self.store.sent(session_id, number)
        if sent is None:
            raise Refusal(404, f"session {session_id!r} has no call {number}", "the session's page lists its calls")
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
        added = [self.count(entry.message) for entry in sent.added]
        return Prompt(sent, session.prompt.slots, tuple(session.prompt.slot_tokens), added)

    def priced(self, info: SessionInfo, plan: CompactionPlan, find: Callable[[], V]) -> V:
        """The price of a plan, worked out once."""
        return self._prices.get((info.session_id, info.created_at, plan.version), find)

    def warm_up(self) -> None:
        """Have the price list loaded, which takes a moment, before somebody waits for a price."""
        if self._is_warm.is_set():
            return
        self._is_warm.set()
        nothing = PromptChange(tokens_before=1, tokens_after=0, cached_tokens=0, kept_tokens=0)
        threading.Thread(target=lambda: self.price(nothing, may_wait=True), daemon=True).start()

    def count(self, message: Message) -> int:
        """The tokens of a message, by the tokenizer that is set here."""
        return self._engine.tokenizer.count_message(message)

    def restore(self, session_id: str, version: int | None, *, seen: int) -> tuple[CompactionPlan, int]:
        """Bring a plan back, or take the last compaction back; returns the plan in force and what it takes.

        `seen` is the version in force when somebody decided to: if it is another by now, nothing is done.
        """
        # A manager of its own: the one that reads must not keep every session that was ever changed here.
        manager = CompactManager(self.config, store=self.store, on_event=_let_go)
        before = manager.current_plan(session_id)
        if before.version != seen:
            what = f"plan v{before.version} is in force by now, not v{seen}: nothing was changed"
            raise Refusal(409, what, "close this, look at the session again, and decide anew")
        plan = manager.undo(session_id) if version is None else manager.restore(session_id, version)
        used = manager.status(session_id).used_tokens
        if plan.version != before.version and self.store.get_current_plan(session_id)[1] != plan.version:
            raise Refusal(409, "the session was written to meanwhile", "look at it again, and try once more")
        return plan, used

    def close(self) -> None:
        """Let go of the store."""
        self.manager.close()


def _let_go(event: CompactionEvent) -> None:
    """Looking leaves no trace."""
