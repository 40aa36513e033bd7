"""What the sources of a summary say: whether a path, an id, a number or a phrase is in them, and who wrote of it.

Built once for a span, linear in it; each lookup costs one search of the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from compact.core.facts.entities import Entity, EntityKind
from compact.core.facts.ledger import FactKind, Ledger
from compact.core.facts.text import WordBag, normalized, stands_in
from compact.core.facts.tool_calls import argument_texts, is_typed
from compact.core.messages.attachments import text_with_attachments
from compact.core.messages.message import Message

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
_INSTRUCTING_ROLES = ("system", "developer")
_RANGE = re.compile(r"([A-Za-z]+)(\d+)-\1?(\d+)")
_NAME_SEPARATOR = re.compile(r"\.|::|->|#|-")


# Chosen: a reply and the proposal before it must have most of the words; a quotation, all but a quarter of them.
_AGREED_SHARE = 0.6
_QUOTED_SHARE = 0.75


@dataclass(frozen=True, slots=True)
class _Reply:
    """What a person wrote, and what the agent had written before: a plain yes means all of it."""

    reply: WordBag
    proposal: WordBag


class Sources:
    """The messages a summary is made of, and the facts that code has found in them."""

    def __init__(self, messages: Iterable[Message], ledger: Ledger) -> None:
        self._messages = tuple(messages)
        self._ledger = ledger

    @cached_property
    def text(self) -> str:
        """Everything that was written, called and printed."""
        pieces = [piece for message in self._messages for piece in message_texts(message)]
        return "\n".join((*pieces, *(fact.text for fact in self._ledger)))

    @cached_property
    def _normalized(self) -> str:
        return normalized(self.text)

    @cached_property
    def _numbers(self) -> frozenset[str]:
        return frozenset(map(_normalized_number, _NUMBER.findall(self.text)))

    @cached_property
    def _dates(self) -> frozenset[tuple[int, ...]]:
        found = {_date_parts(date) for date in _DATE.findall(self.text)}
        for month, day, day_first, month_second, year in _NAMED_DATE.findall(self.text):
            number = _MONTHS.split("|").index((month or month_second).lower()) + 1
            found.add(tuple(sorted((number, int(day or day_first), int(year)))))
        return frozenset(found)

    @cached_property
    def _times(self) -> frozenset[tuple[int, int]]:
        found = _TIME.finditer(self.text)
        return frozenset((int(m[1]) % 12, int(m[2] or 0)) for m in found if m[2] or m[3])

    @cached_property
    def people_words(self) -> tuple[WordBag, ...]:
        """The words of people, message by message, and what code has kept of them."""
        kinds = (FactKind.TASK, FactKind.CONSTRAINT, FactKind.LATEST_ASK)
        kept = (fact.subject for fact in self._ledger if fact.kind in kinds)
        typed = (m.text for m in self._messages if is_typed(m) or m.role in _INSTRUCTING_ROLES)
        return tuple(map(WordBag, (*typed, *kept)))

    @cached_property
    def _replies(self) -> tuple[_Reply, ...]:
        found: list[_Reply] = []
        before = ""
        for message in self._messages:
            if message.role == "assistant":
                before = message.text or before
            elif is_typed(message):
                found.append(_Reply(WordBag(message.text), WordBag(before)))
        return tuple(found)

    def was_agreed(self, claim: WordBag, *, is_consent: bool) -> bool:
        """Return True if an agent used the words of a claim and a person said yes to them, or no where the claim does.

        Where no consent is claimed, a no may also stand before what the person wants instead, in these words.
        """
        for answered in self._replies:
            reply, stems = answered.reply, claim.stems
            shared = stems & (reply.stems | answered.proposal.stems)
            is_in_reply = not is_consent and 2 * len(stems & reply.stems) >= len(stems)
            if (reply.is_negated == claim.is_negated or is_in_reply) and len(shared) >= _AGREED_SHARE * len(stems):
                return True
        return False

    @cached_property
    def _typed(self) -> tuple[str, ...]:
        return tuple(normalized(m.text) for m in self._messages if is_typed(m) or m.role in _INSTRUCTING_ROLES)

    def is_quote(self, phrase: str) -> bool:
        """Return True if a person wrote these words, or nearly; a single word must be all they wrote."""
        wanted = normalized(phrase)
        if " " not in wanted:
            return wanted in self._typed
        if any(wanted in text for text in self._typed):
            return True
        return WordBag(phrase).covered_by(self.people_words, share=_QUOTED_SHARE)

    @cached_property
    def agent_words(self) -> tuple[WordBag, ...]:
        """The words of the agent in text and calls, message by message, and what code has kept of them."""
        kept = (fact.subject for fact in self._ledger if fact.kind in (FactKind.DECISION, FactKind.OPEN_ITEM))
        own = ("\n".join(message_texts(message)) for message in self._messages if message.role == "assistant")
        return tuple(map(WordBag, (*own, *kept)))

    def has(self, entity: Entity) -> bool:
        """Return True if a source has the string, or one that means the same."""
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
                return normalized(text) in self._normalized
            case EntityKind.ID:
                return self._has_id(text)
            case EntityKind.IDENTIFIER | EntityKind.ERROR | EntityKind.FLAG:
                return self.has_words(text) or self._has_parts(text)
            case EntityKind.URL:
                return False

    def has_words(self, text: str) -> bool:
        """Return True if the words stand in a source, whatever their case."""
        return stands_in(self._normalized, normalized(text))

    def _has_parts(self, name: str) -> bool:
        """Return True for a name put together of names that the sources have: `Session.plan`, `well-known-name`."""
        parts = [part for part in _NAME_SEPARATOR.split(name) if part]
        return len(parts) > 1 and all(self.has_words(part) for part in parts)

    def _has_id(self, text: str) -> bool:
        """Return True for `#12` and `v1.2` if the sources have the number, and for `T2-T5` if they have both ends."""
        ends = _RANGE.fullmatch(text)
        if ends:
            return all(stands_in(self.text, f"{ends[1]}{number}") for number in (ends[2], ends[3]))
        return text[0] in "#v" and stands_in(self.text, text[1:])

    def _has_path(self, path: str) -> bool:
        """Return True if the sources have the path in two pieces: a directory, and what was listed or named below it.

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
        return re.search(rf"(?<!\d){re.escape(text)}(?!\d)", self.text) is not None or _date_parts(text) in self._dates


