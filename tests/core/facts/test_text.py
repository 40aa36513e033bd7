"""Ranges are made one where they touch; the line around a place is found without looking far."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from compact.core.facts.text import joined_ranges, line_around

ranges = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 12)).map(lambda pair: (pair[0], sum(pair))))


def points(found: object) -> set[int]:
    return {point for start, end in found for point in range(start, end + 1)}  # type: ignore[attr-defined]


@given(ranges)
def test_joining_keeps_every_point_adds_none_and_leaves_gaps_between(found: list[tuple[int, int]]) -> None:
    joined = joined_ranges(found)
    assert points(joined) == points(found)
    assert all(before[1] + 1 < after[0] for before, after in pairwise(joined))
    assert joined_ranges(joined) == joined


def test_ranges_that_touch_or_overlap_are_one() -> None:
    assert joined_ranges([(40, 50), (1, 10), (11, 20), (15, 18)]) == ((1, 20), (40, 50))
    assert joined_ranges([]) == ()


@given(st.text(alphabet="ab \n", max_size=1500), st.data())
def test_the_line_around_a_place_has_the_place_and_no_end_of_line_before_it(text: str, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, max(0, len(text) - 1)))
    start, end = line_around(text, place)
    assert 0 <= start <= place <= max(end, place)
    assert end <= len(text)
    assert "\n" not in text[start:place]
    assert "\n" not in text[place:end].strip("\n")
    assert end - start <= 2 * 400


def test_a_short_line_is_found_whole() -> None:
    text = "before\nwe chose sqlite\nafter"
    start, end = line_around(text, text.index("chose"))
    assert text[start:end] == "we chose sqlite"


def test_of_a_line_without_end_only_what_is_near_is_taken_and_no_word_is_cut() -> None:
    text = "4711 " * 100_000
    start, end = line_around(text, 250_002)
    assert set(text[start:end].split()) == {"4711"}
    assert 700 < end - start <= 800
