"""Facts are found by code, in their own words, each with the messages it came from; more history, more facts."""

from __future__ import annotations

import time
from collections import Counter
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compact.constraints import LearnedConstraints
from compact.core.facts import extraction
from compact.core.facts.constraints import Constraint, ConstraintReading, NoConstraints
from compact.core.facts.ledger import Fact, FactKind, Ledger
from compact.core.facts.text import CUT_MARK
from compact.core.facts.tool_calls import argument_texts
from compact.core.messages.groups import group_messages
from compact.core.messages.message import Message, ToolCall
from conversations import Wire, histories
from numbered import call, exchange, numbered

CONSTRAINTS = LearnedConstraints()
find_facts = partial(extraction.find_facts, constraints=CONSTRAINTS)

OK = "done"


def facts(*history: Message | tuple[Message, ...]) -> Ledger:
    flat = [message for item in history for message in (item if isinstance(item, tuple) else (item,))]
    return find_facts(numbered(flat))


def told(kind: FactKind, *history: Message | tuple[Message, ...]) -> list[str]:
    return [fact.text for fact in facts(*history).of(kind)]


def user(text: str) -> Message:
    return Message("user", text)


def agent(text: str) -> Message:
    return Message("assistant", text)


# -- what always holds ----------------------------------------------------------------------------------------------

_SETTLED = {FactKind.LATEST_ASK, FactKind.OPEN_ITEM}


@settings(max_examples=60)
@given(histories(max_size=20), st.integers(0, 40))
def test_the_ledger_of_a_longer_span_contains_that_of_a_shorter_one(history: list[Wire], end: int) -> None:
    messages = numbered(history)
    whole = {(fact.kind, fact.subject) for fact in find_facts(messages)}
    part = find_facts(messages[:end], history=messages)
    assert {(fact.kind, fact.subject) for fact in part if fact.kind not in _SETTLED} <= whole


@settings(max_examples=60)
@given(histories(max_size=20), st.data())
def test_a_span_with_gaps_loses_nothing_when_they_are_filled(history: list[Wire], data: st.DataObject) -> None:
    """Between rounds, messages that were kept join what the summary stands for."""
    messages = numbered(history)
    groups = [group.indices for group in group_messages(messages)]
    inside = data.draw(st.sets(st.sampled_from(groups))) if groups else set()
    span = tuple(messages[index] for index in sorted(index for group in inside for index in group))
    part, whole = find_facts(span, history=messages), find_facts(messages)
    found = {(fact.kind, fact.subject) for fact in whole}
    assert {(fact.kind, fact.subject) for fact in part if fact.kind not in _SETTLED} <= found


@settings(max_examples=60)
@given(histories(max_size=20))
def test_every_fact_stands_in_the_messages_that_it_names(history: list[Wire]) -> None:
    messages = {message.id: message for message in numbered(history)}
    for fact in find_facts(tuple(messages.values())):
        assert fact.source_ids
        sources = [messages[source_id] for source_id in fact.source_ids]
        texts = [text for m in sources for c in m.tool_calls for text in (c.arguments, *argument_texts(c))]
        subject = fact.subject.removesuffix(CUT_MARK)
        if fact.kind is not FactKind.ERROR or not subject.endswith(": exit 1"):
            assert any(subject in text for text in (*(m.text for m in sources), *texts)), fact


@settings(max_examples=40)
@given(histories(max_size=12))
def test_the_same_history_has_the_same_facts(history: list[Wire]) -> None:
    assert find_facts(numbered(history)) == find_facts(numbered(history))


@settings(max_examples=60)
@given(histories(max_size=20), st.data())
def test_what_was_read_of_the_span_before_changes_nothing(history: list[Wire], data: st.DataObject) -> None:
    """Spans grow, also in the middle, and after an edit they may be others altogether."""
    messages, reading = numbered(history), extraction.SpanReading()
    for _ in range(4):
        places = data.draw(st.sets(st.integers(0, max(len(messages) - 1, 0)))) if messages else set()
        start = data.draw(st.integers(0, len(messages)))
        span = tuple(message for place, message in enumerate(messages) if place < start or place in places)
        assert find_facts(span, history=messages, reading=reading) == find_facts(span, history=messages)


