"""LangChain, LangGraph and deepagents: a middleware that compacts each request, and leaves the graph's state whole.

    from langchain.agents import create_agent
    from compact import CompactConfig, CompactManager
    from compact.adapters.langchain import LangChainCompactionMiddleware

    manager = CompactManager(CompactConfig(model="gpt-4o"))
    agent = create_agent("openai:gpt-4o", tools, middleware=[LangChainCompactionMiddleware(manager)])

Graphs without middleware (`create_react_agent`, nodes of one's own) have `compaction_hook(manager)` in its place.

The hook is `AgentMiddleware.wrap_model_call` and `awrap_model_call`. A message is protected by `protected(message)`,
which marks it: `additional_kwargs={"compact": {"protected": True}}`. The mark is removed before a request leaves.

middleware    the middleware, the session of a run, the recall tool, the schemas that are counted
graph_hook    the hook for LangGraph's prebuilt agent and for nodes of one's own
messages      LangChain's message objects as a dialect, and the mark that protects one
called_model  the name of the model that a request goes to, and the tokens that it asks for its answer
"""

from typing import Any

from compact.adapters.support import needs_package, renamed

SUPPORTED_VERSIONS = {"langchain": ">=1.3,<2", "langgraph": ">=1.2,<2", "deepagents": ">=0.7"}
with needs_package("langchain", SUPPORTED_VERSIONS["langchain"], extra="langchain"):
    from compact.adapters.langchain.graph_hook import compaction_hook
    from compact.adapters.langchain.messages import LangChainDialect, protected
    from compact.adapters.langchain.middleware import (
        DEEPAGENTS_SLOT,
        LangChainCompactionMiddleware,
        recall_tool,
        session_of,
    )

__all__ = [
    "DEEPAGENTS_SLOT",
    "SUPPORTED_VERSIONS",
    "LangChainCompactionMiddleware",
    "LangChainDialect",
    "compaction_hook",
    "protected",
    "recall_tool",
    "session_of",
]


def __getattr__(name: str) -> Any:
    return renamed(__name__, name, {"CompactionMiddleware": LangChainCompactionMiddleware})
