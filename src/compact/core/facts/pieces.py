"""Cut messages into pieces that can be kept or left out: lines, and parts of lines that are too long."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from compact.core.facts.tool_calls import argument_texts, command_of, is_typed, path_of
from compact.core.log.groups import calls_answered, group_messages
from compact.core.log.messages import Message, ToolCall

# The place of the message that makes a call, and which of its calls it is; -1 for a text that is no part of a call.
Step: TypeAlias = tuple[int, int]


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

    `step` is the call that it belongs to, as an argument or as a part of the result. Arguments of calls are not in the
    text of their message: their `start` is in the texts of all the arguments, one after the other. `gap` is the blanks
    between it and the piece before it, if nothing else and no end of line is between them.
    """

    place: int
    order: int
    line: int
    start: int
    origin: Origin
    step: Step
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
    """Return every piece of a history, in order; those of a tool result know the call that it answers."""
    groups = group_messages(messages)
    answered = calls_answered(messages, groups)
    callers = {index: group.indices[0] for group in groups for index in group.indices[1:]}
    pieces: list[Piece] = []
    for place, message in enumerate(messages):
        call, caller = answered.get(place), callers.get(place)
        step = (caller, messages[caller].tool_calls.index(call)) if call and caller is not None else None
        pieces.extend(_pieces_of(place, message, call, step or (place, -1)))
    return pieces


def _pieces_of(place: int, message: Message, call: ToolCall | None, step: Step) -> Iterator[Piece]:
    order = number = arguments_before = 0
    numbers = _line_numbers(message, call)
    for which, (origin, text) in enumerate(_texts_of(message), start=-1):
        text_step = (place, which) if origin is Origin.CALL else step
        for line in _LINE.finditer(text):
            number += 1
            end = -1
            for start, part in _parts(line.group(), numbers):
                order += 1
                between = line.group()[end:start] if end >= 0 else "-"
                gap = None if between.strip() else between
                at = arguments_before + line.start() + start
                yield Piece(place, order, number, at, origin, text_step, part, gap)
                end = start + len(part)
        arguments_before += len(text) if origin is Origin.CALL else 0


def _line_numbers(message: Message, call: ToolCall | None) -> re.Pattern[str] | None:
    """Return what the numbers look like that a tool has put before lines."""
    if message.role != "tool":
        return None
    reads_file = call is not None and (path_of(call) or _NUMBERING.search(command_of(call) or ""))
    return _LINE_NUMBER if reads_file else _ARROW_NUMBER


def _texts_of(message: Message) -> Iterator[tuple[Origin, str]]:
    """Yield the texts of a message, each with its origin; the arguments of its calls come after its own text."""
    if message.role == "tool":
        yield Origin.RESULT, message.text
    elif message.role == "assistant":
        yield Origin.AGENT, message.text
        for made in message.tool_calls:
            yield Origin.CALL, "".join(f"{text}\n" for text in argument_texts(made))
    else:
        yield Origin.TYPED if is_typed(message) else Origin.INSERTED, message.text


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
