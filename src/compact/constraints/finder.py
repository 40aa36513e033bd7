"""The finder of constraints: what people said must hold from then on, found by code and kept verbatim."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from compact.constraints.retractions import (
    Ending,
    Order,
    Topic,
    asks_nothing_new,
    may_withdraw,
    names_a_constraint,
    order_in,
    overlap,
    overlap_to_replace,
    refers_to,
    withdraws,
    withdraws_previous,
)
from compact.constraints.score import CERTAIN_SCORE, FOREIGN_SCORE, MIN_SCORE, score_sentence
from compact.constraints.sentences import Sentence, typed_sentences
from compact.constraints.word_lists import feature_weights, pattern
from compact.core.facts.constraints import Constraint, ConstraintReader
from compact.core.messages.message import Message

# Chosen: pasted text has to score more, since documents are full of "must".
MIN_PASTED_SCORE = 2.5
# Chosen: a neighbour that scores less is a remark of its own, however it begins.
MIN_NEIGHBOUR_SCORE = -3.5
# Constraints that are not certain share some room, in characters and as a share of the conversation, so that a false
# alarm costs little. Chosen: with these shares false alarms take less than 1 % of a compacted prompt, measured by
# `python benchmarks/constraints.py --end-to-end`.
LIKELY_CHARS = 220
LIKELY_SHARE = 0.003

_ROLES = frozenset({"user", "developer"})
# Chosen: more than this in one message is a document, not somebody setting constraints.
_MAX_TYPED = 12
_MAX_PASTED = 8
# Chosen: how long neighbouring sentences may be to be kept as one constraint.
_MAX_NEIGHBOUR_CHARS = 320
_MAX_EXPLANATION_CHARS = 80
_MAX_JOINED_CHARS = 240
# Of a longer sentence without any punctuation only the part is kept that "also" or "btw" sets apart.
_LONG_CHARS = 140

_COLONS = (":", "：")
_MARKUP = "*_ "
_OF_ME = re.compile(r"\b(?:me|my|i|i'm|i'd|i’d|i’m)\b", re.IGNORECASE)
_PERSONAL = re.compile(r"\b(?:me|my|i|i'm|i'd|i’d|i’m|us|our|please|pls|you|your)\b", re.IGNORECASE)
_NO_QUESTION = r"\b(?![^.!]*\?)"


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A sentence, its score, and the range of the text in which the constraint would be."""

    sentence: Sentence
    start: int
    end: int
    score: float


@dataclass(frozen=True, slots=True)
class _Standing:
    """A constraint that holds so far, what it is about, and what will end it."""

    constraint: Constraint
    topic: Topic
    ending: Ending

    @classmethod
    def of(cls, constraint: Constraint) -> _Standing:
        """Return a constraint that was just said."""
        return cls(constraint, Topic.of(constraint.text), Ending.of(constraint.text))


@dataclass(frozen=True, slots=True)
class _Said:
    """What a sentence says: words that take something back, or "", an order and a constraint, if there are any."""

    retraction: str
    order: Order | None
    constraint: Constraint | None


class LearnedConstraints:
    """Finds constraints by cues and words whose weights were learned from examples.

    `weights` are those of the package unless others are given, by feature and in tenths.
    """

    def __init__(self, weights: Mapping[str, int] | None = None) -> None:
        self._own_weights = weights

    def find(self, text: str) -> tuple[tuple[int, int], ...]:
        """Return the ranges of a text in which a constraint stands."""
        found = _constraints_in(text, self._candidates(text))
        return tuple((candidate.start, candidate.end) for candidate in found)

    def standing(self, messages: Sequence[Message]) -> tuple[Constraint, ...]:
        """Return the constraints that hold at the end of a history, in the order in which they were last said."""
        reader = self.reader()
        for message in messages:
            reader.add(message)
        return reader.standing()

    def reader(self) -> ConstraintReader:
        """Return what reads a history message by message."""
        return _ConstraintsSoFar(self._read)

    def _read(self, message: Message) -> tuple[_Said, ...]:
        """Return what the sentences of a message may say about constraints, in order."""
        text = message.text
        candidates = self._candidates(text)
        constraints = {found.end: found for found in _constraints_in(text, candidates)}
        found: list[_Said] = []
        for candidate in candidates:
            words, new = text[candidate.sentence.start : candidate.end], constraints.get(candidate.end)
            retracts = not candidate.sentence.pasted and may_withdraw(words) and _withdraws_something(words)
            said = Constraint(text[new.start : new.end], "", new.start, new.score) if new else None
            order = None if said or candidate.sentence.pasted else order_in(words)
            found.append(_Said(words if retracts else "", order, said))
        # Of what says nothing about constraints nothing is kept.
        return tuple(found) if any(said.retraction or said.order or said.constraint for said in found) else ()

    def _candidates(self, text: str) -> list[_Candidate]:
        weights = feature_weights() if self._own_weights is None else self._own_weights
        found: list[_Candidate] = []
        for sentence in typed_sentences(text):
            scored = score_sentence(text[sentence.start : sentence.end], weights)
            start, end = sentence.start, sentence.end
            if end - start > _LONG_CHARS:
                start, end = sentence.start + scored.start, sentence.start + scored.end
            found.append(_Candidate(sentence, start, end, scored.score))
        return _with_announced(text, found)


