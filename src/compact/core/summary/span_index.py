"""Where what stands in the history that a summary is made of, so that nobody looks at every message for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from compact.core.facts.tool_calls import is_typed
from compact.core.messages.groups import Group, group_messages
from compact.core.messages.message import Message, text_chars


@dataclass(frozen=True, slots=True)
class SpanIndex:
    """The groups of a history, and the places of its messages by id, of what people typed, and of the span.

    `ask_chars` says how long each of those is that people typed, as `text_chars` does.
    """

    groups: Sequence[Group]
    places: Mapping[str, int]
    asks: Sequence[int]
    ask_chars: Sequence[int]
    span: Sequence[int]

    @classmethod
    def of(cls, history: Sequence[Message], span: Iterable[Message]) -> SpanIndex:
        """Return that of a history which nobody has read yet."""
        inside = {message.id for message in span}
        asks = [place for place, message in enumerate(history) if is_typed(message)]
        return cls(
            groups=group_messages(history),
            places={message.id: place for place, message in enumerate(history)},
            asks=asks,
            ask_chars=[text_chars(history[place]) for place in asks],
            span=[place for place, message in enumerate(history) if message.id in inside],
        )
