"""Objects of the providers' own packages in a history: read as what they are sent as, given back as they are."""

from __future__ import annotations

from typing import Any

import pytest
from anthropic.types import TextBlock, ThinkingBlock, ToolUseBlock
from google.genai import types as genai
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseReasoningItem

from compact import CompactConfig, CompactManager
from compact.dialects import DIALECTS, detect
from compact.testing import check_dialect


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


HISTORIES: dict[str, list[Any]] = {
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
