"""LangChain, LangGraph and deepagents: a middleware that compacts each request, and leaves the state whole.

    from langchain.agents import create_agent
    from compact import CompactConfig, CompactManager
    from compact.adapters.langchain import CompactionMiddleware

    manager = CompactManager(CompactConfig(model="gpt-4o"))
    agent = create_agent("openai:gpt-4o", tools, middleware=[CompactionMiddleware(manager)])

A message is protected by `protected(message)`, which marks it: `additional_kwargs={"compact": {"protected": True}}`.
The mark is taken off before a request leaves.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeAlias

try:
    from langchain.agents.middleware import AgentMiddleware, ExtendedModelResponse, ModelRequest, ModelResponse
    from langchain.agents.structured_output import AutoStrategy, ProviderStrategy, ToolStrategy
    from langchain.tools import ToolRuntime
    from langchain_core.messages import AIMessage, AnyMessage
    from langchain_core.runnables import RunnableConfig
    from langchain_core.tools import BaseTool, StructuredTool
    from langchain_core.utils.function_calling import convert_to_openai_tool
    from langgraph.config import get_config
except ImportError as error:
    hint = 'hint: pip install "compact-context[langchain]"'
    raise ImportError(f"the LangChain adapter needs the package langchain\n{hint}") from error

from compact.adapters.failing_open import AS_IT_IS, tell, tell_failure
from compact.adapters.langchain_messages import LangChainDialect, without_mark
from compact.adapters.langchain_messages import protected as protected
from compact.core.engine.events import NoticeEvent
from compact.manager import CompactManager
from compact.recall.tool import TOOL_NAME, TOOL_SCHEMA

__all__ = ["DEEPAGENTS_SLOT", "SUPPORTED_VERSIONS", "CompactionMiddleware", "protected", "recall_tool", "session_of"]

SUPPORTED_VERSIONS = {"langchain": ">=1.3,<2", "langgraph": ">=1.2,<2", "deepagents": ">=0.7"}
# The name of deepagents' own summariser: a middleware of this name stands in its place.
DEEPAGENTS_SLOT = "SummarizationMiddleware"

SessionId: TypeAlias = str | Callable[[RunnableConfig], str] | None
_TOOLS_NODE = "tools"
_MOST_SCHEMAS = 500


class CompactionMiddleware(AgentMiddleware[Any, Any, Any]):
    """Keeps the requests of an agent inside the window; one middleware may serve several agents.

    A session is a thread of LangGraph; an agent that runs as a tool or as a node of another graph has its own.
    `session_id` names it instead: a text, or a function of the run's configuration. If anything of ours fails, the
    request goes out as it is and an event tells; `strict` raises instead.
    """

    def __init__(
        self,
        manager: CompactManager,
        *,
        session_id: SessionId = None,
        offer_recall: bool = True,
        name: str = "CompactionMiddleware",
        strict: bool = False,
    ) -> None:
        super().__init__()
        self.manager = manager
        self.tools: Sequence[BaseTool] = [recall_tool(manager, session_id)] if offer_recall else []
        self._session_id = session_id
        self._name = name
        self._strict = strict
        self._dialect = LangChainDialect()
        self._schemas: dict[int, tuple[object, list[dict[str, Any]]]] = {}
        self._stood_down: set[str] = set()

    @property
    def name(self) -> str:
        """What the middleware is called in the graph; `DEEPAGENTS_SLOT` takes the place of deepagents' summariser."""
        return self._name

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> Any:
        """Compact a request, send it, and take in what the provider has counted."""
        session_id, fitted = "", None
        try:
            session_id = self._session_of(request)
            if self._may_compact(request, session_id):
                fitted = self.manager.preflight(session_id, list(request.messages), **self._beside(request))
        except Exception as error:
            self._went_wrong(session_id, error, AS_IT_IS)
        response = handler(_with_messages(request, fitted))
        if fitted is not None and (tokens := _input_tokens(response)):
            self._observe(session_id, tokens)
        return response

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> Any:
        """The same in an event loop."""
        session_id, fitted = "", None
        try:
            session_id = self._session_of(request)
            if self._may_compact(request, session_id):
                fitted = await self.manager.apreflight(session_id, list(request.messages), **self._beside(request))
        except Exception as error:
            self._went_wrong(session_id, error, AS_IT_IS)
        response = await handler(_with_messages(request, fitted))
        if fitted is not None and (tokens := _input_tokens(response)):
            # It waits for whoever is in the session, which may be a task of this very loop.
            await asyncio.to_thread(self._observe, session_id, tokens)
        return response

    def _session_of(self, request: ModelRequest[Any]) -> str:
        return session_of(get_config(), request.messages, self._session_id)

    def _may_compact(self, request: ModelRequest[Any], session_id: str) -> bool:
        """False where the provider keeps the history and is only sent what is new."""
        if not getattr(request.model, "use_previous_response_id", False):
            return True
        if session_id not in self._stood_down:
            self._stood_down.add(session_id)
            message = "the model's provider keeps the history (use_previous_response_id): nothing is compacted"
            tell(self.manager, NoticeEvent(session_id=session_id, message=message))
        return False

    def _beside(self, request: ModelRequest[Any]) -> dict[str, Any]:
        """What is sent beside the messages, and what they are."""
        system = request.system_message
        return {
            "tools": [
                schema for tool in (*request.tools, request.response_format) for schema in self._schemas_of(tool)
            ],
            "instructions": str(system.text) if system else "",
            "dialect": self._dialect,
        }

    def _schemas_of(self, source: Any) -> list[dict[str, Any]]:
        """The schemas of a tool or of a structured answer, made once."""
        known = self._schemas.get(id(source))
        if known and known[0] is source:
            return known[1]
        if len(self._schemas) >= _MOST_SCHEMAS:
            self._schemas.clear()
        self._schemas[id(source)] = (source, schemas_of(source))
        return self._schemas[id(source)][1]

    def _observe(self, session_id: str, tokens: int) -> None:
        try:
            self.manager.observe_usage(session_id, tokens)
        except Exception as error:
            self._went_wrong(session_id, error, "the reported usage is not taken in")

    def _went_wrong(self, session_id: str, error: Exception, fallback: str) -> None:
        if self._strict:
            raise error
        tell_failure(self.manager, session_id, error, fallback)


