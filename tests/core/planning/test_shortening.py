"""What is too large is cut to its best lines: within what is allowed, in its own words, constraints and ends first."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compact.constraints import LearnedConstraints
from compact.core.facts.tool_calls import argument_texts
from compact.core.messages.message import Message
from compact.core.plan.plan import ClearRecord, SpanReference
from compact.core.plan.stubs import render_cleared
from compact.core.planning.shortening import Candidate, Shortener
from compact.testing import WordTokenizer
from conversations import Wire, histories
from numbered import call, exchange, numbered

count = WordTokenizer().count_message
CONSTRAINT = "From now on, never touch the table tide_log."


def shorten(messages: Sequence[Message], excess: int, *, only: Sequence[int] | None = None) -> dict[str, ClearRecord]:
    chosen = range(len(messages)) if only is None else only
    candidates = [Candidate(messages[i], count(messages[i]), count(messages[i])) for i in chosen]
    return {
        record.span.first: record
        for record in Shortener(messages, count, LearnedConstraints()).shorten(candidates, excess)
    }


def lines(number: int, word: str = "berth") -> str:
    return "\n".join(f"{word} {n} is taken by ship_{n} until the {n}th" for n in range(number))


@settings(max_examples=60)
@given(histories(min_size=1, max_size=12), st.integers(1, 600))
def test_what_is_cut_gets_smaller_and_stays_in_its_own_words(history: list[Wire], excess: int) -> None:
    messages = numbered(history)
    records = shorten(messages, excess)
    for message in messages:
        record = records.get(message.id)
        if record is None:
            continue
        cut = render_cleared(message, record)
        assert record.tokens_after == count(cut) < count(message)
        assert all(0 <= start < end <= len(message.text) for start, end in record.kept)
        for made in cut.tool_calls:
            json.loads(made.arguments)


@settings(max_examples=40)
@given(st.integers(1, 900), st.integers(1, 4))
def test_as_much_is_cut_as_is_needed_and_hardly_more(excess: int, files: int) -> None:
    messages = numbered([m for n in range(files) for m in exchange("read", lines(60, f"word{n}"), path=f"f{n}")])
    total = sum(map(count, messages))
    records = shorten(messages, excess)
    freed = sum(count(messages[int(first[1:])]) - record.tokens_after for first, record in records.items())
    floor = total - 40 * len(messages)
    assert min(excess, floor) <= freed
    assert freed <= excess + 0.2 * total + 60


def test_nothing_is_cut_where_nothing_is_too_large() -> None:
    assert shorten(numbered([Message("user", lines(50))]), 0) == {}
    assert shorten((), 100) == {}
    assert shorten(numbered([Message("user", "a short message")]), 100) == {}


def test_the_lines_that_stay_say_what_nothing_else_in_the_prompt_says() -> None:
    known = lines(40)
    messages = numbered(
        [*exchange("read", f"{known}\nquay_9 lies dry\n{known}", path="a"), Message("assistant", known)]
    )
    record = shorten(messages, 650, only=[1])["m1"]
    text = render_cleared(messages[1], record).text
    assert "quay_9 lies dry" in text
    assert "berth 17 is taken" not in text


def test_the_lines_that_stay_have_to_do_with_what_is_talked_of() -> None:
    other = "\n".join(f"the widget_factory_{n} was painted grey" for n in range(60))
    result = f"{other}\nthe harbour_rate_77 was painted grey\n{other.replace('factory', 'foundry')}"
    messages = numbered([Message("user", "Who changed the harbour rate?"), *exchange("read", result, path="log")])
    text = render_cleared(messages[2], shorten(messages, 550, only=[2])["m2"]).text
    assert "the harbour_rate_77 was painted grey" in text


def test_of_what_somebody_said_the_beginning_stays_if_no_line_fits() -> None:
    """A sentence longer than the room is cut between words rather than left out."""
    messages = numbered([Message("user", "please " + "look into the berth and the quay once more " * 20)])
    record = shorten(messages, count(messages[0]) - 40)["m0"]
    assert record.tokens_after <= 40
    assert render_cleared(messages[0], record).text.startswith("please look into the berth")


@pytest.mark.parametrize("size", [20, 120, 500])
def test_a_constraint_in_what_is_cut_stays_word_for_word(size: int) -> None:
    messages = numbered([Message("user", f"{lines(80)}\n\n{CONSTRAINT}\n\n{lines(80, 'quay')}")])
    total = count(messages[0])
    text = render_cleared(messages[0], shorten(messages, total - size)["m0"]).text
    assert CONSTRAINT in text
    assert text.count("berth") + text.count("quay") < 170


@pytest.mark.parametrize("size", [60, 120, 900])
def test_a_constraint_stays_in_what_is_cut_though_it_was_said_again(size: int) -> None:
    """What a user asked stands in the user's own message, not in an answer alone."""
    brief = "From now on, be brief."
    messages = numbered(
        [Message("user", f"{lines(80)}\n\n{brief}\n\n{lines(80, 'quay')}"), Message("assistant", f"I read: {brief}")]
    )
    record = shorten(messages, count(messages[0]) - size, only=[0])["m0"]
    assert brief in render_cleared(messages[0], record).text


