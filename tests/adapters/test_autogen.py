"""A wrapped model client on real agents of AutoGen, with a model that rejects what a provider would."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from importlib.metadata import version
from typing import Any

import pytest
from autogen_agentchat.agents import AssistantAgent
from autogen_core import FunctionCall, Image
from autogen_core.model_context import UnboundedChatCompletionContext
from autogen_core.models import (
    AssistantMessage,
    ChatCompletionClient,
    CreateResult,
    FunctionExecutionResult,
    FunctionExecutionResultMessage,
    RequestUsage,
    SystemMessage,
    UserMessage,
)
from autogen_core.tools import FunctionTool
from autogen_ext.models.openai import OpenAIChatCompletionClient
from autogen_ext.models.openai._openai_client import to_oai_type
from packaging.specifiers import SpecifierSet
from PIL import Image as Picture

import compact
from adapters.enforced_window import INSTRUCTIONS, TURNS, Enforced, enforced, question
from adapters.scenario import TOOL, Call, Rejected, Watch, look_up
from compact import CompactConfig, CompactManager
from compact.adapters.autogen import SUPPORTED_VERSIONS, AutoGenDialect, recall_tool
from compact.adapters.autogen.client import tool_schemas
from compact.adapters.autogen.messages import message_data, message_of
from compact.core.engine.events import CompactionErrorEvent, TokenEstimateEvent
from compact.testing import RecordingSink, WordTokenizer

INFO: Any = {
    "vision": True,
    "function_calling": True,
    "json_output": False,
    "family": "unknown",
    "structured_output": False,
}


class ScriptedClient(ChatCompletionClient):
    """A client whose answers are a function of what it is sent, as AutoGen itself would write it to OpenAI."""

    component_type = "model"

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.sent: list[list[Any]] = []

    async def create(self, messages: Sequence[Any], *, tools: Sequence[Any] = (), **options: Any) -> CreateResult:
        self.sent.append(list(messages))
        wire = [item for message in messages for item in to_oai_type(message, model="gpt-4o")]
        return self.answer([dict(item) for item in wire], tool_schemas(tools))

    async def create_stream(self, messages: Sequence[Any], **options: Any) -> AsyncGenerator[Any, None]:
        result = await self.create(messages, **options)
        if isinstance(result.content, str):
            for word in result.content.split(" "):
                yield word
        yield result

    @property
    def model_info(self) -> Any:
        return INFO

    capabilities = model_info

    async def close(self) -> None: ...
    def actual_usage(self) -> RequestUsage:
        return RequestUsage(0, 0)

    total_usage = actual_usage

    def count_tokens(self, messages: Sequence[Any], **options: Any) -> int:
        return 0

    remaining_tokens = count_tokens


def play(watch: Watch) -> Any:
    """The model of the scenario."""

    def answer(wire: list[dict[str, Any]], tools: list[dict[str, Any]]) -> CreateResult:
        sent = [{key: value for key, value in item.items() if key != "name"} for item in wire]
        step = watch.ask(sent, "chat", tools=tools)
        usage = RequestUsage(prompt_tokens=watch.tokens[-1], completion_tokens=5)
        if isinstance(step, Call):
            calls = [FunctionCall(id=step.call_id, name=step.name, arguments=step.arguments_json)]
            return CreateResult(finish_reason="function_calls", content=calls, usage=usage, cached=False)
        return CreateResult(finish_reason="stop", content=step.text, usage=usage, cached=False)

    return answer


def depot_tool() -> FunctionTool:
    """The tool of the scenario."""

    def look(depot: int) -> str:
        return look_up(depot)

    return FunctionTool(look, description="The stock list of one depot.", name=TOOL)


def agent_of(watch: Watch, manager: CompactManager, client: ScriptedClient, **options: Any) -> AssistantAgent:
    """The agent of the scenario; what is protected is in its system message."""
    return AssistantAgent(
        "auditor",
        compact.wrap(client, manager, session_id="chat-1"),
        tools=[depot_tool(), recall_tool(manager, "chat-1")],
        system_message=f"{watch.scenario.instructions}\n{watch.scenario.protected}",
        max_tool_iterations=100,
        **options,
    )


@pytest.mark.parametrize("is_streamed", [False, True])
def test_the_scenario(is_streamed: bool) -> None:
    watch = Watch()
    manager = watch.manager()
    client = ScriptedClient(play(watch))
    context = UnboundedChatCompletionContext()
    agent = agent_of(watch, manager, client, model_context=context, model_client_stream=is_streamed)

    async def run() -> list[Any]:
        for prompt in watch.scenario.prompts:
            await agent.run(task=prompt)
        return await context.get_messages()

    stored = asyncio.run(run())
    texts = [str(message_data(message)["content"]) for message in stored]
    watch.check(manager, "chat-1", stored=[watch.scenario.protected, *texts])
    assert [call.tokens_reported for call in manager.model_calls("chat-1")] == watch.tokens
    own = {id(message) for message in stored}
    assert sum(id(message) in own for message in client.sent[-1]) > 5, "what was not changed is the agent's own object"
    first = watch.sink.of(TokenEstimateEvent)[0]
    assert first.breakdown["tools_schema"] > 40


def test_without_compaction_the_model_rejects() -> None:
    watch = Watch()
    agent = AssistantAgent(
        "a",
        ScriptedClient(play(watch)),
        tools=[depot_tool()],
        system_message=watch.scenario.protected,
        max_tool_iterations=100,
    )
    with pytest.raises(Rejected, match="tokens, more than"):
        asyncio.run(agent.run(task=watch.scenario.prompts[0]))


class BrokenTokenizer(WordTokenizer):
    """A plug-in that fails."""

    def count_message(self, message: Any) -> int:
        raise RuntimeError("out of order")


def fails(body: Mapping[str, Any]) -> str:
    """A function of the user that does not find what it wants."""
    return body["user"]


@pytest.mark.parametrize("fault", ["tokenizer", "session_id"])
def test_a_failure_never_stops_the_run(fault: str) -> None:
    sink = RecordingSink()
    parts: Any = {"tokenizer": BrokenTokenizer()} if fault == "tokenizer" else {}
    manager = CompactManager(CompactConfig(), on_event=sink, **parts)
    usage = RequestUsage(1, 1)
    client = ScriptedClient(
        lambda wire, tools: CreateResult(finish_reason="stop", content="fine", usage=usage, cached=False)
    )
    wrapped = compact.wrap(client, manager, session_id=fails if fault == "session_id" else "chat-1")
    said = [UserMessage(content="hello", source="user")]
    assert asyncio.run(wrapped.create(said)).content == "fine"
    assert client.sent[0][0] is said[0]
    (failure,) = sink.of(CompactionErrorEvent)
    assert failure.error_type == ("RuntimeError" if fault == "tokenizer" else "KeyError")


def test_every_kind_of_message_is_read_and_made_again() -> None:
    picture = Image.from_pil(Picture.new("RGB", (2, 2)))
    calls = [FunctionCall(id=f"c{n}", name="look", arguments=f'{{"n": {n}}}') for n in (1, 2)]
    results = [FunctionExecutionResult(content=f"r{n}", name="look", call_id=f"c{n}", is_error=n == 2) for n in (1, 2)]
    messages = [
        SystemMessage(content="be kind"),
        UserMessage(content=["see", picture], source="ann"),
        AssistantMessage(content=calls, thought="two at once", source="bob"),
        FunctionExecutionResultMessage(content=results),
        AssistantMessage(content="done", thought="hm", source="bob"),
    ]
    dialect = AutoGenDialect()
    items = [message_data(message) for message in messages]
    assert not dialect.check(items)
    entries = [entry for block in dialect.read(items, 0) for entry in block.entries]
    assert [entry["role"] for entry in entries] == ["system", "user", "assistant", "tool", "tool", "assistant"]
    written = [item for block in dialect.join(list(dialect.write(entries))) for item in block.items]
    assert written == items, "the results of a turn are one message again"
    assert [message_data(message_of(item)) for item in written] == items


def test_a_wrapped_client_is_of_its_class_and_the_other_stays_as_it_is() -> None:
    client = OpenAIChatCompletionClient(model="gpt-4o", api_key="any")
    wrapped = compact.wrap(client, CompactManager())
    assert isinstance(wrapped, OpenAIChatCompletionClient)
    assert type(client) is OpenAIChatCompletionClient
    assert wrapped.dump_component().provider == client.dump_component().provider
    assert version("autogen-core") in SpecifierSet(SUPPORTED_VERSIONS)


@pytest.mark.filterwarnings("ignore:Resolved model mismatch:UserWarning")
def test_a_window_that_is_enforced() -> None:
    async def main(run: Enforced) -> None:
        def read_page(page: int) -> str:
            """One page."""
            return run.register.page(page)

        client = OpenAIChatCompletionClient(
            model="gpt-4", base_url=run.model.base_url, api_key="any", max_tokens=1_000, model_info=INFO
        )
        agent = AssistantAgent(
            "reader",
            compact.wrap(client, run.manager),
            tools=[read_page],
            system_message=INSTRUCTIONS,
            max_tool_iterations=2,
        )
        for number in range(1, TURNS + 1):
            await agent.run(task=question(number))

    with enforced(8_192, counted_as="gpt-4", register_tokens=24_000) as run:
        asyncio.run(main(run))
        run.check("gpt-4", output_tokens=1_000)
