"""A summary as people read it: which of its words code has verified, added, or found in no source."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from compact.core.plan.plan import CompactionPlan
from compact.core.plan.renderer import summary_message
from compact.core.summary.summary import SummaryCheck

_LEAST_CHARS = 3
_MOST_MARKS = 2_000
_MARKS = ("ungrounded", "appended", "verified")
_RANKS = {mark: rank for rank, mark in enumerate(_MARKS)}


def summary_view(plan: CompactionPlan) -> dict[str, Any] | None:
    """The summary of a plan, cut into parts by what is known of them."""
    record = plan.summary
    if record is None or record.summary is None:
        return None
    text, check = summary_message(record).text, record.summary.check or SummaryCheck()
    marks: dict[str, str] = {}
    # Whoever comes first decides: what no source has is the worst that can be said.
    verified = (fact.subject for fact in record.summary.ledger)
    for mark, texts in zip(_MARKS, (check.ungrounded, check.appended, verified), strict=True):
        for marked in texts:
            marks.setdefault(marked.strip(), mark)
    return {
        "version": record.version,
        "text": text,
        "tokens": record.tokens_after,
        "stands_for": len(record.span),
        "parts": list(_parts(text, marks)),
        "missing": [fact for fact in check.asked_again if fact not in text],
        "ungrounded": list(check.ungrounded),
        "appended": list(check.appended),
        "required": check.required,
    }


def _parts(text: str, marks: dict[str, str]) -> Iterator[dict[str, str]]:
    place = 0
    for start, end, mark in _chosen(text, marks):
        if start > place:
            yield {"text": text[place:start], "mark": "plain"}
        yield {"text": text[start:end], "mark": mark}
        place = end
    if place < len(text):
        yield {"text": text[place:], "mark": "plain"}


def _chosen(text: str, marks: dict[str, str]) -> list[tuple[int, int, str]]:
    """The marked places in their order; where two overlap, the worse mark stays, then the longer text."""
    found = [(_RANKS[mark], start - end, start, end) for start, end, mark in _places(text, marks)]
    taken = bytearray(len(text))
    chosen: list[tuple[int, int, str]] = []
    for rank, _, start, end in sorted(found):
        if not any(taken[start:end]):
            taken[start:end] = b"\1" * (end - start)
            chosen.append((start, end, _MARKS[rank]))
    return sorted(chosen)


def _places(text: str, marks: dict[str, str]) -> Iterator[tuple[int, int, str]]:
    for marked, mark in islice(marks.items(), _MOST_MARKS):
        start = text.find(marked) if len(marked) >= _LEAST_CHARS else -1
        while start >= 0:
            end = start + len(marked)
            if not _is_in_word(text, start) and not _is_in_word(text, end):
                yield start, end, mark
            start = text.find(marked, end)


def _is_in_word(text: str, place: int) -> bool:
    """True if the characters on both sides belong to one word."""
    return 0 < place < len(text) and text[place - 1].isalnum() and text[place].isalnum()
