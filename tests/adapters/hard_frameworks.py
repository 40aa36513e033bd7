"""Conversations on agent frameworks: the agent is shared, and each conversation is one of the framework's own."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from typing import Any

from agent_framework import Agent as FrameworkAgent
from agent_framework import (
    AgentSession,
    BaseChatClient,
    ChatMiddlewareLayer,
    ChatResponse,
    Content,
    FunctionInvocationLayer,
)
from agent_framework import Message as FrameworkMessage
from agent_framework import tool as framework_tool
from agents import Agent, RunConfig, Runner, function_tool
from agents.testing import ScriptedModel, assistant_message, function_call
from agents.usage import Usage
from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner as AdkRunner
from google.adk.sessions import InMemorySessionService
from google.genai import types
from langchain.agents import create_agent
from langchain.tools import tool as langchain_tool
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.prebuilt import create_react_agent
from pydantic_ai import Agent as PydanticAgent
from pydantic_ai import BinaryContent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.usage import RequestUsage
from strands import Agent as StrandsAgent
from strands import tool as strands_tool
from strands.models import Model as StrandsModel

from adapters.hard_clients import data_uri, encoded
from adapters.hard_scenario import INSTRUCTIONS, Answer, Conversation, World, edited
from adapters.langchain_parts import ScriptedChat, wire
from adapters.scenario import TOOL
from compact.adapters.agent_framework import CompactProvider
from compact.adapters.agent_framework.messages import message_data
from compact.adapters.agent_framework.requests import DIALECT as FRAMEWORK_DIALECT
from compact.adapters.agent_framework.requests import tool_schemas as framework_schemas
from compact.adapters.google_adk import AdkCompactionPlugin
from compact.adapters.google_adk.plugin import tool_schemas as adk_schemas
from compact.adapters.langchain import LangChainCompactionMiddleware, compaction_hook
from compact.adapters.openai_agents import compaction_filter
from compact.adapters.pydantic_ai import CompactionCapability
from compact.adapters.pydantic_ai.capability import tool_schemas as pydantic_schemas
from compact.adapters.pydantic_ai.messages import PydanticAIDialect
from compact.adapters.strands import StrandsCompactionPlugin, StrandsDialect
from compact.adapters.strands.plugin import tool_schemas as strands_schemas
from compact.adapters.support import instruction_text

DESCRIPTION = "The stock list of one depot."


# -- LangChain and LangGraph -----------------------------------------------------------------------------------------


class HardChat(ScriptedChat):
    """A chat model of LangChain's that is cancelled as a real one is."""

    async def _agenerate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        answer: Answer = await self.answer(wire(messages), "chat", tools=self.bound)
        calls: Any = [{"name": call.name, "args": call.arguments, "id": call.call_id} for call in answer.calls]
        usage: Any = {"input_tokens": answer.tokens, "output_tokens": 5, "total_tokens": answer.tokens + 5}
        message = AIMessage(answer.text, tool_calls=calls, usage_metadata=usage)
        return ChatResult(generations=[ChatGeneration(message=message)])


def _langchain_tool(world: World) -> Any:
    @langchain_tool(TOOL, description=DESCRIPTION)
    async def look(ticket: str, depot: int) -> str:
        return await world.alook_up(ticket, depot)

    return look


class LangChain(Conversation):
    """`create_agent` with the middleware; a thread for each conversation."""

    @classmethod
    def build(cls, world: World) -> Any:
        return create_agent(
            HardChat(answer=world.provider.aask),
            [_langchain_tool(world)],
            system_prompt=INSTRUCTIONS,
            middleware=[LangChainCompactionMiddleware(world.manager)],
            checkpointer=InMemorySaver(),
        )

    @property
    def thread(self) -> Any:
        return {"configurable": {"thread_id": self.name}}

    async def say(self, text: str, attached: bytes = b"") -> None:
        image = {"type": "image", "base64": encoded(attached), "mime_type": "image/png"}
        content: Any = [{"type": "text", "text": text}, image] if attached else text
        await self.agent.ainvoke({"messages": [HumanMessage(content)]}, self.thread)

    async def retry(self) -> None:
        """From the last checkpoint: a tool that did not end is called again."""
        await self.agent.ainvoke(None, self.thread)

    async def edit(self, changes: Mapping[str, str]) -> None:
        messages = (await self.agent.aget_state(self.thread)).values["messages"]
        changed = [edited(message, changes) for message in messages]
        await self.agent.aupdate_state(
            self.thread, {"messages": [now for was, now in zip(messages, changed, strict=True) if now != was]}
        )


