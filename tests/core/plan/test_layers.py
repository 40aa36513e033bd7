"""Groups, turns and the partition: dialogue pairs and tool groups are counted apart, and every message is somewhere."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given

from compact.core.messages.entries import read_entry
from compact.core.messages.groups import calls_answered, group_messages, turn_numbers
from compact.core.messages.message import Message
from compact.core.plan.layers import KeepRules, Layers, partition
from compact.testing import assistant, dialogue, system, tool_exchange, tool_run, user
from conversations import Wire, histories


def read(history: list[Wire]) -> list[Message]:
    return [read_entry(item, "x") for item in history]


def layers_of(history: list[Wire], **rules: int) -> tuple[list[int], ...]:
    messages = read(history)
    layers = partition(messages, group_messages(messages), KeepRules(**rules))  # type: ignore[arg-type]
    return tuple(sorted(part) for part in (layers.pinned, layers.recent, layers.tool_io, layers.remainder))


def partitioned(history: list[Wire], **rules: Any) -> Layers:
    """The layers of a history whose messages are m0, m1, …"""
    messages = [replace(message, id=f"m{place}") for place, message in enumerate(read(history))]
    return partition(messages, group_messages(messages), KeepRules(**rules))


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


def test_fewer_messages_than_are_kept_are_all_kept() -> None:
    _, recent, tool_io, remainder = layers_of([*dialogue(2), *tool_exchange("a", "r")], recent_turns=6, tool_io_pairs=4)
    assert (recent, tool_io, remainder) == ([0, 1, 2, 3], [4, 5], [])


def test_a_reply_stays_with_its_question() -> None:
    _, recent, _, remainder = layers_of(dialogue(3), recent_turns=2)
    assert (recent, remainder) == ([2, 3, 4, 5], [0, 1])


def test_results_that_were_not_read_yet_stay_whatever_the_rules() -> None:
    history = [user("go"), *tool_exchange("a", "one"), *tool_exchange("b", "two")]
    assert partitioned(history, tool_io_pairs=0).tool_io == {3, 4}
    assert partitioned(history, tool_io_pairs=0, unread_results=False).tool_io == set()
    assert partitioned([*history, assistant("read")], tool_io_pairs=0).tool_io == set()
    assert partitioned([user("go")], tool_io_pairs=0).tool_io == set()


def test_a_question_at_the_end_is_kept_where_no_turn_is() -> None:
    assert partitioned([*dialogue(2), user("and now?")], recent_turns=0).recent == {4}
    assert partitioned(dialogue(2), recent_turns=0).recent == {2}
    assert partitioned([assistant("one"), assistant("two")], recent_turns=0).recent == set()


def test_what_was_missed_is_kept_beside_the_newest_groups() -> None:
    """By the message that brought it back; one of the newest groups is kept for that, and counted once."""
    history = tool_run(5)
    layers = partitioned(history, tool_io_pairs=2, missed=frozenset({"m2", "m10"}))
    assert layers.tool_io == {1, 2, 7, 8, 9, 10}
    assert (layers.missed, layers.tool_pairs) == ({2}, 3)
    assert partitioned(history, tool_io_pairs=2).tool_io == {7, 8, 9, 10}


def test_attachments_in_use_are_kept_and_may_stand_before_the_summary() -> None:
    history = [system("s"), *dialogue(4)]
    layers = partitioned(history, recent_turns=1, attached=frozenset({"m0", "m1"}))
    assert (layers.recent, layers.attached) == ({1, 7, 8}, {1})
    assert layers.before_summary == {0, 1}
    assert layers.kept == {0, 1, 7, 8}


def test_a_message_is_pinned_by_either_mark() -> None:
    """By the word of the policy, and by the one that adapters use."""
    rules = KeepRules(protected_flag="keep")
    marked = [Message("user", "x", meta=meta) for meta in ({"keep": True}, {"protected": True}, {"kept": True}, {})]
    assert [rules.pins(message) for message in marked] == [True, True, False, False]


def test_rules_get_smaller_in_turn_down_to_one_of_each() -> None:
    """What was missed goes first."""

    def steps(**rules: Any) -> list[tuple[int, int, int]]:
        found = KeepRules(**rules).reductions()
        return [(one.recent_turns, one.tool_io_pairs, len(one.missed)) for one in found]

    assert steps(recent_turns=3, tool_io_pairs=2, missed=frozenset({"m1"})) == [
        (3, 2, 1),
        (3, 2, 0),
        (2, 2, 0),
        (2, 1, 0),
        (1, 1, 0),
    ]
    assert steps(recent_turns=1, tool_io_pairs=3) == [(1, 3, 0), (1, 2, 0), (1, 1, 0)]
    assert steps(recent_turns=2, tool_io_pairs=1) == [(2, 1, 0), (1, 1, 0)]
