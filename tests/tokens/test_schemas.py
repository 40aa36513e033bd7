"""Tool schemas: the published formula, in every wire form."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compact.core.messages.message import Message
from compact.tokens import TiktokenTokenizer
from compact.tokens.framing import REPLY_PRIMING_TOKENS
from compact.tokens.schemas import tools_tokens

PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "location": {"type": "string", "description": "The city and state, e.g. San Francisco, CA"},
        "unit": {
            "type": "string",
            "description": "The unit of temperature to return",
            "enum": ["celsius", "fahrenheit"],
        },
    },
    "required": ["location"],
}
WEATHER = {"name": "get_current_weather", "description": "Get the current weather in a given location"}


def characters(text: str) -> int:
    return len(text)


@pytest.mark.parametrize(("encoding", "reported"), [("o200k_base", 101), ("cl100k_base", 105)])
def test_the_cookbooks_example_counts_as_the_api_reports_it(encoding: str, reported: int) -> None:
    """The whole prompt of OpenAI's example, whose usage is published for gpt-4o and for gpt-4."""
    tokenizer = TiktokenTokenizer(encoding)
    messages = [
        Message("system", "You are a helpful assistant that can answer to questions about the weather."),
        Message("user", "What's the weather like in San Francisco?"),
    ]
    tools = [{"type": "function", "function": {**WEATHER, "parameters": PARAMETERS}}]
    prompt = sum(map(tokenizer.count_message, messages)) + tokenizer.count_tools(tools) + REPLY_PRIMING_TOKENS
    assert prompt == reported


def test_the_formula_adds_up() -> None:
    """Per function 7, properties 3, each property 3, enumeration -3, each choice 3, end 12."""
    tools = [{"type": "function", "function": {**WEATHER, "parameters": PARAMETERS}}]
    lines = [
        "get_current_weather:Get the current weather in a given location",
        "location:string:The city and state, e.g. San Francisco, CA",
        "unit:string:The unit of temperature to return",
        "celsius",
        "fahrenheit",
    ]
    assert tools_tokens(tools, characters) == 7 + 3 + 2 * 3 - 3 + 2 * 3 + 12 + sum(map(len, lines))


def test_all_wire_forms_cost_the_same() -> None:
    """Chat, Responses, Anthropic and MCP wrap the same function."""
    forms: list[dict[str, Any]] = [
        {"type": "function", "function": {**WEATHER, "parameters": PARAMETERS}},
        {"type": "function", **WEATHER, "parameters": PARAMETERS, "strict": True},
        {**WEATHER, "input_schema": PARAMETERS},
        {**WEATHER, "inputSchema": PARAMETERS},
    ]
    assert len({tools_tokens([form], characters) for form in forms}) == 1


def test_no_tools_cost_nothing() -> None:
    assert tools_tokens([], characters) == 0


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"a": {"type": "object", "properties": {"needle_x": {"type": "string"}}}}},
        {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "string", "enum": ["needle_x"]}}}},
        {"type": "object", "properties": {"a": {"anyOf": [{"type": "null"}, {"description": "needle_x"}]}}},
        {"type": "object", "$defs": {"d": {"properties": {"needle_x": {"type": "integer"}}}}},
        {"type": "object", "additionalProperties": {"type": "string", "description": "needle_x"}},
        {"type": "object", "properties": {"needle_x": True}},
    ],
)
def test_nested_names_are_counted(schema: dict[str, Any]) -> None:
    """Objects, arrays, alternatives, definitions: what the model sees has a cost."""
    seen: list[str] = []

    def listening(text: str) -> int:
        seen.append(text)
        return len(text)

    assert tools_tokens([{"name": "f", "input_schema": schema}], listening) > 19
    assert any("needle_x" in text for text in seen)


def test_a_builtin_tool_costs_its_json() -> None:
    """There is no function schema to apply the formula to."""
    assert tools_tokens([{"type": "web_search", "filters": {"allowed_domains": ["a.example"] * 50}}], characters) > 600


def test_absurd_depth_is_counted_not_followed() -> None:
    """A schema from a stranger cannot exhaust the stack."""
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(5_000):
        schema = {"type": "object", "properties": {"p": schema}}
    assert tools_tokens([{"name": "f", "input_schema": schema}], characters) > 200


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "properties", "items", "enum", "anyOf", "$defs", "description", "$ref", "z"]),
            inner,
        )
    ),
    max_leaves=12,
)


@given(st.text(min_size=1, max_size=8), values, st.sampled_from(["function", "custom", None, "web_search"]))
def test_no_malformed_schema_raises_or_goes_below_its_name(name: str, schema: Any, kind: str | None) -> None:
    """Nothing a caller can send makes a tool free."""
    for tool in ({"type": kind, "name": name, "parameters": schema}, {"type": kind, "function": schema, "name": name}):
        assert tools_tokens([tool], characters) >= 19
