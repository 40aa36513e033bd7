"""The structure of a history that grows is that of the same history read at once."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from compact.core.messages.groups import Group, GroupReader, calls_answered, group_at, group_messages, turn_numbers
from compact.core.messages.legality import check_chat
from compact.core.messages.message import Message
from compact.core.messages.structure import HistoryStructure, all_but
from compact.core.messages.turn_order import TurnOrder
from compact.testing import tool_exchange
from conversations import Wire, histories
from numbered import numbered


def facets(structure: HistoryStructure) -> tuple[Any, ...]:
    """Everything a structure tells, as values that can be compared."""
    return (
        tuple(structure.groups),
        tuple(structure.turns),
        dict(structure.answered),
        dict(structure.places),
        list(structure.group_numbers),
        list(structure.attached),
        structure.is_legal,
        vars(structure.turn_order),
    )


@given(histories(max_size=20), st.lists(st.integers(0, 40), max_size=4))
def test_a_history_that_grows_has_the_structure_of_the_whole(history: list[Wire], ends: list[int]) -> None:
    messages, structure = list(numbered(history)), HistoryStructure()
    for end in sorted(ends):
        structure = structure.of(messages[:end])
    grown, groups = structure.of(messages), group_messages(messages)
    assert tuple(grown.groups) == groups
    assert tuple(grown.turns) == turn_numbers(messages)
    assert grown.answered == calls_answered(messages, groups)
    assert grown.places == {message.id: place for place, message in enumerate(messages)}
    assert all(place in groups[number].indices for place, number in enumerate(grown.group_numbers))
    assert grown.is_legal is not bool(check_chat(messages))
    assert vars(grown.turn_order) == vars(TurnOrder(messages))


@given(histories(min_size=1, max_size=20), st.data())
def test_an_edited_history_is_read_anew(history: list[Wire], data: st.DataObject) -> None:
    messages = list(numbered(history))
    structure = HistoryStructure(messages)
    place = data.draw(st.integers(0, len(messages) - 1))
    edited = [*messages[:place], Message("user", "something else", id="edited"), *messages[place + 1 :]]
    assert facets(structure.of(edited)) == facets(HistoryStructure(edited))
    assert facets(structure.of(messages[:place])) == facets(HistoryStructure(messages[:place]))


@given(histories(min_size=2, max_size=20))
def test_a_copy_goes_on_by_itself(history: list[Wire]) -> None:
    messages = list(numbered(history))
    structure = HistoryStructure(messages[:-1])
    before, copy = facets(structure), structure.copy()
    assert facets(copy) == before
    assert facets(copy.of(messages)) == facets(HistoryStructure(messages))
    assert tuple(structure.groups) == before[0]
    assert structure.places == before[3]


def test_a_call_without_a_result_and_a_result_without_a_call_are_groups_of_tools() -> None:
    call, result = numbered(tool_exchange("c1", "found"))
    orphan = numbered([{"role": "tool", "tool_call_id": "gone", "content": "lost"}])[0]
    assert group_messages([call]) == (Group((0,), True),)
    assert group_messages([orphan]) == (Group((0,), True),)
    assert group_messages([call, result]) == (Group((0, 1), True),)


def test_a_copy_waits_for_the_same_results_and_goes_on_by_itself() -> None:
    call, result = numbered(tool_exchange("c1", "found"))
    reader = GroupReader()
    reader.add(call)
    twin = reader.copy()
    assert twin.add(result) == 0
    assert twin.groups == [Group((0, 1), True)]
    assert reader.groups == [Group((0,), True)]
    assert reader.add(result) == 0, "the call still waits here"


@given(histories(max_size=30))
def test_the_group_of_a_message_is_found_wherever_its_results_stand(history: list[Wire]) -> None:
    messages = numbered(history)
    groups = group_messages(messages)
    for place in range(len(messages)):
        assert place in groups[group_at(groups, place)].indices


@given(histories(max_size=20), st.data())
def test_what_is_outside_a_span_is_known_of_spans_that_grow_shrink_and_come_back(
    history: list[Wire], data: st.DataObject
) -> None:
    messages, structure = list(numbered(history)), HistoryStructure()
    ids = st.frozensets(st.sampled_from([message.id for message in messages] or ["gone"]))
    spans = data.draw(st.lists(ids, min_size=1, max_size=4))
    spans.append(spans[0].union(*spans))
    for end in sorted(data.draw(st.lists(st.integers(0, len(messages)), max_size=4))):
        structure = structure.of(messages[:end])
        for span in (data.draw(st.sampled_from(spans)), data.draw(st.sampled_from(spans))):
            expected = [place for place, message in enumerate(messages[:end]) if message.id not in span]
            assert list(structure.outside(span)) == expected == list(structure.copy().outside(span))
            assert all_but(messages[:end], expected) == [one for one in messages[:end] if one.id in span]


def test_of_a_span_that_has_all_of_the_one_before_only_the_rest_is_looked_at() -> None:
    messages = list(numbered([{"role": "user", "content": "one"}] * 6))
    structure = HistoryStructure(messages)
    assert list(structure.outside(frozenset({"m0", "m1"}))) == [2, 3, 4, 5]
    structure._messages[0] = Message("user", "never asked again", id="other")
    assert list(structure.outside(frozenset({"m0", "m1", "m3"}))) == [2, 4, 5]
