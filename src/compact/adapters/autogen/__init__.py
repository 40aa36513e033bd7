"""AutoGen: a model client that compacts each request, and leaves the context of every agent whole.

    from autogen_agentchat.agents import AssistantAgent
    from autogen_ext.models.openai import OpenAIChatCompletionClient
    import compact

    client = compact.wrap(OpenAIChatCompletionClient(model="gpt-4o"), manager, session_id="chat-1")
    agent = AssistantAgent("reader", client, tools=[...])

The hook is the client, `create` and `create_stream`: it sees the system message, the tools and what the provider has
counted, which a `ChatCompletionContext` does not. AutoGen's messages have no place for a mark: what must stay word for
word belongs in the system message, which is never changed.

client      the client that compacts, and the recall tool
messages    AutoGen's messages as a dialect
"""

from compact.adapters.support import needs_package

SUPPORTED_VERSIONS = ">=0.7,<0.8"
with needs_package("autogen-core", SUPPORTED_VERSIONS, extra="autogen"):
    from compact.adapters.autogen.client import compacting_client, recall_tool
    from compact.adapters.autogen.messages import AutoGenDialect

__all__ = ["SUPPORTED_VERSIONS", "AutoGenDialect", "compacting_client", "recall_tool"]
