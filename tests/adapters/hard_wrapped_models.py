"""Conversations on frameworks whose model is wrapped: AutoGen, LlamaIndex and smolagents."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncGenerator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.messages import MultiModalMessage
from autogen_core import FunctionCall, Image
from autogen_core.models import CreateResult, RequestUsage
from autogen_core.tools import FunctionTool
from autogen_ext.models.openai._openai_client import to_oai_type
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ImageBlock, TextBlock
from llama_index.core.llms import ChatMessage, ChatResponse
from llama_index.core.tools import FunctionTool as LlamaTool
from PIL import Image as Picture
from smolagents import ChatMessage as SmolMessage
from smolagents import LogLevel, MessageRole, Tool, ToolCallingAgent
from smolagents.models import ChatMessageToolCall, ChatMessageToolCallFunction
from smolagents.monitoring import TokenUsage

import compact
from adapters.hard_clients import data_uri
from adapters.hard_frameworks import DESCRIPTION
from adapters.hard_scenario import INSTRUCTIONS, Answer, Conversation, Interrupted, World, edited
from adapters.scenario import TOOL
from adapters.test_autogen import ScriptedClient
from adapters.test_llama_index import ScriptedLlamaModel, whole_memory, wire_of
from adapters.test_smolagents import PLANNING, ScriptedSmolModel
from compact.adapters.autogen.client import tool_schemas

# -- AutoGen ---------------------------------------------------------------------------------------------------------


class HardAutoGenClient(ScriptedClient):
    """A client of AutoGen's."""

    async def create(self, messages: Sequence[Any], *, tools: Sequence[Any] = (), **options: Any) -> CreateResult:
        items = [dict(item) for message in messages for item in to_oai_type(message, model="gpt-4o")]
        sent = [{key: value for key, value in item.items() if key != "name"} for item in items]
        answer: Answer = await self.answer(sent, "chat", tools=tool_schemas(tools))
        usage = RequestUsage(prompt_tokens=answer.tokens, completion_tokens=5)
        calls = [FunctionCall(id=call.call_id, name=call.name, arguments=call.arguments_json) for call in answer.calls]
        reason: Any = "function_calls" if calls else "stop"
        return CreateResult(finish_reason=reason, content=calls or answer.text, usage=usage, cached=False)


class AutoGen(Conversation):
    """A wrapped client; an agent of AutoGen's is one conversation."""

    def __init__(self, name: str, world: World, shared: Any) -> None:
        tool = FunctionTool(_tool(world), description=DESCRIPTION, name=TOOL)
        agent = AssistantAgent("auditor", shared, tools=[tool], system_message=INSTRUCTIONS, max_tool_iterations=10)
        super().__init__(name, world, agent)
        self.task: Any = None
        self.before: Any = None

    @classmethod
    def build(cls, world: World) -> Any:
        return compact.wrap(HardAutoGenClient(world.provider.aask), world.manager)

    async def say(self, text: str, attached: bytes = b"") -> None:
        self.before = await self.agent.save_state()
        self.task = text
        if attached:
            image = Image.from_pil(Picture.open(io.BytesIO(attached)))
            self.task = MultiModalMessage(content=[text, image], source="user")
        await self.agent.run(task=self.task)

    async def retry(self) -> None:
        """From the state before the run: a cancelled one leaves calls without results, which no provider takes."""
        await self.agent.load_state(self.before)
        await self.agent.run(task=self.task)

    async def edit(self, changes: Mapping[str, str]) -> None:
        await self.agent.load_state(edited(await self.agent.save_state(), changes))


def _tool(world: World) -> Any:
    async def look(ticket: str, depot: int) -> str:
        return await world.alook_up(ticket, depot)

    return look


# -- LlamaIndex ------------------------------------------------------------------------------------------------------


class HardLlamaModel(ScriptedLlamaModel):
    """A model of LlamaIndex's, which its agents stream from."""

    async def astream_chat(self, messages: Sequence[ChatMessage], **options: Any) -> Any:
        wire = [_with_images(message) for message in messages]
        answer: Answer = await self.answer(wire, "chat", tools=options.get("tools", []))

        async def pieces() -> AsyncGenerator[ChatResponse]:
            calls = [(call.call_id, call.name, call.arguments_json) for call in answer.calls]
            yield self.say(answer.text, calls, {"prompt_tokens": answer.tokens})

        return pieces()


def _with_images(message: ChatMessage) -> dict[str, Any]:
    """A message as a model of LlamaIndex for OpenAI would write it, images included."""
    item = wire_of(message)
    images = [block.resolve_image().read() for block in message.blocks if isinstance(block, ImageBlock)]
    if images:
        parts = [{"type": "image_url", "image_url": {"url": data_uri(image)}} for image in images]
        item["content"] = [{"type": "text", "text": item["content"]}, *parts]
    return item


