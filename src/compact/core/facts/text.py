"""The text kit: ranges, lines, sentences, words, and the texts in JSON.

Everything that reads or compares text in the core and in the summarisers uses these, so that two readers never
disagree about where a sentence ends or whether two lines say the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias, cast

TextRange: TypeAlias = tuple[int, int]

CUT_MARK = " …"
# What stands between the two ends of a text that was cut in the middle.
ENDS_MARK = " […] "
# Chosen: two ends of fewer characters say less than one beginning.
_MIN_ENDS_CHARS = 60
# Chosen: two lines of a terminal, enough for an error message with its path.
_LINE_CHARS = 240
# Chosen: how far `line_around` looks to either side; longer lines are data.
_REACH_CHARS = 400
# Chosen: of a text longer than both of its ends together, only these are read. Together they are about 100,000 tokens,
# and reading them takes less than a second.
_END_CHARS = 200_000
# Chosen: how far back a text without line ends is searched for the end of a word; longer words are data.
_WORD_CHARS = 80
# What belongs to the character before it, and the joiner, to which the next one belongs: family emoji, skin tones,
# accents that stand alone, the second half of a surrogate pair.
_JOINER = "\u200d"
_CONTINUES = re.compile(
    "[\u0300-\u036f\u0483-\u0489\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0900-\u0903\u093a-\u094f"
    "\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u1ab0-\u1aff\u1dc0-\u1dff\u200d\u20d0-\u20ff\u302a-\u302f\u3099\u309a\ufe00-\ufe0f"
    "\ufe20-\ufe2f\udc00-\udfff\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]"
)
PUNCTUATION = " .,;:!?"

# -- ranges and lines -------------------------------------------------------------------------------------------------


def joined_ranges(ranges: Iterable[TextRange]) -> tuple[TextRange, ...]:
    """Return ranges in order, those that touch or overlap made one."""
    joined: list[TextRange] = []
    for start, end in sorted(ranges):
        if joined and start <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return tuple(joined)


def line_around(text: str, place: int) -> TextRange:
    """Return where the line around a place begins and ends; of an endless one, what is near, cut between words.

    Looking no further keeps it cheap to ask for every place in a text that is one line.
    """
    nearest, farthest = max(0, place - _REACH_CHARS), place + _REACH_CHARS
    start = text.rfind("\n", nearest, place) + 1
    if not start and nearest:
        start = text.find(" ", nearest, place) + 1 or nearest
    end = text.find("\n", place, farthest)
    if end < 0 and farthest < len(text):
        end = text.rfind(" ", place + 1, farthest)
    return start, end if end >= 0 else min(farthest, len(text))


def ends_of(text: str, end_chars: int = _END_CHARS) -> tuple[TextRange, ...]:
    """Return where a text is read: all of it, or the two ends of a very long one, cut at a line end or between words.

    So no text costs more than its ends, whatever its length.
    """
    if len(text) <= 2 * end_chars:
        return ((0, len(text)),)
    head = max(text.rfind(mark, max(0, end_chars - _REACH_CHARS), end_chars) for mark in "\n ")
    rest = len(text) - end_chars
    tail = min((place for mark in "\n " if (place := text.find(mark, rest, rest + _REACH_CHARS)) >= 0), default=rest)
    return (0, head if head > 0 else end_chars), (tail, len(text))


def encodable(text: str) -> str:
    """Return the text with half surrogate pairs replaced, which tools print and no wire takes."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def first_line(text: str) -> str:
    """Return the first line of a text, without the blank lines before it."""
    return text.strip().split("\n", 1)[0]


def one_line(text: str, max_chars: int | None = None) -> str:
    """Return a text on one line, with single blanks, and cut if it is longer than `max_chars`."""
    line = " ".join(text.split())
    return line if max_chars is None else cut_line(line, max_chars)


