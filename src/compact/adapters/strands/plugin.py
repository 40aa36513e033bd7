"""Strands Agents: a plugin that compacts each request, and leaves `agent.messages` whole.

    from strands import Agent
    from compact import CompactConfig, CompactManager
    from compact.adapters.strands import CompactionPlugin

    manager = CompactManager(CompactConfig(model="claude-sonnet-4-5"))
    agent = Agent(plugins=[CompactionPlugin(manager)])

A message is protected by `metadata`: `{"role": "user", "content": […], "metadata": {"custom": {"protected": True}}}`,
or by Strands' own pin. Strands takes metadata off before a request leaves.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, cast
from weakref import WeakKeyDictionary

try:
    from strands import Agent, tool
    from strands.agent.conversation_manager import NullConversationManager, SlidingWindowConversationManager
    from strands.hooks import AfterModelCallEvent
    from strands.middleware import InvokeModelStage
    from strands.middleware.stages import InvokeModelContext
    from strands.plugins import Plugin
    from strands.types.exceptions import ContextWindowOverflowException
except ImportError as error:
    raise ImportError(
        'the Strands adapter needs the package strands-agents\nhint: pip install "compact-context[strands]"'
    ) from error

from compact.adapters.failing_open import tell_failure
from compact.adapters.strands_dialect import StrandsDialect
from compact.manager import CompactManager
from compact.recall.tool import TOOL_NAME, TOOL_SCHEMA

__all__ = ["SUPPORTED_VERSIONS", "CompactionPlugin", "recall_tool"]

SUPPORTED_VERSIONS = ">=1.60,<2"
# After an overflow nobody foresaw, the next request is this share of the one that was too large.
_AFTER_OVERFLOW = 0.6


class CompactionPlugin(Plugin):
    """Keeps the requests of an agent inside the window; one plugin may serve several agents.

    Each agent is a session of its own: `session_id` for the first, or what Strands calls the session. It takes the
    place of the default conversation manager, which would cut the history; one that you have chosen stays. If anything
    of ours fails, the request goes out as it is and an event tells; `strict` raises instead.
    """

    @property
    def name(self) -> str:
        """What Strands knows it by."""
        return "compact"

    def __init__(
        self,
        manager: CompactManager,
        *,
        session_id: str | None = None,
        offer_recall: bool = True,
        strict: bool = False,
    ) -> None:
        super().__init__()
        self._strict = strict
        self._manager = manager
        self._session_id = session_id
        self._offer_recall = offer_recall
        self._dialect = StrandsDialect(manager.config.policy.protected_flag)
        self._sessions: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
        self._requests: dict[str, tuple[list[dict[str, Any]], str]] = {}

    def init_agent(self, agent: Agent) -> None:
        """Register with an agent."""
        session_id = self.session_of(agent)
        agent.add_middleware(InvokeModelStage.Input, self._before_model)
        agent.add_hook(self._after_model, AfterModelCallEvent)
        if type(agent.conversation_manager) is SlidingWindowConversationManager:
            agent.conversation_manager = _WholeHistory(self, session_id)
        if self._offer_recall and TOOL_NAME not in agent.tool_registry.registry:
            agent.tool_registry.process_tools([recall_tool(self._manager, session_id)])

    def session_of(self, agent: Any) -> str:
        """The id under which the manager knows an agent's conversation."""
        if agent not in self._sessions:
            base = self._session_id or agent.session_id
            label = agent.name if agent.agent_id == "default" else agent.agent_id
            own = base if self._session_id or agent.agent_id == "default" else f"{base}:{label}"
            names = (own, f"{base}:{label}", f"{base}:{label}:{agent.session_id}")
            self._sessions[agent] = next(name for name in names if name not in set(self._sessions.values()))
        return self._sessions[agent]

    async def _before_model(self, context: InvokeModelContext) -> InvokeModelContext:
        """Compact what goes out; if that fails, it goes out as it is."""
        session_id = self.session_of(context.agent)
        tools, instructions = chat_tools(context.tool_specs), system_text(context.system_prompt)
        self._requests[session_id] = tools, instructions
        try:
            messages: Any = await self._manager.apreflight(
                session_id,
                cast(list[Any], context.messages),
                tools=tools,
                instructions=instructions,
                dialect=self._dialect,
            )
        except Exception as error:
            if self._strict:
                raise
            tell_failure(self._manager, session_id, error)
            return context
        return context.replace(messages=messages)

    async def _after_model(self, event: AfterModelCallEvent) -> None:
        """Take in what the provider has counted."""
        answer = event.stop_response.message if event.stop_response else {}
        tokens = input_tokens((answer.get("metadata") or {}).get("usage") or {})
        if not tokens:
            return
        session_id = self.session_of(event.agent)
        try:
            await asyncio.to_thread(self._manager.observe_usage, session_id, tokens)
        except Exception as error:
            tell_failure(self._manager, session_id, error, "the reported usage is not taken in")

    def _compact_now(self, session_id: str, messages: Sequence[Any]) -> None:
        """The provider found a request too large: the next one is smaller."""
        tools, instructions = self._requests.get(session_id, ([], ""))
        target = int(self._manager.status(session_id).used_tokens * _AFTER_OVERFLOW)
        self._manager.manual_compact(
            session_id,
            list(messages),
            note="the provider reported an overflow",
            target_tokens=target,
            tools=tools,
            instructions=instructions,
            dialect=self._dialect,
        )


class _WholeHistory(NullConversationManager):
    """Leaves `agent.messages` alone; an overflow that the provider reports is answered with a compaction, once."""

    def __init__(self, plugin: CompactionPlugin, session_id: str) -> None:
        super().__init__()
        self._plugin, self._session_id = plugin, session_id
        self._answered_at = -1

    def reduce_context(self, agent: Agent, e: Exception | None = None, **kwargs: Any) -> None:
        """Compact what is sent, not what is stored; a second overflow of the same history is the caller's to see."""
        if not isinstance(e, ContextWindowOverflowException) or self._answered_at == len(agent.messages):
            return super().reduce_context(agent, e, **kwargs)
        self._answered_at = len(agent.messages)
        try:
            self._plugin._compact_now(self._session_id, agent.messages)
        except Exception as error:
            tell_failure(self._plugin._manager, self._session_id, error, "the overflow is passed on")
            raise e from error


def recall_tool(manager: CompactManager, session_id: str) -> Any:
    """The tool by which an agent reads what left its prompt."""
    function = TOOL_SCHEMA["function"]

    @tool(name=TOOL_NAME, description=function["description"], inputSchema={"json": function["parameters"]})
    def recall(query: str) -> str:
        return str(manager.recall(session_id, query))

    return recall


def chat_tools(specs: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Tool specifications in the form that is counted."""
    return [
        {
            "type": "function",
            "function": {
                "name": spec["name"],
                "description": spec.get("description", ""),
                "parameters": spec["inputSchema"].get("json", spec["inputSchema"]),
            },
        }
        for spec in specs
    ]


def system_text(prompt: str | Sequence[Mapping[str, Any]] | None) -> str:
    """A system prompt as plain text, cache points left out."""
    if prompt is None or isinstance(prompt, str):
        return prompt or ""
    return "\n".join(str(block["text"]) for block in prompt if "text" in block)


def input_tokens(usage: Mapping[str, Any]) -> int:
    """Everything the model has read: some providers report cached tokens beside the input, some in it."""
    return max(usage.get("totalTokens", 0) - usage.get("outputTokens", 0), usage.get("inputTokens", 0))
