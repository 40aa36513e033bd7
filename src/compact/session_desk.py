"""The questions an operator asks of a session, and what it may do about the answers."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from compact.config import CompactConfig
from compact.core.audit.artifacts import SecurityContext
from compact.core.audit.records import ModelCall, PlanVersion, SessionInfo
from compact.core.audit.report import CompactionReport, reports_of
from compact.core.audit.store import CompactionStore
from compact.core.audit.why import Sighting, trace_phrase
from compact.core.engine.engine import Engine
from compact.core.engine.events import ContentRecalledEvent
from compact.core.engine.session import Session
from compact.core.errors import CompactError, UnknownSession
from compact.core.log.messages import Message
from compact.core.plan.plan import CompactionPlan
from compact.core.plan.renderer import RenderedPrompt
from compact.dialects.doorway import Doorway
from compact.driving import drive
from compact.recall.search import Recall, recall
from compact.session_lock import SessionLock
from compact.telemetry.dispatcher import Dispatcher


@dataclass(slots=True)
class GuardedSession:
    """A session, the lock that lets one call at a time into it, and the form its caller speaks."""

    session: Session
    lock: SessionLock = field(default_factory=SessionLock)
    door: Doorway = field(default_factory=Doorway)


class SessionDesk:
    """Sessions by their id, here or in the store, one caller at a time in each."""

    config: CompactConfig
    _engine: Engine
    _events: Dispatcher
    _store: CompactionStore
    _sessions: OrderedDict[str, GuardedSession]
    _registry: threading.Lock

    def current_plan(self, session_id: str) -> CompactionPlan:
        """The plan in force; an empty one for a session that is not known yet."""
        try:
            with self._opened(session_id) as session:
                return session.plan
        except UnknownSession:
            return CompactionPlan(session_id)

    def prompt(self, session_id: str) -> RenderedPrompt:
        """The prompt as it was last returned, with the log entries that each place of it stands for."""
        with self._opened(session_id) as session:
            return session.prompt

    def history(self, session_id: str) -> tuple[Message, ...]:
        """The log: everything that ever arrived, in order, whatever was compacted or edited since."""
        with self._opened(session_id) as session:
            return tuple(session.thread.log)

    def undo(self, session_id: str) -> CompactionPlan:
        """Take the last compaction back; the plan before it stays in force until the budget forbids it."""
        with self._opened(session_id) as session:
            plan = session.plan
        shown = plan.version if plan.origin is None else plan.origin
        return self.restore(session_id, shown - 1) if shown else plan

    def restore(self, session_id: str, version: int) -> CompactionPlan:
        """Bring an earlier plan back exactly; version 0 is the history without any compaction."""
        with self._opened(session_id) as session:
            drive(self._engine.restore(session, version))
            return session.plan

    def plans(self, session_id: str) -> tuple[PlanVersion, ...]:
        """Every plan that was ever in force, oldest first."""
        return self._store.plans(session_id)

    def model_calls(self, session_id: str) -> tuple[ModelCall, ...]:
        """Every prompt that went out, oldest first."""
        return self._store.model_calls(session_id)

    def sessions(self) -> tuple[SessionInfo, ...]:
        """All sessions in the store, the newest first."""
        return self._store.sessions()

    def why(self, session_id: str, phrase: str) -> tuple[Sighting, ...]:
        """Where a phrase is now, since when, and which calls went out without it; nothing if it was never there."""
        stored = self._store.load(session_id)
        if stored is None:
            raise UnknownSession(session_id)
        return trace_phrase(phrase, stored, self._store.plans(session_id), self._store.model_calls(session_id))

    def report(self, session_id: str, *, version: int | None = None) -> tuple[CompactionReport, ...]:
        """What each compaction did to what it took out, oldest first; of one plan version, if asked."""
        stored = self._store.load(session_id)
        if stored is None:
            raise UnknownSession(session_id)
        plans = self._store.plans(session_id)
        known = [entry.plan.version for entry in plans]
        if version is not None and version not in known:
            hint = f"its versions are: {', '.join(map(str, known))}" if known else "it was never compacted"
            raise CompactError(f"session {session_id!r} has no plan version {version}", hint=hint)
        return tuple(reports_of(stored, plans, self._store.model_calls(session_id), version=version))

    def recall(
        self, session_id: str, query: str, *, max_tokens: int = 2000, security: SecurityContext | None = None
    ) -> Recall:
        """What left the prompt: by message or artifact id exactly, by words otherwise, within a number of tokens."""
        started_at, count_text = time.time(), self._engine.tokenizer.count_text
        answer = recall(
            self._store,
            session_id,
            query,
            security=security or SecurityContext(tenant_id=self.config.state.tenant_id),
            count_text=count_text,
            max_tokens=max_tokens,
        )
        self._tell_recall(session_id, answer, started_at)
        return answer

    def _tell_recall(self, session_id: str, answer: Recall, started_at: float) -> None:
        guarded = self._sessions.get(session_id)
        self._events(
            ContentRecalledEvent(
                thread_id=session_id,
                turn_number=guarded.session.turn_number if guarded else 0,
                plan_version=guarded.session.plan.version if guarded else 0,
                started_at=started_at,
                ended_at=max(started_at, time.time()),
                query=answer.query,
                message_ids=tuple(entry.message_id for entry in answer.found),
                tokens=sum(self._engine.tokenizer.count_text(entry.content) for entry in answer.found),
            )
        )

    def flush(self, timeout_seconds: float = 5.0) -> bool:
        """Have every event sent that waits to be; False if that took too long."""
        return self._events.flush(timeout_seconds)

    @contextmanager
    def _opened(self, session_id: str) -> Iterator[Session]:
        """A session that is known, here or in the store, with nobody else in it."""
        with self._registry:
            guarded = self._sessions.get(session_id) or GuardedSession(Session(session_id))
        with guarded.lock.hold():
            drive(self._engine.refresh(guarded.session))
            if not guarded.session.thread.log:
                self._store.head(session_id)  # a store that is away says so: the session may well be in it
                raise UnknownSession(session_id)
            with self._registry:
                self._sessions.setdefault(session_id, guarded)
            yield guarded.session
