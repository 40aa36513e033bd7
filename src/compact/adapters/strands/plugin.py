"""The plugin that compacts each request of an agent, and the recall tool that it offers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast
from weakref import WeakKeyDictionary

import strands
from strands import Agent
from strands.agent.conversation_manager import NullConversationManager, SlidingWindowConversationManager
from strands.hooks import AfterModelCallEvent
from strands.middleware import InvokeModelStage
from strands.middleware.stages import InvokeModelContext
from strands.plugins import Plugin

from compact.adapters.strands.messages import StrandsDialect
from compact.adapters.support import (
    RECALL_DESCRIPTION,
    RECALL_NAME,
    RECALL_PARAMETERS,
    OutgoingRequest,
    PreparedRequest,
    RecentDict,
    RequestPreparer,
    answer_recall,
    aobserve_usage,
    counted,
    function_schema,
    instruction_text,
    litellm_limit,
    output_limit,
    prompt_tokens,
)
from compact.manager import CompactManager


class StrandsCompactionPlugin(Plugin):
    """Keeps the requests of an agent inside the window; one plugin may serve several agents.

    Each agent has a session of its own: the first has the name `session_id`, or what Strands calls the session. The
    plugin replaces the default conversation manager, which would cut the history; one that you have chosen stays.

    Args:
        manager: Keeps the sessions.
        session_id: Names the session of the first agent.
        offer_recall: Give the agent the recall tool.
        strict: Raise what goes wrong; by default the request goes out as it is then, and an event says why.

    Example:
        >>> from strands import Agent
        >>> from strands.models.anthropic import AnthropicModel
        >>> from compact import CompactConfig, CompactManager
        >>> from compact.adapters.strands import StrandsCompactionPlugin
        >>> manager = CompactManager(CompactConfig(model="claude-sonnet-4-5"))
        >>> plugin = StrandsCompactionPlugin(manager, session_id="chat-1")
        >>> model = AnthropicModel(client_args={"api_key": "none"}, model_id="claude-sonnet-4-5", max_tokens=1_000)
        >>> agent = Agent(model, plugins=[plugin])
    """

    @property
    def name(self) -> str:
        """The name by which Strands knows the plugin."""
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
        self.manager = manager
        self._session_id = session_id
        self._offer_recall = offer_recall
        self._dialect = StrandsDialect(manager.config.policy.protected_flag)
        self._sessions: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
        # What a session's last request sent beside its messages, for a compaction after an overflow.
        self._last_requests: RecentDict[str, OutgoingRequest] = RecentDict()
        # The request that a session waits for, and whether it is the second one after a refusal.
        self._sent: RecentDict[str, tuple[InvokeModelContext, PreparedRequest]] = RecentDict()
        self._retried: RecentDict[str, bool] = RecentDict()
        self._preparer: RequestPreparer[InvokeModelContext] = RequestPreparer(
            manager,
            "strands",
            session_of=lambda context: self.session_of(context.agent),
            read=self._read,
            strict=strict,
        )

    def init_agent(self, agent: Agent) -> None:
        """Register with an agent."""
        session_id = self.session_of(agent)
        agent.add_middleware(InvokeModelStage.Input, self._before_model)
        agent.add_hook(self._after_model, AfterModelCallEvent)
        if type(agent.conversation_manager) is SlidingWindowConversationManager:
            agent.conversation_manager = NullConversationManager()
        if self._offer_recall and RECALL_NAME not in agent.tool_registry.registry:
            agent.tool_registry.process_tools([recall_tool(self.manager, session_id)])

    def session_of(self, agent: Any) -> str:
        """Return the id under which the manager knows an agent's conversation.

        Args:
            agent: An agent that has the plugin.

        Example:
            >>> plugin.session_of(agent)
            'chat-1'
        """
        if agent not in self._sessions:
            base = self._session_id or agent.session_id
            label = agent.name if agent.agent_id == "default" else agent.agent_id
            own = base if self._session_id or agent.agent_id == "default" else f"{base}:{label}"
            names = (own, f"{base}:{label}", f"{base}:{label}:{agent.session_id}")
            self._sessions[agent] = next(name for name in names if name not in set(self._sessions.values()))
        return self._sessions[agent]

    async def _before_model(self, context: InvokeModelContext) -> InvokeModelContext:
        """Compact what goes out; if that fails, it goes out as it is."""
        prepared = await self._preparer.aprepare(context)
        self._sent[prepared.session_id] = context, prepared
        return context if prepared.items is None else context.replace(messages=prepared.items)

    def _read(self, context: InvokeModelContext, session_id: str) -> OutgoingRequest:
        config: Mapping[str, Any] = context.model.get_config() or {}
        model = _model_name(context.model, config)
        outgoing = OutgoingRequest(
            items=context.messages,
            tools=tool_schemas(cast(Sequence[Any], context.tool_specs)),
            instructions=instruction_text(context.system_prompt),
            output_tokens=output_limit(config, config.get("params")) or litellm_limit(context.model, model),
            model=model,
            dialect=self._dialect,
        )
        self._last_requests[session_id] = replace(outgoing, items=())
        return outgoing

    async def _after_model(self, event: AfterModelCallEvent) -> None:
        """Take in what the provider has counted, or learn from its refusal."""
        session_id = self.session_of(event.agent)
        context, sent = self._sent.pop(session_id, (None, None))
        was_retry = self._retried.pop(session_id, False)
        if event.exception is not None:
            if context and sent and not was_retry:
                event.retry = await self._preparer.aprepare_again(context, sent, event.exception) is not None
                self._retried[session_id] = event.retry
            elif sent:
                await self._preparer.alearn(sent, event.exception)
            return
        answer: Mapping[str, Any] = event.stop_response.message if event.stop_response else {}
        usage: Mapping[str, Any] = (answer.get("metadata") or {}).get("usage") or {}
        told = counted(
            input_tokens(usage),
            cache_read=usage.get("cacheReadInputTokens"),
            cache_write=usage.get("cacheWriteInputTokens"),
        )
        await aobserve_usage(self.manager, session_id, told)

    def compact_after_overflow(self, session_id: str, messages: Sequence[Any]) -> None:
        """Compact a session whose request the provider found too large, so that the next one is smaller.

        The plugin does this by itself, once for each refused request, and by the figures in the provider's error.

        Args:
            session_id: Names the conversation.
            messages: The messages of the agent.

        Raises:
            UnknownSession: Nothing was sent in the session yet.
            InsufficientBudget: What must stay takes more tokens than there are.

        Example:
            >>> from compact.adapters.strands import StrandsDialect
            >>> history = [{"role": role, "content": [{"text": "word " * 300}]} for role in ("user", "assistant") * 20]
            >>> prompt = manager.preflight("chat-1", history, dialect=StrandsDialect())
            >>> plugin.compact_after_overflow("chat-1", history)
            >>> manager.current_plan("chat-1").version
            1
        """
        last = self._last_requests.get(session_id) or OutgoingRequest(items=(), dialect=self._dialect)
        self.manager.observe_overflow(session_id)
        self.manager.preflight(session_id, list(messages), **last.options)


def recall_tool(manager: CompactManager, session_id: str) -> Any:
    """Return the tool by which an agent reads what left its prompt.

    Args:
        manager: Keeps the sessions.
        session_id: The session to read.

    Example:
        >>> from compact import CompactManager
        >>> from compact.adapters.strands import recall_tool
        >>> recall_tool(CompactManager(), "chat-1").tool_name
        'recall'
    """
    tool = cast(Any, strands).tool  # its type is only partly known

    @tool(name=RECALL_NAME, description=RECALL_DESCRIPTION, inputSchema={"json": RECALL_PARAMETERS})
    def recall(query: str) -> str:
        return answer_recall(manager, session_id, {"query": query})

    return recall


def tool_schemas(specs: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return tool specifications as they are counted."""
    return [
        function_schema(spec["name"], spec.get("description"), spec["inputSchema"].get("json", spec["inputSchema"]))
        for spec in specs
    ]


def _model_name(model: object, config: Mapping[str, Any]) -> str:
    """Return the name of a model; Ollama's own say nothing of Ollama, which decides on the window."""
    name = str(config.get("model_id") or config.get("model") or "")
    return f"ollama/{name}" if name and type(model).__name__ == "OllamaModel" else name


def input_tokens(usage: Mapping[str, Any]) -> int:
    """Return all tokens that the model has read."""
    return prompt_tokens(
        reported=usage.get("inputTokens"), output=usage.get("outputTokens"), total=usage.get("totalTokens")
    )
