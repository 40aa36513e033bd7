"""Cuts messages into pieces that can be kept or left out: lines, and parts of lines that are too long."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import cast

from compact.core.facts.tool_calls import arguments_of, command_of, is_typed, path_of
from compact.core.log.groups import calls_answered, group_messages
from compact.core.log.messages import Message, ToolCall


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
    their `start` is in the texts of all the arguments, one after the other. `gap` is the blanks between it and the
    piece before it, if nothing else and no end of line is between them.
    """

    place: int
    order: int
    line: int
    start: int
    voice: Voice
    speaker: str
    text: str
    gap: str | None = None

    @property
    def end(self) -> int:
        """Where it ends."""
        return self.start + len(self.text)


# How long a line may be, and how long a part of a longer one is at least. Data is cut finer than what is said: among
# records each value stands for itself, in a sentence a name needs its neighbours.
_SAID_CHARS = (200, 110)
_DATA_CHARS = (90, 50)
_DATA = re.compile(r'"\s*:\s*["\d\[{]|\},\s*\{')
# The numbers that tools print before the lines of a file: they are not part of it. Before a tab they may be what was
# asked for, unless a file was.
_LINE_NUMBER = re.compile(r"\s{0,8}\d{1,6}(?:→|\t|\|\s?)")
_ARROW_NUMBER = re.compile(r"\s{0,8}\d{1,6}→")
_NUMBERING = re.compile(r"\bcat -\w*n|\bnl\b")
_NOTHING_SAID = re.compile(r"[\W_]*")
_PAUSE = re.compile(r"(?<=[.!?;,])\s+|(?<=[}\]])\s*,?\s*|(?<!\s)\s+(?=[({\[])")
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
    numbers = _line_numbers(message, call)
    for voice, speaker, text in _voices(message, call):
        for line in _LINE.finditer(text):
            number += 1
            end = -1
            for start, part in _parts(line.group(), numbers):
                order += 1
                between = line.group()[end:start] if end >= 0 else "-"
                gap = None if between.strip() else between
                yield Piece(place, order, number, told + line.start() + start, voice, speaker, part, gap)
                end = start + len(part)
        told += len(text) if voice is Voice.CALL else 0


def _line_numbers(message: Message, call: ToolCall | None) -> re.Pattern[str] | None:
    """What numbers look like that a tool has put before lines."""
    if message.role != "tool":
        return None
    reads_file = call is not None and (path_of(call) or _NUMBERING.search(command_of(call) or ""))
    return _LINE_NUMBER if reads_file else _ARROW_NUMBER


def _voices(message: Message, call: ToolCall | None) -> Iterator[tuple[Voice, str, str]]:
    if message.role == "tool":
        yield Voice.RESULT, f"{call.name if call else 'tool'} →", message.text
    elif message.role == "assistant":
        yield Voice.AGENT, "agent:", message.text
        for made in message.tool_calls:
            yield Voice.CALL, f"{made.name}:", "".join(f"{text}\n" for text in argument_texts(made))
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


def _parts(line: str, numbers: re.Pattern[str] | None) -> Iterator[tuple[int, str]]:
    """The line, or if it is long, parts of it cut where a reader would pause; each with its place in the line."""
    numbered = numbers.match(line) if numbers else None
    bare = numbered.end() if numbered else 0
    if _NOTHING_SAID.fullmatch(line, bare):
        return
    longest, whole = _DATA_CHARS if _DATA.search(line, bare) else _SAID_CHARS
    if len(line) - bare <= longest:
        yield _stripped(line, bare, len(line))
        return
    start = bare
    for pause in (*(match.start() for match in _PAUSE.finditer(line, bare)), len(line)):
        if pause - start >= whole or pause == len(line):
            yield from _slices(line, start, pause, longest, whole)
            start = pause


def _slices(line: str, start: int, end: int, longest: int, whole: int) -> Iterator[tuple[int, str]]:
    """A part without a pause, cut at blanks, or anywhere if there are none."""
    while end - start > 2 * longest:
        cut = line.rfind(" ", start + whole, start + longest)
        cut = cut if cut > 0 else start + longest
        if not _NOTHING_SAID.fullmatch(line, start, cut):
            yield _stripped(line, start, cut)
        start = cut
    if not _NOTHING_SAID.fullmatch(line, start, end):
        yield _stripped(line, start, end)


def _stripped(line: str, start: int, end: int) -> tuple[int, str]:
    part = line[start:end]
    return start + len(part) - len(part.lstrip()), part.strip()
