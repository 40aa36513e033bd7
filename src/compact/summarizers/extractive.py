"""A summary without a model: what its form lists, and the pieces with the highest score for the rest of the task."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from compact.core.facts.ledger import REQUIRED, Fact, FactKind, Ledger
from compact.core.facts.pieces import Piece
from compact.core.facts.selection import Selection
from compact.core.facts.text import both_ends, sentence_ranges
from compact.core.messages.message import Message
from compact.core.summary.fitting import fit_summary
from compact.core.summary.focus import Focus, piece_factors
from compact.core.summary.span_index import SpanIndex
from compact.core.summary.summarizer import SummaryRequest
from compact.core.summary.summary import StructuredSummary, render_summary_text
from compact.core.summary.verification import lacking
from compact.summarizers.chronicle import leads, told
from compact.summarizers.forms import FORMS, SummaryForm
from compact.summarizers.reach import places_to_read

# All of these are chosen; `python benchmarks/fidelity` measures what comes of them.
# What the summary message takes beyond its text, and what the label of an excerpt takes.
_FRAMING_TOKENS = 8
_LABEL_TOKENS = 3
# Behind so many lines of a result the next one counts half: a step is told in a few.
_FEW_LINES = 3
# A record or a table in a result of no more than these is told whole or not at all.
_UNIT_TOKENS = 100
# The most that the task, or the latest ask, may take of a summary in full. Of a longer one pieces are chosen like of
# everything else; how it begins and ends is there in any case, in a share of its own.
_TASK_SHARE, _CUT_TASK_SHARE = 0.3, 0.15
# Chosen: what is left of it at least.
_MIN_TASK_CHARS = 60
# The most that the ids of artifacts may take: without them they do not come back.
_ARTIFACT_SHARE = 0.3
# In a summary of at least so many tokens, the most that reminders of what is open and was changed may take.
_MIN_TOKENS_FOR_NOTES = 1500
_REMINDER_SHARE = 0.1
_REMINDERS = (FactKind.OPEN_ITEM, FactKind.FILE, FactKind.ERROR)
# What stands in a summary in its own words, so that it need not be told again.
_VERBATIM = (*REQUIRED, FactKind.DECISION, FactKind.OPEN_ITEM)
# The least that a short form takes beyond the required facts, where there is so much room.
_MIN_SHORT_TOKENS = 100


def extractive_summary(request: SummaryRequest) -> StructuredSummary:
    """Return a summary of what must stay, what its form lists and, in the room left, the pieces with the highest gain.

    A form that is not known is `task_state`.
    """
    span = request.span or request.messages
    form = FORMS.get(request.form, FORMS["task_state"])
    ledger = _listed_facts(request, form, span, _required_facts(request))
    history = request.history or span
    index = request.index or SpanIndex.of(history, span)
    places, inside = index.span, {*index.span}
    read = places_to_read(history, request.previous, request.max_tokens, index)
    selection = Selection(history, count_text=request.count_text, places=read)
    factors = form.factors(selection.pieces, history, places, ledger) if form.has_factors else []
    if request.focus:
        factors = piece_factors(request.focus, selection.pieces, factors)
    if factors:
        selection.favour(factors)
    shown = set(_shown_anyway(selection.pieces, history, inside, ledger))
    selection.mark_shown(shown)
    candidates = [number for number in range(len(selection.pieces)) if number not in shown]
    units = selection.units(candidates, _UNIT_TOKENS)
    draft = _Draft(
        request, form, history, index, inside, selection, candidates, leads(selection.pieces, history), units, ledger
    )
    draft.leave_free()
    if form.reminds and draft.has_room_for_notes:
        reserve = int(_REMINDER_SHARE * request.max_tokens)
        draft.add_pieces(reserve)
        draft.add_reminders(reserve)
    return draft.finish()


def _shown_anyway(
    pieces: Sequence[Piece], history: Sequence[Message], span: Collection[int], ledger: Ledger
) -> Iterator[int]:
    """Yield the pieces that need not be chosen: they stay in the prompt, or are part of a fact that is verbatim."""
    facts: dict[str, list[Fact]] = {}
    for fact in ledger:
        for source_id in fact.source_ids if fact.kind in _VERBATIM else ():
            facts.setdefault(source_id, []).append(fact)
    for index, piece in enumerate(pieces):
        told = facts.get(history[piece.place].id, ())
        if piece.place not in span or any(_tells(fact, piece) for fact in told):
            yield index


def _tells(fact: Fact, piece: Piece) -> bool:
    """Return True if a fact has the words of a piece; an entry about a decision has its sentences apart."""
    if piece.text in fact.subject or fact.kind is not FactKind.DECISION:
        return piece.text in fact.subject
    return all(piece.text[start:end] in fact.subject for start, end in sentence_ranges(piece.text))


@dataclass(slots=True)
class _Draft:
    """A summary that is being filled: facts, and as many pieces of what is `inside` its span as there is room for."""

    request: SummaryRequest
    form: SummaryForm
    history: Sequence[Message]
    index: SpanIndex
    inside: Collection[int]
    selection: Selection
    candidates: Sequence[int]
    leads: Mapping[int, int]
    units: Mapping[int, tuple[int, ...]]
    ledger: Ledger
    chosen: list[int] = field(default_factory=list[int])
    free_tokens: int = 0

    @property
    def has_room_for_notes(self) -> bool:
        """True if the summary is long enough for reminders, and for a line where steps are left out."""
        return self.request.max_tokens >= _MIN_TOKENS_FOR_NOTES

    @property
    def summary(self) -> StructuredSummary:
        """The summary so far."""
        return StructuredSummary(
            ledger=self.ledger,
            excerpts=told(
                self.selection.pieces,
                self.chosen,
                self.history,
                gaps_in=self.index.span if self.has_room_for_notes else (),
            ),
        )

    def excess(self, summary: StructuredSummary) -> int:
        """Return the tokens by which a summary is too long; below zero, those that are left."""
        text = render_summary_text(summary, version=self.request.version, messages=len(self.index.span))
        return self.request.count_text(text) + _FRAMING_TOKENS - self.request.max_tokens

    def leave_free(self) -> None:
        """Leave free what a short form does not take; what it lists is not cut for that."""
        taken = self.excess(self.summary) + self.request.max_tokens
        wanted = max(int(self.request.max_tokens * self.form.room_share), taken + _MIN_SHORT_TOKENS)
        self.free_tokens = max(0, self.request.max_tokens - wanted)

    def add_pieces(self, reserve_tokens: int = 0) -> bool:
        """Choose pieces for the room there is, but for a reserve; return False if there was none for any."""
        reserve_tokens += self.free_tokens
        taken = set(self.chosen)
        rest = [index for index in self.candidates if index not in taken]
        room = -self.excess(self.summary) - reserve_tokens
        leads = {index: lead for index, lead in self.leads.items() if lead not in taken}
        self.chosen += self.selection.choose(
            rest, room, label_tokens=_LABEL_TOKENS, leads=leads, few_lines=_FEW_LINES, units=self.units
        )
        # The tokens of parts do not add up exactly.
        while self.chosen and (over := self.excess(self.summary) + reserve_tokens) > 0:
            while over > 0 and self.chosen:
                unit = set(self.units.get(self.chosen[-1], self.chosen[-1:]))
                over -= sum(self.request.count_text(self.selection.pieces[index].text) for index in unit)
                self.chosen = [index for index in self.chosen if index not in unit]
        return len(self.chosen) > len(taken)

    def add_reminders(self, max_tokens: int) -> None:
        """Add what is open or was changed and is not shown yet, the newest of it that there is room for."""
        known = Ledger(tuple(fact for fact in self.request.ledger if fact.kind in _REMINDERS))
        missing = lacking(self.summary, known)
        newest_first = sorted(missing, key=self._newest_source, reverse=True)
        added = _affordable(newest_first, self.request, max_tokens)
        self.ledger = Ledger((*self.ledger, *(fact for fact in missing if fact in added)))

    def _newest_source(self, fact: Fact) -> int:
        """Return where the newest message of the span stands that a fact is from; -1 if it is from none."""
        places = (self.index.places.get(message_id, -1) for message_id in fact.source_ids)
        return max((place for place in places if place in self.inside), default=-1)

    def finish(self) -> StructuredSummary:
        """Return the summary with what is left of its room used."""
        # What is left over after a round is used in the next.
        for _ in range(3):
            if not self.add_pieces():
                break
        return fit_summary(self.summary, lambda candidate: self.excess(candidate) <= 0)


def _required_facts(request: SummaryRequest) -> Ledger:
    """Return the facts that are there in any case: constraints, artifacts, and the asks, cut if they are long."""
    artifacts = _affordable(
        reversed(request.ledger.of(FactKind.ARTIFACT)), request, int(request.max_tokens * _ARTIFACT_SHARE)
    )
    return Ledger(
        tuple(
            fact if fact.kind is FactKind.CONSTRAINT or fact in artifacts else _fitting_ask(fact, request)
            for fact in request.ledger
            if fact.kind in REQUIRED or (fact.kind is FactKind.ARTIFACT and fact in artifacts)
        )
    )


def _fitting_ask(ask: Fact, request: SummaryRequest) -> Fact:
    """Return an ask with as much of it as there is room for: an agent that has lost its task is lost itself."""
    tokens = request.count_text(ask.subject)
    if tokens <= _TASK_SHARE * request.max_tokens:
        return ask
    chars = int(len(ask.subject) * _CUT_TASK_SHARE * request.max_tokens / tokens)
    return replace(ask, subject=both_ends(ask.subject, max(chars, _MIN_TASK_CHARS)))


def _listed_facts(request: SummaryRequest, form: SummaryForm, span: Sequence[Message], required: Ledger) -> Ledger:
    """Return the required facts and those that a form lists, the newest of each kind that its share has room for."""
    listed: list[Fact] = []
    for kind, share in form.lists.items():
        facts = form.facts(kind, span, request.ledger)
        added = _affordable(
            _first_to_list(facts, request.focus), request, int(request.max_tokens * form.room_share * share)
        )
        listed += (fact for fact in facts if fact in added)
    return Ledger((*required, *listed)) if listed else required


def _first_to_list(facts: Sequence[Fact], focus: str) -> Iterable[Fact]:
    """Return facts in the order in which they are listed as long as there is room: the newest, or about the focus."""
    newest_first = list(reversed(facts))
    if not focus:
        return newest_first
    shares = dict(zip(newest_first, Focus.of(focus).shares(fact.text for fact in newest_first), strict=True))
    return sorted(newest_first, key=lambda fact: -shares[fact])


def _affordable(facts: Iterable[Fact], request: SummaryRequest, max_tokens: int) -> set[Fact]:
    """Return the first of some facts, as many as there are tokens for."""
    found: set[Fact] = set()
    for fact in facts:
        max_tokens -= request.count_text(fact.text) + _LABEL_TOKENS
        if max_tokens < 0:
            break
        found.add(fact)
    return found
