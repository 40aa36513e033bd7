"""The plugin that compacts each request of every agent of an app, and the recall tool that it offers."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from google.adk.agents.callback_context import CallbackContext
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.tool_context import ToolContext
from google.genai import types

from compact.adapters.support import (
    RECALL_DESCRIPTION,
    RECALL_NAME,
    RECALL_PARAMETERS,
    USAGE_IGNORED,
    OutgoingRequest,
    PlainItems,
    PreparedRequest,
    RecentDict,
    RequestPreparer,
    aanswer_recall,
    aobserve_usage,
    counted,
    function_schema,
    instruction_text,
    litellm_limit,
    named_session,
    output_limit,
    report_failure,
)
from compact.dialects.dialect import META
from compact.manager import CompactManager

# The key in `part_metadata` under which a message is tagged.
TAGS = "compact"
SessionId: TypeAlias = str | Callable[[CallbackContext], str] | None


def protected(content: types.Content) -> types.Content:
    """Tag a content so that it always stays in the prompt, and return it.

    Args:
        content: A content with at least one part.

    Raises:
        ValueError: The content has no part.

    Example:
        >>> from google.genai import types
        >>> from compact.adapters.google_adk import protected
        >>> rule = protected(types.Content(role="user", parts=[types.Part(text="Never round a figure.")]))
        >>> rule.parts[0].part_metadata
        {'compact': {'protected': True}}
    """
    if not content.parts:
        raise ValueError("a content without parts cannot be protected")
    first = content.parts[0]
    metadata = first.part_metadata or {}
    first.part_metadata = {**metadata, TAGS: {**metadata.get(TAGS, {}), "protected": True}}
    return content


@dataclass(frozen=True, slots=True)
class _Request:
    """A request, and the context in which an agent makes it."""

    context: CallbackContext
    llm_request: LlmRequest


class AdkCompactionPlugin(BasePlugin):
    """Keeps the requests of all agents of an app inside the window.

    A session of the manager is one agent's view of a session of ADK: `app/user/session` for the root agent, with the
    agent's name behind it for the others.

    Args:
        manager: Keeps the sessions.
        session_id: Names the first part of the session instead: a text, or a function of the callback context.
        offer_recall: Give each agent the recall tool.
        is_protected: Says which other contents must stay, for session services that drop tags.
        strict: Raise what goes wrong; by default the request goes out as it is then, and an event says why.
        name: The name of the plugin in ADK.

    Example:
        >>> from google.adk.agents import LlmAgent
        >>> from google.adk.apps import App
        >>> from compact import CompactConfig, CompactManager
        >>> from compact.adapters.google_adk import AdkCompactionPlugin
        >>> manager = CompactManager(CompactConfig(model="gemini-2.5-pro"))
        >>> agent = LlmAgent(name="reader", model="gemini-2.5-pro")
        >>> app = App(name="station", root_agent=agent, plugins=[AdkCompactionPlugin(manager)])
    """

    def __init__(
        self,
        manager: CompactManager,
        *,
        session_id: SessionId = None,
        offer_recall: bool = True,
        is_protected: Callable[[types.Content], bool] | None = None,
        strict: bool = False,
        name: str = "compact",
    ) -> None:
        super().__init__(name=name)
        self._manager = manager
        self._session_id = session_id
        self._is_protected = is_protected
        self._sent: RecentDict[str, PreparedRequest] = RecentDict()  # what sessions wait for an answer to
        self._recall = RecallTool(manager, self.session_of) if offer_recall else None
        self._preparer: RequestPreparer[_Request] = RequestPreparer(
            manager,
            "google_adk",
            session_of=lambda request: self.session_of(request.context),
            read=self._read,
            strict=strict,
        )

    def session_of(self, context: CallbackContext) -> str:
        """Return the id under which the manager knows what an agent is shown of a session.

        Args:
            context: The callback context of ADK.

        Example:
            >>> plugin = AdkCompactionPlugin(manager)
            >>> def after_agent(callback_context):  # a callback of your own
            ...     print(manager.status(plugin.session_of(callback_context)))
            >>> agent = LlmAgent(name="reader", model="gemini-2.5-pro", after_agent_callback=after_agent)
        """
        base = named_session(self._session_id, context)
        if not base:
            session = context.session
            base = f"{session.app_name}/{session.user_id}/{session.id}"
        root = getattr(getattr(context.get_invocation_context(), "agent", None), "root_agent", None)
        return base if root is None or root.name == context.agent_name else f"{base}/{context.agent_name}"

    async def before_model_callback(self, *, callback_context: CallbackContext, llm_request: LlmRequest) -> None:
        """Compact what goes out; if that fails, it goes out as it is."""
        try:
            prepared = await self._preparer.aprepare(_Request(callback_context, llm_request))
            self._sent[prepared.session_id] = prepared
            if prepared.items is not None:
                llm_request.contents = prepared.items
        finally:
            for content in llm_request.contents:
                _remove_tags(content)

    async def on_model_error_callback(
        self, *, callback_context: CallbackContext, llm_request: LlmRequest, error: Exception
    ) -> LlmResponse | None:
        """Learn from a request that was refused as too long, and make it once more, smaller.

        ADK takes one response in place of an error: the answer to the second request is not streamed.
        """
        session_id = self._known_session(callback_context)
        sent = self._sent.pop(session_id, None)
        if sent is None:
            return None
        request = _Request(callback_context, llm_request)
        again = await self._preparer.aprepare_again(request, sent, error)
        if again is None or again.items is None:
            return None
        llm_request.contents = again.items
        for content in llm_request.contents:
            _remove_tags(content)
        try:
            return await _answer(callback_context, llm_request)
        except Exception as second:
            await self._preparer.alearn(again, second)
            raise

    def _known_session(self, context: CallbackContext) -> str:
        try:
            return self.session_of(context)
        except Exception:  # noqa: BLE001 - the user's own function; it was reported before the request
            return ""

    def _read(self, request: _Request, session_id: str) -> OutgoingRequest | None:
        llm_request = request.llm_request
        if llm_request.previous_interaction_id:
            self._preparer.notice_provider_keeps_history(session_id, "previous_interaction_id")
            return None
        if self._recall and may_call_functions(llm_request):
            llm_request.append_tools([self._recall])
        items = PlainItems[types.Content].read(llm_request.contents, self._as_data)
        return OutgoingRequest(
            items=items.plain,
            tools=tool_schemas(llm_request),
            instructions=instruction_text(cast(Any, llm_request.config).system_instruction),
            output_tokens=output_tokens(request.context, llm_request),
            model=llm_request.model or "",
            dialect="gemini",
            restore=lambda prompt: items.restore(prompt, _content),
        )

    def _as_data(self, content: types.Content) -> dict[str, Any]:
        """Return a content as data, with its tags as our `meta`."""
        data = content.model_dump(mode="json", exclude_none=True)
        for part in data.get("parts") or ():
            metadata = part.get("part_metadata")
            if metadata and metadata.pop(TAGS, None) is not None and not metadata:
                del part["part_metadata"]
        tags = tags_of(content)
        if self._is_protected and self._is_protected(content):
            tags[self._manager.config.policy.protected_flag] = True
        return {**data, META: tags} if tags else data

    async def after_model_callback(self, *, callback_context: CallbackContext, llm_response: LlmResponse) -> None:
        """Take in what the provider has counted; of a streamed answer, at its end."""
        usage = llm_response.usage_metadata
        if not llm_response.partial:
            self._sent.pop(self._known_session(callback_context), None)
        if llm_response.partial or not usage or not usage.prompt_token_count:
            return
        try:
            session_id = self.session_of(callback_context)
        except Exception as error:  # noqa: BLE001 - the user's own function may raise anything
            report_failure(self._manager, "google_adk", error, USAGE_IGNORED)
        else:
            told = counted(usage.prompt_token_count, cache_read=usage.cached_content_token_count)
            await aobserve_usage(self._manager, session_id, told)


class RecallTool(BaseTool):
    """The tool by which an agent reads what left its prompt; the plugin adds it to requests by itself.

    Args:
        manager: Keeps the sessions.
        session_of: Returns the session of a callback context.

    Example:
        >>> from compact import CompactManager
        >>> from compact.adapters.google_adk import RecallTool
        >>> RecallTool(CompactManager(), lambda context: "chat-1").name
        'recall'
    """

    def __init__(self, manager: CompactManager, session_of: Callable[[Any], str]) -> None:
        super().__init__(name=RECALL_NAME, description=RECALL_DESCRIPTION)
        self._manager, self._session_of = manager, session_of

    def _get_declaration(self) -> types.FunctionDeclaration:
        return types.FunctionDeclaration(
            name=self.name, description=self.description, parameters_json_schema=RECALL_PARAMETERS
        )

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        """Return what was found by the id or the words that the agent asked for."""
        answer = await aanswer_recall(self._manager, lambda: self._session_of(tool_context), args)
        return {"result": answer}


async def _answer(context: CallbackContext, request: LlmRequest) -> LlmResponse | None:
    """Return the whole answer of an agent's model to a request."""
    agent: Any = getattr(context.get_invocation_context(), "agent", None)
    answer: LlmResponse | None = None
    async with aclosing(agent.canonical_model.generate_content_async(request, stream=False)) as responses:
        async for response in responses:
            answer = response
    return answer


