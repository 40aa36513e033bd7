"""Google ADK: a plugin that compacts each request of every agent of an app, and leaves sessions whole.

    from google.adk.apps import App
    from compact import CompactConfig, CompactManager
    from compact.adapters.google_adk import CompactionPlugin

    manager = CompactManager(CompactConfig(model="gemini-2.5-pro"))
    app = App(name="audit", root_agent=agent, plugins=[CompactionPlugin(manager)])

A message is protected by `protected(content)`, which tags its first part: `part_metadata={"compact": {"protected":
True}}`. The tag is stored with the session and taken off before a request leaves.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

try:
    from google.adk.agents.callback_context import CallbackContext
    from google.adk.models.llm_request import LlmRequest
    from google.adk.models.llm_response import LlmResponse
    from google.adk.plugins.base_plugin import BasePlugin
    from google.adk.tools.base_tool import BaseTool
    from google.adk.tools.tool_context import ToolContext
    from google.genai import types
except ImportError as error:
    raise ImportError(
        'the Google ADK adapter needs the package google-adk\nhint: pip install "compact-context[google-adk]"'
    ) from error

from compact.adapters.failing_open import tell, tell_failure
from compact.core.engine.events import NoticeEvent
from compact.dialects.translation import META
from compact.manager import CompactManager
from compact.recall.tool import TOOL_NAME, TOOL_SCHEMA, answer_tool_call

__all__ = ["SUPPORTED_VERSIONS", "CompactionPlugin", "RecallTool", "protected"]

SUPPORTED_VERSIONS = ">=2.10,<3"
# The key in `part_metadata` under which a message is tagged.
TAGS = "compact"
SessionId: TypeAlias = str | Callable[[CallbackContext], str] | None


def protected(content: types.Content) -> types.Content:
    """The content, tagged so that it always stays in the prompt."""
    if not content.parts:
        raise ValueError("a content without parts cannot be protected")
    first = content.parts[0]
    metadata = first.part_metadata or {}
    first.part_metadata = {**metadata, TAGS: {**metadata.get(TAGS, {}), "protected": True}}
    return content


class CompactionPlugin(BasePlugin):
    """Keeps the requests of all agents of an app inside the window.

    A session of the manager is one agent's view of a session of ADK: `app/user/session` for the root agent, with the
    agent's name behind it for the others. `session_id` names the first part instead: a text, or a function of the
    callback context. `is_protected` tells more contents that must stay, where a session service drops their tags. If
    anything of ours fails, the request goes out as it is and an event tells; `strict` raises instead.
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
        self._strict = strict
        self._manager = manager
        self._session_id = session_id
        self._is_protected = is_protected or (lambda content: False)
        self._recall = RecallTool(manager, self.session_of) if offer_recall else None

    def session_of(self, context: CallbackContext) -> str:
        """The id under which the manager knows what an agent is shown of a session."""
        own, session = self._session_id, context.session
        base = (
            own
            if isinstance(own, str)
            else own(context)
            if own
            else f"{session.app_name}/{session.user_id}/{session.id}"
        )
        root = getattr(getattr(context.get_invocation_context(), "agent", None), "root_agent", None)
        return base if root is None or root.name == context.agent_name else f"{base}/{context.agent_name}"

    async def before_model_callback(self, *, callback_context: CallbackContext, llm_request: LlmRequest) -> None:
        """Compact what goes out; if that fails, it goes out as it is."""
        session_id = ""
        try:
            session_id = self.session_of(callback_context)
            if llm_request.previous_interaction_id:
                message = "the service keeps this conversation: the request is only a part of it, and is left alone"
                tell(self._manager, NoticeEvent(session_id=session_id, message=message))
                return
            if self._recall and may_call_functions(llm_request):
                llm_request.append_tools([self._recall])
            await self._compact(session_id, llm_request)
        except Exception as error:
            if self._strict:
                raise
            tell_failure(self._manager, session_id, error)
        finally:
            for content in llm_request.contents:
                _take_tags(content)

    async def _compact(self, session_id: str, request: LlmRequest) -> None:
        flag = self._manager.config.policy.protected_flag
        items: list[Any] = []
        own: dict[int, types.Content] = {}
        for content in request.contents:
            tags = tags_of(content)
            if self._is_protected(content):
                tags = {**tags, flag: True}
            items.append({**_plain(content), META: tags} if tags else _plain(content))
            own[id(items[-1])] = content
        prompt: list[Any] = await self._manager.apreflight(
            session_id,
            items,
            tools=tool_schemas(request),
            instructions=system_text(request.config.system_instruction),
            dialect="gemini",
        )
        request.contents = [own.get(id(item)) or _content(item) for item in prompt]

    async def after_model_callback(self, *, callback_context: CallbackContext, llm_response: LlmResponse) -> None:
        """Take in what the provider has counted; of a streamed answer, at its end."""
        usage = llm_response.usage_metadata
        if llm_response.partial or not usage or not usage.prompt_token_count:
            return
        session_id = ""
        try:
            session_id = self.session_of(callback_context)
            await asyncio.to_thread(self._manager.observe_usage, session_id, usage.prompt_token_count)
        except Exception as error:
            tell_failure(self._manager, session_id, error, "the reported usage is not taken in")