@settings(max_examples=60)
@given(histories(max_size=20), st.data())
def test_constraints_that_are_read_on_are_those_that_are_read_anew(history: list[Wire], data: st.DataObject) -> None:
    """A line grows, gets shorter, and may be another one after an edit."""
    messages, reading = numbered(history), ConstraintReading()
    for _ in range(4):
        start, end = data.draw(st.integers(0, len(messages))), data.draw(st.integers(0, len(messages)))
        line = [*messages[:start], *messages[end:]]
        assert reading.of(CONSTRAINTS).standing(line) == CONSTRAINTS.standing(line)


def test_constraints_are_read_on_behind_what_was_read() -> None:
    asked = Counter[str]()

    class Reader:
        def add(self, message: Message) -> None:
            asked[message.id] += 1

        def standing(self) -> tuple[Constraint, ...]:
            return ()

    class Finder(NoConstraints):
        def reader(self) -> Reader:
            return Reader()

    messages, finder = numbered([user("a"), user("b"), user("c")]), ConstraintReading().of(Finder())
    for end in (1, 2, 3):
        finder.standing(messages[:end])
    assert set(asked.values()) == {1}


# -- what was asked -------------------------------------------------------------------------------------------------


def test_the_task_is_the_first_request_and_the_newest_one_stands_beside_it() -> None:
    harness = Message("user", "<system-reminder>not a request</system-reminder>")
    ledger = facts(harness, user("  Port the parser.\nAll of it. "), agent("yes"), user("now the tests"), harness)
    assert ledger.subject_of(FactKind.TASK) == "Port the parser.\nAll of it."
    assert ledger.subject_of(FactKind.LATEST_ASK) == "now the tests"
    assert ledger.of(FactKind.TASK)[0].source_ids == ("m1",)


@pytest.mark.parametrize("nothing_new", ["ok, go on", "Thank you!", "[Request interrupted by user]", "yes please"])
def test_words_that_keep_a_session_going_are_not_the_latest_ask(nothing_new: str) -> None:
    ledger = facts(user("Port the parser."), agent("yes"), user("now the tests"), agent("done"), user(nothing_new))
    assert ledger.subject_of(FactKind.LATEST_ASK) == "now the tests"


@pytest.mark.parametrize("asks", ["no, the other one", "ok, do 2", "why?", "ok, now commit"])
def test_short_messages_may_ask_for_something(asks: str) -> None:
    ledger = facts(user("Port the parser."), agent("yes"), user("now the tests"), agent("done"), user(asks))
    assert ledger.subject_of(FactKind.LATEST_ASK) == asks


def test_a_greeting_is_not_the_task() -> None:
    ledger = facts(user("Hi there!"), agent("hello"), user("Port the parser."), agent("yes"))
    assert ledger.subject_of(FactKind.TASK) == "Port the parser."
    assert facts(user("Hi there!"), agent("hello")).subject_of(FactKind.TASK) == "Hi there!"


def test_a_message_that_only_sets_constraints_leaves_the_ask_before_it_the_latest() -> None:
    ledger = facts(
        user("Port the parser."),
        agent("yes"),
        user("now the tests"),
        agent("done"),
        user("Thanks. Never push to main."),
    )
    assert ledger.subject_of(FactKind.LATEST_ASK) == "now the tests"
    assert [fact.subject for fact in ledger.of(FactKind.CONSTRAINT)] == ["Never push to main."]


def test_one_request_alone_is_not_told_twice() -> None:
    assert [fact.kind for fact in facts(user("go on"), agent("yes"), user("go on"))] == [FactKind.TASK]


def test_what_is_asked_outside_the_span_is_not_in_its_ledger() -> None:
    messages = numbered([user("the task"), agent("yes"), user("the next thing")])
    assert find_facts(messages[1:], history=messages).subject_of(FactKind.TASK) == ""
    assert find_facts(messages[:2], history=messages).subject_of(FactKind.LATEST_ASK) == ""


