"""What a compaction did to what it took out: strings and constraints are kept, in the ledger, retrievable or lost."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import pytest

from compact import CompactConfig, CompactError, CompactManager, UnknownSession
from compact.constraints import LearnedConstraints
from compact.core.audit import diff
from compact.core.audit import report as audit_report
from compact.core.audit.diff import RecallableLog, ReportedHistory, TextIndex
from compact.core.audit.records import ModelCall, PlanVersion, SessionHead, StoredMessage, StoredSession
from compact.core.audit.report import CompactionReport, EntityState, ReportItem
from compact.core.engine.events import CompactionReportEvent
from compact.core.facts.ledger import Fact, FactKind, Ledger
from compact.core.messages.message import Message, ToolCall
from compact.core.plan.line_index import LineIndex
from compact.core.plan.plan import (
    AttachmentPointer,
    ClearRecord,
    CompactionPlan,
    DropRecord,
    ExternalizationRecord,
    Record,
    SpanReference,
    SummarizationRecord,
)
from compact.core.plan.regret import Regret, Regrets
from compact.core.summary.summary import Decision, Excerpt, StructuredSummary, SummaryCheck
from compact.stores.memory import InMemoryCompactionStore
from compact.testing import RecordingSink, WordTokenizer, assistant, dialogue, system, tool_run, user


def report_of(
    messages: Sequence[Message],
    before: CompactionPlan,
    after: CompactionPlan,
    *,
    default_sensitivity: str = "internal",
) -> CompactionReport:
    """Return the report on a history of which nothing is known."""
    history = ReportedHistory.read(messages, LineIndex(messages), LearnedConstraints())
    log = RecallableLog(messages, {message.id: message for message in messages}, default_sensitivity)
    return audit_report.report_of(history, before, after, log, len(messages))


reports_of = partial(audit_report.reports_of, constraints=LearnedConstraints())

NONE = CompactionPlan("s")
CONSTRAINT = "From now on, never touch the table tide_log."


def plan(*records: Record, version: int = 1) -> CompactionPlan:
    return replace(NONE, version=version, records=records, reason="full", tokens_before=900, tokens_after=100)


def summary_of(*ids: str, version: int = 1, **parts: object) -> SummarizationRecord:
    summary = StructuredSummary(**parts)  # type: ignore[arg-type]
    return SummarizationRecord(
        span=SpanReference(ids), strategy="summarize", reason="old", version=version, summary=summary
    )


def states(report: CompactionReport) -> dict[str, str]:
    return {item.text: item.state.value for item in report.items}


def item(report: CompactionReport, text: str) -> ReportItem:
    return next(item for item in report.items if item.text == text)


HISTORY = [
    Message("user", f"Berth BERTH-77 first. {CONSTRAINT}", id="m1"),
    Message("assistant", "reading", tool_calls=(ToolCall("c", "read_file", '{"file_path": "src/a.py"}'),), id="m2"),
    Message("tool", "limit 86400\nrate_table in 838878cc\nORD-47", tool_call_id="c", id="m3"),
    Message("user", "and what about ORD-471 and harbour_master?", id="m4"),
]


# -- the four states ----------------------------------------------------------------------------------------------


def test_every_string_of_the_removed_span_has_a_state() -> None:
    ledger = Ledger((Fact(FactKind.MENTION, "BERTH-77"), Fact(FactKind.CONSTRAINT, CONSTRAINT)))
    after = plan(summary_of("m1", "m2", "m3", ledger=ledger, excerpts=(Excerpt("read_file", "limit 86400", "m3"),)))
    report = report_of(HISTORY, NONE, after)
    assert states(report) == {
        "BERTH-77": "in_ledger",
        CONSTRAINT: "in_ledger",
        HISTORY[0].text: "retrievable",  # the task itself is not in the prompt word for word
        "tide_log": "in_ledger",
        "src/a.py": "retrievable",
        "86400": "kept",
        "rate_table": "retrievable",
        "838878cc": "retrievable",
        "ORD-47": "retrievable",  # ORD-471 in the tail is something else
    }
    assert report.removed_ids == ("m1", "m2", "m3")
    assert (item(report, "src/a.py").message_id, item(report, "838878cc").message_id) == ("m2", "m3")


def test_what_is_in_the_tail_is_kept() -> None:
    history = [*HISTORY, Message("user", "so src/a.py it is", id="m5")]
    report = report_of(history, NONE, plan(DropRecord(span=SpanReference(("m2",)), strategy="drop", reason="old")))
    assert states(report) == {"src/a.py": "kept"}


def test_names_of_tools_and_arguments_are_not_counted() -> None:
    report = report_of(HISTORY, NONE, plan(DropRecord(span=SpanReference(("m2",)), strategy="drop", reason="old")))
    assert states(report) == {"src/a.py": "retrievable"}


def test_lines_that_stay_and_previews_are_kept() -> None:
    text = HISTORY[2].text
    cleared = ClearRecord(span=SpanReference(("m3",)), strategy="clear", reason="old", kept=((0, text.index("\n")),))
    assert states(report_of(HISTORY, NONE, plan(cleared)))["86400"] == "kept"
    moved = ExternalizationRecord(
        span=SpanReference(("m3",)), strategy="externalize", reason="large", artifact_id="art-1", preview="rate_table …"
    )
    report = report_of(HISTORY, NONE, plan(moved))
    assert states(report) == {
        "rate_table": "kept",
        "86400": "retrievable",
        "838878cc": "retrievable",
        "ORD-47": "retrievable",
    }


def test_what_recall_withholds_is_lost() -> None:
    """The log has everything, but not for everybody: an agent that asks does not get what is confidential."""
    history = [*HISTORY[:2], replace(HISTORY[2], meta={"sensitivity": "confidential"}), HISTORY[3]]
    drop = plan(DropRecord(span=SpanReference(("m2", "m3")), strategy="drop", reason="old"))
    found = states(report_of(history, NONE, drop))
    assert (found["838878cc"], found["src/a.py"]) == ("lost", "retrievable")
    again = [*history, Message("assistant", "838878cc", id="m9")]
    found_again = report_of(
        again, NONE, plan(DropRecord(span=SpanReference(("m3", "m9")), strategy="drop", reason="old"))
    )
    assert item(found_again, "838878cc").message_id == "m9"
    assert states(found_again)["838878cc"] == "retrievable"


def test_what_recall_withholds_by_default_is_lost() -> None:
    """Results need not say themselves that they are confidential."""
    drop = plan(DropRecord(span=SpanReference(("m2", "m3")), strategy="drop", reason="old"))
    found = states(report_of(HISTORY, NONE, drop, default_sensitivity="confidential"))
    assert (found["838878cc"], found["src/a.py"]) == ("lost", "retrievable")


def test_an_event_does_not_quote_a_confidential_constraint() -> None:
    asked = Message("user", CONSTRAINT, id="m1", meta={"sensitivity": "confidential"})
    drop = plan(DropRecord(span=SpanReference(("m1",)), strategy="drop", reason="old"))
    report = report_of([asked, *HISTORY[1:]], NONE, drop)
    assert [item.text for item in report.missing_constraints] == [CONSTRAINT]
    event = CompactionReportEvent(session_id="s", compute_report=lambda: report)
    assert event.to_dict()["missing_constraints"] == ["[a constraint of message m1]"]


def test_what_only_an_earlier_summary_said_is_lost_when_the_next_does_not_say_it() -> None:
    before = plan(summary_of("m1", "m2", narrative="see docs/invented.md and src/a.py"))
    after = plan(summary_of("m1", "m2", "m3", version=2, narrative="we went on"), version=2)
    report = report_of(HISTORY, before, after)
    assert states(report)["docs/invented.md"] == "lost"
    assert (item(report, "src/a.py").state, item(report, "src/a.py").message_id) == (EntityState.RETRIEVABLE, "m2")


def test_a_string_is_looked_for_where_it_may_be_recalled_from() -> None:
    secret = Message("tool", "src/a.py", meta={"sensitivity": "restricted"}, id="m9")
    before = plan(summary_of("m1", "m2", narrative="see src/a.py"))
    after = plan(summary_of("m1", "m2", "m3", "m9", version=2, narrative="we went on"), version=2)
    assert item(report_of([*HISTORY, secret], before, after), "src/a.py").message_id == "m2"


def test_a_part_of_a_longer_name_is_not_that_name() -> None:
    text = TextIndex(["src a.py", "see lib_src/a.py"])
    assert text.has("lib_src/a.py")
    assert not text.has("src/a.py")


def test_what_a_json_text_writes_behind_an_escape_is_found() -> None:
    """The line break that it stands for is no part of the name."""
    assert TextIndex([r'{"log": "failed\nsrc/a.py was read"}']).has("src/a.py")


def test_an_ordinary_word_is_found_as_a_word() -> None:
    text = TextIndex(["the harbour master went", "two mooring lines"])
    assert text.has("harbour")
    assert text.has("harbour master")
    assert not text.has("master two")
    assert not text.has("moor")


# -- what counts --------------------------------------------------------------------------------------------------


def test_what_had_left_before_is_not_counted_again() -> None:
    before = plan(ClearRecord(span=SpanReference(("m3",)), strategy="clear", reason="old", kept=((0, 11),)))
    after = plan(*before.records, DropRecord(span=SpanReference(("m2",)), strategy="drop", reason="old"), version=2)
    report = report_of(HISTORY, before, CompactionPlan.from_dict(after.to_dict()))
    assert states(report) == {"src/a.py": "retrievable"}
    assert report.removed_ids == ("m2",)


def test_of_a_cleared_message_only_what_was_left_of_it_can_leave() -> None:
    text = HISTORY[2].text
    cleared = ClearRecord(span=SpanReference(("m3",)), strategy="clear", reason="old", kept=((0, text.index("\n")),))
    report = report_of(HISTORY, plan(cleared), plan(summary_of("m2", "m3", narrative="short"), version=2))
    assert states(report) == {"src/a.py": "retrievable", "86400": "retrievable"}
    assert report.removed_ids == ("m2",)


def test_of_what_was_kept_from_the_middle_only_that_can_leave() -> None:
    text = HISTORY[2].text
    start = text.index("rate_table")
    kept = ((start, text.index("838878cc") + len("838878cc")),)
    dropped = plan(DropRecord(span=SpanReference(("m3",)), strategy="drop", reason="old"), version=2)
    cleared = ClearRecord(span=SpanReference(("m3",)), strategy="clear", reason="old", kept=kept)
    assert states(report_of(HISTORY, plan(cleared), dropped)) == {
        "rate_table": "retrievable",
        "838878cc": "retrievable",
    }
    pointer = AttachmentPointer("art-0011223344556677", "photo.png", "photo.png, 3 KB")
    moved = ExternalizationRecord(
        span=SpanReference(("m3",)),
        strategy="externalize",
        reason="large",
        artifact_id=pointer.artifact_id,
        attachments=(pointer,),
    )
    found = states(report_of(HISTORY, plan(moved), dropped))
    assert list(found) == ["838878cc", "ORD-47", "rate_table", "86400"], "its whole text had stayed"
    cut = replace(moved, kept=kept)
    assert states(report_of(HISTORY, plan(cut), dropped)) == {"rate_table": "retrievable", "838878cc": "retrievable"}


def test_of_a_cleared_call_the_names_of_tool_and_arguments_are_not_counted() -> None:
    arguments = '{"source_folder": "src/a.py"}'
    history = [replace(HISTORY[1], tool_calls=(ToolCall("c", "copy_files", arguments),)), *HISTORY[2:]]
    cleared = ClearRecord(span=SpanReference(("m2",)), strategy="clear", reason="old")
    dropped = plan(DropRecord(span=SpanReference(("m2",)), strategy="drop", reason="old"), version=2)
    assert states(report_of(history, plan(cleared), dropped)) == {"src/a.py": "retrievable"}


def test_a_string_is_named_with_the_newest_message_that_has_it() -> None:
    history = [*HISTORY, Message("assistant", "src/a.py was read", id="m5")]
    drop = plan(DropRecord(span=SpanReference(("m2", "m5")), strategy="drop", reason="old"))
    assert item(report_of(history, NONE, drop), "src/a.py").message_id == "m5"


def test_what_a_summary_told_counts_as_used_wherever_it_is_found() -> None:
    history = [*HISTORY, Message("tool", "see docs/tides.md", tool_call_id="c", id="m5")]
    before = plan(summary_of("m1", "m5", narrative="see docs/tides.md"))
    after = plan(summary_of("m1", "m2", "m5", version=2, narrative="we went on"), version=2)
    assert item(report_of(history, before, after), "docs/tides.md").is_touched


def test_the_id_of_an_artifact_is_no_string_of_the_history() -> None:
    ledger = Ledger((Fact(FactKind.ARTIFACT, "art-0011223344556677"), Fact(FactKind.MENTION, "BERTH-77")))
    before = plan(summary_of("m1", ledger=ledger))
    after = plan(summary_of("m1", "m2", version=2, narrative="we went on"), version=2)
    found = states(report_of(HISTORY, before, after))
    assert found["BERTH-77"] == "retrievable"
    assert "art-0011223344556677" not in found


def test_places_of_later_messages_are_not_looked_up() -> None:
    history = ReportedHistory.read(HISTORY, LineIndex(HISTORY), LearnedConstraints())
    earlier = replace(history, messages=HISTORY[:2])
    assert [message.id for message in earlier.among(frozenset(("m4", "m3", "m2", "m1", "m9")))] == ["m1", "m2"]


def test_bringing_a_plan_back_takes_nothing_out() -> None:
    report = report_of(HISTORY, plan(summary_of("m1", "m2", narrative="src/a.py")), replace(NONE, version=2))
    assert (report.items, report.removed_ids) == ((), ())


def test_the_worst_comes_first() -> None:
    after = plan(summary_of("m1", "m2", "m3", ledger=Ledger((Fact(FactKind.MENTION, "838878cc"),))))
    kinds = [(entry.kind, entry.is_touched, entry.is_in_prompt) for entry in report_of(HISTORY, NONE, after).items]
    assert kinds[:3] == [("constraint", True, False), ("task", True, False), ("id", True, False)]
    assert kinds[-1] == ("id", False, True)
    printed = [place for place, (_, is_touched, _) in enumerate(kinds) if not is_touched]
    assert min(printed) > max(place for place, entry in enumerate(kinds) if entry[1] and not entry[2])


# -- constraints -------------------------------------------------------------------------------------------------------


def test_a_constraint_whose_message_left_is_followed_through_every_round() -> None:
    first = plan(summary_of("m1", "m2", ledger=Ledger((Fact(FactKind.CONSTRAINT, CONSTRAINT),))))
    second = plan(summary_of("m1", "m2", "m3", version=2, narrative="we went on"), version=2)
    assert [entry.state for entry in report_of(HISTORY, NONE, first).constraints] == [EntityState.IN_LEDGER]
    report = report_of(HISTORY, first, second)
    assert [entry.text for entry in report.missing_constraints] == [CONSTRAINT]
    assert report.missing_constraints[0].message_id == "m1"


def test_a_constraint_in_the_prompt_is_no_news() -> None:
    report = report_of(HISTORY, NONE, plan(DropRecord(span=SpanReference(("m2", "m3")), strategy="drop", reason="old")))
    assert report.constraints == ()


def test_a_constraint_broken_over_lines_is_still_there() -> None:
    told = plan(summary_of("m1", narrative=CONSTRAINT.replace(" ", "\n  ")))
    assert report_of(HISTORY, NONE, told).missing_constraints == ()


# -- decisions --------------------------------------------------------------------------------------------------------

DECIDED = "We decided to use SQLite instead of PostgreSQL."
RETOLD = "I'll go with UTC everywhere, it is simpler."
LEFT_OUT = "Let's stick with the old parser for now."
DECISIONS = [
    Message("user", "Build the importer.", id="m1"),
    Message("assistant", f"I looked at both. {DECIDED} The rest follows.", id="m2"),
    Message("assistant", RETOLD, id="m3"),
    Message("user", LEFT_OUT, id="m4"),
    Message("tool", "we decided nothing: this is printed by a tool", tool_call_id="c", id="m5"),
    Message("user", "Go on.", id="m6"),
]


def decisions(report: CompactionReport) -> dict[str, tuple[str, str]]:
    return {entry.text: (entry.state.value, entry.message_id) for entry in report.decisions}


def test_decisions_are_kept_told_in_the_summary_or_left_out() -> None:
    told = (Decision("all times are UTC", "simpler", ("m3",)),)
    after = plan(summary_of("m1", "m2", "m3", "m4", narrative=f"Both were tried. {DECIDED}", decisions=told))
    report = report_of(DECISIONS, NONE, after)
    assert all(entry.is_touched for entry in report.decisions)
    assert decisions(report) == {DECIDED: ("kept", "m2"), RETOLD: ("in_ledger", "m3"), LEFT_OUT: ("retrievable", "m4")}
    assert report.counts["decision"] == {"kept": 1, "in_ledger": 1, "retrievable": 1, "lost": 0}
    assert [entry["text"] for entry in report.to_dict()["decisions"]] == [LEFT_OUT, RETOLD, DECIDED]


def test_a_decision_is_in_the_ledger_or_lost_and_followed_through_every_round() -> None:
    first = plan(summary_of("m2", "m3", ledger=Ledger((Fact(FactKind.DECISION, DECIDED, source_ids=("m2",)),))))
    assert decisions(report_of(DECISIONS, NONE, first))[DECIDED] == ("in_ledger", "m2")
    second = plan(summary_of("m2", "m3", "m4", version=2, narrative="we went on"), version=2)
    assert decisions(report_of(DECISIONS, first, second))[DECIDED] == ("retrievable", "m2")
    closed = [replace(message, meta={"sensitivity": "confidential"}) for message in DECISIONS]
    assert decisions(report_of(closed, first, second))[DECIDED] == ("lost", "m2")


def test_a_decision_whose_message_stands_is_no_news_and_a_long_one_is_found_where_it_is_kept() -> None:
    long = f"We decided to {'write it down and ' * 40}stop."
    history = [*DECISIONS, Message("assistant", long, id="m7")]
    dropped = plan(DropRecord(span=SpanReference(("m5",)), strategy="drop", reason="old"))
    assert report_of(history, NONE, dropped).decisions == ()
    told = report_of(history, NONE, plan(summary_of("m7", narrative=long)))
    assert [(entry.state, entry.message_id) for entry in told.decisions] == [(EntityState.KEPT, "m7")]


# -- the report as data -------------------------------------------------------------------------------------------


def test_counts_add_up_and_the_report_is_plain_data() -> None:
    check = SummaryCheck(required=3, asked_again=("a",), appended=("b",), ungrounded=("x.py", "y.py"))
    report = report_of(HISTORY, NONE, plan(summary_of("m1", "m2", "m3", check=check)))
    assert sum(sum(row.values()) for row in report.counts.values()) == len(report.items)
    assert list(report.counts) == ["constraint", "task", "id", "path", "identifier", "number"]
    short = json.loads(json.dumps(report.to_dict(examples=2)))
    assert (len(short["not_in_prompt"]), short["removed_messages"]) == (2, 3)
    assert short["check"] == {"required": 3, "asked_again": ["a"], "appended": ["b"], "ungrounded": ["x.py", "y.py"]}
    assert len(report.to_dict(examples=None)["items"]) == len(report.items)
    assert report.total(EntityState.RETRIEVABLE) == len(report.items)


def test_the_event_tells_the_counts_and_is_loud_about_a_lost_constraint() -> None:
    quiet = report_of(HISTORY, NONE, plan(DropRecord(span=SpanReference(("m3",)), strategy="drop", reason="old")))
    event = CompactionReportEvent(session_id="s", compute_report=lambda: quiet)
    assert event.severity == "normal"
    assert event.to_dict()["counts"]["id"] == {"kept": 0, "in_ledger": 0, "retrievable": 2, "lost": 0}
    lost = report_of(HISTORY, NONE, plan(DropRecord(span=SpanReference(("m1",)), strategy="drop", reason="old")))
    loud = json.loads(json.dumps(CompactionReportEvent(session_id="s", compute_report=lambda: lost).to_dict()))
    assert (loud["event"], loud["severity"], loud["missing_constraints"]) == ("compact.report", "high", [CONSTRAINT])


def test_a_report_is_on_the_history_as_it_was_then() -> None:
    history = [*HISTORY, Message("user", "so src/a.py it is", id="m5")]
    first = plan(DropRecord(span=SpanReference(("m2",)), strategy="drop", reason="old"))
    second = replace(first, version=2)
    stored = stored_session(history, second)
    facts = {"turn_number": 1, "summary_version": 0, "messages": 3, "evicted": 1, "tokens_estimated": 9}
    calls = [ModelCall(plan_version=version, last_seq=seq, **facts) for version, seq in ((0, 3), (1, 4), (2, 5))]
    reports = list(reports_of(stored, [PlanVersion(first, 1.0), PlanVersion(second, 2.0)], calls))
    assert [states(report) for report in reports] == [{"src/a.py": "retrievable"}, {}]


def test_a_message_that_was_edited_away_is_not_what_keeps_a_string() -> None:
    """It is in the log, but may not have been in the prompt of that time."""
    history = [*HISTORY, Message("user", "so src/a.py it is", id="m5")]
    dropped = plan(DropRecord(span=SpanReference(("m2",)), strategy="drop", reason="old"))
    assert states(one_report(history, dropped)) == {"src/a.py": "kept"}
    assert states(one_report(history, dropped, view=history[:4])) == {"src/a.py": "retrievable"}


def one_report(
    history: Sequence[Message], made: CompactionPlan, view: Sequence[Message] | None = None
) -> CompactionReport:
    """Return the report on the only plan of a stored session."""
    (report,) = reports_of(stored_session(history, made, view), [PlanVersion(made, 1.0)], [])
    return report


def stored_session(
    history: Sequence[Message], made: CompactionPlan, view: Sequence[Message] | None = None
) -> StoredSession:
    return StoredSession(
        session_id="s",
        head=SessionHead(len(history), made.version),
        messages=tuple(StoredMessage(seq, message, 1) for seq, message in enumerate(history, 1)),
        view_ids=tuple(message.id for message in (history if view is None else view)),
        plan=made,
    )


def test_a_regret_belongs_to_the_plan_that_took_its_message_out() -> None:
    """Not to the one that was in force when it was found; of a message that came back, to the newest that took it."""

    def missed(message_id: str, version: int) -> Regret:
        return Regret(
            message_id=message_id,
            found_in="m4",
            tool="",
            action="drop",
            strategy="drop",
            how="recall",
            plan_version=version,
            tokens=0,
        )

    def dropping(version: int, *ids: str) -> CompactionPlan:
        records = (DropRecord(span=SpanReference((one,)), strategy="drop", reason="old") for one in ids)
        return plan(*records, version=version)

    regrets = (missed("m3", 2), missed("m3", 4), missed("m2", 2), missed("m1", 1))
    plans = [dropping(1, "m3"), dropping(2, "m3", "m2"), dropping(3), dropping(4, "m3", "m1")]
    newest = replace(plans[-1], regrets=Regrets(regrets, len(HISTORY)))
    versions = [PlanVersion(one, 1.0) for one in (*plans[:-1], newest)]
    reports = reports_of(stored_session(HISTORY, newest), versions, [])
    found = {report.version: report.regrets for report in reports}
    assert found == {1: regrets[:1], 2: regrets[2:3], 3: (), 4: regrets[1:2]}, "no plan had taken m1 out by version 1"


# -- through the manager ------------------------------------------------------------------------------------------


def manager(store: InMemoryCompactionStore, sink: RecordingSink | None = None) -> CompactManager:
    config = CompactConfig(max_context_tokens=3_000)
    return CompactManager(config, tokenizer=WordTokenizer(), store=store, on_event=sink)


def session() -> list[dict[str, object]]:
    return [
        system("be brief"),
        user(f"Paint crane CRANE-12. {CONSTRAINT}"),
        *tool_run(30, words=80),
        *dialogue(6, words=30),
    ]


def test_each_compaction_is_reported_also_by_another_process() -> None:
    store, sink, history = InMemoryCompactionStore(), RecordingSink(), session()
    with manager(store, sink) as first:
        for end in (20, 40, len(history)):
            first.preflight("s", history[:end])
        reports = first.report("s")
    assert [report.version for report in reports] == [1, 2, 3][: len(reports)]
    assert len(reports) >= 2
    assert all(report.tokens_after < report.tokens_before for report in reports)
    second = manager(store)
    assert second.report("s") == reports
    assert second.report("s", version=2) == reports[1:2]
    events = sink.of(CompactionReportEvent)
    assert [event.plan_version for event in events] == [report.version for report in reports]
    assert [event.report for event in events] == list(reports)


def test_nobody_waits_for_a_report_that_nobody_reads() -> None:
    sink = RecordingSink()
    manager(InMemoryCompactionStore(), sink).preflight("s", session())
    (event,) = sink.of(CompactionReportEvent)
    assert event.compute_report._report is None, "nobody has asked yet"  # type: ignore[attr-defined]
    assert event.report.removed_ids
    assert event.report is event.report


def test_a_constraint_survives_every_round_in_the_prompt() -> None:
    store, history = InMemoryCompactionStore(), [user(f"Paint crane CRANE-12. {CONSTRAINT}"), *dialogue(60, words=60)]
    with manager(store) as door:
        for end in range(21, len(history), 20):
            door.preflight("s", history[:end])
        reports = door.report("s")
    followed = [report for report in reports if any(entry.text == CONSTRAINT for entry in report.constraints)]
    assert followed
    assert not [entry for report in reports for entry in report.missing_constraints if entry.text == CONSTRAINT]


def test_what_was_edited_away_is_still_retrievable() -> None:
    store, history = InMemoryCompactionStore(), session()
    with manager(store) as door:
        door.preflight("s", history)
        edited = [history[0], user("Paint crane CRANE-99 instead."), *dialogue(40, words=60)]
        door.preflight("s", edited)
        reports = door.report("s")
    assert all(entry.state is not EntityState.LOST for report in reports for entry in report.items)
    assert any(entry.text == "CRANE-12" for entry in reports[0].items)


def test_an_undone_compaction_took_nothing_out() -> None:
    with manager(InMemoryCompactionStore()) as door:
        door.preflight("s", session())
        door.undo("s")
        reports = door.report("s")
    assert [bool(report.removed_ids) for report in reports] == [True, False]
    assert reports[1].items == ()


def test_what_is_not_there_is_an_error_that_says_what_is() -> None:
    with manager(InMemoryCompactionStore()) as door:
        with pytest.raises(UnknownSession):
            door.report("nobody")
        door.preflight("s", [user("hello"), assistant("hello")])
        assert door.report("s") == ()
        with pytest.raises(CompactError, match="no plan version 3") as raised:
            door.report("s", version=3)
    assert raised.value.hint == "it was never compacted"


def test_a_long_span_takes_a_moment() -> None:
    """About 350,000 tokens, with as many different strings as real ones have, and more."""
    history = [
        Message("tool", " ".join(f"src/p{n}/m{k}.py id_{n}{k:04}f" for k in range(40)), id=f"m{n}")
        for n in range(1_000)
    ]
    after = plan(summary_of(*(message.id for message in history[:-20]), narrative="short"))
    start = time.process_time()
    report = report_of(history, NONE, after)
    assert time.process_time() - start < 20
    assert len(report.items) == 980 * 80


def test_each_entry_is_read_once_for_all_reports(monkeypatch: pytest.MonkeyPatch) -> None:
    """A string is found in the newest entry of its time; what came later is not known to the report."""
    closed = {"sensitivity": "confidential"}
    log = [Message("user", f"about ORD-47{n % 2}", meta=closed if n == 5 else {}, id=f"m{n}") for n in range(8)]
    read: list[str] = []
    texts_of = diff.message_texts
    monkeypatch.setattr(diff, "message_texts", lambda message: (read.append(message.id), texts_of(message))[1])
    recallable = RecallableLog(log, {message.id: message for message in log})
    found = [recallable.find({"ORD-470", "ORD-471", "ORD-9"}, length) for length in (3, 6, 6, 8)]
    places = [{text: string.message_id for text, string in strings.items()} for strings in found]
    assert places == [
        {"ORD-470": "m2", "ORD-471": "m1"},
        {"ORD-470": "m4", "ORD-471": "m3"},
        {"ORD-470": "m4", "ORD-471": "m3"},
        {"ORD-470": "m6", "ORD-471": "m7"},
    ]
    assert sorted(read) == [f"m{n}" for n in range(8) if n != 5]
