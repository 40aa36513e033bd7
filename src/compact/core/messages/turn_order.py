"""Turns: the user speaks first, then user and assistant alternate. Many models take nothing else.

Chat templates of open models refuse a prompt in which one of them speaks twice, and Claude behind a gateway refuses one
that begins with the assistant. Where a compaction has left out what the other said, a line says so in its place. What
the caller itself sent in another order stays in that order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal, TypeAlias

from compact.core.messages.message import Message

Speaker: TypeAlias = Literal["user", "assistant"]

# As short as can be: in a prompt of a few hundred tokens, every line takes the place of something that was said.
LEFT_OUT = "[...]"


def ends_a_turn(message: Message) -> bool:
    """Return True for what the user or the assistant says; calls and their results stand inside a turn."""
    return message.role == "user" or (message.role == "assistant" and not message.tool_calls)


class TurnOrder:
    """Who has spoken between any two messages of a history."""

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        self._places: dict[str, int] = {}
        # How many turns each has ended before a place.
        self._turns: dict[Speaker, list[int]] = {"user": [0], "assistant": [0]}
        for message in messages:
            self.add(message)

    def add(self, message: Message) -> None:
        """Read the next message."""
        self._places[message.id] = len(self._turns["user"]) - 1
        for who, turns in self._turns.items():
            turns.append(turns[-1] + (message.role == who and ends_a_turn(message)))

    def copy(self) -> TurnOrder:
        """Return one that has read the same, and goes on by itself."""
        twin = TurnOrder()
        twin._places = dict(self._places)
        twin._turns = {who: list(turns) for who, turns in self._turns.items()}
        return twin

    def lines_for(self, prompt: Iterable[Message], *, only_first: bool = False) -> Iterator[tuple[int, Message]]:
        """Yield the lines that a prompt of these messages needs, each with the place that it stands before.

        With `only_first`, the one that makes the user begin.
        """
        last: Message | None = None
        for place, message in enumerate(prompt):
            if message.role not in ("user", "assistant"):
                continue
            other: Speaker = "assistant" if message.role == "user" else "user"
            speaks_again = last.role == message.role if last else message.role == "assistant"
            is_filled = speaks_again and self._has_spoken(other, last, message)
            if is_filled and only_first and last:
                return
            if is_filled:
                yield place, Message(other, LEFT_OUT)
            if ends_a_turn(message):
                last = message
            elif is_filled:
                last = Message("user", LEFT_OUT, id=message.id)

    def _has_spoken(self, who: Speaker, after: Message | None, before: Message) -> bool:
        """Return True if one has spoken between two messages; a summary stands for turns of both."""
        start = 0 if after is None else self._places.get(after.id)
        end = self._places.get(before.id)
        if start is None or end is None:
            return True
        return self._turns[who][end] > self._turns[who][start]
