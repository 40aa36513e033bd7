"""The capability that compacts each request of an agent, takes in its usage, and offers the recall tool."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from pydantic_ai import FunctionToolset, RunContext
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import RetryModelRequest
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse
from pydantic_ai.models import Model, ModelRequestContext, ModelRequestParameters
from pydantic_ai.models.fallback import FallbackModel

from compact.adapters.pydantic_ai.messages import PydanticAIDialect
from compact.adapters.support import (
    RECALL_DESCRIPTION,
    RECALL_NAME,
    OutgoingRequest,
    PreparedRequest,
    RequestPreparer,
    aanswer_recall,
    aobserve_usage,
    counted,
    function_schema,
    is_mapping,
    named_session,
    output_limit,
    report_failure,
)
from compact.manager import CompactManager
from compact.tokens import model_info

SessionId: TypeAlias = str | Callable[[RunContext[Any]], str] | None

# What pydantic-ai asks an older Claude model for, and beyond what another may think.
_LEGACY_OUTPUT_TOKENS = 4_096
# The sessions of the runs that the code running now is inside of.
_open_runs: ContextVar[tuple[str, ...]] = ContextVar("compact_pydantic_ai_runs", default=())


@dataclass
class CompactionCapability(AbstractCapability[Any]):
    """Keeps the requests of an agent inside the window; one capability may serve several agents.

    A session is a conversation of pydantic-ai (`conversation_id`); an agent that is handed the history of the one that
    called it has its own.

    Args:
        manager: Keeps the sessions.
        session_id: Names the session instead: a text, or a function of the run's context.
        offer_recall: Give the agent the recall tool.
        strict: Raise what goes wrong; by default the request goes out as it is then, and an event says why.

    Example:
        >>> from pydantic_ai import Agent
        >>> from compact import CompactConfig, CompactManager
        >>> from compact.adapters.pydantic_ai import CompactionCapability
        >>> manager = CompactManager(CompactConfig(model="gpt-4o"))
        >>> agent = Agent("test", capabilities=[CompactionCapability(manager)])  # or "openai:gpt-4o"
    """

    manager: CompactManager
    session_id: SessionId = None
    offer_recall: bool = True
    strict: bool = False
    _dialect: PydanticAIDialect = field(init=False, repr=False)
    _preparer: RequestPreparer[ModelRequestContext] = field(init=False, repr=False)
    _session: str = field(default="", init=False, repr=False)
    _sent: PreparedRequest | None = field(default=None, init=False, repr=False)
    _is_retry: bool = field(default=False, init=False, repr=False)

    def __post_init__(self) -> None:
        self._dialect = PydanticAIDialect(self.manager.config.policy.protected_flag)
        self._preparer = RequestPreparer(
            self.manager, "pydantic_ai", session_of=lambda _: self._session, read=self._read, strict=self.strict
        )

    @classmethod
    def get_serialization_name(cls) -> str | None:
        """Return None: it cannot be made from a file, because it needs a manager."""
        return None

    async def for_run(self, ctx: RunContext[Any]) -> CompactionCapability:
        """Return a capability for one run, which knows its session."""
        own = replace(self)
        own._choose_session(ctx)
        return own

    def _choose_session(self, ctx: RunContext[Any]) -> None:
        try:
            self._session = _session_of(ctx, self.session_id)
        except Exception as error:  # the user's own function may raise anything
            if self.strict:
                raise
            self._session = ctx.run_id or "run"
            report_failure(self.manager, self._session, error, "the session is the run")

    def get_toolset(self) -> FunctionToolset[Any] | None:
        """Return the tool by which an agent reads what left its prompt."""
        if not self.offer_recall:
            return None

        async def recall(query: str) -> str:
            return await aanswer_recall(self.manager, self._session, {"query": query})

        toolset: FunctionToolset[Any] = FunctionToolset()
        toolset.add_function(recall, name=RECALL_NAME, description=RECALL_DESCRIPTION)
        return toolset

    async def wrap_run(self, ctx: RunContext[Any], *, handler: Any) -> Any:
        """Run an agent; agents that are called meanwhile find its session in `_open_runs`."""
        token = _open_runs.set((*_open_runs.get(), self._session))
        try:
            return await handler()
        finally:
            _open_runs.reset(token)

    async def prepare_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Compact a request for the model that will get it."""
        prepared = await self._preparer.aprepare(request_context)
        self._sent = prepared
        return request_context if prepared.items is None else replace(request_context, messages=prepared.items)

    def _read(self, request_context: ModelRequestContext, session_id: str) -> OutgoingRequest | None:
        settings: Any = request_context.model_settings or {}
        previous = settings.get("openai_previous_response_id")
        if settings.get("openai_conversation_id") or (previous and previous != "auto"):
            self._preparer.notice_provider_keeps_history(session_id, "by a conversation or response id")
            return None
        given = list(request_context.messages)
        parameters = request_context.model_request_parameters
        return OutgoingRequest(
            items=given,
            tools=tool_schemas(parameters),
            instructions="\n\n".join(part.content for part in parameters.instruction_parts or ()),
            output_tokens=output_tokens(settings, request_context.model.profile),
            model=model_name(request_context.model),
            dialect=self._dialect,
            restore=lambda messages: _ending_like(messages, given),
        )

    async def after_model_request(
        self, ctx: RunContext[Any], *, request_context: ModelRequestContext, response: ModelResponse
    ) -> ModelResponse:
        """Take in what the provider has counted."""
        self._is_retry = False
        if self._sent and self._sent.items is not None:
            usage = response.usage
            told = counted(usage.input_tokens, cache_read=usage.cache_read_tokens, cache_write=usage.cache_write_tokens)
            await aobserve_usage(self.manager, self._session, told)
        return response

    async def on_model_request_error(
        self, ctx: RunContext[Any], *, request_context: ModelRequestContext, error: Exception
    ) -> ModelResponse:
        """Learn from a request that was refused as too long, and have it made once more, smaller."""
        was_retry, self._is_retry = self._is_retry, False
        if self._sent and was_retry:
            await self._preparer.alearn(self._sent, error)
        elif self._sent and await self._preparer.aprepare_again(request_context, self._sent, error):
            self._is_retry = True
            raise RetryModelRequest from error
        raise error


