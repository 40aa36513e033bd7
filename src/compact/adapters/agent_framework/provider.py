"""The context provider that has each model call of a run compacted, and the recall tool that it offers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from agent_framework import (
    AgentSession,
    ChatContext,
    ChatMiddleware,
    ChatResponse,
    ContextProvider,
    FunctionTool,
    Message,
    SessionContext,
)

from compact.adapters.agent_framework.requests import (
    input_tokens,
    is_kept_by_service,
    model_name,
    outgoing,
    tool_schemas,
    with_shown_history,
)
from compact.adapters.support import (
    RECALL_DESCRIPTION,
    RECALL_NAME,
    RECALL_PARAMETERS,
    OutgoingRequest,
    PreparedRequest,
    RecentDict,
    RequestPreparer,
    aanswer_recall,
    aobserve_usage,
    counted,
    instruction_text,
    named_session,
    output_limit,
    report_failure,
    same_objects,
)
from compact.manager import CompactManager

SessionId: TypeAlias = str | Callable[[Any, AgentSession], str] | None


class CompactProvider(ContextProvider):
    """Keeps the requests of an agent inside the window; one provider may serve several agents.

    A session of the framework is one of the manager's; an agent that works in the session of another (an agent as a
    tool) has its own.

    Args:
        manager: Keeps the sessions.
        session_id: Names the session instead: a text, or a function of agent and session.
        offer_recall: Give the agent the recall tool.
        strict: Raise what goes wrong; by default the request goes out as it is then, and an event says why.
        source_id: The name of the provider in the framework.

    Example:
        >>> from agent_framework import Agent, BaseChatClient
        >>> from compact import CompactConfig, CompactManager
        >>> from compact.adapters.agent_framework import CompactProvider
        >>> class YourClient(BaseChatClient):
        ...     async def _inner_get_response(self, **kwargs): ...
        >>> manager = CompactManager(CompactConfig(model="gpt-4o"))
        >>> provider = CompactProvider(manager)
        >>> agent = Agent(YourClient(), context_providers=[provider])
    """

    def __init__(
        self,
        manager: CompactManager,
        *,
        session_id: SessionId = None,
        offer_recall: bool = True,
        strict: bool = False,
        source_id: str = "compact",
    ) -> None:
        super().__init__(source_id)
        self._strict = strict
        self._manager = manager
        self._session_id = session_id
        self._offer_recall = offer_recall
        self._agents: RecentDict[str, dict[str, str]] = RecentDict()  # session: the session of each agent in it

    async def before_run(
        self, *, agent: Any, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        """Add the middleware that compacts this run's model calls, and offer the agent its recall tool.

        If the session cannot be found out, because a function of the user's fails, nothing is compacted in this run.
        """
        try:
            session_id = self.session_of(agent, session)
        except Exception as error:
            if self._strict:
                raise
            report_failure(self._manager, session.session_id, error, "the requests of this run go out as they are")
            return
        context.extend_middleware(self.source_id, _CompactionMiddleware(self._manager, session_id, self._strict))
        if self._offer_recall:
            context.extend_tools(self.source_id, [recall_tool(self._manager, session_id)])

    def session_of(self, agent: Any, session: AgentSession) -> str:
        """Return the id under which the manager knows a conversation.

        Args:
            agent: The agent.
            session: Its session in the framework.

        Example:
            >>> from agent_framework import AgentSession
            >>> provider.session_of(agent, AgentSession(session_id="chat-1"))
            'chat-1'
        """
        base = named_session(self._session_id, agent, session) or session.session_id
        agents = self._agents.get(base, {})
        if agent.id not in agents:
            name = f"{base}:{agent.name or agent.id}" if agents else base
            agents[agent.id] = name if name not in agents.values() else f"{name}:{agent.id}"
        self._agents[base] = agents
        return agents[agent.id]


class _CompactionMiddleware(ChatMiddleware):
    """Compacts the model calls of one run; it sees what goes out beside the messages, and what the model counted."""

    def __init__(self, manager: CompactManager, session_id: str, strict: bool) -> None:
        self._manager, self._session_id = manager, session_id
        self._preparer: RequestPreparer[_ChatRequest] = RequestPreparer(
            manager, "agent_framework", session_of=lambda _: session_id, read=_read, strict=strict
        )

    async def process(self, context: ChatContext, call_next: Callable[[], Awaitable[None]]) -> None:
        """Have a call compacted as the last thing before the client: nothing is added to the request after it."""
        options: Mapping[str, Any] = context.options or {}
        if is_kept_by_service(options):
            self._preparer.notice_provider_keeps_history(self._session_id, "conversation_id")
            await call_next()
            return

        sent: list[tuple[_ChatRequest, PreparedRequest]] = []

        async def compact(messages: list[Message]) -> bool:
            request = _ChatRequest(list(messages), options, context.client)
            prepared = await self._preparer.aprepare(request)
            sent.append((request, prepared))
            if prepared.items is None or same_objects(prepared.items, messages):
                return False
            # This list is the request's own: the framework copies it for its middleware.
            messages[:] = prepared.items
            return True

        context.kwargs["compaction_strategy"] = compact
        context.stream_result_hooks.append(self._observe)
        try:
            await call_next()
        except Exception as error:
            if not sent or not await self._preparer.aprepare_again(*sent[-1], error):
                raise
            await self._call_again(call_next, sent)
        if isinstance(context.result, ChatResponse):
            await self._observe(context.result)

    async def _call_again(
        self, call_next: Callable[[], Awaitable[None]], sent: list[tuple[_ChatRequest, PreparedRequest]]
    ) -> None:
        """Make a call once more: `compact` finds that the window is smaller now."""
        try:
            await call_next()
        except Exception as error:
            await self._preparer.alearn(sent[-1][1], error)
            raise

    async def _observe(self, response: ChatResponse[Any]) -> None:
        usage: Mapping[str, Any] = response.usage_details or {}
        told = counted(
            input_tokens(usage),
            cache_read=usage.get("cache_read_input_token_count"),
            cache_write=usage.get("cache_creation_input_token_count"),
        )
        await aobserve_usage(self._manager, self._session_id, told)


@dataclass(frozen=True, slots=True)
class _ChatRequest:
    """The messages of a model call, its options, and the client that sends it."""

    messages: list[Message]
    options: Mapping[str, Any]
    client: object


def _read(request: _ChatRequest, session_id: str) -> OutgoingRequest:
    options = request.options
    return outgoing(
        with_shown_history(session_id, list(request.messages)),
        tools=tool_schemas(options.get("tools")),
        instructions=instruction_text(options.get("instructions")),
        output_tokens=output_limit(options),
        model=model_name(request.client, options),
    )


def recall_tool(manager: CompactManager, session_id: str) -> FunctionTool:
    """Return the tool by which an agent reads what left its prompt.

    Args:
        manager: Keeps the sessions.
        session_id: The session to read.

    Example:
        >>> from compact import CompactManager
        >>> from compact.adapters.agent_framework import recall_tool
        >>> recall_tool(CompactManager(), "chat-1").name
        'recall'
    """

    async def recall(query: str) -> str:
        return await aanswer_recall(manager, session_id, {"query": query})

    return FunctionTool(name=RECALL_NAME, description=RECALL_DESCRIPTION, func=recall, input_model=RECALL_PARAMETERS)
