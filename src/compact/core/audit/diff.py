"""What left a prompt between two plans: the strings in it, where each can be found, and what the prompt still shows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

from compact.core.facts.constraints import standing_constraints
from compact.core.facts.entities import EntityKind, entity_kinds
from compact.core.facts.grounding import message_texts, stands_in
from compact.core.facts.ledger import FactKind, Ledger
from compact.core.facts.tool_calls import is_typed
from compact.core.log.messages import Message
from compact.core.plan.plan import ClearRecord, CompactionPlan, ExternalizationRecord, Record
from compact.core.plan.renderer import PromptRenderer, summary_id, summary_message
from compact.core.plan.stubs import render_cleared
from compact.core.summary.summary import StructuredSummary

_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Removal:
    """The messages that one plan treats otherwise than the one before it, each with what it was treated with."""

    messages: tuple[tuple[Message, Record | None], ...]
    summary: StructuredSummary | None
    new_ids: tuple[str, ...]

    @classmethod
    def between(cls, messages: Sequence[Message], before: CompactionPlan, after: CompactionPlan) -> Removal:
        """What a step took out: messages, and the summary that stood for others until then."""
        # Stored plans hold equal records, not the same ones: a pair is compared once, not for every message.
        same: dict[tuple[int, int], bool] = {}
        touched: list[tuple[Message, Record | None]] = []
        for message in messages:
            was, now = before.get_action(message.id)[1], after.get_action(message.id)[1]
            if now is None:
                continue
            pair = (id(was), id(now))
            if pair not in same:
                same[pair] = was == now
            if not same[pair]:
                touched.append((message, was))
        old, new = before.summary, after.summary
        is_replaced = touched and old and (new is None or new.summary != old.summary)
        replaced = old.summary if old and is_replaced else None
        return cls(tuple(touched), replaced, tuple(message.id for message, was in touched if was is None))

    def texts(self) -> Iterator[tuple[str, str]]:
        """What was shown and is no more, piece by piece, each with the message it is from, if that is known."""
        if self.summary:
            yield from _summary_texts(self.summary)
        for message, record in self.messages:
            yield from ((text, message.id) for text in _left_of(message, record))


class Found(NamedTuple):
    """A string that left: what it is, the message to recall it by, and whether somebody in the dialogue used it."""

    kind: EntityKind
    message_id: str
    is_touched: bool
    is_open: bool = True


def strings_of(removal: Removal, log: Sequence[Message], open_ids: frozenset[str]) -> dict[str, Found]:
    """The specific strings of what left, each with the newest message that says it, best one that may be recalled."""
    strings: dict[str, Found] = {}
    printed = frozenset(message.id for message in log if message.role != "assistant" and not is_typed(message))
    for text, message_id in removal.texts():
        is_open, is_said = message_id in open_ids, message_id not in printed
        for string, kind in entity_kinds(text).items():
            known = strings.get(string)
            if known is None or (is_open, is_said) >= (known.is_open, known.is_touched):
                strings[string] = Found(kind, message_id, is_said, is_open)
    return strings


def find_again(wanted: set[str], messages: Sequence[Message], open_ids: frozenset[str]) -> dict[str, Found]:
    """The newest message that may be recalled for each of the strings, as far as there is one."""
    found: dict[str, Found] = {}
    for message in reversed(messages):
        if len(found) == len(wanted):
            break
        for text in message_texts(message) if message.id in open_ids else ():
            for string, kind in entity_kinds(text).items():
                if string in wanted:
                    found.setdefault(string, Found(kind, message.id, True))
    return found


def standing_wishes(messages: Sequence[Message], plan: CompactionPlan) -> Iterator[tuple[bool, str, str]]:
    """The task (True) and the standing wishes (False) whose own message the plan has taken out, with its id."""
    first = next((message for message in messages if is_typed(message)), None)
    if first and plan.get_action(first.id)[1]:
        yield True, first.text.strip(), first.id
    for wish in standing_constraints(messages):
        if plan.get_action(wish.source_id)[1]:
            yield False, wish.text, wish.source_id


class Shown:
    """What a prompt shows: the ledger of its summary, and everything else."""

    def __init__(self, messages: Sequence[Message], plan: CompactionPlan) -> None:
        record = plan.summary
        own_id = summary_id(record.version) if record else None
        prompt = PromptRenderer().render(messages, plan).messages
        texts = [text for message in prompt if message.id != own_id for text in message_texts(message)]
        ledger = Ledger()
        if record and record.summary:
            ledger = record.summary.ledger
            texts.append(summary_message(replace(record, summary=replace(record.summary, ledger=Ledger()))).text)
        self.beside_ledger, self.ledger = Searched(texts), Searched(fact.text for fact in ledger)


class Searched:
    """A text in which many strings are looked for."""

    def __init__(self, texts: Iterable[str]) -> None:
        text = "\n".join(texts)
        self._flat = " ".join(text.split())
        self._strings = entity_kinds(text)
        words = _WORD.findall(text)
        self._words, self._neighbours = frozenset(words), frozenset(pairwise(words))

    def has(self, string: str) -> bool:
        """True if the string stands in the text, not as a part of a longer word."""
        # Most are known by their shape, most others have words that do not follow each other: few are looked for.
        if string in self._strings or string in self._words:
            return True
        words = _WORD.findall(string)
        is_likely = self._words.issuperset(words) and self._neighbours.issuperset(pairwise(words))
        return is_likely and string not in words and stands_in(self._flat, " ".join(string.split()))


def _left_of(message: Message, record: Record | None) -> Iterator[str]:
    """What the prompt showed of a message under a record, without our own words about it."""
    match record:
        case None:
            yield from message_texts(message, with_names=False)
        case ClearRecord():
            text = message.text
            yield from (text[start:end] for start, end in record.kept)
            yield from record.preserved_fields.values()
            yield from message_texts(replace(render_cleared(message, record), content=None), with_names=False)
        case ExternalizationRecord():
            yield record.preview
        case _:
            return


def _summary_texts(summary: StructuredSummary) -> Iterator[tuple[str, str]]:
    """What a summary says, piece by piece, with the newest message it is from, if that is known."""

    def newest(source_ids: tuple[str, ...]) -> str:
        return source_ids[-1] if source_ids else ""

    for fact in summary.ledger:
        if fact.kind is not FactKind.ARTIFACT:  # the id is ours: no message has it
            yield fact.text, newest(fact.source_ids)
    for excerpt in summary.excerpts:
        yield excerpt.text, excerpt.source_id
    for decision in summary.decisions:
        yield f"{decision.decision}\n{decision.rationale}", newest(decision.source_ids)
    for outcome in summary.tool_outcomes:
        yield outcome.outcome, newest(outcome.source_ids)
    for item in summary.open_items:
        yield item.item, newest(item.source_ids)
    yield from ((text, "") for text in (*summary.facts, summary.narrative))
