"""Cut messages into pieces that can be kept or left out: lines, and parts of lines that are too long."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from compact.core.facts.tool_calls import argument_texts, command_of, is_typed, path_of
from compact.core.log.groups import calls_answered, group_messages
from compact.core.log.messages import Message, ToolCall


class Origin(Enum):
    """Where a piece comes from."""

    TYPED = "typed"  # by a person
    INSERTED = "inserted"  # by a harness, as a user message
    AGENT = "agent"  # the agent's text
    CALL = "call"  # the arguments of a tool call
    RESULT = "result"  # of a tool


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a message: `place` is the message, `order` the piece in it, `line` and `start` where it stands.

    `label` is its origin for a reader (`agent:`, `bash →`). Arguments of calls are not in the text of their message:
    their `start` is in the texts of all the arguments, one after the other. `gap` is the blanks between it and the
    piece before it, if nothing else and no end of line is between them.
    """

    place: int
    order: int
    line: int
    start: int
    origin: Origin
    label: str
    text: str
    gap: str | None = None

    @property
    def end(self) -> int:
        """Where it ends."""
        return self.start + len(self.text)


@dataclass(frozen=True, slots=True)
class _Lengths:
    """How long a line may be, and how long a part of a longer one is at least."""

    longest_chars: int
    shortest_chars: int


# Data is cut finer than prose: among records each value stands for itself, in a sentence a name needs its neighbours.
# Chosen; `python benchmarks/fidelity` measures what comes of it.
_PROSE_LENGTHS = _Lengths(200, 110)
_DATA_LENGTHS = _Lengths(90, 50)
_DATA = re.compile(r'"\s*:\s*["\d\[{]|\},\s*\{')
# The numbers that tools print before the lines of a file: they are not part of it. Before a tab they may be what was
# asked for, unless a file was.
_LINE_NUMBER = re.compile(r"\s{0,8}\d{1,6}(?:→|\t|\|\s?)")
_ARROW_NUMBER = re.compile(r"\s{0,8}\d{1,6}→")
_NUMBERING = re.compile(r"\bcat -\w*n|\bnl\b")
_NO_WORD = re.compile(r"[\W_]*")
_PAUSE = re.compile(r"(?<=[.!?;,])\s+|(?<=[}\]])\s*,?\s*|(?<!\s)\s+(?=[({\[])")
_LINE = re.compile(r"[^\n]+")


def cut_into_pieces(messages: Sequence[Message]) -> list[Piece]:
    """Return every piece of a history, in order; a tool result is labelled with the call that it answers."""
    answered = calls_answered(messages, group_messages(messages))
    pieces: list[Piece] = []
    for place, message in enumerate(messages):
        pieces.extend(_pieces_of(place, message, answered.get(place)))
    return pieces


def _pieces_of(place: int, message: Message, call: ToolCall | None) -> Iterator[Piece]:
    order = number = arguments_before = 0
    numbers = _line_numbers(message, call)
    for origin, label, text in _texts_of(message, call):
        for line in _LINE.finditer(text):
            number += 1
            end = -1
            for start, part in _parts(line.group(), numbers):
                order += 1
                between = line.group()[end:start] if end >= 0 else "-"
                gap = None if between.strip() else between
                yield Piece(place, order, number, arguments_before + line.start() + start, origin, label, part, gap)
                end = start + len(part)
        arguments_before += len(text) if origin is Origin.CALL else 0


def _line_numbers(message: Message, call: ToolCall | None) -> re.Pattern[str] | None:
    """Return what the numbers look like that a tool has put before lines."""
    if message.role != "tool":
        return None
    reads_file = call is not None and (path_of(call) or _NUMBERING.search(command_of(call) or ""))
    return _LINE_NUMBER if reads_file else _ARROW_NUMBER


def _texts_of(message: Message, call: ToolCall | None) -> Iterator[tuple[Origin, str, str]]:
    """Yield the texts of a message, each with its origin and the label for it."""
    if message.role == "tool":
        yield Origin.RESULT, f"{call.name if call else 'tool'} →", message.text
    elif message.role == "assistant":
        yield Origin.AGENT, "agent:", message.text
        for made in message.tool_calls:
            yield Origin.CALL, f"{made.name}:", "".join(f"{text}\n" for text in argument_texts(made))
    else:
        yield Origin.TYPED if is_typed(message) else Origin.INSERTED, f"{message.role}:", message.text


def _parts(line: str, numbers: re.Pattern[str] | None) -> Iterator[tuple[int, str]]:
    """Yield the line, or if it is long, parts of it cut where a reader would pause; each with its place in it."""
    numbered = numbers.match(line) if numbers else None
    bare = numbered.end() if numbered else 0
    if _NO_WORD.fullmatch(line, bare):
        return
    lengths = _DATA_LENGTHS if _DATA.search(line, bare) else _PROSE_LENGTHS
    if len(line) - bare <= lengths.longest_chars:
        yield _stripped(line, bare, len(line))
        return
    start = bare
    for pause in (*(match.start() for match in _PAUSE.finditer(line, bare)), len(line)):
        if pause - start >= lengths.shortest_chars or pause == len(line):
            yield from _slices(line, start, pause, lengths)
            start = pause


def _slices(line: str, start: int, end: int, lengths: _Lengths) -> Iterator[tuple[int, str]]:
    """Yield a part without a pause, cut at blanks, or anywhere if there are none."""
    longest = lengths.longest_chars
    while end - start > 2 * longest:
        cut = line.rfind(" ", start + lengths.shortest_chars, start + longest)
        cut = cut if cut > 0 else start + longest
        if not _NO_WORD.fullmatch(line, start, cut):
            yield _stripped(line, start, cut)
        start = cut
    if not _NO_WORD.fullmatch(line, start, end):
        yield _stripped(line, start, end)


def _stripped(line: str, start: int, end: int) -> tuple[int, str]:
    part = line[start:end]
    return start + len(part) - len(part.lstrip()), part.strip()
