"""Standing wishes of people: what they said must hold from then on, found by code and kept verbatim."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from compact.constraints.retractions import (
    is_meant,
    likeness,
    likeness_to_replace,
    may_take_back,
    names_a_rule,
    only_takes_back,
    takes_back,
    takes_back_the_last,
    topic,
)
from compact.constraints.score import weigh
from compact.constraints.text import Sentence, sentences_of
from compact.core.facts.constraints import Constraint
from compact.core.log.messages import Message

# A sentence is a wish from this weight on; what was pasted has to weigh more, because documents are full of "must".
ENOUGH = 0.2
ENOUGH_IN_PASTED = 2.5
# From this weight on it is kept whatever it takes; below, likely and doubtful ones have to share some room, in
# characters and as a share of the conversation, so that a mistake costs little where there is little.
CERTAIN = 2.0
LIKELY_CHARS = 220
LIKELY_SHARE = 0.003
DOUBTFUL = -0.7
DOUBTFUL_SHARE = 0.0012

_WISHING_ROLES = frozenset({"user", "developer"})
_MAX_OWN = 12
_MAX_PASTED = 8
_CONTINUATION_CHARS = 160
_EXPLANATION_CHARS = 80
_TOGETHER_CHARS = 240
# Of a sentence longer than this only the part is taken in which the wish is.
_LONG_CHARS = 140

_OF_ME = re.compile(r"\b(?:me|my|i|i'm|i'd|i’d|i’m)\b", re.IGNORECASE)
_PERSONAL = re.compile(r"\b(?:me|my|i|i'm|i'd|i’d|i’m|us|our|please|pls|you|your)\b", re.IGNORECASE)
_CONTINUES = re.compile(
    r"(?:that|this|it|it's|these|those|they|same|and|but|also|otherwise|except|unless|even|especially|only|so"
    r"|in that case|none|nothing|no|never|always|don't|do not|please don't|if (?:it|that|not|you)|then"
    r"|instead|ever|period|i mean)\b(?![^.!]*\?)",
    re.IGNORECASE,
)
# Why somebody wants it: "Keep it short. I read this on my phone."
_EXPLAINS = re.compile(
    r"(?:i['’](?:m|d|ll)|i (?:am|have|can['’]t|cannot|get|read|want|prefer|like|find|need)|my|we['’]re|we|our)\b"
    r"(?![^.!]*\?)",
    re.IGNORECASE,
)
_LEANS_BACK = re.compile(
    r"(?:so|hence|therefore|thus|that's why|that is why|which is why)\b|none of (?:those|that|them)\b"
    r"|(?:please )?(?:don't|do not|never|always|avoid|only) (?:do |use )?(?:that|those|these|this|them)\b"
    r"|(?:this|that|it|these|those) (?:applies|goes|holds|counts|must)\b|same (?:goes|for)\b"
    r"|without (?:that|this|it)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A sentence, its weight, and the range of the text in which the wish would be."""

    sentence: Sentence
    start: int
    end: int
    weight: float


@dataclass(frozen=True, slots=True)
class _Held:
    """A wish that holds so far, and the words it is about."""

    constraint: Constraint
    topic: frozenset[str]


class LearnedConstraints:
    """Finds constraints by words and phrases whose weights were learned from examples."""

    def find(self, text: str) -> tuple[tuple[int, int], ...]:
        """Return the ranges of a text in which a constraint stands."""
        return find_constraints(text)

    def standing(self, messages: Sequence[Message]) -> tuple[Constraint, ...]:
        """Return the constraints that hold at the end of a history."""
        return standing_constraints(messages)


def find_constraints(text: str) -> tuple[tuple[int, int], ...]:
    """The ranges of a message in which somebody says what is to hold from now on."""
    found = _wishes(text, _candidates(text))
    return tuple((wish.start, wish.end) for wish in found if wish.weight >= ENOUGH)


def standing_constraints(messages: Sequence[Message]) -> tuple[Constraint, ...]:
    """The wishes that still hold, in the order in which they were last said; retracted and replaced ones are gone."""
    held: list[_Held] = []
    just_said = False
    for message in messages:
        if message.role in _WISHING_ROLES and message.tool_call_id is None:
            held, just_said = _updated(held, message, just_said=just_said)
    return _within_room([item.constraint for item in held], sum(len(message.text) for message in messages))


def _candidates(text: str) -> list[_Candidate]:
    found: list[_Candidate] = []
    for sentence in sentences_of(text):
        weighed = weigh(text[sentence.start : sentence.end])
        start, end = sentence.start, sentence.end
        if end - start > _LONG_CHARS:
            start, end = sentence.start + weighed.start, sentence.start + weighed.end
        found.append(_Candidate(sentence, start, end, weighed.weight))
    return found


def _wishes(text: str, candidates: Sequence[_Candidate]) -> list[_Candidate]:
    """The wishes of one message, in order: likely ones with what belongs to them, doubtful ones alone."""
    likely = _likely(text, candidates)
    company = _company(text, candidates, likely)
    found: list[_Candidate] = []
    for index, here in enumerate(candidates):
        if index in likely or index in company:
            wish = here if index in likely else replace(here, weight=ENOUGH)
            needed = index in company or index - 1 in company
            if found and found[-1].end == candidates[index - 1].end and _is_one(text, found[-1], here, needed=needed):
                last = found.pop()
                wish = replace(wish, start=last.start, weight=max(last.weight, wish.weight))
            found.append(wish)
        elif DOUBTFUL <= here.weight < ENOUGH and not here.sentence.pasted:
            found.append(here)
    return found


