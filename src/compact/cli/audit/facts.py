"""What was in a prompt that must not be forgotten, and whether a text still has it.

Only what people and the agent said, and what calls were about: a listing that a tool printed is no fact of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
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
# Chosen: what is shorter is found anywhere by chance.
_MIN_CHARS = 4


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
        self._sentences = [
            WordBag(line[start:end]) for line in text.splitlines() for start, end in sentence_ranges(line)
        ]

    def has(self, fact: KnownFact) -> bool:
        """Return True if the fact is there: word for word, or for a sentence in other words."""
        if fact.kind in ("constraint", "decision"):
            words = " ".join(fact.text.lower().split())
            return words in self._folded or WordBag(fact.text).covered_by(self._sentences, share=_SAME_SHARE)
        if fact.kind == "path":
            return stands_in(self._text, fact.text) or self._has_file(fact.text)
        return stands_in(self._text, fact.text)

    def _has_file(self, path: str) -> bool:
        """Return True if the file is named without its folders; only a name with an ending says which it is."""
        name = re.split(r"[/\\]", path.rstrip("/\\"))[-1]
        return "." in name and len(name) >= _MIN_CHARS and stands_in(self._text, name)


def text_of_messages(messages: Iterable[Message]) -> str:
    """Return everything that a prompt shows: texts and calls."""
    return "\n".join(
        text for one in messages for text in (one.text, *(f"{call.name} {call.arguments}" for call in one.tool_calls))
    )
