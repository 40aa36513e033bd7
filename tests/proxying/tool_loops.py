"""Agents on the real client packages that take whatever a model answers: thinking, text, and several calls at once."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import anthropic
import openai

from proxying.agents import TOOL
from proxying.provider import until_the_end
from proxying.turns import Call

KEY = "sk-agent-0123456789abcdef"


@dataclass
class ToolLoop:
    """Keeps its history as the client hands it out; `said` is the header of the newest response."""

    url: str
    stream: bool
    history: list[Any] = field(default_factory=lambda: [{"role": "user", "content": "Read all the files."}])
    extra: dict[str, Any] = field(default_factory=dict)
    said: str = ""
    text: str = ""
    calls: list[Call] = field(default_factory=list)
    usage: Any = None

    def step(self, result: str = "") -> None:
        """Answer the calls of the last step, and ask the model again."""
        for call in self.calls:
            self.history.append(self.result(call, f"{call.id}: {result}"))
        self.text, self.calls = "", []
        self.ask()

    def ask(self) -> None:
        raise NotImplementedError

    def items(self) -> list[Any]:
        """The history as it is sent."""
        return self.history

    def result(self, call: Call, text: str) -> Any:
        raise NotImplementedError


class ChatLoop(ToolLoop):
    def ask(self) -> None:
        client = until_the_end(openai.OpenAI(base_url=self.url + "/v1", api_key=KEY, max_retries=0))
        tools = [{"type": "function", "function": {"name": "read_file", "parameters": TOOL}}]
        request: Any = {"model": "gpt-4o", "messages": self.history, "tools": tools, **self.extra}
        if self.stream:
            usage = {"stream_options": {"include_usage": True}}
            with client.chat.completions.stream(**request, **usage) as stream:
                for _ in stream:
                    pass
                self.said = stream._response.headers["x-compact"]
                answer = stream.get_final_completion()
        else:
            raw = client.chat.completions.with_raw_response.create(**request)
            self.said, answer = raw.headers["x-compact"], raw.parse()
        message, self.usage = answer.choices[0].message, answer.usage
        self.text = message.content or ""
        made = message.tool_calls or []
        self.calls = [Call(call.id, call.function.name, json.loads(call.function.arguments)) for call in made]
        assert answer.choices[0].finish_reason == ("tool_calls" if made else "stop")
        kept: dict[str, Any] = {"role": "assistant", "content": message.content or None}
        if made:
            functions = [{"name": call.name, "arguments": call.arguments} for call in self.calls]
            pairs = zip(self.calls, functions, strict=True)
            kept["tool_calls"] = [{"id": call.id, "type": "function", "function": each} for call, each in pairs]
        self.history.append(kept)

    def result(self, call: Call, text: str) -> Any:
        return {"role": "tool", "tool_call_id": call.id, "content": text}


class AnthropicLoop(ToolLoop):
    def ask(self) -> None:
        client = until_the_end(anthropic.Anthropic(base_url=self.url, api_key=KEY, max_retries=0))
        request: Any = {
            "model": "claude-scripted",
            "max_tokens": 1200,
            "thinking": {"type": "enabled", "budget_tokens": 1024},
            "messages": self.items(),
            "tools": [{"name": "read_file", "input_schema": TOOL}],
            **self.extra,
        }
        if self.stream:
            with client.messages.stream(**request) as stream:
                for _ in stream:
                    pass
                self.said = stream.response.headers["x-compact"]
                answer = stream.get_final_message()
        else:
            raw = client.messages.with_raw_response.create(**request)
            self.said, answer = raw.headers["x-compact"], raw.parse()
        self.usage = answer.usage
        self.text = "".join(block.text for block in answer.content if block.type == "text")
        made = [block for block in answer.content if block.type == "tool_use"]
        self.calls = [Call(block.id, block.name, block.input) for block in made]
        assert answer.stop_reason == ("tool_use" if made else "end_turn")
        known = ("type", "id", "name", "input", "text", "thinking", "signature")
        blocks = [block.model_dump(include=set(known)) for block in answer.content]
        self.history.append({"role": "assistant", "content": blocks})

    def result(self, call: Call, text: str) -> Any:
        return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call.id, "content": text}]}

    def items(self) -> list[Any]:
        """All results of one answer are in one message."""
        merged: list[Any] = []
        for message in self.history:
            content = message["content"]
            if merged and merged[-1]["role"] == message["role"] == "user" and isinstance(content, list):
                merged[-1] = {"role": "user", "content": [*merged[-1]["content"], *content]}
            else:
                merged.append(message)
        return merged


class ResponsesLoop(ToolLoop):
    def ask(self) -> None:
        client = until_the_end(openai.OpenAI(base_url=self.url + "/v1", api_key=KEY, max_retries=0))
        request: Any = {
            "model": "gpt-4o",
            "input": self.history,
            "tools": [{"type": "function", "name": "read_file", "parameters": TOOL, "strict": False}],
            "store": False,
            "include": ["reasoning.encrypted_content"],
            **self.extra,
        }
        if self.stream:
            numbers: list[int] = []
            with client.responses.stream(**request) as stream:
                for event in stream:
                    numbers.append(event.sequence_number)
                self.said = stream._response.headers["x-compact"]
                answer = stream.get_final_response()
            assert numbers == list(range(len(numbers)))
        else:
            raw = client.responses.with_raw_response.create(**request)
            self.said, answer = raw.headers["x-compact"], raw.parse()
        self.usage, self.text = answer.usage, answer.output_text
        made = [item for item in answer.output if item.type == "function_call"]
        self.calls = [Call(item.call_id, item.name, json.loads(item.arguments)) for item in made]
        known = {
            "type",
            "id",
            "call_id",
            "name",
            "arguments",
            "status",
            "role",
            "content",
            "summary",
            "encrypted_content",
        }
        for item in answer.output:
            kept = item.model_dump(include=known, exclude_none=True)
            for part in kept.get("content") or []:
                part.pop("logprobs", None)
                part.pop("parsed", None)
            self.history.append(kept)

    def result(self, call: Call, text: str) -> Any:
        return {"type": "function_call_output", "call_id": call.id, "output": text}


LOOPS: dict[str, type[ToolLoop]] = {"chat": ChatLoop, "anthropic": AnthropicLoop, "responses": ResponsesLoop}
