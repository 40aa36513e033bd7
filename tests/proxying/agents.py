"""Agents on the real client packages: each keeps its whole history, calls tools, and knows nothing of compaction."""

from __future__ import annotations

import itertools
import json
import threading
from dataclasses import dataclass, field
from typing import Any

import anthropic
import openai

from proxying.models import Fields, Turn
from proxying.provider import until_the_end

WORDS = "the harbour master counts the berths again while the pilot boat waits outside the breakwater " * 45
TOOL = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}


class Caller:
    """A model that calls a tool every time; no two calls have the same id."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()

    def __call__(self, body: Fields) -> Turn:
        with self._lock:
            number = next(self._numbers)
        return Turn(call_id=f"call_{number:05d}", path=f"src/part_{number}.py")


@dataclass
class Agent:
    """Reads so many files; `said` is what the proxy told about each request."""

    url: str
    task: str
    stream: bool = False
    key: str = "sk-agent-0123456789abcdef"
    headers: dict[str, str] = field(default_factory=dict)
    protect: str = ""
    said: list[str] = field(default_factory=list)
    history: list[Any] = field(default_factory=list)

    def run(self, steps: int) -> None:
        """Make so many model calls, and do what the model asks for after each."""
        if not self.history:
            self.begin()
        for step in range(steps):
            self.step(f"contents for {self.task}, step {step}: {WORDS}")

    @property
    def statuses(self) -> list[str]:
        """The status in the header of each response."""
        return [line.split(";")[0] for line in self.said]

    @property
    def sessions(self) -> set[str]:
        """The sessions that its requests were taken for."""
        return {line.split("session=")[1] for line in self.said}

    def begin(self) -> None:
        self.history.append({"role": "user", "content": self.task})
        if self.protect:
            self.history.append({"role": "assistant", "content": "Noted."})
            self.history.append({"role": "user", "content": self.protect, "meta": {"protected": True}})

    def step(self, result: str) -> None:
        raise NotImplementedError


class ChatAgent(Agent):
    def begin(self) -> None:
        self.history.append({"role": "system", "content": "You are a careful agent."})
        super().begin()
        client = openai.OpenAI(base_url=self.url + "/v1", api_key=self.key, default_headers=self.headers)
        self.client = until_the_end(client)

    def step(self, result: str) -> None:
        tool = {"type": "function", "function": {"name": "read_file", "parameters": TOOL}}
        request: Any = {"model": "gpt-4o", "messages": self.history, "tools": [tool], "stream": self.stream}
        if self.stream:
            request["stream_options"] = {"include_usage": True}
        raw = self.client.chat.completions.with_raw_response.create(**request)
        self.said.append(raw.headers["x-compact"])
        if self.stream:
            deltas = [chunk.choices[0].delta for chunk in raw.parse() if chunk.choices]
            calls = [call for delta in deltas for call in delta.tool_calls or []]
            call_id, arguments = calls[0].id, "".join(call.function.arguments for call in calls)
        else:
            (call,) = raw.parse().choices[0].message.tool_calls
            call_id, arguments = call.id, call.function.arguments
        assert json.loads(arguments)["path"].startswith("src/part_")
        function = {"name": "read_file", "arguments": arguments}
        calling = [{"id": call_id, "type": "function", "function": function}]
        self.history.append({"role": "assistant", "content": None, "tool_calls": calling})
        self.history.append({"role": "tool", "tool_call_id": call_id, "content": result})


class AnthropicAgent(Agent):
    def begin(self) -> None:
        super().begin()
        client = anthropic.Anthropic(base_url=self.url, api_key=self.key, default_headers=self.headers)
        self.client = until_the_end(client)

    def step(self, result: str) -> None:
        request: Any = {
            "model": "claude-scripted",
            "max_tokens": 100,
            "system": [{"type": "text", "text": "You are a careful agent."}],
            "messages": self._marked(),
            "tools": [{"name": "read_file", "input_schema": TOOL}],
            "stream": self.stream,
        }
        raw = self.client.messages.with_raw_response.create(**request)
        self.said.append(raw.headers["x-compact"])
        if self.stream:
            begun: list[Any] = []
            written = ""
            for event in raw.parse():
                if event.type == "content_block_start":
                    begun.append(event.content_block)
                if event.type == "content_block_delta":
                    written += event.delta.partial_json
            block = {"type": "tool_use", "id": begun[0].id, "name": "read_file", "input": json.loads(written)}
        else:
            block = raw.parse().content[0].model_dump(include={"type", "id", "name", "input"})
        answer = {"type": "tool_result", "tool_use_id": block["id"], "content": result}
        self.history.append({"role": "assistant", "content": [block]})
        self.history.append({"role": "user", "content": [answer]})

    def _marked(self) -> list[Any]:
        """The history with a cache mark at its newest place, which moves on from call to call."""
        *before, newest = self.history
        content = newest["content"]
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        mark = {"cache_control": {"type": "ephemeral"}}
        return [*before, {**newest, "content": [*parts[:-1], {**parts[-1], **mark}]}]


class ResponsesAgent(Agent):
    def begin(self) -> None:
        super().begin()
        client = openai.OpenAI(base_url=self.url + "/v1", api_key=self.key, default_headers=self.headers)
        self.client = until_the_end(client)

    def step(self, result: str) -> None:
        request: Any = {
            "model": "gpt-4o",
            "instructions": "You are a careful agent.",
            "input": self.history,
            "tools": [{"type": "function", "name": "read_file", "parameters": TOOL, "strict": False}],
            "stream": self.stream,
            "store": False,
        }
        raw = self.client.responses.with_raw_response.create(**request)
        self.said.append(raw.headers["x-compact"])
        answer = raw.parse()
        if self.stream:
            answer = next(event.response for event in answer if event.type == "response.completed")
        (item,) = answer.output
        self.history.append(item.model_dump(include={"type", "id", "call_id", "name", "arguments", "status"}))
        self.history.append({"type": "function_call_output", "call_id": item.call_id, "output": result})


AGENTS: dict[str, type[Agent]] = {"chat": ChatAgent, "anthropic": AnthropicAgent, "responses": ResponsesAgent}
