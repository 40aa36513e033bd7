"""An agent of smolagents that reads forty reports through a window of 8,000 tokens.

It runs offline: a script stands for the model. Wrap your own in its place and nothing else changes.

    pip install "compact-context[smolagents]"
    python smolagents_agent.py
"""

from typing import Any

from smolagents import ChatMessage, LogLevel, MessageRole, Model, ToolCallingAgent, tool
from smolagents.models import ChatMessageToolCall, ChatMessageToolCallFunction

import compact
from compact import CompactConfig, CompactManager
from compact.adapters.smolagents import recall_tool

RULE = "Never quote station 12: its sensor is broken."
requests: list[str] = []


class Script(Model):
    """Asks for one report after the other, and remembers what it was sent."""

    def generate(self, messages: Any, **options: Any) -> ChatMessage:
        requests.append(str([message.content for message in messages]))
        number = len(requests)
        name, arguments = ("read_report", {"number": number}) if number <= 40 else ("final_answer", {"answer": "Done."})
        call = ChatMessageToolCall(ChatMessageToolCallFunction(arguments, name), f"c{number}", "function")
        return ChatMessage(MessageRole.ASSISTANT, tool_calls=[call])


@tool
def read_report(number: int) -> str:
    """Read one report.

    Args:
        number: Its number.
    """
    return f"Report {number}: " + f"station {number} measured {number * 37} units and found nothing odd. " * 40


manager = CompactManager(CompactConfig(model="gpt-4o", max_context_tokens=8_000))
agent = ToolCallingAgent(
    tools=[read_report, recall_tool(manager, "reports")],
    model=compact.wrap(Script(), manager, session_id="reports"),
    instructions=RULE,
    max_steps=50,
    verbosity_level=LogLevel.OFF,
)

print(agent.run("Read the reports 1 to 40."))
print(f"steps in the memory: {len(agent.memory.steps)}")
print(f"compactions: {len(manager.plans('reports'))}")
print(f"the rule was in every request: {all(RULE in request for request in requests)}")
print(f"read again, long after it left: {'measured 37 units' in str(manager.recall('reports', 'station 1'))}")
manager.close()