class LangGraph(LangChain):
    """The prebuilt agent with the hook."""

    @classmethod
    def build(cls, world: World) -> Any:
        tools = [_langchain_tool(world)]
        return create_react_agent(
            HardChat(answer=world.provider.aask),
            tools,
            prompt=INSTRUCTIONS,
            pre_model_hook=compaction_hook(world.manager, tools=tools, instructions=INSTRUCTIONS),
            checkpointer=InMemorySaver(),
        )


# -- OpenAI Agents SDK -----------------------------------------------------------------------------------------------


class HardAgentsModel(ScriptedModel):
    """A model of the OpenAI Agents SDK."""

    def __init__(self, world: World) -> None:
        super().__init__(())
        self.world = world

    async def get_response(self, system_instructions: Any, input: Any, *args: Any, **kwargs: Any) -> Any:
        schemas = [
            {"type": "function", "name": t.name, "description": t.description, "parameters": t.params_json_schema}
            for t in kwargs["tools"]
        ]
        answer = await self.world.provider.aask(
            input, "responses", tools=schemas, instructions=system_instructions or ""
        )
        output = [
            function_call(call.name, call.arguments, call_id=call.call_id, item_id=f"fc_{call.call_id}")
            for call in answer.calls
        ]
        # A script of its own: the model is shared by conversations.
        usage = Usage(requests=1, input_tokens=answer.tokens, output_tokens=9, total_tokens=answer.tokens + 9)
        one = ScriptedModel([output or [assistant_message(answer.text, item_id=f"msg_{abs(hash(answer.text))}")]])
        one.set_default_usage(usage)
        return await one.get_response(system_instructions, input, *args, **kwargs)


class OpenAIAgents(Conversation):
    """The filter of model input, and the usual loop of `to_input_list()`."""

    def __init__(self, name: str, world: World, shared: Any) -> None:
        super().__init__(name, world, shared)
        self.history: list[Any] = []

    @classmethod
    def build(cls, world: World) -> Any:
        @function_tool(name_override=TOOL, description_override=DESCRIPTION)
        async def look(ticket: str, depot: int) -> str:
            return await world.alook_up(ticket, depot)

        agent = Agent(name="Auditor", instructions=INSTRUCTIONS, tools=[look], model=HardAgentsModel(world))
        return agent, RunConfig(call_model_input_filter=compaction_filter(world.manager), tracing_disabled=True)

    async def say(self, text: str, attached: bytes = b"") -> None:
        image = {"type": "input_image", "image_url": data_uri(attached), "detail": "auto"}
        content: Any = [{"type": "input_text", "text": text}, image] if attached else text
        self.history.append({"role": "user", "content": content})
        await self.retry()

    async def retry(self) -> None:
        """What the cancelled run had done is lost: only its result has its items."""
        agent, config = self.agent
        self.history = (await Runner.run(agent, list(self.history), run_config=config)).to_input_list()

    async def edit(self, changes: Mapping[str, str]) -> None:
        self.history = [edited(item, changes) for item in self.history]


# -- pydantic-ai -----------------------------------------------------------------------------------------------------


