"""Stores that live as long as the process: sessions, artifacts, claims on summaries, and cached summaries."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from compact.core.audit.artifacts import Artifact, ArtifactMetadata, SecurityContext
from compact.core.audit.call_details import reported_cache
from compact.core.audit.records import (
    AddedMessage,
    BranchView,
    CallHistory,
    Commit,
    ImportedHistory,
    ModelCall,
    PlanVersion,
    PrefetchedSummary,
    SentPrompt,
    SessionHead,
    SessionInfo,
    StoredMessage,
    StoredSession,
)
from compact.core.audit.store import PlanMethods, VersionConflict
from compact.core.plan.plan import CompactionPlan
from compact.core.search.ranking import MemoryIndex
from compact.core.search.search_terms import entry_terms
from compact.core.summary.summarizer import SummaryCacheKey
from compact.core.summary.summary import StructuredSummary
from compact.stores.memory_events import InMemoryEventStore
from compact.stores.scanning import ScanningReader


@dataclass(slots=True)
class _StoredData:
    """All that is known of one session."""

    created_at: float
    updated_at: float
    head: SessionHead = field(default_factory=SessionHead)
    messages: list[StoredMessage] = field(default_factory=list[StoredMessage])
    view_ids: list[str] = field(default_factory=list[str])
    plans: list[PlanVersion] = field(default_factory=list[PlanVersion])
    calls: list[ModelCall] = field(default_factory=list[ModelCall])
    added: dict[int, tuple[AddedMessage, ...]] = field(default_factory=dict[int, tuple[AddedMessage, ...]])
    branches: list[BranchView] = field(default_factory=lambda: [BranchView()])
    imported: ImportedHistory | None = None
    index: MemoryIndex = field(default_factory=MemoryIndex)

    def indexed(self) -> MemoryIndex:
        """Return the terms of all entries; those of new ones are found when somebody searches."""
        for entry in self.messages[self.index.size :]:
            self.index.add(entry.seq, entry_terms(entry.message))
        return self.index

    def write(self, commit: Commit, now: float) -> None:
        """Add what a commit holds."""
        self.messages.extend(commit.messages)
        if commit.view_ids is None:
            self.view_ids.extend(stored.message.id for stored in commit.messages)
        else:
            self.view_ids = list(commit.view_ids)
        if commit.is_branch:
            self.branches.append(self._branch(commit))
        self.plans.extend(PlanVersion(plan, now) for plan in (*commit.superseded, commit.plan) if plan)
        self.imported = commit.imported or self.imported
        if commit.call:
            self.calls.append(replace(commit.call, number=len(self.calls) + 1, at=now))
            if commit.added:
                self.added[len(self.calls)] = commit.added
        self.head, self.updated_at = commit.head_after, now

    def _branch(self, commit: Commit) -> BranchView:
        """Return the view that a commit begins: a new one, or the one before in other forms."""
        view = self.branches[-1]
        if commit.view_ids is not None:
            view = BranchView(commit.head_after.last_seq, commit.view_ids)
        return view.with_forms(commit.forms, commit.unseen)

    def plan_of(self, session_id: str, version: int) -> CompactionPlan:
        """Return a plan by its version; the one that changes nothing if there is none."""
        plans = (entry.plan for entry in reversed(self.plans) if entry.plan.version == version)
        return next(plans, CompactionPlan(session_id))

    def shown_in(self, call: ModelCall, plan: CompactionPlan) -> Iterator[StoredMessage]:
        """Return the log entries that a prompt shows, as they are or as a stub, in the order of its branch."""
        branch = self.branches[call.branch]
        known = {entry.message.id: entry for entry in self.messages[: call.last_seq]}
        later = (entry.message.id for entry in self.messages[branch.after_seq : call.last_seq])
        ids = (*branch.view_ids, *later)
        return (branch.shown(known[i]) for i in ids if i in known and plan.shows(i))


class InMemoryCompactionStore(ScanningReader, PlanMethods):
    """Sessions in a dictionary; safe between threads."""

    blocks = False

    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._lock = threading.RLock()
        self._sessions: dict[str, _StoredData] = {}
        self.artifacts = InMemoryArtifactStore(clock=clock)
        self.claims = InMemorySummaryClaims(clock=clock)
        self.summaries = InMemorySummaryCache(clock=clock)
        self.events = InMemoryEventStore(clock=clock)

    def head(self, session_id: str) -> SessionHead:
        """Return how far a session has come."""
        data = self._sessions.get(session_id)
        return data.head if data else SessionHead()

    def load(self, session_id: str) -> StoredSession | None:
        """Return everything needed to go on with a session."""
        with self._lock:
            data = self._sessions.get(session_id)
            if data is None:
                return None
            return StoredSession(
                session_id=session_id,
                head=data.head,
                messages=tuple(data.messages),
                view_ids=tuple(data.view_ids),
                plan=data.plan_of(session_id, data.head.plan_version),
                last_report=next((call for call in reversed(data.calls) if call.tokens_reported is not None), None),
                forms=data.branches[-1].forms,
                unseen=data.branches[-1].unseen,
            )

    def commit(self, commit: Commit) -> SessionHead:
        """Write what a call adds."""
        with self._lock:
            now = self._clock()
            data = self._sessions.get(commit.session_id) or _StoredData(now, now)
            if data.head != commit.expected:
                raise VersionConflict(f"session {commit.session_id!r} is at {data.head}, not at {commit.expected}")
            data.write(commit, now)
            self._sessions[commit.session_id] = data
            return data.head

    def plans(self, session_id: str) -> tuple[PlanVersion, ...]:
        """Return every plan that was ever in force."""
        data = self._sessions.get(session_id)
        return tuple(data.plans) if data else ()

    def report_usage(
        self,
        session_id: str,
        tokens: int,
        *,
        cache_read_tokens: int | None = None,
        cache_write_tokens: int | None = None,
    ) -> None:
        """Write what the provider counted for the newest call."""
        told = reported_cache(cache_read_tokens, cache_write_tokens)
        with self._lock:
            data = self._sessions.get(session_id)
            if data and data.calls:
                call = data.calls[-1]
                data.calls[-1] = replace(call, tokens_reported=tokens, details={**call.details, **told})

    def delete(self, session_id: str) -> bool:
        """Remove a session and all that belongs to it."""
        with self._lock:
            self.artifacts.forget(session_id)
            self.claims.forget(session_id)
            self.summaries.forget(session_id)
            self.events.forget(session_id)
            return self._sessions.pop(session_id, None) is not None

    def close(self) -> None:
        """Do nothing: nothing is open."""

    # -- for readers ------------------------------------------------------------------------------------------------

    def model_calls(self, session_id: str) -> tuple[ModelCall, ...]:
        """Return every prompt that went out."""
        data = self._sessions.get(session_id)
        return tuple(data.calls) if data else ()

    def sent(self, session_id: str, number: int) -> SentPrompt | None:
        """Return everything that the prompt of one call was made of."""
        with self._lock:
            data = self._sessions.get(session_id)
            if data is None or not 1 <= number <= len(data.calls):
                return None
            call = data.calls[number - 1]
            plan = data.plan_of(session_id, call.plan_version)
            messages = tuple(data.shown_in(call, plan))
            return SentPrompt(call=call, plan=plan, messages=messages, added=data.added.get(number, ()))

    def call_history(self, session_id: str, *, after_call: int = 0, after_branch: int = 0) -> CallHistory | None:
        """Return what the prompts of the later calls were made of, and the later branches."""
        with self._lock:
            data = self._sessions.get(session_id)
            if data is None:
                return None
            return CallHistory(
                created_at=data.created_at,
                head=data.head,
                calls=tuple(data.calls[after_call:]),
                branches={n: view for n, view in enumerate(data.branches) if n > after_branch},
                added={number: added for number, added in data.added.items() if number > after_call},
            )

    def sessions(self) -> tuple[SessionInfo, ...]:
        """Return all sessions, the newest first."""
        with self._lock:
            infos = [_info(session_id, data) for session_id, data in self._sessions.items()]
        return tuple(sorted(infos, key=lambda info: (-info.updated_at, info.session_id)))

    def session_info(self, session_id: str) -> SessionInfo | None:
        """Return one session of the list."""
        with self._lock:
            data = self._sessions.get(session_id)
            return _info(session_id, data) if data else None

    def _index(self, session_id: str) -> MemoryIndex:
        with self._lock:
            data = self._sessions.get(session_id)
            return data.indexed() if data else MemoryIndex()


def _info(session_id: str, data: _StoredData) -> SessionInfo:
    imported_tokens = data.imported.tokens if data.imported else 0
    return SessionInfo(
        session_id=session_id,
        messages=len(data.messages),
        plan_version=data.head.plan_version,
        model_calls=len(data.calls),
        last_tokens=data.calls[-1].tokens_estimated if data.calls else imported_tokens,
        created_at=data.created_at,
        updated_at=data.updated_at,
        imported=data.imported,
    )


class InMemoryArtifactStore:
    """Artifacts in a dictionary."""

    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        # By tenant and id.
        self._artifacts: dict[tuple[str, str], Artifact] = {}

    def store_artifact(self, artifact: Artifact) -> None:
        """Store an artifact."""
        with self._lock:
            self._artifacts.setdefault((artifact.metadata.tenant_id, artifact.metadata.artifact_id), artifact)

    def retrieve_artifact(self, artifact_id: str, security: SecurityContext) -> Artifact | None:
        """Return an artifact, if this requester may see it."""
        artifact = self._artifacts.get((security.tenant_id, artifact_id))
        return artifact if artifact and self._is_visible(artifact.metadata, security) else None

    def list_artifacts(self, session_id: str, security: SecurityContext) -> tuple[ArtifactMetadata, ...]:
        """Return what is known about a session's artifacts."""
        with self._lock:
            known = [artifact.metadata for artifact in self._artifacts.values()]
        return tuple(m for m in known if m.session_id == session_id and self._is_visible(m, security))

    def delete_artifact(self, artifact_id: str, security: SecurityContext) -> bool:
        """Remove an artifact."""
        if self.retrieve_artifact(artifact_id, security) is None:
            return False
        with self._lock:
            return self._artifacts.pop((security.tenant_id, artifact_id), None) is not None

    def forget(self, session_id: str) -> None:
        """Remove the artifacts of a session."""
        with self._lock:
            gone = [key for key, artifact in self._artifacts.items() if artifact.metadata.session_id == session_id]
            for key in gone:
                del self._artifacts[key]

    def _is_visible(self, metadata: ArtifactMetadata, security: SecurityContext) -> bool:
        return security.may_read(metadata) and not metadata.is_expired(self._clock())