def cut_line(text: str, max_chars: int = _LINE_CHARS) -> str:
    """Return at most so many characters of a text and a mark, cut between words if there are any."""
    if len(text) <= max_chars:
        return text
    blank = text.rfind(" ", max_chars // 2, max_chars + 1)
    return text[: blank if blank > 0 else max_chars].rstrip() + CUT_MARK


def first_half(text: str) -> str:
    """Return the first half of a text up to the end of a word: half a path or number would be another one."""
    place = len(text) // 2
    # Scripts without blanks may be cut anywhere.
    while place > 0 and not (text[place].isspace() or text[place - 1] > "\x7f"):
        place -= 1
    return text[: between_characters(text, place)].rstrip()


def both_ends(text: str, max_chars: int) -> str:
    """Return at most so many characters of a text: its beginning, a mark, and half as much of its end.

    What a person wants stands before or behind what they pasted. Of a few words, the beginning alone is left.
    """
    if len(text) <= max_chars:
        return text
    room = max_chars - len(ENDS_MARK)
    if room < _MIN_ENDS_CHARS:
        return text[: cut_place(text, 0, max(0, max_chars))].rstrip()
    head = text[: cut_place(text, 0, room - room // 3)].rstrip()
    rest = len(text) - room // 3
    tail = next((place for place in range(rest, len(text)) if text[place - 1].isspace()), len(text))
    if tail == len(text) and text[rest] > "\x7f":  # scripts without blanks may be cut anywhere
        tail = between_characters(text, rest)
    return f"{head}{ENDS_MARK}{text[tail:]}" if tail < len(text) else head


def cut_place(text: str, start: int, place: int) -> int:
    """Return where a text that begins at `start` is cut so that it ends at a place or before: behind a word.

    Scripts without blanks, and words too long to be any, are cut between two characters. `start` itself is returned
    where that would leave half of a short word.
    """
    if place >= len(text):
        return len(text)
    nearest = max(start, place - _WORD_CHARS)
    for end in range(place, nearest, -1):
        if text[end].isspace():
            return end
    if text[place - 1] > "\x7f" or place - start > _WORD_CHARS:
        return max(start, between_characters(text, place))
    return start


def between_characters(text: str, place: int, least: int = 0) -> int:
    """Return a place, or the nearest one before it down to `least`, that does not part what is shown as one character.

    `least` keeps a text that is one pile of accents from being read anew for each of its pieces.
    """
    while least < place < len(text) and (_CONTINUES.match(text, place) or text[place - 1] == _JOINER):
        place -= 1
    return place


# -- sentences ---------------------------------------------------------------------------------------------------------

# What parts two sentences: line ends; blanks behind a full stop that is not part of an abbreviation; nothing at all in
# scripts without blanks, whose full stop may have a closing quote behind it.
_NO_ABBREVIATION = r"(?<!e\.g\.)(?<!i\.e\.)"
_UNSPACED_GAP = "(?:(?<=[。！？])(?![」』”’）])|(?<=[。！？][」』”’）]))[ \t]*"
_GAP = re.compile(rf"\n+|(?<=[.!?]){_NO_ABBREVIATION}[ \t]++(?![a-z])|{_UNSPACED_GAP}")
_CLAUSE_GAP = re.compile(rf"\n+|(?<=[.!?;]){_NO_ABBREVIATION}[ \t]+|{_UNSPACED_GAP}")


def sentence_ranges(text: str, *, split_clauses: bool = False) -> Iterator[TextRange]:
    """Yield where each sentence stands; what is between two ranges is blanks and line ends.

    A full stop before a small letter ends no sentence, as it may belong to an abbreviation. With `split_clauses` it
    does, and so does a semicolon: for checking, where rather too little than too much is judged at once.
    """
    start = 0
    for gap in (_CLAUSE_GAP if split_clauses else _GAP).finditer(text):
        yield start, gap.start()
        start = gap.end()
    if start < len(text):
        yield start, len(text)


def whole_sentences(text: str) -> str:
    """Return a text that was cut anywhere up to the end of its last whole sentence, or else of its last whole word."""
    if text.endswith("\n") or text.rstrip().endswith((".", "!", "?", "。", "！", "？")):
        return text.rstrip()
    *whole, _unfinished = tuple(sentence_ranges(text, split_clauses=True)) or ((0, 0),)
    ends = [end for _, end in whole if text[end - 1 : end] not in ("", ";")]
    if ends:
        return text[: ends[-1]].rstrip()
    return text[: text.rindex(" ")].rstrip() if " " in text else text


# -- words -------------------------------------------------------------------------------------------------------------

_WORD_OR_NUMBER = re.compile(r"\w+")
# Words, names and paths: what a statement is about.
_TERM = re.compile(r"[\w./-]+")
# Chosen: nearly all words in common, so that a changed ending makes no second statement.
_SAME_STATEMENT_SHARE = 0.8
_WORD = re.compile(r"[^\W\d_\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{3,}")
# Scripts that put no blanks between words: two signs at a time.
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{2,}")
_ENDINGS = ("ing", "ed", "es", "s")
# Chosen: long enough to tell most words apart, short enough that their forms agree.
_STEM_CHARS = 6
# Words that every history has, and those that turn a sentence into an order: they say nothing about what it is about.
_EMPTY_WORDS = re.compile(
    "about|accepted|after|again|agent|agreed|agrees|all|allowed|also|always|and|any|approved|are|ask|asked|asks|"
    "assistant|avoid|because|been|before|being|but|can|cannot|confirmed|conversation|could|customer|did|does|doing|"
    "don|done|each|ensure|every|for|from|had|has|have|her|here|him|his|how|instead|instructed|into|its|just|let|like|"
    "made|make|may|message|messages|more|most|must|need|needed|needs|never|next|not|now|off|one|only|onto|other|our|"
    "out|over|please|prefers|remember|request|requested|said|say|says|session|she|should|some|still|such|sure|that|"
    "the|their|them|then|there|these|they|this|those|through|too|until|use|used|user|uses|using|very|want|wanted|"
    "wants|was|way|were|what|when|where|which|while|who|why|will|with|without|would|yet|you|your"
)
_NEGATION = re.compile(
    r"\b(?:never|not?|nothing|without|avoid|stop|forbid\w*|refus\w*|cannot)\b|n['’]t\b", re.IGNORECASE
)


def normalized(text: str, *, trim: str = PUNCTUATION) -> str:
    """Return a text without what people write one way or another: case, blanks, apostrophes, marks at its ends."""
    return " ".join(text.lower().replace("’", "'").split()).strip(trim)


def words_of(text: str, *, min_chars: int = 1) -> set[str]:
    """Return the words of a text that have so many letters, in lower case; numbers are none."""
    return {word.lower() for word in re.findall(rf"[^\W\d_]{{{min_chars},}}", text)}


def word_runs(text: str, length: int) -> set[tuple[str, ...]]:
    """Return every run of so many words and numbers, in lower case: texts that share many were copied."""
    words = _WORD_OR_NUMBER.findall(text.lower())
    return {tuple(words[place : place + length]) for place in range(len(words) - length + 1)}


def only_words(text: str) -> str:
    """Return the words and numbers of a text in lower case, with a blank around each: for finding whole words."""
    return f" {' '.join(_WORD_OR_NUMBER.findall(text.lower()))} "


def is_same_statement(one: str, other: str) -> bool:
    """Return True if two texts have nearly all words in common; a number or a name that differs makes them two."""
    a, b = _terms(one), _terms(other)
    if not a or not b:
        return a == b
    if any(not word.isalpha() for word in a ^ b):
        return False
    return len(a & b) >= _SAME_STATEMENT_SHARE * len(a | b)


def _terms(text: str) -> set[str]:
    terms = {term.rstrip("./-") for term in _TERM.findall(text.lower())}
    return terms - {""}


def stands_in(text: str, wanted: str) -> bool:
    """Return True if a text has a string that is not part of a longer word there."""
    place = text.find(wanted)
    while place >= 0:
        end = place + len(wanted)
        before, after = text[place - 1 : place], text[end : end + 1]
        if not (_joins(before, wanted[:1]) or _joins(wanted[-1:], after)):
            return True
        place = text.find(wanted, place + 1)
    return False


def _joins(left: str, right: str) -> bool:
    return (left.isalnum() or left == "_") and (right.isalnum() or right == "_")


class WordBag:
    """The stems of the words of a text that say what it is about, and whether it denies or forbids something."""

    __slots__ = ("is_negated", "stems")

    def __init__(self, text: str) -> None:
        stems = {_stem(word) for word in _WORD.findall(text.lower()) if not _EMPTY_WORDS.fullmatch(word)}
        pairs = {run[place : place + 2] for run in _UNSPACED.findall(text) for place in range(len(run) - 1)}
        self.stems = frozenset(stems | pairs)
        self.is_negated = _NEGATION.search(text) is not None

    def covered_by(self, others: Iterable[WordBag], *, share: float) -> bool:
        """Return True if one of the others has that share of these stems; what is denied here must be there, too."""
        needed = share * len(self.stems)
        return bool(self.stems) and any(
            len(self.stems & other.stems) >= needed and (other.is_negated or not self.is_negated) for other in others
        )

    def likeness(self, other: WordBag) -> float:
        """Return the share of the stems of both that they have in common."""
        return len(self.stems & other.stems) / len(self.stems | other.stems) if self.stems and other.stems else 0.0


def _stem(word: str) -> str:
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word[: -len(ending)]
            break
    return word[:_STEM_CHARS].rstrip("e")


# -- JSON --------------------------------------------------------------------------------------------------------------


def json_leaves(value: object, *, with_names: bool = False) -> Iterator[str]:
    """Yield the values in JSON as text, in order; with names, those of fields too, and what is true or false."""
    if isinstance(value, Mapping):
        for name, inner in cast(Mapping[object, object], value).items():
            if with_names:
                yield str(name)
            yield from json_leaves(inner, with_names=with_names)
    elif isinstance(value, list):
        for inner in cast(list[object], value):
            # Not by a call for each: lists of a hundred thousand numbers occur.
            if isinstance(inner, str | int | float) and not isinstance(inner, bool):
                yield str(inner)
            else:
                yield from json_leaves(inner, with_names=with_names)
    elif value is not None and (with_names or not isinstance(value, bool)):
        yield str(value)


def change_json_leaves(value: object, change: Callable[[object, int], object]) -> Any:
    """Return JSON with each leaf changed.

    `change` gets the leaves of `json_leaves` in their order, each with its place in the texts of all of them, one to a
    line.
    """
    return _changed(value, change, 0)[0]


def _changed(value: object, change: Callable[[object, int], object], place: int) -> tuple[Any, int]:
    if value is None or isinstance(value, bool):
        return value, place
    if isinstance(value, Mapping):
        named: dict[object, object] = {}
        for name, inner in cast(Mapping[object, object], value).items():
            named[name], place = _changed(inner, change, place)
        return named, place
    if isinstance(value, list):
        listed: list[object] = []
        for inner in cast(list[object], value):
            changed, place = _changed(inner, change, place)
            listed.append(changed)
        return listed, place
    return change(value, place), place + len(str(value)) + 1
