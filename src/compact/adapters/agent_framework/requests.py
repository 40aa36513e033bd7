"""What goes out with a request of Microsoft Agent Framework, and what has come back: read, fitted, counted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from compact.adapters.agent_framework_messages import AgentFrameworkDialect, Mirror, Plain, plain

# isort: split
from agent_framework import FunctionTool, Message

from compact.manager import CompactManager

DIALECT = AgentFrameworkDialect()
# What the framework calls a conversation that it keeps itself, call by call.
_LOCAL_HISTORY = "agent_framework_local_history_persistence"


@dataclass(frozen=True, slots=True)
class _Shown:
    """What an agent was shown of a session at the beginning of a run, and what that stands for."""

    session_id: str
    prompt: list[Plain]
    history: Sequence[Message]

    def whole(self, messages: Sequence[Message]) -> list[Message]:
        """A list that begins with what was shown, beginning with all of it."""
        count = len(self.prompt)
        is_ours = [plain(message) for message in messages[:count]] == self.prompt
        return [*self.history, *messages[count:]] if is_ours else list(messages)


_shown: ContextVar[_Shown | None] = ContextVar("compact_agent_framework_shown", default=None)


@contextmanager
def showing(session_id: str, prompt: Sequence[Message], history: Sequence[Message]) -> Iterator[None]:
    """While an agent runs on a prompt, its requests are known by the history that the prompt stands for."""
    token = _shown.set(_Shown(session_id, [plain(message) for message in prompt], history))
    try:
        yield
    finally:
        _shown.reset(token)


async def fit(
    manager: CompactManager,
    session_id: str,
    messages: Sequence[Message],
    *,
    tools: Sequence[Mapping[str, Any]] = (),
    instructions: str = "",
) -> list[Message]:
    """The messages as they should be sent: own objects wherever nothing was changed."""
    shown = _shown.get()
    mirror = Mirror(shown.whole(messages) if shown and shown.session_id == session_id else messages)
    items: list[Plain] = await manager.apreflight(
        session_id, mirror.items, tools=tools, instructions=instructions, dialect=DIALECT
    )
    return mirror.back(items)


def tool_schemas(tools: Any) -> list[Mapping[str, Any]]:
    """Tools in the form that is counted; hosted ones are counted by their settings."""
    listed: list[Any] = list(tools) if isinstance(tools, list | tuple) else [tools] if tools else []
    schemas: list[Mapping[str, Any]] = []
    for one in listed:
        if isinstance(one, FunctionTool):
            schemas.append(one.to_json_schema_spec())
        elif isinstance(one, Mapping):
            schemas.append(one)
        else:
            schemas += tool_schemas(getattr(one, "functions", None))  # an MCP server brings a list of its own
    return schemas


def text_of(instructions: object) -> str:
    """Instructions as plain text: one, or several."""
    if isinstance(instructions, str):
        return instructions
    if isinstance(instructions, Mapping):
        return str(instructions.get("text", instructions))
    return "\n".join(map(text_of, instructions)) if isinstance(instructions, list | tuple) else ""


def input_tokens(usage: Mapping[str, Any]) -> int:
    """Everything the model has read: some providers report cached tokens beside the input, some in it."""
    read = usage.get("input_token_count") or 0
    return max((usage.get("total_token_count") or 0) - (usage.get("output_token_count") or 0), read)


def is_kept_by_the_service(options: Mapping[str, Any]) -> bool:
    """True if the provider holds the conversation, so that a request is only what is new."""
    return options.get("conversation_id") not in (None, "", _LOCAL_HISTORY)