# -- what processes share -------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Claim:
    """A claim on the summary of a span, and what came of it."""

    claimed_at: float
    finished_at: float = 0.0
    summary: StructuredSummary | None = None
    prefetched: PrefetchedSummary | None = None


class InMemorySummaryClaims:
    """Claims in a dictionary."""

    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        # By session, then by span.
        self._claims: dict[str, dict[str, _Claim]] = {}

    def claim(self, session_id: str, span_key: str, *, stale_after_seconds: float) -> bool:
        """Return True for the one caller that is to write the summary of a span."""
        with self._lock:
            now, standing = self._clock(), self._claim(session_id, span_key)
            if standing and (standing.summary or now - standing.claimed_at < stale_after_seconds):
                return False
            self._claims.setdefault(session_id, {})[span_key] = _Claim(now)
            return True

    def finish(self, session_id: str, span_key: str, summary: StructuredSummary | None) -> None:
        """Store the summary of a claimed span, or give the claim up; a summary that is there stays."""
        with self._lock:
            claim = self._claim(session_id, span_key)
            if claim is None or claim.summary:
                return
            if summary is None:
                del self._claims[session_id][span_key]
                if not self._claims[session_id]:
                    del self._claims[session_id]
            else:
                claim.summary, claim.finished_at = summary, self._clock()

    def finished(self, session_id: str, span_key: str) -> StructuredSummary | None:
        """Return the summary of a span, once it is written."""
        claim = self._claim(session_id, span_key)
        return claim.summary if claim else None

    def store_prefetched(self, session_id: str, span_key: str, prefetched: PrefetchedSummary) -> None:
        """Write what a finished summary stands for."""
        with self._lock:
            claim = self._claim(session_id, span_key)
            if claim:
                claim.prefetched = prefetched

    def prefetched(self, session_id: str, version: int) -> PrefetchedSummary | None:
        """Return the newest summary that was prefetched for a version."""
        with self._lock:
            finished = [claim for claim in self._claims.get(session_id, {}).values() if claim.summary]
        finished.sort(key=lambda claim: claim.finished_at, reverse=True)
        found = (claim.prefetched for claim in finished if claim.prefetched and claim.prefetched.version == version)
        return next(found, None)

    def wait(self, session_id: str, span_key: str, *, timeout_seconds: float) -> StructuredSummary | None:
        """Return the summary of a span at once: no other process can be writing it."""
        return self.finished(session_id, span_key)

    def forget(self, session_id: str) -> None:
        """Remove the claims and summaries of a session."""
        with self._lock:
            self._claims.pop(session_id, None)

    def _claim(self, session_id: str, span_key: str) -> _Claim | None:
        return self._claims.get(session_id, {}).get(span_key)


