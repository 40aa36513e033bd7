"""The sockets for stores: what the engine needs of one, what readers ask, and what processes share.

`SessionStore` is all that a store of one's own must have. A store that also answers `SessionReader` answers an
operator's questions faster, or at all; one that has what `SharedStore` names may be used by several processes at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, runtime_checkable

from compact.core.audit.artifacts import ArtifactStore
from compact.core.audit.records import (
    CallHistory,
    Commit,
    EntrySize,
    ModelCall,
    PlanVersion,
    PrefetchedSummary,
    SentPrompt,
    SessionHead,
    SessionInfo,
    StoredMessage,
    StoredSession,
)
from compact.core.audit.trace_events import StoredEvent, TraceEvent, TraceInfo
from compact.core.errors import CompactError
from compact.core.plan.plan import CompactionPlan
from compact.core.summary.summarizer import SummaryCacheKey
from compact.core.summary.summary import StructuredSummary


class StoreError(CompactError):
    """A store that cannot be used, or cannot answer, and what to do about it."""

    code = "store"


class VersionConflict(CompactError):
    """The session was written to by another process since it was read."""

    code = "version_conflict"


class SessionStore(Protocol):
    """The log, plans and artifacts of the sessions of one tenant: what the engine needs.

    Append-only but for `delete`. Every method may raise: the engine reports it and writes again with the next call.
    """

    @property
    def artifacts(self) -> ArtifactStore:
        """Content that was moved out of prompts; may be the store itself."""
        ...

    @property
    def blocks(self) -> bool:
        """True if calls may wait for a disk or a network."""
        ...

    def head(self, session_id: str) -> SessionHead:
        """Return how far a session has come; all zero for one that is not there."""
        ...

    def load(self, session_id: str) -> StoredSession | None:
        """Return everything needed to go on with a session, or None."""
        ...

    def commit(self, commit: Commit) -> SessionHead:
        """Write what a call adds, all of it or nothing, and return the new head (`commit.head_after`).

        Raise VersionConflict unless the session is at `commit.expected`.
        """
        ...

    def plans(self, session_id: str) -> tuple[PlanVersion, ...]:
        """Return every plan that was ever in force, oldest first."""
        ...

    def report_usage(
        self,
        session_id: str,
        tokens: int,
        *,
        cache_read_tokens: int | None = None,
        cache_write_tokens: int | None = None,
    ) -> None:
        """Write what the provider counted for the newest model call; nothing if there is none.

        What it read from its cache and wrote into it, if it told, goes into the details of the call.
        """
        ...

    def delete(self, session_id: str) -> bool:
        """Remove a session with its artifacts and all else that belongs to it; return False if it is not there."""
        ...

    def close(self) -> None:
        """Close files and connections; the store is not used after this."""
        ...


@runtime_checkable
class SessionReader(Protocol):
    """What people ask of stored sessions: lists, search, the prompt of an earlier call.

    `compact.stores.scanning.ScanningReader` answers most of it on top of `load`, for every store.
    """

    def model_calls(self, session_id: str) -> tuple[ModelCall, ...]:
        """Return every prompt that went out, oldest first."""
        ...

    def recent_calls(self, session_ids: Sequence[str], limit: int) -> Mapping[str, tuple[ModelCall, ...]]:
        """Return the newest calls of each of these sessions, oldest first."""
        ...

    def sent(self, session_id: str, number: int) -> SentPrompt | None:
        """Return everything that the prompt of one model call was made of, on the caller's branch of that time."""
        ...

    def sessions(self) -> tuple[SessionInfo, ...]:
        """Return all sessions, the newest first."""
        ...

    def message(self, session_id: str, message_id: str) -> StoredMessage | None:
        """Return one log entry by its id."""
        ...

    def messages(self, session_id: str, *, after_seq: int = 0, limit: int = 100) -> tuple[StoredMessage, ...]:
        """Return at most `limit` log entries that follow a place in the log, oldest first."""
        ...

    def outline(self, session_id: str) -> tuple[EntrySize, ...]:
        """Return the id and the tokens of every log entry, oldest first."""
        ...

    def search(self, session_id: str, words: str, limit: int) -> tuple[StoredMessage, ...]:
        """Return log entries that match a query, best first: `core.search.ranking` says which these are."""
        ...

    def sessions_with(self, words: str) -> frozenset[str]:
        """Return the sessions that have a log entry with all the words in it."""
        ...


