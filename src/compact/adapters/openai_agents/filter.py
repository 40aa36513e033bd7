"""The filter for the input of each model call, the hooks that take in usage, and the recall tool."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

from agents import Agent, FunctionTool, RunContextWrapper, RunHooks, custom_span, get_current_trace
from agents.items import ModelResponse
from agents.run import CallModelData, ModelInputData
from agents.tool_context import ToolContext

from compact.adapters.openai_agents.schemas import model_name, output_tokens, tool_schemas
from compact.adapters.support import (
    RECALL_DESCRIPTION,
    RECALL_NAME,
    RECALL_PARAMETERS,
    OutgoingRequest,
    PreparedRequest,
    RecentDict,
    RequestPreparer,
    SessionFinder,
    aanswer_recall,
    aobserve_usage,
    checked_manager,
    counted,
    named_session,
)
from compact.manager import CompactManager

SessionId: TypeAlias = str | Callable[[CallModelData[Any]], str] | None
_DISABLED_TRACE = "no-op"  # the SDK's id of a trace that is switched off


@dataclass(slots=True)
class _CurrentSession:
    """The session that the code running now works for: the SDK does not say so to its hooks and tools.

    `awaits_usage` is true between a request that was prepared and its answer: no other usage is about its prompt.
    """

    manager: CompactManager
    session_id: str
    is_ours: Callable[[], bool]
    preparer: RequestPreparer[CallModelData[Any]]
    data: CallModelData[Any]
    sent: PreparedRequest
    awaits_usage: bool = False

    async def observe(self, usage: Any) -> None:
        """Take in usage, if it is the first that is reported about a prepared prompt; the next one is not."""
        was_awaited, self.awaits_usage = self.awaits_usage, False
        if was_awaited:
            await aobserve_usage(self.manager, self.session_id, _counted(usage))

    async def smaller_input(self, error: Exception) -> list[Any] | None:
        """Return a smaller input for one that was refused as too long; None for other errors."""
        again = await self.preparer.aprepare_again(self.data, self.sent, error)
        if again is None:
            return None
        self.sent, self.awaits_usage = again, True
        return again.items

    async def learn(self, error: Exception) -> None:
        """Learn from a second refusal."""
        await self.preparer.alearn(self.sent, error)


_current: ContextVar[_CurrentSession | None] = ContextVar("compact_agents_session", default=None)


def current_session() -> _CurrentSession | None:
    """Return the session that the code running now works for, once a filter has prepared its input."""
    return _current.get()


def _counted(usage: Any) -> object:
    """Return what the SDK says that a provider has counted: its own report, or that of a response."""
    details = usage.input_tokens_details
    written = getattr(details, "cache_write_tokens", None)  # not in every version
    return counted(usage.input_tokens, cache_read=getattr(details, "cached_tokens", None), cache_write=written)


def compaction_filter(
    manager: CompactManager,
    *,
    session_id: SessionId = None,
    model: str = "",
    output_tokens: int = 0,
    strict: bool = False,
) -> Callable[[CallModelData[Any]], Awaitable[ModelInputData]]:
    """Return what to pass as `RunConfig(call_model_input_filter=…)`.

    Without a `session_id` a session is known by its history for as long as the process lives. An agent that is a tool
    of another has a session of its own. Model and `max_tokens` are the agent's. The SDK does not show its filter what
    `RunConfig` sets in their place: if it does, pass the same as `model` and `output_tokens`.

    Args:
        manager: Keeps the sessions.
        session_id: Names the session: a text, or a function of the call (`lambda data: data.context.chat_id`).
        model: The model that `RunConfig` sets, if it sets one.
        output_tokens: The `max_tokens` that `RunConfig` sets, if it sets them.
        strict: Raise what goes wrong; by default the request goes out as it is then, and an event says why.

    Example:
        >>> from agents import RunConfig
        >>> from compact import CompactConfig, CompactManager
        >>> from compact.adapters.openai_agents import compaction_filter
        >>> manager = CompactManager(CompactConfig(model="gpt-4o"))
        >>> config = RunConfig(call_model_input_filter=compaction_filter(manager, session_id="chat-1"))
    """
    return _CompactionFilter(manager, session_id, model, output_tokens, strict)


class _CompactionFilter:
    def __init__(
        self, manager: CompactManager, session_id: SessionId, model: str, output_tokens: int, strict: bool
    ) -> None:
        self._manager = manager
        self._session_id = session_id
        self._model, self._output_tokens = model, output_tokens
        self._finder = SessionFinder("agents", is_busy=checked_manager(manager).is_busy)
        self._kept_by_server: RecentDict[str, None] = RecentDict()
        self._preparer: RequestPreparer[CallModelData[Any]] = RequestPreparer(
            manager, "agents", session_of=self._session_of, read=self._read, strict=strict
        )

    async def __call__(self, data: CallModelData[Any]) -> ModelInputData:
        """Return the input that the model gets."""
        items = list(data.model_data.input)
        _current.set(None)
        with _span(items) as span:
            prepared = await self._preparer.aprepare(data)
            _describe(span, prepared)
        if prepared.items is not None or prepared.error is not None:
            self._set_current(prepared, data, items)
        return ModelInputData(input=prepared.items_or(items), instructions=data.model_data.instructions)

    def _set_current(self, prepared: PreparedRequest, data: CallModelData[Any], items: Sequence[Any]) -> None:
        if not prepared.session_id:
            return
        # A session that nobody named may be shared with others who began alike, until their histories differ.
        is_ours = partial(self._finder.is_latest, prepared.session_id, items)
        _current.set(
            _CurrentSession(
                self._manager,
                prepared.session_id,
                is_ours,
                preparer=self._preparer,
                data=data,
                sent=prepared,
                awaits_usage=prepared.items is not None,
            )
        )

    def _session_of(self, data: CallModelData[Any]) -> str:
        base = named_session(self._session_id, data)
        items = data.model_data.input
        if self._is_kept_by_server(base, items):
            return base
        return self._finder.find(items, base=base, agent=data.agent.name)

    def _read(self, data: CallModelData[Any], session_id: str) -> OutgoingRequest | None:
        if self._is_kept_by_server(session_id, data.model_data.input):
            self._kept_by_server[session_id] = None
            self._preparer.notice_provider_keeps_history(session_id, "only new items are sent")
            return None
        return OutgoingRequest(
            items=data.model_data.input,
            tools=tool_schemas(data.agent),
            instructions=data.model_data.instructions or "",
            output_tokens=self._output_tokens or output_tokens(data.agent),
            model=self._model or model_name(data.agent),
            dialect="responses",
        )

    def _is_kept_by_server(self, session_id: str, items: Sequence[Any]) -> bool:
        """Return True if the server has the history and these are only the new items: none of them may be changed."""
        if _is_delta(items):
            return True
        # A named session stays what it was; its next turn may begin with nothing but a question.
        is_known = bool(session_id) and session_id in self._kept_by_server
        return is_known and not any(map(_is_by_model, items))


class CompactionHooks(RunHooks[Any]):
    """Takes in the tokens that the provider has counted, which corrects the estimate.

    Args:
        manager: The one whose `compaction_filter` the run has.

    Example:
        >>> from compact import CompactManager
        >>> from compact.adapters.openai_agents import CompactionHooks
        >>> hooks = CompactionHooks(CompactManager())  # Runner.run(…, hooks=hooks)
    """

    def __init__(self, manager: CompactManager) -> None:
        self._manager = manager

    async def on_llm_end(self, context: RunContextWrapper[Any], agent: Agent[Any], response: ModelResponse) -> None:
        """Correct the estimate by what the last request really took."""
        current = _current.get()
        if current is not None and current.manager is self._manager:
            await current.observe(response.usage)


def recall_tool(manager: CompactManager, *, session_id: str | None = None, max_tokens: int = 2000) -> FunctionTool:
    """Return the tool by which an agent reads what left its prompt.

    Args:
        manager: Keeps the sessions.
        session_id: The session to read; by default the one that calls the tool.
        max_tokens: The most tokens of an answer.

    Example:
        >>> from agents import Agent
        >>> from compact import CompactManager
        >>> from compact.adapters.openai_agents import recall_tool
        >>> agent = Agent(name="Reader", tools=[recall_tool(CompactManager())])
    """

    async def invoke(context: ToolContext[Any], arguments: str) -> str:
        current = _current.get()
        here = session_id
        if here is None and current and current.manager is manager and current.is_ours():
            here = current.session_id
        if here is None:
            return "nothing has left this conversation"
        return await aanswer_recall(manager, here, arguments, max_tokens=max_tokens)

    return FunctionTool(
        name=RECALL_NAME,
        description=RECALL_DESCRIPTION,
        params_json_schema=RECALL_PARAMETERS,
        on_invoke_tool=invoke,
    )


def _is_delta(items: Sequence[Any]) -> bool:
    """Return True for results without anything that a model has made: their calls are on the server."""
    has_results = any(str(item.get("type", "")).endswith(("_output", "_response")) for item in items)
    return has_results and not any(map(_is_by_model, items))


def _is_by_model(item: Any) -> bool:
    kind = str(item.get("type", ""))
    return item.get("role") == "assistant" or kind == "reasoning" or kind.endswith(("_call", "_request"))


def _span(items: Sequence[Any]) -> AbstractContextManager[Any]:
    """Return a span below that of the turn; outside of a trace, and for new items only, there is nothing to show."""
    trace = get_current_trace()
    if trace is None or trace.trace_id == _DISABLED_TRACE or _is_delta(items):
        return nullcontext()
    return custom_span("compact.preflight", {"items_before": len(items)})


def _describe(span: Any, prepared: PreparedRequest) -> None:
    if span is not None:
        span.span_data.data["session_id"] = prepared.session_id
        if prepared.items is not None:
            span.span_data.data["items_after"] = len(prepared.items)
