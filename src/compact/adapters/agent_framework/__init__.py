"""Microsoft Agent Framework: a context provider for agents, a strategy where one is asked for, executors for workflows.

from agent_framework import Agent
from compact import CompactConfig, CompactManager
from compact.adapters.agent_framework import CompactProvider

manager = CompactManager(CompactConfig(model="gpt-4o"))
agent = Agent(client, context_providers=[CompactProvider(manager)])
"""

from compact.adapters.agent_framework_messages import AgentFrameworkDialect, protected
from compact.adapters.agent_framework_provider import SUPPORTED_VERSIONS, CompactProvider, recall_tool
from compact.adapters.agent_framework_strategy import CompactStrategy
from compact.adapters.agent_framework_workflows import (
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
