"""LangGraph's prebuilt agent, which has no middleware, with a hook before each model call.

It runs offline: a script stands for the model. Name your own in its place and nothing else changes.

    pip install "compact-context[langchain]"
    python langgraph_agent.py
"""

from typing import Any

from langchain.tools import tool
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.prebuilt import create_react_agent

from compact import CompactConfig, CompactManager
from compact.adapters.langchain import compaction_hook, protected, recall_tool

RULE = "Never quote station 12: its sensor is broken."
PROMPT = "Read every report."
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
tools = [read_report, recall_tool(manager)]
hook = compaction_hook(manager, tools=tools, instructions=PROMPT)
agent = create_react_agent(Script(), tools, prompt=PROMPT, pre_model_hook=hook)
state = agent.invoke(
    {"messages": [protected(HumanMessage(RULE)), HumanMessage("Read the reports 1 to 40.")]},
    {"configurable": {"thread_id": "reports"}, "recursion_limit": 200},
)

print(state["messages"][-1].content)
print(f"messages in the state: {len(state['messages'])}")
print(f"compactions: {len(manager.plans('reports'))}")
print(f"the rule was in every request: {all(RULE in request for request in requests)}")
manager.close()
