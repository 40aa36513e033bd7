"""The sockets: everything that can be plugged in, on one page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from compact.core.log.legality import Repair, Violation
from compact.core.log.messages import Message, Slot
from compact.core.plan.turn import Rehydrated, TurnContext


class Rehydrator(Protocol):
    """Brings back artifacts that the newest messages name."""

    def __call__(
        self, session_id: str, messages: Sequence[Message], turn: TurnContext, *, budget_tokens: int
    ) -> Rehydrated:
        """What to show at the end of the prompt, within the room there is."""
        ...


class EntryForm(Protocol):
    """How one wire form is read, written and kept legal."""

    @property
    def name(self) -> str:
        """``chat``, ``responses``, …"""
        ...

    def read(self, item: object, place: str) -> Message:
        """Turn one entry of a caller's list into a message, or raise InvalidHistory naming `place`."""
        ...

    def write(self, message: Message, like: object) -> object:
        """Turn a message we made or changed into the kind of thing that `like` is."""
        ...

    def check(self, messages: Sequence[Message]) -> tuple[Violation, ...]:
        """Everything the provider would reject."""
        ...

    def repair(self, slots: Sequence[Slot]) -> tuple[tuple[Slot, ...], tuple[Repair, ...]]:
        """The nearest legal prompt, and what was changed to get there."""
        ...