def test_where_not_even_the_constraints_fit_some_of_them_go() -> None:
    constraints = "\n\n".join(
        f"From now on, never touch the table tide_log_{n}, not even to read it." for n in range(40)
    )
    messages = numbered([Message("user", constraints)])
    total = count(messages[0])
    record = shorten(messages, total - 60)["m0"]
    assert record.tokens_after <= 60
    assert "never touch the table tide_log_" in render_cleared(messages[0], record).text


def test_with_some_room_a_message_keeps_how_it_begins_and_ends() -> None:
    middle = lines(200)
    messages = numbered([Message("tool", f"harbour survey, part one\n{middle}\nsurvey closed without findings")])
    text = render_cleared(messages[0], shorten(messages, 1200)["m0"]).text
    assert text.startswith("harbour survey, part one")
    assert text.endswith("survey closed without findings")


def test_of_long_arguments_the_best_parts_stay_and_short_ones_whole() -> None:
    body = lines(120)
    made = call("write", path="src/berths.py", content=body)
    messages = numbered([Message("user", "hello"), Message("assistant", "writing", (made,)), Message("tool", "ok")])
    record = shorten(messages, 900, only=[1])["m1"]
    (cut,) = render_cleared(messages[1], record).tool_calls
    arguments = json.loads(cut.arguments)
    assert arguments["path"] == "src/berths.py"
    kept = [part for part in arguments["content"].split("\n") if part != "…"]
    assert kept
    assert all(part in "\n".join(argument_texts(made)) for part in kept)


def test_calls_without_texts_do_not_shift_those_of_others() -> None:
    calls = (call("noop", "a", nothing=None), call("noop", "b"), call("write", "c", content=lines(100)))
    messages = numbered([Message("user", "hello"), Message("assistant", None, calls)])
    record = shorten(messages, 700, only=[1])["m1"]
    kept = [
        part
        for part in json.loads(render_cleared(messages[1], record).tool_calls[2].arguments)["content"].split("\n")
        if part != "…"
    ]
    assert kept
    assert set(kept) <= set(lines(100).split("\n"))


def test_the_largest_are_cut_and_small_ones_left_alone() -> None:
    messages = numbered([Message("user", lines(5)), Message("tool", lines(100)), Message("assistant", lines(6))])
    assert set(shorten(messages, 300)) == {"m1"}


def test_one_line_of_a_megabyte_is_cut_in_time() -> None:
    messages = numbered([Message("user", "look"), Message("tool", "x1y2 " * 200_000)])
    record = shorten(messages, 190_000, only=[1])["m1"]
    assert record.tokens_after <= 10_100


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_what_is_left_of_a_text_of_megabytes_uses_the_room_there_is(share: float) -> None:
    (message,) = numbered([Message("user", " ".join(f"word_{n}" for n in range(150_000)))])
    excess = int((1 - share) * count(message))
    record = shorten([message], excess)[message.id]
    assert 0.6 * share * count(message) < record.tokens_after <= count(message) - excess


