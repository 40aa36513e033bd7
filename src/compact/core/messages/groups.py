"""What lives or dies together: a tool call and its results; and what counts as a turn."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from compact.core.messages.message import Message, ToolCall

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Group:
    """Messages that only make sense together, by their place in the history."""

    indices: tuple[int, ...]
    is_tool: bool


class WaitingCalls(Generic[T]):
    """The calls that have no result yet, each with what is to be known of its caller.

    A result belongs to the nearest earlier call with its id that has no result yet, so ids may be used again.
    """

    def __init__(self) -> None:
        self._callers: dict[str, list[T]] = {}

    def add(self, message: Message, caller: T) -> None:
        """Note the calls of a message."""
        for call in message.tool_calls:
            self._callers.setdefault(call.id, []).append(caller)

    def answered_by(self, message: Message) -> T | None:
        """Return the caller that a message is a result for; it does not wait for that any more."""
        call_id = message.tool_call_id or ""
        callers = self._callers.get(call_id) if message.role == "tool" else None
        if not callers:
            return None
        caller = callers.pop()
        if not callers:
            del self._callers[call_id]
        return caller

    def copy(self) -> WaitingCalls[T]:
        """Return the same for a history that goes on by itself."""
        twin = WaitingCalls[T]()
        twin._callers = {call_id: list(callers) for call_id, callers in self._callers.items()}
        return twin


class GroupReader:
    """Cuts a history into groups message by message: an assistant message with all the results of its calls, or one."""

    def __init__(self) -> None:
        self.groups: list[Group] = []
        # The numbers of their groups.
        self._waiting = WaitingCalls[int]()
        self._read = 0

    def add(self, message: Message) -> int:
        """Read the next message; return the number of its group."""
        index, groups = self._read, self.groups
        self._read += 1
        number = self._waiting.answered_by(message)
        if number is not None:
            groups[number] = Group((*groups[number].indices, index), True)
            return number
        number = len(groups)
        self._waiting.add(message, number)
        groups.append(Group((index,), bool(message.tool_calls) or message.role == "tool"))
        return number

    def copy(self) -> GroupReader:
        """Return one that has read the same, and goes on by itself."""
        twin = GroupReader()
        twin.groups, twin._read = list(self.groups), self._read
        twin._waiting = self._waiting.copy()
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
