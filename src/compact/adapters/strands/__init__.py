"""Strands Agents: a plugin that compacts each request, and leaves `agent.messages` whole.

    from strands import Agent
    from compact import CompactConfig, CompactManager
    from compact.adapters.strands import StrandsCompactionPlugin

    manager = CompactManager(CompactConfig(model="claude-sonnet-4-5"))
    agent = Agent(plugins=[StrandsCompactionPlugin(manager)])

The hook is a middleware of the stage `InvokeModelStage.Input`. A message is protected by `metadata`: `{"role": "user",
"content": […], "metadata": {"custom": {"protected": True}}}`, or by Strands' own pin. Strands removes metadata before a
request leaves.

plugin      the plugin, the conversation manager that leaves the history whole, the recall tool
messages    Strands' messages, which are those of Bedrock's Converse, as a dialect
"""

from typing import Any

from compact.adapters.support import needs_package, renamed

SUPPORTED_VERSIONS = ">=1.60,<2"
with needs_package("strands-agents", SUPPORTED_VERSIONS, extra="strands"):
    from compact.adapters.strands.messages import StrandsDialect
    from compact.adapters.strands.plugin import StrandsCompactionPlugin, recall_tool

__all__ = ["SUPPORTED_VERSIONS", "StrandsCompactionPlugin", "StrandsDialect", "recall_tool"]


def __getattr__(name: str) -> Any:
    return renamed(__name__, name, {"CompactionPlugin": StrandsCompactionPlugin})
