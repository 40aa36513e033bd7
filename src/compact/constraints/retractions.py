"""Constraints that are withdrawn, replaced or over: only where the words show which.

A constraint is replaced by a newer one about the same thing: not if each names something that the other does not, as
another file, table or customer. One that forbids something for the time being is over when that very thing is ordered,
and one that asks only for a look is over when the work is ordered.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from compact.constraints.score import with_straight_quotes
from compact.constraints.sentences import MAX_SENTENCE_CHARS
from compact.constraints.word_lists import one_of, pattern, word_class
from compact.core.facts.entities import EntityKind, entity_kinds

# Chosen: the share of content words that two constraints have in common if the newer one replaces the older, and the
# same if it speaks of a change ("from now on use npm again").
_SAME_OVERLAP = 0.75
_CHANGED_OVERLAP = 0.5
# Chosen: the share of a retraction's content words, and of a constraint's, that both must have if one means the other.
_MIN_SHARE_OF_RETRACTION = 0.5
_MIN_SHARE_OF_CONSTRAINT = 0.34

_WORD = re.compile(r"[\w']+")
_NO_NAMES = frozenset({EntityKind.NUMBER, EntityKind.DATE})
_NUMBERED = re.compile(r"\b([a-z]+) #?(\d+)\b(?: +([a-z]+))?")
_POLITE_ORDER = re.compile(r"\b(?:can|could|would|will) you\b", re.IGNORECASE)
# What is forbidden stands before the first pause; a point inside a name is none.
_PROHIBITION = re.compile(
    r"\W*(?:please |but |and |also |ok |so )*(?:don't|do not|dont)\s"
    r"(?P<act>(?:[^,;:.!?—–(]|[.:](?=\w))+)",
    re.IGNORECASE,
)
_SUFFIX = re.compile(r"(?:ing|ed|es|s|e)$")


def may_withdraw(sentence: str) -> bool:
    """Return False if no word of a retraction is in the sentence: a quick test that most sentences fail."""
    if sentence.isascii():
        return bool(_required_in_small_letters().search(sentence[:MAX_SENTENCE_CHARS].lower()))
    return bool(pattern("retractions", "required").search(sentence, 0, MAX_SENTENCE_CHARS))


def withdraws(sentence: str) -> bool:
    """Return True if a sentence withdraws something it names."""
    found = pattern("retractions", "withdraws", before=r"\b")
    return bool(found.search(with_straight_quotes(sentence[:MAX_SENTENCE_CHARS])))


def withdraws_previous(sentence: str) -> bool:
    """Return True if a sentence withdraws what was said just before it, without naming it."""
    found = pattern("retractions", "withdraws-previous", before=_interjections(), after=r"\b")
    return bool(found.match(sentence[:MAX_SENTENCE_CHARS].strip()))


def asks_nothing_new(sentence: str) -> bool:
    """Return True if a retraction sets no constraint of its own."""
    found = pattern("retractions", "asks-nothing-new", before=_interjections(), after=r"\b[^,;—:]*$")
    return bool(found.match(with_straight_quotes(sentence[:MAX_SENTENCE_CHARS].strip())))


def names_a_constraint(sentence: str) -> bool:
    """Return True if a retraction says that it is about something that was asked for."""
    found = pattern("retractions", "names-a-constraint", before=r"\b", after=r"\b")
    return bool(found.search(sentence[:MAX_SENTENCE_CHARS]))


@dataclass(frozen=True, slots=True)
class Topic:
    """What a sentence is about: the stems of its words with its names, and the names alone.

    All languages count as one word, and so do all numbers that count something.
    """

    words: frozenset[str]
    names: frozenset[str]

    @classmethod
    def of(cls, sentence: str) -> Topic:
        """Return what a sentence is about."""
        words, names = _WORD.findall(with_straight_quotes(sentence.lower())), _names_in(sentence)
        empty = word_class("function-word")
        stems = {_stem(word) for word in words if word.isdigit() or (word not in empty and len(word) > 1)}
        return cls(names | stems, names)

    def names_more_than(self, other: Topic) -> bool:
        """Return True if a name is none of the other's; the end of a path names it, too."""
        known = [f"/{name}" for name in other.names]
        mine = [f"/{name}" for name in self.names]
        return not all(any(one.endswith(name) or name.endswith(one) for one in known) for name in mine)

    def leaves_out(self, other: Topic) -> bool:
        """Return True if this names something, and the other something else as well."""
        return bool(self.names) and other.names_more_than(self)


def _names_in(sentence: str) -> frozenset[str]:
    """Return what a sentence calls by a name: files, identifiers, ids, quoted words, and numbers of things.

    In "customer 4411" the number is a name; in "under 100 words" it counts something, and may be another one tomorrow.
    """
    empty, numbered = word_class("function-word"), _NUMBERED.findall(sentence.lower())
    kinds = entity_kinds(sentence).items()
    names = {name.lower() for name, kind in kinds if kind not in _NO_NAMES and " " not in name}
    numbers = {number for thing, number, after in numbered if thing not in empty and (not after or after in empty)}
    return frozenset(names | numbers)


