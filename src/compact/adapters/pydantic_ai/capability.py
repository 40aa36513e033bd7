"""pydantic-ai: a capability that compacts each request, and leaves the message history whole.

    from pydantic_ai import Agent
    from compact import CompactConfig, CompactManager
    from compact.adapters.pydantic_ai import CompactionCapability

    manager = CompactManager(CompactConfig(model="gpt-4o"))
    agent = Agent("openai:gpt-4o", capabilities=[CompactionCapability(manager)])

A prompt is protected by `protected(text)` in it, a tool's return by its metadata:
`ToolReturn(value, metadata={"compact": {"protected": True}})`. Metadata is never sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

try:
    from pydantic_ai import FunctionToolset, RunContext
    from pydantic_ai.capabilities import AbstractCapability
    from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse
    from pydantic_ai.models import ModelRequestContext, ModelRequestParameters
except ImportError as error:
    hint = 'hint: pip install "compact-context[pydantic-ai]"'
    raise ImportError(f"the pydantic-ai adapter needs the package pydantic-ai-slim\n{hint}") from error

from compact.adapters.failing_open import AS_IT_IS, tell, tell_failure
from compact.adapters.pydantic_ai_messages import PydanticAIDialect
from compact.adapters.pydantic_ai_messages import protected as protected
from compact.core.engine.events import NoticeEvent
from compact.manager import CompactManager
from compact.recall.tool import TOOL_NAME, TOOL_SCHEMA

__all__ = ["SUPPORTED_VERSIONS", "CompactionCapability", "protected"]

# `prepare_model_request`, which runs for the model that will answer and whose changes are never stored, is new in it.
SUPPORTED_VERSIONS = ">=2.66,<3"
SessionId: TypeAlias = str | Callable[[RunContext[Any]], str] | None

# The sessions of the runs that the code running now is inside of.
_open_runs: ContextVar[tuple[str, ...]] = ContextVar("compact_pydantic_ai_runs", default=())


@dataclass
class CompactionCapability(AbstractCapability[Any]):
    """Keeps the requests of an agent inside the window; one capability may serve several agents.

    A session is a conversation of pydantic-ai (`conversation_id`); an agent that is handed the history of the one that
    called it has its own. `session_id` names it instead: a text, or a function of the run's context. If anything of
    ours fails, the request goes out as it is and an event tells; `strict` raises instead.
    """

    manager: CompactManager
    session_id: SessionId = None
    offer_recall: bool = True
    strict: bool = False
    _dialect: PydanticAIDialect = field(init=False, repr=False)
    _session: str = field(default="", init=False, repr=False)
    _is_fitted: bool = field(default=False, init=False, repr=False)
    _has_stood_down: bool = field(default=False, init=False, repr=False)

    def __post_init__(self) -> None:
        self._dialect = PydanticAIDialect(self.manager.config.policy.protected_flag)

    @classmethod
    def get_serialization_name(cls) -> str | None:
        """It cannot be made from a file: it needs a manager."""
        return None

    async def for_run(self, ctx: RunContext[Any]) -> CompactionCapability:
        """One of its own for each run, which knows the session."""
        own = replace(self)
        try:
            own._session = _session_of(ctx, self.session_id)
        except Exception as error:
            own._went_wrong(error, "the session is the run")
            own._session = ctx.run_id or "run"
        return own

    def get_toolset(self) -> FunctionToolset[Any] | None:
        """The tool by which an agent reads what left its prompt."""
        if not self.offer_recall:
            return None

        async def recall(query: str) -> str:
            try:
                return str(await asyncio.to_thread(self.manager.recall, self._session, query))
            except Exception as error:
                tell_failure(self.manager, self._session, error, "the agent is told so")
                return f"nothing can be read now: {error}"

        toolset: FunctionToolset[Any] = FunctionToolset()
        toolset.add_function(recall, name=TOOL_NAME, description=TOOL_SCHEMA["function"]["description"])
        return toolset

    async def wrap_run(self, ctx: RunContext[Any], *, handler: Any) -> Any:
        """Agents that are called in this run can tell that they are inside of it."""
        token = _open_runs.set((*_open_runs.get(), self._session))
        try:
            return await handler()
        finally:
            _open_runs.reset(token)

    async def prepare_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Compact a request for the model that will get it."""
        self._is_fitted = False
        if self._stands_down(request_context):
            return request_context
        given = list(request_context.messages)
        try:
            messages = await self.manager.apreflight(
                self._session,
                given,
                tools=tool_schemas(request_context.model_request_parameters),
                instructions=_instructions(request_context.model_request_parameters),
                dialect=self._dialect,
            )
        except Exception as error:
            self._went_wrong(error, AS_IT_IS)
            return request_context
        self._is_fitted = True
        return replace(request_context, messages=_ending_like(messages, given))

    async def after_model_request(
        self, ctx: RunContext[Any], *, request_context: ModelRequestContext, response: ModelResponse
    ) -> ModelResponse:
        """Take in what the provider has counted."""
        tokens = response.usage.input_tokens
        if self._is_fitted and tokens:
            try:
                # It waits for whoever is in the session, which may be a task of this very loop.
                await asyncio.to_thread(self.manager.observe_usage, self._session, tokens)
            except Exception as error:
                self._went_wrong(error, "the reported usage is not taken in")
        return response

    def _stands_down(self, request_context: ModelRequestContext) -> bool:
        """True where the provider keeps the history, or an answer that it has begun is only to be continued."""
        settings: Any = request_context.model_settings or {}
        previous = settings.get("openai_previous_response_id")
        is_kept = bool(settings.get("openai_conversation_id")) or (bool(previous) and previous != "auto")
        if is_kept and not self._has_stood_down:
            self._has_stood_down = True
            message = "the model's provider keeps the history (by a conversation or response id): nothing is compacted"
            tell(self.manager, NoticeEvent(session_id=self._session, message=message))
        return is_kept

    def _went_wrong(self, error: Exception, fallback: str) -> None:
        if self.strict:
            raise error
        tell_failure(self.manager, self._session, error, fallback)


