"""Text is read in one way: ranges, lines, sentences, words, and the texts in JSON."""

from __future__ import annotations

import json
import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compact.core.facts.text import (
    CUT_MARK,
    WordBag,
    change_json_leaves,
    cut_line,
    ends_of,
    first_half,
    first_line,
    is_same_statement,
    joined_ranges,
    json_leaves,
    line_around,
    normalized,
    one_line,
    only_words,
    sentence_ranges,
    stands_in,
    whole_sentences,
    word_runs,
    words_of,
)

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


@given(st.text(max_size=80))
def test_half_a_text_is_shorter_and_how_it_begins(text: str) -> None:
    half = first_half(text)
    assert text.startswith(half)
    assert len(half) <= len(text) // 2
    if half.isascii() and half:
        assert text[len(half)].isspace()


def test_scripts_without_blanks_are_cut_too() -> None:
    assert first_half("部署前必须先运行所有测试并通知值班同事") == "部署前必须先运行所"
    assert first_half("src/app/main.py") == ""


def test_a_line_is_cut_between_words_and_marked() -> None:
    assert cut_line("error: port 8080 is taken", 18) == "error: port 8080" + CUT_MARK
    assert cut_line("x" * 30, 10) == "x" * 10 + CUT_MARK
    assert cut_line("short", 10) == "short"
    assert one_line(" a\n  b\tc ") == "a b c"
    assert one_line("one two three four", 10) == "one two" + CUT_MARK
    assert first_line("\n\n make all\nmake test") == "make all"


# -- sentences --------------------------------------------------------------------------------------------------------


def sentences(text: str, *, split_clauses: bool = False) -> list[str]:
    return [text[start:end] for start, end in sentence_ranges(text, split_clauses=split_clauses)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("We chose sqlite. It is small! Is it?", ["We chose sqlite.", "It is small!", "Is it?"]),
        ("Read src/a.py, v1.2 and 3.5 first. Then go.", ["Read src/a.py, v1.2 and 3.5 first.", "Then go."]),
        ("Use a template (e.g. A or B). Then i.e. C.", ["Use a template (e.g. A or B).", "Then i.e. C."]),
        ("It took approx. five minutes.", ["It took approx. five minutes."]),
        ("one line\n\n- another", ["one line", "- another"]),
        ("先运行测试。然后部署！", ["先运行测试。", "然后部署！"]),
        ("他说：「好。」然后走了", ["他说：「好。」", "然后走了"]),
        ("", []),
    ],
)
def test_sentences_end_where_a_reader_would_say(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


def test_clauses_end_at_semicolons_and_before_small_letters_too() -> None:
    text = "pytest passed. npm failed; keep going e.g. tomorrow"
    assert sentences(text) == [text]
    assert sentences(text, split_clauses=True) == ["pytest passed.", "npm failed;", "keep going e.g. tomorrow"]


@given(st.text(alphabet="aB.!?; \n\t。」e", max_size=60), st.booleans())
def test_between_sentences_are_only_blanks(text: str, split_clauses: bool) -> None:
    ranges = [*sentence_ranges(text, split_clauses=split_clauses), (len(text), len(text))]
    assert all(before[1] <= after[0] for before, after in pairwise(ranges))
    assert not "".join(text[before[1] : after[0]] for before, after in pairwise(ranges)).strip()
    assert ranges[0][0] == 0


@pytest.mark.parametrize(
    ("cut", "expected"),
    [
        ("It works. The tests in src/bi", "It works."),
        ("It works, e.g. for src/bi", "It works, e.g. for"),
        ("pytest passed. npm fai", "pytest passed."),
        ("done; the rest follows in src/bi", "done; the rest follows in"),
        ("It works.", "It works."),
        ("first line\nsecond li", "first line"),
        ("first line\n", "first line"),
        ("测试通过。然后部", "测试通过。"),
        ("测试通过然后部", "测试通过然后部"),
        ("", ""),
    ],
)
def test_a_text_that_was_cut_ends_with_a_whole_sentence_or_a_whole_word(cut: str, expected: str) -> None:
    assert whole_sentences(cut) == expected


# -- words ------------------------------------------------------------------------------------------------------------


def test_what_people_write_one_way_or_another_is_the_same() -> None:
    assert normalized(" Don’t  STOP! ") == "don't stop"
    assert normalized("- `Fix it`.", trim=" -`.") == "fix it"
    assert normalized("--force") == "--force"


def test_a_string_stands_in_a_text_only_as_a_whole_word() -> None:
    assert stands_in("see src/app.py, line 12", "src/app.py")
    assert stands_in("retries: 12, 123", "12")
    assert not stands_in("retries: 123", "12")
    assert not stands_in("my_name", "name")


def test_words_are_letters_alone() -> None:
    assert words_of("The port 8080 of my_server, v2") == {"the", "port", "of", "my", "server", "v"}
    assert words_of("The port 8080 of my_server", min_chars=4) == {"port", "server"}


def test_runs_of_words_show_what_was_copied() -> None:
    assert word_runs("Keep it brief, please", 3) == {("keep", "it", "brief"), ("it", "brief", "please")}
    assert word_runs("two words", 3) == set()
    assert only_words("Keep it: brief!") == " keep it brief "


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("Move the invoices to the new bucket", "move the invoices to the new bucket.", True),
        ("Move all the invoices to the new bucket today", "move the invoices to the new bucket today", True),
        ("cap batches at 2000 rows", "cap batches at 5000 rows", False),
        ("edit src/a.py now please", "edit src/b.py now please", False),
        ("", "", True),
        ("", "anything", False),
    ],
)
def test_statements_are_the_same_if_nearly_all_words_are_and_every_name_is(one: str, other: str, is_same: bool) -> None:
    assert is_same_statement(one, other) is is_same
    assert is_same_statement(other, one) is is_same


