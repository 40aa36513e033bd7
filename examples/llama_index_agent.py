"""An agent of LlamaIndex that reads forty reports through a window of 8,000 tokens.

It runs offline: a script stands for the model. Wrap your own in its place and nothing else changes.

    pip install "compact-context[llama-index]"
    python llama_index_agent.py
"""

import asyncio
from typing import Any

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ToolCallBlock
from llama_index.core.llms import ChatMessage
from llama_index.core.llms.mock import MockFunctionCallingLLM
from llama_index.core.memory import ChatMemoryBuffer

import compact
from compact import CompactConfig, CompactManager
from compact.adapters.llama_index import protected, recall_tool

RULE = "Never quote station 12: its sensor is broken."
requests: list[str] = []


def answer(messages: Any, **options: Any) -> ChatMessage:
    """Ask for one report after the other, and remember what was sent."""
    requests.append("\n".join(str(message.content) for message in messages))
    number = len(requests)
    if number > 40:
        return ChatMessage(role="assistant", content="All reports are read.")
    call = ToolCallBlock(tool_call_id=f"c{number}", tool_name="read_report", tool_kwargs={"number": number})
    return ChatMessage(role="assistant", blocks=[call])


def read_report(number: int) -> str:
    """Read one report."""
    return f"Report {number}: " + f"station {number} measured {number * 37} units and found nothing odd. " * 40


manager = CompactManager(CompactConfig(model="gpt-4o", max_context_tokens=8_000))
llm = compact.wrap(MockFunctionCallingLLM(response_generator=answer), manager, session_id="reports")
agent = FunctionAgent(llm=llm, tools=[read_report, recall_tool(manager, "reports")], streaming=False)
memory = ChatMemoryBuffer.from_defaults(token_limit=10**9)  # cuts nothing
memory.put(protected(ChatMessage(RULE)))


async def main() -> Any:
    """Run the agent."""
    return await agent.run("Read the reports 1 to 40.", memory=memory, max_iterations=50)


print(asyncio.run(main()))
print(f"messages in the memory: {len(memory.get_all())}")
print(f"compactions: {len(manager.plans('reports'))}")
print(f"the rule was in every request: {all(RULE in request for request in requests)}")
print(f"read again, long after it left: {'measured 37 units' in str(manager.recall('reports', 'station 1'))}")
manager.close()
