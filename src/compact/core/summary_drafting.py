"""Gets one summary out of a summariser: what it told, checked against its sources, beside the facts it has to carry."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from compact.core.announcer import Announcer
from compact.core.errors import SummaryEmpty, SummaryTooLong
from compact.core.ledger import REQUIRED, Fact, FactKind, Ledger, merged
from compact.core.protocols import Summarizer
from compact.core.session import Session
from compact.core.summary import StructuredSummary, SummaryCheck, SummaryRequest
from compact.core.summary_joining import joined, required_facts, shortened
from compact.core.summary_room import SummaryRoom
from compact.core.verification import grounded, lacking
from compact.core.waiting import Trip

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
