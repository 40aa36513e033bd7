"""Long runs are cut without changing a count."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compact.tokens import TiktokenTokenizer, toktok_counter
from compact.tokens.runs import LONG, PERIOD, STRIDE, shorten

ASCII = [chr(code) for code in (*range(9, 14), *range(32, 127))]


@pytest.fixture(scope="module", params=["cl100k_base", "o200k_base"])
def encoding(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.mark.parametrize("length", [LONG, LONG + PERIOD - 1])
def test_a_run_of_any_ascii_character_counts_as_uncut(encoding: str, length: int) -> None:
    """Whatever the character and whatever stands around the run."""
    whole: Callable[[str], int] = toktok_counter.load(encoding)
    tokenizer = TiktokenTokenizer(encoding)
    for char in ASCII:
        for before, after in (("", ""), (" ", "x"), ("!", "\n/")):
            text = before + char * length + after
            assert len(shorten(text).text) < len(text)
            assert tokenizer.count_text(text) == whole(text), (char, before, after)


runs = st.builds(lambda char, times: char * times, st.sampled_from("- a\n1中"), st.integers(1, 3 * LONG))


@given(st.lists(st.one_of(runs, st.text(max_size=5)), max_size=4).map("".join))
@settings(max_examples=60, deadline=None)
def test_cut_text_and_cut_periods_make_up_the_text(text: str) -> None:
    """Nothing but whole periods of one character is taken out."""
    short = shorten(text)
    assert len(short.text) + sum(periods * PERIOD for _, periods in short.cut_periods) == len(text)
    for char in set(text):
        cut = sum(periods for run, periods in short.cut_periods if run == char)
        assert short.text.count(char) + cut * PERIOD == text.count(char)
    for char in set("- a\n1") & set(text):
        assert char * (LONG + STRIDE) not in short.text


@given(st.lists(st.one_of(runs, st.text(st.characters(codec="utf-8"), max_size=5)), max_size=3).map("".join))
@settings(max_examples=30, deadline=None)
def test_neighbouring_runs_count_as_uncut(text: str) -> None:
    """Runs next to each other keep their count too."""
    assert TiktokenTokenizer("cl100k_base").count_text(text) == toktok_counter.load("cl100k_base")(text)


def test_short_text_is_left_alone() -> None:
    """Without a long run the very same text comes back."""
    text = "ab" * LONG
    assert shorten(text).text == text
    assert shorten(text).cut_periods == ()
