"""The hook for graphs of LangGraph without LangChain's middleware: `create_react_agent`, and nodes of one's own.

Such a hook sees the state and the run's configuration, and nothing of the model call that comes after it. So what is
sent beside the messages is passed in, and what the model counted is read from its answer once that is in the state.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda

from compact.adapters.langchain.called_model import CalledModel, called_model
from compact.adapters.langchain.messages import LangChainDialect, without_mark
from compact.adapters.langchain.middleware import SessionId, reported_usage, schemas_of, session_of
from compact.adapters.support import (
    OutgoingRequest,
    PreparedRequest,
    RecentDict,
    RequestPreparer,
    aobserve_usage,
    is_mapping,
    observe_usage,
)
from compact.manager import CompactManager

# The key under which LangGraph's prebuilt agent takes messages that go to the model and not into the state.
SENT_MESSAGES = "llm_input_messages"


def compaction_hook(
    manager: CompactManager,
    *,
    model: Any = "",
    tools: Sequence[Any] = (),
    instructions: str = "",
    output_tokens: int = 0,
    session_id: SessionId = None,
    strict: bool = False,
) -> Runnable[Any, dict[str, list[AnyMessage]]]:
    """Return what to pass as `create_react_agent(pre_model_hook=…)`, or to call in a node of your own graph.

    It takes the state and returns `{"llm_input_messages": […]}`, what is to be sent; the state stays whole. LangGraph
    does not show a hook what is sent beside the messages: pass the same as the agent has.

    Args:
        manager: Keeps the sessions.
        model: The chat model, which tells its name and the limit of its answer, or its name.
        tools: The agent's tools, so that they are counted.
        instructions: The agent's prompt, so that it is counted.
        output_tokens: The tokens that a request sets aside for its answer, if the model does not tell.
        session_id: Names the session instead of the thread: a text, or a function of the run's configuration.
        strict: Raise what goes wrong; by default the messages are sent as they are then, and an event says why.

    Example:
        >>> from langchain_core.messages import HumanMessage
        >>> from compact import CompactConfig, CompactManager
        >>> from compact.adapters.langchain import compaction_hook
        >>> hook = compaction_hook(CompactManager(CompactConfig(model="gpt-4o")), session_id="chat-1")
        >>> hook.invoke({"messages": [HumanMessage("Hello")]})["llm_input_messages"][0].content
        'Hello'
    """
    called = CalledModel(model, 0) if isinstance(model, str) else called_model(model)
    beside = OutgoingRequest(
        items=(),
        tools=[schema for tool in tools for schema in schemas_of(tool)],
        instructions=instructions,
        output_tokens=output_tokens or called.output_tokens,
        model=called.name,
        dialect=LangChainDialect(),
    )
    hook = _GraphHook(manager, beside, session_id, strict)
    return RunnableLambda(hook.call, hook.acall, name="compact")


@dataclass(frozen=True, slots=True)
class _GraphState:
    """The messages of a state, and the configuration of its run."""

    messages: Sequence[AnyMessage]
    config: RunnableConfig

    @classmethod
    def read(cls, state: Any, config: RunnableConfig) -> _GraphState:
        found: Any = state.get("messages") if is_mapping(state) else getattr(state, "messages", None)
        return cls(list(found or ()), config)


class _GraphHook:
    def __init__(self, manager: CompactManager, beside: OutgoingRequest, session_id: SessionId, strict: bool) -> None:
        self._manager = manager
        self._beside = beside
        # How many messages a session's last prompt was made from, and the id of the last of them.
        self._answered: RecentDict[str, tuple[int, str | None]] = RecentDict()
        self._preparer: RequestPreparer[_GraphState] = RequestPreparer(
            manager,
            "langgraph",
            session_of=lambda state: session_of(state.config, state.messages, session_id),
            read=self._read,
            strict=strict,
        )
        self._session_id = session_id

    def call(self, state: Any, config: RunnableConfig) -> dict[str, list[AnyMessage]]:
        """Take in what the last answer cost, and return what is to be sent."""
        given = _GraphState.read(state, config)
        for session_id, usage in self._new_usage(given):
            observe_usage(self._manager, session_id, usage)
        return self._sent(given, self._preparer.prepare(given))

    async def acall(self, state: Any, config: RunnableConfig) -> dict[str, list[AnyMessage]]:
        """Do what `call` does in an event loop."""
        given = _GraphState.read(state, config)
        for session_id, usage in self._new_usage(given):
            await aobserve_usage(self._manager, session_id, usage)
        return self._sent(given, await self._preparer.aprepare(given))

    def _new_usage(self, state: _GraphState) -> list[tuple[str, object]]:
        """Return the session and what its model has counted, once, if the answer to its last prompt is in the state."""
        if not self._answered:
            return []
        try:
            session_id = session_of(state.config, state.messages, self._session_id)
        except Exception:  # noqa: BLE001 - the user's function; the request that is prepared next reports it
            return []
        count, last_id = self._answered.pop(session_id, (0, None))
        if not 0 < count < len(state.messages) or state.messages[count - 1].id != last_id:
            return []  # the state was edited: whose answer comes next is not known
        answer = next((message for message in state.messages[count:] if isinstance(message, AIMessage)), None)
        return [(session_id, reported_usage(answer))]

    def _read(self, state: _GraphState, session_id: str) -> OutgoingRequest:
        return replace(self._beside, items=state.messages)

    def _sent(self, state: _GraphState, prepared: PreparedRequest) -> dict[str, list[AnyMessage]]:
        if prepared.items is not None and state.messages:
            self._answered[prepared.session_id] = (len(state.messages), state.messages[-1].id)
        items = state.messages if prepared.items is None else prepared.items
        return {SENT_MESSAGES: [without_mark(message) for message in items]}
