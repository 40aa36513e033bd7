"""Cut messages into pieces that can be kept or left out: lines, and parts of lines that are too long."""

from __future__ import annotations

import re
import sys
from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import count
from typing import NamedTuple, TypeAlias

from compact.core.facts.common_words import COMMON_WORDS
from compact.core.facts.entities import EntityKind, entity_kinds
from compact.core.facts.text import between_characters, ends_of, words_of
from compact.core.facts.tool_calls import argument_texts, call_subjects, is_typed
from compact.core.messages.groups import calls_answered, group_messages
from compact.core.messages.message import Message

# The place of the message that makes a call, and which of its calls it is; -1 for a text that is no part of a call.
Step: TypeAlias = tuple[int, int]


class Origin(Enum):
    """Where a piece comes from."""

    TYPED = "typed"  # by a person
    INSERTED = "inserted"  # by a harness, as a user message
    AGENT = "agent"  # the agent's text
    CALL = "call"  # the arguments of a tool call
    RESULT = "result"  # of a tool


class Piece(NamedTuple):
    """A part of a message: `place` is the message, `order` the piece in it, `line` and `start` where it stands.

    `step` is the call that it belongs to, as an argument or as a part of the result. Arguments of calls are not in the
    text of their message: their `start` is in the texts of all the arguments, one after the other. `gap` is the blanks
    between it and the piece before it, if nothing else and no end of line is between them. `strings` are the specific
    strings in it, `words` its words in lower case, and `kinds` says what each string of its message is.

    A tuple: each compaction makes thousands, in a third of the time that a frozen dataclass takes.
    """

    place: int
    order: int
    line: int
    start: int
    origin: Origin
    step: Step
    text: str
    gap: str | None
    strings: frozenset[str]
    words: frozenset[str]
    kinds: Mapping[str, EntityKind]

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
_NO_WORD = re.compile(r"[\W_]*")
_PAUSE = re.compile(r"(?<=[.!?;,])\s+|(?<=[}\]])\s*,?\s*|(?<!\s)\s+(?=[({\[])")
_LINE = re.compile(r"[^\n]+")


# Chosen: of a text that has more pieces than these at both of its ends, only these are read. Lists of short lines have
# so many; 200,000 characters of code have fewer.
_MAX_PIECES_OF_END = 5_000
# Chosen: a greeting or a "yes, go on" is not longer.
_MAX_PHRASE_CHARS = 100
# Shorter words tell nothing about what a line is about. Chosen.
_MIN_WORD_CHARS = 4


@dataclass(frozen=True, slots=True)
class _MessageText:
    """A text of a message, and its origin."""

    origin: Origin
    text: str


@dataclass(frozen=True, slots=True)
class _CutText:
    """The pieces of a text in numbers, which take little room: they are kept as long as the message is.

    For each piece, `places` has the line, where it starts and ends, and how many strings and words are in it; `found`
    has the numbers of these, in the same order.
    """

    source: _MessageText
    places: array[int]
    found: array[int]


@dataclass(frozen=True, slots=True)
class _CutMessage:
    """The texts of a message in pieces; `strings` and `words` have everything that was found in them, each once."""

    texts: tuple[_CutText, ...]
    strings: tuple[str, ...]
    kinds: tuple[EntityKind, ...]
    words: tuple[str, ...]


def cut_into_pieces(messages: Sequence[Message], places: Collection[int] | None = None) -> list[Piece]:
    """Return every piece of a history, in order; those of a tool result know the call that it answers.

    Of a very long text only the two ends are cut into pieces. With `places`, only the messages there are: those of
    whole groups.
    """
    read = range(len(messages)) if places is None else sorted(places)
    shown = [messages[place] for place in read]
    groups = group_messages(shown)
    answered = {read[n]: call for n, call in calls_answered(shown, groups).items()}
    callers = {read[n]: read[group.indices[0]] for group in groups for n in group.indices}
    pieces: list[Piece] = []
    for place, message in zip(read, shown, strict=True):
        call, step, has_numbers = answered.get(place), (place, -1), False
        if call is not None:
            caller = messages[callers[place]]
            step = (callers[place], caller.tool_calls.index(call))
            has_numbers = call_subjects(caller)[call.id].prints_numbers
        cut = message.read_once(_cut_numbered if has_numbers else _cut_plain)
        pieces.extend(_pieces_of(place, cut, step))
    return pieces


def is_specific(message: Message) -> bool:
    """Return True if a message says what is not said everywhere: a name, a number, an uncommon word, or many words."""
    if not 0 < len(message.text) <= _MAX_PHRASE_CHARS or message.tool_calls:
        return True
    cut = message.read_once(_cut_plain)
    return bool(cut.strings) or not COMMON_WORDS.issuperset(cut.words)


