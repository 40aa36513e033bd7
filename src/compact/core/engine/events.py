"""The table of events: everything that happens in a session, as frozen data, declared once for all sinks.

Events are made without a clock; telemetry adds ids and times. What takes time is an operation: it starts with one event
and ends with another, and what happens in between names it as its parent.

A new event is a member of `CompactionEventType` and a class with its `spec`: log, console, traces, metrics, the archive
and the documentation read that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeAlias

from compact.core.audit.report import CompactionReport, EntityState
from compact.core.engine.event_spec import CompactionEvent as CompactionEvent
from compact.core.engine.event_spec import (
    EventData,
    EventSpec,
    FieldReader,
    Metric,
    declared_events,
    duration_metric,
    event,
)


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
    REGRET = "compact.regret"
    CONTENT_REHYDRATED = "compact.content_rehydrated"
    REHYDRATION_BLOCKED = "compact.rehydration_blocked"
    VERSION_CONFLICT = "compact.version_conflict"
    EVENTS_DROPPED = "compact.events_dropped"
    PROMPT_READY = "compact.prompt_ready"
    COMPLETED = "compact.completed"
    REPORT = "compact.report"
    HISTORY_BRANCHED = "compact.history_branched"
    HISTORY_REPAIRED = "compact.history_repaired"
    NOTICE = "compact.notice"
    CONTEXT_OVERFLOW = "compact.context_overflow"


def _calls(data: EventData) -> Iterator[EventData]:
    """Yield the end of a whole call; an operation within one is no row."""
    if data["operation"] in ("preflight", "manual_compact"):
        yield data


def _entity_counts(data: EventData) -> Iterator[EventData]:
    for kind, states in data["counts"].items():
        for state, count in states.items():
            yield {"kind": kind, "state": state, "count": count}


def _reason_kind(data: EventData) -> str:
    """Return which of two kinds a reason is: its own text has figures in it, and would make a series for each."""
    return "manual" if str(data["reason"]).startswith("manual") else "threshold"


# What a compaction costs and saves; True waits until prices are at hand.
ComputeEconomics: TypeAlias = Callable[[bool], Mapping[str, Any]]


def _no_economics(may_wait: bool) -> Mapping[str, Any]:
    return {}


_ACTIONS = {
    CompactionEventType.CONTENT_CLEARED.value: "clear",
    CompactionEventType.CONTENT_SUMMARIZED.value: "summarize",
    CompactionEventType.CONTENT_EXTERNALIZED.value: "externalize",
    CompactionEventType.CONTENT_DROPPED.value: "drop",
}
_ACTION_LABEL: tuple[str, FieldReader] = ("action", lambda data: _ACTIONS[data["event"]])
_MODEL_ATTRIBUTES: Mapping[str, FieldReader] = {
    "gen_ai.request.model": "model",
    "gen_ai.provider.name": "provider",
    "error.type": lambda data: data["error_type"] or None,
}


@event
class OperationStartedEvent(CompactionEvent):
    """An operation begins; its `event_id` is the `parent_id` of all events that happen in it."""

    type = CompactionEventType.OPERATION_STARTED
    spec = EventSpec("debug", "{operation} started", span_kind="operation", every_call=True)
    operation: str


@event
class CompactionCheckStartedEvent(OperationStartedEvent):
    """A prompt is about to be measured, and compacted if need be: the operation that all others are a part of."""

    type = CompactionEventType.CHECK_STARTED
    spec = EventSpec("debug", "{operation} started", span_kind="operation", every_call=True)
    operation: str = "preflight"


@event
class OperationEndedEvent(CompactionEvent):
    """The operation that started with the same `event_id` is over; its times are those of the whole."""

    type = CompactionEventType.OPERATION_ENDED
    spec = EventSpec(
        "debug",
        "{operation} ended",
        failure="error_type",
        failed_sentence="{operation} failed: {error_type}",
        span_kind="operation",
        hidden=("began",),
        every_call=True,
        metrics=(
            Metric(
                "compact.preflights",
                "Calls of preflight and manual_compact, those that raised included.",
                unit="{call}",
                rows=_calls,
            ),
            duration_metric(
                "compact.preflight.duration",
                "compact_preflight_seconds",
                help="How long each of them took.",
                attributes={"operation": "operation"},
                rows=_calls,
            ),
        ),
    )
    operation: str
    error_type: str = ""
    began: OperationStartedEvent | None = field(default=None, repr=False, compare=False)

    @property
    def is_routine(self) -> bool:
        """True if it went well."""
        return not self.error_type


@event
class TokenEstimateEvent(CompactionEvent):
    """How large the prompt is before anything is decided; emitted by every preflight and every manual compaction."""

    type = CompactionEventType.TOKEN_ESTIMATE
    spec = EventSpec(
        "debug",
        "the prompt has {t_est:,} of {max_tokens:,} tokens ({usage_pct:.0%})",
        every_call=True,
    )
    model: str
    t_est: int
    max_tokens: int
    usage_pct: float
    breakdown: Mapping[str, int]
    parts: Mapping[str, int] = field(default_factory=dict[str, int])


@event
class PromptReadyEvent(CompactionEvent):
    """How large the prompt is that a call returns, after compaction, rehydration and injection."""

    type = CompactionEventType.PROMPT_READY
    spec = EventSpec(
        "debug",
        "{messages:n message} returned: {tokens:,} of {max_tokens:,} tokens ({usage_pct:.0%})",
        every_call=True,
        metrics=(
            Metric(
                "compact.prompt.tokens",
                "Tokens of prompts as they are returned, by the count that is compared with the trigger; in "
                "Prometheus, of the last one.",
                unit="{token}",
                prometheus="compact_last_prompt_tokens",
                kind="histogram",
                prometheus_kind="gauge",
                value="tokens",
                attributes={"gen_ai.request.model": "model"},
            ),
            Metric(
                "compact.prompt.usage",
                "Tokens of the prompt that was returned last, as a share of its window.",
                unit="1",
                prometheus="compact_last_prompt_usage_ratio",
                kind="gauge",
                value="usage_pct",
            ),
        ),
    )
    model: str
    tokens: int
    max_tokens: int
    usage_pct: float
    messages: int


@event
class TriggerDecisionEvent(CompactionEvent):
    """Whether it was compacted, and why or why not; emitted by every call, one that raises included.

    `kept` and `protected_ids` are told where it was triggered; `protected_labels` has the `meta["label"]` of those that
    have one.
    """

    type = CompactionEventType.TRIGGER_DECISION
    spec = EventSpec(
        "debug",
        "compaction triggered: {triggered} ({reason})",
        output="{reason}",
        content=("note", "focus"),
        every_call=True,
    )
    triggered: bool
    reason: str
    policy: Mapping[str, Any]
    kept: Mapping[str, int] = field(default_factory=dict[str, int])
    pruned_count: int = 0
    note: str = ""
    focus: str = ""
    protected_ids: tuple[str, ...] = ()
    protected_labels: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def is_routine(self) -> bool:
        """True if nothing is compacted."""
        return not self.triggered


@event
class HistoryBranchedEvent(CompactionEvent):
    """The caller edited the history; messages that it left out stay in the log."""

    type = CompactionEventType.HISTORY_BRANCHED
    spec = EventSpec("info", "the past was edited ({left_ids:n message} left out)")
    left_ids: tuple[str, ...]
    new_ids: tuple[str, ...]


@event
class HistoryRepairedEvent(CompactionEvent):
    """The history was not legal for its provider; what was changed in the prompt (never in the log)."""

    type = CompactionEventType.HISTORY_REPAIRED
    spec = EventSpec("info", "repaired: {repairs}", output="{repairs:lines}")
    repairs: tuple[str, ...]


@event
class CompactionCompletedEvent(CompactionEvent):
    """A compaction made a new plan; `economics` is what that costs and saves, in dollars if the price is known.

    A price list may still be loading: `economics` is what is known when it is read, and `settle` waits for the rest.
    """

    type = CompactionEventType.COMPLETED
    spec = EventSpec(
        "info",
        "compacted, plan v{plan_version}: {tokens_before:,} → {tokens_after:,} tokens ({reason})",
        output="{tokens_before:,} → {tokens_after:,} tokens: {reason}",
        lasts_as_operation=True,
        hidden=("compute_economics",),
        computed={"economics": "Mapping[str, Any]"},
        metrics=(
            Metric(
                "compact.compactions",
                "Compactions, by what led to them; an undo is not counted.",
                unit="{compaction}",
                label=("reason", _reason_kind),
            ),
            Metric(
                "compact.tokens.before",
                "Tokens of messages before they were compacted.",
                unit="{token}",
                kind="histogram",
                prometheus_kind="counter",
                value="tokens_before",
            ),
            Metric(
                "compact.tokens.after",
                "Tokens of the same messages afterwards.",
                unit="{token}",
                kind="histogram",
                prometheus_kind="counter",
                value="tokens_after",
            ),
            duration_metric(
                "compact.compaction.duration", "compact_compaction_seconds", help="How long a compaction took."
            ),
        ),
    )
    tokens_before: int
    tokens_after: int
    messages_before: int
    messages_after: int
    proposals: Mapping[str, int]
    reason: str
    compute_economics: ComputeEconomics = field(default=_no_economics, repr=False, compare=False)

    @property
    def economics(self) -> Mapping[str, Any]:
        """What the compaction costs and saves; empty if nothing can be said about that."""
        return self.compute_economics(False)

    def settle(self) -> None:
        """Wait for the price list."""
        self.compute_economics(True)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, with the price as it is known now."""
        return {**CompactionEvent.to_dict(self), "economics": dict(self.economics)}


