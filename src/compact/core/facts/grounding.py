"""What the sources of a summary say: whether a path, an id, a number or a phrase is in them, and who spoke of it.

Built once for a span, linear in it; each question costs one search of the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import cast

from compact.core.facts.entities import Entity, EntityKind
from compact.core.facts.ledger import FactKind, Ledger
from compact.core.facts.tool_calls import arguments_of, is_typed
from compact.core.log.messages import Message

_WORD = re.compile(r"[^\W\d_\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{3,}")
# Scripts that put no blanks between words: two signs at a time.
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{2,}")
_ENDINGS = ("ing", "ed", "es", "s")
_STEM_CHARS = 6
# Words that every history has, and those that turn a sentence into an order: they ground nothing.
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
_NUMBER = re.compile(r"\d[\d,_]*(?:\.\d+)?")
_THOUSANDS = {"k": 3, "K": 3, "M": 6}
_DATE = re.compile(r"(?<!\d)\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}(?!\d)")
_MONTHS = "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec"
_NAMED_DATE = re.compile(
    rf"\b(?:({_MONTHS})[a-z]*\.? (\d{{1,2}})(?:st|nd|rd|th)?,?|(\d{{1,2}})(?:st|nd|rd|th)?\.? ({_MONTHS})[a-z]*\.?)"
    r" (\d{4})\b",
    re.IGNORECASE,
)
_TIME = re.compile(r"(?<![\d:])(\d{1,2})(?::(\d{2}))?(?::\d{2})?\s?([ap]\.?m\b)?", re.IGNORECASE)
_RULING_ROLES = ("system", "developer")
_PUNCTUATION = " .,;:!?"
_RANGE = re.compile(r"([A-Za-z]+)(\d+)-\1?(\d+)")
_QUALIFIES = re.compile(r"\.|::|->|#|-")


class Sources:
    """The messages a summary is made of, and the facts that code has found in them."""

    def __init__(self, messages: Iterable[Message], ledger: Ledger) -> None:
        self._messages = tuple(messages)
        self._ledger = ledger

    @cached_property
    def text(self) -> str:
        """Everything that was said, called and printed."""
        pieces = [piece for message in self._messages for piece in message_texts(message)]
        return "\n".join((*pieces, *(fact.text for fact in self._ledger)))

    @cached_property
    def _lowered(self) -> str:
        return plain(self.text)

    @cached_property
    def _numbers(self) -> frozenset[str]:
        return frozenset(map(_plain_number, _NUMBER.findall(self.text)))

    @cached_property
    def _dates(self) -> frozenset[tuple[int, ...]]:
        found = {_parts_of_date(date) for date in _DATE.findall(self.text)}
        for month, day, day_first, month_second, year in _NAMED_DATE.findall(self.text):
            number = _MONTHS.split("|").index((month or month_second).lower()) + 1
            found.add(tuple(sorted((number, int(day or day_first), int(year)))))
        return frozenset(found)

    @cached_property
    def _times(self) -> frozenset[tuple[int, int]]:
        found = _TIME.finditer(self.text)
        return frozenset((int(m[1]) % 12, int(m[2] or 0)) for m in found if m[2] or m[3])

    @cached_property
    def asked(self) -> tuple[Stems, ...]:
        """What people wrote, message by message, and what code has kept of it."""
        kinds = (FactKind.TASK, FactKind.CONSTRAINT, FactKind.LATEST_ASK)
        kept = (fact.subject for fact in self._ledger if fact.kind in kinds)
        typed = (m.text for m in self._messages if is_typed(m) or m.role in _RULING_ROLES)
        return tuple(map(Stems, (*typed, *kept)))

    @cached_property
    def answered(self) -> tuple[tuple[Stems, Stems], ...]:
        """What people wrote, each with what the agent had said before: a plain yes means all of it."""
        found: list[tuple[Stems, Stems]] = []
        before = ""
        for message in self._messages:
            if message.role == "assistant":
                before = message.text or before
            elif is_typed(message):
                found.append((Stems(message.text), Stems(before)))
        return tuple(found)

    def was_agreed(self, words: Stems, *, is_consent: bool) -> bool:
        """True if an agent used the words and somebody said yes to them, or no where the words do.

        Where no consent is claimed, a no may also stand before what somebody wants instead, in these words.
        """
        for reply, proposal in self.answered:
            shared = words.words & (reply.words | proposal.words)
            is_told = not is_consent and 2 * len(words.words & reply.words) >= len(words.words)
            if (reply.is_negated == words.is_negated or is_told) and len(shared) >= 0.6 * len(words.words):
                return True
        return False

    @cached_property
    def _typed(self) -> tuple[str, ...]:
        return tuple(plain(m.text) for m in self._messages if is_typed(m) or m.role in _RULING_ROLES)

    def is_quote(self, phrase: str) -> bool:
        """True if somebody wrote these words, or nearly; a single word must be all they wrote."""
        wanted = plain(phrase)
        if " " not in wanted:
            return wanted in self._typed
        return any(wanted in text for text in self._typed) or Stems(phrase).covered_by(self.asked, share=0.75)

    @cached_property
    def said(self) -> tuple[Stems, ...]:
        """What the agent wrote and called, message by message, and what code has kept of it."""
        kept = (fact.subject for fact in self._ledger if fact.kind in (FactKind.DECISION, FactKind.OPEN_ITEM))
        own = ("\n".join(message_texts(message)) for message in self._messages if message.role == "assistant")
        return tuple(map(Stems, (*own, *kept)))

    def has(self, entity: Entity) -> bool:
        """True if a source has the string, or one that means the same."""
        text = entity.text
        if stands_in(self.text, text):
            return True
        match entity.kind:
            case EntityKind.PATH:
                return self._has_path(text)
            case EntityKind.NUMBER:
                return any(number in self._numbers for number in _readings(text))
            case EntityKind.DATE:
                return self._has_date(text)
            case EntityKind.QUOTED:
                return plain(text) in self._lowered
            case EntityKind.ID:
                return self._has_id(text)
            case EntityKind.IDENTIFIER | EntityKind.ERROR | EntityKind.FLAG:
                return self.has_words(text) or self._has_parts(text)
            case EntityKind.URL:
                return False

    def has_words(self, text: str) -> bool:
        """True if the words stand in a source, whatever their case."""
        return stands_in(self._lowered, plain(text))

    def _has_parts(self, name: str) -> bool:
        """True for a name put together of names that the sources have: `Session.plan`, `well-known-name`."""
        parts = [part for part in _QUALIFIES.split(name) if part]
        return len(parts) > 1 and all(self.has_words(part) for part in parts)

    def _has_id(self, text: str) -> bool:
        """True for `#12` and `v1.2` if the sources have the number, and for `T2-T5` if they have both ends."""
        ends = _RANGE.fullmatch(text)
        if ends:
            return all(stands_in(self.text, f"{ends[1]}{number}") for number in (ends[2], ends[3]))
        return text[0] in "#v" and stands_in(self.text, text[1:])

    def _has_path(self, path: str) -> bool:
        """True if the sources have the path in two pieces: a directory, and what was listed or named below it.

        Words with strokes between them (`high/medium/low`) are no path: each must be there.
        """
        path = path.removeprefix("./")
        if stands_in(self.text, path):
            return True
        if "." not in path and path[0] not in "/~":
            return all(self.has_words(part) for part in path.split("/") if part)
        cuts = [place for place, char in enumerate(path) if char == "/" and place]
        return any(stands_in(self.text, path[cut + 1 :]) and stands_in(self.text, path[:cut]) for cut in cuts)

    def _has_date(self, text: str) -> bool:
        time = _TIME.fullmatch(text)
        if time:
            return (int(time[1]) % 12, int(time[2] or 0)) in self._times
        # A day stands in the sources with its hour behind it, or with its parts in another order.
        return (
            re.search(rf"(?<!\d){re.escape(text)}(?!\d)", self.text) is not None or _parts_of_date(text) in self._dates
        )


class Stems:
    """The words of a text that say something, cut to where their forms agree."""

    __slots__ = ("is_negated", "words")

    def __init__(self, text: str) -> None:
        words = {_stem(word) for word in _WORD.findall(text.lower()) if not _EMPTY_WORDS.fullmatch(word)}
        pairs = {run[place : place + 2] for run in _UNSPACED.findall(text) for place in range(len(run) - 1)}
        self.words = frozenset(words | pairs)
        self.is_negated = _NEGATION.search(text) is not None

    def covered_by(self, others: Iterable[Stems], *, share: float) -> bool:
        """True if one of the others has that share of these words; what is forbidden here must be there, too."""
        needed = share * len(self.words)
        return bool(self.words) and any(
            len(self.words & other.words) >= needed and (other.is_negated or not self.is_negated) for other in others
        )

    def likeness(self, other: Stems) -> float:
        """How much of the words of both they have in common."""
        return len(self.words & other.words) / len(self.words | other.words) if self.words and other.words else 0.0


def message_texts(message: Message, *, with_names: bool = True) -> Iterator[str]:
    """What a message says and calls; arguments as they were meant, not as JSON writes them.

    Without names, what every agent knows from its schemas is left out.
    """
    yield message.text
    for call in message.tool_calls:
        if with_names:
            yield call.name
        arguments = arguments_of(call)
        yield from _leaves(arguments, with_names=with_names) if arguments else (call.arguments,)


def plain(text: str) -> str:
    """A text without what people write one way or the other: case, blanks, kinds of apostrophe, marks at its end."""
    return " ".join(text.lower().replace("’", "'").split()).strip(_PUNCTUATION)


def stands_in(text: str, wanted: str) -> bool:
    """True if a text has a string that is not part of a longer word there."""
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


def _leaves(value: object, *, with_names: bool) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, inner in cast(Mapping[object, object], value).items():
            if with_names:
                yield str(key)
            yield from _leaves(inner, with_names=with_names)
    elif isinstance(value, list):
        for inner in cast(list[object], value):
            yield from _leaves(inner, with_names=with_names)
    elif value is not None:
        yield str(value)


def _stem(word: str) -> str:
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word[: -len(ending)]
            break
    return word[:_STEM_CHARS].rstrip("e")


def _plain_number(text: str) -> str:
    """A number without separators, leading and trailing zeros."""
    whole, _, fraction = text.replace(",", "").replace("_", "").partition(".")
    fraction = fraction.rstrip("0")
    return (whole.lstrip("0") or "0") + (f".{fraction}" if fraction else "")


def _readings(text: str) -> Iterator[str]:
    """A number as it stands and, with a k or M behind it, in full."""
    match = _NUMBER.search(text)
    if match is None:
        return
    plain = _plain_number(match[0])
    yield plain
    zeros = _THOUSANDS.get(text[match.end() :], 0)
    if zeros:
        whole, _, fraction = plain.partition(".")
        yield _plain_number(f"{whole}{fraction[:zeros].ljust(zeros, '0')}.{fraction[zeros:]}")


def _parts_of_date(text: str) -> tuple[int, ...]:
    return tuple(sorted(int(part) for part in re.findall(r"\d+", text)[:3]))
