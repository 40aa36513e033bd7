"""Turns what happens on a trip into events; the one place where events are made."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from compact.core.audit.report import report_of
from compact.core.audit.store import VersionConflict
from compact.core.engine.events import (
    ArchivalEvent,
    CompactionCheckStartedEvent,
    CompactionCompletedEvent,
    CompactionErrorEvent,
    CompactionEvent,
    CompactionReportEvent,
    ContentChangedEvent,
    ContentClearedEvent,
    ContentDroppedEvent,
    ContentExternalizedEvent,
    ContentRehydratedEvent,
    ContentSummarizedEvent,
    EventSink,
    HistoryBranchedEvent,
    HistoryRepairedEvent,
    NoticeEvent,
    OperationEndedEvent,
    OperationStartedEvent,
    ProposalGeneratedEvent,
    ProposalRejectedEvent,
    PrunedMessagesEvent,
    RehydrationBlockedEvent,
    SummaryCreatedEvent,
    TokenEstimateEvent,
    TriggerDecisionEvent,
    VersionConflictEvent,
)
from compact.core.engine.session import Decision, Session
from compact.core.log.legality import Repair
from compact.core.log.thread import Match
from compact.core.plan.budget import TokenBudget
from compact.core.plan.coordinator import CompactionResult, Tally
from compact.core.plan.plan import CompactionPlan, DropRecord, ExternalizationRecord, Record, SummarizationRecord
from compact.core.plan.turn import Rehydrated


@dataclass(frozen=True, slots=True)
class Announcer:
    """Tells sinks about a session."""

    emit: EventSink
    model: str = ""
    policy: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def _where(self, session: Session) -> dict[str, Any]:
        return {
            "thread_id": session.session_id,
            "turn_number": session.turn_number,
            "plan_version": session.plan.version,
        }

    @contextmanager
    def operation(self, session: Session, operation: str) -> Generator[None]:
        """Tells when something that takes time begins and ends, and whether it failed."""
        is_check = operation in ("preflight", "manual_compact")
        start = CompactionCheckStartedEvent if is_check else OperationStartedEvent
        began = start(**self._where(session), operation=operation)
        self.emit(began)
        error_type = ""
        try:
            yield
        except GeneratorExit:
            error_type = "Abandoned"  # a task that was cancelled, or a loop that ended: nobody waits for it any more
            raise
        except BaseException as error:
            error_type = type(error).__name__
            raise
        finally:
            self.emit(
                OperationEndedEvent(
                    **self._where(session),
                    operation=operation,
                    status="error" if error_type else "ok",
                    error_type=error_type,
                    began=began,
                )
            )

    def estimated(self, session: Session, budget: TokenBudget, used_tokens: int) -> None:
        """How large the prompt is."""
        by_role = session.tokens_by_role
        breakdown = {
            "system": by_role["system"] + budget.system_tokens,
            "developer": by_role["developer"],
            "tools_schema": budget.tool_schema_tokens,
            "messages": session.prompt_tokens - by_role["system"] - by_role["developer"],
        }
        event = TokenEstimateEvent(
            **self._where(session),
            model=self.model,
            t_est=used_tokens,
            max_tokens=budget.max_context_tokens,
            usage_pct=round(budget.usage_pct(used_tokens), 4),
            breakdown=breakdown,
        )
        self.emit(event)

    def decided(self, session: Session, decision: Decision, **details: Any) -> None:
        """Whether it was compacted, and why or why not; the session remembers it for its status."""
        session.decision = decision
        event = TriggerDecisionEvent(
            **self._where(session),
            triggered=decision.triggered,
            reason=decision.reason,
            policy=self.policy,
            **details,
        )
        self.emit(event)

    def compacted(
        self,
        session: Session,
        result: CompactionResult,
        *,
        before: CompactionPlan,
        pruned_ids: Sequence[str],
        messages_before: int,
    ) -> None:
        """A new plan is in force: what was done to content, strategy by strategy, and what it came to."""
        layers = {"pinned": len(result.layers.pinned), "summary": int(session.plan.summary is not None)}
        layers["recent"] = len(session.prompt) - sum(layers.values())
        where = self._where(session)
        for event in content_events(where, result.tallies, before, session.plan):
            self.emit(event)
        self.emit(
            PrunedMessagesEvent(**where, pruned_count=len(pruned_ids), message_ids=tuple(pruned_ids), layers=layers)
        )
        self.emit(
            CompactionCompletedEvent(
                **where,
                tokens_before=session.plan.tokens_before,
                tokens_after=session.plan.tokens_after,
                messages_before=messages_before,
                messages_after=len(session.prompt),
                proposals=result.proposals,
                reason=session.plan.reason,
                economics=result.economics.to_dict() if result.economics else {},
            )
        )

    def reported(self, session: Session, before: CompactionPlan) -> None:
        """What became of what the plan in force took out of the prompt that the one before it made.

        Nobody waits for it: whoever reads the event has it worked out, on the history as it is now.
        """
        view, log, plan = tuple(session.thread.view), tuple(session.thread.log), session.plan
        work_out = cache(lambda: report_of(view, before, plan, log=log))
        self.emit(CompactionReportEvent(**self._where(session), work_out=work_out))

    def summarized(self, session: Session, record: SummarizationRecord, *, text: str, strategy: str) -> None:
        """A summary was written."""
        event = SummaryCreatedEvent(
            **self._where(session),
            strategy=strategy,
            input_messages=len(record.span),
            summary_tokens=record.tokens_after,
            compression_ratio=round(record.tokens_after / max(1, record.tokens_before), 4),
            summary=text,
        )
        self.emit(event)

    def failed(self, session: Session, error: Exception, *, fallback: str) -> None:
        """Something went wrong, and what was done instead."""
        event = CompactionErrorEvent(
            **self._where(session), error_type=type(error).__name__, message=str(error), fallback=fallback
        )
        self.emit(event)

    def injector_failed(self, session: Session, injector: str, error: Exception) -> None:
        """An injector went wrong; its error may quote what it was about to inject, so only its kind is told."""
        event = CompactionErrorEvent(
            **self._where(session),
            error_type=type(error).__name__,
            message=f"the injector {injector!r} failed",
            fallback="went on without what it would have added",
        )
        self.emit(event)

    def archived(self, session: Session, *, step: int, adapter: str, place: str) -> None:
        """Something was written to the archive."""
        self.emit(ArchivalEvent(**self._where(session), step=step, storage_adapter=adapter, place=place))

    def conflicted(self, session: Session, conflict: VersionConflict) -> None:
        """Somebody else wrote to the session in the meantime."""
        self.emit(VersionConflictEvent(**self._where(session), message=conflict.message))

    def rehydrated(self, session: Session, found: Rehydrated) -> None:
        """What was brought back, and what was asked for in vain."""
        for message in found.messages:
            artifact_id = str(message.meta.get("artifact_id", message.id))
            self.emit(ContentRehydratedEvent(**self._where(session), artifact_id=artifact_id))
        for artifact_id, reason in found.blocked:
            self.emit(RehydrationBlockedEvent(**self._where(session), artifact_id=artifact_id, reason=reason))

    def branched(self, session: Session, match: Match) -> None:
        """The caller edited the past."""
        new_ids = tuple(message.id for message in match.new)
        self.emit(HistoryBranchedEvent(**self._where(session), left_ids=match.left_ids, new_ids=new_ids))

    def repaired(self, session: Session, repairs: Sequence[Repair]) -> None:
        """The history was not legal, and how the prompt was made so."""
        lines = tuple(f"{repair.rule} at {repair.message_id}: {repair.detail}" for repair in repairs)
        self.emit(HistoryRepairedEvent(**self._where(session), repairs=lines))

    def wishes_put_back(self, session: Session, *, back: int, missing: int) -> None:
        """Standing wishes were missing from a prompt; some may have found no room."""
        message = f"{back} standing wishes were put back into the prompt"
        severity = "high" if missing else "normal"
        if missing:
            message += f", {missing} found no room: raise the budget, or protect the messages they stand in"
        self.emit(NoticeEvent(**self._where(session), message=message, severity=severity))

    def notice(self, session: Session, message: str) -> None:
        """Something the operator should know."""
        self.emit(NoticeEvent(**self._where(session), message=message))


def content_events(
    where: Mapping[str, Any], tallies: Iterable[Tally], before: CompactionPlan, after: CompactionPlan
) -> Iterator[CompactionEvent]:
    """The events of one compaction; records that one strategy made alike are told together."""
    for tally in tallies:
        if tally.accepted:
            yield ProposalGeneratedEvent(
                **where, strategy=tally.strategy, proposals=tally.accepted, tokens_freed=tally.tokens_freed
            )
        if tally.rejected:
            yield ProposalRejectedEvent(
                **where, strategy=tally.strategy, proposals=tally.rejected, reason="it would free nothing"
            )
    standing = {id(record) for record in before.records}
    alike: dict[tuple[type[Record], str], list[Record]] = {}
    for record in after.records:
        if id(record) not in standing:
            alike.setdefault((type(record), record.strategy), []).append(record)
    for (_, strategy), records in alike.items():
        yield _changed(where, strategy, records)


def _changed(where: Mapping[str, Any], strategy: str, records: list[Record]) -> ContentChangedEvent:
    told: dict[str, Any] = {
        **where,
        "strategy": strategy,
        "message_ids": tuple(message_id for record in records for message_id in record.span),
        "tokens_before": sum(record.tokens_before for record in records),
        "tokens_after": sum(record.tokens_after for record in records),
    }
    match records[0]:
        case SummarizationRecord():
            return ContentSummarizedEvent(**told)
        case ExternalizationRecord():
            artifacts = [record.artifact_id for record in records if isinstance(record, ExternalizationRecord)]
            return ContentExternalizedEvent(**told, artifact_ids=tuple(artifacts))
        case DropRecord():
            return ContentDroppedEvent(**told)
        case _:
            return ContentClearedEvent(**told)