def _pieces_of(place: int, cut: _CutMessage, step: Step) -> Iterator[Piece]:
    kinds = dict(zip(cut.strings, cut.kinds, strict=True))
    string, word = cut.strings.__getitem__, cut.words.__getitem__
    orders, arguments_before = count(1), 0
    for which, part in enumerate(cut.texts, start=-1):
        origin, text, found = part.source.origin, part.source.text, part.found
        text_step = (place, which) if origin is Origin.CALL else step
        line_before, end_before, done = 0, 0, 0
        numbers = iter(part.places)
        for line, start, end, strings, words in zip(numbers, numbers, numbers, numbers, numbers, strict=True):
            between = text[end_before:start] if line == line_before else "-"
            middle, last = done + strings, done + strings + words
            yield Piece(
                place,
                next(orders),
                line,
                arguments_before + start,
                origin,
                text_step,
                text[start:end],
                None if between.strip() else between,
                frozenset(map(string, found[done:middle])),
                frozenset(map(word, found[middle:last])),
                kinds,
            )
            line_before, end_before, done = line, end, last
        arguments_before += len(text) if origin is Origin.CALL else 0


def _cut_numbered(message: Message) -> _CutMessage:
    return _cut_message(message, _LINE_NUMBER)


def _cut_plain(message: Message) -> _CutMessage:
    return _cut_message(message, _ARROW_NUMBER if message.role == "tool" else None)


def _cut_message(message: Message, numbers: re.Pattern[str] | None) -> _CutMessage:
    """Cut a message into pieces, and read each of them."""
    strings: dict[str, int] = {}
    words: dict[str, int] = {}
    kinds: list[EntityKind] = []
    texts: list[_CutText] = []
    lines = 0
    for source in _texts_of(message):
        places, found = array("I"), array("I")
        for line, start, end in _ranges(source.text, numbers, lines + 1):
            here = entity_kinds(source.text[start:end])
            said = sorted(words_of(source.text[start:end], min_chars=_MIN_WORD_CHARS))
            kinds.extend(kind for string, kind in here.items() if string not in strings)
            places.extend((line, start, end, len(here), len(said)))
            found.extend(_numbered(here, strings))
            found.extend(_numbered(said, words))
            lines = line
        texts.append(_CutText(source, places, found))
    return _CutMessage(tuple(texts), tuple(strings), tuple(kinds), tuple(words))


def _numbered(found: Iterable[str], known: dict[str, int]) -> Iterator[int]:
    """Yield the number of each string, new ones with the next; a string is in memory once, however many have it."""
    for string in found:
        number = known.get(string)
        if number is None:
            number = known[sys.intern(string)] = len(known)
        yield number


def _ranges(text: str, numbers: re.Pattern[str] | None, first_line: int) -> list[tuple[int, int, int]]:
    """Return the pieces of a text: the line, counted from a number on, and where the piece starts and ends."""
    lines = (found for first, last in ends_of(text) for found in _LINE.finditer(text, first, last))
    ranges = [
        (number, line.start() + start, line.start() + start + len(part))
        for number, line in enumerate(lines, first_line)
        for start, part in _parts(line.group(), numbers)
    ]
    del ranges[_MAX_PIECES_OF_END:-_MAX_PIECES_OF_END]
    return ranges


def _texts_of(message: Message) -> Iterator[_MessageText]:
    """Yield the texts of a message; the arguments of its calls come after its own text."""
    if message.role == "tool":
        yield _MessageText(Origin.RESULT, message.text)
    elif message.role == "assistant":
        yield _MessageText(Origin.AGENT, message.text)
        for made in message.tool_calls:
            yield _MessageText(Origin.CALL, "".join(f"{text}\n" for text in argument_texts(made)))
    else:
        yield _MessageText(Origin.TYPED if is_typed(message) else Origin.INSERTED, message.text)


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
        cut = cut if cut > 0 else between_characters(line, start + longest, start)
        # A pile of accents is one character, however long: it is cut all the same.
        cut = cut if cut > start else start + longest
        if not _NO_WORD.fullmatch(line, start, cut):
            yield _stripped(line, start, cut)
        start = cut
    if not _NO_WORD.fullmatch(line, start, end):
        yield _stripped(line, start, end)


def _stripped(line: str, start: int, end: int) -> tuple[int, str]:
    part = line[start:end]
    return start + len(part) - len(part.lstrip()), part.strip()