class PydanticAI(Conversation):
    """The capability; the caller keeps the history."""

    def __init__(self, name: str, world: World, shared: Any) -> None:
        super().__init__(name, world, shared)
        self.history: list[ModelMessage] = []
        self.prompt: Any = None

    @classmethod
    def build(cls, world: World) -> Any:
        async def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
            tools = pydantic_schemas(info.model_request_parameters)
            given = await world.provider.aask(
                messages, PydanticAIDialect(), tools=tools, instructions=info.instructions or ""
            )
            calls = [ToolCallPart(call.name, call.arguments, call.call_id) for call in given.calls]
            usage = RequestUsage(input_tokens=given.tokens, output_tokens=5)
            return ModelResponse(calls or [TextPart(given.text)], usage=usage)

        agent = PydanticAgent(
            FunctionModel(answer), instructions=INSTRUCTIONS, capabilities=[CompactionCapability(world.manager)]
        )

        @agent.tool_plain(name=TOOL, description=DESCRIPTION)
        async def look(ticket: str, depot: int) -> str:  # pyright: ignore[reportUnusedFunction]
            return await world.alook_up(ticket, depot)

        return agent

    async def say(self, text: str, attached: bytes = b"") -> None:
        self.prompt = [text, BinaryContent(attached, media_type="image/png")] if attached else text
        await self.retry()

    async def retry(self) -> None:
        """What the cancelled run had done is lost: only its result has its messages."""
        options: Any = {"message_history": self.history} if self.history else {}
        self.history = (await self.agent.run(self.prompt, conversation_id=self.name, **options)).all_messages()

    async def edit(self, changes: Mapping[str, str]) -> None:
        self.history = [edited(message, changes) for message in self.history]


# -- Google ADK ------------------------------------------------------------------------------------------------------


class HardLlm(BaseLlm):
    """A model of ADK's."""

    world: Any
    model: str = "gpt-4o"

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        answer = await self.world.provider.aask(
            llm_request.contents,
            "gemini",
            tools=adk_schemas(llm_request),
            instructions=instruction_text(llm_request.config.system_instruction),
        )
        calls = [types.Part.from_function_call(name=call.name, args=call.arguments) for call in answer.calls]
        content = types.Content(role="model", parts=calls or [types.Part(text=answer.text)])
        usage = types.GenerateContentResponseUsageMetadata(prompt_token_count=answer.tokens)
        yield LlmResponse(content=content, usage_metadata=usage)


class GoogleADK(Conversation):
    """The plugin of an app; sessions in memory."""

    @classmethod
    def build(cls, world: World) -> Any:
        async def look_up_depot(ticket: str, depot: int) -> str:
            """The stock list of one depot."""
            return await world.alook_up(ticket, depot)

        agent = LlmAgent(name="auditor", model=HardLlm(world=world), instruction=INSTRUCTIONS, tools=[look_up_depot])
        app = App(name="audit", root_agent=agent, plugins=[AdkCompactionPlugin(world.manager)])
        return AdkRunner(app=app, session_service=InMemorySessionService())

    async def say(self, text: str, attached: bytes = b"") -> None:
        where = {"app_name": "audit", "user_id": "u", "session_id": self.name}
        if not await self.agent.session_service.get_session(**where):
            await self.agent.session_service.create_session(**where)
        image = [types.Part.from_bytes(data=attached, mime_type="image/png")] if attached else []
        message = types.Content(role="user", parts=[types.Part(text=text), *image])
        async for _ in self.agent.run_async(user_id="u", session_id=self.name, new_message=message):
            pass

    async def retry(self) -> None:
        await self.say(f"Go on with {self.name}.")

    async def edit(self, changes: Mapping[str, str]) -> None:
        # ADK has no call for it: whoever edits the past does so in the store of the sessions.
        session = self.agent.session_service.sessions["audit"]["u"][self.name]
        session.events[:] = [edited(event, changes) for event in session.events]


# -- Microsoft Agent Framework ---------------------------------------------------------------------------------------


