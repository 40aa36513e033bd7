"""OpenAI Agents SDK: a filter for the input of each model call, hooks for usage, the recall tool, and a session.

    from agents import Agent, RunConfig, Runner
    from compact import CompactConfig, CompactManager
    from compact.adapters.openai_agents import CompactionHooks, compaction_filter, recall_tool

    manager = CompactManager(CompactConfig(model="gpt-4o"))
    agent = Agent(name="Clerk", tools=[recall_tool(manager)])
    config = RunConfig(call_model_input_filter=compaction_filter(manager, session_id="chat-1"))
    result = await Runner.run(agent, "…", run_config=config, hooks=CompactionHooks(manager))

The hook is `RunConfig.call_model_input_filter`. Only requests are compacted: sessions and `result.to_input_list()` keep
the whole history. An input item is protected by `"meta": {"protected": True}`, which never reaches the provider.

filter     the filter, the hooks that take in usage, and the recall tool
models     models that retry once what the provider refuses as too long, and take in usage in every run
schemas    the schemas of tools, handoffs and structured output, as they are counted
session    `CompactSession`, the SDK's session protocol on a manager's store
"""

from compact.adapters.support import needs_package

SUPPORTED_VERSIONS = ">=0.24,<1"
with needs_package("openai-agents", SUPPORTED_VERSIONS, extra="openai-agents"):
    from compact.adapters.openai_agents.filter import CompactionHooks, compaction_filter, recall_tool
    from compact.adapters.openai_agents.models import CompactionModel, CompactionModelProvider
    from compact.adapters.openai_agents.session import CompactSession

__all__ = [
    "SUPPORTED_VERSIONS",
    "CompactSession",
    "CompactionHooks",
    "CompactionModel",
    "CompactionModelProvider",
    "compaction_filter",
    "recall_tool",
]
