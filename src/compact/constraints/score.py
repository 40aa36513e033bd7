"""The score of a sentence: how likely it is to be a constraint, by the weights of what is found in it."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise, repeat
from typing import NamedTuple

from compact.constraints.sentences import MAX_SENTENCE_CHARS
from compact.constraints.word_lists import Cue, english_cues, foreign_cues, unspaced_pattern, word_class

# Every sentence has this feature; its weight is what a sentence scores before anything is found in it.
BIAS = "=bias"
# What stands in for tokens of which only the kind counts: with a digit, and with a dot or an underscore inside.
NUMBER_TOKEN = "#"
NAME_TOKEN = "@"

# A sentence is a constraint from this score on. Chosen: the smallest score above zero, at which as much speaks for a
# constraint as against it.
MIN_SCORE = 0.1
# Chosen above any learned score: nothing was learned about other languages, one cue of theirs decides alone.
FOREIGN_SCORE = 6.0
# From this score on a constraint is kept whatever it takes.
CERTAIN_SCORE = 2.0
# An order with "always" or "never", "from now on" and "do not" say so themselves, whatever the other words are: a table
# is seldom in a constraint, and "Do not delete the table orders" is one. Not so in a question, in a report of what
# always happens, and in two words.
_EXPLICIT = frozenset({"=always-order", "=from-now-on"})
_BEGINS_WITH_NOT = frozenset({"^do", "^don't", "^dont"})
_NOT_SAID_SO = frozenset({"=question", "=asks", "=report", "=tiny", "=one-off"})
# Chosen: a part of a sentence has to be clearer than a whole one; a clause much clearer than what follows "also".
_ASIDE_DISCOUNT = 0.2
_CLAUSE_DISCOUNT = 1.2
_MIN_SPACES_FOR_CLAUSES = 20

_CLASSES = (
    "verb", "style-verb", "outputs", "output", "language", "style", "decoration", "unit", "number", "third-party",
)  # fmt: skip
# Written before a word that has a class, or that an order may begin with: cues are then matched without looking words
# up. These characters are for private use, no text has them by accident.
_CLASS_MARKS = {name: chr(0xE001 + place) for place, name in enumerate(_CLASSES)}
_OPEN_MARK = "\ue000"
_MARKS = _OPEN_MARK + "".join(_CLASS_MARKS.values())
_SPACE = f",?\\s+[{_MARKS}]*"

_WORD = re.compile(r"\w+(?:['.-]\w+)*|\?")
_PAUSE = frozenset(",;:(.!?–—-…")
_ID = re.compile(r"(?:^|[ (])#?[A-Z0-9_]*\d[A-Z0-9_]{4,}\b|\$\d|#[A-Z]?\d{2,}")
_NOT_THAT = re.compile(r"(?:[\w'.,:!-]+ ){1,8}not (?:in |on |with |by |for |via )?[\w.+#/-]+(?: please)?[.!]*$")
_NUMBERED = re.compile(r"^[#*\s]*\(?\d{1,3}[.)]\s+")
_KEY_VALUE = re.compile(r"[\w ]{2,24}: ?\S+(?: \S+){0,3}$")
_QUOTATION = re.compile(r"`[^`\n]+`|[\"“][^\"“”\n]{12,300}[\"”]")
_QUOTED = "quotation"
# Names in code, paths, calls, arrows and comparisons: logs, reports and reviews are full of them.
_CODE = re.compile(r"`|\b[a-z]+[A-Z]\w*|\w\(\w*\)|\w/\w+[/.]\w|[-=]>|==|[→⇒]|\w+_\w+_\w+|\w\.\w+:\d")
# "Plan: add …", "Step 3: …", and lines in title case.
_TITLE = re.compile(
    r"(?:[Pp]lan|[Ff]ix|[Ss]tep \d+|[Pp]hase \d+|[Ss]ummary|[Cc]ontext|[Ff]eature|[Bb]ug|[Rr]efactor)\b[^:]{0,20}:"
    r"|(?:[A-Z][\w'-]*[^\w.!?]+){3,}(?:[A-Z][\w'-]*)?$"
)
# Cues that speak against a constraint or only announce a remark, and those that hardly anything else has.
_AGAINST = frozenset({"=question", "=one-off", "=report", "=thanks", "=going-on", "=narrative", "=introduction"})
_STRONG = frozenset(
    {
        "=always", "=always-order", "=from-now-on", "=scope", "=ask-first", "=reserved", "=fixed", "=prohibition",
        "=limit", "=preference", "=format", "=instead-of",
    }
)  # fmt: skip
_VERB_NOT = re.compile(
    r"\b(?:is|are|was|were|i'm|it's|that's|am|be|does|do|did|will|can|could|would|should|has|have|or|why) not\b"
)
# What follows these stands for itself: "thanks, also never …", and a capital letter where no sentence had ended.
_ASIDE = re.compile(
    r"(?<=\s)(?:and )?(?:also|btw|by the way|oh and|ps|p\.s\.|plus|one more thing|one thing|fyi|side note|heads up)"
    r"\b[:,]? ",
    re.IGNORECASE,
)
# Behind these "also" and "plus" are words of the clause, and nothing new begins: "we could also …", "consider also …".
_GOES_ON = re.compile(
    r"\b(?:i|we|you|they|it|he|she|this|that|these|those|there|which|who|but|can|could|should|would|will|may|might|must"
    r"|is|are|was|were|be|has|have|had|do|does|did|not|consider|let's|to|the|an?|\w+'(?:s|re|d|ll|ve|m)) $",
    re.IGNORECASE,
)
_CAPITAL = re.compile(r"(?<=[\w\])`\"'] )(?!I\b|OK\b)[A-Z][\w']*(?= )")
_CLAUSE = re.compile(
    r"[;—–(]\s*|\s-+\s|,\s+(?=(?:so|but|and|please|then|just)\b)|\s(?=(?:and please|but please|please|but)\b)"
)


@dataclass(frozen=True, slots=True)
class SentenceScore:
    """How much speaks for a constraint, and the part of the sentence in which it is."""

    score: float
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class _CueLine:
    """A line of a cue under one of its first words: where that word has to stand, and what has to follow it."""

    cue: str
    place: str
    tail: str


class _Word(NamedTuple):
    """A word of a marked text, where it ends there, and the places of a sentence it stands in."""

    text: str
    end: int
    places: str


def score_sentence(sentence: str, weights: Mapping[str, int]) -> SentenceScore:
    """Return how likely a sentence is to be a constraint; above zero, more speaks for it than against it."""
    numbered = _NUMBERED.match(sentence)
    offset = numbered.end() if numbered else 0
    text = with_straight_quotes(sentence[offset : offset + MAX_SENTENCE_CHARS])
    if is_foreign(text):
        return SentenceScore(FOREIGN_SCORE, 0, len(sentence))
    whole = SentenceScore(_score(text, weights), 0, len(sentence))
    markers = _markers(text)
    asides = [
        SentenceScore(_score(text[start:end], weights) - _ASIDE_DISCOUNT, *_between(markers, start, offset, len(text)))
        for start, end in _parts(text, _aside_starts(text, weights))
    ]
    cuts = [match.end() for match in _CLAUSE.finditer(text)] if text.count(" ") >= _MIN_SPACES_FOR_CLAUSES else []
    clauses = [
        replace(whole, score=_score(text[start:end], weights) - _CLAUSE_DISCOUNT) for start, end in _parts(text, cuts)
    ]
    best = max([whole, *clauses, *asides], key=lambda part: part.score)
    return best if best.end < offset + len(text) else replace(best, end=len(sentence))


def _between(markers: list[int], place: int, offset: int, end: int) -> tuple[int, int]:
    """Return the range around a place that stands for itself: from one "also" or "btw" to the next, or all."""
    after = bisect_right(markers, place)
    start = offset + markers[after - 1] if after else 0
    return start, offset + (markers[after] if after < len(markers) else end)


def with_straight_quotes(text: str) -> str:
    """Return the text as cues and weights spell it: "don't" with a straight apostrophe."""
    return text.replace("’", "'")


def is_foreign(text: str) -> bool:
    """Return True if a cue of another language is in the text."""
    if not text.isascii() and unspaced_pattern().search(text):
        return True
    lower = text.lower()
    return any(True for _ in _found_cues(lower, _WORD.findall(lower), _foreign_table()))


def features(text: str) -> frozenset[str]:
    """Return what weights are learned for.

    These are cues and shapes (`=always`, `=tiny`), the first word (`^keep`), words (`keep`) and pairs (`keep it`).
    """
    text = _without_quotations(text)
    lower = text.lower()
    spoken = _WORD.findall(lower)
    words = [_token(word) for word in spoken]
    found = {BIAS, *words, *map(" ".join, pairwise(words))}
    found.update(f"^{word}" for word in words[:1])
    cues = {f"={cue}" for cue in _found_cues(lower, spoken, _english_table())}
    if " not " in lower and _NOT_THAT.match(lower) and not _VERB_NOT.search(lower):
        cues.add("=preference")
    return frozenset({*found, *cues, *_strength(cues), *_shapes(text, len(words))})


def _without_quotations(text: str) -> str:
    """Return the text with code and longer quotations as one word each: what is quoted was said by somebody else."""
    if "`" not in text and '"' not in text and "“" not in text:
        return text
    return _QUOTATION.sub(lambda match: f"{match[0][0]}{_QUOTED}{match[0][-1]}", text)


def _strength(cues: set[str]) -> Iterator[str]:
    """Yield what the cues say together: a question with "never" in it is something else than either alone."""
    against = not cues.isdisjoint(_AGAINST)
    if not cues.isdisjoint(_STRONG):
        if against:
            yield "=mixed"
        return
    yield "=weak" if cues - _AGAINST else "=plain"
    if against:
        yield "=weak-against"


def _shapes(text: str, words: int) -> Iterator[str]:
    """Yield what the form of a sentence says about it, whatever its words are."""
    if _ID.search(text):
        yield "=id"
    if _KEY_VALUE.match(text):
        yield "=key-value"
    if text.endswith(":"):
        yield "=colon"
    if "?" in text[-3:]:
        yield "=asks"
    if _CODE.search(text):
        yield "=code"
    if _TITLE.match(text):
        yield "=title"
    if (size := _size(words)) is not None:
        yield size


def _token(word: str) -> str:
    """Return the word, or the sign of its kind: numbers, names of files and hosts are not counted one by one."""
    if word.isalpha():  # as nearly all are
        return word
    if any(map(str.isdigit, word)):
        return NUMBER_TOKEN
    return NAME_TOKEN if "." in word or "_" in word else word


def _size(words: int) -> str | None:
    if words <= 5:
        return "=tiny" if words <= 2 else "=short"
    return None if words <= 25 else "=long" if words <= 40 else "=huge"


def _score(text: str, weights: Mapping[str, int]) -> float:
    found = features(text)
    score = sum(map(weights.get, found, repeat(0))) / 10
    is_forbidden = "=prohibition" in found and not found.isdisjoint(_BEGINS_WITH_NOT)
    is_explicit = is_forbidden or not found.isdisjoint(_EXPLICIT)
    return max(score, CERTAIN_SCORE) if is_explicit and found.isdisjoint(_NOT_SAID_SO) else score


def _aside_starts(text: str, weights: Mapping[str, int]) -> list[int]:
    """Return where something new begins inside a sentence; the capital of an unknown word is that of a name."""
    capitals = [match.start() for match in _CAPITAL.finditer(text) if _is_known(match[0].lower(), weights)]
    return sorted([*capitals, *(match.end() for match in _ASIDE.finditer(text))])


def _markers(text: str) -> list[int]:
    """Return where something begins that a word like "also" or "btw" sets apart."""
    return [
        match.end()
        for match in _ASIDE.finditer(text)
        if not _GOES_ON.search(text, max(match.start() - 12, 0), match.start())
    ]


def _is_known(word: str, weights: Mapping[str, int]) -> bool:
    return word in weights or word in _english_table() or word in _marks_of_words()


def _parts(text: str, cuts: list[int]) -> Iterator[tuple[int, int]]:
    """Yield the parts between the cuts, if there are any, except for those too short to be scored alone."""
    for start, end in pairwise((0, *cuts, len(text))) if cuts else ():
        if text.count(" ", start, end) >= 2:
            yield start, end


def _found_cues(lower: str, words: Sequence[str], table: Mapping[str, tuple[_CueLine, ...]]) -> Iterator[str]:
    """Yield the cues of a table in a text in lower case, which has these words."""
    if table.keys().isdisjoint(words):  # as most texts are, in the languages that they are not in
        return
    marked, first_words = _mark(lower, table)
    for word in first_words:
        for line in table[word.text]:
            if line.place and line.place not in word.places:
                continue
            if not line.tail or _compiled(line.tail).match(marked, word.end):
                yield line.cue


def _mark(text: str, table: Mapping[str, tuple[_CueLine, ...]]) -> tuple[str, list[_Word]]:
    """Return the text with marks before the words that have a class, and those that a cue of a table begins with."""
    marks, lead_ins = _marks_of_words(), word_class("lead-in")
    pieces: list[str] = []
    words: list[_Word] = []
    length, last_end, after_lead_in = 0, 0, True
    for number, match in enumerate(_WORD.finditer(text)):
        word, start = match[0], match.start()
        between = text[last_end:start]
        opens = after_lead_in or (between != " " and not _PAUSE.isdisjoint(between))
        mark = (_OPEN_MARK if opens else "") + marks.get(word, "")
        pieces += [between, mark, word]
        length += len(between) + len(mark) + len(word)
        if word in table:
            words.append(_Word(word, length, ("^" if opens else "") + ("$" if number < 2 else "")))
        last_end, after_lead_in = match.end(), word in lead_ins
    pieces.append(text[last_end:])
    return "".join(pieces), words


# The caches below hold what the data files say; nothing in them depends on a text.


@cache
def _marks_of_words() -> dict[str, str]:
    found: dict[str, str] = {}
    for name, mark in _CLASS_MARKS.items():
        for word in word_class(name):
            found[word] = found.get(word, "") + mark
    return found


@cache
def _english_table() -> dict[str, tuple[_CueLine, ...]]:
    return _by_first_word(english_cues())


@cache
def _foreign_table() -> dict[str, tuple[_CueLine, ...]]:
    return _by_first_word(foreign_cues())


def _by_first_word(cues: tuple[Cue, ...]) -> dict[str, tuple[_CueLine, ...]]:
    """Return the lines of the cues by their first words, so that few of them are matched with a sentence."""
    found: dict[str, list[_CueLine]] = {}
    for cue in cues:
        for line in cue.lines:
            first, _, rest = line.partition("::")
            words = first.split()
            place = words.pop(0) if words[0] in "^$" else ""
            entry = _CueLine(cue.name, place, rest.strip())
            for word in words:
                for head in word_class(word[1:-1]) if word.startswith("<") else (word,):
                    found.setdefault(head, []).append(entry)
    return {word: tuple(lines) for word, lines in found.items()}


@cache
def _compiled(tail: str) -> re.Pattern[str]:
    """Return the pattern for what follows the first word; compiled when a sentence first needs it."""
    body = tail[1:] if tail.startswith("~") else f" {tail}"
    for name, mark in _CLASS_MARKS.items():
        body = body.replace(f"<{name}>", f"[{_MARKS}]*{mark}[{_MARKS}]*[\\w'-]+")
    body = re.sub(r" ?<(\d+)>", rf"[^.?!]{{0,\1}}\\s[{_MARKS}]*", body)
    return re.compile(body.replace(" ", _SPACE) + r"(?!\w)")
