"""What lives or dies together: a tool call and its results; and what counts as a turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compact.core.log.messages import Message, ToolCall


@dataclass(frozen=True, slots=True)
class Group:
    """Messages that only make sense together, by their place in the history."""

    indices: tuple[int, ...]
    is_tool: bool


def group_messages(messages: Sequence[Message]) -> tuple[Group, ...]:
    """Cut a history into groups: an assistant message with all the results of its calls, or a message alone.

    A result belongs to the nearest earlier call with its id that has no result yet, so ids may be used again.
    """
    members: list[list[int]] = []
    is_tool: list[bool] = []
    waiting: dict[str, list[int]] = {}
    for index, message in enumerate(messages):
        callers = waiting.get(message.tool_call_id or "") if message.role == "tool" else None
        if callers:
            members[callers.pop()].append(index)
            continue
        for call in message.tool_calls:
            waiting.setdefault(call.id, []).append(len(members))
        members.append([index])
        is_tool.append(bool(message.tool_calls) or message.role == "tool")
    return tuple(Group(tuple(indices), tool) for indices, tool in zip(members, is_tool, strict=True))


def turn_numbers(messages: Sequence[Message]) -> tuple[int, ...]:
    """Return the turn of each message; a turn starts with a user message, what comes before the first is turn 0."""
    turn = 0
    numbers: list[int] = []
    for message in messages:
        turn += message.role == "user"
        numbers.append(turn)
    return tuple(numbers)


def calls_answered(messages: Sequence[Message], groups: Sequence[Group]) -> dict[int, ToolCall]:
    """Return for each tool result (by its place) the call that it answers; results without a call are not in it."""
    answered: dict[int, ToolCall] = {}
    for group in groups:
        if not group.is_tool:
            continue
        calls = {call.id: call for call in messages[group.indices[0]].tool_calls}
        for index in group.indices[1:]:
            answered[index] = calls[messages[index].tool_call_id or ""]
    return answered