class HardClient(FunctionInvocationLayer, ChatMiddlewareLayer, BaseChatClient):
    """A client of the framework's."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self.world = world

    async def _inner_get_response(
        self, *, messages: Sequence[FrameworkMessage], stream: bool, options: Any, **kwargs: Any
    ) -> Any:
        items = [message_data(message) for message in messages]
        answer = await self.world.provider.aask(
            [{key: item[key] for key in ("role", "contents")} for item in items],
            FRAMEWORK_DIALECT,
            tools=framework_schemas(options.get("tools")),
            instructions=instruction_text(options.get("instructions")),
        )
        contents = [
            Content.from_function_call(call.call_id, call.name, arguments=call.arguments_json) for call in answer.calls
        ]
        message = FrameworkMessage("assistant", contents or [Content.from_text(answer.text)])
        usage: Any = {"input_token_count": answer.tokens, "output_token_count": 5}
        return ChatResponse(messages=[message], usage_details=usage)


class AgentFramework(Conversation):
    """The context provider; a session for each conversation."""

    def __init__(self, name: str, world: World, shared: Any) -> None:
        super().__init__(name, world, shared)
        self.session = AgentSession(session_id=name)
        self.message: Any = None

    @classmethod
    def build(cls, world: World) -> Any:
        @framework_tool(name=TOOL, description=DESCRIPTION, approval_mode="never_require")
        async def look(ticket: str, depot: int) -> str:
            return await world.alook_up(ticket, depot)

        return FrameworkAgent(
            HardClient(world),
            instructions=INSTRUCTIONS,
            tools=[look],
            context_providers=[CompactProvider(world.manager)],
        )

    async def say(self, text: str, attached: bytes = b"") -> None:
        image = [Content.from_data(attached, "image/png")] if attached else []
        self.message = FrameworkMessage("user", [Content.from_text(text), *image])
        await self.retry()

    async def retry(self) -> None:
        """A session has the messages of runs that ended, so the question is asked again."""
        await self.agent.run(self.message, session=self.session)

    async def edit(self, changes: Mapping[str, str]) -> None:
        kept = self.session.state["in_memory"]["messages"]
        kept[:] = [FrameworkMessage.from_dict(edited(message.to_dict(), changes)) for message in kept]


# -- Strands ---------------------------------------------------------------------------------------------------------


class HardStrandsModel(StrandsModel):
    """A model of Strands'."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.config: dict[str, Any] = {}

    def update_config(self, **model_config: Any) -> None:
        self.config.update(model_config)

    def get_config(self) -> Any:
        return self.config

    def structured_output(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    async def stream(
        self, messages: Any, tool_specs: Any = None, system_prompt: Any = None, **kwargs: Any
    ) -> AsyncIterator[Any]:
        answer = await self.world.provider.aask(
            messages, StrandsDialect(), tools=strands_schemas(tool_specs or ()), instructions=system_prompt or ""
        )
        yield {"messageStart": {"role": "assistant"}}
        for call in answer.calls:
            yield {"contentBlockStart": {"start": {"toolUse": {"name": call.name, "toolUseId": call.call_id}}}}
            yield {"contentBlockDelta": {"delta": {"toolUse": {"input": call.arguments_json}}}}
            yield {"contentBlockStop": {}}
        if not answer.calls:
            yield {"contentBlockStart": {"start": {}}}
            yield {"contentBlockDelta": {"delta": {"text": answer.text}}}
            yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "tool_use" if answer.calls else "end_turn"}}
        usage = {"inputTokens": answer.tokens, "outputTokens": 5, "totalTokens": answer.tokens + 5}
        yield {"metadata": {"usage": usage, "metrics": {"latencyMs": 1}}}


class Strands(Conversation):
    """The plugin. An agent of Strands' is one conversation: only the model and the manager are shared."""

    def __init__(self, name: str, world: World, shared: Any) -> None:
        @strands_tool(name=TOOL, description=DESCRIPTION)
        async def look(ticket: str, depot: int) -> str:
            return await world.alook_up(ticket, depot)

        plugin = StrandsCompactionPlugin(world.manager)
        agent = StrandsAgent(shared, system_prompt=INSTRUCTIONS, tools=[look], plugins=[plugin], callback_handler=None)
        super().__init__(name, world, agent)

    @classmethod
    def build(cls, world: World) -> Any:
        return HardStrandsModel(world)

    async def say(self, text: str, attached: bytes = b"") -> None:
        image = [{"image": {"format": "png", "source": {"bytes": attached}}}] if attached else []
        await self.agent.invoke_async([{"text": text}, *image])

    async def retry(self) -> None:
        """Without a prompt an agent goes on where it was: a tool that did not end is called again."""
        await self.agent.invoke_async()

    async def edit(self, changes: Mapping[str, str]) -> None:
        self.agent.messages[:] = [edited(message, changes) for message in self.agent.messages]


FRAMEWORKS: dict[str, type[Conversation]] = {
    "langchain": LangChain,
    "langgraph": LangGraph,
    "openai_agents": OpenAIAgents,
    "pydantic_ai": PydanticAI,
    "google_adk": GoogleADK,
    "agent_framework": AgentFramework,
    "strands": Strands,
}
