"""Read a summary back from its text: for callers that keep nothing but the list of messages."""

from __future__ import annotations

import re
from dataclasses import dataclass

from compact.core.facts.ledger import Fact, FactKind, Ledger
from compact.core.summary.summary import FACT_TITLES, HAPPENED_TITLE, StructuredSummary, read_own_words

_FRAME = re.compile(
    r"<COMPACT-SUMMARY v(\d+)>\n\([^\n]* earlier messages?; [^\n]*\)\n(.*?)\n?</COMPACT-SUMMARY>", re.DOTALL
)
_KINDS = {title: kind for kind, title in FACT_TITLES.items()}
_ORDER = {title: place for place, title in enumerate((*FACT_TITLES.values(), "Work done", "Facts", HAPPENED_TITLE))}
_WHOLE_TEXT = (FactKind.TASK, FactKind.LATEST_ASK)


@dataclass(frozen=True, slots=True)
class ParsedSummary:
    """A summary as far as its text tells: its version, the facts of its ledger, and the rest as a narrative."""

    version: int
    summary: StructuredSummary


def parse_summary_text(text: str) -> ParsedSummary | None:
    """Return the summary that a text is, from its first to its last character; None for any other text."""
    frame = _FRAME.fullmatch(text)
    if frame is None:
        return None
    facts: list[Fact] = []
    rest: list[str] = []
    for title, body in _sections(frame[2]):
        kind = _KINDS.get(title)
        if kind in _WHOLE_TEXT and kind:
            facts.append(Fact(kind, read_own_words(body)))
        elif kind is FactKind.MENTION:
            facts += (Fact(kind, mention) for mention in body.split(", "))
        elif kind:
            facts += (Fact(kind, line.removeprefix("- ")) for line in body.splitlines() if line.startswith("- "))
        elif body:
            rest.append(body)
    summary = StructuredSummary(ledger=Ledger(tuple(facts)), narrative="\n".join(rest))
    return ParsedSummary(int(frame[1]), summary)


def _sections(body: str) -> list[tuple[str, str]]:
    """Cut a body at our headings, which come in one order; what looks like one out of its order is content."""
    found: list[tuple[str, list[str]]] = []
    last = -1
    for line in body.splitlines():
        title = line.removeprefix("## ")
        place = _ORDER.get(title, -1) if line.startswith("## ") else -1
        if place > last:
            found.append((title, []))
            last = place
        elif found:
            found[-1][1].append(line)
    return [(title, "\n".join(lines)) for title, lines in found]