@runtime_checkable
class CallHistoryReader(Protocol):
    """What a reader adds that knows all calls of a session at once; others are asked for each call by `sent`."""

    def call_history(self, session_id: str, *, after_call: int = 0, after_branch: int = 0) -> CallHistory | None:
        """Return what the prompts of the later calls were made of, and the later branches; None without a session."""
        ...


class CompactionStore(SessionStore, SessionReader, Protocol):
    """A store that serves the engine and readers alike, as ours do; `PlanMethods` has the last two methods."""

    def session_info(self, session_id: str) -> SessionInfo | None:
        """Return one session of the list, without reading the others."""
        ...

    def get_current_plan(self, session_id: str) -> tuple[CompactionPlan, int]:
        """Return the plan in force and its version."""
        ...

    def commit_plan(self, session_id: str, plan: CompactionPlan, expected_version: int) -> int:
        """Put a plan in force; raise VersionConflict if another one is by now."""
        ...


# -- what processes share -------------------------------------------------------------------------------------------


class SummaryClaims(Protocol):
    """Sees to it that a span is summarised once, whoever asks first."""

    def claim(self, session_id: str, span_key: str, *, stale_after_seconds: float) -> bool:
        """Return True for the one caller that is to write the summary of a span; a stale claim can be claimed again.

        A store that knows at once that the process of a claim has ended takes the claim for stale then, unless it is
        for more than a day: such a claim outlives its process.
        """
        ...

    def finish(self, session_id: str, span_key: str, summary: StructuredSummary | None) -> None:
        """Store the summary of a claimed span, or with None give the claim up."""
        ...

    def finished(self, session_id: str, span_key: str) -> StructuredSummary | None:
        """Return the summary of a span, once it is written."""
        ...

    def store_prefetched(self, session_id: str, span_key: str, prefetched: PrefetchedSummary) -> None:
        """Write what a finished summary stands for, so that it can be used once it is needed."""
        ...

    def prefetched(self, session_id: str, version: int) -> PrefetchedSummary | None:
        """Return the newest summary that was prefetched for a version."""
        ...

    def wait(self, session_id: str, span_key: str, *, timeout_seconds: float) -> StructuredSummary | None:
        """Wait for the summary that another process writes; None if it gives the claim up or takes too long."""
        ...


class SummaryCache(Protocol):
    """Summaries by what they were made of."""

    def get(self, key: SummaryCacheKey) -> StructuredSummary | None:
        """Return a summary that is still good, or None."""
        ...

    def put(self, key: SummaryCacheKey, summary: StructuredSummary, *, session_id: str = "") -> None:
        """Store a summary that was made for a session: it goes when the session is deleted."""
        ...

    def invalidate(self, key: SummaryCacheKey) -> None:
        """Remove a summary."""
        ...


@runtime_checkable
class SharedStore(Protocol):
    """What a store adds if several processes use it at once; other stores get both for the process alone."""

    @property
    def claims(self) -> SummaryClaims:
        """Which process writes which summary."""
        ...

    @property
    def summaries(self) -> SummaryCache:
        """Summaries by what they were made of."""
        ...


# -- events ---------------------------------------------------------------------------------------------------------


