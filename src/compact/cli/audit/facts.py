"""What was in a prompt that must not be forgotten, and whether a text still has it.

Only what people and the agent said, and what calls were about: a listing that a tool printed is no fact of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from compact.core.facts.entities import EntityKind, entity_kinds
from compact.core.facts.extraction import find_decisions
from compact.core.facts.text import WordBag, sentence_ranges, stands_in
from compact.core.facts.tool_calls import call_subjects, is_typed

if TYPE_CHECKING:
    from compact.core.facts.constraints import ConstraintFinder
    from compact.core.messages.message import Message

KINDS = ("constraint", "decision", "path", "id", "number")
_KIND_OF = {
    EntityKind.PATH: "path",
    EntityKind.URL: "path",
    EntityKind.ID: "id",
    EntityKind.IDENTIFIER: "id",
    EntityKind.ERROR: "id",
    EntityKind.NUMBER: "number",
    EntityKind.DATE: "number",
}
# Chosen: a sentence that has this share of the words says the same in other words. Lenient: both sides get it.
_SAME_SHARE = 0.6
# Chosen: what a sentence forbids beside the rest ("..., and never push") is there if half of its words are.
_FORBIDDEN_SHARE = 0.5
# Chosen: what is shorter is found anywhere by chance.
_MIN_CHARS = 4
# A quoted phrase may be there in other words, and dates are written in many ways; numbers are looked at alone.
_NO_NAMES = frozenset({EntityKind.QUOTED, EntityKind.DATE, EntityKind.NUMBER})
_NUMBER = re.compile(r"\d+(?:[,_]\d{3})*(?:\.\d+)?")
_LIST_NUMBER = re.compile(r"\s*\d+[.)]\s")
_NUMBER_WORDS = {
    "two": "2",
    "three": "3",
    "four": "4",
    "five": "5",
    "six": "6",
    "seven": "7",
    "eight": "8",
    "nine": "9",
    "ten": "10",
}
_NUMBER_WORD = re.compile(rf"\b(?:{'|'.join(_NUMBER_WORDS)})\b")
_CLAUSE_END = re.compile(r"[,;:]\s|\s(?=(?:and|but|or)\s)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class KnownFact:
    """Something that was known: its kind, and its words as they stood."""

    kind: str
    text: str


def facts_of(messages: Sequence[Message], constraints: ConstraintFinder) -> list[KnownFact]:
    """Return what a prompt held, each fact once."""
    found = dict.fromkeys(KnownFact("constraint", one.text) for one in constraints.standing(messages))
    found.update(dict.fromkeys(KnownFact("decision", one.text) for one in find_decisions(messages)))
    found.update(dict.fromkeys(_specifics(messages)))
    return _without_shorter_paths(list(found))


def _without_shorter_paths(facts: list[KnownFact]) -> list[KnownFact]:
    """Return the facts without paths that are the end of another one: the same file, named twice."""
    endings = {
        fact.text[place + 1 :]
        for fact in facts
        if fact.kind == "path"
        for place, char in enumerate(fact.text)
        if char == "/"
    }
    return [fact for fact in facts if fact.kind != "path" or fact.text not in endings]


def _specifics(messages: Iterable[Message]) -> Iterator[KnownFact]:
    """Yield paths, ids and numbers of the dialogue, and the files and commands of calls."""
    for message in messages:
        if message.role == "assistant" or is_typed(message):
            yield from _named_in(message.text)
        for about in call_subjects(message).values():
            # The whole argument of a call that writes is a file; what it is about is its path.
            yield from (KnownFact("path", path) for path in (about.path, about.only_reads) if path and "." in path)
            yield from (fact for fact in _named_in(about.command) if fact.kind != "number")


def _named_in(text: str) -> Iterator[KnownFact]:
    for string, kind in entity_kinds(text).items():
        if kind in _KIND_OF and len(string) >= _MIN_CHARS and (kind is not EntityKind.PATH or _is_place(string)):
            yield KnownFact(_KIND_OF[kind], string)


def _is_place(path: str) -> bool:
    """Return True for a file or a deep folder: `/help` is a command, and `show/hide` are two words."""
    return "." in path.rsplit("/", 1)[-1] or path.count("/") > 1


class Remembered:
    """A text that is asked whether it still has a fact."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._folded = " ".join(text.lower().split())
        self._sentences = [line[start:end] for line in text.splitlines() for start, end in sentence_ranges(line)]
        self._words = list(map(WordBag, self._sentences))

    def has(self, fact: KnownFact) -> bool:
        """Return True if the fact is there: word for word, or for a sentence in other words."""
        if fact.kind in ("constraint", "decision"):
            return " ".join(fact.text.lower().split()) in self._folded or self._has_statement(fact.text)
        if fact.kind == "path":
            return stands_in(self._text, fact.text) or _has_file(self._text, fact.text)
        return stands_in(self._text, fact.text)

    def _has_statement(self, text: str) -> bool:
        """Return True if a sentence says the same in other words, with all that it names, counts and forbids.

        What is said in one sentence may have become two: that may also stand beside it.
        """
        words, wanted = WordBag(text), _Specifics.of(text)
        for place, own in enumerate(self._words):
            if words.covered_by((own,), share=_SAME_SHARE):
                beside = slice(max(0, place - 1), place + 2)
                if wanted.stand_in("\n".join(self._sentences[beside]), self._words[beside]):
                    return True
        return False


