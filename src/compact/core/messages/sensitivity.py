"""How sensitive an entry is, and what stands for it where it must not go.

The agent's own prompt and the state store have everything as it came. All other ways out (recall, archive, export,
summaries and with them events) have what is public or internal; a line stands for the rest.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from compact.core.messages.message import Message
from compact.core.plurals import quantity

SENSITIVITIES = ("public", "internal", "confidential", "restricted")
OPEN_SENSITIVITIES = SENSITIVITIES[:2]
# What a word that is none of these is taken for: whoever wrote it wanted more than nothing.
_STRICTEST = SENSITIVITIES[-1]


def sensitivity_of(message: Message, default: str = "internal") -> str:
    """Return how sensitive a message is; `default` is that of tool results which do not say."""
    own = message.meta.get("sensitivity")
    if own is None:
        return default if message.role == "tool" else "internal"
    named = str(own).strip().casefold()
    return named if named in SENSITIVITIES else _STRICTEST


def is_open(message: Message, default: str = "internal") -> bool:
    """Return True if a message may leave by every way."""
    return sensitivity_of(message, default) in OPEN_SENSITIVITIES


def closed_ids(messages: Iterable[Message], default: str = "internal") -> frozenset[str]:
    """Return the ids of the messages that are more than internal."""
    marked = _that_may_be_closed(messages, default)
    return frozenset(message.id for message in marked if not is_open(message, default))


def _that_may_be_closed(messages: Iterable[Message], default: str) -> Iterable[Message]:
    """Return the messages that have to be asked: most have no marks at all."""
    return (message for message in messages if message.meta) if default in OPEN_SENSITIVITIES else messages


def withheld(message: Message, default: str = "internal") -> Message:
    """Return a message as it may leave: a line in place of what is more than internal, and its calls without arguments.

    Flags of its `meta` stay, since others decide by them; what else is there may quote the content.
    """
    if is_open(message, default):
        return message
    level = sensitivity_of(message, default)
    chars = len(message.text) + sum(len(call.arguments) for call in message.tool_calls)
    flags = {name: value for name, value in message.meta.items() if isinstance(value, bool)}
    return replace(
        message,
        content=f"[{level} content of {quantity(chars, 'character')} is not shown here]",
        tool_calls=tuple(replace(call, arguments="{}") for call in message.tool_calls),
        meta={**flags, "sensitivity": level},
        original=None,
    )
