"""Wire overhead: what a message costs beyond its text."""

from __future__ import annotations

import base64
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compact.core.messages.message import Message, ToolCall
from compact.tokens.framing import (
    MESSAGE_TOKENS,
    NAME_TOKENS,
    OPAQUE_PAYLOAD_TOKENS,
    REPLY_PRIMING_TOKENS,
    TOOL_CALL_TOKENS,
    TOOL_RESULT_TOKENS,
    content_tokens,
    json_text,
    message_tokens,
)
from compact.tokens.images import MAX_AREA_TOKENS, MAX_TILES, TILE_TOKENS

PAYLOAD = base64.b64encode(bytes(range(256)) * 400).decode()


def characters(text: str) -> int:
    """A counter whose answers can be checked by eye."""
    return len(text)


def part_cost(part: Any) -> int:
    return content_tokens((part,), characters)


def test_a_plain_message_costs_framing_role_and_text() -> None:
    assert message_tokens(Message("user", "hello"), characters) == MESSAGE_TOKENS + 4 + 5


def test_a_name_costs_itself_and_one_more() -> None:
    named, plain = Message("user", "hello", name="ann"), Message("user", "hello")
    assert message_tokens(named, characters) - message_tokens(plain, characters) == NAME_TOKENS + 3


def test_calls_cost_name_and_arguments_but_not_their_id() -> None:
    short = Message("assistant", None, (ToolCall("1", "find", "{}"), ToolCall("2", "get", "[1]")))
    long = Message("assistant", None, (ToolCall("c" * 90, "find", "{}"), ToolCall("d" * 90, "get", "[1]")))
    assert message_tokens(short, characters) == MESSAGE_TOKENS + 9 + 2 * TOOL_CALL_TOKENS + 4 + 2 + 3 + 3
    assert message_tokens(long, characters) == message_tokens(short, characters)


def test_a_result_costs_a_little_more_than_its_text() -> None:
    result = Message("tool", "42", tool_call_id="call_1")
    assert message_tokens(result, characters) == MESSAGE_TOKENS + 4 + TOOL_RESULT_TOKENS + 2


def test_reply_priming_is_left_to_the_prompt() -> None:
    assert REPLY_PRIMING_TOKENS == 3
    assert message_tokens(Message("user", ""), characters) == MESSAGE_TOKENS + 4


@pytest.mark.parametrize(
    "part",
    [
        {"type": "text", "text": "hello"},
        {"type": "text", "text": "hello", "cache_control": {"type": "ephemeral"}},
        {"type": "input_text", "text": "hello"},
        {"type": "output_text", "text": "hello", "annotations": []},
        {"type": "refusal", "refusal": "hello"},
        {"type": "thinking", "thinking": "hello", "signature": "c2ln" * 200},
        "hello",
    ],
)
def test_text_parts_cost_their_text(part: Any) -> None:
    assert part_cost(part) == 5


def test_a_call_kept_both_as_part_and_as_tool_call_is_counted_once() -> None:
    part = {"type": "tool_use", "id": "t1", "name": "find", "input": {"a": 1}}
    alone = Message("assistant", (part,))
    both = Message("assistant", (part,), (ToolCall("t1", "find", '{"a": 1}'),))
    assert part_cost(part) == TOOL_CALL_TOKENS + 4 + 8
    assert message_tokens(alone, characters) == message_tokens(both, characters)


@pytest.mark.parametrize("content", ["sunny", [{"type": "text", "text": "sunny"}], {"type": "text", "text": "sunny"}])
def test_a_result_part_costs_what_it_holds(content: Any) -> None:
    assert part_cost({"type": "tool_result", "tool_use_id": "t1", "content": content}) == TOOL_RESULT_TOKENS + 5
    assert part_cost({"type": "function_call_output", "call_id": "t1", "output": content}) == TOOL_RESULT_TOKENS + 5


def test_images_inside_results_are_images() -> None:
    part = {"type": "tool_result", "content": [{"type": "image", "source": {"type": "base64", "data": PAYLOAD}}]}
    assert part_cost(part) == TOOL_RESULT_TOKENS + MAX_AREA_TOKENS


@pytest.mark.parametrize(
    "part",
    [
        {"type": "file", "file": {"filename": "a.pdf", "file_data": f"data:application/pdf;base64,{PAYLOAD}"}},
        {"type": "input_file", "file_data": PAYLOAD},
        {"type": "input_audio", "input_audio": {"data": PAYLOAD, "format": "wav"}},
        {"type": "document", "source": {"type": "base64", "data": base64.encodebytes(PAYLOAD.encode()).decode()}},
    ],
)
def test_binary_payloads_are_not_counted_as_text(part: Any) -> None:
    assert 0 < part_cost(part) < len(PAYLOAD)


def test_a_payload_in_an_unknown_part_has_a_flat_rate() -> None:
    part = {"type": "x_unknown", "data": PAYLOAD}
    assert OPAQUE_PAYLOAD_TOKENS < part_cost(part) < OPAQUE_PAYLOAD_TOKENS + 200


def test_a_document_given_as_text_is_counted_as_text() -> None:
    part = {"type": "document", "source": {"type": "text", "data": "some words " * 500}}
    assert part_cost(part) == 5500


def test_encrypted_reasoning_costs_in_proportion() -> None:
    short = part_cost({"type": "reasoning", "encrypted_content": "A" * 1600, "summary": []})
    long = part_cost({"type": "reasoning", "encrypted_content": "A" * 16000, "summary": []})
    assert long - short == 14400 * 3 // 16


def test_unknown_parts_cost_their_json() -> None:
    part = {"type": "weather", "degrees": 21}
    assert part_cost(part) == len(json_text(part))


json_like = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)
kinds = (
    st.sampled_from(["text", "image", "image_url", "input_image", "tool_use", "tool_result", "file", "x"]) | json_like
)
keys = st.sampled_from(["text", "image_url", "source", "content", "output", "input", "name", "id", "detail", "data"])


@given(kinds, st.dictionaries(keys, json_like))
def test_no_malformed_part_raises(kind: Any, fields: dict[str, Any]) -> None:
    assert part_cost({"type": kind, **fields}) >= 0


def test_a_part_that_is_no_json_still_has_a_cost() -> None:
    loop: dict[str, Any] = {"type": "loop"}
    loop["self"] = loop
    deep: dict[str, Any] = {"type": "deep"}
    for _ in range(100_000):
        deep = {"type": "deep", "in": deep}
    assert part_cost(loop) > 0
    assert part_cost(deep) > 0
    assert part_cost({"type": "odd", ("a", "b"): object()}) > 0


def test_looking_for_payloads_takes_linear_time() -> None:
    part = {"type": "x", "words": ("a" * 511 + " ") * 20_000}
    started = time.perf_counter()
    assert part_cost(part) > 10_000_000
    assert time.perf_counter() - started < 15.0


def test_an_unreadable_image_costs_the_most_the_rule_can_charge() -> None:
    message = Message("user", ({"type": "image_url", "image_url": {"url": "https://example.com/a.png"}},))
    bare = message_tokens(Message("user", ()), characters)
    assert message_tokens(message, characters, image_rule="tiles") == bare + 85 + TILE_TOKENS * MAX_TILES
    assert message_tokens(message, characters, image_rule="area") == bare + MAX_AREA_TOKENS
