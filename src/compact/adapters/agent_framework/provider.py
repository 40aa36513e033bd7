"""Microsoft Agent Framework: a context provider that compacts each request, and leaves sessions whole.

    from agent_framework import Agent
    from compact import CompactConfig, CompactManager
    from compact.adapters.agent_framework import CompactProvider, protected

    manager = CompactManager(CompactConfig(model="gpt-4o"))
    agent = Agent(client, tools=tools, context_providers=[CompactProvider(manager)])

A message is protected by `protected(message)`, which tags it: `additional_properties={"compact": {"protected": True}}`.
Where only a strategy is taken, `CompactStrategy(manager)` is one: `Agent(client, compaction_strategy=…)`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

from compact.adapters.agent_framework_messages import protected as protected
from compact.adapters.agent_framework_requests import fit, input_tokens, is_kept_by_the_service, text_of, tool_schemas
from compact.adapters.agent_framework_strategy import CompactStrategy as CompactStrategy

# isort: split
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

from compact.adapters.failing_open import tell, tell_failure
from compact.core.engine.events import NoticeEvent
from compact.manager import CompactManager
from compact.recall.tool import TOOL_NAME, TOOL_SCHEMA

SUPPORTED_VERSIONS = ">=1.20,<2"
SessionId: TypeAlias = str | Callable[[Any, AgentSession], str] | None
_MOST_SESSIONS = 10_000


class CompactProvider(ContextProvider):
    """Keeps the requests of an agent inside the window; one provider may serve several agents.

    A session of the framework is one of the manager's; an agent that works in the session of another (an agent as a
    tool) has its own. `session_id` names it instead: a text, or a function of agent and session. If anything of ours
    fails, the request goes out as it is and an event tells; `strict` raises instead.
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
        self._agents: dict[str, dict[str, str]] = {}

    async def before_run(
        self, *, agent: Any, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        """Have this run's model calls pass by us, and offer the agent its recall tool."""
        session_id = self.session_of(agent, session)
        context.extend_middleware(self.source_id, _Requests(self._manager, session_id, self._strict))
        if self._offer_recall:
            context.extend_tools(self.source_id, [recall_tool(self._manager, session_id)])

    def session_of(self, agent: Any, session: AgentSession) -> str:
        """The id under which the manager knows a conversation."""
        own = self._session_id
        base = session.session_id if own is None else own if isinstance(own, str) else own(agent, session)
        agents = self._agents.setdefault(base, {})
        while len(self._agents) > _MOST_SESSIONS:
            self._agents.pop(next(iter(self._agents)))
        label = agent.name or agent.id
        if agent.id not in agents:
            name = f"{base}:{label}" if agents else base
            agents[agent.id] = name if name not in agents.values() else f"{name}:{agent.id}"
        return agents[agent.id]


class _Requests(ChatMiddleware):
    """Sees what goes out beside the messages, and what the model has counted."""

    def __init__(self, manager: CompactManager, session_id: str, strict: bool) -> None:
        self._manager, self._session_id, self._strict = manager, session_id, strict

    async def process(self, context: ChatContext, call_next: Callable[[], Awaitable[None]]) -> None:
        """Compact as the last thing before the client: nobody adds anything behind our back."""
        if is_kept_by_the_service(context.options or {}):
            message = "the service keeps this conversation: the request is only a part of it, and is left alone"
            tell(self._manager, NoticeEvent(session_id=self._session_id, message=message))
            await call_next()
            return
        context.kwargs["compaction_strategy"] = self._strategy(context.options or {})
        context.stream_result_hooks.append(self._observe)
        await call_next()
        if isinstance(context.result, ChatResponse):
            await self._observe(context.result)

    def _strategy(self, options: Mapping[str, Any]) -> Callable[[list[Message]], Awaitable[bool]]:
        async def compact(messages: list[Message]) -> bool:
            try:
                tools, instructions = tool_schemas(options.get("tools")), text_of(options.get("instructions"))
                prompt = await fit(
                    self._manager, self._session_id, list(messages), tools=tools, instructions=instructions
                )
            except Exception as error:
                if self._strict:
                    raise
                tell_failure(self._manager, self._session_id, error)
                return False
            is_changed = len(prompt) != len(messages) or any(a is not b for a, b in zip(prompt, messages, strict=True))
            # This list is the request's own: the framework copies it for its middleware.
            messages[:] = prompt
            return is_changed

        return compact

    async def _observe(self, response: ChatResponse[Any]) -> None:
        """Take in what the provider has counted."""
        if not (tokens := input_tokens(response.usage_details or {})):
            return
        try:
            await asyncio.to_thread(self._manager.observe_usage, self._session_id, tokens)
        except Exception as error:
            tell_failure(self._manager, self._session_id, error, "the reported usage is not taken in")


def recall_tool(manager: CompactManager, session_id: str) -> FunctionTool:
    """The tool by which an agent reads what left its prompt."""
    function = TOOL_SCHEMA["function"]

    async def recall(query: str) -> str:
        return str(await asyncio.to_thread(manager.recall, session_id, query))

    return FunctionTool(
        name=TOOL_NAME, description=function["description"], func=recall, input_model=function["parameters"]
    )
