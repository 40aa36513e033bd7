"""A chat model for LangChain's agents that answers by script, and rejects what a provider would."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from langchain.tools import tool
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage
from langchain_core.messages.utils import convert_to_openai_messages
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import Field

from adapters.adapter_checks import CACHED_TOKENS
from adapters.scenario import Call, Scenario, Watch, look_up
from compact.adapters.langchain.messages import MARK, protected

Answer = Callable[[list[BaseMessage], list[dict[str, Any]]], AIMessage]


class ScriptedChat(BaseChatModel):
    """A chat model whose answers are a function of what it is sent."""

    answer: Any
    bound: list[dict[str, Any]] = Field(default_factory=list)
    use_previous_response_id: bool = False

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self.model_copy(update={"bound": [convert_to_openai_tool(each) for each in tools]})

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self.answer(messages, self.bound))])


class StreamingChat(ScriptedChat):
    """The same, token by token."""

    def _stream(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> Iterator[Any]:
        yield from self._chunks(messages)

    async def _astream(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> AsyncIterator[Any]:
        for chunk in self._chunks(messages):
            yield chunk

    def _chunks(self, messages: Any) -> Iterator[ChatGenerationChunk]:
        whole = self.answer(messages, self.bound)
        calls = [
            {"name": call["name"], "args": json.dumps(call["args"]), "id": call["id"], "index": 0}
            for call in whole.tool_calls
        ]
        for word in str(whole.content).split(" ") if whole.content else []:
            yield ChatGenerationChunk(message=AIMessageChunk(f"{word} "))
        yield ChatGenerationChunk(
            message=AIMessageChunk("", tool_call_chunks=calls, usage_metadata=whole.usage_metadata)
        )


def wire(messages: list[BaseMessage]) -> list[dict[str, Any]]:
    """What LangChain itself would put on the wire of Chat Completions."""
    assert not any(MARK in message.additional_kwargs for message in messages), "our mark would leave"
    sent = convert_to_openai_messages(messages)
    # As ChatOpenAI does: a result has no name on the wire.
    return [{k: v for k, v in item.items() if k != "name" or item["role"] != "tool"} for item in sent]  # type: ignore


def play(watch: Watch) -> Answer:
    """The model of the scenario; it reports the tokens that it has counted."""

    def answer(messages: list[BaseMessage], tools: list[dict[str, Any]]) -> AIMessage:
        step = watch.ask(wire(messages), "chat", tools=tools)
        usage = {
            "input_tokens": watch.tokens[-1],
            "output_tokens": 5,
            "total_tokens": watch.tokens[-1] + 5,
            "input_token_details": {"cache_read": CACHED_TOKENS},
        }
        if isinstance(step, Call):
            call = {"name": step.name, "args": step.arguments, "id": step.call_id}
            return AIMessage("", tool_calls=[call], usage_metadata=usage)  # type: ignore[arg-type, list-item]
        return AIMessage(step.text, usage_metadata=usage)  # type: ignore[arg-type]

    return answer


@tool
def look_up_depot(depot: int) -> str:
    """The stock list of one depot."""
    return look_up(depot)


def turns(scenario: Scenario) -> list[list[BaseMessage]]:
    """What the user says, turn by turn; the protected message comes before the first task."""
    said: list[list[BaseMessage]] = [[HumanMessage(prompt)] for prompt in scenario.prompts]
    said[0].insert(0, protected(HumanMessage(scenario.protected)))
    return said


def texts(messages: list[BaseMessage]) -> list[str]:
    """What everybody said."""
    return [str(message.content) for message in messages]
