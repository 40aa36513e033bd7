"""pydantic-ai: a capability that compacts each request, and leaves the message history whole.

    from pydantic_ai import Agent
    from compact import CompactConfig, CompactManager
    from compact.adapters.pydantic_ai import CompactionCapability

    manager = CompactManager(CompactConfig(model="gpt-4o"))
    agent = Agent("openai:gpt-4o", capabilities=[CompactionCapability(manager)])

The hook is `AbstractCapability.prepare_model_request`, which runs for the model that will answer and whose changes are
never stored. A prompt is protected by `protected(text)` in it, a tool's return by its metadata:
`ToolReturn(value, metadata={"compact": {"protected": True}})`. Metadata is never sent.

capability    the capability, the session of a run, the schemas that are counted
messages      pydantic-ai's messages as a dialect, and the text that protects a prompt
"""

from compact.adapters.support import needs_package

SUPPORTED_VERSIONS = ">=2.66,<3"  # `prepare_model_request` is new in 2.66
with needs_package("pydantic-ai-slim", SUPPORTED_VERSIONS, extra="pydantic-ai"):
    from compact.adapters.pydantic_ai.capability import CompactionCapability
    from compact.adapters.pydantic_ai.messages import PydanticAIDialect, protected

__all__ = ["SUPPORTED_VERSIONS", "CompactionCapability", "PydanticAIDialect", "protected"]
