"""The difference between two plans: what left the prompt, the strings in it, and what the prompt still shows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

from compact.core.facts.constraints import Constraint, ConstraintFinder
from compact.core.facts.entities import EntityKind, entity_kinds
from compact.core.facts.extraction import find_decisions
from compact.core.facts.grounding import message_texts
from compact.core.facts.ledger import FactKind, Ledger
from compact.core.facts.text import CUT_MARK, stands_in
from compact.core.facts.tool_calls import is_typed
from compact.core.messages.message import Message
from compact.core.messages.sensitivity import is_open
from compact.core.plan.line_index import LineIndex
from compact.core.plan.plan import ClearRecord, CompactionPlan, ExternalizationRecord, Record
from compact.core.plan.renderer import PromptRenderer, summary_id, summary_message
from compact.core.plan.stubs import render_cleared
from compact.core.summary.summary import StructuredSummary, unquoted

_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class ReportedHistory:
    """A history as reports ask about it: each is about a few of its messages, and does not look at all of them.

    `places` says where each stands, and may know of later ones; `asks` are the places of what people typed, `decided`
    those of messages in which something was decided. `outside` are the places of what the plan in question does not
    summarise; None if nobody knows them.
    """

    messages: Sequence[Message]
    places: Mapping[str, int]
    asks: Sequence[int]
    decided: Sequence[int]
    constraints: tuple[Constraint, ...]
    outside: Sequence[int] | None = None

    @classmethod
    def read(cls, messages: Sequence[Message], index: LineIndex, constraints: ConstraintFinder) -> ReportedHistory:
        """Read a history; `index` is that of the same messages."""
        return cls(
            messages,
            {message.id: place for place, message in enumerate(messages)},
            tuple(index.asks),
            tuple(index.decided),
            constraints.standing(messages),
        )

    def among(self, message_ids: frozenset[str]) -> list[Message]:
        """Return those of some messages that are in the history, in order."""
        places, end = self.places, len(self.messages)
        known = sorted(places[one] for one in message_ids if one in places)
        return [self.messages[place] for place in known if place < end]


@dataclass(frozen=True, slots=True)
class Removal:
    """What a plan took out of the prompt that the plan before it made.

    `messages` are those it treats differently, each with its record under the plan before, but for those that both
    summarise; `summary` is the one that was replaced; `new_ids` are the messages that stood in the prompt unchanged
    until then.
    """

    messages: tuple[tuple[Message, Record | None], ...]
    summary: StructuredSummary | None
    new_ids: tuple[str, ...]

    @classmethod
    def between(cls, history: ReportedHistory, before: CompactionPlan, after: CompactionPlan) -> Removal:
        """Compare two plans for the same history."""
        # Plans read from a store hold equal records, not the same ones: compare each pair once, not for every message.
        same: dict[tuple[int, int], bool] = {}
        touched: list[tuple[Message, Record | None]] = []
        # Of what was summarised already the prompt showed nothing.
        for message in history.among(after.named_since(before)):
            was, now = before.get_action(message.id)[1], after.get_action(message.id)[1]
            pair = (id(was), id(now))
            if pair not in same:
                same[pair] = was == now
            if not same[pair]:
                touched.append((message, was))
        old, new = before.summary, after.summary
        is_replaced = old and (new.summary != old.summary if new else bool(touched))
        replaced = old.summary if old and is_replaced else None
        return cls(tuple(touched), replaced, tuple(message.id for message, was in touched if was is None))

    def texts(self) -> Iterator[tuple[str, str]]:
        """Yield the texts that are no longer shown, each with the id of its message, or "" where that is not known."""
        if self.summary:
            yield from _summary_texts(self.summary)
        for message, record in self.messages:
            yield from ((text, message.id) for text in _shown_texts(message, record))


class RemovedString(NamedTuple):
    """A specific string that left the prompt.

    `message_id` is the message to recall it by, `is_open` says that anybody may recall it, and `is_touched` that a
    person or the agent used it.
    """

    kind: EntityKind
    message_id: str
    is_touched: bool
    is_open: bool = True


class RecallableLog:
    """A log as recall finds strings in it: without the closed entries, which not everybody may recall.

    Reports on many plans share one: each entry is read once, and not once for every plan. `by_id` has the same entries,
    and may know of later ones; `default_sensitivity` is that of tool results which do not name theirs.
    """

    def __init__(
        self, log: Sequence[Message], by_id: Mapping[str, Message], default_sensitivity: str = "internal"
    ) -> None:
        self._log, self._by_id, self._default_sensitivity = log, by_id, default_sensitivity
        self._newest: dict[str, RemovedString] = {}
        self._read = 0

    def is_open(self, message_id: str) -> bool:
        """Return True if there is such an entry, and anybody may recall it."""
        message = self._by_id.get(message_id)
        return message is not None and is_open(message, self._default_sensitivity)

    def _is_touched(self, message_id: str) -> bool:
        """Return True unless a tool, and neither a person nor the agent, wrote an entry."""
        message = self._by_id.get(message_id)
        return message is None or message.role == "assistant" or is_typed(message)

    def strings_of(self, removal: Removal) -> dict[str, RemovedString]:
        """Return the specific strings of a removal, each with the newest message that has it, recallable ones first."""
        strings: dict[str, RemovedString] = {}
        for text, message_id in removal.texts():
            is_open, is_touched = self.is_open(message_id), self._is_touched(message_id)
            for string, kind in entity_kinds(text).items():
                known = strings.get(string)
                if known is None or (is_open, is_touched) >= (known.is_open, known.is_touched):
                    strings[string] = RemovedString(kind, message_id, is_touched, is_open)
        return strings

    def find(self, wanted: Iterable[str], entries: int) -> dict[str, RemovedString]:
        """Return for each of the strings the newest recallable one of the first entries, where there is one.

        Ask for ever more entries, or for as many again: what was read is not left out any more.
        """
        sought = list(wanted)
        if not sought:
            return {}
        for message in self._log[self._read : entries]:
            own: dict[str, RemovedString] = {}
            for text in message_texts(message) if self.is_open(message.id) else ():
                for string, kind in entity_kinds(text).items():
                    own.setdefault(string, RemovedString(kind, message.id, True))
            self._newest.update(own)
        self._read = max(self._read, entries)
        return {string: self._newest[string] for string in sought if string in self._newest}


@dataclass(frozen=True, slots=True)
class RemovedAsk:
    """The task, or a constraint, whose own message is no longer in the prompt as it came."""

    is_task: bool
    text: str
    message_id: str


def removed_asks(history: ReportedHistory, plan: CompactionPlan) -> Iterator[RemovedAsk]:
    """Yield the task and the standing constraints whose own message the plan has taken out."""
    first = history.messages[history.asks[0]] if history.asks else None
    if first and plan.get_action(first.id)[1]:
        yield RemovedAsk(True, first.text.strip(), first.id)
    for constraint in history.constraints:
        if plan.get_action(constraint.source_id)[1]:
            yield RemovedAsk(False, constraint.text, constraint.source_id)


def removed_decisions(history: ReportedHistory, plan: CompactionPlan) -> Iterator[tuple[str, str]]:
    """Yield the decisions whose own message the plan has taken out, each once, with the newest message that has it."""
    deciding = (history.messages[place] for place in history.decided)
    taken_out = (message for message in deciding if plan.get_action(message.id)[1])
    found = {fact.subject.removesuffix(CUT_MARK): fact.source_ids[-1] for fact in find_decisions(taken_out)}
    yield from found.items()


class PromptTexts:
    """The texts of a prompt, ready to be searched: the ledger of its summary, and everything else."""

    def __init__(self, history: ReportedHistory, plan: CompactionPlan) -> None:
        record = plan.summary
        own_id = summary_id(record.version) if record else None
        prompt = PromptRenderer().render(history.messages, plan, history.outside).messages
        texts = [text for message in prompt if message.id != own_id for text in message_texts(message)]
        ledger = Ledger()
        if record and record.summary:
            ledger = record.summary.ledger
            texts.append(
                unquoted(summary_message(replace(record, summary=replace(record.summary, ledger=Ledger()))).text)
            )
        self.outside_ledger, self.ledger = TextIndex(texts), TextIndex(fact.text for fact in ledger)


class TextIndex:
    """Texts in which many strings are looked up.

    They are read one after the other: a single search through all of them would keep every other thread from running.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        flat: list[str] = []
        self._strings: set[str] = set()
        self._words: set[str] = set()
        self._neighbours: set[tuple[str, str]] = set()
        for text in texts:
            flat.append(" ".join(text.split()))
            self._strings.update(entity_kinds(text))
            words = _WORD.findall(text)
            self._words.update(words)
            self._neighbours.update(pairwise(words))
        self._flat = "\n".join(flat)

    def has(self, string: str) -> bool:
        """Return True if the text has the string, not as part of a longer word."""
        # Most strings are answered by the sets; only the few that are likely to be there need a search.
        if string in self._strings or string in self._words:
            return True
        words = _WORD.findall(string)
        is_likely = self._words.issuperset(words) and self._neighbours.issuperset(pairwise(words))
        return is_likely and stands_in(self._flat, " ".join(string.split()))


def _shown_texts(message: Message, record: Record | None) -> Iterator[str]:
    """Yield what the prompt showed of a message under a record, without our own words about it."""
    match record:
        case None:
            yield from message_texts(message, with_names=False)
        case ClearRecord():
            text = message.text
            yield from (text[start:end] for start, end in record.kept)
            yield from record.preserved_fields.values()
            yield from message_texts(replace(render_cleared(message, record), content=None), with_names=False)
        case ExternalizationRecord() if record.attachments:
            text = message.text
            yield from [text] if record.kept is None else (text[start:end] for start, end in record.kept)
        case ExternalizationRecord():
            yield record.preview
        case _:
            return


def _summary_texts(summary: StructuredSummary) -> Iterator[tuple[str, str]]:
    """Yield the texts of a summary, each with the id of the newest message it is from, or ""."""

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
