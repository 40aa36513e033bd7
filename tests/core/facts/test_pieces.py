"""A history is cut into pieces that stand word for word in it, in order, with nothing said left out."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Sequence
from itertools import groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compact.core.facts.pieces import Origin, Piece, cut_into_pieces, is_specific
from compact.core.facts.tool_calls import argument_texts
from compact.core.messages.message import Message, ToolCall
from conversations import Wire, histories
from numbered import call, exchange, numbered

_LISTED = re.compile(r"\s{0,8}\d{1,6}(?:→|\t|\|\s?)")


def source(message: Message, origin: Origin) -> str:
    """What the pieces of an origin are cut from."""
    if origin is Origin.CALL:
        return "\n".join(text for made in message.tool_calls for text in argument_texts(made))
    return message.text


def check(messages: Sequence[Message]) -> list[Piece]:
    pieces = cut_into_pieces(messages)
    assert [(p.place, p.order) for p in pieces] == sorted((p.place, p.order) for p in pieces)
    for (place, is_call), group in groupby(pieces, key=lambda piece: (piece.place, piece.origin is Origin.CALL)):
        mine = list(group)
        text = source(messages[place], Origin.CALL if is_call else Origin.AGENT)
        end = 0
        for piece in mine:
            assert piece.text
            assert piece.text == text[piece.start : piece.end]
            assert end <= piece.start
            between = text[end : piece.start]
            assert not re.search(r"[^\W_]", _unlisted(between)), between
            if piece.gap is not None:
                assert between == piece.gap
                assert not piece.gap.strip()
            end = piece.end
        assert not re.search(r"[^\W_]", text[end:])
    silent = set(range(len(messages))) - {piece.place for piece in pieces if piece.origin is not Origin.CALL}
    assert not [place for place in silent if re.search(r"[^\W_]", _unlisted(messages[place].text))]
    return pieces


def _unlisted(text: str) -> str:
    return "\n".join(_LISTED.sub("", line) for line in text.split("\n"))


@given(histories(max_size=12))
def test_pieces_are_what_was_said_in_order_and_nothing_said_is_left_out(history: list[Wire]) -> None:
    check(numbered(history))


@given(st.text(alphabet=st.sampled_from("ab1 \n\t.,;(){}[]_é漢\u2028"), max_size=800))
def test_any_text_is_cut_without_loss(text: str) -> None:
    check(numbered([Message("user", text), Message("assistant", text, (ToolCall("c", "bash", text),))]))


@given(
    st.lists(
        st.recursive(
            st.text(max_size=30) | st.integers() | st.none() | st.booleans(),
            lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
            max_leaves=12,
        ),
        max_size=3,
    )
)
def test_arguments_are_cut_where_they_stand_among_all_of_a_message(values: list[object]) -> None:
    calls = tuple(call("write", f"c{n}", value=value) for n, value in enumerate(values))
    check(numbered([Message("assistant", "text", calls)]))


def test_short_lines_stay_whole_and_long_ones_are_cut_where_a_reader_pauses() -> None:
    said = [
        f"Sentence {n} says at some length what number {n} is about, and {'really ' * 10}no more." for n in (1, 2, 3)
    ]
    pieces = cut_into_pieces(numbered([Message("user", "short line\n" + "  ".join(said))]))
    assert [piece.text for piece in pieces] == ["short line", *said]
    assert [piece.line for piece in pieces] == [1, 2, 2, 2]
    assert [piece.gap for piece in pieces] == [None, None, "  ", "  "]
    assert [piece.order for piece in pieces] == [1, 2, 3, 4]


def test_each_piece_has_the_names_and_words_in_it_and_no_others() -> None:
    pieces = cut_into_pieces(numbered([Message("user", "ask for BERTH-77 quickly\nORD-4711 was shipped\nonly this")]))
    assert [piece.strings for piece in pieces] == [{"BERTH-77"}, {"ORD-4711"}, set()]
    assert ["quickly" in piece.words for piece in pieces] == [True, False, False]
    assert ["shipped" in piece.words for piece in pieces] == [False, True, False]
    assert ["only" in piece.words for piece in pieces] == [False, False, True]


@pytest.mark.parametrize(
    ("text", "lengths"),
    [
        ("word, " * 33 + "ab", [200]),
        ("a" * 400, [400]),
        ("a" * 401, [200, 201]),
        ("a" * 650, [200, 200, 250]),
        ("a" * 199 + "e\u0301" + "a" * 400, [199, 200, 202]),
        ("a" * 200 + "e\u0301" + "a" * 400, [200, 200, 202]),
        ("a" + "\u0301" * 600, [200]),
        ("word " + "a" * 600, [200, 200, 205]),
        ("word " * 30 + "a" * 600, [149, 199, 200, 201]),
    ],
)
def test_a_line_without_a_pause_is_cut_at_a_blank_or_anywhere(text: str, lengths: list[int]) -> None:
    assert [len(piece.text) for piece in check(numbered([Message("user", text)]))] == lengths


def test_a_short_phrase_of_common_words_is_not_specific() -> None:
    said = {"k": False, "yes, go on": False, "ok " * 33 + "k": False}
    said |= {"BERTH-77": True, "4711": True, "harbourmaster": True, "ok " * 34: True, "": True}
    assert {text: is_specific(Message("user", text)) for text in said} == said


def test_records_on_one_line_are_cut_finer_than_what_is_said() -> None:
    records = json.dumps([{"order": f"ORD-47{n}", "state": "paid", "harbour": f"BERTH-{n}"} for n in range(10, 30)])
    data, said = (cut_into_pieces(numbered([Message("tool", text)])) for text in (records, "one word more " * 100))
    assert max(len(piece.text) for piece in data) < max(len(piece.text) for piece in said)


def test_a_single_character_is_an_answer() -> None:
    assert [piece.text for piece in cut_into_pieces(numbered([Message("user", "2"), Message("user", "是")]))] == [
        "2",
        "是",
    ]


def test_each_origin_is_told_apart_and_a_result_knows_its_call() -> None:
    messages = numbered(
        [
            Message("system", "be careful"),
            Message("user", "please"),
            Message("user", "<system-reminder>x</system-reminder>"),
            Message("assistant", "yes", (call("grep", pattern="limit"),)),
            Message("tool", "found", tool_call_id="c"),
            Message("tool", "an orphan", tool_call_id="nobody"),
        ]
    )
    assert [(piece.origin, piece.step) for piece in cut_into_pieces(messages)] == [
        (Origin.INSERTED, (0, -1)),
        (Origin.TYPED, (1, -1)),
        (Origin.INSERTED, (2, -1)),
        (Origin.AGENT, (3, -1)),
        (Origin.CALL, (3, 0)),
        (Origin.RESULT, (3, 0)),
        (Origin.RESULT, (5, -1)),
    ]


def results(name: str, result: str, **arguments: str) -> list[str]:
    pieces = cut_into_pieces(numbered(exchange(name, result, **arguments)))
    return [piece.text for piece in pieces if piece.origin is Origin.RESULT]


@pytest.mark.parametrize("mark", ["→", "\t", "| ", "|"])
def test_the_numbers_before_the_lines_of_a_file_are_left_out(mark: str) -> None:
    assert results("Read", f"     1{mark}import os\n   220{mark}def run():", file_path="a.py") == [
        "import os",
        "def run():",
    ]
    assert results("bash", "    12\tlimit = 5", command="cat -n a.py") == ["limit = 5"]


def test_numbers_that_were_asked_for_stay() -> None:
    assert results("query", "4711\tAlice\n4712\tBob", sql="select id, name") == ["4711\tAlice", "4712\tBob"]
    typed = cut_into_pieces(numbered([Message("user", "4711\tAlice\n12→ b")]))
    assert [piece.text for piece in typed] == ["4711\tAlice", "12→ b"]


def test_a_line_without_its_number_may_be_as_long_as_any_other() -> None:
    line = "word, " * 33 + "ab"
    assert results("Read", f"     1→{line}\n     2→{line}", file_path="a.py") == [line, line]


def test_of_a_list_of_very_many_lines_both_ends_are_read() -> None:
    pieces = cut_into_pieces(numbered([Message("tool", "\n".join(map(str, range(12_000))))]))
    assert [piece.text for piece in pieces] == [str(n) for n in (*range(5_000), *range(7_000, 12_000))]


def test_a_very_long_line_is_cut_into_small_pieces() -> None:
    pieces = check(numbered([Message("tool", "a" * 400_000)]))
    assert max(len(piece.text) for piece in pieces) <= 500


@pytest.mark.parametrize("unit", ["a", " ", "a ", "] ", "(", " (", ".", ", ", "é", "\u0301", "\t", "x\n", "1→"])
def test_no_text_takes_long(unit: str) -> None:
    text = "a" + unit * (200_000 // len(unit)) + "b"
    messages = numbered([Message("user", text), *exchange("bash", text, command=text)])
    began = time.process_time()
    cut_into_pieces(messages)
    assert time.process_time() - began < 20.0, "what grows with the square of the text takes minutes"


def test_only_the_messages_that_were_asked_for_are_cut() -> None:
    messages = numbered([{"role": "user", "content": f"Question {n} is asked."} for n in range(4)])
    every = cut_into_pieces(messages)
    assert [piece.place for piece in every] == [0, 1, 2, 3]
    assert cut_into_pieces(messages, {1, 3}) == [every[1], every[3]]
    assert cut_into_pieces(messages, set()) == []