@dataclass(frozen=True, slots=True)
class _Specifics:
    """What of a statement must be there whatever its other words are: names, numbers, and all that it forbids."""

    names: Mapping[str, EntityKind]
    numbers: frozenset[str]
    forbidden: tuple[WordBag, ...]

    @classmethod
    def of(cls, text: str) -> _Specifics:
        """Return what a statement names, counts and forbids."""
        kinds, stated = entity_kinds(text), _LIST_NUMBER.sub("", text)
        names = {name.lower(): kind for name, kind in kinds.items() if kind not in _NO_NAMES and _is_name(name)}
        named = (name for name, kind in kinds.items() if kind is not EntityKind.NUMBER)
        for name in sorted(named, key=len, reverse=True):
            stated = stated.replace(name, " ")
        clauses = (WordBag(clause) for clause in _CLAUSE_END.split(text))
        return cls(names, _numbers_in(stated), tuple(one for one in clauses if one.is_negated and one.stems))

    def stand_in(self, text: str, sentences: Sequence[WordBag]) -> bool:
        """Return True if all of it stands in a text, which has these sentences."""
        folded = text.lower()
        return (
            self.numbers <= _numbers_in(text)
            and all(stands_in(folded, name) or _has_end(folded, name, kind) for name, kind in self.names.items())
            and all(one.covered_by(sentences, share=_FORBIDDEN_SHARE) for one in self.forbidden)
        )


def _is_name(text: str) -> bool:
    """Return True unless it is a word in capitals, or words with hyphens between them: they may be said otherwise."""
    bare = text.replace("-", "")
    return not bare.isalpha() or (bare == text and not text.isupper())


def _numbers_in(text: str) -> frozenset[str]:
    """Return the numbers of a text, small ones in words, too; without separators."""
    words = (_NUMBER_WORDS[word] for word in _NUMBER_WORD.findall(text.lower()))
    return frozenset((*words, *(number.replace(",", "").replace("_", "") for number in _NUMBER.findall(text))))


def _has_end(text: str, name: str, kind: EntityKind) -> bool:
    return kind is EntityKind.PATH and _has_file(text, name)


def _has_file(text: str, path: str) -> bool:
    """Return True if the file is named without its folders; only a name with an ending says which it is."""
    name = re.split(r"[/\\]", path.rstrip("/\\"))[-1]
    return "." in name and len(name) >= _MIN_CHARS and stands_in(text, name)


def text_of_messages(messages: Iterable[Message]) -> str:
    """Return everything that a prompt shows: texts and calls."""
    return "\n".join(
        text for one in messages for text in (one.text, *(f"{call.name} {call.arguments}" for call in one.tool_calls))
    )
