"""One scale for every kind of content, falling with age."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compact.core.facts.pieces import cut_into_pieces
from compact.core.facts.value import AGES, ContentKind, content_kind, message_value, value
from compact.core.facts.value_table import VALUES
from compact.core.messages.message import Message, ToolCall
from numbered import exchange, numbered

ages = st.floats(0, 200_000)


@given(st.sampled_from(ContentKind), ages, ages)
def test_what_is_older_never_has_more_value(kind: ContentKind, one: float, other: float) -> None:
    younger, older = sorted((one, other))
    assert value(kind, younger, VALUES) >= value(kind, older, VALUES) > 0


@pytest.mark.parametrize("kind", ContentKind)
def test_the_table_has_a_value_for_every_age_and_between_them(kind: ContentKind) -> None:
    assert len(VALUES[kind]) == len(AGES)
    for index, age in enumerate(AGES):
        assert value(kind, age, VALUES) == VALUES[kind][index]
    between = value(kind, (AGES[0] + AGES[1]) / 2, VALUES)
    assert between == pytest.approx((VALUES[kind][0] + VALUES[kind][1]) / 2)


def test_words_and_arguments_have_more_value_than_results_and_a_head_more_than_the_rest() -> None:
    for age in AGES:
        agent, arguments, head, rest = (
            value(kind, age, VALUES)
            for kind in (ContentKind.AGENT, ContentKind.ARGUMENTS, ContentKind.HEAD, ContentKind.REST)
        )
        assert agent > rest
        assert arguments > rest
        assert head > rest


def test_each_part_of_a_history_has_its_kind() -> None:
    result = "\n".join(
        ["how it begins " * 5] * 5 + ["nothing much happened here"] * 3 + ["ValueError: failed to open it"]
    )
    history = [Message("user", "please"), *exchange("read", result, path="src/a.py"), Message("assistant", "done")]
    kinds = [content_kind(piece) for piece in cut_into_pieces(numbered(history))]
    assert [kind for kind, before in zip(kinds, [None, *kinds], strict=False) if kind is not before] == [
        ContentKind.TYPED,
        ContentKind.ARGUMENTS,
        ContentKind.HEAD,
        ContentKind.REST,
        ContentKind.ERROR,
        ContentKind.AGENT,
    ]


def test_a_message_has_the_value_of_its_parts_for_the_tokens_that_are_left_of_it() -> None:
    said = Message("assistant", "x" * 400)
    called = Message("assistant", "", (ToolCall("c", "write", '{"text": "' + "x" * 390 + '"}'),))
    result = Message("tool", "x" * 40_000, tool_call_id="c")
    at = AGES[3]
    assert message_value(said, 100, at, VALUES) == pytest.approx(0.1 * value(ContentKind.AGENT, at, VALUES))
    assert message_value(called, 100, at, VALUES) == pytest.approx(0.1 * value(ContentKind.ARGUMENTS, at, VALUES))
    whole, cut = message_value(result, 10_000, at, VALUES), message_value(result, 75, at, VALUES)
    assert cut / 75 > 1.2 * whole / 10_000
    picture = Message("user", ({"type": "image_url", "image_url": {"url": "https://x"}},))
    assert message_value(picture, 900, at, VALUES) > 0
