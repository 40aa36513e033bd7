"""LlamaIndex: a model that compacts each request, and leaves the memory of every agent whole.

    from llama_index.core.agent.workflow import FunctionAgent
    import compact

    llm = compact.wrap(OpenAI(model="gpt-4o"), manager, session_id="chat-1")
    agent = FunctionAgent(llm=llm, tools=[...])

The hook is the model: `chat`, `stream_chat` and their twins for an event loop, which all agents and chat engines
call. A memory does not see the calls and results of the run that is going on. A message is protected by
`protected(message)`, which marks it: `additional_kwargs={"compact": {"protected": True}}`. The mark is removed before
a request leaves.

llm         the model that compacts, and the recall tool
messages    LlamaIndex's messages as a dialect, and the mark that protects one
"""

from compact.adapters.support import needs_package

SUPPORTED_VERSIONS = ">=0.14,<0.15"
with needs_package("llama-index-core", SUPPORTED_VERSIONS, extra="llama-index"):
    from compact.adapters.llama_index.llm import compacting_llm, recall_tool
    from compact.adapters.llama_index.messages import LlamaIndexDialect, protected

__all__ = ["SUPPORTED_VERSIONS", "LlamaIndexDialect", "compacting_llm", "protected", "recall_tool"]