@event
class PrunedMessagesEvent(CompactionEvent):
    """Which messages left the prompt, what was kept by which rule, and how many messages each layer holds now.

    `protected_ids` are the messages that no compaction touches; `protected_labels` has the `meta["label"]` of those
    that have one.
    """

    type = CompactionEventType.PRUNED_MESSAGES
    spec = EventSpec("debug", "{pruned_count:n message} left the prompt")
    pruned_count: int
    message_ids: tuple[str, ...]
    layers: Mapping[str, int]
    kept: Mapping[str, int] = field(default_factory=dict[str, int])
    protected_ids: tuple[str, ...] = ()
    protected_labels: Mapping[str, str] = field(default_factory=dict[str, str])


@event
class CompactionReportEvent(CompactionEvent):
    """What became of the specific strings, the constraints and the decisions that a compaction took out of the prompt.

    Computed when it is read: `report` has all of it, `to_dict` the counts. Severity is `high` if the model
    does not see a constraint any more.
    """

    type = CompactionEventType.REPORT
    spec = EventSpec(
        "debug",
        "{removed_messages:n message} left the prompt, which lacks {missing_constraints:n constraint}",
        content=("missing_constraints",),
        hidden=("compute_report",),
        computed={
            "severity": "str",
            "removed_messages": "int",
            "counts": "Mapping[str, Mapping[str, int]]",
            "missing_constraints": "list[str]",
            "appended": "int",
            "ungrounded": "int",
        },
        slow=True,
        metrics=(
            Metric(
                "compact.entities",
                "Specific strings in what left prompts, by where they are now.",
                unit="{entity}",
                value="count",
                label=("state", "state"),
                attributes={"kind": "kind"},
                rows=_entity_counts,
            ),
            Metric(
                "compact.constraints.missing",
                "Constraints that a prompt lacks.",
                unit="{constraint}",
                prometheus="compact_missing_constraints_total",
                value=lambda data: len(data["missing_constraints"]),
            ),
        ),
    )
    compute_report: Callable[[], CompactionReport] = field(repr=False, compare=False)

    @property
    def report(self) -> CompactionReport:
        """Every string of the removed span, with where it is now."""
        return self.compute_report()

    @property
    def severity(self) -> str:
        """How bad it is."""
        return "high" if self.report.missing_constraints else "normal"

    def to_dict(self) -> dict[str, Any]:
        """Return plain data: how many of each kind are kept, in the ledger, retrievable or lost."""
        report = self.report
        return {
            **CompactionEvent.to_dict(self),  # a slotted class has no `super()` of its own
            "severity": self.severity,
            "removed_messages": len(report.removed_ids),
            "counts": report.counts,
            # One that cannot even be recalled is in a message that is confidential: an event does not quote it.
            "missing_constraints": [
                f"[a constraint of message {item.message_id}]" if item.state is EntityState.LOST else item.text
                for item in report.missing_constraints
            ],
            "appended": len(report.check.appended) if report.check else 0,
            "ungrounded": len(report.check.ungrounded) if report.check else 0,
        }


