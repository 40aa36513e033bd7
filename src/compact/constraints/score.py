"""How much a sentence weighs as a standing wish: what is found in it, times what that was learned to be worth."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise

from compact.constraints.cues import ALWAYS, ASK_FIRST, PROHIBITION, SCOPE, Cue
from compact.constraints.doubts import ERRAND, QUESTION, TOLD
from compact.constraints.hints import CONDITION, DESIRE, DUTY, HINT, QUANTIFIER
from compact.constraints.languages import FOREIGN_CUES, UNSPACED
from compact.constraints.manners import CONTRAST, FORM, MANNERLY, PRODUCT
from compact.constraints.text import MAX_SENTENCE_CHARS
from compact.constraints.weights import WEIGHTS
from compact.constraints.words import CLASSES, LEADS, OPEN_MARK

_CUES = (
    SCOPE, ALWAYS, ASK_FIRST, PROHIBITION, FORM, CONTRAST, CONDITION, QUANTIFIER, DUTY, DESIRE, PRODUCT, MANNERLY, HINT,
    QUESTION, ERRAND, TOLD,
)  # fmt: skip
# Nothing was learned of other languages: their telling words decide alone.
_FOREIGN_WEIGHT = 6.0
# A part of a sentence has to be surer of itself than a whole one.
_ASIDE_DISCOUNT = 0.2
_CLAUSE_DISCOUNT = 1.2
_MANY_WORDS = 20

_WORD = re.compile(r"\w+(?:['.-]\w+)*|\?")
_MARKS = OPEN_MARK + "".join(mark for mark, _ in CLASSES.values())
_SPACE = f",?\\s+[{_MARKS}]*"
_PAUSE = frozenset(",;:(.!?–—-…")
_ID = re.compile(r"(?:^|[ (])#?[A-Z0-9_]*\d[A-Z0-9_]{4,}\b|\$\d|#[A-Z]?\d{2,}")
_NOT_THAT = re.compile(r"(?:[\w'.,:!-]+ ){1,8}not (?:in |on |with |by |for |via )?[\w.+#/-]+(?: please)?[.!]*$")
_NUMBERED = re.compile(r"^[#*\s]*\(?\d{1,3}[.)]\s+")
_PAIR = re.compile(r"[\w ]{2,24}: ?\S+(?: \S+){0,3}$")
_PLAIN_NOT = re.compile(
    r"\b(?:is|are|was|were|i'm|it's|that's|am|be|does|do|did|will|can|could|would|should|has|have|or|why) not\b"
)
# What follows these stands for itself: "thanks, also never …", and a capital letter where no sentence had ended.
_ASIDE = re.compile(
    r"(?<=\s)(?:and )?(?:also|btw|by the way|oh and|ps|p\.s\.|plus|one more thing|one thing|fyi|side note|heads up)"
    r"\b[:,]? ",
    re.IGNORECASE,
)
_CAPITAL = re.compile(r"(?<=[\w\])`\"'] )(?!I\b|OK\b)[A-Z][\w']*(?= )")
_CLAUSE = re.compile(
    r"[;—–(]\s*|\s-+\s|,\s+(?=(?:so|but|and|please|then|just)\b)|\s(?=(?:and please|but please|please|but)\b)"
)


@dataclass(frozen=True, slots=True)
class _Entry:
    """What may follow a word, and the cue that it then is."""

    cue: str
    place: str
    tail: str


@dataclass(frozen=True, slots=True)
class Weighed:
    """How much speaks for a standing wish, and the part of the sentence in which it is."""

    weight: float
    start: int
    end: int


def weigh(sentence: str) -> Weighed:
    """How much speaks for a sentence being a standing wish; above zero more than against it."""
    skipped = _NUMBERED.match(sentence)
    offset = skipped.end() if skipped else 0
    plain = sentence[offset : offset + MAX_SENTENCE_CHARS].replace("’", "'")
    if is_foreign(plain):
        return Weighed(_FOREIGN_WEIGHT, 0, len(sentence))
    whole = Weighed(_sum(plain), 0, len(sentence))
    asides = [
        Weighed(_sum(plain[start:end]) - _ASIDE_DISCOUNT, offset + start, offset + end)
        for start, end in _parts(plain, _asides(plain))
    ]
    clauses = [match.end() for match in _CLAUSE.finditer(plain)] if plain.count(" ") >= _MANY_WORDS else []
    wholes = [replace(whole, weight=_sum(plain[a:b]) - _CLAUSE_DISCOUNT) for a, b in _parts(plain, clauses)]
    return max([whole, *wholes, *asides], key=lambda weighed: weighed.weight)


def _asides(plain: str) -> list[int]:
    capitals = [match.start() for match in _CAPITAL.finditer(plain) if match[0].lower() in WEIGHTS]
    return sorted([*capitals, *(match.end() for match in _ASIDE.finditer(plain))])


def _sum(plain: str) -> float:
    return sum(WEIGHTS.get(feature, 0) for feature in features(plain)) / 10


def _parts(plain: str, cuts: list[int]) -> Iterator[tuple[int, int]]:
    """The parts between the cuts, if there are any; the shortest say too little to be weighed alone."""
    for start, end in pairwise((0, *cuts, len(plain))) if cuts else ():
        if plain.count(" ", start, end) >= 2:
            yield start, end


def is_foreign(plain: str) -> bool:
    """True if a telling word of another language is in it."""
    if not plain.isascii() and UNSPACED.search(plain):
        return True
    return any(True for _ in _cues(plain.lower(), _foreign_table()))


def features(plain: str) -> frozenset[str]:
    """What the weights speak of: its words, the cues (`=name`), and its size."""
    lower = plain.lower()
    words = ["#" if any(map(str.isdigit, word)) else word for word in _WORD.findall(lower)]
    found = {"=always-there", *words, *(f"{left}_{right}" for left, right in pairwise(words))}
    found.update(f"={cue}" for cue in _cues(lower, _table()))
    if " not " in lower and _NOT_THAT.match(lower) and not _PLAIN_NOT.search(lower):
        found.add("=contrast")
    if _ID.search(plain):
        found.add("=id")
    if _PAIR.match(plain):
        found.add("=pair")
    if plain.endswith(":"):
        found.add("=colon")
    if (size := _size(len(words))) is not None:
        found.add(size)
    return frozenset(found)


def _size(words: int) -> str | None:
    if words <= 5:
        return "=tiny" if words <= 2 else "=short"
    return None if words <= 25 else "=long" if words <= 40 else "=huge"


def _cues(lower: str, table: dict[str, tuple[_Entry, ...]]) -> Iterator[str]:
    marked, places = _mark(lower)
    for word, end, place in places:
        for entry in table.get(word, ()):
            if (not entry.place or entry.place in place) and (not entry.tail or _tail(entry.tail).match(marked, end)):
                yield entry.cue


def _mark(text: str) -> tuple[str, list[tuple[str, int, str]]]:
    """The text with marks before the words that have a class; each word, where it ends there, and its place."""
    marks = _class_marks()
    pieces: list[str] = []
    places: list[tuple[str, int, str]] = []
    length, last_end, lead = 0, 0, True
    for match in _WORD.finditer(text):
        word, start = match[0], match.start()
        between = text[last_end:start]
        opens = lead or not _PAUSE.isdisjoint(between)
        mark = (OPEN_MARK if opens else "") + marks.get(word, "")
        pieces += [between, mark, word]
        length += len(between) + len(mark) + len(word)
        places.append((word, length, ("^" if opens else "") + ("$" if len(places) < 2 else "")))
        last_end, lead = match.end(), word in LEADS
    pieces.append(text[last_end:])
    return "".join(pieces), places


@cache
def _class_marks() -> dict[str, str]:
    found: dict[str, str] = {}
    for mark, words in CLASSES.values():
        for word in words:
            found[word] = found.get(word, "") + mark
    return found


@cache
def _table() -> dict[str, tuple[_Entry, ...]]:
    return _by_first_word(_CUES)


@cache
def _foreign_table() -> dict[str, tuple[_Entry, ...]]:
    return _by_first_word(FOREIGN_CUES)


def _by_first_word(cues: tuple[Cue, ...]) -> dict[str, tuple[_Entry, ...]]:
    """The lines of the cues by the words they begin with: of a sentence, only what its words may begin is matched."""
    found: dict[str, list[_Entry]] = {}
    for cue in cues:
        for line in re.sub(r"\n +", "", cue.lines).strip().splitlines():
            first, _, rest = line.partition("::")
            words = first.split()
            place = words.pop(0) if words[0] in "^$" else ""
            entry = _Entry(cue.name, place, rest.strip())
            for word in words:
                for head in CLASSES[word[1:-1]][1] if word.startswith("<") else (word,):
                    found.setdefault(head, []).append(entry)
    return {word: tuple(entries) for word, entries in found.items()}


@cache
def _tail(source: str) -> re.Pattern[str]:
    """What follows the first word, from the notation of the cues; compiled when a sentence first needs it."""
    body = source[1:] if source.startswith("~") else f" {source}"
    for name, (mark, _) in CLASSES.items():
        body = body.replace(f"<{name}>", f"[{_MARKS}]*{mark}[{_MARKS}]*[\\w'-]+")
    body = re.sub(r" ?<(\d+)>", rf"[^.?!]{{0,\1}}\\s[{_MARKS}]*", body)
    return re.compile(body.replace(" ", _SPACE) + r"(?!\w)")
