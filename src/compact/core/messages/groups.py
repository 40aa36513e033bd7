"""What lives or dies together: a tool call and its results; and what counts as a turn."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from compact.core.messages.message import Message, ToolCall


@dataclass(frozen=True, slots=True)
class Group:
    """Messages that only make sense together, by their place in the history."""

    indices: tuple[int, ...]
    is_tool: bool


class GroupReader:
    """Cuts a history into groups message by message: an assistant message with all the results of its calls, or one.

    A result belongs to the nearest earlier call with its id that has no result yet, so ids may be used again.
    """

    def __init__(self) -> None:
        self.groups: list[Group] = []
        # The calls that have no result yet, by their ids: the numbers of their groups.
        self._waiting: dict[str, list[int]] = {}
        self._read = 0

    def add(self, message: Message) -> int:
        """Read the next message; return the number of its group."""
        index, groups = self._read, self.groups
        self._read += 1
        callers = self._waiting.get(message.tool_call_id or "") if message.role == "tool" else None
        if callers:
            number = callers.pop()
            groups[number] = Group((*groups[number].indices, index), True)
            return number
        number = len(groups)
        for call in message.tool_calls:
            self._waiting.setdefault(call.id, []).append(number)
        groups.append(Group((index,), bool(message.tool_calls) or message.role == "tool"))
        return number

    def copy(self) -> GroupReader:
        """Return one that has read the same, and goes on by itself."""
        twin = GroupReader()
        twin.groups, twin._read = list(self.groups), self._read
        twin._waiting = {call_id: list(numbers) for call_id, numbers in self._waiting.items() if numbers}
        return twin


def group_messages(messages: Iterable[Message]) -> tuple[Group, ...]:
    """Cut a history into groups: an assistant message with all the results of its calls, or a message alone."""
    reader = GroupReader()
    for message in messages:
        reader.add(message)
    return tuple(reader.groups)


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


def group_at(groups: Sequence[Group], place: int) -> int:
    """Return the number of the group that has the message at a place; groups are in the order of their beginnings."""
    number = bisect_right(groups, place, key=lambda group: group.indices[0]) - 1
    while place not in groups[number].indices:  # the results of two calls may stand one behind the other
        number -= 1
    return number