@event
class ProposalGeneratedEvent(CompactionEvent):
    """A strategy proposed records: how many, and how many tokens the accepted ones free."""

    type = CompactionEventType.PROPOSAL_GENERATED
    spec = EventSpec("debug", "{strategy} proposed {proposals:n record}, freeing {tokens_freed:n token}")
    strategy: str
    proposals: int
    tokens_freed: int


@event
class ProposalRejectedEvent(CompactionEvent):
    """Proposals of a strategy were not accepted, for a reason."""

    type = CompactionEventType.PROPOSAL_REJECTED
    spec = EventSpec("debug", "{proposals:,} proposals of {strategy} were rejected: {reason}")
    strategy: str
    proposals: int
    reason: str


_CONTENT_METRICS = (
    Metric(
        "compact.tokens.freed",
        "Tokens by which compactions made prompts smaller, by what was done; together the tokens before less those"
        " after.",
        unit="{token}",
        value="tokens_freed",
        label=_ACTION_LABEL,
    ),
    Metric(
        "compact.messages.changed",
        "Messages that compactions removed or changed, by what was done; one that is changed again later"
        " is not counted again.",
        unit="{message}",
        value=lambda data: data["message_count"] - data.get("changed_again", 0),
        label=_ACTION_LABEL,
    ),
)


