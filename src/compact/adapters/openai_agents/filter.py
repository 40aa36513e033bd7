"""OpenAI Agents SDK: a filter for each model call, hooks for usage, and the tool that reads what left the prompt.

    from agents import Agent, RunConfig, Runner
    from compact import CompactConfig, CompactManager
    from compact.adapters.openai_agents import CompactionHooks, compaction_filter, recall_tool

    manager = CompactManager(CompactConfig(model="gpt-4o"))
    agent = Agent(name="Clerk", tools=[recall_tool(manager)])
    config = RunConfig(call_model_input_filter=compaction_filter(manager, session_id="chat-1"))
    result = await Runner.run(agent, "…", run_config=config, hooks=CompactionHooks(manager))

Only requests are compacted: sessions and `result.to_input_list()` keep the whole history. An input item is protected
by `"meta": {"protected": True}`, which never reaches the provider.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

try:
    from agents import Agent, FunctionTool, RunContextWrapper, RunHooks, custom_span, get_current_trace
    from agents.items import ModelResponse
    from agents.run import CallModelData, ModelInputData
    from agents.tool_context import ToolContext
except ImportError as error:
    raise ImportError(
        "the Agents SDK adapter needs the package openai-agents (and no other package or folder named agents)\n"
        'hint: pip install "compact-context[openai-agents]"'
    ) from error

from compact.adapters.failing_open import tell, tell_failure, without_marks
from compact.adapters.openai_agents_schemas import tool_schemas
from compact.adapters.openai_agents_session import CompactSession as CompactSession
from compact.adapters.which_session import SessionFinder
from compact.core.engine.events import NoticeEvent
from compact.manager import CompactManager
from compact.recall.tool import TOOL_NAME, TOOL_SCHEMA, answer_tool_call

__all__ = ["SUPPORTED_VERSIONS", "CompactSession", "CompactionHooks", "compaction_filter", "recall_tool"]

SUPPORTED_VERSIONS = ">=0.24,<1"
SessionId: TypeAlias = str | Callable[[CallModelData[Any]], str] | None
_TRACELESS = "no-op"


@dataclass(slots=True)
class _Under:
    """The session that the code running now works for; hooks and tools are not told by the SDK.

    `awaits_usage` is true between a request that we made and its answer: no other usage is about our prompt.
    """

    manager: CompactManager
    session_id: str
    awaits_usage: bool = False
    # True as long as the session is at what this run has sent, and has not gone on for somebody else.
    is_ours: Callable[[], bool] = lambda: True


_current: ContextVar[_Under | None] = ContextVar("compact_agents_session", default=None)


def compaction_filter(
    manager: CompactManager, *, session_id: SessionId = None, strict: bool = False
) -> Callable[[CallModelData[Any]], Awaitable[ModelInputData]]:
    """What to pass as `RunConfig(call_model_input_filter=…)`.

    `session_id` names the conversation, or tells its name from the call (`lambda data: data.context.chat_id`); without
    it a conversation is known by its history for as long as the process lives. Agents that are tools of another have
    a state of their own. If compaction fails the request goes out as it is, unless `strict`.
    """
    return _Filter(manager, session_id, strict)


@dataclass(slots=True)
class _Filter:
    manager: CompactManager
    session_id: SessionId
    strict: bool
    _finder: SessionFinder = field(default_factory=lambda: SessionFinder("agents"))
    _stood_down: set[str] = field(default_factory=set[str])

    async def __call__(self, data: CallModelData[Any]) -> ModelInputData:
        """The input that the model gets."""
        items, instructions = list(data.model_data.input), data.model_data.instructions
        session_id = "agents"
        _current.set(None)
        try:
            base = self.session_id(data) if callable(self.session_id) else self.session_id or ""
            session_id = base or session_id
            if self._is_kept_by_the_server(base, items):
                return ModelInputData(input=without_marks(items), instructions=instructions)
            session_id = self._finder.find(items, base=base, speaker=data.agent.name)
            # Whoever gives no name may share one with others who began alike, until they part.
            is_ours = _always if base else partial(self._finder.is_at, session_id, items)
            under = _Under(self.manager, session_id, is_ours=is_ours)
            _current.set(under)
            with _span(session_id, items) as span:
                sent = await self.manager.apreflight(
                    session_id,
                    items,
                    tools=tool_schemas(data.agent),
                    instructions=instructions or "",
                    dialect="responses",
                )
                _note(span, sent)
            under.awaits_usage = True
        except Exception as error:
            if self.strict:
                raise
            tell_failure(self.manager, session_id, error)
            sent = without_marks(items)
        return ModelInputData(input=sent, instructions=instructions)

    def _is_kept_by_the_server(self, base: str, items: Sequence[Any]) -> bool:
        """True if a server has the history, and this is only what is new: nothing of it may be changed."""
        if _is_delta(items):
            if base not in self._stood_down:
                message = "the server keeps this conversation: it is not compacted here"
                tell(self.manager, NoticeEvent(session_id=base, message=message))
            self._stood_down.add(base)
            return True
        # A named conversation stays what it is; its next turn may begin with nothing but a question.
        return bool(base) and base in self._stood_down and not any(map(_is_by_model, items))


class CompactionHooks(RunHooks[Any]):
    """Takes in the tokens that the provider has counted; pass it as `Runner.run(…, hooks=CompactionHooks(manager))`."""

    def __init__(self, manager: CompactManager) -> None:
        self._manager = manager

    async def on_llm_end(self, context: RunContextWrapper[Any], agent: Agent[Any], response: ModelResponse) -> None:
        """Correct the estimate by what the last request really took."""
        under = _current.get()
        if under is None or under.manager is not self._manager or not under.awaits_usage:
            return
        under.awaits_usage = False
        if response.usage.input_tokens <= 0:
            return
        try:
            await asyncio.to_thread(self._manager.observe_usage, under.session_id, response.usage.input_tokens)
        except Exception as error:
            tell_failure(self._manager, under.session_id, error, "the reported usage is not taken in")


def recall_tool(manager: CompactManager, *, session_id: str | None = None, max_tokens: int = 2000) -> FunctionTool:
    """The tool by which an agent reads what left its prompt; by default in the conversation that calls it."""

    async def invoke(context: ToolContext[Any], arguments: str) -> str:
        under = _current.get()
        here = session_id or (under.session_id if under and under.manager is manager else None)
        if here is None or (session_id is None and under and not under.is_ours()):
            return "nothing has left this conversation"

        def recall(query: str) -> object:
            return manager.recall(here, query, max_tokens=max_tokens)

        try:
            return await asyncio.to_thread(answer_tool_call, recall, arguments)
        except Exception as error:
            tell_failure(manager, here, error, "the tool says that it failed")
            return f"nothing could be read: {error}"

    function = TOOL_SCHEMA["function"]
    return FunctionTool(
        name=TOOL_NAME,
        description=function["description"],
        params_json_schema=function["parameters"],
        on_invoke_tool=invoke,
    )


def _always() -> bool:
    return True


def _is_delta(items: Sequence[Any]) -> bool:
    """True for results without anything that a model has made: their calls are elsewhere."""
    has_results = any(str(item.get("type", "")).endswith(("_output", "_response")) for item in items)
    return has_results and not any(map(_is_by_model, items))


def _is_by_model(item: Any) -> bool:
    kind = str(item.get("type", ""))
    return item.get("role") == "assistant" or kind == "reasoning" or kind.endswith(("_call", "_request"))


def _span(session_id: str, items: Sequence[Any]) -> AbstractContextManager[Any]:
    """A span below the turn's own; outside of a trace there is nothing to put it in."""
    trace = get_current_trace()
    if trace is None or trace.trace_id == _TRACELESS:
        return nullcontext()
    return custom_span("compact.preflight", {"session_id": session_id, "items_before": len(items)})


def _note(span: Any, sent: Sequence[Any]) -> None:
    if span is not None:
        span.span_data.data["items_after"] = len(sent)