def _is_one(text: str, last: _Candidate, here: _Candidate, *, needed: bool) -> bool:
    """True if two sentences in a row are kept as one: short ones, and those that need each other."""
    near = last.sentence.paragraph == here.sentence.paragraph and not here.sentence.bullet and last.weight >= ENOUGH
    words = text[here.start : here.end]
    if not near or takes_back(words) or takes_back_the_last(words):
        return False
    return needed or here.end - last.start <= _TOGETHER_CHARS


def _likely(text: str, candidates: Sequence[_Candidate]) -> set[int]:
    """Those that weigh enough: few of what was pasted, and not without end of what was typed."""
    enough = [index for index, here in enumerate(candidates) if here.weight >= _enough(text, here)]
    own = [index for index in enough if not candidates[index].sentence.pasted]
    pasted = [index for index in enough if candidates[index].sentence.pasted]
    of_me = [index for index in pasted if _OF_ME.search(text, candidates[index].start, candidates[index].end)]
    chosen = {*_top(own, candidates, _MAX_OWN), *_top(of_me, candidates, _MAX_PASTED)}
    return chosen | {*_top(pasted, candidates, _MAX_PASTED - len(of_me))}


def _enough(text: str, here: _Candidate) -> float:
    """Documents are full of "must", but they hardly ever speak of "me" and to "you"."""
    personal = not here.sentence.pasted or _PERSONAL.search(text, here.start, here.end)
    return ENOUGH if personal else ENOUGH_IN_PASTED


def _top(indices: Iterable[int], candidates: Sequence[_Candidate], count: int) -> list[int]:
    return sorted(indices, key=lambda index: (-candidates[index].weight, index))[: max(count, 0)]


def _company(text: str, candidates: Sequence[_Candidate], likely: set[int]) -> set[int]:
    """The neighbours without which a wish is only half: what goes on with "that", what "so" refers to, and why."""
    found: set[int] = set()
    for index in likely:
        here = candidates[index].sentence
        if index + 1 < len(candidates) and _goes_on(text, here, candidates[index + 1].sentence):
            found.add(index + 1)
        if index and _beside(candidates[index - 1].sentence, here) and _LEANS_BACK.match(text, here.start, here.end):
            found.add(index - 1)
    return found


def _goes_on(text: str, here: Sentence, after: Sentence) -> bool:
    if not _beside(here, after):
        return False
    explains = after.end - after.start <= _EXPLANATION_CHARS and _EXPLAINS.match(text, after.start, after.end)
    return bool(explains or _CONTINUES.match(text, after.start, after.end))


def _beside(left: Sentence, right: Sentence) -> bool:
    both_short = max(left.end - left.start, right.end - right.start) <= 2 * _CONTINUATION_CHARS
    return left.paragraph == right.paragraph and not right.bullet and both_short


def _updated(held: list[_Held], message: Message, *, just_said: bool) -> tuple[list[_Held], bool]:
    """The wishes after one more message: some taken back, some replaced, some new; and whether it ends with one."""
    text = message.text
    candidates = _candidates(text)
    wishes = {wish.end: wish for wish in _wishes(text, candidates)}
    for candidate in candidates:
        words, left = text[candidate.sentence.start : candidate.end], held
        if not candidate.sentence.pasted and may_take_back(words):
            left = _taken_back(held, words, just_said=just_said)
        wish = wishes.get(candidate.end)
        if wish and (left is held or not only_takes_back(words)):
            left = _with_new(left, Constraint(text[wish.start : wish.end], message.id, wish.start, wish.weight))
        held, just_said = left, wish is not None and wish.weight >= ENOUGH
    return held, just_said and bool(candidates)


def _with_new(held: list[_Held], constraint: Constraint) -> list[_Held]:
    """The wishes with one more, without those that it repeats or replaces."""
    new, enough = _Held(constraint, topic(constraint.text)), likeness_to_replace(constraint.text)
    return [*(old for old in held if likeness(new.topic, old.topic) < enough), new]


def _taken_back(held: list[_Held], words: str, *, just_said: bool) -> list[_Held]:
    """What is left of the wishes after a retraction; the same list if it means none of them."""
    if takes_back_the_last(words):
        return held[:-1] if held and just_said else held
    if not takes_back(words):
        return held
    said, named = topic(words), names_a_rule(words)
    parts = [part for old in held for part in _sentences(old)]
    left = [part for part in parts if not is_meant(said, part.topic, named=named)]
    return left if len(left) < len(parts) else held


def _sentences(old: _Held) -> list[_Held]:
    """A wish of several sentences as several wishes: one of them may go without the others."""
    wish, parts = old.constraint, sentences_of(old.constraint.text)
    if len(parts) < 2:
        return [old]
    texts = [(wish.text[part.start : part.end], wish.start + part.start) for part in parts]
    return [_Held(replace(wish, text=text, start=start), topic(text)) for text, start in texts]


def _within_room(held: list[Constraint], chars: int) -> tuple[Constraint, ...]:
    """The certain wishes, and as many of the others as the conversation has room for, likeliest and newest first."""
    room = {True: max(LIKELY_CHARS, LIKELY_SHARE * chars), False: DOUBTFUL_SHARE * chars}
    kept: set[int] = set()
    for place in sorted(range(len(held)), key=lambda place: (-held[place].weight, -place)):
        weight, size = held[place].weight, len(held[place].text)
        if weight < CERTAIN:
            if size > room[weight >= ENOUGH]:
                continue
            room[weight >= ENOUGH] -= size
        kept.add(place)
    return tuple(constraint for place, constraint in enumerate(held) if place in kept)