def message_texts(message: Message, *, with_names: bool = True) -> Iterator[str]:
    """Yield the text of a message and of its calls; arguments as they were meant, not as JSON writes them.

    Without names, what every agent knows from its schemas is left out.
    """
    yield text_with_attachments(message)
    for call in message.tool_calls:
        if with_names:
            yield call.name
        yield from argument_texts(call, with_names=with_names)


def _normalized_number(text: str) -> str:
    """Return a number without separators, leading and trailing zeros."""
    whole, _, fraction = text.replace(",", "").replace("_", "").partition(".")
    fraction = fraction.rstrip("0")
    return (whole.lstrip("0") or "0") + (f".{fraction}" if fraction else "")


def _readings(text: str) -> Iterator[str]:
    """Yield a number as it stands and, with a k or M behind it, in full."""
    match = _NUMBER.search(text)
    if match is None:
        return
    number = _normalized_number(match[0])
    yield number
    zeros = _THOUSANDS.get(text[match.end() :], 0)
    if zeros:
        whole, _, fraction = number.partition(".")
        yield _normalized_number(f"{whole}{fraction[:zeros].ljust(zeros, '0')}.{fraction[zeros:]}")


def _date_parts(text: str) -> tuple[int, ...]:
    return tuple(sorted(int(part) for part in re.findall(r"\d+", text)[:3]))