def _session_of(ctx: RunContext[Any], named: SessionId) -> str:
    """Return the conversation; inside of a run of the same one, a session of its own below it."""
    conversation = named_session(named, ctx) or ctx.conversation_id or ctx.run_id or "conversation"
    if conversation not in _open_runs.get():
        return conversation
    name = (ctx.agent.name if ctx.agent else None) or "agent"
    return f"{conversation}/{name}-{ctx.run_id}"


def tool_schemas(parameters: ModelRequestParameters) -> list[dict[str, Any]]:
    """Return what is sent beside the messages for tools and structured answers, as it is counted."""
    schemas = [
        function_schema(tool.name, tool.description, tool.parameters_json_schema)
        for tool in (*parameters.function_tools, *parameters.output_tools)
        if not tool.defer_loading or tool.name in parameters.revealed_tool_names
    ]
    if answer := parameters.output_object:
        schemas.append(function_schema(answer.name or "", answer.description, answer.json_schema))
    return schemas


def model_name(model: Model) -> str:
    """Return the name of the model that gets a request; of several in turn, the one with the smallest window."""
    if not isinstance(model, FallbackModel):
        return model.model_name
    names = [model_name(one) for one in model.models]
    return min(names, key=lambda name: model_info(name).largest_input_tokens, default="")


def output_tokens(settings: Any, profile: object) -> int:
    """Return the most tokens that an answer may have; by default a Claude model is asked for all that it can write."""
    given = output_limit(settings)
    if given or not is_mapping(profile):
        return given
    thinking = settings.get("anthropic_thinking")
    budget: int = thinking.get("budget_tokens") or 0 if is_mapping(thinking) else 0
    is_legacy = profile.get("anthropic_rejects_max_tokens_beyond_context_window")
    default = _LEGACY_OUTPUT_TOKENS if is_legacy else profile.get("anthropic_max_output_tokens") or 0
    return max(default, budget + _LEGACY_OUTPUT_TOKENS if budget else 0)


def _ending_like(messages: Sequence[ModelMessage], given: Sequence[ModelMessage]) -> list[ModelMessage]:
    """Return a prompt whose last request has the instructions and the run of the last given one."""
    last, own = messages[-1], given[-1]
    if last is own or not (isinstance(last, ModelRequest) and isinstance(own, ModelRequest)):
        return list(messages)
    return [*messages[:-1], replace(own, parts=list(last.parts))]
