"""Objects of the providers' own packages in a history: read as what they are sent as, given back as they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from anthropic.types import Message, TextBlock, ThinkingBlock, ToolUseBlock
from anthropic.types.beta import BetaMessage
from google.genai import types as genai
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from openai.types.chat import ChatCompletionMessage
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseReasoningItem
from pydantic import BaseModel

from compact import CompactConfig, CompactManager
from compact.dialects import DIALECTS, detect
from compact.dialects.gemini_check import check_gemini
from compact.testing import WordTokenizer, check_dialect


def manager_for(window: int) -> CompactManager:
    policy = {"hard_cap_buffer": 10, "keep_recent_turns": 1, "keep_tool_io_pairs": 1}
    return CompactManager(CompactConfig(max_context_tokens=window, policy=policy, telemetry={"exporter": "none"}))


def openai_reply(number: int) -> list[Any]:
    part = {"type": "output_text", "text": f"step {number}", "annotations": []}
    message = {"id": f"msg_{number}", "type": "message", "role": "assistant", "status": "completed", "content": [part]}
    return [
        ResponseReasoningItem(id=f"rs_{number}", type="reasoning", summary=[]),
        ResponseOutputMessage.model_validate(message),
        ResponseFunctionToolCall(
            type="function_call", id=f"fc_{number}", call_id=f"c{number}", name="f", arguments="{}"
        ),
        {"type": "function_call_output", "call_id": f"c{number}", "output": f"result {number} " * 60},
    ]


def anthropic_reply(number: int) -> list[Any]:
    blocks = [
        ThinkingBlock(type="thinking", thinking="hm", signature="sig"),
        TextBlock(type="text", text=f"step {number}"),
        ToolUseBlock(type="tool_use", id=f"c{number}", name="f", input={"n": number}),
    ]
    result = {"type": "tool_result", "tool_use_id": f"c{number}", "content": f"result {number} " * 60}
    return [{"role": "assistant", "content": blocks}, {"role": "user", "content": [result]}]


def gemini_reply(number: int) -> list[Any]:
    call = genai.Part(function_call=genai.FunctionCall(name="f", args={"n": number}), thought_signature=b"\xfb\xff")
    answer = genai.Part.from_function_response(name="f", response={"result": f"result {number} " * 60})
    thought = genai.Part(text="hm", thought=True)
    return [genai.Content(role="model", parts=[thought, call]), genai.Content(role="user", parts=[answer])]


def chat_message(number: int) -> ChatCompletionMessage:
    call = {"id": f"c{number}", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    fields = {"role": "assistant", "content": None, "refusal": None, "annotations": [], "tool_calls": [call]}
    return ChatCompletionMessage.model_validate(fields)


def chat_reply(number: int) -> list[Any]:
    """The message itself, or a dict with the calls of it."""
    message = chat_message(number)
    calls = {"role": "assistant", "content": None, "tool_calls": message.tool_calls}
    result = {"role": "tool", "tool_call_id": f"c{number}", "content": f"result {number} " * 60}
    return [calls if number % 2 else message, result]


HISTORIES: dict[str, list[Any]] = {
    "chat": [{"role": "user", "content": "do it"}, *(i for n in range(12) for i in chat_reply(n))],
    "responses": [{"role": "user", "content": "do it"}, *(i for n in range(12) for i in openai_reply(n))],
    "anthropic": [{"role": "user", "content": "do it"}, *(i for n in range(12) for i in anthropic_reply(n))],
    "gemini": [
        genai.Content(role="user", parts=[genai.Part(text="do it")]),
        *(item for number in range(12) for item in gemini_reply(number)),
    ],
}


@pytest.mark.parametrize("name", HISTORIES)
def test_below_the_trigger_the_same_objects_come_back(name: str) -> None:
    items = HISTORIES[name]
    found = detect(items)
    assert found is DIALECTS[name]
    out = manager_for(100_000).preflight("s", items)
    assert all(a is b for a, b in zip(out, items, strict=True))


@pytest.mark.parametrize("name", HISTORIES)
def test_a_compacted_history_is_legal_and_keeps_the_objects_that_nobody_changed(name: str) -> None:
    items = HISTORIES[name]
    manager = manager_for(1_500)
    out = manager.preflight("s", items)
    assert manager.current_plan("s").version == 1
    assert DIALECTS[name].check(out) == ()
    assert out[-1] is items[-1]
    assert out[-2] is items[-2]
    assert manager.preflight("s", out) == out
    assert manager.current_plan("s").version == 1


def test_gemini_contents_stay_objects_whoever_made_them() -> None:
    """Frameworks that work with `types.Content` get nothing else back, the summary included."""
    check_dialect(DIALECTS["gemini"], HISTORIES["gemini"])
    out = manager_for(1_500).manual_compact("s", HISTORIES["gemini"])
    assert all(isinstance(item, genai.Content) for item in out)
    assert "<COMPACT-SUMMARY v1>" in str(out[0])
    signatures = [part.thought_signature for item in out for part in item.parts or () if part.function_call]
    assert set(signatures) == {b"\xfb\xff"}


def test_bytes_in_a_dict_of_gemini_are_bytes_again() -> None:
    blob = {"mime_type": "image/png", "data": b"\xff\xfe\xfb\x00"}
    check_dialect(DIALECTS["gemini"], [{"role": "user", "parts": [{"inline_data": blob}, {"text": "what is it?"}]}])


def test_a_response_without_the_id_that_its_call_has_is_paired_all_the_same() -> None:
    call = genai.Part(function_call=genai.FunctionCall(name="f", id="c1", args={}))
    answer = genai.Part.from_function_response(name="f", response={"result": "x"})
    items = [
        genai.Content(role="user", parts=[genai.Part(text="do it")]),
        genai.Content(role="model", parts=[call]),
        genai.Content(role="user", parts=[answer]),
    ]
    check_dialect(DIALECTS["gemini"], items)


def langchain_history(first: Any) -> list[Any]:
    items: list[Any] = [first]
    for number in range(12):
        items.append(AIMessage("", tool_calls=[{"id": f"c{number}", "name": "f", "args": {"n": number}}]))
        items.append(ToolMessage(f"result {number} " * 60, tool_call_id=f"c{number}"))
    return items


@pytest.mark.parametrize("first", [HumanMessage("do it"), {"role": "user", "content": "do it"}], ids=["alone", "mixed"])
def test_langchain_messages_go_in_as_they_are(first: Any) -> None:
    items = langchain_history(first)
    out = manager_for(100_000).preflight("s", items)
    assert all(a is b for a, b in zip(out, items, strict=True))
    manager = manager_for(1_500)
    out = manager.preflight("s", items)
    found = detect(items)
    assert found is not None
    assert found.name == "langchain"
    assert manager.current_plan("s").version == 1
    assert found.check(out) == ()
    assert out[-1] is items[-1]
    assert out[-2] is items[-2]
    assert isinstance(out[0], HumanMessage)
    assert manager.preflight("s", out) == out


def whole_reply(kind: Any, number: int) -> Any:
    use = {"type": "tool_use", "id": f"c{number}", "name": "f", "input": {"n": None}}
    usage = {"input_tokens": 1, "output_tokens": 1}
    fields = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": "m", "content": [use]}
    return kind.model_validate({**fields, "stop_reason": "tool_use", "stop_sequence": None, "usage": usage})


@pytest.mark.parametrize("kind", [Message, BetaMessage])
def test_a_message_of_anthropic_comes_back_as_its_api_takes_it(kind: Any) -> None:
    """The API takes a role and content only: its own answer is refused, with all that is said about it."""
    items: list[Any] = [{"role": "user", "content": "do it"}]
    for number in range(12):
        result = {"type": "tool_result", "tool_use_id": f"c{number}", "content": f"result {number} " * 60}
        items += [whole_reply(kind, number), {"role": "user", "content": [result]}]
    for window in (100_000, 1_500):
        manager = manager_for(window)
        out = manager.preflight("s", items)
        assert DIALECTS["anthropic"].check(out) == ()
        assert out[-1] is items[-1]
        assert out[-2] == {"role": "assistant", "content": [out[-2]["content"][0]]}
        assert out[-2]["content"][0]["input"] == {"n": None}
        assert manager.preflight("s", out) == out
    assert manager.current_plan("s").version == 1


class OwnModel(BaseModel):
    """A message in somebody's own application."""

    role: str = "user"
    content: str
    name: str | None = None


