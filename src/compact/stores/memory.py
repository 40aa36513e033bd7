"""Stores that live as long as the process."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from compact.core.audit.records import (
    AddedMessage,
    Commit,
    ModelCall,
    PlanVersion,
    SentPrompt,
    SessionHead,
    SessionInfo,
    StoredMessage,
    StoredSession,
)
from compact.core.audit.store import VersionConflict
from compact.core.plan.plan import CompactionAction, CompactionPlan
from compact.stores.memory_parts import InMemoryArtifactStore, InMemorySummaryCache, InMemorySummaryClaims
from compact.stores.wire import searchable, wanted

__all__ = [
    "InMemoryArtifactStore",
    "InMemoryCompactionStore",
    "InMemorySummaryCache",
    "InMemorySummaryClaims",
    "advanced",
]

_UNSEEN = (CompactionAction.SUMMARIZE, CompactionAction.DROP)


@dataclass(slots=True)
class _Kept:
    """All that is known of one session."""

    created_at: float
    updated_at: float
    head: SessionHead = field(default_factory=SessionHead)
    messages: list[StoredMessage] = field(default_factory=list[StoredMessage])
    view_ids: list[str] = field(default_factory=list[str])
    plans: list[PlanVersion] = field(default_factory=list[PlanVersion])
    calls: list[ModelCall] = field(default_factory=list[ModelCall])
    added: dict[int, tuple[AddedMessage, ...]] = field(default_factory=dict[int, tuple[AddedMessage, ...]])
    # The line of each branch: where it was told, and how it went until then.
    lines: list[tuple[int, tuple[str, ...]]] = field(default_factory=lambda: [(0, ())])


class InMemoryCompactionStore:
    """Sessions in a dictionary; safe between threads."""

    blocks = False

    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._lock = threading.RLock()
        self._sessions: dict[str, _Kept] = {}
        self.artifacts = InMemoryArtifactStore(clock=clock)
        self.claims = InMemorySummaryClaims(clock=clock)
        self.summaries = InMemorySummaryCache(clock=clock)

    def head(self, session_id: str) -> SessionHead:
        """How far a session has come."""
        kept = self._sessions.get(session_id)
        return kept.head if kept else SessionHead()

    def load(self, session_id: str) -> StoredSession | None:
        """Everything about a session."""
        with self._lock:
            kept = self._sessions.get(session_id)
            if kept is None:
                return None
            return StoredSession(
                session_id=session_id,
                head=kept.head,
                messages=tuple(kept.messages),
                view_ids=tuple(kept.view_ids),
                plan=self.get_current_plan(session_id)[0],
                last_report=next((call for call in reversed(kept.calls) if call.tokens_reported is not None), None),
            )

    def commit(self, commit: Commit) -> SessionHead:
        """Write what a call adds."""
        with self._lock:
            now = self._clock()
            kept = self._sessions.get(commit.session_id) or _Kept(now, now)
            if kept.head != commit.expected:
                raise VersionConflict(f"session {commit.session_id!r} is at {kept.head}, not at {commit.expected}")
            kept.messages.extend(commit.messages)
            if commit.view_ids is None:
                kept.view_ids.extend(stored.message.id for stored in commit.messages)
            else:
                kept.view_ids = list(commit.view_ids)
                kept.lines.append((advanced(commit).last_seq, commit.view_ids))
            kept.plans.extend(PlanVersion(plan, now) for plan in commit.superseded)
            if commit.plan:
                kept.plans.append(PlanVersion(commit.plan, now))
            if commit.call:
                kept.calls.append(replace(commit.call, number=len(kept.calls) + 1, at=now))
                if commit.added:
                    kept.added[len(kept.calls)] = commit.added
            kept.head = advanced(commit)
            kept.updated_at = now
            self._sessions[commit.session_id] = kept
            return kept.head

    def get_current_plan(self, session_id: str) -> tuple[CompactionPlan, int]:
        """The plan in force and its version."""
        kept = self._sessions.get(session_id)
        plan = kept.plans[-1].plan if kept and kept.plans else CompactionPlan(session_id)
        return plan, plan.version

    def commit_plan(self, session_id: str, plan: CompactionPlan, expected_version: int) -> int:
        """Put a plan in force."""
        with self._lock:
            expected = replace(self.head(session_id), plan_version=expected_version)
            plan = replace(plan, version=expected_version + 1)
            return self.commit(Commit(session_id=session_id, expected=expected, plan=plan)).plan_version

    def plans(self, session_id: str) -> tuple[PlanVersion, ...]:
        """Every plan that ever was in force."""
        kept = self._sessions.get(session_id)
        return tuple(kept.plans) if kept else ()

    def model_calls(self, session_id: str) -> tuple[ModelCall, ...]:
        """Every prompt that went out."""
        kept = self._sessions.get(session_id)
        return tuple(kept.calls) if kept else ()

    def recent_calls(self, session_ids: Sequence[str], limit: int) -> Mapping[str, tuple[ModelCall, ...]]:
        """The newest calls of each of these sessions."""
        return {session_id: self.model_calls(session_id)[-limit:] for session_id in session_ids}

    def sent(self, session_id: str, number: int) -> SentPrompt | None:
        """Everything that the prompt of one call was made of."""
        with self._lock:
            kept = self._sessions.get(session_id)
            if kept is None or not 1 <= number <= len(kept.calls):
                return None
            call = kept.calls[number - 1]
            plans = (entry.plan for entry in kept.plans if entry.plan.version == call.plan_version)
            plan = next(plans, CompactionPlan(session_id))
            return SentPrompt(
                call=call, plan=plan, messages=tuple(_shown(kept, call, plan)), added=kept.added.get(number, ())
            )

    def report_usage(self, session_id: str, tokens: int) -> None:
        """Note what the provider counted."""
        with self._lock:
            kept = self._sessions.get(session_id)
            if kept and kept.calls:
                kept.calls[-1] = replace(kept.calls[-1], tokens_reported=tokens)

    def sessions(self) -> tuple[SessionInfo, ...]:
        """All sessions, the newest first."""
        with self._lock:
            infos = [
                SessionInfo(
                    session_id=session_id,
                    messages=len(kept.messages),
                    plan_version=kept.head.plan_version,
                    model_calls=len(kept.calls),
                    last_tokens=kept.calls[-1].tokens_estimated if kept.calls else 0,
                    created_at=kept.created_at,
                    updated_at=kept.updated_at,
                )
                for session_id, kept in self._sessions.items()
            ]
        return tuple(sorted(infos, key=lambda info: (-info.updated_at, info.session_id)))

    def message(self, session_id: str, message_id: str) -> StoredMessage | None:
        """One log entry by its id."""
        kept = self._sessions.get(session_id)
        return next((stored for stored in kept.messages if stored.message.id == message_id), None) if kept else None

    def messages(self, session_id: str, *, after_seq: int = 0, limit: int = 100) -> tuple[StoredMessage, ...]:
        """So many log entries behind a place, oldest first."""
        kept = self._sessions.get(session_id)
        return tuple(kept.messages[after_seq : after_seq + limit]) if kept else ()

    def outline(self, session_id: str) -> tuple[tuple[str, int], ...]:
        """The id and the tokens of every log entry."""
        kept = self._sessions.get(session_id)
        return tuple((entry.message.id, entry.tokens) for entry in kept.messages) if kept else ()

    def sessions_with(self, words: str) -> frozenset[str]:
        """The sessions that have a log entry with all the words in it."""
        return frozenset(session_id for session_id in list(self._sessions) if self.search(session_id, words, 1))

    def search(self, session_id: str, words: str, limit: int) -> tuple[StoredMessage, ...]:
        """Log entries that hold all the words, the newest first."""
        kept = self._sessions.get(session_id)
        phrases = [f" {phrase} " for phrase in wanted(words)]
        if not kept or not phrases:
            return ()
        found = (
            stored
            for stored in reversed(kept.messages)
            if (text := f" {searchable(stored.message)} ") and all(phrase in text for phrase in phrases)
        )
        return tuple(stored for stored, _ in zip(found, range(limit), strict=False))

    def delete(self, session_id: str) -> bool:
        """Remove a session and all that belongs to it."""
        with self._lock:
            self.artifacts.forget_thread(session_id)
            self.claims.forget(session_id)
            return self._sessions.pop(session_id, None) is not None

    def close(self) -> None:
        """Nothing is held open."""


def advanced(commit: Commit) -> SessionHead:
    """Where a session stands after a commit."""
    before = commit.expected
    return SessionHead(
        last_seq=commit.messages[-1].seq if commit.messages else before.last_seq,
        plan_version=commit.plan.version if commit.plan else before.plan_version,
        branch=before.branch + (commit.view_ids is not None),
    )


def _shown(kept: _Kept, call: ModelCall, plan: CompactionPlan) -> Iterator[StoredMessage]:
    """The log entries that a prompt shows, as they are or as a stub, in the order of the caller's line."""
    start, view = kept.lines[call.branch]
    known = {entry.message.id: entry for entry in kept.messages[: call.last_seq]}
    line = (*view, *(entry.message.id for entry in kept.messages[start : call.last_seq]))
    return (known[i] for i in line if i in known and plan.get_action(i)[0] not in _UNSEEN)