def output_tokens(context: CallbackContext, request: LlmRequest) -> int:
    """Return the most tokens that an answer may have: by the request, or by what its agent's model asks for."""
    model: Any = getattr(getattr(context.get_invocation_context(), "agent", None), "model", None)
    named = {"max_output_tokens": request.config.max_output_tokens}
    of_model = {"max_tokens": getattr(model, "max_tokens", None)}
    found = output_limit(named, getattr(model, "_additional_args", None), of_model)
    return found or litellm_limit(model, request.model or "")


def may_call_functions(request: LlmRequest) -> bool:
    """Return False where Gemini takes no function: beside its built-in tools, or with a schema for the answer."""
    config = request.config
    others = [tool for tool in config.tools or () if not getattr(tool, "function_declarations", None)]
    is_taken = RECALL_NAME in request.tools_dict
    return not others and not is_taken and not config.response_schema and not config.response_json_schema


def tool_schemas(request: LlmRequest) -> list[Mapping[str, Any]]:
    """Return tools as they are counted; built-in ones are counted by their settings."""
    schemas: list[Mapping[str, Any]] = []
    for tool in request.config.tools or ():
        dump: Any = getattr(tool, "model_dump", None)
        data: dict[str, Any] = dump(mode="json", exclude_none=True) if dump else {"name": str(tool)}
        declarations: Sequence[dict[str, Any]] = data.pop("function_declarations", ())
        schemas += [
            function_schema(
                one.get("name", ""),
                one.get("description"),
                one.get("parameters_json_schema") or one.get("parameters"),
            )
            for one in declarations
        ]
        schemas += [data] if data else []
    return schemas


def tags_of(content: types.Content) -> dict[str, Any]:
    """Return what a content is tagged with."""
    tags: dict[str, Any] = {}
    for part in content.parts or ():
        tags |= (part.part_metadata or {}).get(TAGS) or {}
    return tags


def _content(item: dict[str, Any]) -> types.Content:
    # As JSON: only there is base64 text taken for bytes.
    return types.Content.model_validate_json(json.dumps(item))


def _remove_tags(content: types.Content) -> None:
    """Remove our tags from a request's content; it is a copy, and the tags stay in the stored session."""
    for part in content.parts or ():
        if part.part_metadata and TAGS in part.part_metadata:
            part.part_metadata = {key: value for key, value in part.part_metadata.items() if key != TAGS} or None
