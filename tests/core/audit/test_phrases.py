"""A phrase that somebody looks for: what it is found in, and the excerpt that shows it."""

from __future__ import annotations

import pytest

from compact.core.audit.phrases import Phrase, PhraseExcerpt, fold, fold_message
from compact.core.messages.message import Message, ToolCall

CALLS = (ToolCall("c1", "bash", '{"command": "ls"}'), ToolCall("c2", "grep", '{"pattern": "x"}'))


def excerpt(phrase: str, text: str) -> PhraseExcerpt:
    return Phrase(phrase).excerpt(Message("user", text))


def marked(phrase: str, text: str) -> list[str]:
    found = excerpt(phrase, text)
    return [found.text[start:end] for start, end in found.marks]


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("", ""),
        (" \n", " "),
        ("Two\n\twords", "two words"),
        ("\nStraße ", " strasse "),
        ("a ", "a "),
        (" a", " a"),
    ],
)
def test_case_and_white_space_make_no_difference(text: str, folded: str) -> None:
    assert fold(text) == folded


def test_no_phrase_is_found_across_the_fields_of_a_message() -> None:
    message = Message("assistant", "Look here", CALLS)
    folded = fold_message(message)
    assert folded == 'look here\nbash\n{"command": "ls"}\ngrep\n{"pattern": "x"}'
    assert Phrase("here bash").folded not in folded
    assert fold_message(Message("user", "Look\nhere")) == "look here"


def test_a_phrase_without_words_is_empty() -> None:
    assert [Phrase(text).is_empty for text in ("", " \n", "a", " a")] == [True, True, False, False]


def test_the_first_field_that_has_the_phrase_is_shown() -> None:
    message = Message("assistant", "Look here", CALLS)
    assert Phrase("LS").excerpt(message) == PhraseExcerpt('{"command": "ls"}', ((13, 15),))
    assert Phrase("look").excerpt(message) == PhraseExcerpt("Look here", ((0, 4),))
    assert Phrase("e").excerpt(message) == PhraseExcerpt("Look here", ((6, 7), (8, 9)))


def test_without_the_phrase_the_beginning_is_shown() -> None:
    assert Phrase("nothing").excerpt(Message("assistant", " ", CALLS)) == PhraseExcerpt("bash")
    assert excerpt("nothing", "") == PhraseExcerpt("")
    assert excerpt("nothing", "word " * 60) == PhraseExcerpt(f"{'word ' * 32}…")


def test_an_excerpt_is_cut_between_words() -> None:
    found = excerpt("needle", "word " * 40 + "a needle\n\nhere " + "word " * 60)
    assert found == PhraseExcerpt(f"… {'word ' * 9}a needle here {'word ' * 21}…", ((49, 55),))
    assert excerpt("needle", f"{'a' * 45} needle {'b ' * 9}") == PhraseExcerpt(
        f"{'a' * 45} needle {'b ' * 9}".strip(), ((46, 52),)
    )


@pytest.mark.parametrize("before", range(40, 75, 5))
def test_an_excerpt_begins_and_ends_with_a_whole_word_if_one_is_near(before: int) -> None:
    words = " ".join(f"w{number:03}" for number in range(60))
    found = excerpt("needle", f"{words[-before:].strip()} needle {words}")
    lead, _, rest = found.text.partition("needle")
    assert all(len(word) == 4 for word in rest.removesuffix("…").split())
    assert 100 < len(rest) < 120
    if lead.startswith("… "):
        assert all(len(word) == 4 for word in lead[2:].split())
        assert 35 < len(lead) < 52


def test_where_no_word_ends_near_an_excerpt_is_cut_anywhere() -> None:
    found = excerpt("needle", f"{'a' * 90} needle {'b' * 200}")
    assert found == PhraseExcerpt(f"… {'a' * 47} needle {'b' * 111} …", ((50, 56),))
    assert excerpt("needle", f"{'a' * 60} needle") == PhraseExcerpt(f"… {'a' * 47} needle", ((50, 56),))
    spaced = f"{'a' * 30} {'a' * 29} needle {'b' * 95} {'b' * 40}"
    assert excerpt("needle", spaced) == PhraseExcerpt(
        f"… {'a' * 17} {'a' * 29} needle {'b' * 95} {'b' * 15} …", ((50, 56),)
    )


def test_a_text_that_ends_with_its_excerpt_is_shown_to_its_end() -> None:
    for behind in (111, 112, 113):
        text = f"needle{'b' * behind}"
        assert excerpt("needle", text).text == (text if behind < 113 else f"{text[:-1]} …")


def test_a_phrase_is_marked_wherever_white_space_and_case_differ() -> None:
    assert marked("the  Berth", "At the\n berth, THE BERTH") == ["the berth", "THE BERTH"]
    assert marked("straße 7", "ISTANBUL: Straße 7") == ["Straße 7"]
    assert marked("(a+b)", "so (A+B) it is") == ["(A+B)"]
    assert marked("needle", "ß" * 9 + " a needle") == ["needle"]


def test_what_only_folding_finds_is_shown_from_the_beginning_without_a_mark() -> None:
    assert excerpt("strasse 7", "Die alte Straße 7") == PhraseExcerpt("Die alte Straße 7")
    long = excerpt("strasse", f"{'word ' * 60}Straße")
    assert long == PhraseExcerpt(f"{'word ' * 22}…")
    assert excerpt("strasse", "Weg, Gasse") == PhraseExcerpt("Weg, Gasse")


@pytest.mark.parametrize("lead", ["", "before it ", "be(fore)", "word " * 30])
def test_a_phrase_that_is_longer_than_an_excerpt_is_marked_as_far_as_it_is_shown(lead: str) -> None:
    long = " ".join(f"w{number:03}" for number in range(90))
    (shown,) = marked(long, f"{lead}{long} behind")
    assert long.startswith(shown)
    assert 330 < len(shown) < 353
    assert excerpt(long, f"{lead}{long} behind").text.endswith(f"{shown} …")


def test_a_long_phrase_that_fits_is_marked_whole() -> None:
    long = " ".join(f"w{number:03}" for number in range(60))
    assert marked(long, f"before {long} behind") == [long]
