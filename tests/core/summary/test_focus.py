"""A focus: which words it looks for, and how much of a text is about it."""

from __future__ import annotations

import pytest

from compact.core.facts.pieces import cut_into_pieces
from compact.core.messages.message import Message, ToolCall
from compact.core.summary.focus import FOCUS_GAIN, Focus, message_shares, piece_factors


@pytest.mark.parametrize(
    ("focus", "text", "is_found"),
    [
        ("refunds", "we refunded 12 orders", True),
        ("please focus on the refund policy", "focus on the tests, please", False),
        ("port 6432", "listens on 6432", True),
        ("port 643", "listens on 6432", False),
        ("the CI", "ci is red", True),
        ("the CI", "a decision", False),
        ("billing_service", "src/billing/service.py", True),
        ("結算", "今日の結算は", True),
        ("it", "it is what it is", False),
        ("", "anything", False),
    ],
)
def test_terms(focus, text, is_found):
    """Words in any form, numbers and names as they are; not the words that only ask."""
    assert bool(Focus.of(focus).found_in(text)) is is_found


def test_a_rare_term_counts_more():
    """What many texts have says little about any of them."""
    both, common, rare = Focus.of("warehouse tests").shares(
        ["warehouse tests", "tests", "a warehouse", *["tests"] * 9]
    )[:3]
    assert both == 1.0
    assert 0 < common < rare < 1


def test_a_message_is_about_a_focus_by_its_best_line():
    """Words that are far apart in a long text are not about one thing; arguments of calls count."""
    scattered = Message("tool", "refund\n" + "x\n" * 50 + "policy", tool_call_id="c1")
    together = Message("user", "the refund policy")
    call = Message("assistant", "", tool_calls=(ToolCall("c1", "search", '{"query": "refund policy"}'),))
    nothing = Message("user", "hello")
    shares = message_shares("refund policy", [scattered, together, call, nothing])
    assert shares[1] == shares[2] == 1.0
    assert 0 < shares[0] < 1
    assert shares[3] == 0


def test_a_piece_about_it_is_raised_even_if_its_form_leaves_it_out():
    """Its neighbours in the same message are raised a little, and the others not at all."""
    pieces = cut_into_pieces([Message("user", "the refund policy\nsays ten days"), Message("user", "hello there")])
    factors = piece_factors("refund policy", pieces, [0.0, 1.0, 1.0])
    assert factors[0] == 1 + FOCUS_GAIN
    assert 1 < factors[1] < factors[0]
    assert factors[2] == 1.0
    assert piece_factors("refund policy", pieces) == factors, "each counts 1, if nothing else is known"