def _session_of(ctx: RunContext[Any], named: SessionId) -> str:
    """The conversation; inside of a run of the same one, a session of its own under it."""
    if named is not None:
        conversation = named(ctx) if callable(named) else named
    else:
        conversation = ctx.conversation_id or ctx.run_id or "conversation"
    if conversation not in _open_runs.get():
        return conversation
    name = (ctx.agent.name if ctx.agent else None) or "agent"
    return f"{conversation}/{name}-{ctx.run_id}"


def tool_schemas(parameters: ModelRequestParameters) -> list[dict[str, Any]]:
    """What is sent beside the messages for tools and structured answers, as it is counted."""
    shown = [
        tool
        for tool in (*parameters.function_tools, *parameters.output_tools)
        if not tool.defer_loading or tool.name in parameters.revealed_tool_names
    ]
    fields = [
        {"name": tool.name, "description": tool.description or "", "parameters": tool.parameters_json_schema}
        for tool in shown
    ]
    if answer := parameters.output_object:
        fields.append(
            {"name": answer.name or "", "description": answer.description or "", "parameters": answer.json_schema}
        )
    return [{"type": "function", "function": function} for function in fields]


def _instructions(parameters: ModelRequestParameters) -> str:
    return "\n\n".join(part.content for part in parameters.instruction_parts or ())


def _ending_like(messages: Sequence[ModelMessage], given: Sequence[ModelMessage]) -> list[ModelMessage]:
    """A prompt whose last request says of itself what the given one said: its instructions, its run."""
    last, own = messages[-1], given[-1]
    if last is own or not (isinstance(last, ModelRequest) and isinstance(own, ModelRequest)):
        return list(messages)
    return [*messages[:-1], replace(own, parts=list(last.parts))]
