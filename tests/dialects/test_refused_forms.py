"""What is no message is refused: with its type, its place, and what to do."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from typing import Any

import pytest
from anthropic.types import TextBlock
from google.genai import types as genai
from openai.types.chat import ChatCompletion
from openai.types.responses import Response
from pydantic import BaseModel

from compact import CompactConfig, CompactManager, InvalidHistory
from compact.stateless import estimate_messages_tokens

USER = {"role": "user", "content": "hello"}


def preflight(items: list[Any], dialect: str | None = None) -> None:
    with CompactManager(CompactConfig(state={"url": "memory:"}, telemetry={"exporter": "none"})) as manager:
        manager.preflight("s", items, dialect=dialect)


@dataclass
class OwnMessage:
    """A message of somebody's own."""

    role: str
    content: str


class Weather(BaseModel):
    """A model that is no message."""

    degrees: int


async def answer() -> dict[str, str]:
    return USER


CHOICE = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "hi"}}
COMPLETION = {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": [CHOICE]}
ANTHROPIC = {"id": "m", "type": "message", "role": "assistant", "content": [], "stop_reason": "end_turn", "usage": {}}
RESPONSE = {"id": "r", "object": "response", "output": []}
WRONG: dict[str, tuple[Any, str, str]] = {
    "text": ("hello", "got str", "say who speaks"),
    "bytes": (b"{}", "got bytes", "json.loads"),
    "pair": (("user", "hi"), "got tuple", "in place of a pair"),
    "list": ([USER], "got list", "extend"),
    "nothing": (None, "got NoneType", "leave it out"),
    "number": (7, "got int", "pass a dict"),
    "dataclass": (OwnMessage("user", "hi"), "OwnMessage", "pass a dict"),
    "pydantic": (Weather(degrees=7), "Weather", "neither a role nor a type"),
    "completion": (ChatCompletion.model_validate(COMPLETION), "ChatCompletion", ".choices[0].message"),
    "completion as a dict": (COMPLETION, "'choices'", ".choices[0].message"),
    "choice": (ChatCompletion.model_validate(COMPLETION).choices[0], "Choice", ".message"),
    "response": (Response.model_construct(**RESPONSE), "Response", "response.output"),
    "response as a dict": (RESPONSE, "'output'", "response.output"),
    "gemini": (genai.GenerateContentResponse(candidates=[]), "GenerateContentResponse", ".candidates[0].content"),
    "gemini part": (genai.Part(text="hi"), "Part", "parts"),
    "anthropic block": (TextBlock(type="text", text="hi"), "TextBlock", "response.content"),
    "anthropic as a dict": (ANTHROPIC, "whole answer of Anthropic", 'response["content"]'),
    "converse": ({"output": {"message": USER}, "stopReason": "end_turn"}, "'output'", '["output"]["message"]'),
    "ui message": (
        {"id": "1", "role": "user", "parts": [{"type": "text", "text": "hi"}]},
        "'parts'",
        "convertToModelMessages",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_it_is_named_with_its_place_and_what_to_do(name: str) -> None:
    item, words, hint = WRONG[name]
    with pytest.raises(InvalidHistory) as caught:
        preflight([USER, item])
    assert caught.value.place == "messages[1]"
    assert words in str(caught.value)
    assert hint in str(caught.value)
    with pytest.raises(InvalidHistory, match=r"messages\[1\]"):
        estimate_messages_tokens([USER, item])


def test_what_was_not_awaited_is_named() -> None:
    waiting = answer()
    with pytest.raises(InvalidHistory, match="await it first"):
        preflight([waiting])
    waiting.close()


@pytest.mark.parametrize(
    ("named", "item"),
    [
        ("chat", {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "f", "input": {}}]}),
        ("chat", {"role": "tool", "content": [{"type": "tool-result", "toolCallId": "c", "toolName": "f"}]}),
        ("chat", {"role": "user", "content": [{"toolResult": {"toolUseId": "c", "content": []}}]}),
        ("converse", {"role": "user", "content": "plain"}),
        ("vercel", {"role": "tool", "tool_call_id": "c", "content": "x"}),
        ("anthropic", {"role": "tool", "tool_call_id": "c", "content": "x"}),
        ("gemini", {"role": "user", "parts": [{"kind": "text", "text": "x"}]}),
    ],
)
def test_a_call_or_a_result_of_another_dialect_is_not_taken_for_words(named: str, item: Any) -> None:
    with pytest.raises(InvalidHistory, match=rf"messages\[0\].*{named}"):
        preflight([item], named)


def test_no_client_library_is_imported() -> None:
    code = (
        "import sys, compact\n"
        "manager = compact.CompactManager(compact.CompactConfig(state={'url': 'memory:'}))\n"
        "manager.preflight('s', [{'role': 'user', 'content': 'hi'}])\n"
        "print([n for n in ('openai', 'anthropic', 'google.genai', 'langchain_core', 'boto3') if n in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"
