"""What planning asks of each message of a line is known of a line that has grown, was edited, or is read at once."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from compact.core.facts.tool_calls import is_typed
from compact.core.messages.message import Message, ToolCall
from compact.core.plan.line_index import LineIndex
from conversations import Wire, histories
from numbered import numbered


def known(index: LineIndex) -> tuple[object, ...]:
    return index.asks, index.ask_chars, index.marked, index.tools, index.decided


@settings(max_examples=60)
@given(histories(max_size=20), st.data())
def test_an_index_that_has_grown_is_that_of_its_line(history: list[Wire], data: st.DataObject) -> None:
    messages, index = numbered(history), LineIndex()
    for _ in range(4):
        start, end = data.draw(st.integers(0, len(messages))), data.draw(st.integers(0, len(messages)))
        line = [*messages[:start], *messages[end:]]
        index = index.of(line)
        assert known(index) == known(LineIndex(line)) == known(index.copy())
        assert index.asks == [place for place, message in enumerate(line) if is_typed(message)]


def test_a_copy_goes_on_by_itself() -> None:
    line = numbered([Message("user", "one")])
    index = LineIndex(line)
    index.copy().of([*line, *numbered([Message("system", "two")])])
    assert index.marked == []


def test_decisions_are_found_in_what_came_since_they_were_last_asked_for() -> None:
    first = numbered([Message("user", "hello"), Message("assistant", "We decided to use SQLite.")])
    index = LineIndex(first)
    assert list(index.decided) == [1]
    twin, more = index.copy(), [*first, Message("tool", "We decided nothing.", id="t"), Message("user", "yes", id="y")]
    assert list(index.of(more).decided) == [1]
    line = [*more, Message("assistant", "I decided to go with tar.", id="z")]
    assert list(index.of(line).decided) == list(twin.of(line).decided) == [1, 4]


def test_what_may_be_pinned_has_marks_or_a_role_of_its_own() -> None:
    line = [Message("system", "s"), Message("user", "u"), Message("user", "v", meta={"protected": True})]
    assert list(LineIndex(line).may_pin(frozenset({"system"}))) == [0, 2]
    assert list(LineIndex(line).may_pin(frozenset({"user"}))) == [1, 2]


def test_the_first_message_may_decide_something() -> None:
    assert list(LineIndex(numbered([Message("assistant", "We decided to use SQLite.")])).decided) == [0]


def test_an_index_tells_how_long_what_people_typed_is_and_which_tool_each_call_is_of() -> None:
    call = Message("assistant", None, tool_calls=(ToolCall("c1", "bash", "{}"), ToolCall("c2", "grep", "{}")))
    index = LineIndex([Message("user", "twelve chars"), call, Message("user", "four")])
    assert (index.asks, index.ask_chars) == ([0, 2], [12, 4])
    assert index.tools == {"c1": "bash", "c2": "grep"}
