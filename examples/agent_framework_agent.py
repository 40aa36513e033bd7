"""A Microsoft Agent Framework agent that reads forty reports through a window of 8,000 tokens; then a workflow does.

It runs offline: a script stands for the chat client. Put your own client in its place, and nothing else changes.

    pip install "compact-context[agent-framework]"
    python agent_framework_agent.py
"""

import asyncio
from collections.abc import Sequence
from typing import Any

from agent_framework import (
    Agent,
    AgentSession,
    BaseChatClient,
    ChatMiddlewareLayer,
    ChatResponse,
    Content,
    FunctionInvocationLayer,
    Message,
    WorkflowBuilder,
    tool,
)

from compact import CompactConfig, CompactManager
from compact.adapters.agent_framework import AgentTurnExecutor, CompactionExecutor, CompactProvider, protected

RULE = "Never quote station 12: its sensor is broken."


class Script(FunctionInvocationLayer, ChatMiddlewareLayer, BaseChatClient):
    """Asks for one report after the other, and remembers how large each request was."""

    def __init__(self) -> None:
        super().__init__()
        self.requests: list[str] = []

    async def _inner_get_response(self, *, messages: Sequence[Message], **kwargs: Any) -> ChatResponse:
        said = [one.text or one.result or str(one.arguments) for message in messages for one in message.contents]
        self.requests.append("\n".join(said))
        number = len(self.requests)
        answer = Content.from_text("All reports are read.")
        if number <= 40:
            answer = Content.from_function_call(f"c{number}", "read_report", arguments={"number": number})
        return ChatResponse(messages=[Message("assistant", [answer])])


@tool(approval_mode="never_require")
def read_report(number: int) -> str:
    """Read one report."""
    return f"Report {number}: " + f"station {number} measured {number * 37} units and found nothing odd. " * 40


manager = CompactManager(CompactConfig(model="gpt-4o", max_context_tokens=8_000))
task = [protected(Message("user", [RULE])), Message("user", ["Read the reports 1 to 40."])]


def build(session_id: str) -> tuple[Script, Agent]:
    client = Script()
    client.function_invocation_configuration["max_iterations"] = 50
    provider = CompactProvider(manager, session_id=session_id)
    agent = Agent(client, instructions="Read every report.", tools=[read_report], context_providers=[provider])
    return client, agent


def show(session_id: str, client: Script) -> None:
    print(f"largest request: {max(map(len, client.requests)):,} characters")
    print(f"compactions: {len(manager.plans(session_id))}")
    print(f"the rule was in every request: {all(RULE in request for request in client.requests)}")


async def main() -> None:
    client, agent = build("reports")
    session = AgentSession()
    print(await agent.run(task, session=session))
    print(f"messages in the session: {len(session.state['in_memory']['messages'])}")
    show("reports", client)

    client, agent = build("workflow")
    compaction, turn = CompactionExecutor(manager, session_id="workflow"), AgentTurnExecutor(agent, manager)
    workflow = WorkflowBuilder(start_executor=compaction, output_from=[turn]).add_edge(compaction, turn).build()
    (answer,) = (await workflow.run(task)).get_outputs()
    print(f"messages out of the workflow: {len(answer.full_conversation)}")
    show("workflow", client)


asyncio.run(main())
manager.close()
