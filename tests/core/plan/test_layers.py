"""Groups, turns and the partition: dialogue pairs and tool groups are counted apart, and every message is somewhere."""

from __future__ import annotations

from hypothesis import given

from compact.core.log.entries import read_entry
from compact.core.log.groups import calls_answered, group_messages, turn_numbers
from compact.core.log.messages import Message
from compact.core.plan.layers import KeepRules, partition
from compact.testing import assistant, dialogue, system, tool_exchange, tool_run, user
from conversations import Wire, histories


def read(history: list[Wire]) -> list[Message]:
    return [read_entry(item, "x") for item in history]


def layers_of(history: list[Wire], **rules: int) -> tuple[list[int], ...]:
    messages = read(history)
    layers = partition(messages, group_messages(messages), KeepRules(**rules))  # type: ignore[arg-type]
    return tuple(sorted(part) for part in (layers.pinned, layers.recent, layers.tool_io, layers.remainder))


@given(histories())
def test_every_message_is_in_exactly_one_group_and_one_layer(history: list[Wire]) -> None:
    messages = read(history)
    groups = group_messages(messages)
    assert sorted(i for group in groups for i in group.indices) == list(range(len(messages)))
    layers = partition(messages, groups, KeepRules(recent_turns=2, tool_io_pairs=1))
    parts = [layers.pinned, layers.recent, layers.tool_io, layers.remainder]
    assert sorted(i for part in parts for i in part) == list(range(len(messages)))
    for group in groups:
        assert sum(not part.isdisjoint(group.indices) for part in parts) == 1


def test_a_result_belongs_to_the_nearest_open_call_with_its_id() -> None:
    history = [*tool_exchange("a", "one"), user("hi"), *tool_exchange("a", "two")]
    messages = read(history)
    assert [group.indices for group in group_messages(messages)] == [(0, 1), (2,), (3, 4)]
    assert sorted(calls_answered(messages, group_messages(messages))) == [1, 4]


def test_turns_start_with_a_user_message() -> None:
    assert turn_numbers(read([system("s"), *dialogue(2), *tool_exchange("a", "r")])) == (0, 1, 1, 2, 2, 2, 2)


def test_one_request_and_300_tool_calls_leave_296_to_compact() -> None:
    _, recent, tool_io, remainder = layers_of(tool_run(300), recent_turns=6, tool_io_pairs=4)
    assert recent == [0]
    assert tool_io == list(range(593, 601))
    assert len(remainder) == 592


def test_the_newest_question_is_kept_even_behind_many_replies() -> None:
    history = [*dialogue(3), user("the ask"), assistant("one"), assistant("two"), assistant("three")]
    _, recent, _, _ = layers_of(history, recent_turns=1, tool_io_pairs=1)
    assert recent == [6, 9]


def test_a_group_with_a_protected_member_is_pinned_whole() -> None:
    exchange = tool_exchange("a", "an approval")
    exchange[1]["meta"] = {"protected": True}
    pinned, *_ = layers_of([user("go"), *exchange, *tool_run(5)], recent_turns=1, tool_io_pairs=1)
    assert pinned == [1, 2]
