"""The agent of the scenario on Microsoft Agent Framework, and its fake client."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

from agent_framework import (
    Agent,
    AgentSession,
    BaseChatClient,
    ChatMiddlewareLayer,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    FunctionInvocationLayer,
    Message,
    ResponseStream,
    tool,
)

from adapters.adapter_checks import CACHED_TOKENS
from adapters.scenario import Call, Scenario, Step, Watch, look_up
from compact.adapters.agent_framework import (
    protected,
)
from compact.adapters.agent_framework.messages import message_data
from compact.adapters.agent_framework.requests import DIALECT, tool_schemas
from compact.adapters.support import instruction_text


class FakeClient(FunctionInvocationLayer, ChatMiddlewareLayer, BaseChatClient):
    """Answers by the script, and rejects what a provider would reject."""

    def __init__(self, watch: Watch) -> None:
        super().__init__()
        self.watch = watch
        self.function_invocation_configuration["max_iterations"] = 100

    def _inner_get_response(self, *, messages: Sequence[Message], stream: bool, options: Any, **kwargs: Any) -> Any:
        items = [message_data(message) for message in messages]
        bare = [{key: item[key] for key in ("role", "contents")} for item in items]

        def answer() -> ChatResponse:
            tools, instructions = tool_schemas(options.get("tools")), instruction_text(options.get("instructions"))
            step = self.watch.ask(bare, DIALECT, tools=tools, instructions=instructions)
            tokens = self.watch.tokens[-1]
            usage: Any = {
                "input_token_count": tokens,
                "output_token_count": 5,
                "total_token_count": tokens + 5,
                "cache_read_input_token_count": CACHED_TOKENS,
            }
            return ChatResponse(messages=[Message("assistant", [content_of(step)])], usage_details=usage)

        if not stream:
            return self._answered(answer)

        async def updates() -> AsyncIterator[ChatResponseUpdate]:
            response = answer()
            yield ChatResponseUpdate(contents=response.messages[0].contents, role="assistant")
            yield ChatResponseUpdate(contents=[Content.from_usage(response.usage_details)], role="assistant")

        return ResponseStream(updates(), finalizer=ChatResponse.from_updates)

    async def _answered(self, answer: Any) -> ChatResponse:
        return answer()


def content_of(step: Step) -> Content:
    """A step as the model's answer."""
    if isinstance(step, Call):
        return Content.from_function_call(step.call_id, step.name, arguments=step.arguments_json)
    return Content.from_text(step.text)


@tool(approval_mode="never_require")
def look_up_depot(depot: int) -> str:
    """The stock list of one depot."""
    return look_up(depot)


def build(watch: Watch, **settings: Any) -> Agent:
    """The agent of the scenario."""
    tools = [look_up_depot, *settings.pop("tools", [])]
    return Agent(FakeClient(watch), instructions=watch.scenario.instructions, name="auditor", tools=tools, **settings)


def inputs(scenario: Scenario) -> list[Any]:
    """What the user says, turn by turn; the first turn begins with the protected message."""
    first, *others = scenario.prompts
    return [[protected(Message("user", [scenario.protected])), Message("user", [first])], *others]


def stored(session: AgentSession) -> list[Message]:
    """The history as the framework keeps it."""
    return session.state["in_memory"]["messages"]


def texts(messages: Sequence[Message]) -> list[str]:
    """All that is said in a history."""
    return [one.text or one.result or "" for message in messages for one in message.contents]


async def run(agent: Agent, session: AgentSession, turns: Sequence[Any], *, stream: bool = False) -> None:
    """The whole conversation."""
    for turn in turns:
        if not stream:
            await agent.run(turn, session=session)
            continue
        async for _ in agent.run(turn, session=session, stream=True):
            pass


def tool_history() -> list[Message]:
    """One request and fourteen lookups: more than the window holds."""
    messages = [Message("user", ["start"])]
    for depot in range(1, 15):
        call = Content.from_function_call(f"c{depot}", "look_up_depot", arguments={"depot": depot})
        result = Content.from_function_result(f"c{depot}", result=look_up(depot))
        messages += [Message("assistant", [call]), Message("tool", [result])]
    return messages


def explode(*args: Any, **kwargs: Any) -> Any:
    """A manager that is broken."""
    raise RuntimeError("broken")
