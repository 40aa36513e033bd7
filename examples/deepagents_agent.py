"""A deep agent whose helper reads thirty reports, each of the two in a window of 8,000 tokens of its own.

It runs offline: a script stands for the model. Name your own in its place and nothing else changes.

    pip install "compact-context[langchain]" deepagents
    python deepagents_agent.py
"""

from typing import Any

from deepagents import create_deep_agent
from langchain.tools import tool
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.checkpoint.memory import InMemorySaver

from compact import CompactConfig, CompactManager
from compact.adapters.langchain import DEEPAGENTS_SLOT, LangChainCompactionMiddleware

TASK = "Read the reports 1 to 30 and say what is odd."
requests: dict[str, list[int]] = {"main": [], "helper": []}


class Script(BaseChatModel):
    """Hands the work to a helper; as the helper, asks for one report after the other."""

    @property
    def _llm_type(self) -> str:
        return "script"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        who = "helper" if any(message.content == TASK for message in messages) else "main"
        requests[who].append(sum(len(str(message.content)) for message in messages))
        number = len(requests[who])
        answer = AIMessage("Nothing is odd.")
        if who == "main" and number == 1:
            answer = _call("task", description=TASK, subagent_type="general-purpose")
        if who == "helper" and number <= 30:
            answer = _call("read_report", number=number)
        return ChatResult(generations=[ChatGeneration(message=answer)])


def _call(name: str, **arguments: Any) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": f"{name}-{len(requests['helper'])}"}])


@tool
def read_report(number: int) -> str:
    """Read one report."""
    return f"Report {number}: " + f"station {number} measured {number * 37} units and found nothing odd. " * 40


manager = CompactManager(CompactConfig(model="gpt-4o", max_context_tokens=8_000))
agent = create_deep_agent(
    Script(),
    [read_report],
    # In the place of the built-in summariser, for the agent and for its general-purpose helper.
    middleware=[LangChainCompactionMiddleware(manager, name=DEEPAGENTS_SLOT)],
    checkpointer=InMemorySaver(),
)
state = agent.invoke(
    {"messages": [HumanMessage("Have the reports read.")]},
    {"configurable": {"thread_id": "reports"}, "recursion_limit": 200},
)

print(state["messages"][-1].content)
for who, sizes in requests.items():
    print(f"{who}: {len(sizes)} requests, the largest of {max(sizes):,} characters")
for session in sorted(manager.sessions(), key=lambda info: len(info.session_id)):
    messages, plans = manager.history(session.session_id), manager.plans(session.session_id)
    print(f"{session.session_id.split(':')[0]}: {len(messages)} messages in the log, {len(plans)} compactions")
manager.close()