def test_constraints_stand_word_for_word_until_they_are_taken_back() -> None:
    message, back = user("From now on, never touch the table tide_log."), user("Forget that rule about tide_log.")
    (constraint,) = facts(message, agent("ok")).of(FactKind.CONSTRAINT)
    assert constraint == Fact(FactKind.CONSTRAINT, message.text, source_ids=("m0",))
    assert not facts(message, agent("ok"), back).of(FactKind.CONSTRAINT)
    messages = numbered([message, agent("ok"), back])
    assert not find_facts(messages[:2], history=messages).of(FactKind.CONSTRAINT)


# -- files ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "detail"),
    [
        ({"file_path": "a.py"}, "read"),
        ({"file_path": "a.py", "offset": 10, "limit": 5}, "read 10-14"),
        ({"path": "a.py", "view_range": [3, 9]}, "read 3-9"),
        ({"path": "a.py", "view_range": [30, -1]}, "read 30-"),
        ({"path": "a.py", "offset": 7}, "read 7-"),
        ({"path": "a.py", "limit": 40}, "read 1-40"),
        ({"path": "a.py", "start_line": 2, "end_line": 4}, "read 2-4"),
        ({"path": "a.py", "offset": -5, "limit": 2}, "read"),
        ({"path": "a.py", "view_range": [9, 3]}, "read"),
        ({"path": "a.py", "view_range": "all"}, "read"),
    ],
)
def test_which_lines_of_a_file_were_read_is_told(arguments: dict[str, Any], detail: str) -> None:
    assert told(FactKind.FILE, exchange("Read", "1\tx", **arguments)) == [f"a.py ({detail})"]


def test_ranges_that_were_read_piece_by_piece_are_joined() -> None:
    reads = [exchange("Read", OK, file_path="a.py", offset=start, limit=10) for start in (21, 1, 11, 90)]
    assert told(FactKind.FILE, *reads) == ["a.py (read 1-30, 90-99)"]


def test_a_file_that_was_read_and_changed_says_both() -> None:
    read = exchange("Read", OK, file_path="src/a.py", offset=1, limit=9)
    edit = exchange("Edit", OK, file_path="src/a.py", old_string="x", new_string="y")
    ledger = facts(read, edit)
    assert [fact.text for fact in ledger.of(FactKind.FILE)] == ["src/a.py (modified; read 1-9)"]
    assert ledger.of(FactKind.FILE)[0].source_ids == ("m0", "m1", "m2", "m3")


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("Write", {"file_path": "a.py", "content": "x"}),
        ("str_replace_based_edit_tool", {"command": "create", "path": "a.py", "file_text": "x"}),
        ("str_replace_editor", {"command": "str_replace", "path": "a.py", "old_str": "x", "new_str": "y"}),
        ("multi_edit", {"path": "a.py", "edits": []}),
        ("apply_patch", {"input": "*** Begin Patch\n*** Update File: a.py\n@@\n-x\n+y\n*** End Patch"}),
    ],
)
def test_files_are_modified_by_any_usual_tool(name: str, arguments: dict[str, Any]) -> None:
    assert told(FactKind.FILE, exchange(name, OK, **arguments)) == ["a.py (modified)"]
    assert told(FactKind.COMMAND, exchange(name, OK, **arguments)) == []


def test_an_editor_that_shows_a_file_has_not_changed_it() -> None:
    shown = exchange("str_replace_based_edit_tool", "1\tx", command="view", path="a.py", view_range=[1, 2])
    assert told(FactKind.FILE, shown) == ["a.py (read 1-2)"]


def test_what_failed_touched_no_file() -> None:
    missing = exchange("Read", "<tool_use_error>File does not exist.</tool_use_error>", file_path="a.py")
    edit = exchange("Edit", "<tool_use_error>String to replace not found in file.", file_path="b.py")
    assert told(FactKind.FILE, missing, edit) == []


