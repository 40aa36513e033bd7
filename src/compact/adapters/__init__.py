"""Agent frameworks and client libraries that Compact plugs into: a folder for each, and `support`, which they share.

openai_agents    OpenAI Agents SDK: a filter for the input of each model call
langchain        LangChain, LangGraph and deepagents: a middleware
pydantic_ai      pydantic-ai: a capability
agent_framework  Microsoft Agent Framework: a context provider, a strategy, executors for workflows
google_adk       Google ADK: a plugin
strands          Strands Agents: a plugin
anthropic        the Anthropic SDK: middleware of its client
litellm          LiteLLM: a callback
own_loop         a loop of your own: hooks to call before each model call
support          what every adapter and the proxy use: fallback, usage, recall, session ids, conversion of messages

Importing an adapter imports its framework; if that is missing, the error names the extra to install.
"""
