"""A LangChain agent that reads forty reports through a window of 8,000 tokens.

It runs offline: a script stands for the model. Name your own in its place and nothing else changes.

    pip install "compact-context[langchain]"
    python langchain_agent.py
"""

from typing import Any

from langchain.agents import create_agent
from langchain.tools import tool
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.checkpoint.memory import InMemorySaver

from compact import CompactConfig, CompactManager
from compact.adapters.langchain import LangChainCompactionMiddleware, protected

RULE = "Never quote station 12: its sensor is broken."
requests: list[str] = []


class Script(BaseChatModel):
    """Asks for one report after the other, and remembers what it was sent."""

    @property
    def _llm_type(self) -> str:
        return "script"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        requests.append("\n".join(str(message.content) for message in messages))
        number = len(requests)
        call = {"name": "read_report", "args": {"number": number}, "id": f"c{number}"}
        answer = AIMessage("", tool_calls=[call]) if number <= 40 else AIMessage("All reports are read.")
        return ChatResult(generations=[ChatGeneration(message=answer)])


@tool
def read_report(number: int) -> str:
    """Read one report."""
    return f"Report {number}: " + f"station {number} measured {number * 37} units and found nothing odd. " * 40


manager = CompactManager(CompactConfig(model="gpt-4o", max_context_tokens=8_000))
agent = create_agent(
    Script(),
    [read_report],
    system_prompt="Read every report.",
    middleware=[LangChainCompactionMiddleware(manager)],
    checkpointer=InMemorySaver(),
)
state = agent.invoke(
    {"messages": [protected(HumanMessage(RULE)), HumanMessage("Read the reports 1 to 40.")]},
    {"configurable": {"thread_id": "reports"}, "recursion_limit": 100},
)

print(state["messages"][-1].content)
print(f"messages in the state: {len(state['messages'])}")
print(f"largest request: {max(map(len, requests)):,} characters")
print(f"compactions: {len(manager.plans('reports'))}")
print(f"the rule was in every request: {all(RULE in request for request in requests)}")
print(f"read again, long after it left: {'measured 37 units' in str(manager.recall('reports', 'station 1'))}")
manager.close()
