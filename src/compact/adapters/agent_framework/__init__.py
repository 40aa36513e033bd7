"""Microsoft Agent Framework: a context provider for agents, a strategy where one is asked for, executors for workflows.

    from agent_framework import Agent
    from compact import CompactConfig, CompactManager
    from compact.adapters.agent_framework import CompactProvider, protected

    manager = CompactManager(CompactConfig(model="gpt-4o"))
    agent = Agent(client, tools=tools, context_providers=[CompactProvider(manager)])

The hook is `ContextProvider.before_run`, which adds a chat middleware to each run; sessions stay whole. Where only a
strategy is taken, `CompactStrategy(manager)` is one: `Agent(client, compaction_strategy=…)`. A message is protected by
`protected(message)`, which tags it: `additional_properties={"compact": {"protected": True}}`.

provider     the context provider, its chat middleware, the recall tool
strategy     compaction in the shape of the framework's own strategies
workflows    executors: one checks a conversation and makes the plan, another runs an agent on it
requests     what is read from a request: messages, tools, usage
messages     the framework's messages as plain data, and as a dialect
"""

from compact.adapters.support import needs_package

SUPPORTED_VERSIONS = ">=1.20,<2"
with needs_package("agent-framework-core", SUPPORTED_VERSIONS, extra="agent-framework"):
    from compact.adapters.agent_framework.messages import AgentFrameworkDialect, protected
    from compact.adapters.agent_framework.provider import CompactProvider, recall_tool
    from compact.adapters.agent_framework.strategy import CompactStrategy
    from compact.adapters.agent_framework.workflows import (
        HARNESS_COMPACTION_METRICS_KEY,
        HARNESS_COMPACTION_PLAN_KEY,
        AgentTurnExecutor,
        CompactionComplete,
        CompactionExecutor,
        render_plan,
    )

__all__ = [
    "HARNESS_COMPACTION_METRICS_KEY",
    "HARNESS_COMPACTION_PLAN_KEY",
    "SUPPORTED_VERSIONS",
    "AgentFrameworkDialect",
    "AgentTurnExecutor",
    "CompactProvider",
    "CompactStrategy",
    "CompactionComplete",
    "CompactionExecutor",
    "protected",
    "recall_tool",
    "render_plan",
]
