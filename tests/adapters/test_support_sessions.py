"""Lists find their session by how they go on, and nobody else's."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from compact.adapters.support.sessions import SessionFinder


def items(*texts: str) -> list[Any]:
    return [{"role": "user", "content": text} for text in texts]


def test_a_list_that_goes_on_belongs_to_the_same_session() -> None:
    finder = SessionFinder("x")
    first = finder.find(items("a"))
    assert first.startswith("x-")
    assert finder.find(items("a", "b")) == first
    assert finder.find(items("a", "b")) == first
    assert finder.find(items("a", "b", "c")) == first


def test_one_that_parts_from_it_does_not() -> None:
    """Neither one that goes another way, nor one that is shorter: both may be somebody else's."""
    finder = SessionFinder("x")
    first = finder.find(items("a", "b"))
    assert finder.find(items("a", "c")) != first
    assert finder.find(items("a")) != first
    assert finder.find(items("b")) != first
    assert finder.find(items("a", "b", "c")) == first


def test_under_a_name_others_have_names_of_their_own() -> None:
    """An agent that another calls is told from one that takes over."""
    finder = SessionFinder("x")
    assert finder.find(items("a"), base="s", agent="chief") == "s"
    helper = finder.find(items("do this"), base="s", agent="helper")
    assert helper.startswith("s/helper-")
    assert finder.find(items("do this", "done"), base="s", agent="helper") == helper
    assert finder.find(items("do that"), base="s", agent="helper") not in ("s", helper)
    assert finder.find(items("a", "b"), base="s", agent="helper") == "s"
    assert finder.find(items("another past"), base="s", agent="chief") == "s"
    assert finder.find(items("a"), base="t", agent="helper") == "t"


def test_the_names_of_others_are_the_same_in_every_process() -> None:
    names = []
    for _ in range(2):
        finder = SessionFinder("x")
        finder.find(items("a"), base="s", agent="chief")
        names.append(finder.find(items("do this"), base="s", agent="helper"))
    assert names[0] == names[1]


def test_what_changes_from_call_to_call_can_be_left_out() -> None:
    finder = SessionFinder("x", normalise=lambda item: item["content"])
    first = finder.find([{"content": "a", "mark": 1}])
    assert finder.find([{"content": "a"}, {"content": "b", "mark": 1}]) == first


def test_a_clock_and_cleared_results_do_not_make_it_another() -> None:
    def sent(time: str, *results: str) -> list[Any]:
        said = {"role": "assistant", "content": "I look."}
        found = [{"role": "tool", "tool_call_id": f"c{n}", "content": text} for n, text in enumerate(results)]
        return [{"role": "system", "content": f"It is {time}."}, *items("go"), said, *found]

    finder = SessionFinder("x")
    first = finder.find(sent("2026-03-01 09:00"))
    assert finder.find(sent("2026-03-01 09:01", "a long result")) == first
    assert finder.find(sent("2026-03-01 09:02", "[cleared]", "another")) == first
    other = sent("2026-03-01 09:03", "[cleared]", "another")
    other[2] = {"role": "assistant", "content": "I do not look."}
    assert finder.find(other) != first


def test_only_so_many_are_remembered() -> None:
    finder = SessionFinder("x")
    first = finder.find(items("first"))
    for number in range(2_000):
        finder.find(items(str(number)))
    assert finder.find(items("first")) != first


@given(st.lists(st.lists(st.sampled_from("abc"), min_size=1, max_size=6), min_size=1, max_size=6), st.randoms())
def test_conversations_never_share_what_only_one_has_said(conversations: list[list[str]], random: Any) -> None:
    """Whatever the order in which they go on: all that a session was shown is one line of growing lists."""
    finder = SessionFinder("x")
    shown: dict[str, list[list[str]]] = {}
    places = [0] * len(conversations)
    while any(place < len(talk) for place, talk in zip(places, conversations, strict=True)):
        open_ones = [n for n, talk in enumerate(conversations) if places[n] < len(talk)]
        number = random.choice(open_ones)
        places[number] += 1
        texts = conversations[number][: places[number]]
        shown.setdefault(finder.find(items(*texts)), []).append(texts)
    for lists in shown.values():
        assert all(later[: len(earlier)] == earlier for earlier, later in pairwise(lists))
