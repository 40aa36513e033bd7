"""The rules of each provider: a legal list breaks none, and each rule is seen when it is broken."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compact.dialects import DIALECTS
from compact.dialects.anthropic import check_anthropic
from compact.dialects.chat_check import check_chat_completions
from compact.dialects.gemini import check_gemini

Items = list[dict[str, Any]]
Change = Callable[[Items], object]

CALL: dict[str, Any] = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
LEGAL: dict[str, Items] = {
    "responses": [
        {"role": "user", "content": "hello"},
        {"type": "reasoning", "id": "rs", "summary": []},
        {"type": "function_call", "id": "fc", "call_id": "c", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": "x"},
        {"type": "message", "id": "m", "role": "assistant", "content": [{"type": "output_text", "text": "x"}]},
    ],
    "anthropic": [
        {"role": "user", "content": "hello"},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "s"},
                {"type": "tool_use", "id": "c", "name": "f", "input": {}},
            ],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c"}, {"type": "text", "text": "x"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "x"}]},
        {"role": "user", "content": "more"},
    ],
    "gemini": [
        {"role": "user", "parts": [{"text": "hello"}]},
        {"role": "model", "parts": [{"text": "x"}, {"functionCall": {"name": "f", "args": {}, "id": "c"}}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {}, "id": "c"}}]},
        {"role": "model", "parts": [{"text": "x"}]},
        {"role": "user", "parts": [{"text": "more"}]},
    ],
    "chat": [
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c", "content": [{"type": "text", "text": "x"}]},
        {"role": "assistant", "content": None, "refusal": "no"},
    ],
}


def put(place: int, **fields: Any) -> Change:
    return lambda items: items[place].update(fields)


def part(place: int, number: int, **fields: Any) -> Change:
    return lambda items: items[place]["content"][number].update(fields)


def drop(place: int) -> Change:
    return lambda items: items.pop(place)


def again(place: int) -> Change:
    return lambda items: items.insert(place + 1, copy.deepcopy(items[place]))


MARK = {"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}
BROKEN: list[tuple[str, str, Change]] = [
    ("chat", "unknown_key", put(0, meta={"protected": True})),
    ("chat", "unknown_key", put(0, native={})),
    ("chat", "no_messages", lambda items: items.clear()),
    ("chat", "not_a_message", lambda items: items.append("hello")),
    ("chat", "not_a_message", put(2, tool_call_id=7)),
    ("chat", "unknown_role", put(0, role="robot")),
    ("chat", "empty_content", put(0, content=None)),
    ("chat", "empty_content", put(0, content=[])),
    ("chat", "wrong_content", put(0, content=7)),
    ("chat", "wrong_part", put(0, content=["hello"])),
    ("chat", "wrong_part", put(0, content=[{"type": "text"}])),
    ("chat", "incomplete_call", put(1, tool_calls=[])),
    ("chat", "incomplete_call", put(1, tool_calls=[{**CALL, "function": {"name": "f"}}])),
    ("chat", "incomplete_call", put(0, tool_calls=[CALL])),
    ("chat", "result_without_call", drop(1)),
    ("chat", "call_without_result", drop(2)),
    ("responses", "unknown_key", put(0, meta={})),
    ("responses", "unknown_key", put(2, native={})),
    ("responses", "unknown_key", put(3, tool_call_id="c")),
    ("responses", "result_without_call", drop(2)),
    ("responses", "call_without_result", drop(3)),
    ("responses", "duplicate_result", again(3)),
    ("responses", "duplicate_call_id", again(2)),
    ("responses", "duplicate_id", put(4, id="fc")),
    ("responses", "reasoning_alone", lambda items: items.insert(1, items.pop(0))),
    ("responses", "reasoning_alone", lambda items: items.append(items.pop(1))),
    ("responses", "wrong_result", put(3, type="custom_tool_call_output")),
    ("responses", "wrong_part", put(4, content=[{"type": "input_text", "text": "x"}])),
    ("responses", "wrong_part", put(0, content=[{"type": "text", "text": "x"}])),
    ("responses", "empty_content", put(4, content=[])),
    ("responses", "empty_content", put(3, output=None)),
    ("responses", "incomplete_call", put(2, arguments={"a": 1})),
    ("responses", "incomplete_reasoning", put(1, summary=None)),
    ("responses", "unknown_role", put(0, role="tool")),
    ("responses", "not_an_item", lambda items: items.append({"x": 1})),
    ("anthropic", "unknown_key", put(0, meta={})),
    ("anthropic", "unknown_key", part(1, 1, native={})),
    ("anthropic", "unknown_role", put(0, role="tool")),
    ("anthropic", "first_turn", drop(0)),
    ("anthropic", "call_without_result", drop(2)),
    ("anthropic", "result_without_call", drop(1)),
    ("anthropic", "result_without_call", part(2, 0, tool_use_id="other")),
    ("anthropic", "result_not_first", lambda items: items[2]["content"].reverse()),
    ("anthropic", "call_without_result", lambda items: items.__setitem__(slice(None), items[:2])),
    ("anthropic", "duplicate_call_id", lambda items: items.extend(copy.deepcopy(items[1:3]))),
    ("anthropic", "thinking_last", lambda items: items[1]["content"].reverse()),
    ("anthropic", "thinking_unsigned", part(1, 0, signature="")),
    ("anthropic", "empty_content", put(0, content="")),
    ("anthropic", "empty_content", put(0, content=[])),
    ("anthropic", "empty_content", part(3, 0, text=" ")),
    ("anthropic", "wrong_role", lambda items: items[4].update(content=[items[1]["content"][0]])),
    ("anthropic", "wrong_role", put(4, content=[{"type": "text", "text": "x", "citations": [{"cited_text": "x"}]}])),
    ("anthropic", "incomplete_call", part(1, 1, input="{}")),
    ("anthropic", "too_many_marks", put(4, content=[MARK] * 5)),
    ("anthropic", "trailing_space", lambda items: items.append({"role": "assistant", "content": "So "})),
    ("anthropic", "no_content", put(0, content=None)),
    ("gemini", "unknown_key", put(0, meta={})),
    ("gemini", "unknown_key", lambda items: items[0]["parts"][0].update(native={})),
    ("gemini", "unknown_role", put(0, role="assistant")),
    ("gemini", "first_turn", drop(0)),
    ("gemini", "response_count", lambda items: items[2]["parts"].append(items[2]["parts"][0])),
    ("gemini", "response_count", drop(2)),
    ("gemini", "result_without_call", drop(1)),
    ("gemini", "response_names", lambda items: items[2]["parts"][0]["functionResponse"].update(name="g")),
    ("gemini", "response_ids", lambda items: items[2]["parts"][0]["functionResponse"].update(id="d")),
    ("gemini", "call_without_result", lambda items: items.__setitem__(slice(None), items[:2])),
    ("gemini", "call_turn", lambda items: items.insert(1, {"role": "model", "parts": [{"text": "x"}]})),
    ("gemini", "empty_content", put(0, parts=[])),
    ("gemini", "empty_content", put(0, parts=[{"text": ""}])),
    ("gemini", "not_a_part", put(0, parts=[{"thought": True}])),
    ("gemini", "incomplete_call", lambda items: items[1]["parts"][1]["functionCall"].update(name="")),
]


@pytest.mark.parametrize("name", LEGAL)
def test_a_legal_list_breaks_no_rule(name: str) -> None:
    assert DIALECTS[name].check(LEGAL[name]) == ()
    assert check_anthropic(LEGAL["anthropic"], alternating=True) == ()
    assert check_gemini(LEGAL["gemini"], alternating=True) == ()


@pytest.mark.parametrize(("name", "rule", "change"), BROKEN)
def test_a_broken_rule_is_named(name: str, rule: str, change: Change) -> None:
    items = copy.deepcopy(LEGAL[name])
    change(items)
    assert rule in {violation.rule for violation in DIALECTS[name].check(items)}


def test_what_is_not_known_is_passed_on_unless_somebody_wants_to_know() -> None:
    """Providers have new types and fields from time to time; a server that plays their part does not."""
    items = [{"role": "user", "content": [{"type": "smell"}]}]
    assert check_anthropic(items) == ()
    assert [found.rule for found in check_anthropic(items, known_only=True)] == ["unknown_type"]
    items = [{"role": "user", "content": [{"type": "smell"}], "session": "s"}]
    assert check_chat_completions(items) == ()
    assert [found.rule for found in check_chat_completions(items, known_only=True)] == ["unknown_key", "wrong_part"]


NAMES = "role content parts type text tool_calls tool_call_id tool_use_id id name input functionCall functionResponse"
KINDS = ["", "user", "model", "assistant", "tool", "tool_use", "tool_result", "text", "function_call", "reasoning", "f"]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 3) | st.sampled_from(KINDS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES.split()), inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.parametrize("name", LEGAL)
@given(items=st.lists(JSON, max_size=4))
def test_whatever_is_checked_gets_an_answer(name: str, items: list[Any]) -> None:
    """Rules are there for lists that break them: no JSON makes a check fall over."""
    assert isinstance(DIALECTS[name].check(items), tuple)


def test_neighbours_of_one_role_are_joined_by_the_api_and_by_nobody_else() -> None:
    anthropic = [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}]
    assert check_anthropic(anthropic) == ()
    assert [found.rule for found in check_anthropic(anthropic, alternating=True)] == ["alternation"]
    gemini = [{"role": "user", "parts": [{"text": "a"}]}, {"role": "user", "parts": [{"text": "b"}]}]
    assert check_gemini(gemini) == ()
    assert [found.rule for found in check_gemini(gemini, alternating=True)] == ["alternation"]