def session_of(config: RunnableConfig, messages: Sequence[AnyMessage], named: SessionId = None) -> str:
    """The id under which the manager knows the conversation that a run belongs to.

    That is the name that was given, or the thread. An agent that another one calls as a tool has its own for each
    call; an agent that is a node of a larger graph has its own for each conversation that it is handed. Without a
    thread, it is the conversation's first message that tells.
    """
    own = config.get("configurable") or {}
    first = (messages[0].id if messages else None) or "new"
    above = str(own.get("checkpoint_ns") or "").split("|")[:-1]
    path = [place if place.startswith(f"{_TOOLS_NODE}:") else place.split(":")[0] for place in above]
    is_called = any(place.startswith(f"{_TOOLS_NODE}:") for place in above)
    thread = (named(config) if callable(named) else named) if named is not None else own.get("thread_id")
    tail = [] if is_called or (thread and not above) else [first]
    return "/".join([*([str(thread)] if thread else []), *path, *tail])


def recall_tool(manager: CompactManager, session_id: SessionId = None) -> BaseTool:
    """The tool by which an agent reads what left its prompt."""

    def recall(query: str, runtime: ToolRuntime) -> str:
        own = ""
        try:
            messages = runtime.state.get("messages", []) if isinstance(runtime.state, Mapping) else []
            own = session_of(runtime.config, messages, session_id)
            return str(manager.recall(own, query))
        except Exception as error:
            tell_failure(manager, own, error, "the agent is told so")
            return f"nothing can be read now: {error}"

    async def arecall(query: str, runtime: ToolRuntime) -> str:
        return await asyncio.to_thread(recall, query, runtime)

    description: str = TOOL_SCHEMA["function"]["description"]
    return StructuredTool.from_function(recall, arecall, name=TOOL_NAME, description=description)


def _with_messages(request: ModelRequest[Any], messages: Sequence[AnyMessage] | None) -> ModelRequest[Any]:
    """A request with other messages, or its own; what is ours never leaves."""
    outgoing = [without_mark(message) for message in (request.messages if messages is None else messages)]
    return request.override(messages=outgoing)


def schemas_of(source: Any) -> list[dict[str, Any]]:
    """What a tool, or the form of a structured answer, puts beside a request, as it is counted."""
    if source is None:
        return []
    if isinstance(source, AutoStrategy):
        source = ToolStrategy(source.schema)
    if isinstance(source, ToolStrategy | ProviderStrategy):
        specs = source.schema_specs if isinstance(source, ToolStrategy) else [source.schema_spec]
        fields = [{"name": s.name, "description": s.description, "parameters": s.json_schema} for s in specs]
        return [{"type": "function", "function": function} for function in fields]
    return [dict(source) if isinstance(source, Mapping) else convert_to_openai_tool(source)]


def _input_tokens(response: object) -> int:
    """What the provider has counted for a request, cached tokens included; 0 if it does not say."""
    if isinstance(response, ExtendedModelResponse):
        response = response.model_response
    messages = response.result if isinstance(response, ModelResponse) else [response]
    usages = (message.usage_metadata for message in messages if isinstance(message, AIMessage))
    return next((usage["input_tokens"] for usage in usages if usage), 0)
