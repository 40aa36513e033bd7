"""What is read from a request of Microsoft Agent Framework, and the prompt that an agent was shown for its history."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from agent_framework import FunctionTool, Message

from compact.adapters.agent_framework.messages import AgentFrameworkDialect, Data, message_data, message_of
from compact.adapters.support import OutgoingRequest, PlainItems, prompt_tokens
from compact.core.json_data import is_list, is_mapping

DIALECT = AgentFrameworkDialect()
# What the framework calls a conversation that it keeps itself, call by call.
_LOCAL_HISTORY = "agent_framework_local_history_persistence"


@dataclass(frozen=True, slots=True)
class _ShownPrompt:
    """The prompt that an agent was shown for a session at the beginning of a run, and the history it stands for."""

    session_id: str
    prompt: list[Data]
    history: Sequence[Message]

    def with_history(self, messages: Sequence[Message]) -> Sequence[Message]:
        """Return a list that begins with the prompt so that it begins with the history; any other as it is."""
        count = len(self.prompt)
        begins_with_prompt = [message_data(message) for message in messages[:count]] == self.prompt
        return [*self.history, *messages[count:]] if begins_with_prompt else messages


_shown: ContextVar[_ShownPrompt | None] = ContextVar("compact_agent_framework_shown", default=None)


@contextmanager
def shown_prompt(session_id: str, prompt: Sequence[Message], history: Sequence[Message]) -> Generator[None, None, None]:
    """While an agent runs on a prompt, have its requests read as if they began with the whole history."""
    token = _shown.set(_ShownPrompt(session_id, [message_data(message) for message in prompt], history))
    try:
        yield
    finally:
        _shown.reset(token)


def with_shown_history(session_id: str, messages: Sequence[Message]) -> Sequence[Message]:
    """Return the messages of an agent that runs on a shown prompt with the history in its place; others as they are."""
    shown = _shown.get()
    return shown.with_history(messages) if shown and shown.session_id == session_id else messages


def outgoing(
    messages: Sequence[Message],
    *,
    tools: Sequence[Mapping[str, Any]] = (),
    instructions: str = "",
    output_tokens: int = 0,
    model: str = "",
) -> OutgoingRequest:
    """Return messages as a request to prepare; those that are not changed come back as the caller's own objects."""
    items = PlainItems[Message].read(messages, message_data)
    return OutgoingRequest(
        items=items.plain,
        tools=tools,
        instructions=instructions,
        output_tokens=output_tokens,
        model=model,
        dialect=DIALECT,
        restore=lambda prompt: items.restore(prompt, message_of),
    )


def tool_schemas(tools: Any) -> list[Mapping[str, Any]]:
    """Return tools as they are counted; hosted ones are counted by their settings."""
    schemas: list[Mapping[str, Any]] = []
    for one in tools if is_list(tools) else [tools] if tools else []:
        if isinstance(one, FunctionTool):
            schemas.append(one.to_json_schema_spec())
        elif is_mapping(one):
            schemas.append(one)
        else:
            schemas += tool_schemas(getattr(one, "functions", None))  # an MCP server has a list of its own
    return schemas


def model_name(client: object, options: Mapping[str, Any]) -> str:
    """Return the name of the model that a request is for: its own, or its client's."""
    names = (options.get("model"), getattr(client, "model", None), getattr(client, "model_id", None))
    return next((name for name in names if isinstance(name, str) and name), "")


def input_tokens(usage: Mapping[str, Any]) -> int:
    """Return all tokens that the model has read."""
    return prompt_tokens(
        reported=usage.get("input_token_count"),
        output=usage.get("output_token_count"),
        total=usage.get("total_token_count"),
    )


def is_kept_by_service(options: Mapping[str, Any]) -> bool:
    """Return True if the provider holds the conversation, so that a request has only what is new."""
    return options.get("conversation_id") not in (None, "", _LOCAL_HISTORY)
