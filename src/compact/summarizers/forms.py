"""The forms of a summary by code: what each lists, what it gives its room to, and how much of the room it takes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from compact.core.facts.ledger import Fact, FactKind, Ledger
from compact.core.facts.pieces import Piece
from compact.core.facts.tool_calls import fits_name
from compact.core.facts.value import ContentKind, content_kind
from compact.core.messages.message import Message
from compact.summarizers.entries import change_entries, decision_entries, source_entries, work_entries

# Lists that are rewritten all the time: what is open in the newest has its own section.
_TODO_TOOLS = ("*todo*", "update_plan*")
Entries = Callable[[Sequence[Message], Ledger], Iterable[Fact]]


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryForm:
    """One form of a summary.

    `lists` names the kinds of facts that have a section, each with the most it may take of the room; `entries` says how
    the facts of a kind are written where that is not as the ledger has them. What is told of the rest is chosen by
    value, times a factor: `values` by what it is, `factor` for the steps that facts of the kinds `tells` are from,
    and for the newest share of the messages, `elsewhere` for the calls of all other steps.
    """

    lists: Mapping[FactKind, float] = field(default_factory=dict[FactKind, float])
    entries: Mapping[FactKind, Entries] = field(default_factory=dict[FactKind, Entries])
    values: Mapping[ContentKind, float] = field(default_factory=dict[ContentKind, float])
    tells: tuple[FactKind, ...] = ()
    newest_share: float = 0.0
    factor: float = 1.0
    room_share: float = 1.0
    elsewhere: float = 1.0
    reminds: bool = False

    @property
    def has_factors(self) -> bool:
        """True if anything counts more or less than its value."""
        return bool(self.values) or self.factor != 1.0

    def facts(self, kind: FactKind, span: Sequence[Message], ledger: Ledger) -> Sequence[Fact]:
        """Return the facts of a kind as this form writes them, oldest first."""
        entries = self.entries.get(kind)
        return tuple(entries(span, ledger)) if entries else ledger.of(kind)

    def factors(
        self, pieces: Sequence[Piece], messages: Sequence[Message], span: Sequence[int], ledger: Ledger
    ) -> list[float]:
        """Return for each piece of some messages what its value counts in this form; `span` has their places."""
        sources = {source for kind in self.tells for fact in ledger.of(kind) for source in fact.source_ids}
        is_open_listed = FactKind.OPEN_ITEM in self.lists
        newest = span[math.ceil(len(span) * (1 - self.newest_share)) :]
        told = {place for place in span if messages[place].id in sources}.union(newest)

        def factor(piece: Piece) -> float:
            place, which = piece.step
            call = messages[place].tool_calls[which] if which >= 0 else None
            if is_open_listed and call and fits_name(call.name, _TODO_TOOLS):
                return 0.0
            if told & {piece.place, place}:
                return self.values.get(content_kind(piece), 1.0) * self.factor
            return self.values.get(content_kind(piece), 1.0) * (self.elsewhere if call else 1.0)

        return [factor(piece) for piece in pieces]


# Only words: what was called and what came of it is left to the sections.
_WORDS: Mapping[ContentKind, float] = {
    ContentKind.ARGUMENTS: 0.0,
    ContentKind.HEAD: 0.0,
    ContentKind.ERROR: 0.0,
    ContentKind.REST: 0.0,
}

# Chosen, by reading what comes of them: the golden files of the tests show one conversation in all forms.
FORMS: Mapping[str, SummaryForm] = {
    "task_state": SummaryForm(reminds=True),
    "brief": SummaryForm(
        room_share=0.25,
        lists={FactKind.OPEN_ITEM: 0.25, FactKind.FILE: 0.2, FactKind.MENTION: 0.1},
        entries={FactKind.MENTION: source_entries},
        values=_WORDS,
        newest_share=0.25,
        factor=3.0,
    ),
    "decision_log": SummaryForm(
        lists={FactKind.DECISION: 0.5, FactKind.OPEN_ITEM: 0.1, FactKind.ERROR: 0.1},
        entries={FactKind.DECISION: decision_entries},
        values=_WORDS,
        tells=(FactKind.DECISION,),
        factor=4.0,
    ),
    "code_delta": SummaryForm(
        lists={FactKind.OPEN_ITEM: 0.1, FactKind.FILE: 0.3, FactKind.COMMAND: 0.1, FactKind.ERROR: 0.1},
        entries={FactKind.FILE: change_entries},
        values={**_WORDS, ContentKind.ARGUMENTS: 4.0, ContentKind.INSERTED: 0.0},
        tells=(FactKind.FILE,),
        elsewhere=0.0,
    ),
    "session_summary": SummaryForm(
        lists={
            FactKind.DECISION: 0.1,
            FactKind.OPEN_ITEM: 0.1,
            FactKind.FILE: 0.2,
            FactKind.COMMAND: 0.1,
            FactKind.ERROR: 0.1,
        },
        entries={FactKind.FILE: work_entries},
        values=_WORDS,
    ),
}
