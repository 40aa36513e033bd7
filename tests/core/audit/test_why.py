"""Where a phrase is: what is said of prompts is what plain counting finds in them, call by call."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import pytest

from compact.core.audit.phrases import fold
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
from compact.core.audit.why import CallRange, PhraseIndex, PhraseTrace, SearchCancelled
from compact.core.log.forms import EntryForm
from compact.core.messages.legality import repair_chat
from compact.core.messages.message import Message, ToolCall
from compact.core.messages.turn_order import LEFT_OUT
from compact.core.plan.plan import (
    ClearRecord,
    CompactionPlan,
    DropRecord,
    Record,
    SpanReference,
    SummarizationRecord,
)
from compact.core.plan.renderer import PromptRenderer, with_lines
from compact.core.summary.summary import Excerpt, StructuredSummary, unquoted

NOTE = Message("user", "[docs: added for this call, not a message from the user]\nthe standing note", id="note")


@dataclass
class Told:
    """A session as a store has it, and every prompt that went out: the prompts are the truth."""

    entries: list[StoredMessage] = field(default_factory=list[StoredMessage])
    plans: list[PlanVersion] = field(default_factory=lambda: [])
    branches: dict[int, BranchView] = field(default_factory=lambda: {0: BranchView()})
    calls: list[ModelCall] = field(default_factory=lambda: [])
    added: dict[int, tuple[AddedMessage, ...]] = field(default_factory=lambda: {})
    prompts: list[list[Message]] = field(default_factory=lambda: [])
    branch: int = 0
    version: int = 0

    def say(self, *messages: Message) -> None:
        for message in messages:
            seq = len(self.entries) + 1
            self.entries.append(StoredMessage(seq, replace(message, id=f"m{seq}"), 1))

    def compact(self, *records: Record) -> None:
        self.version = len(self.plans) + 1
        plan = CompactionPlan("s", self.version, records, shows_gaps=True)
        plan = with_lines(plan, [entry.message for entry in self.view()])
        self.plans.append(PlanVersion(plan, 100.0 * self.version))

    def edit(self, *view_ids: str, forms: dict[str, EntryForm] | None = None) -> None:
        """Go on from other messages; what is said next is new."""
        self.branch += 1
        self.branches[self.branch] = BranchView(len(self.entries), view_ids, forms or {})

    @property
    def plan(self) -> CompactionPlan:
        return next((one.plan for one in self.plans if one.plan.version == self.version), CompactionPlan("s"))

    def view(self) -> list[StoredMessage]:
        branch, by_id = self.branches[self.branch], {entry.message.id: entry for entry in self.entries}
        view = [by_id[one] for one in branch.view_ids] + self.entries[branch.after_seq :]
        return [branch.shown(entry) for entry in view]

    def prompt(self) -> list[Message]:
        slots = PromptRenderer().render([entry.message for entry in self.view()], self.plan).slots
        return [slot.message for slot in repair_chat(slots)[0]]

    def send(self, *added: Message) -> None:
        number = 10 * (len(self.calls) + 1)
        self.prompts.append([*self.prompt(), *added])
        self.added[number] = tuple(AddedMessage("injected", message) for message in added)
        self.calls.append(
            ModelCall(
                turn_number=1,
                plan_version=self.version,
                summary_version=0,
                last_seq=len(self.entries),
                messages=1,
                evicted=0,
                tokens_estimated=9,
                branch=self.branch,
                number=number,
            )
        )

    @property
    def head(self) -> SessionHead:
        return SessionHead(len(self.entries), self.version, self.branch)

    def index(self) -> PhraseIndex:
        return self.grown(PhraseIndex("s"))

    def grown(self, index: PhraseIndex) -> PhraseIndex:
        """Return the index with all that came since it was read."""
        index.add_entries(self.entries[index.last_seq :])
        index.set_plans(self.plans)
        new = tuple(call for call in self.calls if call.number > index.last_call)
        branches = {number: view for number, view in self.branches.items() if number > index.last_branch}
        index.add_calls(CallHistory(created_at=0.0, head=self.head, calls=new, branches=branches, added=self.added))
        return index


def count(phrase: str, messages: Sequence[Message]) -> int:
    wanted, found = fold(phrase), 0
    for message in messages:
        if message.id.startswith("compact-summary-"):
            found += fold(message.text).count(wanted) or fold(unquoted(message.text)).count(wanted)
            continue
        fields = [message.text, *(part for call in message.tool_calls for part in (call.name, call.arguments))]
        found += sum(fold(text).count(wanted) for text in fields)
    return found


def runs(totals: Sequence[int], first: int, numbers: Sequence[int]) -> Iterator[CallRange]:
    """Yield the runs of calls without a phrase, from a place on."""
    start = None
    for place in range(first, len(totals) + 1):
        lacks = place < len(totals) and not totals[place]
        if lacks and start is None:
            start = place
        if not lacks and start is not None:
            yield CallRange(numbers[start], numbers[place - 1], place - start)
            start = None


def check(told: Told, phrase: str, index: PhraseIndex | None = None) -> PhraseTrace:
    """Compare everything that is said of a phrase with what plain counting finds."""
    trace = (index or told.index()).trace(phrase)
    numbers, totals = [call.number for call in told.calls], [count(phrase, prompt) for prompt in told.prompts]
    having = [entry.seq for entry in told.entries if count(phrase, [entry.message])]
    firsts = [place for place, total in enumerate(totals) if total][:1]
    firsts += [place for place, call in enumerate(told.calls) if having and call.last_seq >= having[0]][:1]
    first = min(firsts, default=len(totals))
    assert trace.calls_without == tuple(runs(totals, first, numbers)), phrase
    assert trace.calls_without_total == sum(1 for total in totals[first:] if not total)
    with_it = [number for number, total in zip(numbers, totals, strict=True) if total]
    assert trace.last_call_with == (with_it[-1] if with_it else None)
    assert (trace.calls_total, trace.newest_call) == (len(totals), numbers[-1] if numbers else None)
    assert trace.newest_call_count == (totals[-1] if totals else 0)
    now = told.prompts[-1] if totals and not trace.is_changed_since_call else told.prompt()
    assert trace.count == sum(place.count for place in trace.places) == count(phrase, now), phrase
    assert trace.is_in_prompt == (trace.count > 0)
    assert trace.is_known == bool(having or with_it or trace.count)
    assert sum(trace.place_counts.values()) == trace.places_total == len(trace.places)
    assert [sighting.seq for sighting in trace] == having
    assert trace.sightings_total == len(trace)
    for sighting in trace:
        arrived = next((n for n, call in enumerate(told.calls) if call.last_seq >= sighting.seq), len(totals))
        assert sighting.calls_without == tuple(runs(totals, max(first, arrived), numbers)), (phrase, sighting.seq)
    return trace


def span(*ids: str) -> SpanReference:
    return SpanReference(ids)


def calling(*call_ids: str) -> Message:
    return Message(
        "assistant", "I look", tuple(ToolCall(one, "read_file", f'{{"path": "{one}.py"}}') for one in call_ids)
    )


def result(call_id: str, text: str) -> Message:
    return Message("tool", text, tool_call_id=call_id)


CLEARED = ClearRecord(span=span("m3"), strategy="clear", reason="old result", tokens_before=9)
TALE = StructuredSummary(
    narrative="Berth 42 was read.",
    excerpts=(Excerpt("user:", "first berth\nsecond line of it", "m1"),),
)
SUMMARY = SummarizationRecord(span=span("m1", "m2", "m3", "m4"), strategy="summarize", reason="too old", summary=TALE)


@pytest.fixture
def told() -> Told:
    """A session in which everything happens that a prompt can be made of."""
    told = Told()
    told.send()
    told.say(Message("user", "first berth\nsecond line of it"))
    told.send()
    told.say(calling("alpha", "beta"))
    told.send(NOTE)
    told.say(result("alpha", "quayside quayside of alpha"))
    told.send()
    told.say(result("beta", "the dock"))
    told.send()
    told.say(Message("assistant", "berth 42 it is"), Message("user", "and the dock?"))
    told.send(NOTE)
    told.compact(CLEARED)
    told.send()
    told.say(Message("assistant", "the dock is dry"), Message("user", "go on"))
    told.compact(CLEARED, DropRecord(span=span("m5"), strategy="drop", reason="says nothing"))
    told.send()
    told.compact(SUMMARY, DropRecord(span=span("m5"), strategy="drop", reason="says nothing"))
    told.send()
    told.say(calling("gamma"))
    told.send(NOTE)
    told.say(result("gamma", "the quayside again"), Message("assistant", "quayside it is"))
    told.send()
    return told


PHRASES = (
    "berth", "first berth", "berth second", "quayside", "dock", "the standing note", "no result was recorded",
    "alpha", "gamma.py", "old result", "I look", "go on", "left out", "never said", "COMPACT-SUMMARY", "berth 42",
    "second line", "it second",
)  # fmt: skip


@pytest.mark.parametrize("phrase", PHRASES)
def test_what_is_said_of_a_phrase_is_what_went_out(told: Told, phrase: str) -> None:
    check(told, phrase)


@pytest.mark.parametrize("phrase", ["berth", "dock", "the standing note", "quayside", "so it is", "gamma"])
def test_an_index_that_grows_with_its_session_says_the_same(phrase: str) -> None:
    """Call by call, across an edit of the past, an undo, and nothing new at all."""
    told, index = Told(), PhraseIndex("s")
    check(told, phrase, told.grown(index))
    for added in ((NOTE,), (), (NOTE,)):
        told.send(*added)
        check(told, phrase, told.grown(index))
    for number in range(3):
        told.say(Message("user", f"berth {number}"), calling(f"gamma-{number}"))
        told.send(NOTE)
        check(told, phrase, told.grown(index))
        told.say(result(f"gamma-{number}", "the quayside"), Message("assistant", "so it is"))
        told.send()
        check(told, phrase, told.grown(index))
    told.compact(replace(SUMMARY, span=span("m1", "m2", "m3", "m4", "m5", "m6")))
    told.send(NOTE)
    check(told, phrase, told.grown(index))
    told.version = 0
    assert check(told, phrase, told.grown(index)).is_changed_since_call
    told.edit("m1", "m2", "m3")
    told.say(Message("user", "the dock instead"))
    told.send()
    check(told, phrase, told.grown(index))
    assert (index.last_seq, index.last_call, index.last_branch) == (13, 110, 1)
    assert index.trace(phrase) == told.grown(index).trace(phrase) == told.index().trace(phrase)


def test_a_store_that_tells_call_by_call_what_was_sent_gets_the_same_answers(told: Told) -> None:
    told.compact(CLEARED)
    told.send(NOTE)
    index, by_version = PhraseIndex("s"), {one.plan.version: one.plan for one in told.plans}
    index.add_entries(told.entries)
    index.set_plans(told.plans)
    sent = [
        SentPrompt(
            call=call,
            plan=by_version.get(call.plan_version, CompactionPlan("s")),
            messages=tuple(told.entries[: call.last_seq]),
            added=told.added[call.number],
        )
        for call in told.calls
    ]
    index.add_sent(sent, plan_version=told.version, view_ids=[entry.message.id for entry in told.entries])
    for phrase in PHRASES:
        assert index.trace(phrase) == told.index().trace(phrase)


def test_each_place_of_a_prompt_is_named_for_what_it_is(told: Told) -> None:
    told.compact(replace(CLEARED, span=span("m9")))
    told.say(calling("delta"))
    told.send(NOTE)

    def places(phrase: str) -> list[tuple[str, str, int, str]]:
        return [(one.kind, one.message_id, one.seq, one.role) for one in check(told, phrase).places]

    assert places("and the dock?") == [("message", "m6", 6, "user")]
    assert places("old result") == [("stub", "m9", 9, "assistant")]
    assert places("no result was recorded")[0][0] == "repair"
    assert places("the standing note") == [("injected", "note", 0, "user")]
    told.compact(SUMMARY)
    told.send(NOTE)
    trace = check(told, "berth")
    (summary,) = [one for one in trace.places if one.kind == "summary"]
    assert (summary.message_id, summary.seq, summary.role, summary.count) == ("compact-summary-v1", 0, "assistant", 2)
    assert "## What happened Berth 42 was read." in summary.excerpt.text
    assert trace.place_counts == {"summary": 1, "message": 1}
    (quoted,) = check(told, "berth second").places
    assert "first berth second line of it" in quoted.excerpt.text, "without the mark of a quoted line"


def test_a_sighting_says_who_took_it_out_when_and_why(told: Told) -> None:
    (gone,) = check(told, "quayside of").sightings
    assert (gone.state, gone.is_visible, gone.seen_in) == ("summarised", False, "")
    assert (gone.since_version, gone.since_at, gone.strategy, gone.reason) == (3, 300.0, "summarize", "too old")
    (dropped,) = check(told, "42 it is").sightings
    assert (dropped.state, dropped.since_version, dropped.reason) == ("dropped", 2, "says nothing")
    told.compact(SUMMARY, replace(DropRecord(span=span("m5"), strategy="later", reason="later")))
    told.send()
    (dropped,) = check(told, "42 it is").sightings
    assert (dropped.since_version, dropped.strategy) == (2, "drop"), "who decided first"
    first, last = check(told, "dock").sightings[0], check(told, "go on").sightings[0]
    assert (first.seq, first.role, first.excerpt, first.marks, first.count) == (4, "tool", "the dock", ((4, 8),), 1)
    assert (last.state, last.is_visible, last.seen_in) == ("in the prompt", True, "message")
    assert (last.since_version, last.since_at, last.strategy, last.reason) == (0, 0.0, "", "")


def test_what_came_back_and_left_again_is_out_since_then() -> None:
    told = Told()
    told.say(*(Message("user", f"berth {number}") for number in range(4)))
    for records in ((CLEARED,), (), (CLEARED,), (CLEARED,)):
        told.compact(*records)
        told.send()
    assert [one.since_version for one in check(told, "berth 2")] == [3]


def test_a_call_may_lack_what_the_log_had_already() -> None:
    """It left before it was ever sent, and came back."""
    told = Told()
    told.say(*(Message("user", f"berth {number}") for number in range(3)))
    told.compact(CLEARED)
    told.send()
    told.version = 0
    told.send()
    assert check(told, "berth 2").calls_without == (CallRange(10, 10, 1),)


def test_the_line_for_a_turn_that_was_left_out_is_counted_from_where_it_stands() -> None:
    told = Told()
    told.say(Message("user", "one"), Message("assistant", "two"), Message("user", "three"))
    told.send(replace(NOTE, content=f"it writes {LEFT_OUT} there"))
    told.compact(DropRecord(span=span("m2"), strategy="drop", reason="says nothing"))
    for number in range(3):
        told.send()
        told.say(Message("assistant", f"berth {number}"), Message("user", "go on"))
    told.send()
    assert check(told, LEFT_OUT).count == 1
    for phrase in ("three", "berth 1", "go on"):
        check(told, phrase)


def test_a_result_that_answers_no_call_is_read_as_it_was_sent() -> None:
    told = Told()
    told.say(Message("user", "look"), result("nobody", "a stray result"), calling("alpha"))
    told.send()
    told.say(result("alpha", "the dock"), result("nobody", "a stray result"))
    told.send()
    for phrase in ("a stray result", "no result was recorded", "look", "dock"):
        check(told, phrase)


def test_a_long_log_is_searched_to_its_end() -> None:
    told = Told()
    told.say(*(Message("user", f"mark-{number} says hello") for number in range(1_100)))
    told.send()
    assert [one.seq for one in check(told, "mark-1050 ")] == [1_051]
    assert told.index().trace("says").count == 1_100


def test_a_message_is_seen_in_what_stands_for_it(told: Told) -> None:
    assert [(one.seq, one.is_visible, one.seen_in) for one in check(told, "first berth")] == [(1, True, "summary")]
    kept = replace(CLEARED, kept=((0, 8),))
    told.compact(kept)
    told.send()
    assert [(one.seen_in, one.state) for one in check(told, "quayside of")] == [("", "cleared")]
    assert [one.seen_in for one in check(told, "quayside")] == ["stub", "message", "message"]
    told.compact(SUMMARY, kept)
    assert [one.seen_in for one in check(told, "first berth")] == ["summary"]


def test_what_was_left_when_the_past_was_edited_is_said_to_be(told: Told) -> None:
    told.edit("m1", "m2", "m3", "m4")
    told.version = 0
    told.say(Message("user", "another berth"))
    told.send()
    trace = check(told, "dock")
    assert [one.state for one in trace] == ["in the prompt", *["left behind when the past was edited"] * 2]
    assert not trace.is_changed_since_call
    assert [one.is_visible for one in trace] == [True, False, False]
    told.compact(SUMMARY)
    told.send()
    assert [one.seen_in for one in check(told, "berth")] == ["summary", "", "message"]
    told.edit("m2", "m3", "m4")
    told.send()
    assert [one.seen_in for one in check(told, "berth")] == ["", "", ""], "the summary is not of it any more"


def test_entries_are_read_in_the_form_that_the_caller_has_them_in(told: Told) -> None:
    entry = told.entries[0].message
    form = EntryForm.between(entry, replace(entry, content="first berth, reworded"), 3)
    told.edit(*(one.message.id for one in told.entries), forms={"m1": form})
    told.version = 0
    told.send()
    trace = check(told, "reworded")
    assert (trace.newest_call_count, trace.sightings_total, trace.is_known) == (1, 0, True)
    assert check(told, "second line").newest_call_count == 0


def test_before_the_first_call_the_prompt_is_that_of_the_log() -> None:
    told = Told()
    told.say(Message("user", "first berth"))
    trace = check(told, "berth")
    assert (trace.count, trace.newest_call, trace.is_changed_since_call) == (1, None, False)
    assert PhraseIndex("s").last_call == 0
    assert not check(told, "dock").is_known


@pytest.mark.parametrize("change", ["version", "branch", "entries"])
def test_a_prompt_that_no_call_was_made_with_is_told_apart(told: Told, change: str) -> None:
    """After an undo, an edit or a new entry; what was added to the newest call is not in it."""
    told.send(NOTE)
    assert not check(told, "the standing note").is_changed_since_call
    if change == "version":
        told.version = 0
    elif change == "branch":
        told.edit(*(one.message.id for one in told.entries))
    else:
        told.say(Message("user", "and then?"))
    trace = check(told, "the standing note")
    assert (trace.is_changed_since_call, trace.count, trace.newest_call_count) == (True, 0, 1)


def test_a_page_has_what_was_asked_for_and_the_totals_have_all(told: Told) -> None:
    index = told.index()
    whole = index.trace("quayside")
    page = index.trace("quayside", offset=1, limit=1)
    assert (len(whole), page.sightings) == (3, whole.sightings[1:2])
    assert (page.sightings_total, page.places_total, page.place_counts) == (3, 2, whole.place_counts)
    assert (page.count, page.places) == (whole.count, whole.places[:1])
    assert index.trace("quayside", offset=2).sightings == whole.sightings[2:]
    assert page[0] == whole[1]


def test_a_phrase_without_words_is_nowhere(told: Told) -> None:
    assert told.index().trace(" ") == PhraseTrace(phrase=" ")


def test_a_search_that_nobody_waits_for_ends_before_it_reads(told: Told) -> None:
    index = told.index()
    asked: list[bool] = []

    def stops_at(times: int) -> PhraseTrace:
        asked.clear()
        return index.trace("berth", should_stop=lambda: asked.append(True) or len(asked) > times)

    for times in range(3):
        with pytest.raises(SearchCancelled):
            stops_at(times)
        assert len(asked) == times + 1
    assert stops_at(99) == told.index().trace("berth")
    with pytest.raises(SearchCancelled):
        stops_at(0)
    assert stops_at(1) == told.index().trace("berth"), "the prompts are read: only the texts are searched"


def test_a_range_of_calls_is_named_by_its_ends() -> None:
    assert (str(CallRange(3, 3, 1)), str(CallRange(3, 7, 5))) == ("3", "3–7")