@dataclass(frozen=True, slots=True)
class _CachedSummary:
    """A summary, the session that it was made for, and when."""

    summary: StructuredSummary
    session_id: str
    at: float


class InMemorySummaryCache:
    """The most recently used summaries, each for a limited time."""

    # Chosen: a process rarely has more sessions in hand than 256, and rarely lives longer than a week.
    def __init__(
        self, *, max_entries: int = 256, ttl_seconds: float = 7 * 86_400, clock: Callable[[], float] = time.time
    ) -> None:
        self._max_entries, self._ttl_seconds, self._clock = max_entries, ttl_seconds, clock
        self._lock = threading.Lock()
        self._entries: OrderedDict[SummaryCacheKey, _CachedSummary] = OrderedDict()

    def get(self, key: SummaryCacheKey) -> StructuredSummary | None:
        """Return a summary that is still good."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None or self._clock() - entry.at > self._ttl_seconds:
                self._entries.pop(key, None)
                return None
            self._entries.move_to_end(key)
            return entry.summary

    def put(self, key: SummaryCacheKey, summary: StructuredSummary, *, session_id: str = "") -> None:
        """Store a summary; the least recently used one goes when there are too many."""
        with self._lock:
            self._entries[key] = _CachedSummary(summary, session_id, self._clock())
            self._entries.move_to_end(key)
            while len(self._entries) > self._max_entries:
                self._entries.popitem(last=False)

    def invalidate(self, key: SummaryCacheKey) -> None:
        """Remove a summary."""
        with self._lock:
            self._entries.pop(key, None)

    def forget(self, session_id: str) -> None:
        """Remove the summaries that were made for a session."""
        with self._lock:
            for key in [key for key, entry in self._entries.items() if entry.session_id == session_id]:
                del self._entries[key]


class InProcessSharedStore:
    """Claims and cached summaries for a store that has none of its own: they hold within one manager."""

    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        self.claims = InMemorySummaryClaims(clock=clock)
        self.summaries = InMemorySummaryCache(clock=clock)

    def forget(self, session_id: str) -> None:
        """Remove what belongs to a session."""
        self.claims.forget(session_id)
        self.summaries.forget(session_id)