class EventStore(Protocol):
    """The events of the sessions of one tenant, as traces and spans; the oldest are removed for newer ones."""

    def add(self, events: Sequence[TraceEvent], *, keep_seconds: float) -> tuple[StoredEvent, ...]:
        """Keep events, each joined with what it updates, all or none, and return what they have become.

        Events that were received longer ago than `keep_seconds` are removed, not necessarily at once.
        """
        ...

    def after(self, number: int, limit: int) -> tuple[StoredEvent, ...]:
        """Return at most `limit` events that were added or updated after the one with this number, oldest first."""
        ...

    def recent(self, limit: int) -> tuple[StoredEvent, ...]:
        """Return the newest events, oldest first."""
        ...

    def traces(
        self, *, session_id: str = "", with_errors: bool = False, offset: int = 0, limit: int = 50
    ) -> tuple[TraceInfo, ...]:
        """Return traces, the one updated last first: of one session, or with errors, if asked for."""
        ...

    def trace(self, trace_id: str) -> TraceInfo | None:
        """Return what is known of one trace."""
        ...

    def spans(self, trace_id: str, *, before: int | None = None, limit: int = 10_000) -> tuple[StoredEvent, ...]:
        """Return the newest spans of a trace, oldest first; only those with a number below `before`, if given."""
        ...

    def named(self, session_id: str, name: str) -> tuple[StoredEvent, ...]:
        """Return the spans of a session that have this name, oldest first."""
        ...

    def sessions_with_errors(self) -> frozenset[str]:
        """Return the sessions in which something failed."""
        ...

    def count(self) -> int:
        """Return how many events there are."""
        ...


@runtime_checkable
class TracedStore(Protocol):
    """What a store adds if it keeps events: whoever reads it later, in another process too, sees the same traces.

    The events of a session go with it, and so do whole traces that name no other session.
    """

    @property
    def events(self) -> EventStore:
        """The events of the sessions in this store."""
        ...


@runtime_checkable
class PruningStore(Protocol):
    """What a store adds that deletes hundreds of sessions in less time than one after the other."""

    def delete_unused(self, session_ids: Sequence[str], *, before: float) -> frozenset[str]:
        """Remove those of these sessions that were not used since a time, with all that belongs to them; name them."""
        ...


@runtime_checkable
class ShrinkingStore(Protocol):
    """What a store adds if deleting alone does not give its room back."""

    def shrink(self) -> None:
        """Give the room of what was deleted back to the disk; others may have to wait for it."""
        ...


# -- plans by themselves --------------------------------------------------------------------------------------------


def get_current_plan(store: SessionStore, session_id: str) -> tuple[CompactionPlan, int]:
    """Return the plan in force and its version."""
    plans = store.plans(session_id)
    plan = plans[-1].plan if plans else CompactionPlan(session_id)
    return plan, plan.version


def commit_plan(store: SessionStore, session_id: str, plan: CompactionPlan, expected_version: int) -> int:
    """Put a plan in force under the next version; raise VersionConflict if another one is by now."""
    expected = replace(store.head(session_id), plan_version=expected_version)
    plan = replace(plan, version=expected_version + 1)
    return store.commit(Commit(session_id=session_id, expected=expected, plan=plan)).plan_version


class PlanMethods:
    """The plan methods of a CompactionStore, on top of what every store has; for stores to inherit."""

    def get_current_plan(self: SessionStore, session_id: str) -> tuple[CompactionPlan, int]:
        """Return the plan in force and its version."""
        return get_current_plan(self, session_id)

    def commit_plan(self: SessionStore, session_id: str, plan: CompactionPlan, expected_version: int) -> int:
        """Put a plan in force; raise VersionConflict if another one is by now."""
        return commit_plan(self, session_id, plan, expected_version)


@dataclass(slots=True)
class CompactionTransaction:
    """A plan being worked on: read with its version, committed only if no other process was quicker."""

    store: SessionStore
    session_id: str
    plan: CompactionPlan = field(init=False)
    version: int = field(init=False)

    def __post_init__(self) -> None:
        self.plan, self.version = get_current_plan(self.store, self.session_id)

    def commit(self, plan: CompactionPlan) -> int:
        """Put the plan in force and return its version."""
        self.version = commit_plan(self.store, self.session_id, plan, self.version)
        self.plan = plan
        return self.version