def test_where_somebody_searched_is_not_a_file_that_was_read() -> None:
    assert told(FactKind.FILE, exchange("Grep", "src/a.py", pattern="x", path="src")) == []
    assert told(FactKind.FILE, exchange("read", OK, path="no\nname")) == []


# -- commands and errors --------------------------------------------------------------------------------------------


def test_a_command_is_told_by_its_first_line_with_how_it_went() -> None:
    script = exchange("bash", "1 passed", command="pytest -q <<EOF\nmore\nEOF")
    failed = exchange("bash", "Exit code 2\nmake: *** No rule", command="make all")
    well = exchange("bash", "Exit code 0\nerror: expected by the test", command="make test")
    assert told(FactKind.COMMAND, script, failed, well) == [
        "pytest -q <<EOF (ok)",
        "make all (exit 2)",
        "make test (ok)",
    ]


def test_a_long_command_is_cut_and_says_so() -> None:
    (text,) = told(FactKind.COMMAND, exchange("bash", OK, command="echo " + "word " * 100))
    assert text.endswith(f"word{CUT_MARK} (ok)")


def test_code_that_speaks_of_errors_is_no_failure() -> None:
    listing = "\n".join(f"{n:6}→    raise ValueError('error: exit code {n}')" for n in range(1, 90))
    shown = exchange("bash", listing, command="cat -n src/errors.py")
    read = exchange("Read", "class Error(Exception):\n    failed = 'exit code 1'", file_path="src/errors.py")
    ledger = facts(shown, read)
    assert [fact.text for fact in ledger.of(FactKind.COMMAND)] == ["cat -n src/errors.py (ok)"]
    assert not ledger.of(FactKind.ERROR)


def test_an_error_is_open_until_the_same_call_goes_well() -> None:
    failed = exchange("bash", "E   ValueError: x\n1 failed", command="pytest -q")
    edit = exchange("Edit", OK, file_path="src/a.py")
    passed = exchange("bash", "1 passed", command="pytest -q")
    assert told(FactKind.ERROR, failed, edit) == ["1 failed (not resolved)"]
    assert told(FactKind.ERROR, failed, edit, passed) == ["1 failed (resolved after changing src/a.py)"]
    assert told(FactKind.ERROR, failed, passed) == ["1 failed (resolved by trying again)"]
    assert told(FactKind.ERROR, failed, passed, failed) == ["1 failed (not resolved)"]


def test_a_call_that_goes_well_settles_all_its_earlier_failures() -> None:
    first = exchange("bash", "error: a is not there", command="make")
    second = exchange("bash", "error: b is not there", command="make")
    edits = [exchange("Edit", OK, file_path=f"src/{name}.py") for name in "abcde"]
    assert told(FactKind.ERROR, first, edits[0], second, *edits[1:], exchange("bash", OK, command="make")) == [
        "error: a is not there (resolved after changing src/e.py, src/d.py, src/c.py, …)",
        "error: b is not there (resolved after changing src/e.py, src/d.py, src/c.py, …)",
    ]


def test_a_number_alone_is_told_with_its_command_and_a_search_without_a_hit_is_no_error() -> None:
    killed = exchange("bash", "Exit code 137\n", command="make all")
    nothing = exchange("bash", "<returncode>1</returncode>\n<output>\n</output>", command="grep -rn x src")
    ledger = facts(killed, nothing)
    assert [fact.text for fact in ledger.of(FactKind.ERROR)] == ["make all: exit 137 (not resolved)"]
    assert [fact.detail for fact in ledger.of(FactKind.COMMAND)] == ["exit 137", "exit 1"]


# -- decisions, open items, mentions --------------------------------------------------------------------------------


def test_decisions_are_sentences_of_the_dialogue() -> None:
    text = "I read it. We decided to keep SQLite, e.g. for tests. Fine."
    printed = exchange("bash", "we decided to use Postgres", command="git log")
    assert told(FactKind.DECISION, user("hi"), agent(text), printed) == ["We decided to keep SQLite, e.g. for tests."]


