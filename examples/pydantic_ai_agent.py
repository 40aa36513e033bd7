"""A pydantic-ai agent that reads forty reports through a window of 8,000 tokens.

It runs offline: a function stands for the model. Name your own in its place and nothing else changes.

    pip install "compact-context[pydantic-ai]"
    python pydantic_ai_agent.py
"""

import asyncio

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from compact import CompactConfig, CompactManager
from compact.adapters.pydantic_ai import CompactionCapability, protected

RULE = "Never quote station 12: its sensor is broken."
requests: list[str] = []


def script(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Ask for one report after the other, and remember what was sent."""
    requests.append("\n".join(str(message.parts) for message in messages))
    number = len(requests)
    call = ToolCallPart("read_report", {"number": number})
    return ModelResponse([call if number <= 40 else TextPart("All reports are read.")])


def read_report(number: int) -> str:
    """Read one report."""
    return f"Report {number}: " + f"station {number} measured {number * 37} units and found nothing odd. " * 40


manager = CompactManager(CompactConfig(model="gpt-4o", max_context_tokens=8_000))
agent = Agent(
    FunctionModel(script),
    tools=[read_report],
    instructions="Read every report.",
    capabilities=[CompactionCapability(manager)],
)


async def main() -> None:
    result = await agent.run([protected(RULE), "Read the reports 1 to 40."], conversation_id="reports")
    print(result.output)
    print(f"messages in the history: {len(result.all_messages())}")


asyncio.run(main())
print(f"largest request: {max(map(len, requests)):,} characters")
print(f"compactions: {len(manager.plans('reports'))}")
print(f"the rule was in every request: {all(RULE in request for request in requests)}")
print(f"read again, long after it left: {'measured 37 units' in str(manager.recall('reports', 'station 1'))}")
manager.close()
