"""The middleware that compacts each request of an agent, and the recall tool that it offers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, TypeAlias, cast

from langchain.agents.middleware import AgentMiddleware, ExtendedModelResponse, ModelRequest, ModelResponse
from langchain.agents.structured_output import AutoStrategy, ProviderStrategy, ToolStrategy
from langchain.tools import ToolRuntime
from langchain_core.messages import AIMessage, AnyMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, StructuredTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.config import get_config

from compact.adapters.langchain.called_model import called_model
from compact.adapters.langchain.messages import LangChainDialect, without_mark
from compact.adapters.support import (
    RECALL_DESCRIPTION,
    RECALL_NAME,
    OutgoingRequest,
    RecentDict,
    RequestPreparer,
    answer_recall,
    aobserve_usage,
    counted,
    function_schema,
    is_mapping,
    named_session,
    observe_usage,
)
from compact.manager import CompactManager
from compact.runner import run_blocking

# The name of deepagents' own summariser: a middleware of this name replaces it.
DEEPAGENTS_SLOT = "SummarizationMiddleware"

SessionId: TypeAlias = str | Callable[[RunnableConfig], str] | None
_TOOLS_NODE = "tools"  # what LangChain calls the node that runs tools
# Chosen: more tools and answer formats than an agent has; making the schema of one takes about a millisecond.
_MOST_SCHEMAS = 500


class LangChainCompactionMiddleware(AgentMiddleware[Any, Any, Any]):
    """Keeps the requests of an agent inside the window; one middleware may serve several agents.

    A session is a thread of LangGraph; an agent that runs as a tool or as a node of another graph has its own.

    Args:
        manager: Keeps the sessions.
        session_id: Names the session instead: a text, or a function of the run's configuration.
        offer_recall: Give the agent the recall tool.
        name: The name of the middleware in the graph; with `DEEPAGENTS_SLOT` it replaces deepagents' summariser.
        strict: Raise what goes wrong; by default the request goes out as it is then, and an event says why.

    Example:
        >>> from langchain.agents import create_agent
        >>> from langchain_core.language_models import FakeListChatModel
        >>> from compact import CompactConfig, CompactManager
        >>> from compact.adapters.langchain import LangChainCompactionMiddleware
        >>> manager = CompactManager(CompactConfig(model="gpt-4o"))
        >>> model = FakeListChatModel(responses=["Hi."])  # or "openai:gpt-4o"
        >>> agent = create_agent(model, middleware=[LangChainCompactionMiddleware(manager, offer_recall=False)])
        >>> agent.invoke({"messages": [("user", "Hello")]})["messages"][-1].content
        'Hi.'
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
        self._dialect = LangChainDialect()
        # By the identity of a tool; the tool itself is kept so that no other object can get its identity.
        self._schemas: RecentDict[int, tuple[object, list[dict[str, Any]]]] = RecentDict(_MOST_SCHEMAS)
        self._preparer: RequestPreparer[ModelRequest[Any]] = RequestPreparer(
            manager, "langchain", session_of=self._session_of, read=self._read, strict=strict
        )

    @property
    def name(self) -> str:
        """The name of the middleware in the graph; with `DEEPAGENTS_SLOT` it replaces deepagents' summariser."""
        return self._name

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> Any:
        """Compact a request, send it, and take in what the provider has counted; retry once if it was too long."""
        prepared, response = self._preparer.send(
            request, lambda prepared: handler(_with_messages(request, prepared.items))
        )
        if prepared.items is not None:
            observe_usage(self.manager, prepared.session_id, reported_usage(response))
        return response

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> Any:
        """Compact a request, send it, and take in what the provider has counted, in an event loop."""
        prepared, response = await self._preparer.asend(
            request, lambda prepared: handler(_with_messages(request, prepared.items))
        )
        if prepared.items is not None:
            await aobserve_usage(self.manager, prepared.session_id, reported_usage(response))
        return response

    def _session_of(self, request: ModelRequest[Any]) -> str:
        return session_of(get_config(), request.messages, self._session_id)

    def _read(self, request: ModelRequest[Any], session_id: str) -> OutgoingRequest | None:
        if getattr(request.model, "use_previous_response_id", False):
            self._preparer.notice_provider_keeps_history(session_id, "use_previous_response_id")
            return None
        called = called_model(request.model, request.model_settings)
        sources = (*cast(Sequence[Any], request.tools), request.response_format)
        return OutgoingRequest(
            items=list(request.messages),
            tools=[schema for source in sources for schema in self._schemas_of(source)],
            instructions=str(request.system_message.text) if request.system_message else "",
            output_tokens=called.output_tokens,
            model=called.name,
            dialect=self._dialect,
        )

    def _schemas_of(self, source: Any) -> list[dict[str, Any]]:
        known = self._schemas.get(id(source))
        if known is None or known[0] is not source:
            known = (source, schemas_of(source))
            self._schemas[id(source)] = known
        return known[1]


