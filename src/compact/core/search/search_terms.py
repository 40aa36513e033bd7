"""The terms by which log entries are found: the same for every store, for an entry and for a query.

A term is the stem of a word, or a whole name (an id, a path, an error code), of which the letters and digits count:
`src/app/main.py` is the term `src_app_main_py`, and its words are terms too.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from compact.core.facts.common_words import COMMON_WORDS
from compact.core.facts.tool_calls import argument_texts
from compact.core.messages.attachments import attachments_of
from compact.core.messages.message import Message
from compact.core.search.stemming import stem

# Words joined by what paths, ids and names are joined by; a sentence's full stop and its blank end one.
_PIECE = re.compile(r"[^\W_]+(?:[_./\\:@#-]{1,3}[^\W_]+)*")
_WORD = re.compile(r"[^\W_]+")
# "URLs" and "IDs" are words in the plural, by themselves and in a name: "parseURLs" is "parse" and "URL".
_ACRONYMS = re.compile(r"[A-Z]{2,}s")
_HUMP = re.compile(r"[a-z][A-Z]|[A-Z]{2}(?!s\b)[a-z]")
_HUMPS = re.compile(rf"{_ACRONYMS.pattern}(?![a-z])|[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_SEPARATOR = re.compile(r"[/\\:@#]")
_PATH_END = re.compile(r"[:@#]+")
_FOLDER_END = re.compile(r"[/\\]+")
# What a hyphen joins may be plain words ("read-only"); what these join, or has a digit in it, is a name.
_NAME_MARK = re.compile(r"[0-9_./\\:@#]")
# Scripts without blanks between words: two neighbouring letters are a term.
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]")
# Chosen: of an entry that is larger, its beginning and its end are searched.
_HEAD_CHARS, _TAIL_CHARS = 200_000, 50_000
# PostgreSQL takes up to 1 MB of terms; a character of them takes four bytes at most.
_MAX_CHARS = 250_000
# Chosen: no word or name is longer; of longer ones (keys, encoded data) this much is compared.
_MAX_TERM_CHARS = 100
# Chosen: a name in camel case is made of words; what is so long, and of so short parts on average, is a random id.
_MIN_ID_CHARS, _MIN_PART_CHARS = 16, 2.5
# Chosen: nobody writes a path's end with more folders than that when asking for it.
_PATH_END_SEGMENTS = 3
# From here on more occurrences of a term make next to no difference to a score (BM25 levels off).
MAX_FREQUENCY = 8
# Chosen: a longer question is a text; what it is about is said at its beginning.
_MAX_QUERY_TERMS = 32

# Words of questions and of grammar, which say nothing about what is looked for.
_GRAMMAR = """
a about after again all also am an and any anything are as at be because been before being between both but by can
could did do does doing done each either else ever every everything few find for from get give got had has have having
he her here hers him his how i if in into is it its just know let like look made make many may me might mine more most
much must my need no nor not now of off on once one only onto or other our ours out over own please recall remember
said same say says see she should show so some something such tell than that the their theirs them then there these
they thing things this those through to told too under until up us use used using very want wanted was we were what
whatever when where whether which while who whom whose why will with within without would you your yours ll re ve don
doesn didn isn wasn weren aren couldn shouldn wouldn won hasn haven hadn s t d m
"""
_STOP_WORDS = frozenset(_GRAMMAR.split())


@dataclass(frozen=True, slots=True)
class EntryTerms:
    """What is compared of a log entry: `words` are its terms between blanks, each as often as it occurs, side by side.

    `length` is how many words the entry has.
    """

    words: str
    length: int

    def frequency(self, term: str) -> int:
        """Return how often a term occurs, up to a number from which on it makes no difference."""
        sought, step = f" {term} ", len(term) + 1
        found = place = self.words.find(sought)
        if found < 0:
            return 0
        while self.words.startswith(sought, place + step):
            place += step
        return (place - found) // step + 1


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """What a query looks for: `terms` that count, and of them the `names` that are looked for exactly."""

    terms: tuple[str, ...]
    names: frozenset[str]

    @property
    def words(self) -> tuple[str, ...]:
        """The terms that are words."""
        return tuple(term for term in self.terms if "_" not in term)


def read_query(query: str) -> SearchQuery:
    """Return what a query looks for; words of questions count only if it has no others."""
    stems = _Stems()
    stop_terms = {stems[word] for word in _STOP_WORDS}
    terms: dict[str, None] = {}
    stops: dict[str, None] = {}
    names: set[str] = set()
    for found in _PIECE.finditer(query[:_HEAD_CHARS]):
        if len(terms) >= _MAX_QUERY_TERMS:
            break
        for word in _words_of(found[0], stems):
            (stops if word in stop_terms else terms)[word] = None
        if is_name(found[0]):
            # With its parts: `src/main.py:42` is about `main.py`, if nobody speaks of that line.
            named = _names_of(found[0]) or [_name(found[0])]
            terms.update(dict.fromkeys(named))
            names.update(named)
    return SearchQuery(tuple(terms or stops), frozenset(names))


def is_name(piece: str) -> bool:
    """Return True for an id, a path, an identifier or an error code; False for a plain word or number."""
    return bool(_HUMP.search(piece) or (_NAME_MARK.search(piece) and not piece.isdecimal()))


def line_terms(lines: Iterable[str]) -> list[frozenset[str]]:
    """Return the terms of each line of a text, names included."""
    stems = _Stems()
    pieces = (_PIECE.findall(line) for line in lines)
    return [frozenset(term for piece in found for term in _terms_of(piece, stems)) for found in pieces]


def _terms_of(piece: str, stems: _Stems) -> list[str]:
    words = _words_of(piece, stems)
    return [*words, *_names_of(piece)] if len(words) > 1 else words


def entry_terms(message: Message) -> EntryTerms:
    """Return the terms of a log entry: of its text, its calls and their arguments, and the ids of calls."""
    stems = _Stems()
    counts: dict[str, int] = {}
    names: dict[str, int] = {}
    length = 0
    # Texts repeat themselves: each piece is taken apart once.
    for piece, times in Counter(_PIECE.findall(_searched(message))).items():
        words = _words_of(piece, stems)
        length += len(words) * times
        for term in words:
            counts[term] = counts.get(term, 0) + times
        if len(words) > 1:
            # A name is there or it is not.
            names.update(dict.fromkeys(_names_of(piece), 1))
    return EntryTerms(_written({**counts, **names}), length)


def _written(counts: Mapping[str, int]) -> str:
    parts: list[str] = [""]
    chars = 0
    for term, times in counts.items():
        repeated = min(times, MAX_FREQUENCY)
        chars += (len(term) + 1) * repeated
        if chars > _MAX_CHARS:
            break
        parts += [term] * repeated
    return " ".join((*parts, ""))


def _searched(message: Message) -> str:
    text = "\n".join(piece for piece in _pieces(message) if piece)
    if len(text) > _HEAD_CHARS + _TAIL_CHARS:
        return f"{text[:_HEAD_CHARS]}\n{text[-_TAIL_CHARS:]}"
    return text


def _pieces(message: Message) -> Iterator[str]:
    yield message.text
    for attachment in attachments_of(message):  # its name and type, never its bytes
        yield f"attachment {attachment.kind} {attachment.name} {attachment.media_type}"
    yield message.tool_call_id or ""
    for call in message.tool_calls:
        yield f"{call.id} {call.name}"
        yield from argument_texts(call, with_names=True)


def _words_of(piece: str, stems: _Stems) -> list[str]:
    """Return the terms of the words of a piece; a name in camel case is also the words it is made of, an id is not.

    So are acronyms in the plural, of which a stemmer knows nothing: "GPUs" is also "gpu".
    """
    if len(piece) <= _MAX_TERM_CHARS and piece.isalpha() and piece.isascii() and piece[1:].islower():
        return [stems[piece.lower()]]
    found: list[str] = []
    for word in _WORD.findall(piece):
        if not word.isascii() and _UNSPACED.search(word):
            found += [word[i : i + 2].lower() for i in range(max(1, len(word) - 1))]
        elif not word.islower() and (_HUMP.search(word) or _ACRONYMS.fullmatch(word)):
            found.append(word.lower()[:_MAX_TERM_CHARS])
            parts: list[str] = _HUMPS.findall(word[:_MAX_TERM_CHARS])
            # Every result has the id of its call: cut into letters, it would be most of the index, and no word.
            if len(word) < _MIN_ID_CHARS or len(word) >= _MIN_PART_CHARS * len(parts):
                found += [stems[_singular(part).lower()] for part in parts]
        else:
            found.append(stems[word.lower()[:_MAX_TERM_CHARS]])
    return found


def _singular(part: str) -> str:
    return part[:-1] if _ACRONYMS.fullmatch(part) else part


def _names_of(piece: str) -> list[str]:
    """Return the names in a piece: the whole, each segment of a path, and how the path ends."""
    names = [_name(piece)]
    if _SEPARATOR.search(piece):
        for path in _PATH_END.split(piece):
            segments = [name for segment in _FOLDER_END.split(path) if (name := _name(segment))]
            names += segments
            names += ["_".join(segments[-count:])[-_MAX_TERM_CHARS:] for count in range(2, _PATH_END_SEGMENTS + 1)]
            names.append("_".join(segments)[-_MAX_TERM_CHARS:])
    return [name for name in names if "_" in name]


def _name(piece: str) -> str:
    """Return a name as a term: databases, and people, differ in what they write between its parts."""
    return "_".join(_WORD.findall(piece.lower()))[-_MAX_TERM_CHARS:]


class _Stems(dict[str, str]):
    """The stems of words in lower case, each found once; anything else is its own stem.

    What it learns of a text goes with it, since the text may be a secret; what every conversation has is known.
    """

    def __missing__(self, word: str) -> str:
        found = _COMMON_STEMS.get(word)
        if found is None:
            found = stem(word) if word.isascii() and word.isalpha() else word
            if word in COMMON_WORDS or word in _STOP_WORDS:
                _COMMON_STEMS[word] = found
        self[word] = found
        return found


# The stems of words that every conversation has, each found once in a process.
_COMMON_STEMS: dict[str, str] = {}
