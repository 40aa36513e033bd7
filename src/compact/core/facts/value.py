"""The value of content for what the agent goes on to write: one scale for every kind, falling with age."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from enum import Enum

from compact.core.facts.pieces import Origin, Piece
from compact.core.facts.tool_calls import is_typed
from compact.core.messages.message import Message


class ContentKind(Enum):
    """What a piece is: who wrote it, and where in a result it stands."""

    TYPED = "typed"  # by a person
    INSERTED = "inserted"  # by a harness, as a user message
    AGENT = "agent"  # the agent's text
    ARGUMENTS = "arguments"  # of a tool call
    HEAD = "head"  # how a result begins
    ERROR = "error"  # a line of a result that says what went wrong
    REST = "rest"  # of a result


# The ages, in tokens from the end of the history, for which the table has values; between them values are interpolated.
AGES = (125, 250, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000)
# What counts as the beginning of a result.
HEAD_CHARS = 300
_ERROR = re.compile(r"\b(?:error|errors|failed|failure|exception|traceback|fatal|denied|refused)\b", re.IGNORECASE)
_KINDS = {
    Origin.TYPED: ContentKind.TYPED,
    Origin.INSERTED: ContentKind.INSERTED,
    Origin.AGENT: ContentKind.AGENT,
    Origin.CALL: ContentKind.ARGUMENTS,
}


def content_kind(piece: Piece) -> ContentKind:
    """Return what a piece is."""
    if piece.origin is not Origin.RESULT:
        return _KINDS[piece.origin]
    if piece.start < HEAD_CHARS:
        return ContentKind.HEAD
    return ContentKind.ERROR if _ERROR.search(piece.text) else ContentKind.REST


def value(kind: ContentKind, age_tokens: float, table: Mapping[ContentKind, Sequence[float]]) -> float:
    """Return the value of a thousand tokens of a kind at an age; older than the table, it stays what it was."""
    values = table[kind]
    index = bisect_right(AGES, age_tokens)
    if index == 0:
        return values[0]
    if index == len(AGES):
        return values[-1]
    (younger, older), (high, low) = AGES[index - 1 : index + 1], values[index - 1 : index + 1]
    return high + (low - high) * (age_tokens - younger) / (older - younger)


def message_value(
    message: Message, tokens: int, age_tokens: float, table: Mapping[ContentKind, Sequence[float]]
) -> float:
    """Return the value of a message that takes so many tokens, as it begins if these are not all it has."""
    if message.role == "tool":
        head = min(tokens, HEAD_CHARS // 4)
        parts = {ContentKind.HEAD: head, ContentKind.REST: tokens - head}
    else:
        by_kind = _chars_by_kind(message)
        # What has no text, such as an image, counts as what its role says.
        chars = {kind: count for kind, count in by_kind.items() if count} or {next(iter(by_kind)): 1}
        parts = {kind: tokens * count / sum(chars.values()) for kind, count in chars.items()}
    return sum(value(kind, age_tokens, table) * part for kind, part in parts.items()) / 1000


def _chars_by_kind(message: Message) -> dict[ContentKind, int]:
    if message.role == "assistant":
        arguments = sum(len(call.arguments) for call in message.tool_calls)
        return {ContentKind.AGENT: len(message.text), ContentKind.ARGUMENTS: arguments}
    return {ContentKind.TYPED if is_typed(message) else ContentKind.INSERTED: len(message.text)}
