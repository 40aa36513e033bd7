"""How a history is built, read once: a session that grows for days is not read again for each compaction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from compact.core.messages.attachments import attachments_of
from compact.core.messages.groups import Group, GroupReader
from compact.core.messages.legality import check_chat
from compact.core.messages.message import Message, ToolCall, list_start
from compact.core.messages.turn_order import TurnOrder

T = TypeVar("T")
# Two plans in a row are asked about in turn: the one in force and the next.
_KNOWN_SPANS = 2


@dataclass(frozen=True, slots=True)
class _Beside:
    """The places of the messages that are not among some, of as many as there were."""

    ids: frozenset[str]
    places: tuple[int, ...]
    read: int


class HistoryStructure:
    """The groups and turns of a history, which calls its results answer, and whether it is legal.

    It grows with the history, and each message is read once. `group_numbers` has the number of each message's group,
    `turns` that of its turn (as `turn_numbers`), `answered` the call of each result by its place, `attached` the places
    of messages with attachments.
    """

    def __init__(self, messages: Sequence[Message] = ()) -> None:
        self._messages: list[Message] = []
        self._reader = GroupReader()
        self.group_numbers: list[int] = []
        self.turns: list[int] = []
        self.answered: dict[int, ToolCall] = {}
        self.places: dict[str, int] = {}
        self.attached: list[int] = []
        self.turn_order = TurnOrder()
        self._beside: tuple[_Beside, ...] = ()
        # Where a message stands that is no result, and whether everything before it is legal by itself.
        self._checked = 0
        self._is_legal_before = True
        self._extend(messages)

    @property
    def groups(self) -> Sequence[Group]:
        """The groups, in the order in which they begin."""
        return self._reader.groups

    @property
    def is_legal(self) -> bool:
        """True if the history needs no repair."""
        return self._is_legal_before and not check_chat(self._messages[self._checked :])

    def outside(self, span: frozenset[str]) -> Sequence[int]:
        """Return the places of the messages that are not in a span.

        A summary stands for nearly all of a long history, and the next one for all of that and a little more: only what
        was outside before is looked at.
        """
        if not span:
            return range(len(self._messages))
        known = next((one for one in self._beside if one.ids is span), None)
        known = known or next((one for one in self._beside if one.ids <= span), _Beside(frozenset(), (), 0))
        new = range(known.read, len(self._messages))
        if known.ids is not span or new:
            messages = self._messages
            places = tuple(place for place in (*known.places, *new) if messages[place].id not in span)
            others = (one for one in self._beside if one.ids is not span)
            known = _Beside(span, places, len(messages))
            self._beside = (known, *others)[:_KNOWN_SPANS]
        return known.places

    def of(self, messages: Sequence[Message]) -> HistoryStructure:
        """Return the structure of a history: this one, grown by what is new, or another if the past was edited."""
        known = len(self._messages)
        if list_start(messages, known) != self._messages:
            return HistoryStructure(messages)
        self._extend(messages[known:])
        return self

    def copy(self) -> HistoryStructure:
        """Return one that has read the same, and goes on by itself."""
        twin = HistoryStructure()
        twin._messages, twin._reader = list(self._messages), self._reader.copy()
        twin.group_numbers, twin.turns = list(self.group_numbers), list(self.turns)
        twin.answered, twin.places = dict(self.answered), dict(self.places)
        twin.attached, twin.turn_order = list(self.attached), self.turn_order.copy()
        twin._beside = self._beside
        twin._checked, twin._is_legal_before = self._checked, self._is_legal_before
        return twin

    def _extend(self, messages: Sequence[Message]) -> None:
        for message in messages:
            self._add(message)
        # A message that is no result ends what came before it: no result behind it answers an earlier call.
        last = len(self._messages) - 1
        while last > self._checked and self._messages[last].role == "tool":
            last -= 1
        if last > self._checked:
            self._is_legal_before &= not check_chat(self._messages[self._checked : last])
            self._checked = last

    def _add(self, message: Message) -> None:
        place = len(self._messages)
        self._messages.append(message)
        number = self._reader.add(message)
        head = self.groups[number].indices[0]
        if head != place:
            # Of two calls of one message that share an id, the last one counts.
            calls, call_id = self._messages[head].tool_calls, message.tool_call_id or ""
            self.answered[place] = next(call for call in reversed(calls) if call.id == call_id)
        self.group_numbers.append(number)
        self.turns.append((self.turns[-1] if self.turns else 0) + (message.role == "user"))
        self.places[message.id] = place
        if attachments_of(message):
            self.attached.append(place)
        self.turn_order.add(message)


def all_but(items: Sequence[T], places: Iterable[int]) -> list[T]:
    """Return all items but those at some places, which are in order; quick where these are few."""
    kept, start = list[T](), 0
    for place in places:
        kept += items[start:place]
        start = place + 1
    kept += items[start:]
    return kept
