"""Cuts messages into pieces that can be kept or left out: lines, and parts of lines that are too long."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import cast

from compact.core.groups import calls_answered, group_messages
from compact.core.messages import Message, ToolCall
from compact.core.tool_use import arguments_of, is_typed


class Voice(Enum):
    """Whose words a piece is made of."""

    TYPED = "typed"  # by a person
    INSERTED = "inserted"  # by a harness, as a user message
    AGENT = "agent"
    CALL = "call"  # the arguments of a tool call
    RESULT = "result"


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a message: `place` is the message, `order` the piece in it, `line` and `start` where it stands.

    `speaker` is whose words they are, for a reader. The arguments of calls are not in the text of their message:
    their `start` is in the texts of all the arguments, one after the other.
    """

    place: int
    order: int
    line: int
    start: int
    voice: Voice
    speaker: str
    text: str

    @property
    def end(self) -> int:
        """Where it ends."""
        return self.start + len(self.text)


_LONGEST_CHARS = 90
_WHOLE_CHARS = 50
# The numbers that tools print before the lines of a file: they are not part of it.
_LINE_NUMBER = re.compile(r"\s{0,8}\d{1,6}(?:→|\t|\|\s?)")
_NOTHING_SAID = re.compile(r"[\W_]*")
_PAUSE = re.compile(r"(?<=[.!?;,])\s+|(?<=[}\]])\s*,?\s*|\s+(?=[({\[])")
_LINE = re.compile(r"[^\n]+")


def cut_into_pieces(messages: Sequence[Message]) -> list[Piece]:
    """Every piece of a history, in order; tool results are told by the call that they answer."""
    answered = calls_answered(messages, group_messages(messages))
    pieces: list[Piece] = []
    for place, message in enumerate(messages):
        pieces.extend(_pieces_of(place, message, answered.get(place)))
    return pieces


def _pieces_of(place: int, message: Message, call: ToolCall | None) -> Iterator[Piece]:
    order = number = told = 0
    for voice, speaker, text in _voices(message, call):
        for line in _LINE.finditer(text):
            number += 1
            for start, part in _parts(line.group(), is_result=voice is Voice.RESULT):
                order += 1
                yield Piece(place, order, number, told + line.start() + start, voice, speaker, part)
        told += len(text) + 1 if voice is Voice.CALL else 0


def _voices(message: Message, call: ToolCall | None) -> Iterator[tuple[Voice, str, str]]:
    if message.role == "tool":
        yield Voice.RESULT, f"{call.name if call else 'tool'} →", message.text
    elif message.role == "assistant":
        yield Voice.AGENT, "agent:", message.text
        for made in message.tool_calls:
            yield Voice.CALL, f"{made.name}:", "\n".join(argument_texts(made))
    else:
        yield Voice.TYPED if is_typed(message) else Voice.INSERTED, f"{message.role}:", message.text


def argument_texts(call: ToolCall) -> Iterator[str]:
    """The values of a call's arguments as text, without their names."""
    arguments = arguments_of(call)
    return _leaves(arguments) if arguments else iter((call.arguments,))


def _leaves(value: object) -> Iterator[str]:
    if isinstance(value, Mapping):
        for inner in cast(Mapping[str, object], value).values():
            yield from _leaves(inner)
    elif isinstance(value, list):
        for inner in cast(list[object], value):
            yield from _leaves(inner)
    elif value is not None and not isinstance(value, bool):
        yield str(value)


def _parts(line: str, *, is_result: bool) -> Iterator[tuple[int, str]]:
    """The line, or if it is long, parts of it cut where a reader would pause; each with its place in the line."""
    numbered = _LINE_NUMBER.match(line) if is_result else None
    bare = numbered.end() if numbered else 0
    if len(line) - bare < 2 or _NOTHING_SAID.fullmatch(line, bare):
        return
    if len(line) - bare <= _LONGEST_CHARS:
        yield _stripped(line, bare, len(line))
        return
    start = bare
    for pause in (*(match.start() for match in _PAUSE.finditer(line, bare)), len(line)):
        if pause - start >= _WHOLE_CHARS or pause == len(line):
            yield from _slices(line, start, pause)
            start = pause


def _slices(line: str, start: int, end: int) -> Iterator[tuple[int, str]]:
    """A part without a pause, cut at blanks, or anywhere if there are none."""
    while end - start > 2 * _LONGEST_CHARS:
        cut = line.rfind(" ", start + _WHOLE_CHARS, start + _LONGEST_CHARS)
        cut = cut if cut > 0 else start + _LONGEST_CHARS
        yield _stripped(line, start, cut)
        start = cut
    if not _NOTHING_SAID.fullmatch(line, start, end):
        yield _stripped(line, start, end)


def _stripped(line: str, start: int, end: int) -> tuple[int, str]:
    part = line[start:end]
    return start + len(part) - len(part.lstrip()), part.strip()