def _content_changed(verb: str) -> EventSpec:
    return EventSpec(
        "debug",
        f"{{strategy}} {verb} {{message_count:n message}}: {{tokens_before:,}} → {{tokens_after:,}} tokens",
        computed={"message_count": "int"},
        metrics=_CONTENT_METRICS,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentChangedEvent(CompactionEvent):
    """Messages that one strategy treated alike in one compaction.

    A summary is told of with the messages that are new to it. `changed_again` of them had left the prompt as they came
    in an earlier compaction. `tokens_freed` is the share in what the whole prompt got smaller by: the sum over the
    events of a compaction is what `compact.completed` has more before than after.
    """

    strategy: str
    message_ids: tuple[str, ...]
    tokens_before: int
    tokens_after: int
    tokens_freed: int
    changed_again: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Return plain data; how many messages these are stays known where a long list of ids is cut."""
        data = CompactionEvent.to_dict(self)  # a slotted class has no `super()` of its own
        return {**data, "message_count": len(self.message_ids)}


@event
class ContentClearedEvent(ContentChangedEvent):
    """The content of messages was replaced by a stub."""

    type = CompactionEventType.CONTENT_CLEARED
    spec = _content_changed("cleared")


@event
class ContentSummarizedEvent(ContentChangedEvent):
    """Messages were replaced by a summary."""

    type = CompactionEventType.CONTENT_SUMMARIZED
    spec = _content_changed("summarised")


@event
class ContentExternalizedEvent(ContentChangedEvent):
    """The content of messages was moved into artifacts."""

    type = CompactionEventType.CONTENT_EXTERNALIZED
    spec = _content_changed("moved out")
    artifact_ids: tuple[str, ...] = ()


@event
class ContentDroppedEvent(ContentChangedEvent):
    """Messages were left out of the prompt."""

    type = CompactionEventType.CONTENT_DROPPED
    spec = _content_changed("dropped")


@event
class ContentRehydratedEvent(CompactionEvent):
    """An artifact is shown again, for this turn."""

    type = CompactionEventType.CONTENT_REHYDRATED
    spec = EventSpec(
        "debug",
        "artifact {artifact_id} is shown again",
        metrics=(Metric("compact.rehydrations", "Artifacts shown again.", unit="{artifact}"),),
    )
    artifact_id: str


@event
class RehydrationBlockedEvent(CompactionEvent):
    """An artifact was asked for and is not shown, for a reason."""

    type = CompactionEventType.REHYDRATION_BLOCKED
    spec = EventSpec(
        "debug",
        "artifact {artifact_id} is not shown: {reason}",
        metrics=(
            Metric("compact.rehydrations.blocked", "Artifacts that were asked for and not shown.", unit="{artifact}"),
        ),
    )
    artifact_id: str
    reason: str


def _if_asked(data: EventData) -> tuple[EventData, ...]:
    return (data,) if data.get("is_asked", True) else ()


def _if_unasked(data: EventData) -> tuple[EventData, ...]:
    return () if data.get("is_asked", True) else (data,)


@event
class ContentRecalledEvent(CompactionEvent):
    """Something that had left the prompt was looked up: a sign that it was needed.

    An agent or a person asked for it if `is_asked`; otherwise the user's newest message was about it.
    """

    type = CompactionEventType.CONTENT_RECALLED
    spec = EventSpec(
        "debug",
        "{message_ids:n message} recalled: {tokens:n token}",
        output="{query}",
        content=("query",),
        metrics=(
            Metric("compact.recalls", "Recalls of what had left a prompt.", unit="{recall}", rows=_if_asked),
            Metric("compact.reminders", "Reminders, which nobody asked for.", unit="{reminder}", rows=_if_unasked),
        ),
    )
    query: str
    message_ids: tuple[str, ...]
    tokens: int
    is_asked: bool = True


@event
class RegretEvent(CompactionEvent):
    """The agent asked again for what a compaction had removed: by `recall`, or by reading it again (`how`).

    `action` and `strategy` removed the message `message_id`, a result of `tool`; `found_in` brought it back.
    """

    type = CompactionEventType.REGRET
    spec = EventSpec(
        "info",
        "asked for again ({how}): {message_id} of {tool}, removed by {strategy} ({action}): {tokens:,} tokens",
        metrics=(
            Metric(
                "compact.regrets",
                "Removed messages that the agent asked for again, by what had removed them.",
                unit="{message}",
                label=("action", "action"),
                attributes={"tool": lambda data: data["tool"] or None, "strategy": "strategy", "how": "how"},
            ),
            Metric(
                "compact.regret.tokens",
                "Tokens of what brought them back.",
                unit="{token}",
                value="tokens",
                label=("action", "action"),
            ),
        ),
    )
    message_id: str
    found_in: str
    tool: str
    action: str
    strategy: str
    how: str
    tokens: int


@event
class SummaryCreatedEvent(CompactionEvent):
    """A summary was written."""

    type = CompactionEventType.SUMMARY_CREATED
    spec = EventSpec(
        "debug",
        "{input_messages:n message} summarised in {summary_tokens:n token} ({strategy})",
        output="{summary}",
        content=("summary",),
        lasts_as_operation=True,
    )
    strategy: str
    input_messages: int
    summary_tokens: int
    compression_ratio: float
    summary: str


@event
class SummarizerCallEvent(CompactionEvent):
    """A model was asked for a summary, or a part of one; its times are those of the call."""

    type = CompactionEventType.SUMMARIZER_CALL
    spec = EventSpec(
        "debug",
        "{model} read {input_tokens:,} tokens and wrote {output_tokens:,}",
        failure="error_type",
        failed_sentence="{model} failed: {error_type}",
        span_kind="generation",
        metrics=(
            Metric("compact.summarizer.calls", "Calls of a model for a summary.", unit="{call}"),
            Metric(
                "compact.summarizer.failures",
                "Calls of a model for a summary that failed.",
                unit="{call}",
                value=lambda data: int(bool(data["error_type"])),
                attributes=_MODEL_ATTRIBUTES,
            ),
            Metric(
                "compact.summarizer.input_tokens",
                "Tokens that summarisers read.",
                unit="{token}",
                value="input_tokens",
            ),
            Metric(
                "compact.summarizer.output_tokens",
                "Tokens that summarisers wrote.",
                unit="{token}",
                value="output_tokens",
            ),
            duration_metric(
                "compact.summarizer.duration",
                "compact_summarizer_seconds",
                help="How long a model took to answer.",
                attributes=_MODEL_ATTRIBUTES,
            ),
        ),
    )
    model: str
    provider: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    error_type: str = ""


# What the terms for programs say: those of the specification for a summary that failed, and ours where nothing helps.
_FALLBACKS = {
    "pruning-only": "no model's summary stands for the messages that leave the prompt, but what code chose of them",
    "keep": "nothing was compacted, the prompt stays as it is",
    "none: on_failure is raise": "nothing, the error is raised, as on_failure says",
    "none: this cannot be sent": "nothing, this cannot be sent",
}


@event
class CompactionErrorEvent(CompactionEvent):
    """Something failed; `instead` says in words what was done, and `fallback` in a term for programs, if it has one."""

    type = CompactionEventType.ERROR
    spec = EventSpec(
        "error",
        "{error_type}: {message} (instead: {instead})",
        output="{error_type}: {message}\ninstead: {instead}",
        failure="error_type",
        computed={"instead": "str"},
        metrics=(
            Metric(
                "compact.errors",
                "Failures after which the agent went on, by type.",
                unit="{error}",
                label=("error.type", "error_type"),
            ),
        ),
    )
    error_type: str
    message: str
    fallback: str

    @property
    def instead(self) -> str:
        """What was done instead, in words."""
        return _FALLBACKS.get(self.fallback, self.fallback)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, with what was done instead."""
        return {**CompactionEvent.to_dict(self), "instead": self.instead}


@event
class NoticeEvent(CompactionEvent):
    """Something the operator should know. Severity `high`: a protection is off; `low`: no harm done."""

    type = CompactionEventType.NOTICE
    spec = EventSpec("warning", "{message}", output="{message}")
    message: str
    severity: str = "normal"


@event
class ContextOverflowEvent(CompactionEvent):
    """A provider refused a prompt as too long. `message` says what was learned from it.

    `window_tokens` was the limit that we knew, `learned_tokens` is the one from now on; `limit_tokens` and
    `prompt_tokens` are the provider's figures, 0 where it gave none.
    """

    type = CompactionEventType.CONTEXT_OVERFLOW
    spec = EventSpec(
        "warning",
        "{message}",
        output="{message}",
        metrics=(
            Metric(
                "compact.overflows",
                "Prompts that a provider refused as too long.",
                unit="{prompt}",
                label=("model", "model"),
            ),
        ),
    )
    message: str
    model: str
    estimated_tokens: int
    window_tokens: int
    learned_tokens: int
    limit_tokens: int = 0
    prompt_tokens: int = 0


@event
class ArchivalEvent(CompactionEvent):
    """Something was written to the archive; `place` is the path or the key."""

    type = CompactionEventType.ARCHIVAL
    spec = EventSpec("debug", "archived with {storage_adapter}: {place}")
    step: int
    storage_adapter: str
    place: str


@event
class VersionConflictEvent(CompactionEvent):
    """Another process wrote to the session at the same time; the call was made again on what it wrote."""

    type = CompactionEventType.VERSION_CONFLICT
    spec = EventSpec(
        "debug",
        "{message}",
        output="{message}",
        metrics=(
            Metric(
                "compact.version_conflicts", "Calls made again because another process wrote first.", unit="{conflict}"
            ),
        ),
    )
    message: str


@event
class EventsDroppedEvent(CompactionEvent):
    """An exporter could not keep up, or did not reach its server for too long: `count` events were never sent."""

    type = CompactionEventType.EVENTS_DROPPED
    spec = EventSpec(
        "debug",
        "{exporter} did not send {count:n event}",
        metrics=(
            Metric(
                "compact.events.dropped",
                "Events that were never sent, by exporter.",
                unit="{event}",
                value="count",
                label=("exporter", "exporter"),
            ),
        ),
    )
    exporter: str
    count: int


# Every class above by its wire name.
EVENTS = declared_events()
EventSink: TypeAlias = Callable[[CompactionEvent], None]
