"""smolagents: a model that compacts each request, and leaves the memory of every agent whole.

    from smolagents import OpenAIModel, ToolCallingAgent
    import compact

    model = compact.wrap(OpenAIModel("gpt-4o"), manager, session_id="chat-1")
    agent = ToolCallingAgent(tools=[...], model=model)

The hook is the model, `generate` and `generate_stream`: it sees the tools and what the provider has counted, while
`step_callbacks` see steps and no requests. The messages of smolagents have no place for a mark: what must stay word for
word belongs in the agent's `instructions`, which are never changed.

model       the model that compacts, and the recall tool
messages    smolagents' messages as a dialect: its calls are text, and are read as the calls they are
"""

from compact.adapters.support import needs_package

SUPPORTED_VERSIONS = ">=1.26,<2"
with needs_package("smolagents", SUPPORTED_VERSIONS, extra="smolagents"):
    from compact.adapters.smolagents.messages import SmolagentsDialect
    from compact.adapters.smolagents.model import compacting_model, recall_tool

__all__ = ["SUPPORTED_VERSIONS", "SmolagentsDialect", "compacting_model", "recall_tool"]
