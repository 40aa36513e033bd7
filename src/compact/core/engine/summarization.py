"""Write a summary: ask the summariser, check its answer, and fall back when that fails."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

from compact.core.audit.store import SummaryCache
from compact.core.engine.emitter import Announcer
from compact.core.engine.persistence import Keeper
from compact.core.engine.session import Session
from compact.core.errors import (
    SummaryEchoed,
    SummaryEmpty,
    SummaryFailed,
    SummaryRefused,
    SummaryTooLong,
    SummaryTruncated,
    SummaryUnreadable,
)
from compact.core.facts.extraction import find_facts
from compact.core.facts.ledger import REQUIRED, Fact, FactKind, Ledger, merged
from compact.core.log.messages import Message
from compact.core.log.tokenizer import ProviderAwareTokenizer
from compact.core.plan.plan import SummarizationRecord
from compact.core.plan.renderer import summary_message
from compact.core.steps import Trip
from compact.core.summary.fitting import cut_to, joined, required_facts, shortened
from compact.core.summary.summarizer import Summarizer, SummaryCacheKey, SummaryRequest, create_summary_cache_key
from compact.core.summary.summary import StructuredSummary, SummaryCheck
from compact.core.summary.verification import grounded, lacking

SIMPLEST = "brief"
_MOST_HALVINGS = 2
_FEWEST_TOKENS = 24
_TOO_MUCH = (SummaryTooLong, SummaryTruncated)
_NO_ANSWER = (SummaryRefused, SummaryEmpty, SummaryEchoed, SummaryUnreadable)


@dataclass(frozen=True, slots=True)
class Rung:
    """How a summary is asked for: in which form, and how long it may be."""

    strategy: str
    max_tokens: int
    halvings: int = 0

    def below(self, error: Exception) -> Rung | None:
        """The next thing to try after a failure.

        Too long, or cut off: half as long, twice at most. Refused, or no answer at all: the simplest form, once. What
        failed for any other reason (no connection, no money) would fail again.
        """
        if isinstance(error, _TOO_MUCH) and self.halvings < _MOST_HALVINGS and self.max_tokens >= 2 * _FEWEST_TOKENS:
            return replace(self, max_tokens=self.max_tokens // 2, halvings=self.halvings + 1)
        if isinstance(error, _NO_ANSWER) and self.strategy != SIMPLEST:
            return replace(self, strategy=SIMPLEST)
        return None

    def __str__(self) -> str:
        return f"{self.strategy} in {self.max_tokens:,} tokens"


@dataclass(frozen=True, slots=True)
class SummaryRoom:
    """What is weighed is the message that will stand in the prompt, as it will stand there."""

    pending: SummarizationRecord
    count_message: Callable[[Message], int]

    @property
    def max_tokens(self) -> int:
        """The most that the summary may take."""
        return self.pending.max_tokens

    def text(self, summary: StructuredSummary) -> str:
        """The summary as it will be read."""
        return summary_message(replace(self.pending, summary=summary)).text

    def tokens(self, summary: StructuredSummary) -> int:
        """What a summary takes."""
        return self.count_message(summary_message(replace(self.pending, summary=summary)))

    def fits(self, summary: StructuredSummary) -> bool:
        """True if there is room for it."""
        return self.tokens(summary) <= self.max_tokens

    def fits_half(self, summary: StructuredSummary) -> bool:
        """True if it leaves half of the room."""
        return self.tokens(summary) <= self.max_tokens // 2

    def record(self, summary: StructuredSummary) -> SummarizationRecord:
        """The record with its summary, weighed."""
        return replace(self.pending, summary=summary, tokens_after=self.tokens(summary))


_FEWEST_TOKENS = 32
# More would be a list of everything; what is still missing then is named in the report.
_MOST_ASKED_AGAIN = 20


@dataclass(frozen=True, slots=True)
class Draft:
    """A summary as it came out, the facts it still lacks, and what in it no source has."""

    summary: StructuredSummary
    lacks: tuple[Fact, ...]
    ungrounded: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Drafter:
    """Asks a summariser, and makes a whole of its answer.

    A summariser is a callable. One that puts facts into the ledger of its summary has chosen them itself; otherwise as
    many as there is room for are added, and the story gives way to the required ones. It may have `is_model_run`
    (True: it gets the room that is left beside the required facts, and is asked again, once, for facts that its answer
    lacks) and `for_session(session_id)` (the callable to use for one session).
    """

    summarizer: Summarizer
    announcer: Announcer
    may_be_empty: bool = False

    def leaving_room(self, request: SummaryRequest, room: SummaryRoom) -> SummaryRequest:
        """The request with the room that is left beside the required facts, which have at most half of it."""
        if not self._is_model_run:
            return request
        required = required_facts(request.ledger, room.fits_half)
        taken = room.tokens(StructuredSummary(ledger=required))
        return replace(request, max_tokens=max(_FEWEST_TOKENS, room.max_tokens - taken))

    def draft(self, session: Session, request: SummaryRequest, room: SummaryRoom) -> Trip[StructuredSummary]:
        """One summary that fits, with what was checked in it; raises what went wrong."""
        ask = self._summarizer_of(session)
        first = self._draft((yield lambda: ask(request)), request, room)
        missing = self._worth_asking(first, request)
        if not missing:
            return self._completed(first, (), request, room)
        second = first
        try:
            again = yield lambda: ask(replace(request, missing=missing))
            second = self._draft(again, request, room)
        except Exception as error:
            self.announcer.failed(session, error, fallback="kept the first answer, which lacks some facts")
        best = second if len(second.lacks) < len(first.lacks) else first
        return self._completed(best, missing, request, room)

    def _summarizer_of(self, session: Session) -> Summarizer:
        bound: Callable[[str], Summarizer] | None = getattr(self.summarizer, "for_session", None)
        return bound(session.session_id) if bound else self.summarizer

    def _draft(self, answer: object, request: SummaryRequest, room: SummaryRoom) -> Draft:
        if not isinstance(answer, StructuredSummary):
            raise TypeError(f"a summariser returns a StructuredSummary, not {type(answer).__name__}")
        told, ungrounded = grounded(answer, request.span, _with_ids(request.ledger, request))
        if self._says_nothing(told):
            raise SummaryEmpty(
                "nothing that was told is in its sources" if ungrounded else "the summariser told nothing"
            )
        whole = self._whole(told, request, room)
        return Draft(whole, lacking(whole, self._ledger(answer, request), text=room.text(whole)), ungrounded)

    def _whole(self, told: StructuredSummary, request: SummaryRequest, room: SummaryRoom) -> StructuredSummary:
        """What was told, and as much of the ledger as there is room for beside it."""
        has_chosen = bool(told.ledger or told.excerpts) and not self._is_model_run
        required = required_facts(request.ledger, room.fits_half)
        bare = replace(told, ledger=required) if self._is_model_run else told
        if not room.fits(bare):
            raise SummaryTooLong(tokens=room.tokens(bare), max_tokens=room.max_tokens)
        if has_chosen:
            return told
        uncut = Ledger(tuple(fact for fact in request.ledger if fact.kind in REQUIRED))
        if room.fits(replace(told, ledger=uncut)):
            required = uncut
        # A fact that was cut stands in place of the whole one, never beside it.
        others = (fact for fact in told.ledger or request.ledger if fact.kind not in REQUIRED)
        whole = joined(told, merged((*others, *required)), required, room.fits)
        return whole or shortened(replace(told, ledger=required), room.fits)

    def _ledger(self, answer: StructuredSummary, request: SummaryRequest) -> Ledger:
        """The facts to look for: a model may have settled some of what code found open."""
        return answer.ledger if self._is_model_run and answer.ledger else request.ledger

    def _says_nothing(self, summary: StructuredSummary) -> bool:
        """True if there is nothing in it; a summary by code that has no room for anything is none the less right."""
        told = (summary.decisions, summary.tool_outcomes, summary.open_items, summary.facts, summary.narrative)
        found = () if self._is_model_run else (summary.excerpts, summary.ledger)
        return not self.may_be_empty and not any((*told, *found))

    @property
    def _is_model_run(self) -> bool:
        return bool(getattr(self.summarizer, "is_model_run", False))

    def _worth_asking(self, draft: Draft, request: SummaryRequest) -> tuple[str, ...]:
        """The facts to ask for once more; none if there would be no room for them either."""
        if not self._is_model_run:
            return ()
        texts = tuple(fact.text for fact in draft.lacks[:_MOST_ASKED_AGAIN])
        needed = sum(map(request.count_text, texts))
        return texts if needed <= request.max_tokens // 2 else ()

    def _completed(
        self, draft: Draft, asked_again: tuple[str, ...], request: SummaryRequest, room: SummaryRoom
    ) -> StructuredSummary:
        """The draft with as many of the facts it lacks as there is room for, and with what the check came to."""
        summary = draft.summary
        appended: list[str] = []
        for fact in draft.lacks:
            fuller = replace(summary, ledger=Ledger((*summary.ledger.facts, fact)))
            if room.fits(fuller):
                summary = fuller
                appended.append(fact.text)
        required = sum(fact.kind in REQUIRED for fact in request.ledger)
        check = SummaryCheck(required, asked_again, tuple(appended), draft.ungrounded)
        return replace(summary, check=check)


def _with_ids(ledger: Ledger, request: SummaryRequest) -> Ledger:
    """The ledger with the ids of messages, which a summary may cite."""
    ids: Iterable[Fact] = (Fact(FactKind.MENTION, message.id) for message in request.span)
    return Ledger((*ledger.facts, *ids))


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