class RecallTool(BaseTool):
    """The tool by which an agent reads what left its prompt."""

    def __init__(self, manager: CompactManager, session_of: Callable[[Any], str]) -> None:
        super().__init__(name=TOOL_NAME, description=TOOL_SCHEMA["function"]["description"])
        self._manager, self._session_of = manager, session_of

    def _get_declaration(self) -> types.FunctionDeclaration:
        parameters = TOOL_SCHEMA["function"]["parameters"]
        return types.FunctionDeclaration(
            name=self.name, description=self.description, parameters_json_schema=parameters
        )

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        """What the words or the id were found in."""
        session_id = self._session_of(tool_context)

        def recall(query: str) -> object:
            return self._manager.recall(session_id, query)

        return {"result": await asyncio.to_thread(answer_tool_call, recall, json.dumps(args))}


def may_call_functions(request: LlmRequest) -> bool:
    """False where Gemini takes no function beside what is there: its built-in tools, or a schema for the answer."""
    config = request.config
    others = [tool for tool in config.tools or () if not getattr(tool, "function_declarations", None)]
    is_taken = TOOL_NAME in request.tools_dict
    return not others and not is_taken and not config.response_schema and not config.response_json_schema


def tool_schemas(request: LlmRequest) -> list[Mapping[str, Any]]:
    """Tools in the form that is counted; built-in ones are counted by their settings."""
    schemas: list[Mapping[str, Any]] = []
    for tool in request.config.tools or ():
        dump: Any = getattr(tool, "model_dump", None)
        plain: dict[str, Any] = dump(mode="json", exclude_none=True) if dump else {"name": str(tool)}
        declarations: Sequence[dict[str, Any]] = plain.pop("function_declarations", ())
        schemas += [
            {
                "type": "function",
                "function": {
                    "name": one.get("name", ""),
                    "description": one.get("description", ""),
                    "parameters": one.get("parameters_json_schema") or one.get("parameters") or {},
                },
            }
            for one in declarations
        ]
        schemas += [plain] if plain else []
    return schemas


def system_text(instruction: Any) -> str:
    """A system instruction as plain text, in whatever form it is."""
    if instruction is None or isinstance(instruction, str):
        return instruction or ""
    if isinstance(instruction, list | tuple):
        return "\n".join(map(system_text, instruction))
    parts = getattr(instruction, "parts", None)
    return system_text(parts) if parts else str(getattr(instruction, "text", "") or "")


def tags_of(content: types.Content) -> dict[str, Any]:
    """What a content is tagged with."""
    tags: dict[str, Any] = {}
    for part in content.parts or ():
        tags |= (part.part_metadata or {}).get(TAGS) or {}
    return tags


def _plain(content: types.Content) -> dict[str, Any]:
    """A content as data, without our tags."""
    plain = content.model_dump(mode="json", exclude_none=True)
    for part in plain.get("parts") or ():
        metadata = part.get("part_metadata")
        if metadata and metadata.pop(TAGS, None) is not None and not metadata:
            del part["part_metadata"]
    return plain


def _content(item: dict[str, Any]) -> types.Content:
    # As JSON: only there is base64 text taken for bytes.
    return types.Content.model_validate_json(json.dumps(item))


def _take_tags(content: types.Content) -> None:
    """Requests hold copies of what is stored, so a tag that is taken off here stays there."""
    for part in content.parts or ():
        if part.part_metadata and TAGS in part.part_metadata:
            part.part_metadata = {key: value for key, value in part.part_metadata.items() if key != TAGS} or None