def test_open_items_come_from_lists_and_words() -> None:
    todos = [{"content": "ship it", "status": "pending"}, {"content": "write it", "status": "completed"}]
    ledger = facts(agent("- [ ] rotate the keys"), exchange("TodoWrite", OK, todos=todos))
    assert [fact.text for fact in ledger.of(FactKind.OPEN_ITEM)] == ["rotate the keys", "ship it (pending)"]


def test_only_what_the_dialogue_touched_is_mentioned() -> None:
    printed = exchange("lookup", "ORD-4711 and cust_90001 at 2024-05-01", order="ORD-1234")
    ledger = facts(user("what about INV-7788?"), printed, agent("ORD-4711 is paid"))
    assert [fact.subject for fact in ledger.of(FactKind.MENTION)] == ["INV-7788", "ORD-1234", "ORD-4711"]


def test_artifacts_are_taken_over() -> None:
    artifact = Fact(FactKind.ARTIFACT, "art-1", "a dump", ("m0",))
    assert find_facts(numbered([user("hi")]), [artifact]).of(FactKind.ARTIFACT) == (artifact,)


# -- odd histories and speed ----------------------------------------------------------------------------------------


def test_nothing_says_nothing() -> None:
    assert find_facts(()) == Ledger()
    odd = [
        Message("assistant", None),
        Message("tool", "an orphan", tool_call_id="nobody"),
        Message("user", ({"type": "image_url", "image_url": {"url": "data:"}},)),
        Message("assistant", "", (ToolCall("c", "bash", "not json"), ToolCall("d", "bash", ""))),
        Message("tool", "\ud800", tool_call_id="c"),
    ]
    assert find_facts(numbered(odd)) == Ledger()


_UNITS = [
    "a", " ", "\n", "[", "([{", "- [ ] ", "I'll ", "we chose x. ", "TODO ", "instead of ", "- ", "1.2", '"', "\\",
    "https://", "a/", "*** Update File: ", "never ", "é",
]  # fmt: skip


@pytest.mark.parametrize("unit", _UNITS)
@pytest.mark.parametrize("role", ["assistant", "tool", "arguments"])
def test_no_text_takes_long(unit: str, role: str) -> None:
    """Half a megabyte of anything is read at once; what grows with the square of a text would take hours."""
    text = unit * (500_000 // len(unit))
    made = call("bash", command=text) if role == "arguments" else call("bash", command="ls")
    result = text if role == "tool" else OK
    history = [Message("assistant", text if role == "assistant" else None, (made,)), Message("tool", result)]
    messages = numbered([history[0], Message("tool", result, tool_call_id="c")])
    began = time.process_time()
    find_facts(messages)
    assert time.process_time() - began < 15.0


def _work(exchanges: int) -> tuple[Message, ...]:
    code = "\n".join(f"    value_{n} = load(row[{n}], 'orders')  # error handling in {n}" for n in range(100))
    history: list[Message] = [user("Port it. Never touch the migrations.")]
    for n in range(exchanges):
        history += [agent(f"Now part {n}: we decided to split orders_{n}, instead of joining it.")]
        history += exchange("Read", code, file_path=f"src/part_{n % 50}.py", offset=n, limit=100)
        history += exchange("bash", f"{code}\n{n} passed", command=f"pytest tests/test_{n}.py -q")
    return numbered(history)


def test_a_history_four_times_as_long_takes_about_four_times_the_time() -> None:
    part, whole = _work(30), _work(120)
    size = sum(len(message.text) + sum(len(c.arguments) for c in message.tool_calls) for message in whole)
    assert 1_300_000 < size < 1_700_000
    times: list[float] = []
    # Each is read once: what was found in a text is remembered, so a second reading would tell nothing.
    for messages in (_work(3), part, whole):
        began = time.process_time()
        find_facts(messages)
        times.append(time.process_time() - began)
    assert times[2] < 3
    assert times[2] < 9 * times[1] + 0.2, "it would be sixteen times if it grew with the square"