def test_bags_of_words_know_forms_denials_and_scripts_without_blanks() -> None:
    bag = WordBag("Never rename the exported tables")
    assert bag.is_negated
    assert bag.covered_by([WordBag("do not rename exporting table")], share=1.0)
    assert not bag.covered_by([WordBag("rename the exported tables")], share=0.5)
    assert not WordBag("the and of").covered_by([bag], share=0.0)
    assert WordBag("rename tables").likeness(WordBag("renamed table")) == 1.0
    assert WordBag("").likeness(bag) == 0.0
    assert WordBag("运行测试").covered_by([WordBag("必须先运行测试")], share=1.0)


# -- JSON -------------------------------------------------------------------------------------------------------------

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=12,
)


def test_leaves_are_values_in_order_with_or_without_names() -> None:
    value = {"path": "a.py", "edits": [{"line": 3, "text": "x = 1", "dry_run": True, "why": None}]}
    assert list(json_leaves(value)) == ["a.py", "3", "x = 1"]
    assert list(json_leaves(value, with_names=True)) == [
        "path", "a.py", "edits", "line", "3", "text", "x = 1", "dry_run", "True", "why"
    ]  # fmt: skip


@given(values)
def test_leaves_are_changed_in_the_same_order_each_at_its_place(value: object) -> None:
    joined = "".join(f"{text}\n" for text in json_leaves(value))
    places: list[tuple[int, str]] = []

    def keep(leaf: object, place: int) -> object:
        places.append((place, str(leaf)))
        return leaf

    assert change_json_leaves(value, keep) == value
    assert [text for _, text in places] == list(json_leaves(value))
    assert all(joined.startswith(f"{text}\n", place) for place, text in places)
    assert json.dumps(change_json_leaves(value, keep)) == json.dumps(value)


@pytest.mark.parametrize("unit", ["a. ", "。", "\n", "; ", "e.g. ", ".", " ", "a"])
def test_no_text_takes_long(unit: str) -> None:
    text = unit * (300_000 // len(unit))
    began = time.process_time()
    assert sum(1 for _ in sentence_ranges(text)) >= 0
    whole_sentences(text[:-1])
    is_same_statement(text, text[:-1])
    WordBag(text)
    assert time.process_time() - began < 4.0


def test_of_a_very_long_text_the_two_ends_are_read_up_to_whole_words() -> None:
    assert ends_of("") == ((0, 0),)
    assert ends_of("a b c", 2) == ((0, 1), (3, 5))
    assert ends_of("four", 2) == ((0, 4),)
    text = "".join(f"word{number} " for number in range(100_000))
    (first, head), (tail, last) = ends_of(text)
    assert (first, last) == (0, len(text))
    assert 199_000 < head <= 200_000 <= last - tail + 1_000 <= 201_000
    assert text[head] == text[tail] == " "
    (_, head), (tail, _) = ends_of("x" * 500_000)
    assert (head, tail) == (200_000, 300_000)
