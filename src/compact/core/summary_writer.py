"""Has a summary written, once for each span, and knows what to do when that fails."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

from compact.core.announcer import Announcer
from compact.core.errors import SummaryFailed
from compact.core.fact_finding import find_facts
from compact.core.keeper import Keeper
from compact.core.ledger import Fact, FactKind
from compact.core.plan import SummarizationRecord
from compact.core.protocols import ProviderAwareTokenizer, Summarizer
from compact.core.records import SummaryCache
from compact.core.session import Session
from compact.core.summary import StructuredSummary, SummaryCacheKey, SummaryRequest
from compact.core.summary_caching import create_summary_cache_key
from compact.core.summary_drafting import Drafter
from compact.core.summary_joining import cut_to
from compact.core.summary_ladder import Rung
from compact.core.summary_room import SummaryRoom
from compact.core.waiting import Trip

T = TypeVar("T")


class SummarizerGuard(Protocol):
    """Says when a summariser is better left alone."""

    def check(self) -> None:
        """Raise SummarizerPaused if it is not to be asked now."""
        ...

    def succeeded(self) -> None:
        """A summary was written."""
        ...

    def failed(self, error: Exception) -> None:
        """No summary came of it."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryWriter:
    """Turns a summary that is planned into one that is written.

    A summariser that has `identity(strategy)` (a model, and the version of its prompts) is looked up in the cache
    before it is asked; what else it may have is told at `Drafter`.
    """

    summarizer: Summarizer
    tokenizer: ProviderAwareTokenizer
    keeper: Keeper
    announcer: Announcer
    strategy: str = "task_state"
    on_failure: str = "prune"
    may_be_empty: bool = False
    guard: SummarizerGuard | None = None
    cache: SummaryCache | None = None

    def write(
        self, session: Session, pending: SummarizationRecord, *, note: str, may_keep: bool
    ) -> Trip[SummarizationRecord | None]:
        """The record with its summary; if writing fails, with what is known, or nothing if all is to stay as it is."""
        room = SummaryRoom(pending, self.tokenizer.count_message)
        request = self._request(session, room, note)
        try:
            return (yield from self._once(session, request, room))
        except Exception as error:
            if self.on_failure == "raise":
                raise
            keeps = self.on_failure == "keep" and may_keep
            self.announcer.failed(session, error, fallback="keep" if keeps else "pruning-only")
            return None if keeps else _pruned_only(request, room)

    def write_ahead(self, session: Session, pending: SummarizationRecord) -> Trip[None]:
        """Write a summary before it is needed, and note what it stands for."""
        room = SummaryRoom(pending, self.tokenizer.count_message)
        record = yield from self._once(session, self._request(session, room, ""), room)
        yield from self.keeper.note_prepared(session, pending, record)

    def _request(self, session: Session, room: SummaryRoom, note: str) -> SummaryRequest:
        """What the summariser gets: the messages that are new to the span, and what the summary before them said."""
        pending, standing = room.pending, session.plan.summary
        inside, known = set(pending.span), set(standing.span if standing else ())
        span = tuple(message for message in session.thread.view if message.id in inside)
        artifacts = (
            Fact(FactKind.ARTIFACT, record.artifact_id, record.reason, record.span.message_ids)
            for record in session.plan.externalizations
            if inside.issuperset(record.span)
        )
        request = SummaryRequest(
            messages=tuple(message for message in span if message.id not in known),
            span=span,
            kept=tuple(message for message in session.thread.view if message.id not in inside),
            previous=standing.summary if standing else None,
            ledger=find_facts(span, artifacts, history=session.thread.view),
            max_tokens=pending.max_tokens,
            count_text=self.tokenizer.count_text,
            strategy=self.strategy,
            note=note,
            version=pending.version,
        )
        return self._drafter.leaving_room(request, room)

    @property
    def _drafter(self) -> Drafter:
        return Drafter(summarizer=self.summarizer, announcer=self.announcer, may_be_empty=self.may_be_empty)

    def _once(self, session: Session, request: SummaryRequest, room: SummaryRoom) -> Trip[SummarizationRecord]:
        """The one summary of this span, whoever wrote it; another's, who had more room, is cut to ours."""
        used = [self.strategy]

        def write() -> Trip[StructuredSummary]:
            summary, used[0] = yield from self._written(session, request, room)
            return summary

        with self.announcer.operation(session, "summary"):
            summary = cut_to((yield from self.keeper.summary_once(session, room.pending, write)), room.fits)
            record = room.record(summary)
            self.announcer.summarized(session, record, text=room.text(summary), strategy=used[0])
        return record

    def _written(
        self, session: Session, request: SummaryRequest, room: SummaryRoom
    ) -> Trip[tuple[StructuredSummary, str]]:
        """A summary that was made of the very same before, or a new one; and the form it has."""
        key = self._cache_key(request)
        found = yield from self._remembered(session, key)
        if found:
            return found, request.strategy
        if self.guard:
            self.guard.check()
        try:
            summary, strategy = yield from self._down_the_ladder(session, request, room)
        except Exception as error:
            if self.guard:
                self.guard.failed(error)
            raise
        if self.guard:
            self.guard.succeeded()
        if strategy == request.strategy:  # a makeshift is not worth remembering
            yield from self._remember(session, key, summary)
        return summary, strategy

    def _down_the_ladder(
        self, session: Session, request: SummaryRequest, room: SummaryRoom
    ) -> Trip[tuple[StructuredSummary, str]]:
        """Ask; if that fails, ask for less or for something simpler, as long as that may help."""
        rung, tried = Rung(request.strategy, request.max_tokens), tuple[str, ...]()
        while True:
            asked = replace(request, strategy=rung.strategy, max_tokens=rung.max_tokens)
            try:
                return (yield from self._drafter.draft(session, asked, room)), rung.strategy
            except Exception as error:
                tried = (*tried, f"{rung}, {len(request.messages):,} messages ({type(error).__name__})")
                if isinstance(error, SummaryFailed):
                    error.tried = tried
                below = rung.below(error)
                if below is None:
                    raise
                self.announcer.failed(session, error, fallback=f"asked again: {below}")
                rung = below

    # -- remembering ----------------------------------------------------------------------------------------------

    def _cache_key(self, request: SummaryRequest) -> SummaryCacheKey | None:
        identity: Callable[[str], tuple[str, str]] | None = getattr(self.summarizer, "identity", None)
        if self.cache is None or identity is None:
            return None
        model, version = identity(request.strategy)
        tenant_id = self.keeper.tenant_id
        return create_summary_cache_key(request, model=model, prompt_version=version, tenant_id=tenant_id)

    def _remembered(self, session: Session, key: SummaryCacheKey | None) -> Trip[StructuredSummary | None]:
        cache = self.cache
        if cache is None or key is None:
            return None
        try:
            return (yield from self.keeper.ask(lambda: cache.get(key)))
        except Exception as error:
            self.announcer.failed(session, error, fallback="asked the summariser without looking it up")
            return None

    def _remember(self, session: Session, key: SummaryCacheKey | None, summary: StructuredSummary) -> Trip[None]:
        cache = self.cache
        if cache is None or key is None:
            return
        try:
            yield from self.keeper.ask(lambda: cache.put(key, summary))
        except Exception as error:
            self.announcer.failed(session, error, fallback="the summary is used, but not remembered")


def _pruned_only(request: SummaryRequest, room: SummaryRoom) -> SummarizationRecord:
    """What stands for the span when nobody wrote a summary: the ledger, and what the summary before had told."""
    known = replace(request.previous or StructuredSummary(), ledger=request.ledger, check=None)
    record = room.record(cut_to(known, room.fits))
    return replace(record, reason=f"{record.reason}; pruning-only, no summary was written")
