"""Which messages of a line are of the few kinds that planning asks for: each message is asked once, when it is new."""

from __future__ import annotations

from collections.abc import Sequence

from compact.core.facts.extraction import find_decisions
from compact.core.facts.tool_calls import is_typed
from compact.core.messages.message import Message, list_start, text_chars

# Whose messages are pinned for their marks alone, as nearly everywhere.
_SPEAKERS = frozenset({"user", "assistant", "tool"})


class LineIndex:
    """Grows with a line. `asks` has the places of what people typed, `marked` of what has marks or another role.

    `ask_chars` says how long each of the former is, as `text_chars` does. `tools` names the tool of each call, by its
    id.
    """

    def __init__(self, messages: Sequence[Message] = ()) -> None:
        self._messages: list[Message] = []
        self.asks: list[int] = []
        self.ask_chars: list[int] = []
        self.marked: list[int] = []
        self.tools: dict[str, str] = {}
        # Asked for after a compaction only, so read then.
        self._decided: list[int] = []
        self._read_for_decisions = 0
        self._extend(messages)

    def of(self, messages: Sequence[Message]) -> LineIndex:
        """Return the index of a line: this one, grown by what is new, or another if the past was edited."""
        known = len(self._messages)
        if list_start(messages, known) != self._messages:
            return LineIndex(messages)
        self._extend(messages[known:])
        return self

    def copy(self) -> LineIndex:
        """Return one that has read the same, and goes on by itself."""
        twin = LineIndex()
        twin._messages, twin.tools = list(self._messages), dict(self.tools)
        twin.asks, twin.ask_chars, twin.marked = list(self.asks), list(self.ask_chars), list(self.marked)
        twin._decided, twin._read_for_decisions = list(self._decided), self._read_for_decisions
        return twin

    @property
    def decided(self) -> Sequence[int]:
        """The places of messages in which something was decided."""
        new = enumerate(self._messages[self._read_for_decisions :], self._read_for_decisions)
        self._decided += [place for place, message in new if any(find_decisions((message,)))]
        self._read_for_decisions = len(self._messages)
        return self._decided

    def may_pin(self, roles: frozenset[str]) -> Sequence[int]:
        """Return the places of messages that may be pinned where all of some roles are."""
        if roles.isdisjoint(_SPEAKERS):
            return self.marked
        return [place for place, message in enumerate(self._messages) if message.meta or message.role in roles]

    def _extend(self, messages: Sequence[Message]) -> None:
        for place, message in enumerate(messages, len(self._messages)):
            if is_typed(message):
                self.asks.append(place)
                self.ask_chars.append(text_chars(message))
            if message.meta or message.role not in _SPEAKERS:
                self.marked.append(place)
            self.tools.update((call.id, call.name) for call in message.tool_calls)
        self._messages.extend(messages)
