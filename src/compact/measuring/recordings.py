"""A recorded session, and what its messages say."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from compact.core.json_data import is_list, is_mapping

Wire = dict[str, Any]

NOT_TYPED = ("injected", "compact_summary")
# What a harness puts into a person's mouth: commands and their output, notices.
_NOT_TYPED_OPENINGS = ("<command-", "<local-command", "<bash-", "<task-notification", "<system-reminder", "[Request ")


@dataclass(frozen=True, slots=True)
class Recording:
    """A recorded session; the system prompt is held apart, outside budget and metric."""

    id: str
    source: str
    system: str
    messages: tuple[Wire, ...]


def recording_of(identity: str, source: str, messages: Sequence[Wire]) -> Recording:
    """Return the recording of a list of messages in Chat Completions form."""
    return Recording(
        id=identity,
        source=source,
        system="\n".join(content_text(m) for m in messages if m["role"] in ("system", "developer")),
        messages=tuple(m for m in messages if m["role"] not in ("system", "developer")),
    )


def content_text(message: Wire) -> str:
    """The text of a message, without its tool calls."""
    content: object = message.get("content")
    if is_list(content):
        return "\n".join(str(part.get("text", "")) for part in content if is_mapping(part))
    return content if isinstance(content, str) else ""


def argument_values(message: Wire) -> Iterator[str]:
    """The values of a message's tool calls, names left out."""
    for _, arguments in _calls(message):
        try:
            yield from _leaves(json.loads(arguments))
        except ValueError:
            yield arguments


def _leaves(value: object) -> Iterator[str]:
    if is_mapping(value):
        for inner in value.values():
            yield from _leaves(inner)
    elif is_list(value):
        for inner in value:
            yield from _leaves(inner)
    elif value is not None and not isinstance(value, bool):
        yield str(value)


def message_text(message: Wire) -> str:
    """Everything a message says: its text and the values of its arguments."""
    return "\n".join(part for part in (content_text(message), *argument_values(message)) if part)


def text_of(messages: Iterable[Wire]) -> str:
    """Everything a list of messages says."""
    return "\n".join(message_text(message) for message in messages)


def interface_names(messages: Iterable[Wire]) -> set[str]:
    """The names of tools and of their arguments: the agent knows them from its schemas."""
    names: set[str] = set()
    for message in messages:
        for name, arguments in _calls(message):
            names.add(name)
            try:
                names.update(_keys(json.loads(arguments)))
            except ValueError:
                continue
    return names


def _calls(message: Wire) -> Iterator[tuple[str, str]]:
    """Yield the name and the arguments of each tool call; custom tools have an input instead."""
    for call in message.get("tool_calls") or ():
        tool: Wire = call.get("function") or call.get("custom") or {}
        yield tool.get("name", ""), tool.get("arguments", tool.get("input", "")) or ""


def _keys(value: object) -> Iterator[str]:
    if is_mapping(value):
        for key, inner in value.items():
            yield key
            yield from _keys(inner)
    elif is_list(value):
        for inner in value:
            yield from _keys(inner)


def is_typed(message: Wire) -> bool:
    """Whether a person typed it."""
    if message["role"] != "user" or message.get("name") in NOT_TYPED:
        return False
    return not content_text(message).lstrip().startswith(_NOT_TYPED_OPENINGS)