# One line of each kind: words that differ, one word, no words, a script without blanks, nothing but marks, data.
LONG_LINES = {
    "words": " ".join(f"word_{n}" for n in range(20_000)),
    "one word": "word " * 20_000,
    "no blanks": "".join(f"{n:x}" for n in range(20_000)),
    "cjk": "".join(chr(0x4E00 + n % 3_000) for n in range(40_000)),
    "marks": "- " * 20_000,
    "zeros": "0" * 80_000,
    "json": json.dumps([{"id": n % 3, "state": "ok"} for n in range(5_000)]),
}


def characters(message: Message) -> int:
    """Count four characters as a token: words say nothing about the length of a text without blanks."""
    return 4 + (len(message.text) + sum(len(call.arguments) for call in message.tool_calls)) // 4


@pytest.mark.parametrize("text", LONG_LINES.values(), ids=LONG_LINES)
@pytest.mark.parametrize("role", ["user", "tool", "call"])
def test_one_long_line_is_cut_inside_and_uses_the_room_there_is(text: str, role: str) -> None:
    """A line that was cut to a few tokens where the same text with line ends filled the window."""
    made = (call("write", content=text),) if role == "call" else ()
    (message,) = numbered([Message("assistant", None, made) if made else Message(role, text)])
    tokens = characters(message)
    candidate = Candidate(message, tokens, tokens)
    (record,) = Shortener([message], characters, LearnedConstraints()).shorten([candidate], tokens - 9_000)
    assert 8_000 < record.tokens_after <= 9_000


def test_what_one_message_cannot_use_is_for_the_others() -> None:
    messages = numbered([Message("tool", "0" * 80_000), Message("tool", "1 " * 900)])
    candidates = [Candidate(message, characters(message), characters(message)) for message in messages]
    records = Shortener(messages, characters, LearnedConstraints()).shorten(candidates, 10_454)
    assert 9_500 < sum(record.tokens_after for record in records) <= 10_008
    assert max(record.tokens_after for record in records) > 8_000


@pytest.mark.parametrize("spare", [100, 300, 600])
def test_lines_that_take_more_together_than_each_alone_still_fit_the_room(spare: int) -> None:
    """As with a vocabulary that cuts a text otherwise where lines are joined."""

    def count_together(message: Message) -> int:
        return int(count(message) ** 1.1)

    results = numbered([Message("tool", lines(80, f"berth_{n}")) for n in range(3)])
    stubs = {m.id: ClearRecord(span=SpanReference((m.id,)), strategy="clear", reason="old") for m in results}
    cleared = {
        m.id: replace(
            stubs[m.id],
            tokens_before=count_together(m),
            tokens_after=count_together(render_cleared(m, stubs[m.id])),
        )
        for m in results
    }
    candidates = [Candidate(m, count_together(m), cleared[m.id].tokens_after) for m in results]
    longer = Shortener(results, count_together, LearnedConstraints()).lengthen(candidates, cleared, spare)
    grown = sum(record.tokens_after - cleared[record.span.first].tokens_after for record in longer)
    assert spare // 2 < grown <= spare


@pytest.mark.parametrize("character", ["👩\u200d👩\u200d👧\u200d👦", "👍🏽", "e\u0301", "한"])
def test_no_cut_parts_what_is_shown_as_one_character(character: str) -> None:
    (message,) = numbered([Message("user", character * 3_000)])
    for room in (400, 403, 406, 409):
        tokens = characters(message)
        (record,) = Shortener([message], characters, LearnedConstraints()).shorten(
            [Candidate(message, tokens, tokens)], tokens - room
        )
        assert record.kept
        assert all(start % len(character) == end % len(character) == 0 for start, end in record.kept)
