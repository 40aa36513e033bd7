"""Emit the events of a session: the one place that fills in which session, turn and plan version they belong to."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from compact.core.audit.diff import RecallableLog, ReportedHistory
from compact.core.audit.freed import ContentChange, content_changes
from compact.core.audit.report import CompactionReport, report_of
from compact.core.engine.events import (
    CompactionCheckStartedEvent,
    CompactionCompletedEvent,
    CompactionErrorEvent,
    CompactionEvent,
    CompactionReportEvent,
    ComputeEconomics,
    ContentChangedEvent,
    ContentClearedEvent,
    ContentDroppedEvent,
    ContentExternalizedEvent,
    ContentRehydratedEvent,
    ContentSummarizedEvent,
    EventSink,
    HistoryRepairedEvent,
    NoticeEvent,
    OperationEndedEvent,
    OperationStartedEvent,
    PromptReadyEvent,
    ProposalGeneratedEvent,
    ProposalRejectedEvent,
    PrunedMessagesEvent,
    RegretEvent,
    RehydrationBlockedEvent,
    TokenEstimateEvent,
    TriggerDecisionEvent,
)
from compact.core.facts.constraints import ConstraintFinder
from compact.core.messages.legality import Repair
from compact.core.plan.budget import TokenBudget
from compact.core.plan.layers import Layers
from compact.core.plan.parts import LAYERS, PromptPart, in_order
from compact.core.plan.plan import CompactionAction, CompactionPlan
from compact.core.plan.regret import Regret
from compact.core.plan.turn import Rehydration
from compact.core.planning.coordinator import CompactionResult, ProposalCount
from compact.core.session.decisions import TriggerDecision
from compact.core.session.session import Session


def _discard(event: CompactionEvent) -> None:
    """Drop an event."""


class _Once:
    """Compute a report when it is first asked for; whoever keeps the event does not keep the session it is about."""

    __slots__ = ("_compute", "_report")

    def __init__(self, compute: Callable[[], CompactionReport]) -> None:
        self._compute: Callable[[], CompactionReport] | None = compute
        self._report: CompactionReport | None = None

    def __call__(self) -> CompactionReport:
        compute = self._compute
        if compute:  # two threads that ask at once compute the same
            self._report = compute()
            self._compute = None
        assert self._report
        return self._report


@dataclass(frozen=True, slots=True)
class EventEmitter:
    """Emits events to a sink."""

    sink: EventSink
    model: str = ""
    policy: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def is_heard(self) -> bool:
        """False if the sink says that nobody gets its events: then they need not be made."""
        return bool(getattr(self.sink, "has_sinks", True))

    def silent(self) -> EventEmitter:
        """Return an emitter whose events go nowhere."""
        return replace(self, sink=_discard)

    def emit(self, session: Session, event: type[CompactionEvent], **fields: Any) -> None:
        """Emit an event of a session; `fields` are those that the event has beside the common ones."""
        if self.is_heard:
            self.sink(event(**_common(session), **fields))

    @contextmanager
    def operation(self, session: Session, operation: str) -> Generator[None]:
        """Emit when something that takes time starts and ends, and whether it failed."""
        if not self.is_heard:
            yield
            return
        is_check = operation in ("preflight", "manual_compact")
        start = CompactionCheckStartedEvent if is_check else OperationStartedEvent
        started = start(**_common(session), operation=operation)
        self.sink(started)
        error_type = ""
        try:
            yield
        except GeneratorExit:
            error_type = "Abandoned"  # the task was cancelled, or its loop ended: nobody waits for the result any more
            raise
        except BaseException as error:
            error_type = type(error).__name__
            raise
        finally:
            self.emit(
                session,
                OperationEndedEvent,
                operation=operation,
                error_type=error_type,
                began=started,
            )

    def estimate(self, session: Session, budget: TokenBudget, used_tokens: int) -> None:
        """Emit how large the prompt is."""
        if not self.is_heard:
            return
        parts = session.tokens_by_part()
        breakdown = {
            "system": parts.get(PromptPart.SYSTEM, 0),
            "developer": parts.get(PromptPart.DEVELOPER, 0),
            "tools_schema": parts.get(PromptPart.TOOLS, 0),
        }
        breakdown["messages"] = session.prompt_tokens + budget.system_tokens - breakdown["system"]
        breakdown["messages"] -= breakdown["developer"]
        self.emit(
            session,
            TokenEstimateEvent,
            model=self.model,
            t_est=used_tokens,
            max_tokens=budget.max_context_tokens,
            usage_pct=round(budget.usage_pct(used_tokens), 4),
            breakdown=breakdown,
            parts=in_order(parts),
        )

    def decision(self, session: Session, decision: TriggerDecision, **details: Any) -> None:
        """Emit whether a call compacts, and why or why not."""
        self.emit(
            session,
            TriggerDecisionEvent,
            triggered=decision.triggered,
            reason=decision.reason,
            policy=self.policy,
            **details,
        )

    def compaction(
        self,
        session: Session,
        result: CompactionResult,
        *,
        before: CompactionPlan,
        pruned_ids: Sequence[str],
        messages_before: int,
        kept: Mapping[str, Any],
        compute_economics: ComputeEconomics,
    ) -> None:
        """Emit that a new plan is in force: what each strategy did to content, and what that came to.

        `kept` is what `kept_of` says of the layers.
        """
        for event, fields in _proposal_events(result.counts):
            self.emit(session, event, **fields)
        for change in content_changes(
            _told_anew(session, before),
            before,
            session.plan,
            message_tokens=session.tokens.of,
            tokens_freed=session.plan.tokens_before - session.plan.tokens_after,
        ):
            self._content_changed(session, change)
        messages_by_layer = {
            layer: sum(part in parts for part in session.prompt.slot_parts)
            for layer, parts in LAYERS.items()
            if layer != "injected"
        }
        self.emit(
            session,
            PrunedMessagesEvent,
            pruned_count=len(pruned_ids),
            message_ids=tuple(pruned_ids),
            layers=messages_by_layer,
            **kept,
        )
        self.emit(
            session,
            CompactionCompletedEvent,
            tokens_before=session.plan.tokens_before,
            tokens_after=session.plan.tokens_after,
            messages_before=messages_before,
            messages_after=len(session.prompt),
            proposals=result.proposals,
            reason=session.plan.reason,
            compute_economics=compute_economics,
        )

    def _content_changed(self, session: Session, change: ContentChange) -> None:
        more = {"artifact_ids": change.artifact_ids} if change.action is CompactionAction.EXTERNALIZE else {}
        self.emit(
            session,
            _CONTENT_EVENTS[change.action],
            strategy=change.strategy,
            message_ids=change.message_ids,
            tokens_before=change.tokens_before,
            tokens_after=change.tokens_after,
            tokens_freed=change.tokens_freed,
            changed_again=change.changed_again,
            **more,
        )

    def prompt_ready(self, session: Session, budget: TokenBudget, used_tokens: int) -> None:
        """Emit how large the prompt is that a call returns."""
        self.emit(
            session,
            PromptReadyEvent,
            model=self.model,
            tokens=used_tokens,
            max_tokens=budget.max_context_tokens,
            usage_pct=round(budget.usage_pct(used_tokens), 4),
            messages=len(session.prompt) + len(session.turn.rehydrated) + len(session.injected),
        )

    def report(
        self, session: Session, before: CompactionPlan, constraints: ConstraintFinder, default_sensitivity: str
    ) -> None:
        """Emit the report of the plan in force against the one before it.

        The report is made when somebody reads the event, on the history as it is now: the turn does not wait for it.
        """
        log, plan = tuple(session.log.entries), session.plan
        recallable = RecallableLog(log, session.log.recorded_by_id, default_sensitivity)
        structure, index = session.structure, session.line_index
        history = ReportedHistory(
            tuple(session.log.view),
            structure.places,
            tuple(index.asks),
            tuple(index.decided),
            session.constraint_reading.of(constraints).standing(session.log.view),
            plan.places_outside(structure),
        )
        compute_report = _Once(lambda: report_of(history, before, plan, recallable, len(log)))
        self.emit(session, CompactionReportEvent, compute_report=compute_report)

    def error(self, session: Session, error: Exception, *, fallback: str, message: str | None = None) -> None:
        """Emit a failure and what was done instead; `message` stands in for an error text that must not get out."""
        text = str(error) if message is None else message
        self.emit(session, CompactionErrorEvent, error_type=type(error).__name__, message=text, fallback=fallback)

    def notice(self, session: Session, message: str, *, severity: str = "normal") -> None:
        """Emit something the operator should know."""
        self.emit(session, NoticeEvent, message=message, severity=severity)

    def rehydration(self, session: Session, found: Rehydration) -> None:
        """Emit which artifacts are shown again, and which were refused."""
        for message in found.messages:
            artifact_id = str(message.meta.get("artifact_id", message.id))
            self.emit(session, ContentRehydratedEvent, artifact_id=artifact_id)
        for blocked in found.blocked:
            self.emit(session, RehydrationBlockedEvent, artifact_id=blocked.artifact_id, reason=blocked.reason)

    def regrets(self, session: Session, regrets: Sequence[Regret]) -> None:
        """Emit that the agent asked again for what had been removed."""
        for regret in regrets:
            self.emit(
                session,
                RegretEvent,
                message_id=regret.message_id,
                found_in=regret.found_in,
                tool=regret.tool,
                action=regret.action,
                strategy=regret.strategy,
                how=regret.how,
                tokens=regret.tokens,
            )

    def repairs(self, session: Session, repairs: Sequence[Repair]) -> None:
        """Emit how the prompt was made legal."""
        lines = tuple(f"{repair.rule} at {repair.message_id}: {repair.detail}" for repair in repairs)
        self.emit(session, HistoryRepairedEvent, repairs=lines)


def _common(session: Session) -> dict[str, Any]:
    return {
        "session_id": session.session_id,
        "turn_number": session.turn_number,
        "plan_version": session.plan.version,
    }


def _told_anew(session: Session, before: CompactionPlan) -> Iterator[str]:
    """Yield the messages of a session but for those that a summary stood for before, and stands for now."""
    structure = session.structure
    places = {*before.places_outside(structure), *session.plan.places_outside(structure)}
    return (session.log.view[place].id for place in sorted(places))


def kept_of(session: Session, layers: Layers) -> dict[str, Any]:
    """Return what a compaction keeps, as events have it: how much by each rule, and which messages are protected."""
    protected = [session.log.view[place] for place in sorted(layers.pinned)]
    return {
        "kept": {"pinned": len(layers.pinned), "recent_turns": layers.recent_turns, "tool_pairs": layers.tool_pairs},
        "protected_ids": tuple(message.id for message in protected),
        "protected_labels": {m.id: str(m.meta["label"]) for m in protected if m.meta.get("label")},
    }


_CONTENT_EVENTS: Mapping[CompactionAction, type[ContentChangedEvent]] = {
    CompactionAction.CLEAR: ContentClearedEvent,
    CompactionAction.SUMMARIZE: ContentSummarizedEvent,
    CompactionAction.EXTERNALIZE: ContentExternalizedEvent,
    CompactionAction.DROP: ContentDroppedEvent,
}


def _proposal_events(counts: Sequence[ProposalCount]) -> Iterator[tuple[type[CompactionEvent], dict[str, Any]]]:
    """Yield what became of the proposals of each strategy."""
    for count in counts:
        if count.accepted:
            yield (
                ProposalGeneratedEvent,
                {"strategy": count.strategy, "proposals": count.accepted, "tokens_freed": count.tokens_freed},
            )
        if count.rejected:
            reason = "it would free nothing"
            yield ProposalRejectedEvent, {"strategy": count.strategy, "proposals": count.rejected, "reason": reason}
