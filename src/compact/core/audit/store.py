"""The socket for stores: log, plans, model calls, summaries and artifacts of the sessions of one tenant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from compact.core.audit.artifacts import ArtifactStore
from compact.core.audit.records import (
    Commit,
    ModelCall,
    PlanVersion,
    PrefetchedSummary,
    SentPrompt,
    SessionHead,
    SessionInfo,
    StoredMessage,
    StoredSession,
)
from compact.core.errors import CompactError
from compact.core.plan.plan import CompactionPlan
from compact.core.summary.summarizer import SummaryCacheKey
from compact.core.summary.summary import StructuredSummary


class StoreError(CompactError):
    """A store that cannot be used, and what to do about it."""

    code = "store"


class VersionConflict(CompactError):
    """Somebody else has written to the session since it was read."""

    code = "version_conflict"


class SummaryClaims(Protocol):
    """Sees to it that a span is summarised once, whoever asks first."""

    def claim(self, session_id: str, span_key: str, *, stale_after_seconds: float) -> bool:
        """True for the one caller that is to write the summary of a span; stale claims are given away again."""
        ...

    def finish(self, session_id: str, span_key: str, summary: StructuredSummary | None) -> None:
        """Store the summary of a claimed span, or give the claim up."""
        ...

    def finished(self, session_id: str, span_key: str) -> StructuredSummary | None:
        """The summary of a span, once somebody has written it."""
        ...

    def store_prefetched(self, session_id: str, span_key: str, prepared: PrefetchedSummary) -> None:
        """Note what a finished summary stands for, so that it can be used once it is needed."""
        ...

    def prefetched(self, session_id: str, version: int) -> PrefetchedSummary | None:
        """The newest summary that was written ahead for a version."""
        ...

    def wait(self, session_id: str, span_key: str, *, timeout_seconds: float) -> StructuredSummary | None:
        """The summary that somebody else is writing; nothing if the claim is given up or takes too long."""
        ...


class CompactionStore(Protocol):
    """Log, plans, model calls, summaries and artifacts of the sessions of one tenant. Append-only but for `delete`."""

    @property
    def artifacts(self) -> ArtifactStore:
        """Content moved out of prompts."""
        ...

    @property
    def claims(self) -> SummaryClaims:
        """Who writes which summary."""
        ...

    @property
    def summaries(self) -> SummaryCache:
        """Summaries by what they were made of."""
        ...

    @property
    def blocks(self) -> bool:
        """True if calls may wait for a disk or a network."""
        ...

    def head(self, session_id: str) -> SessionHead:
        """How far a session has come; all zero for one that is not there."""
        ...

    def load(self, session_id: str) -> StoredSession | None:
        """Everything about a session, or nothing."""
        ...

    def commit(self, commit: Commit) -> SessionHead:
        """Write what a call adds; raises VersionConflict if the session has moved on."""
        ...

    def get_current_plan(self, session_id: str) -> tuple[CompactionPlan, int]:
        """The plan in force and its version."""
        ...

    def commit_plan(self, session_id: str, plan: CompactionPlan, expected_version: int) -> int:
        """Put a plan in force; raises VersionConflict if another one is by now."""
        ...

    def plans(self, session_id: str) -> tuple[PlanVersion, ...]:
        """Every plan that ever was in force, oldest first."""
        ...

    def model_calls(self, session_id: str) -> tuple[ModelCall, ...]:
        """Every prompt that went out, oldest first."""
        ...

    def recent_calls(self, session_ids: Sequence[str], limit: int) -> Mapping[str, tuple[ModelCall, ...]]:
        """The newest calls of each of these sessions, oldest first."""
        ...

    def sent(self, session_id: str, number: int) -> SentPrompt | None:
        """Everything that the prompt of one model call was made of, on the caller's line of that time."""
        ...

    def report_usage(self, session_id: str, tokens: int) -> None:
        """Note what the provider counted for the newest model call."""
        ...

    def sessions(self) -> tuple[SessionInfo, ...]:
        """All sessions, the newest first."""
        ...

    def message(self, session_id: str, message_id: str) -> StoredMessage | None:
        """One log entry by its id."""
        ...

    def messages(self, session_id: str, *, after_seq: int = 0, limit: int = 100) -> tuple[StoredMessage, ...]:
        """So many log entries behind a place, oldest first."""
        ...

    def outline(self, session_id: str) -> tuple[tuple[str, int], ...]:
        """The id and the tokens of every log entry, oldest first."""
        ...

    def search(self, session_id: str, words: str, limit: int) -> tuple[StoredMessage, ...]:
        """Log entries that hold all the words, best first."""
        ...

    def sessions_with(self, words: str) -> frozenset[str]:
        """The sessions that have a log entry with all the words in it."""
        ...

    def delete(self, session_id: str) -> bool:
        """Remove a session and all that belongs to it."""
        ...

    def close(self) -> None:
        """Let go of connections."""
        ...


class SummaryCache(Protocol):
    """Remembers summaries by what they were made of."""

    def get(self, key: SummaryCacheKey) -> StructuredSummary | None:
        """A summary that is still good, or nothing."""
        ...

    def put(self, key: SummaryCacheKey, summary: StructuredSummary) -> None:
        """Remember a summary."""
        ...

    def invalidate(self, key: SummaryCacheKey) -> None:
        """Forget a summary."""
        ...


@dataclass(slots=True)
class CompactionTransaction:
    """A plan being worked on: reads it with its version, and commits only if nobody else was quicker."""

    store: CompactionStore
    session_id: str
    plan: CompactionPlan = field(init=False)
    version: int = field(init=False)

    def __post_init__(self) -> None:
        self.plan, self.version = self.store.get_current_plan(self.session_id)

    def commit(self, plan: CompactionPlan) -> int:
        """Put the plan in force; returns its version."""
        self.version = self.store.commit_plan(self.session_id, plan, self.version)
        self.plan = plan
        return self.version