def refers_to(retraction: Topic, constraint: Topic, *, named: bool) -> bool:
    """Return True if a retraction means a constraint, and all that it names.

    A single shared word is enough if the retraction says that it is about something that was asked for (`named`).
    """
    shared = retraction.words & constraint.words
    if not shared or len(shared) < _MIN_SHARE_OF_RETRACTION * len(retraction.words):
        return False
    if retraction.leaves_out(constraint):
        return False
    return named or len(shared) > 1 or len(shared) > _MIN_SHARE_OF_CONSTRAINT * len(constraint.words)


@dataclass(frozen=True, slots=True)
class Order:
    """What a sentence orders: whether it moves the work on, its first word, and the text from there on."""

    moves_on: bool
    verb: str
    text: str

    def is_for(self, act: frozenset[str]) -> bool:
        """Return True if it orders what these words say."""
        # What it is about is looked at last: hardly an order begins with a verb that was forbidden.
        return self.verb in act and act <= Topic.of(self.text).words


def order_in(sentence: str) -> Order | None:
    """Return what a sentence orders, or None if it is a question or begins as no order does."""
    text = with_straight_quotes(sentence[:MAX_SENTENCE_CHARS].strip())
    if text.endswith("?") and not _POLITE_ORDER.search(text):
        return None
    begins = _order_lead_ins().match(text)
    rest = text[begins.end() :] if begins else text
    first = _WORD.match(rest)
    moves_on = pattern("retractions", "moves-on", after=r"\b").match(rest) is not None
    if first is None or (first[0].lower() in word_class("function-word") and not moves_on):
        return None
    return Order(moves_on, _stem(first[0].lower()), rest)


@dataclass(frozen=True, slots=True)
class Ending:
    """What ends a constraint: the work moving on, if it `looks_only`; else an order for the very act that it forbids.

    It is read once, and compared with every order that follows.
    """

    looks_only: bool
    act: frozenset[str]

    @classmethod
    def of(cls, constraint: str) -> Ending:
        """Return what ends a constraint."""
        text = with_straight_quotes(constraint[:MAX_SENTENCE_CHARS])
        looks_only = pattern("retractions", "looks-only", before=r"\b").search(text) is not None
        forbidden = _PROHIBITION.match(text)
        if forbidden is None or pattern("retractions", "lasting", before=r"\b", after=r"\b").search(text):
            return cls(looks_only, frozenset())
        return cls(looks_only, Topic.of(forbidden["act"]).words - {"yet", "now", "please"})

    def comes_with(self, order: Order) -> bool:
        """Return True if the constraint is over once something was ordered."""
        return (self.looks_only and order.moves_on) or order.is_for(self.act)


def overlap_to_replace(newer: str) -> float:
    """Return the overlap from which on a newer constraint replaces an older one: less if it speaks of a change."""
    speaks_of_change = pattern("retractions", "change", before=r"\b", after=r"\b").search(newer)
    return _CHANGED_OVERLAP if speaks_of_change else _SAME_OVERLAP


def overlap(newer: Topic, older: Topic) -> float:
    """Return the share of their words that two constraints have in common; none if each has a name of its own."""
    if not newer.words or (newer.names_more_than(older) and older.names_more_than(newer)):
        return 0.0
    return len(newer.words & older.words) / len(newer.words | older.words)


def _stem(word: str) -> str:
    if word in _stand_ins():
        return _stand_ins()[word]
    if word[0].isdigit():
        return "#"
    stem = _SUFFIX.sub("", word) if len(word) > 4 else word.rstrip("s") if len(word) > 3 else word
    # "committing" and "commit" are one word.
    return stem[:-1] if stem != word and len(stem) > 3 and stem[-1] == stem[-2] else stem


@cache
def _required_in_small_letters() -> re.Pattern[str]:
    # A search that has to ignore the case takes five times as long, and every sentence is searched.
    return re.compile(one_of("retractions", "required"))


@cache
def _order_lead_ins() -> re.Pattern[str]:
    return re.compile(rf"(?:{one_of('retractions', 'order-lead-ins')}\b[,.!]?\s+)*+", re.IGNORECASE)


@cache
def _interjections() -> str:
    return rf"(?:{one_of('retractions', 'interjections')}[,.!]?\s+)*+"


@cache
def _stand_ins() -> dict[str, str]:
    """Return the words of which only the kind counts: "answer in German" is replaced by "reply in English"."""
    return {
        **dict.fromkeys(word_class("language"), "<language>"),
        **dict.fromkeys(word_class("talk"), "<talk>"),
    }