def session_of(config: RunnableConfig, messages: Sequence[AnyMessage], named: SessionId = None) -> str:
    """Return the id of the session that a run belongs to: the name that was given, or LangGraph's thread.

    An agent that another one calls as a tool has a session of its own for each call; an agent that is a node of a
    larger graph has one for each conversation that it is handed. Without a thread, the id of the conversation's first
    message is taken.

    Args:
        config: The configuration of the run.
        messages: The messages of its state.
        named: What was given to the middleware as `session_id`.

    Example:
        >>> from langchain_core.messages import HumanMessage
        >>> from compact.adapters.langchain import session_of
        >>> session_of({}, [HumanMessage("Hello")], named="chat-1")
        'chat-1'
    """
    configurable = config.get("configurable") or {}
    first = (messages[0].id if messages else None) or "new"
    above = str(configurable.get("checkpoint_ns") or "").split("|")[:-1]
    is_tool = [place.startswith(f"{_TOOLS_NODE}:") for place in above]
    path = [place if kept else place.split(":")[0] for place, kept in zip(above, is_tool, strict=True)]
    thread = configurable.get("thread_id") if named is None else named_session(named, config)
    tail = [] if any(is_tool) or (thread and not above) else [first]
    return "/".join([*([str(thread)] if thread else []), *path, *tail])


def recall_tool(manager: CompactManager, session_id: SessionId = None) -> BaseTool:
    """Return the tool by which an agent reads what left its prompt.

    Args:
        manager: Keeps the sessions.
        session_id: What the middleware was given: a text, or a function of the run's configuration.

    Example:
        >>> from compact import CompactManager
        >>> from compact.adapters.langchain import recall_tool
        >>> recall_tool(CompactManager(), "chat-1").name
        'recall'
    """

    def recall(query: str, runtime: ToolRuntime[Any, Any]) -> str:
        def session() -> str:
            messages: Sequence[AnyMessage] = runtime.state.get("messages", ()) if is_mapping(runtime.state) else ()
            return session_of(runtime.config, messages, session_id)

        return answer_recall(manager, session, {"query": query})

    async def arecall(query: str, runtime: ToolRuntime[Any, Any]) -> str:
        return await run_blocking(partial(recall, query, runtime))

    return StructuredTool.from_function(recall, arecall, name=RECALL_NAME, description=RECALL_DESCRIPTION)


def _with_messages(request: ModelRequest[Any], messages: Sequence[AnyMessage] | None) -> ModelRequest[Any]:
    """Return a request with other messages, or its own; our marks never leave."""
    outgoing = [without_mark(message) for message in (request.messages if messages is None else messages)]
    return request.override(messages=outgoing)


def schemas_of(source: Any) -> list[dict[str, Any]]:
    """Return what a tool, or the format of a structured answer, adds to a request, as it is counted."""
    if source is None:
        return []
    if isinstance(source, AutoStrategy):
        source = ToolStrategy(cast(Any, source).schema)
    if isinstance(source, ToolStrategy | ProviderStrategy):
        strategy = cast(Any, source)
        specs = strategy.schema_specs if isinstance(source, ToolStrategy) else [strategy.schema_spec]
        return [function_schema(spec.name, spec.description, spec.json_schema) for spec in specs]
    return [dict(source) if is_mapping(source) else convert_to_openai_tool(source)]


def reported_usage(response: object) -> object:
    """Return what the provider has counted for a request, cached tokens included; None if it does not say."""
    answer = cast(Any, response).model_response if isinstance(response, ExtendedModelResponse) else response
    messages: Sequence[Any] = cast(Any, answer).result if isinstance(answer, ModelResponse) else [answer]
    usages = (message.usage_metadata for message in messages if isinstance(message, AIMessage))
    usage = next((usage for usage in usages if usage), None)
    if usage is None:
        return None
    details = usage.get("input_token_details") or {}
    read, written = details.get("cache_read"), details.get("cache_creation")
    return counted(usage["input_tokens"], cache_read=read, cache_write=written)
