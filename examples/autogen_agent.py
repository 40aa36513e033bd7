"""An AutoGen agent that reads forty reports through a window of 8,000 tokens.

It runs offline: a script stands for the model. Wrap your own client in its place and nothing else changes.

    pip install "compact-context[autogen]" autogen-agentchat autogen-ext
    python autogen_agent.py
"""

import asyncio
import json

from autogen_agentchat.agents import AssistantAgent
from autogen_core import FunctionCall
from autogen_core.models import CreateResult, ModelInfo, RequestUsage
from autogen_ext.models.replay import ReplayChatCompletionClient

import compact
from compact import CompactConfig, CompactManager
from compact.adapters.autogen import recall_tool


def call(number: int) -> CreateResult:
    """What the model answers: it asks for one report after the other."""
    calls = [FunctionCall(id=f"c{number}", name="read_report", arguments=json.dumps({"number": number}))]
    return CreateResult(finish_reason="function_calls", content=calls, usage=RequestUsage(0, 0), cached=False)


def read_report(number: int) -> str:
    """Read one report."""
    return f"Report {number}: " + f"station {number} measured {number * 37} units and found nothing odd. " * 40


info = ModelInfo(vision=False, function_calling=True, json_output=False, family="unknown", structured_output=False)
script = ReplayChatCompletionClient([*map(call, range(1, 41)), "All reports are read."], model_info=info)
manager = CompactManager(CompactConfig(model="gpt-4o", max_context_tokens=8_000))
agent = AssistantAgent(
    "reader",
    compact.wrap(script, manager, session_id="reports"),
    tools=[read_report, recall_tool(manager, "reports")],
    system_message="Read every report.",
    max_tool_iterations=50,
)
result = asyncio.run(agent.run(task="Read the reports 1 to 40."))

print(result.messages[-1].content)  # type: ignore[union-attr]
print(f"messages in the model context: {len(asyncio.run(agent.model_context.get_messages()))}")
print(f"compactions: {len(manager.plans('reports'))}")
print(f"read again, long after it left: {'measured 37 units' in str(manager.recall('reports', 'station 1'))}")
manager.close()
