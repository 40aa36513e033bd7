"""What is sent in other dialects than Chat Completions is counted like what is sent there."""

from __future__ import annotations

from typing import Any

import pytest

from compact.core.messages.entries import read_entry
from compact.core.messages.message import Message
from compact.dialects import DIALECTS
from compact.testing import WordTokenizer
from compact.tokens import get_tokenizer
from compact.tokens.images import LOW_DETAIL_TOKENS
from dialect_conversations import IMAGE

SCHEMA = {"type": "object", "properties": {"path": {"type": "string", "description": "The file to read."}}}
COUNTER = get_tokenizer("gpt-4o")


def tokens_of(dialect: str, items: list[dict[str, Any]]) -> int:
    entries = [entry for block in DIALECTS[dialect].read(items, 0) for entry in block.entries]
    return sum(COUNTER.count_message(read_entry(entry, "x")) for entry in entries)


@pytest.mark.parametrize(
    "tool",
    [
        {"type": "function", "name": "read", "description": "Reads.", "parameters": SCHEMA},
        {"name": "read", "description": "Reads.", "input_schema": SCHEMA},
        {"functionDeclarations": [{"name": "read", "description": "Reads.", "parameters": SCHEMA}]},
        {"function_declarations": [{"name": "read", "description": "Reads.", "parameters_json_schema": SCHEMA}]},
    ],
)
def test_a_tool_costs_the_same_in_every_dialect(tool: dict[str, Any]) -> None:
    function = {"name": "read", "description": "Reads.", "parameters": SCHEMA}
    assert COUNTER.count_tools([tool]) == COUNTER.count_tools([{"type": "function", "function": function}])


def test_a_gemini_tool_that_declares_two_functions_costs_two() -> None:
    function = {"name": "read", "description": "Reads.", "parameters": SCHEMA}
    apart = [{"functionDeclarations": [function]}, {"functionDeclarations": [function]}]
    assert COUNTER.count_tools([{"functionDeclarations": [function, function]}]) == COUNTER.count_tools(apart)
    with_search = {"functionDeclarations": [function], "googleSearch": {}}
    assert COUNTER.count_tools([with_search]) > COUNTER.count_tools([{"functionDeclarations": [function]}])
    assert COUNTER.count_tools([{"functionDeclarations": []}]) == 0


def test_an_image_costs_the_same_in_every_dialect() -> None:
    url = f"data:image/png;base64,{IMAGE}"
    chat = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}]
    responses = [{"role": "user", "content": [{"type": "input_image", "image_url": url}]}]
    source = {"type": "base64", "media_type": "image/png", "data": IMAGE}
    anthropic = [{"role": "user", "content": [{"type": "image", "source": source}]}]
    gemini = [{"role": "user", "parts": [{"inlineData": {"mimeType": "image/png", "data": IMAGE}}]}]
    counted = [tokens_of("chat", chat), tokens_of("responses", responses), tokens_of("anthropic", anthropic)]
    assert counted == [tokens_of("gemini", gemini)] * 3
    assert LOW_DETAIL_TOKENS < counted[0] < 400


@pytest.mark.parametrize(
    ("dialect", "items"),
    [
        (
            "anthropic",
            [{"role": "assistant", "content": [{"type": "thinking", "thinking": "so " * 500, "signature": "s"}]}],
        ),
        ("responses", [{"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "so " * 500}]}]),
        ("gemini", [{"role": "model", "parts": [{"text": "so " * 500, "thought": True}]}]),
        ("responses", [{"type": "x_unknown", "payload": "so " * 500}]),
        ("responses", [{"type": "compaction", "encrypted_content": "so " * 500}]),
        ("anthropic", [{"role": "assistant", "content": [{"type": "x_unknown", "payload": "so " * 500}]}]),
    ],
)
def test_what_nobody_may_change_is_counted_all_the_same(dialect: str, items: list[dict[str, Any]]) -> None:
    assert 500 <= tokens_of(dialect, items) <= 600


def test_thinking_stays_beside_the_content_and_out_of_its_text() -> None:
    """Summaries, search and stubs see what was said, not what was thought."""
    blocks = [{"type": "thinking", "thinking": "secretly", "signature": "s"}, {"type": "text", "text": "openly"}]
    (block,) = DIALECTS["anthropic"].read([{"role": "assistant", "content": blocks}], 0)
    message: Message = read_entry(block.entries[0], "x")
    assert message.text == "openly"
    assert WordTokenizer().count_message(message) == 1
