"""Has a summary written, checks it, and knows what to do when that fails."""

from __future__ import annotations

from dataclasses import dataclass, replace

from compact.core.announcer import Announcer
from compact.core.errors import CompactError
from compact.core.keeper import Keeper
from compact.core.ledger import carry_task
from compact.core.plan import SummarizationRecord
from compact.core.protocols import ProviderAwareTokenizer, Summarizer
from compact.core.renderer import summary_message
from compact.core.session import Session
from compact.core.summary import ArtifactReference, StructuredSummary, SummaryRequest, fit_summary
from compact.core.waiting import Trip


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryWriter:
    """Turns a summary that is planned into one that is written."""

    summarizer: Summarizer
    tokenizer: ProviderAwareTokenizer
    keeper: Keeper
    announcer: Announcer
    strategy: str = "task_state"
    on_failure: str = "prune"

    def write(
        self, session: Session, pending: SummarizationRecord, *, note: str, may_keep: bool
    ) -> Trip[SummarizationRecord | None]:
        """The record with its summary; if writing fails, with the task alone, or nothing if all is to stay as it is."""
        request = self._request(session, pending, note)
        try:
            summary = yield from self._once(session, pending, request)
            return self._checked(session, pending, summary)
        except Exception as error:
            if self.on_failure == "raise":
                raise
            keeps = self.on_failure == "keep" and may_keep
            self.announcer.failed(session, error, fallback="keep" if keeps else "pruning-only")
            return None if keeps else self._pruned_only(pending, request)

    def write_ahead(self, session: Session, pending: SummarizationRecord) -> Trip[None]:
        """Write a summary before it is needed, and note what it stands for."""
        summary = yield from self._once(session, pending, self._request(session, pending, ""))
        record = self._checked(session, pending, summary)
        yield from self.keeper.note_prepared(session, pending, record)

    def _once(self, session: Session, pending: SummarizationRecord, request: SummaryRequest) -> Trip[StructuredSummary]:
        """The one summary of this span, whoever wrote it; another's, who had more room, is cut to ours."""
        own: list[bool] = []

        def write() -> object:
            own.append(True)
            return self.summarizer(request)

        summary = yield from self.keeper.summary_once(session, pending, write)
        return summary if own else fit_summary(summary, lambda candidate: self._fits(pending, candidate))

    def _fits(self, pending: SummarizationRecord, summary: StructuredSummary) -> bool:
        message = summary_message(replace(pending, summary=summary))
        return self.tokenizer.count_message(message) <= pending.max_tokens

    def _request(self, session: Session, pending: SummarizationRecord, note: str) -> SummaryRequest:
        """What the summariser gets: the messages that are new to the span, and what the summary before them said."""
        standing = session.plan.summary
        ids = set(pending.span) - set(standing.span if standing else ())
        return SummaryRequest(
            messages=tuple(message for message in session.thread.view if message.id in ids),
            previous=standing.summary if standing else None,
            max_tokens=pending.max_tokens,
            count_text=self.tokenizer.count_text,
            strategy=self.strategy,
            note=note,
            version=pending.version,
            artifacts=tuple(
                ArtifactReference(record.artifact_id, record.reason, record.span.message_ids)
                for record in session.plan.externalizations
                if ids.issuperset(record.span)
            ),
        )

    def _checked(
        self, session: Session, pending: SummarizationRecord, summary: StructuredSummary
    ) -> SummarizationRecord:
        record = replace(pending, summary=summary)
        message = summary_message(record)
        tokens = self.tokenizer.count_message(message)
        if tokens > pending.max_tokens:
            raise CompactError(f"the summary takes {tokens:,} tokens, more than the {pending.max_tokens:,} it may take")
        record = replace(record, tokens_after=tokens)
        self.announcer.summarized(session, record, text=message.text, strategy=self.strategy)
        return record

    def _pruned_only(self, pending: SummarizationRecord, request: SummaryRequest) -> SummarizationRecord:
        """What stands for the span when nobody wrote a summary: what was known before, and the task."""
        kept = fit_summary(carry_task(request), lambda candidate: self._fits(pending, candidate))
        record = replace(pending, summary=kept, reason=f"{pending.reason}; pruning-only, no summary was written")
        return replace(record, tokens_after=self.tokenizer.count_message(summary_message(record)))
