"""Write a summary: ask the summariser, check its answer against its sources, and fall back when that fails."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace

from compact.core.audit.store import SummaryCache
from compact.core.engine.claims import SummaryClaiming
from compact.core.engine.emitter import EventEmitter
from compact.core.engine.events import SummaryCreatedEvent
from compact.core.errors import (
    SummaryEchoed,
    SummaryEmpty,
    SummaryFailed,
    SummaryRefused,
    SummaryTooLong,
    SummaryTruncated,
    SummaryUnreadable,
)
from compact.core.facts.constraints import ConstraintFinder
from compact.core.facts.extraction import find_facts
from compact.core.facts.ledger import REQUIRED, Fact, FactKind, Ledger, merged
from compact.core.facts.text import cut_line, first_line
from compact.core.facts.tool_calls import command_of, is_typed, path_of
from compact.core.messages.groups import calls_answered, group_messages
from compact.core.messages.message import Message, copy_plain, text_chars
from compact.core.messages.sensitivity import OPEN_SENSITIVITIES, is_open, withheld
from compact.core.messages.structure import all_but
from compact.core.messages.tokenizer import ProviderAwareTokenizer
from compact.core.plan.line_index import LineIndex
from compact.core.plan.plan import ClearRecord, CompactionPlan, StepFailure, SummarizationRecord
from compact.core.plan.renderer import summary_message
from compact.core.plan.stubs import render_cleared
from compact.core.plurals import quantity
from compact.core.session.session import Session
from compact.core.steps import SlowStep, Steps
from compact.core.summary.fitting import cut_to, joined, required_facts, shortened
from compact.core.summary.span_index import SpanIndex
from compact.core.summary.summarizer import (
    ModelSummarizer,
    Summarizer,
    SummaryCacheKey,
    SummaryRequest,
    create_summary_cache_key,
)
from compact.core.summary.summary import StructuredSummary, SummaryCheck
from compact.core.summary.verification import grounded, is_written, lacking
from compact.core.summary.writing import BY_CODE, SummaryWriting

SIMPLEST_FORM = "brief"
# The specification's ladder: half as long, twice at most.
_MAX_HALVINGS = 2
# Chosen: the smallest summary that is asked for after halving, and the smallest that a model is asked for at all.
_MIN_HALVED_TOKENS = 24
_MIN_MODEL_TOKENS = 32
# Chosen: asking for more would be a list of everything; what is still missing then is named in the report.
_MAX_MISSING_ASKED = 20
# Chosen: no text of use has so many characters to a token; most have about four.
_MAX_CHARS_PER_TOKEN, _USUAL_CHARS_PER_TOKEN = 50, 4
# Chosen: a client of a model keeps to its time limit by itself, and says better what took so long.
_MODEL_LIMIT_SECONDS = 5.0
_TOO_LONG = (SummaryTooLong, SummaryTruncated)
_NO_ANSWER = (SummaryRefused, SummaryEmpty, SummaryEchoed, SummaryUnreadable)


@dataclass(frozen=True, slots=True)
class Attempt:
    """How a summary is asked for: in which form, and how long it may be."""

    form: str
    max_tokens: int
    halvings: int = 0

    def next_after(self, error: Exception) -> Attempt | None:
        """Return what to try after a failure; None if nothing else would help.

        Too long, or cut off: half as long, twice at most. Refused, or no answer at all: the simplest form, once. What
        failed for any other reason (no connection, no money) would fail again.
        """
        can_halve = self.halvings < _MAX_HALVINGS and self.max_tokens >= 2 * _MIN_HALVED_TOKENS
        if isinstance(error, _TOO_LONG) and can_halve:
            return replace(self, max_tokens=self.max_tokens // 2, halvings=self.halvings + 1)
        if isinstance(error, _NO_ANSWER) and self.form != SIMPLEST_FORM:
            return replace(self, form=SIMPLEST_FORM)
        return None

    def __str__(self) -> str:
        return f"{self.form} in {self.max_tokens:,} tokens"


@dataclass(frozen=True, slots=True)
class SummaryRoom:
    """The room a planned summary has; weighed is the message as it will stand in the prompt."""

    pending: SummarizationRecord
    count_message: Callable[[Message], int]

    @property
    def max_tokens(self) -> int:
        """The most that the summary may take."""
        return self.pending.max_tokens

    def text(self, summary: StructuredSummary) -> str:
        """Return the summary as it will be read."""
        return summary_message(replace(self.pending, summary=summary)).text

    def tokens(self, summary: StructuredSummary) -> int:
        """Return what a summary takes."""
        return self.count_message(summary_message(replace(self.pending, summary=summary)))

    def fits(self, summary: StructuredSummary) -> bool:
        """Return True if there is room for it."""
        return self.tokens(summary) <= self.max_tokens

    def fits_half(self, summary: StructuredSummary) -> bool:
        """Return True if it leaves half of the room."""
        return self.tokens(summary) <= self.max_tokens // 2

    def record(self, summary: StructuredSummary) -> SummarizationRecord:
        """Return the record with its summary, weighed."""
        return replace(self.pending, summary=summary, tokens_after=self.tokens(summary))


@dataclass(frozen=True, slots=True)
class Draft:
    """A summary as it was answered, the facts it still lacks, and the strings in it that no source has."""

    summary: StructuredSummary
    missing: tuple[Fact, ...]
    ungrounded: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryDrafting:
    """Asks a summariser, and joins its answer with the facts that a summary must have.

    A summariser that puts facts into the ledger of its summary has chosen them itself; otherwise as many as there is
    room for are added, and the narrative gives way to the required ones.
    """

    summarizer: Summarizer
    emitter: EventEmitter
    may_be_empty: bool = False
    timeout_seconds: float | None = None

    @property
    def is_model(self) -> bool:
        """True if a model is asked."""
        return isinstance(self.summarizer, ModelSummarizer)

    def leaving_room(self, request: SummaryRequest, room: SummaryRoom) -> SummaryRequest:
        """Return the request with the room that is left beside the required facts, which have at most half of it."""
        if not self.is_model:
            return request
        required = required_facts(request.ledger, room.fits_half)
        taken = room.tokens(StructuredSummary(ledger=required))
        return replace(request, max_tokens=max(_MIN_MODEL_TOKENS, room.max_tokens - taken))

    def draft(self, session: Session, request: SummaryRequest, room: SummaryRoom) -> Steps[StructuredSummary]:
        """Return a summary that fits, with what was checked in it; raise what went wrong."""

        given = _copied(request) if self._is_foreign else request

        def call_summarizer() -> object:
            return self.summarizer(given)

        def call_summarizer_again() -> object:
            return self.summarizer(replace(given, missing=asked_again))

        first = self._checked((yield self._step(call_summarizer)), request, room)
        asked_again = self._facts_to_ask_for(first, request)
        if not asked_again:
            return self._completed(first, (), request, room)
        second = first
        try:
            second = self._checked((yield self._step(call_summarizer_again)), request, room)
        except Exception as error:  # noqa: BLE001 - a summariser is a plug-in
            self.emitter.error(session, error, fallback="kept the first answer, which lacks some facts")
        best = second if len(second.missing) < len(first.missing) else first
        return self._completed(best, asked_again, request, room)

    def _step(self, call: Callable[[], object]) -> Callable[[], object]:
        """Return the call as a step: what code writes is soon done, but a model or a user's function may take long."""
        if not self._is_foreign:
            return call
        own_limit = 0.0 if not self.is_model else _MODEL_LIMIT_SECONDS
        seconds = None if self.timeout_seconds is None else self.timeout_seconds + own_limit
        return SlowStep(call, "the summariser", seconds, "summarizer.timeout_seconds")

    @property
    def _is_foreign(self) -> bool:
        """True if a model or a user's function writes, of which nothing is known."""
        return self.is_model or not self.may_be_empty

    def _checked(self, answer: object, request: SummaryRequest, room: SummaryRoom) -> Draft:
        if not isinstance(answer, StructuredSummary):
            raise TypeError(f"a summariser returns a StructuredSummary, not {type(answer).__name__}")
        if self._is_foreign and (chars := _chars_in(answer)) > _MAX_CHARS_PER_TOKEN * max(room.max_tokens, 1_000):
            # Not counted: checking and counting megabytes takes longer than the turn may.
            raise SummaryTooLong(tokens=chars // _USUAL_CHARS_PER_TOKEN, max_tokens=room.max_tokens)
        ledger = _with_message_ids(request.ledger, request) if is_written(answer) else request.ledger
        summary, ungrounded = grounded(answer, request.span, ledger)
        if self._is_empty(summary):
            raise SummaryEmpty(
                "nothing in the summary is in its sources" if ungrounded else "the summariser wrote nothing"
            )
        whole = self._with_ledger(summary, request, room)
        # A model may have settled some of what code found open.
        expected = answer.ledger if self.is_model and answer.ledger else request.ledger
        return Draft(whole, lacking(whole, expected, text=room.text(whole)), ungrounded)

    def _with_ledger(self, summary: StructuredSummary, request: SummaryRequest, room: SummaryRoom) -> StructuredSummary:
        """Return the summary with as much of the ledger as there is room for."""
        has_chosen = bool(summary.ledger or summary.excerpts) and not self.is_model
        required = required_facts(request.ledger, room.fits_half)
        bare = replace(summary, ledger=required) if self.is_model else summary
        if not room.fits(bare):
            raise SummaryTooLong(tokens=room.tokens(bare), max_tokens=room.max_tokens)
        if has_chosen:
            return summary
        uncut = Ledger(tuple(fact for fact in request.ledger if fact.kind in REQUIRED))
        if room.fits(replace(summary, ledger=uncut)):
            required = uncut
        # A fact that was cut stands in place of the whole one, never beside it.
        others = (fact for fact in summary.ledger or request.ledger if fact.kind not in REQUIRED)
        whole = joined(summary, merged((*others, *required)), required, room.fits)
        return whole or shortened(replace(summary, ledger=required), room.fits)

    def _is_empty(self, summary: StructuredSummary) -> bool:
        """Return True if a summary says nothing; one by code that has no room for anything is none the less right."""
        written = (summary.decisions, summary.tool_outcomes, summary.open_items, summary.facts, summary.narrative)
        chosen = () if self.is_model else (summary.excerpts, summary.ledger)
        return not self.may_be_empty and not any((*written, *chosen))

    def _facts_to_ask_for(self, draft: Draft, request: SummaryRequest) -> tuple[str, ...]:
        """Return the missing facts to ask a model for once more; none if there would be no room for them either."""
        if not self.is_model:
            return ()
        texts = tuple(fact.text for fact in draft.missing[:_MAX_MISSING_ASKED])
        needed = sum(map(request.count_text, texts))
        return texts if needed <= request.max_tokens // 2 else ()

    def _completed(
        self, draft: Draft, asked_again: tuple[str, ...], request: SummaryRequest, room: SummaryRoom
    ) -> StructuredSummary:
        """Return the draft with as many of its missing facts as there is room for, and the result of the check."""
        summary = draft.summary
        appended: list[str] = []
        for fact in draft.missing:
            fuller = summary.with_ledger(Ledger((*summary.ledger.facts, fact)))
            if room.fits(fuller):
                summary = fuller
                appended.append(fact.text)
        required = sum(fact.kind in REQUIRED for fact in request.ledger)
        check = SummaryCheck(required, asked_again, tuple(appended), draft.ungrounded)
        return replace(summary, check=check)


def _copied(request: SummaryRequest) -> SummaryRequest:
    """Return the request with messages of its own: a summariser may edit what it gets, but not the log."""
    copies: dict[int, Message] = {}

    def copied(messages: Iterable[Message]) -> tuple[Message, ...]:
        for message in messages:
            if id(message) not in copies:
                parts = message.content if isinstance(message.content, str) else copy_plain(list(message.content or ()))
                content = None if message.content is None else parts
                copies[id(message)] = replace(message, content=content, original=copy_plain(message.original))
        return tuple(copies[id(message)] for message in messages)

    spans = {"messages": copied(request.messages), "span": copied(request.span), "history": copied(request.history)}
    return replace(request, **spans)


def _chars_in(summary: StructuredSummary) -> int:
    """Return about how long a summary is, without reading it."""
    texts = [summary.narrative, *summary.facts, *(item.item for item in summary.open_items)]
    texts += [outcome.outcome for outcome in summary.tool_outcomes] + [fact.text for fact in summary.ledger]
    texts += [text for decision in summary.decisions for text in (decision.decision, decision.rationale)]
    return sum(map(len, texts))


def _with_message_ids(ledger: Ledger, request: SummaryRequest) -> Ledger:
    """Return the ledger with the ids of messages, which a summary may cite."""
    ids: Iterable[Fact] = (Fact(FactKind.MENTION, message.id) for message in request.span)
    return Ledger((*ledger.facts, *ids))


def _changed(messages: Sequence[Message], changes: Mapping[int, Message]) -> Sequence[Message]:
    """Return messages with others at some places; the very same, if there are none."""
    if not changes:
        return messages
    changed = list(messages)
    for place, message in changes.items():
        changed[place] = message
    return changed


def _cleared_outside(
    span: Set[str], messages: Sequence[Message], places: Mapping[str, int], plan: CompactionPlan
) -> dict[int, Message]:
    """Return, by their places, the messages outside a span of which a prompt shows only a part, as it shows them."""
    cleared: dict[int, Message] = {}
    cut = {message_id for record in plan.clearings for message_id in record.span} & places.keys()
    for message_id in cut.difference(span):
        place, record = places[message_id], plan.get_action(message_id)[1]
        # What is withheld is a line already, to which the ranges of a record do not belong.
        if isinstance(record, ClearRecord) and is_open(messages[place]):
            cleared[place] = render_cleared(messages[place], record)
    return cleared


def _asks_in(messages: Sequence[Message], known: LineIndex, changed: Set[int]) -> tuple[Sequence[int], Sequence[int]]:
    """Return the places of what people typed, and how long each is; known but for messages that were changed since."""
    typed = {place for place in changed if is_typed(messages[place])}
    if not typed and changed.isdisjoint(known.asks):
        return tuple(known.asks), tuple(known.ask_chars)
    asks = sorted({*known.asks} - changed | typed)
    return asks, [text_chars(messages[place]) for place in asks]


def _artifact_facts(pending: SummarizationRecord, span: Sequence[Message]) -> list[Fact]:
    """Return a fact for each artifact that a summary takes in: its id, and which call gave it."""
    if not pending.artifacts:
        return []
    calls = {span[index].id: call for index, call in calls_answered(span, group_messages(span)).items()}
    facts: list[Fact] = []
    for record in pending.artifacts:
        call = calls.get(record.span.first)
        subject = path_of(call) or first_line(command_of(call) or "") if call else ""
        attached = next((f"attachment {one.line}" for one in record.attachments), record.reason)
        detail = cut_line(f"{call.name} {subject}".strip()) if call else attached
        facts.append(Fact(FactKind.ARTIFACT, record.artifact_id, detail, record.span.message_ids))
    return facts


def _with_carried_facts(before: SummarizationRecord | None, found: Ledger) -> Ledger:
    """Return what was found, with facts of the summary before that no message of the log can give again.

    There are such where the log began with a summary: what is then found as the task was only asked later.
    """
    known = before.summary.ledger if before and before.summary else Ledger()
    carried = Ledger(tuple(fact for fact in known if not fact.source_ids))
    if carried.of(FactKind.TASK):
        asked_later = tuple(replace(fact, kind=FactKind.LATEST_ASK) for fact in found.of(FactKind.TASK))
        latest = found.of(FactKind.LATEST_ASK) or asked_later
        found = Ledger((*latest, *found.without((FactKind.TASK, FactKind.LATEST_ASK))))
    if found.of(FactKind.LATEST_ASK):
        carried = carried.without((FactKind.LATEST_ASK,))
    return merged((*carried, *found)) if carried else found


def no_clock() -> float:
    """Know no time."""
    return 0.0


def always_available() -> None:
    """Let the summariser be asked."""


def ignore_outcome(error: Exception | None) -> None:
    """Take no note of how it went."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryWriter:
    """Turns a summary that is planned into one that is written.

    `by_code` chooses what stands for a span whose summary failed; without it only the facts do. `check_available`
    raises if the summariser is better left alone for now, and `report_outcome` gets the error of each summary (None if
    there was none). Summaries of a `ModelSummarizer` are looked up in `cache` first. `name` is the summariser's own:
    that of its model, or `code`; `clock` tells seconds. Summaries are archived and exported, and a model may be
    another's: neither has what is more than internal, and `default_sensitivity` is that of results that do not say.
    """

    summarizer: Summarizer
    tokenizer: ProviderAwareTokenizer
    claiming: SummaryClaiming
    emitter: EventEmitter
    constraints: ConstraintFinder
    form: str = "task_state"
    on_failure: str = "prune"
    may_be_empty: bool = False
    cache: SummaryCache | None = None
    tenant_id: str = ""
    by_code: Summarizer | None = None
    check_available: Callable[[], None] = always_available
    report_outcome: Callable[[Exception | None], None] = ignore_outcome
    name: str = BY_CODE
    # The most that one answer of the summariser may take; None for one that keeps to a time of its own.
    timeout_seconds: float | None = None
    clock: Callable[[], float] = no_clock
    default_sensitivity: str = "internal"

    def write(
        self,
        session: Session,
        plan: CompactionPlan,
        pending: SummarizationRecord,
        *,
        note: str,
        may_keep: bool,
        focus: str = "",
    ) -> Steps[SummarizationRecord | None]:
        """Return the record of a new plan with its summary.

        If writing fails, what code chooses stands for the span, or None is returned if everything is to stay as it is.
        """
        room = SummaryRoom(pending, self.tokenizer.count_message)
        request = self._request(session, plan, room, note=note, focus=focus)
        started = self.clock()
        try:
            return (yield from self._write_once(session, request, room))
        except Exception as error:
            if self.on_failure == "raise":
                raise
            keeps = self.on_failure == "keep" and may_keep
            self.emitter.error(session, error, fallback="keep" if keeps else "pruning-only")
            session.note_failure(self._failure(error, keeps=keeps))
            if keeps:
                return None
            return (yield from self._pruning_only(session, request, room, started))

    def _failure(self, error: Exception, *, keeps: bool) -> StepFailure:
        instead = "a summary by code replaces the messages" if self.by_code else "only facts replace the messages"
        instead = "nothing was compacted: the prompt stayed as it was" if keeps else instead
        return StepFailure(what="summary", error_type=type(error).__name__, message=str(error), instead=instead)

    def _pruning_only(
        self, session: Session, request: SummaryRequest, room: SummaryRoom, started: float
    ) -> Steps[SummarizationRecord]:
        """Return what stands for the span when no summary was written: facts, the summary before, and chosen lines."""
        by_code, chosen = self.by_code, StructuredSummary()
        if by_code is not None:
            try:
                chosen = yield lambda: by_code(replace(request, max_tokens=room.max_tokens))
            except Exception as error:  # noqa: BLE001 - a summariser is a plug-in
                self.emitter.error(session, error, fallback="the facts alone")
        before = request.previous or StructuredSummary()
        ledger, excerpts = chosen.ledger or request.ledger, chosen.excerpts or before.excerpts
        spent = self._writing(request, started)
        writing = replace(spent, summarizer=BY_CODE, instead_of=self.name, is_counted=True)
        known = replace(before, ledger=ledger, excerpts=excerpts, check=None, writing=writing)
        record = room.record(cut_to(known, room.fits))
        return replace(record, reason=f"{record.reason}; the summary failed, code chose what stands for them")

    def prefetch(self, session: Session, pending: SummarizationRecord) -> Steps[None]:
        """Write a summary before it is needed, and store what it stands for."""
        room = SummaryRoom(pending, self.tokenizer.count_message)
        record = yield from self._write_once(session, self._request(session, session.plan, room), room)
        yield from self.claiming.store_prefetched(session, pending, record)

    def _request(
        self, session: Session, plan: CompactionPlan, room: SummaryRoom, *, note: str = "", focus: str = ""
    ) -> SummaryRequest:
        """Return what the summariser gets: the messages that are new to the span, and the summary before them."""
        pending, before = room.pending, session.plan.summary
        structure, span = session.structure, pending.span.ids
        closed = self._closed(session)
        view = _changed(session.log.view, closed)
        cleared = _cleared_outside(span, view, structure.places, plan)
        history = _changed(view, cleared)
        beside = structure.outside(before.span.ids if before else frozenset())
        new = tuple(view[place] for place in beside if view[place].id in span)
        outside = structure.outside(span)
        messages = tuple(all_but(view, outside))
        facts = find_facts(
            messages,
            _artifact_facts(pending, messages),
            constraints=session.constraint_reading.of(self.constraints),
            history=view,
            inside=span,
            reading=session.span_reading,
        )
        closed_ids = frozenset(message.id for message in closed.values())
        asks, ask_chars = _asks_in(history, session.line_index, closed.keys() | cleared.keys())
        index = SpanIndex(
            groups=tuple(structure.groups),
            places=structure.places,
            asks=asks,
            ask_chars=ask_chars,
            span=all_but(range(len(view)), outside),
        )
        request = SummaryRequest(
            messages=new,
            span=messages,
            history=tuple(history),
            index=index,
            previous=before.summary.without_sources(closed_ids) if before and before.summary else None,
            ledger=_with_carried_facts(before, facts),
            max_tokens=pending.max_tokens,
            count_text=self.tokenizer.count_text,
            form=self.form,
            note=note,
            focus=focus,
            version=pending.version,
            session_id=session.session_id,
            spending=session.spending,
        )
        return self._drafting.leaving_room(request, room)

    def _closed(self, session: Session) -> dict[int, Message]:
        """Return, by their places, what stands for messages that may not leave."""
        view, default = session.log.view, self.default_sensitivity
        # Most messages have no marks at all.
        may_be_closed = session.line_index.marked if default in OPEN_SENSITIVITIES else range(len(view))
        return {place: withheld(view[place], default) for place in may_be_closed if not is_open(view[place], default)}

    @property
    def _drafting(self) -> SummaryDrafting:
        return SummaryDrafting(
            summarizer=self.summarizer,
            emitter=self.emitter,
            may_be_empty=self.may_be_empty,
            timeout_seconds=self.timeout_seconds,
        )

    def _write_once(self, session: Session, request: SummaryRequest, room: SummaryRoom) -> Steps[SummarizationRecord]:
        """Return the one summary of this span, whoever wrote it; one that was written for more room is cut."""
        used_form = self.form

        def write() -> Steps[StructuredSummary]:
            nonlocal used_form
            summary, used_form = yield from self._cached_or_new(session, request, room)
            return summary

        with self.emitter.operation(session, "summary"):
            asked = {"note": request.note, "focus": request.focus}
            summary = yield from self.claiming.write_once(session, room.pending, write, **asked)
            summary = cut_to(summary, room.fits)
            record = room.record(summary)
            self.emitter.emit(
                session,
                SummaryCreatedEvent,
                strategy=used_form,
                input_messages=len(record.span),
                summary_tokens=record.tokens_after,
                compression_ratio=round(record.tokens_after / max(1, record.tokens_before), 4),
                summary=room.text(summary),
            )
        return record

    def _cached_or_new(
        self, session: Session, request: SummaryRequest, room: SummaryRoom
    ) -> Steps[tuple[StructuredSummary, str]]:
        """Return a summary that was made of the very same before, or a new one; and its form."""
        key, started = self._cache_key(request), self.clock()
        found = yield from self._read_cache(session, key)
        if found:
            return replace(found, writing=SummaryWriting(summarizer=self.name, from_cache=True)), request.form
        self.check_available()
        try:
            summary, form = yield from self._attempts(session, request, room)
        except Exception as error:
            self.report_outcome(error)
            raise
        self.report_outcome(None)
        summary = replace(summary, writing=self._writing(request, started))
        if form == request.form:  # a fallback is not worth remembering
            yield from self._write_cache(session, key, summary)
        return summary, form

    def _writing(self, request: SummaryRequest, started: float) -> SummaryWriting:
        """Return what writing a summary has taken so far."""
        tally = request.tally
        return SummaryWriting(
            summarizer=self.name,
            calls=tally.calls,
            input_tokens=tally.input_tokens,
            output_tokens=tally.output_tokens,
            seconds=round(self.clock() - started, 3),
            is_counted=self.name == BY_CODE or isinstance(self.summarizer, ModelSummarizer),
        )

    def _attempts(
        self, session: Session, request: SummaryRequest, room: SummaryRoom
    ) -> Steps[tuple[StructuredSummary, str]]:
        """Ask; if that fails, ask for less or for a simpler form, as long as that may help."""
        attempt, tried = Attempt(request.form, request.max_tokens), tuple[str, ...]()
        while True:
            asked = replace(request, form=attempt.form, max_tokens=attempt.max_tokens)
            try:
                return (yield from self._drafting.draft(session, asked, room)), attempt.form
            except Exception as error:
                tried = (*tried, f"{attempt}, {quantity(len(request.messages), 'message')} ({type(error).__name__})")
                if isinstance(error, SummaryFailed):
                    error.note_attempts(tried)
                following = attempt.next_after(error)
                if following is None:
                    raise
                self.emitter.error(session, error, fallback=f"asked again: {following}")
                attempt = following

    # -- the cache --------------------------------------------------------------------------------------------------

    def _cache_key(self, request: SummaryRequest) -> SummaryCacheKey | None:
        if self.cache is None or not isinstance(self.summarizer, ModelSummarizer):
            return None
        identity = self.summarizer.identity(request.form)
        return create_summary_cache_key(
            request, model=identity.model, prompt_version=identity.prompt_version, tenant_id=self.tenant_id
        )

    def _read_cache(self, session: Session, key: SummaryCacheKey | None) -> Steps[StructuredSummary | None]:
        cache = self.cache
        if cache is None or key is None:
            return None
        try:
            return (yield from self.claiming.persistence.call_store(lambda: cache.get(key)))
        except Exception as error:  # noqa: BLE001 - a store is a plug-in
            self.emitter.error(session, error, fallback="asked the summariser without looking in the cache")
            return None

    def _write_cache(self, session: Session, key: SummaryCacheKey | None, summary: StructuredSummary) -> Steps[None]:
        cache = self.cache
        if cache is None or key is None or session.is_deleted:
            return
        try:
            yield from self.claiming.persistence.call_store(
                lambda: cache.put(key, summary, session_id=session.session_id)
            )
        except Exception as error:  # noqa: BLE001 - a store is a plug-in
            self.emitter.error(session, error, fallback="the summary is used, but not remembered")