class LlamaIndex(Conversation):
    """A wrapped model; a memory for each conversation."""

    def __init__(self, name: str, world: World, shared: Any) -> None:
        super().__init__(name, world, shared)
        self.memory = whole_memory()

    @classmethod
    def build(cls, world: World) -> Any:
        tool = LlamaTool.from_defaults(async_fn=_tool(world), name=TOOL, description=DESCRIPTION)
        llm = compact.wrap(HardLlamaModel(answer=world.provider.aask), world.manager)
        return FunctionAgent(llm=llm, tools=[tool], system_prompt=INSTRUCTIONS)

    async def say(self, text: str, attached: bytes = b"") -> None:
        image = [ImageBlock(image=attached, image_mimetype="image/png")] if attached else []
        await self.agent.run(ChatMessage(role="user", blocks=[TextBlock(text=text), *image]), memory=self.memory)

    async def retry(self) -> None:
        """The memory has the question; what the cancelled run had done was never put there."""
        await self.say(f"Go on with {self.name}.")

    async def edit(self, changes: Mapping[str, str]) -> None:
        self.memory.set([edited(message, changes) for message in self.memory.get_all()])


# -- smolagents ------------------------------------------------------------------------------------------------------


class HardSmolModel(ScriptedSmolModel):
    """A model of smolagents', which knows no event loop."""

    def generate(self, messages: Any, *args: Any, **options: Any) -> SmolMessage:
        body = self._prepare_completion_kwargs(messages, *args, convert_images_to_image_urls=True, **options)
        wire = [
            {"role": str(getattr(m["role"], "value", m["role"])), "content": m["content"]} for m in body["messages"]
        ]
        answer: Answer = self.answer(wire, "chat", tools=body.get("tools", []))
        if answer.hangs:
            raise Interrupted
        wanted = [(call.call_id, call.name, call.arguments) for call in answer.calls]
        wanted = wanted or [(f"final_{answer.text}", "final_answer", {"answer": answer.text})]
        calls = [
            ChatMessageToolCall(ChatMessageToolCallFunction(arguments, name), call_id, "function")
            for call_id, name, arguments in wanted
        ]
        return SmolMessage(MessageRole.ASSISTANT, "On.", tool_calls=calls, token_usage=TokenUsage(answer.tokens, 5))


class HardDepotTool(Tool):
    """The tool of the scenario."""

    name = TOOL
    description = DESCRIPTION
    inputs = {  # noqa: RUF012
        "ticket": {"type": "string", "description": "The ticket."},
        "depot": {"type": "integer", "description": "The number of the depot."},
    }
    output_type = "string"

    def __init__(self, world: World) -> None:
        super().__init__()
        self.world = world

    def forward(self, ticket: str, depot: int) -> str:
        return self.world.look_up(ticket, depot)


class Smolagents(Conversation):
    """A wrapped model; an agent is one conversation, and runs in a thread."""

    def __init__(self, name: str, world: World, shared: Any) -> None:
        model, self.pool = shared
        # The prompt that smolagents writes takes more than this window.
        templates: Any = {
            "system_prompt": INSTRUCTIONS,
            "final_answer": {"pre_messages": INSTRUCTIONS, "post_messages": "Say it."},
            "planning": dict.fromkeys(PLANNING, ""),
            "managed_agent": {"task": "", "report": ""},
        }
        agent = ToolCallingAgent(
            tools=[HardDepotTool(world)], model=model, prompt_templates=templates, verbosity_level=LogLevel.OFF
        )
        super().__init__(name, world, agent)

    @classmethod
    @asynccontextmanager
    async def shared(cls, world: World) -> AsyncGenerator[Any]:
        with ThreadPoolExecutor(50) as pool:
            yield compact.wrap(HardSmolModel(world.provider.ask), world.manager), pool

    async def say(self, text: str, attached: bytes = b"") -> None:
        images = [Picture.open(io.BytesIO(attached))] if attached else None
        is_first = not self.agent.memory.steps

        def run() -> None:
            self.agent.run(text, images=images, reset=is_first)

        await asyncio.get_running_loop().run_in_executor(self.pool, run)

    async def retry(self) -> None:
        await self.say(f"Go on with {self.name}.")

    async def edit(self, changes: Mapping[str, str]) -> None:
        for step in self.agent.memory.steps:
            for field in ("task", "observations"):
                if getattr(step, field, None):
                    setattr(step, field, edited(getattr(step, field), changes))


WRAPPED_MODELS: dict[str, type[Conversation]] = {
    "autogen": AutoGen,
    "llama_index": LlamaIndex,
    "smolagents": Smolagents,
}
