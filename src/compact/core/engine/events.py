"""Everything worth telling about a session, as frozen data: one event, many sinks.

Events are made without a clock; whoever sends them on stamps ids and times. `name` is the wire name (`compact.…`).
What takes time is an operation: it starts with one event and ends with another, and what happens in between names it
as its parent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from enum import Enum
from typing import Any, ClassVar, TypeAlias

from compact.core.audit.report import CompactionReport


class CompactionEventType(Enum):
    """The kinds of events; the value is the name on the wire."""

    CHECK_STARTED = "compact.check_started"
    OPERATION_STARTED = "compact.operation_started"
    OPERATION_ENDED = "compact.operation_ended"
    TOKEN_ESTIMATE = "compact.token_estimate"
    TRIGGER_DECISION = "compact.trigger_decision"
    SUMMARY_CREATED = "compact.summary_created"
    PRUNED_MESSAGES = "compact.pruned_messages"
    ERROR = "compact.error"
    ARCHIVAL = "compact.archival"
    SUMMARIZER_CALL = "compact.summarizer_call"
    PROPOSAL_GENERATED = "compact.proposal_generated"
    PROPOSAL_REJECTED = "compact.proposal_rejected"
    CONTENT_CLEARED = "compact.content_cleared"
    CONTENT_SUMMARIZED = "compact.content_summarized"
    CONTENT_EXTERNALIZED = "compact.content_externalized"
    CONTENT_DROPPED = "compact.content_dropped"
    CONTENT_RECALLED = "compact.content_recalled"
    CONTENT_REHYDRATED = "compact.content_rehydrated"
    REHYDRATION_BLOCKED = "compact.rehydration_blocked"
    VERSION_CONFLICT = "compact.version_conflict"
    EVENTS_DROPPED = "compact.events_dropped"
    COMPLETED = "compact.completed"
    REPORT = "compact.report"
    HISTORY_BRANCHED = "compact.history_branched"
    HISTORY_REPAIRED = "compact.history_repaired"
    NOTICE = "compact.notice"


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionEvent:
    """What every event says: which session, which turn, which plan version, when, and as a part of what.

    `event_id`, `parent_id` and the times are stamped on the way out; most events are a moment, so both times are the
    same. `metadata` is the caller's own.
    """

    type: ClassVar[CompactionEventType]
    # Fields that are for this process alone.
    hidden: ClassVar[frozenset[str]] = frozenset()
    session_id: str
    turn_number: int = 0
    plan_version: int = 0
    event_id: str = ""
    parent_id: str = ""
    started_at: float = 0.0
    ended_at: float = 0.0
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def name(self) -> str:
        """The name on the wire."""
        return self.type.value

    @property
    def thread_id(self) -> str:
        """Another name for `session_id`, in frameworks that call a session a thread."""
        return self.session_id

    @property
    def timestamp(self) -> float:
        """When it was sent, in seconds since 1970."""
        return self.ended_at

    @property
    def duration_seconds(self) -> float:
        """How long it took; 0 for a moment."""
        return max(0.0, self.ended_at - self.started_at)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for logs and exporters."""
        told = {spec.name: getattr(self, spec.name) for spec in fields(self) if spec.name not in self.hidden}
        return {"event": self.name, **told}


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationStartedEvent(CompactionEvent):
    """Something that takes time begins; its `event_id` is the parent of all that happens in it."""

    type = CompactionEventType.OPERATION_STARTED
    operation: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionCheckStartedEvent(OperationStartedEvent):
    """A prompt is about to be measured, and compacted if need be: the operation that all others are a part of."""

    type = CompactionEventType.CHECK_STARTED
    operation: str = "preflight"


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationEndedEvent(CompactionEvent):
    """The operation that started with the same `event_id` is over; its times are those of the whole."""

    type = CompactionEventType.OPERATION_ENDED
    hidden = frozenset({"began"})
    operation: str
    status: str = "ok"
    error_type: str = ""
    began: OperationStartedEvent | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenEstimateEvent(CompactionEvent):
    """How large the prompt is; sent on every preflight."""

    type = CompactionEventType.TOKEN_ESTIMATE
    model: str
    t_est: int
    max_tokens: int
    usage_pct: float
    breakdown: Mapping[str, int]
    parts: Mapping[str, int] = field(default_factory=dict[str, int])


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerDecisionEvent(CompactionEvent):
    """Whether it was compacted, and why or why not; sent on every preflight."""

    type = CompactionEventType.TRIGGER_DECISION
    triggered: bool
    reason: str
    policy: Mapping[str, Any]
    kept: Mapping[str, int] = field(default_factory=dict[str, int])
    pruned_count: int = 0
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryCreatedEvent(CompactionEvent):
    """A summary was written."""

    type = CompactionEventType.SUMMARY_CREATED
    strategy: str
    input_messages: int
    summary_tokens: int
    compression_ratio: float
    summary: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PrunedMessagesEvent(CompactionEvent):
    """Which messages left the prompt, and what each layer holds now."""

    type = CompactionEventType.PRUNED_MESSAGES
    pruned_count: int
    message_ids: tuple[str, ...]
    layers: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionErrorEvent(CompactionEvent):
    """Something failed; `fallback` says what was done instead."""

    type = CompactionEventType.ERROR
    error_type: str
    message: str
    fallback: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SummarizerCallEvent(CompactionEvent):
    """A model was asked for a summary, or a part of one; its times are those of the call."""

    type = CompactionEventType.SUMMARIZER_CALL
    model: str
    provider: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    error_type: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionCompletedEvent(CompactionEvent):
    """A new plan is in force; `economics` is what that costs and saves, if it could be told."""

    type = CompactionEventType.COMPLETED
    tokens_before: int
    tokens_after: int
    messages_before: int
    messages_after: int
    proposals: Mapping[str, int]
    reason: str
    economics: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionReportEvent(CompactionEvent):
    """What became of the specific strings and standing wishes that a compaction took out of the prompt.

    Worked out when somebody reads it: `report` has all of it, `to_dict` the counts. Severity is `high` if the model
    does not see a standing wish any more.
    """

    type = CompactionEventType.REPORT
    hidden = frozenset({"work_out"})
    work_out: Callable[[], CompactionReport] = field(repr=False, compare=False)

    @property
    def report(self) -> CompactionReport:
        """Every string of the removed span, with where it is now."""
        return self.work_out()

    @property
    def severity(self) -> str:
        """How bad it is."""
        return "high" if self.report.missing_constraints else "normal"

    def to_dict(self) -> dict[str, Any]:
        """Plain data for logs and exporters: how many of each kind are kept, in the ledger, retrievable or lost."""
        report = self.report
        return {
            **CompactionEvent.to_dict(self),  # a slotted class has no `super()` of its own
            "severity": self.severity,
            "removed_messages": len(report.removed_ids),
            "counts": report.counts,
            "missing_constraints": [item.text for item in report.missing_constraints],
            "appended": len(report.check.appended) if report.check else 0,
            "ungrounded": len(report.check.ungrounded) if report.check else 0,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryBranchedEvent(CompactionEvent):
    """The caller edited the past: what it left out stays in the log."""

    type = CompactionEventType.HISTORY_BRANCHED
    left_ids: tuple[str, ...]
    new_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryRepairedEvent(CompactionEvent):
    """The history was not legal for its provider; what was changed in the prompt (never in the log)."""

    type = CompactionEventType.HISTORY_REPAIRED
    repairs: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NoticeEvent(CompactionEvent):
    """Something the operator should know: a fallback, or (severity `high`) a protection that is switched off."""

    type = CompactionEventType.NOTICE
    message: str
    severity: str = "normal"


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchivalEvent(CompactionEvent):
    """Something was written to the archive; `place` is the path or the key."""

    type = CompactionEventType.ARCHIVAL
    step: int
    storage_adapter: str
    place: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionConflictEvent(CompactionEvent):
    """Another process wrote to the session at the same time; the call was made again on what it wrote."""

    type = CompactionEventType.VERSION_CONFLICT
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EventsDroppedEvent(CompactionEvent):
    """An exporter could not keep up, or nobody listened for too long: so many events were never sent."""

    type = CompactionEventType.EVENTS_DROPPED
    exporter: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalGeneratedEvent(CompactionEvent):
    """A strategy proposed something: how many records, and what those that were taken free."""

    type = CompactionEventType.PROPOSAL_GENERATED
    strategy: str
    proposals: int
    tokens_freed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalRejectedEvent(CompactionEvent):
    """Proposals of a strategy were not taken, for a reason."""

    type = CompactionEventType.PROPOSAL_REJECTED
    strategy: str
    proposals: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentChangedEvent(CompactionEvent):
    """Messages that one strategy treated alike in one compaction."""

    strategy: str
    message_ids: tuple[str, ...]
    tokens_before: int
    tokens_after: int

    @property
    def tokens_freed(self) -> int:
        """How much smaller the prompt got by it."""
        return self.tokens_before - self.tokens_after

    def to_dict(self) -> dict[str, Any]:
        """Plain data; how many messages these are stays known where a long list of ids is cut."""
        told = CompactionEvent.to_dict(self)  # a slotted class has no `super()` of its own
        return {**told, "message_count": len(self.message_ids), "tokens_freed": self.tokens_freed}


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentClearedEvent(ContentChangedEvent):
    """The content of messages was replaced by a stub."""

    type = CompactionEventType.CONTENT_CLEARED


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentSummarizedEvent(ContentChangedEvent):
    """A summary stands for messages."""

    type = CompactionEventType.CONTENT_SUMMARIZED


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentExternalizedEvent(ContentChangedEvent):
    """The content of messages was moved into artifacts."""

    type = CompactionEventType.CONTENT_EXTERNALIZED
    artifact_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentDroppedEvent(ContentChangedEvent):
    """Messages were left out of the prompt."""

    type = CompactionEventType.CONTENT_DROPPED


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentRehydratedEvent(CompactionEvent):
    """An artifact is shown again, for this turn."""

    type = CompactionEventType.CONTENT_REHYDRATED
    artifact_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RehydrationBlockedEvent(CompactionEvent):
    """An artifact was asked for and is not shown, for a reason."""

    type = CompactionEventType.REHYDRATION_BLOCKED
    artifact_id: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentRecalledEvent(CompactionEvent):
    """The agent, or somebody, asked for what had left the prompt: a sign that it was missed."""

    type = CompactionEventType.CONTENT_RECALLED
    query: str
    message_ids: tuple[str, ...]
    tokens: int


EventSink: TypeAlias = Callable[[CompactionEvent], None]
