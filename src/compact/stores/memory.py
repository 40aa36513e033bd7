"""Stores that live as long as the process."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from compact.core.artifacts import Artifact, ArtifactMetadata, SecurityContext
from compact.core.plan import CompactionPlan
from compact.core.records import (
    Commit,
    ModelCall,
    PlanVersion,
    PreparedSummary,
    SessionHead,
    SessionInfo,
    StoredMessage,
    StoredSession,
    VersionConflict,
)
from compact.core.summary import StructuredSummary, SummaryCacheKey
from compact.stores.wire import searchable, wanted


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
            kept.plans.extend(PlanVersion(plan, now) for plan in commit.overtaken)
            if commit.plan:
                kept.plans.append(PlanVersion(commit.plan, now))
            if commit.call:
                kept.calls.append(replace(commit.call, number=len(kept.calls) + 1, at=now))
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


class InMemorySummaryClaims:
    """Claims in a dictionary: when each was made, and what came of it."""

    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._claims: dict[tuple[str, str], tuple[float, StructuredSummary | None]] = {}
        self._prepared: dict[tuple[str, int], PreparedSummary] = {}

    def claim(self, session_id: str, span_key: str, *, stale_after_seconds: float) -> bool:
        """True for the one caller that is to write the summary of a span."""
        with self._lock:
            now, standing = self._clock(), self._claims.get((session_id, span_key))
            if standing and (standing[1] or now - standing[0] < stale_after_seconds):
                return False
            self._claims[session_id, span_key] = (now, None)
            return True

    def finish(self, session_id: str, span_key: str, summary: StructuredSummary | None) -> None:
        """Store the summary of a claimed span, or give the claim up; what is finished stays."""
        with self._lock:
            if self.finished(session_id, span_key):
                return
            if summary is None:
                self._claims.pop((session_id, span_key), None)
            else:
                self._claims[session_id, span_key] = (self._clock(), summary)

    def finished(self, session_id: str, span_key: str) -> StructuredSummary | None:
        """The summary of a span, once somebody has written it."""
        return self._claims.get((session_id, span_key), (0.0, None))[1]

    def prepare(self, session_id: str, span_key: str, prepared: PreparedSummary) -> None:
        """Note what a finished summary stands for."""
        self._prepared[session_id, prepared.version] = prepared

    def prepared(self, session_id: str, version: int) -> PreparedSummary | None:
        """The newest summary that was written ahead for a version."""
        return self._prepared.get((session_id, version))

    def wait(self, session_id: str, span_key: str, *, timeout_seconds: float) -> StructuredSummary | None:
        """The summary of a span; sessions are not shared in memory, so there is nobody to wait for."""
        return self.finished(session_id, span_key)

    def forget(self, session_id: str) -> None:
        """Remove the claims of a session."""
        with self._lock:
            self._claims = {key: claim for key, claim in self._claims.items() if key[0] != session_id}
            self._prepared = {key: kept for key, kept in self._prepared.items() if key[0] != session_id}


class InMemoryArtifactStore:
    """Artifacts in a dictionary."""

    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._kept: dict[tuple[str, str], Artifact] = {}

    def store_artifact(self, artifact: Artifact) -> None:
        """Put an artifact away."""
        self._kept.setdefault((artifact.metadata.tenant_id, artifact.metadata.artifact_id), artifact)

    def retrieve_artifact(self, artifact_id: str, security: SecurityContext) -> Artifact | None:
        """An artifact, if this requester may see it."""
        artifact = self._kept.get((security.tenant_id, artifact_id))
        return artifact if artifact and self._is_visible(artifact, security) else None

    def list_artifacts(self, thread_id: str, security: SecurityContext) -> tuple[ArtifactMetadata, ...]:
        """What a thread has put away."""
        kept = [artifact for artifact in self._kept.values() if artifact.metadata.thread_id == thread_id]
        return tuple(artifact.metadata for artifact in kept if self._is_visible(artifact, security))

    def delete_artifact(self, artifact_id: str, security: SecurityContext) -> bool:
        """Remove an artifact."""
        if self.retrieve_artifact(artifact_id, security) is None:
            return False
        return self._kept.pop((security.tenant_id, artifact_id), None) is not None

    def forget_thread(self, thread_id: str) -> None:
        """Remove everything a thread has put away."""
        for key in [key for key, artifact in self._kept.items() if artifact.metadata.thread_id == thread_id]:
            del self._kept[key]

    def _is_visible(self, artifact: Artifact, security: SecurityContext) -> bool:
        expires_at = artifact.metadata.expires_at
        return security.may_read(artifact.metadata) and (expires_at is None or expires_at > self._clock())


class InMemorySummaryCache:
    """The most recently used summaries, each for a limited time."""

    def __init__(
        self, *, max_entries: int = 256, ttl_seconds: float = 7 * 86_400, clock: Callable[[], float] = time.time
    ) -> None:
        self._max_entries, self._ttl_seconds, self._clock = max_entries, ttl_seconds, clock
        self._lock = threading.Lock()
        self._kept: OrderedDict[SummaryCacheKey, tuple[float, StructuredSummary]] = OrderedDict()

    def get(self, key: SummaryCacheKey) -> StructuredSummary | None:
        """A summary that is still good."""
        with self._lock:
            entry = self._kept.get(key)
            if entry is None or self._clock() - entry[0] > self._ttl_seconds:
                self._kept.pop(key, None)
                return None
            self._kept.move_to_end(key)
            return entry[1]

    def put(self, key: SummaryCacheKey, summary: StructuredSummary) -> None:
        """Remember a summary; the one not used for longest goes when there are too many."""
        with self._lock:
            self._kept[key] = (self._clock(), summary)
            self._kept.move_to_end(key)
            while len(self._kept) > self._max_entries:
                self._kept.popitem(last=False)

    def invalidate(self, key: SummaryCacheKey) -> None:
        """Forget a summary."""
        with self._lock:
            self._kept.pop(key, None)