def test_any_model_with_a_role_goes_in_and_a_change_in_place_is_seen() -> None:
    manager = manager_for(100_000)
    items: list[Any] = [OwnModel(content="one"), {"role": "assistant", "content": "two"}, OwnModel(content="three")]
    assert all(a is b for a, b in zip(manager.preflight("s", items), items, strict=True))
    assert manager.history("s")[0].original == {"role": "user", "content": "one"}
    items[0].content = "other"
    assert manager.preflight("s", items)[0] is items[0]
    assert [slot.message.text for slot in manager.prompt("s").slots] == ["other", "two", "three"]


def test_a_caller_may_go_on_with_its_own_list() -> None:
    """What is appended between two calls is read with the next one; the objects before it are known."""
    manager = manager_for(100_000)
    items: list[Any] = [{"role": "user", "content": "do it"}]
    for number in range(3):
        assert all(a is b for a, b in zip(manager.preflight("s", items), items, strict=True))
        items += chat_reply(number)
    assert all(a is b for a, b in zip(manager.preflight("s", items), items, strict=True))
    assert [len(message.tool_calls) for message in manager.history("s")] == [0, 1, 0, 1, 0, 1, 0]


# -- a chat of Gemini's SDK has its contents as objects, whatever it was begun with ----------------------------------


