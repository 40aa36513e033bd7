"""Answers "did the agent see this?": whether a phrase is in the newest prompt, where, and which calls lacked it.

The prompts are the truth: what a summary says, what a stub keeps and what was injected is in the prompt, and what was
taken out is not, whatever the log has.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from compact.core.audit.phrases import Phrase, PhraseExcerpt
from compact.core.audit.records import (
    AddedMessage,
    BranchView,
    CallHistory,
    ModelCall,
    PlanVersion,
    SentPrompt,
    SessionHead,
    StoredMessage,
)
from compact.core.audit.sent_calls import PlannedPrompt, TextTable, count_in, is_summary
from compact.core.errors import CompactError
from compact.core.messages.legality import repair_chat
from compact.core.messages.message import Message, Slot
from compact.core.plan.plan import CompactionAction, CompactionPlan
from compact.core.plan.renderer import PromptRenderer
from compact.core.short_repr import short_repr
from compact.core.summary.summary import unquoted

LEFT_BEHIND = "left behind when the past was edited"
_STATES = {
    CompactionAction.INCLUDE: "in the prompt",
    CompactionAction.CLEAR: "cleared",
    CompactionAction.SUMMARIZE: "summarised",
    CompactionAction.EXTERNALIZE: "externalised",
    CompactionAction.DROP: "dropped",
}
# Chosen: so many texts are searched in about a millisecond, after which somebody may have lost interest.
_TEXTS_AT_ONCE = 1_000


class SearchCancelled(CompactError):
    """Whoever asked for a phrase does not wait for the answer any more."""

    code = "search_cancelled"


@dataclass(frozen=True, slots=True)
class CallRange:
    """Calls of one session that follow each other: the numbers of the first and the last, and how many they are."""

    first: int
    last: int
    calls: int

    def __str__(self) -> str:
        return str(self.first) if self.first == self.last else f"{self.first}–{self.last}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PhrasePlace:
    """One message of the newest prompt that has the phrase.

    `kind` says what it is: `message` (as it came), `stub`, `summary`, `repair` (added to make the prompt legal),
    `injected` or `rehydrated`. `seq` is the place of its log entry, 0 where it has none.
    """

    kind: str
    message_id: str
    seq: int
    role: str
    count: int
    excerpt: PhraseExcerpt


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """One message of the log that has the phrase, and what became of it.

    `is_visible` says whether the newest prompt has the phrase through this message: in it, or in what stands for it
    (`seen_in`: `message`, `stub` or `summary`). Where it is not, `strategy` and `reason` say who took it out and why,
    since plan `since_version`. `calls_without` are the calls since the message came that had the phrase nowhere.
    """

    message_id: str
    seq: int
    role: str
    excerpt: str
    marks: tuple[tuple[int, int], ...]
    count: int
    state: str
    is_visible: bool
    seen_in: str
    since_version: int
    since_at: float
    strategy: str
    reason: str
    calls_without: tuple[CallRange, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PhraseTrace:
    """Where a phrase is: in the newest prompt or not, in which messages of the log, and which calls went without it.

    The newest prompt is that of the log and the plan as they stand, with what was added to the newest call.
    `count` is how often it has the phrase, in `places`. After a plan was restored, or the past edited, the newest call
    has not seen that prompt yet: `is_changed_since_call` is True then, and `newest_call_count` says what that call had.
    `calls_without` are the calls that had the phrase nowhere, from the first that could have had it. Iterating over a
    trace yields its sightings. Where a limit was asked for, `sightings_total` and `places_total` count all of them.
    """

    phrase: str
    count: int = 0
    places: tuple[PhrasePlace, ...] = ()
    places_total: int = 0
    place_counts: Mapping[str, int] = field(default_factory=dict[str, int])
    sightings: tuple[Sighting, ...] = ()
    sightings_total: int = 0
    calls_total: int = 0
    calls_without: tuple[CallRange, ...] = ()
    last_call_with: int | None = None
    newest_call: int | None = None
    newest_call_count: int = 0
    is_changed_since_call: bool = False
    __repr__ = short_repr

    @property
    def is_in_prompt(self) -> bool:
        """True if the newest prompt has the phrase."""
        return self.count > 0

    @property
    def is_known(self) -> bool:
        """True if the log or any prompt ever had the phrase."""
        return bool(self.sightings_total or self.count or self.last_call_with is not None)

    @property
    def calls_without_total(self) -> int:
        """How many calls went out without the phrase."""
        return sum(found.calls for found in self.calls_without)

    def __iter__(self) -> Iterator[Sighting]:
        return iter(self.sightings)

    def __len__(self) -> int:
        return len(self.sightings)

    def __getitem__(self, place: int) -> Sighting:
        return self.sightings[place]


@dataclass(frozen=True, slots=True)
class _ShownMessage:
    """A message of the newest prompt: what it is, and the numbers of its texts."""

    kind: str
    slot: Slot
    numbers: tuple[int, ...]


@dataclass(slots=True)
class _CallGroup:
    """Calls under one plan on one branch: their places among all calls, and their prompt once it was needed."""

    plan: CompactionPlan
    # What the last of them could see; None for a branch of the log.
    messages: Sequence[StoredMessage] | None = None
    places: list[int] = field(default_factory=list[int])
    prompt: PlannedPrompt | None = None

    def render(self, messages: Sequence[StoredMessage], table: TextTable) -> None:
        """Render the prompt of these calls, from what the last of them could see."""
        self.prompt = PlannedPrompt(messages, self.plan, table)


class PhraseIndex:
    """The texts of one session, its log and its prompts, in which phrases are looked for; it grows with the session."""

    def __init__(self, session_id: str) -> None:
        self._table = TextTable()
        self._calls: list[ModelCall] = []
        self._added: list[tuple[AddedMessage, ...]] = []
        self._branches: dict[int, BranchView] = {0: BranchView()}
        self._groups: dict[object, _CallGroup] = {}
        self._plans: tuple[PlanVersion, ...] = ()
        self._by_version: dict[int, CompactionPlan] = {}
        self._plan = self._no_plan = CompactionPlan(session_id)
        self._head: SessionHead | None = None
        self._view: Sequence[StoredMessage] = ()
        self._view_ids: frozenset[str] = frozenset()
        self._shown: Sequence[_ShownMessage] | None = None

    # -- what it is made of ---------------------------------------------------------------------------------------

    @property
    def last_seq(self) -> int:
        """How many log entries it has."""
        return len(self._table.log)

    @property
    def last_call(self) -> int:
        """The number of the newest call it has."""
        return self._calls[-1].number if self._calls else 0

    @property
    def last_branch(self) -> int:
        """The newest branch it has."""
        return max(self._branches)

    def add_entries(self, entries: Sequence[StoredMessage]) -> None:
        """Take in the next entries of the log."""
        for entry in entries:
            self._table.add_entry(entry)

    def set_plans(self, plans: Sequence[PlanVersion]) -> None:
        """Take every plan of the session."""
        self._plans = tuple(plans)
        self._by_version = {entry.plan.version: entry.plan for entry in plans}

    def add_calls(self, history: CallHistory) -> None:
        """Take in the calls and branches that came after those it has; plans and entries are there already."""
        if history.head == self._head and not history.calls:
            return
        self._head = history.head
        self._branches.update(history.branches)
        for call in history.calls:
            self._add_call(call, history.added.get(call.number, ()), (call.branch, call.plan_version))
        view = self._table.view(self._branches[history.head.branch], history.head.last_seq)
        self._stand_at(history.head.plan_version, view)

    def add_sent(self, prompts: Sequence[SentPrompt], *, plan_version: int, view_ids: Sequence[str]) -> None:
        """Take in calls one by one, from a store that cannot tell what all of them were made of."""
        for sent in prompts:
            self._groups[sent.call.number] = _CallGroup(sent.plan, sent.messages)
            self._add_call(sent.call, sent.added, sent.call.number)
        self._stand_at(plan_version, [self._table.entries[i] for i in view_ids])

    def _add_call(self, call: ModelCall, added: tuple[AddedMessage, ...], key: object) -> None:
        group = self._groups.get(key)
        if group is None:
            group = _CallGroup(self._by_version.get(call.plan_version, self._no_plan))
            self._groups[key] = group
        group.places.append(len(self._calls))
        group.prompt = None
        self._calls.append(call)
        self._added.append(added)

    def _stand_at(self, plan_version: int, view: Sequence[StoredMessage]) -> None:
        self._plan, self._view, self._shown = self._by_version.get(plan_version, self._no_plan), view, None
        self._view_ids = frozenset(entry.message.id for entry in view)

    # -- what is asked ----------------------------------------------------------------------------------------------

    def trace(
        self,
        text: str,
        *,
        offset: int = 0,
        limit: int | None = None,
        should_stop: Callable[[], bool] = lambda: False,
    ) -> PhraseTrace:
        """Return where a phrase is; with `limit` only so many sightings, behind the first `offset`, and places."""
        phrase = Phrase(text)
        if phrase.is_empty:
            return PhraseTrace(phrase=text)
        shown = self._shown_messages()
        self._render_calls(should_stop)
        counts = self._count(phrase, should_stop)
        hits = [(entry, counts[n]) for n, entry in self._table.numbered_entries() if counts[n]]
        places = [(one, found) for one in shown if (found := count_in(one.numbers, counts))]
        calls = _CallsWithout(self._calls, self._totals(counts), first_seq=hits[0][0].seq if hits else None)
        chosen = islice(hits, offset, None if limit is None else offset + limit)
        seen_in = self._seen_in(places)
        return PhraseTrace(
            phrase=text,
            count=sum(found for _, found in places),
            places=tuple(self._place(phrase, one, found) for one, found in places[:limit]),
            places_total=len(places),
            place_counts=_counted(one.kind for one, _ in places),
            sightings=tuple(self._sighting(phrase, entry, found, seen_in, calls) for entry, found in chosen),
            sightings_total=len(hits),
            calls_total=len(self._calls),
            calls_without=calls.since(0),
            last_call_with=calls.last_with,
            newest_call=self._calls[-1].number if self._calls else None,
            newest_call_count=calls.totals[-1] if self._calls else 0,
            is_changed_since_call=not self._is_newest_call_current,
        )

    def _count(self, phrase: Phrase, should_stop: Callable[[], bool]) -> list[int]:
        """Return how often the phrase is in each text."""
        counts: list[int] = []
        for first in range(0, len(self._table.texts), _TEXTS_AT_ONCE):
            _check(should_stop)
            counts += self._table.count(phrase.folded, first=first, last=first + _TEXTS_AT_ONCE)
        return counts

    def _render_calls(self, should_stop: Callable[[], bool]) -> None:
        for group in self._groups.values():
            if group.prompt is None:
                _check(should_stop)
                last = self._calls[group.places[-1]]
                messages = group.messages or self._table.view(self._branches[last.branch], last.last_seq)
                group.render(messages, self._table)
        for added in self._added:
            for piece in added:
                self._table.number_of(piece.message)

    def _totals(self, counts: Sequence[int]) -> list[int]:
        """Return how often the phrase is in the prompt of each call."""
        totals = [sum(counts[self._table.number_of(piece.message)] for piece in added) for added in self._added]
        for group in self._groups.values():
            if group.prompt:
                found = group.prompt.totals(counts, [self._calls[place].last_seq for place in group.places])
                for place, count in zip(group.places, found, strict=True):
                    totals[place] += count
        return totals

    # -- the newest prompt ------------------------------------------------------------------------------------------

    @property
    def _is_newest_call_current(self) -> bool:
        """True if the prompt as it stands is the one that the newest call was made with."""
        if not self._calls:
            return True
        newest = self._calls[-1]
        is_same_view = newest.last_seq == len(self._table.log) and newest.branch == self.last_branch
        return is_same_view and newest.plan_version == self._plan.version

    def _shown_messages(self) -> Sequence[_ShownMessage]:
        if self._shown is None:
            self._shown = list(self._read_prompt())
        return self._shown

    def _read_prompt(self) -> Iterator[_ShownMessage]:
        plan, table, summary = self._plan, self._table, self._plan.summary
        hidden = plan.hidden_ids()
        messages = [entry.message for entry in self._view if entry.message.id not in hidden]
        for slot in repair_chat(PromptRenderer().render(messages, plan).slots)[0]:
            if is_summary(slot, summary):
                yield _ShownMessage("summary", slot, table.numbers_of_summary(summary))
            elif not slot.ids:
                yield _ShownMessage("repair", slot, (table.number_of(slot.message),))
            else:
                is_whole = plan.get_action(slot.ids[0])[0] is CompactionAction.INCLUDE
                yield _ShownMessage("message" if is_whole else "stub", slot, (table.number_of(slot.message),))
        if self._added and self._is_newest_call_current:
            for piece in self._added[-1]:
                yield _ShownMessage(piece.kind, Slot(piece.message, ()), (table.number_of(piece.message),))

    def _place(self, phrase: Phrase, shown: _ShownMessage, count: int) -> PhrasePlace:
        message = shown.slot.message
        if shown.kind == "summary":
            message = Message(message.role, unquoted(message.text), id=message.id)
        entry = self._table.entries.get(shown.slot.ids[0]) if shown.kind in ("message", "stub") else None
        return PhrasePlace(
            kind=shown.kind,
            message_id=entry.message.id if entry else message.id,
            seq=entry.seq if entry else 0,
            role=message.role,
            count=count,
            excerpt=phrase.excerpt(message),
        )

    def _seen_in(self, places: Sequence[tuple[_ShownMessage, int]]) -> dict[str, str]:
        """Return what shows the phrase for each log entry by which the newest prompt has it."""
        seen: dict[str, str] = {}
        for shown, _ in places:
            if shown.kind == "summary":
                for message_id in shown.slot.ids:
                    if message_id in self._view_ids and not self._plan.shows(message_id):
                        seen.setdefault(message_id, "summary")
            elif shown.slot.ids:
                seen[shown.slot.ids[0]] = shown.kind
        return seen

    # -- the log ----------------------------------------------------------------------------------------------------

    def _sighting(
        self, phrase: Phrase, entry: StoredMessage, count: int, seen_in: Mapping[str, str], calls: _CallsWithout
    ) -> Sighting:
        message = entry.message
        action, record = self._plan.get_action(message.id)
        since = self._since(message.id, action) if record else None
        # Who took it out is who decided first; later plans only go on with it.
        record = since.plan.get_action(message.id)[1] if since else record
        excerpt = phrase.excerpt(message)
        return Sighting(
            message_id=message.id,
            seq=entry.seq,
            role=message.role,
            excerpt=excerpt.text,
            marks=excerpt.marks,
            count=count,
            state=_STATES[action] if message.id in self._view_ids else LEFT_BEHIND,
            is_visible=message.id in seen_in,
            seen_in=seen_in.get(message.id, ""),
            since_version=since.plan.version if since else 0,
            since_at=since.at if since else 0.0,
            strategy=record.strategy if record else "",
            reason=record.reason if record else "",
            calls_without=calls.since(entry.seq),
        )

    def _since(self, message_id: str, action: CompactionAction) -> PlanVersion | None:
        """Return the plan from which on, without a break, a message has had its present action."""
        since: PlanVersion | None = None
        for entry in reversed(self._plans):
            if entry.plan.get_action(message_id)[0] is not action:
                break
            since = entry
        return since


class _CallsWithout:
    """Which calls had a phrase nowhere, from the first that could have had it."""

    def __init__(self, calls: Sequence[ModelCall], totals: Sequence[int], *, first_seq: int | None) -> None:
        self.totals = totals
        self._calls, self._last_seqs = calls, [call.last_seq for call in calls]
        with_it = [place for place, total in enumerate(totals) if total]
        self.last_with = calls[with_it[-1]].number if with_it else None
        firsts = [with_it[0]] if with_it else []
        firsts += [bisect_left(self._last_seqs, first_seq)] if first_seq is not None else []
        self._ranges = list(self._find_ranges(min(firsts, default=len(calls))))
        self._ends = [end for _, end in self._ranges]

    def since(self, seq: int) -> tuple[CallRange, ...]:
        """Return the calls without it that went out when the log had an entry already."""
        first = bisect_left(self._last_seqs, seq)
        later = self._ranges[bisect_right(self._ends, first) :]
        return tuple(self._range(max(start, first), end) for start, end in later)

    def _range(self, start: int, end: int) -> CallRange:
        return CallRange(self._calls[start].number, self._calls[end - 1].number, end - start)

    def _find_ranges(self, first: int) -> Iterator[tuple[int, int]]:
        """Yield where each run of calls without it begins and ends."""
        start: int | None = None
        for place in range(first, len(self._calls) + 1):
            is_without = place < len(self._calls) and not self.totals[place]
            if is_without and start is None:
                start = place
            elif not is_without and start is not None:
                yield start, place
                start = None


def _counted(kinds: Iterator[str]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for kind in kinds:
        counts[kind] = counts.get(kind, 0) + 1
    return counts


def _check(should_stop: Callable[[], bool]) -> None:
    if should_stop():
        raise SearchCancelled("the search was cancelled")