class _ConstraintsSoFar:
    """The constraints of a history so far."""

    def __init__(self, read: Callable[[Message], tuple[_Said, ...]]) -> None:
        self._read = read
        self._held: list[_Standing] = []
        self._just_said = False
        # The room of likely constraints: that of so many of the first messages, and these have so many characters.
        self._room, self._measured, self._chars = float(LIKELY_CHARS), 0, 0
        self._messages: list[Message] = []

    def add(self, message: Message) -> None:
        """Read the next message."""
        self._messages.append(message)
        if message.role in _ROLES and message.tool_call_id is None:
            said = message.read_once(self._read)
            after = _after_message(self._held, said, message.id, self._just_said) if said else (self._held, False)
            self._held, self._just_said = after

    def standing(self) -> tuple[Constraint, ...]:
        """Return what holds now, in the order in which it was last said."""
        held = [item.constraint for item in self._held]
        needed = sum(len(likely.text) for likely in held if likely.weight < CERTAIN_SCORE)
        room = self._room_for(needed)
        return tuple(held) if room >= needed else _within_room(held, room)

    def _room_for(self, needed: int) -> float:
        """Return the room of likely constraints; once it is enough, the rest of the history need not be measured."""
        while self._room < needed and self._measured < len(self._messages):
            self._chars += len(self._messages[self._measured].text)
            self._measured += 1
            self._room = max(self._room, LIKELY_SHARE * self._chars)
        return self._room


def _after_message(
    held: list[_Standing], sentences: Iterable[_Said], message_id: str, just_said: bool
) -> tuple[list[_Standing], bool]:
    """Return the constraints after one more message, and whether it ends with one."""
    for said in sentences:
        left, new = held, said.constraint
        if said.order:
            left = held = _without_ended(held, said.order, message_id)
        if said.retraction:
            left = _without_withdrawn(held, said.retraction, just_said=just_said)
        if new and (left is held or not asks_nothing_new(said.retraction)):
            left = _with_new(left, replace(new, source_id=message_id))
        held, just_said = left, new is not None
    return held, just_said


def _with_announced(text: str, candidates: list[_Candidate]) -> list[_Candidate]:
    """Return the candidates with each point of a list that is announced as rules scoring enough: "the rules are:"."""
    found: list[_Candidate] = []
    announced = False
    for here in candidates:
        if here.sentence.bullet and announced:
            found.append(replace(here, score=max(here.score, MIN_SCORE)))
            continue
        rules = pattern("neighbours", "announces", before=r"\b", after=r"\b[^.!?\n]{0,40}[:：]$")
        words = text[here.start : here.end]
        # The pattern ends with a colon; looked at first, because that is quick.
        is_heading = not here.sentence.pasted and words.rstrip().endswith(_COLONS)
        announced = is_heading and rules.search(words) is not None
        found.append(here)
    return found


def _constraints_in(text: str, candidates: Sequence[_Candidate]) -> list[_Candidate]:
    """Return the constraints of one message in order, each with the sentences it needs."""
    likely = _likely(text, candidates)
    needed = _needed_neighbours(text, candidates, likely)
    found: list[_Candidate] = []
    for index, here in enumerate(candidates):
        if index in likely or index in needed:
            new = here if index in likely else replace(here, score=MIN_SCORE)
            joins = index in needed or index - 1 in needed
            if found and found[-1].end == candidates[index - 1].end and _is_one(text, found[-1], here, needed=joins):
                last = found.pop()
                new = replace(new, start=last.start, score=max(last.score, new.score))
            found.append(new)
    return found


def _is_one(text: str, last: _Candidate, here: _Candidate, *, needed: bool) -> bool:
    """Return True if two sentences in a row are kept as one: short ones, and those that need each other."""
    near = last.sentence.paragraph == here.sentence.paragraph and not here.sentence.bullet
    words = text[here.start : here.end]
    if not near or _withdraws_something(words):
        return False
    return needed or here.end - last.start <= _MAX_JOINED_CHARS


def _withdraws_something(words: str) -> bool:
    return withdraws(words) or withdraws_previous(words)


def _likely(text: str, candidates: Sequence[_Candidate]) -> set[int]:
    """Return which candidates score enough: the best of what was typed, and few of what was pasted."""
    enough = [index for index, here in enumerate(candidates) if _is_enough(text, here)]
    typed = [index for index in enough if not candidates[index].sentence.pasted]
    pasted = [index for index in enough if candidates[index].sentence.pasted]
    of_me = [index for index in pasted if _OF_ME.search(text, candidates[index].start, candidates[index].end)]
    chosen = {*_best(typed, candidates, _MAX_TYPED), *_best(of_me, candidates, _MAX_PASTED)}
    return chosen | {*_best(pasted, candidates, _MAX_PASTED - len(of_me))}