def contents(count: int, **meta: object) -> list[Any]:
    """Return questions and answers, as dicts."""
    turns: list[dict[str, Any]] = [
        {"role": ("user", "model")[n % 2], "parts": [{"text": f"{n} " + "berth " * 20}]} for n in range(count)
    ]
    turns[0] |= meta
    return turns


def as_contents(items: Sequence[Any]) -> list[Any]:
    return [genai.Content.model_validate(item) for item in items]


@pytest.mark.parametrize("begins_with_objects", [True, False])
def test_the_same_contents_as_objects_and_as_dicts_are_the_same_messages(begins_with_objects: bool) -> None:
    both = [as_contents(contents(5)), contents(5)]
    with CompactManager(CompactConfig(telemetry={"exporter": "none"})) as manager:
        for items in both if begins_with_objects else reversed(both):
            assert manager.preflight("s", items, dialect="gemini") == items
        assert len(manager.history("s")) == 5


@pytest.mark.parametrize("empty", [[{"text": ""}], [{"text": " "}, {"text": "\n"}], []])
def test_an_empty_content_goes_out_filled_once_there_is_a_plan_and_is_known_again(empty: list[Any]) -> None:
    """The API rejects an empty text; so it does in an object, which is an object then as before."""
    config = CompactConfig(max_context_tokens=800, policy={"hard_cap_buffer": 0}, telemetry={"exporter": "none"})
    items = as_contents([*contents(60), {"role": "user", "parts": empty}])
    with CompactManager(config, tokenizer=WordTokenizer()) as manager:
        prompt = manager.preflight("s", items, dialect="gemini")
        assert not check_gemini(prompt)
        assert [(type(item), item.parts[0].text) for item in prompt[-1:]] == [(genai.Content, "[empty message]")]
        assert manager.preflight("s", items, dialect="gemini") == prompt
        assert manager.preflight("s", prompt, dialect="gemini") == prompt
        assert len(manager.history("s")) == 61


def test_a_content_with_an_empty_text_beside_another_goes_out_without_it() -> None:
    config = CompactConfig(max_context_tokens=800, policy={"hard_cap_buffer": 0}, telemetry={"exporter": "none"})
    items = as_contents([*contents(60), {"role": "user", "parts": [{"text": ""}, {"text": "go on"}]}])
    with CompactManager(config, tokenizer=WordTokenizer()) as manager:
        prompt = manager.preflight("s", items, dialect="gemini")
        assert [part.text for part in prompt[-1].parts] == ["go on"]
        assert manager.preflight("s", items, dialect="gemini") == prompt
        assert len(manager.history("s")) == 61


def test_a_protected_content_stays_protected_as_an_object() -> None:
    with CompactManager(CompactConfig(telemetry={"exporter": "none"})) as manager:
        manager.preflight("s", contents(5, meta={"protected": True}), dialect="gemini")
        manager.preflight("s", as_contents(contents(5)), dialect="gemini")
        assert [message.meta for message in manager.history("s")] == [{"protected": True}, {}, {}, {}, {}]


def test_a_prompt_that_comes_back_as_objects_is_the_prompt() -> None:
    config = CompactConfig(max_context_tokens=800, policy={"hard_cap_buffer": 0}, telemetry={"exporter": "none"})
    with CompactManager(config, tokenizer=WordTokenizer()) as manager:
        prompt = manager.preflight("s", contents(61), dialect="gemini")
        assert len(prompt) < 61
        manager.preflight("s", as_contents([*prompt, *contents(63)[61:]]), dialect="gemini")
        assert len(manager.history("s")) == 63
        assert not any("<COMPACT-SUMMARY" in message.text for message in manager.history("s"))
