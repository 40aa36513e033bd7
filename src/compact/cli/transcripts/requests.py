"""Requests as providers take them: what in them is the conversation, and what goes beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypedDict, cast

if TYPE_CHECKING:
    from compact.transcripts import AgentLog


class RequestOptions(TypedDict):
    """What a manager is told beside the messages."""

    tools: Sequence[Any]
    instructions: str
    dialect: str | None


@dataclass(frozen=True, slots=True)
class FileTranscript:
    """The messages of a file. If it was a request, what goes beside them: instructions, tools, and all the rest.

    `log` is the log of an agent that the messages are from, if they are; `name` is its id, or that of the file.
    """

    # As the file has it: whether it is a list is for the reader to say.
    messages: Any
    instructions: str = ""
    tools: Sequence[Any] = ()
    dialect: str | None = None
    request: Mapping[str, Any] = field(default_factory=dict[str, Any])
    key: str = ""
    log: AgentLog | None = None
    name: str = ""

    @property
    def options(self) -> RequestOptions:
        """What goes beside the messages, as a manager takes it."""
        return {"tools": self.tools, "instructions": self.instructions, "dialect": self.dialect}

    @property
    def model(self) -> str:
        """The model that answered, if the file says so: the last one, of several."""
        named = self.log.model if self.log else self.request.get("model")
        return named if isinstance(named, str) else ""

    def with_messages(self, messages: list[Any]) -> object:
        """Return what the file held with other messages: the whole request, or just the list."""
        return {**self.request, self.key: messages} if self.request else messages


def read_request(value: object) -> FileTranscript | None:
    """Return the transcript of a request to Chat Completions, Responses, Gemini or Anthropic's Messages; else None."""
    if not isinstance(value, dict) or "role" in value:
        return None
    request = cast(dict[str, Any], value)
    if "input" in request:
        text_or_items = request["input"]
        items = [{"role": "user", "content": text_or_items}] if isinstance(text_or_items, str) else text_or_items
        return _transcript(request, "input", items, "responses", request.get("instructions"))
    if "contents" in request:
        system = request.get("systemInstruction", request.get("system_instruction"))
        return _transcript(request, "contents", request["contents"], "gemini", system)
    if "messages" in request and "system" in request:
        return _transcript(request, "messages", request["messages"], "anthropic", request["system"])
    if "messages" in request and "model" in request:
        # Without a system prompt, Anthropic's and Chat Completions look the same from outside: the messages tell.
        return _transcript(request, "messages", request["messages"], None, None)
    return None


def _transcript(
    request: Mapping[str, Any], key: str, messages: Any, dialect: str | None, system: object
) -> FileTranscript:
    tools = request.get("tools")
    beside = cast(Sequence[Any], tools) if isinstance(tools, list) else ()
    return FileTranscript(messages, _text_of(system), beside, dialect, request, key)


def _text_of(system: object) -> str:
    """Return the text of instructions: a text, a list of parts, or Gemini's content of parts."""
    if isinstance(system, str):
        return system
    if isinstance(system, dict):
        fields = cast(dict[str, Any], system)
        return fields["text"] if isinstance(fields.get("text"), str) else _text_of(fields.get("parts"))
    if isinstance(system, list):
        return "\n".join(filter(None, map(_text_of, cast(list[object], system))))
    return ""