def _min_score(text: str, here: _Candidate) -> float:
    """Return the score from which on a sentence counts: documents hardly ever speak of "me" and to "you".

    In a list of a document the cues of other languages count for nothing: one of them decides alone, and each point of
    a plan may have it.
    """
    if not here.sentence.pasted or _PERSONAL.search(text, here.start, here.end):
        return MIN_SCORE
    return FOREIGN_SCORE + 1 if here.sentence.bullet and here.score == FOREIGN_SCORE else MIN_PASTED_SCORE


def _is_enough(text: str, here: _Candidate) -> bool:
    """Return True if a sentence scores enough and is whole: what ends with a colon is the half of something."""
    return here.score >= _min_score(text, here) and not _ends_with_colon(text, here)


def _ends_with_colon(text: str, here: _Candidate) -> bool:
    return text[here.start : here.end].rstrip(_MARKUP).endswith(_COLONS)


def _best(indices: Iterable[int], candidates: Sequence[_Candidate], count: int) -> list[int]:
    return sorted(indices, key=lambda index: (-candidates[index].score, index))[: max(count, 0)]


def _needed_neighbours(text: str, candidates: Sequence[_Candidate], likely: set[int]) -> set[int]:
    """Return the sentences that a constraint needs: what it refers to, what continues it, and what explains it."""
    found: set[int] = set()
    for index in likely:
        here = candidates[index].sentence
        if index + 1 < len(candidates) and _continues(text, here, candidates[index + 1].sentence):
            found.add(index + 1)
        if index and _refers_back(text, candidates[index - 1].sentence, here):
            found.add(index - 1)
    return {index for index in found if _is_needed(text, candidates[index])}


def _is_needed(text: str, here: _Candidate) -> bool:
    return here.score >= MIN_NEIGHBOUR_SCORE and not _ends_with_colon(text, here)


def _continues(text: str, here: Sentence, after: Sentence) -> bool:
    if not _are_adjacent(here, after):
        return False
    if pattern("neighbours", "continues", after=_NO_QUESTION).match(text, after.start, after.end):
        return True
    explains = pattern("neighbours", "explains", after=_NO_QUESTION).match(text, after.start, after.end)
    return explains is not None and after.end - after.start <= _MAX_EXPLANATION_CHARS


def _refers_back(text: str, before: Sentence, here: Sentence) -> bool:
    refers = pattern("neighbours", "refers-back", after=r"\b").match(text, here.start, here.end)
    return refers is not None and _are_adjacent(before, here)


def _are_adjacent(left: Sentence, right: Sentence) -> bool:
    both_short = max(left.end - left.start, right.end - right.start) <= _MAX_NEIGHBOUR_CHARS
    return left.paragraph == right.paragraph and not right.bullet and both_short


def _with_new(held: list[_Standing], constraint: Constraint) -> list[_Standing]:
    """Return the constraints with one more, without those that it repeats or replaces."""
    new, enough = _Standing.of(constraint), overlap_to_replace(constraint.text)
    return [*(old for old in held if overlap(new.topic, old.topic) < enough), new]


def _without_withdrawn(held: list[_Standing], sentence: str, *, just_said: bool) -> list[_Standing]:
    """Return what is left of the constraints after a retraction; the same list if it withdraws none of them."""
    topic, named = Topic.of(sentence), names_a_constraint(sentence)
    if withdraws_previous(sentence):
        return held[:-1] if held and just_said and not topic.leaves_out(held[-1].topic) else held
    parts = [part for old in held for part in _by_sentence(old)]
    left = [part for part in parts if not refers_to(topic, part.topic, named=named)]
    return left if len(left) < len(parts) else held


def _without_ended(held: list[_Standing], order: Order, message_id: str) -> list[_Standing]:
    """Return the constraints that an order leaves in force; those of its own message are about more than that."""
    return [old for old in held if old.constraint.source_id == message_id or not old.ending.comes_with(order)]


def _by_sentence(old: _Standing) -> list[_Standing]:
    """Return a constraint of several sentences as several constraints: one may be withdrawn without the others."""
    constraint, sentences = old.constraint, typed_sentences(old.constraint.text)
    if len(sentences) < 2:
        return [old]
    parts = [(constraint.text[one.start : one.end], constraint.start + one.start) for one in sentences]
    return [_Standing.of(replace(constraint, text=text, start=start)) for text, start in parts]


def _within_room(held: list[Constraint], room: float) -> tuple[Constraint, ...]:
    """Return the certain constraints, and of the others as many as there is room for.

    The likeliest have precedence, then the newest.
    """
    kept: set[int] = set()
    for place in sorted(range(len(held)), key=lambda place: (-held[place].weight, -place)):
        weight, size = held[place].weight, len(held[place].text)
        if weight < CERTAIN_SCORE:
            if size > room:
                continue
            room -= size
        kept.add(place)
    return tuple(constraint for place, constraint in enumerate(held) if place in kept)
