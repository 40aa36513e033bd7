"""Own loops: the hooks that the design names, with the scenario and by themselves."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

import pytest
from openai.types.chat import ChatCompletionMessage

from adapters.scenario import TOOL_SCHEMA, Call, Watch, look_up
from compact import CompactConfig, CompactManager, InvalidHistory
from compact.adapters.own_loop import abefore_model_call, before_model_call, prepare_step
from compact.core.engine.events import CompactionErrorEvent
from compact.recall.tool import TOOL_SCHEMA as RECALL_SCHEMA
from compact.testing import RecordingSink, tool_run

TOOLS = [TOOL_SCHEMA, RECALL_SCHEMA]


@dataclass
class Context:
    """What the loop of the scenario knows before a call."""

    session_id: str
    messages: list[Any]
    tools: list[Any] = field(default_factory=list[Any])
    instructions: str = ""


@dataclass
class Loop:
    """The scenario's agent as somebody writes it by hand; `keeps_prompt` goes on with what was sent."""

    watch: Watch
    manager: CompactManager
    hook: str
    keeps_prompt: bool = False
    history: list[Any] = field(default_factory=list[Any])
    everything: list[Any] = field(default_factory=list[Any])

    def add(self, *messages: Any) -> None:
        self.history.extend(messages)
        self.everything.extend(messages)

    def prompt(self) -> list[Any]:
        context = Context("s", list(self.history), TOOLS, self.watch.scenario.instructions)
        if self.hook == "before_model_call":
            before_model_call(self.manager)(context)
        elif self.hook == "abefore_model_call":
            asyncio.run(abefore_model_call(self.manager)(context))
        else:
            step = prepare_step(self.manager, "s", tools=TOOLS, instructions=context.instructions)
            context.messages = asyncio.run(step({"messages": context.messages}))["messages"]
        if self.keeps_prompt:
            self.history = list(context.messages)
        return context.messages

    def run(self) -> None:
        script = self.watch.scenario
        self.add({"role": "user", "content": script.protected, "meta": {"protected": True}})
        for prompt in script.prompts:
            self.add({"role": "user", "content": prompt})
            while True:
                step = self.watch.ask(self.prompt(), "chat", tools=TOOLS, instructions=script.instructions)
                if not isinstance(step, Call):
                    self.add({"role": "assistant", "content": step.text})
                    break
                function = {"name": step.name, "arguments": step.arguments_json}
                call = {"id": step.call_id, "type": "function", "function": function}
                self.add({"role": "assistant", "content": None, "tool_calls": [call]})
                self.add({"role": "tool", "tool_call_id": step.call_id, "content": self.answer(step)})

    def answer(self, step: Call) -> str:
        if step.name == "recall":
            return str(self.manager.recall("s", step.arguments["query"]))
        return look_up(**step.arguments)


@pytest.mark.parametrize("keeps_prompt", [False, True], ids=["full history", "what was sent"])
@pytest.mark.parametrize("hook", ["before_model_call", "abefore_model_call", "prepare_step"])
def test_the_scenario(hook: str, keeps_prompt: bool) -> None:
    """Whether the loop keeps the whole history or goes on with what it was given: the log has everything."""
    watch = Watch()
    loop = Loop(watch, watch.manager(), hook, keeps_prompt)
    loop.run()
    stored = None if keeps_prompt else [str(message["content"]) for message in loop.history]
    watch.check(loop.manager, "s", stored=stored)


def test_below_the_trigger_the_messages_are_what_came_in() -> None:
    """The very same objects, also those of a client library."""
    answer = ChatCompletionMessage(role="assistant", content="Hello.")
    messages = [{"role": "user", "content": "Hi."}, answer, {"role": "user", "content": "Go on."}]
    context = Context("s", list(messages))
    before_model_call(CompactManager())(context)
    assert all(ours is theirs for ours, theirs in zip(context.messages, messages, strict=True))
    result = asyncio.run(prepare_step(CompactManager(), "s")({"messages": messages}))
    assert list(result) == ["messages"]
    assert all(ours is theirs for ours, theirs in zip(result["messages"], messages, strict=True))


def test_objects_of_a_client_are_compacted_like_dicts() -> None:
    """A loop appends `response.choices[0].message` as it is."""
    history = tool_run(30, words=200)
    as_objects = [
        ChatCompletionMessage.model_validate(message) if message["role"] == "assistant" else message
        for message in history
    ]
    config = CompactConfig(model="gpt-4o", max_context_tokens=4_000)
    context, plain = Context("s", as_objects), Context("s", list(history))
    before_model_call(CompactManager(config))(context)
    before_model_call(CompactManager(config))(plain)
    assert len(context.messages) == len(plain.messages) < len(history)
    assert context.messages[-1] is as_objects[-1]


@pytest.mark.parametrize("hook", ["before_model_call", "prepare_step"])
def test_a_failure_leaves_the_messages_as_they_are_unless_strict(hook: str) -> None:
    """Whatever it is: an agent goes on, and an event tells."""
    sink = RecordingSink()
    manager = CompactManager(on_event=sink)
    messages: list[Any] = [{"role": "user", "content": "Hi.", "meta": {"protected": True}}, {"role": "nobody"}]

    def sent(strict: bool) -> list[Any]:
        if hook == "prepare_step":
            return asyncio.run(prepare_step(manager, "s", strict=strict)({"messages": messages}))["messages"]
        context = Context("s", list(messages))
        before_model_call(manager, strict=strict)(context)
        return context.messages

    assert sent(strict=False) == [{"role": "user", "content": "Hi."}, {"role": "nobody"}]
    assert [event.error_type for event in sink.of(CompactionErrorEvent)] == ["InvalidHistory"]
    with pytest.raises(InvalidHistory):
        sent(strict=True)
