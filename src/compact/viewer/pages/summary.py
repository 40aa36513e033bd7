"""The text of a summary for people: which of its words code verified, appended, or found in no source."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from compact.core.plan.plan import CompactionPlan
from compact.core.plan.renderer import summary_message
from compact.core.summary.summary import SummaryCheck

# Chosen: shorter texts occur by accident, and a page with more marks cannot be read.
_MIN_CHARS = 3
_MAX_MARKS = 2_000
# The worst mark first.
_MARKS = ("ungrounded", "appended", "verified")
_RANKS = {mark: rank for rank, mark in enumerate(_MARKS)}


def summary_data(plan: CompactionPlan) -> dict[str, Any] | None:
    """Return the summary of a plan, cut into segments by what the check found."""
    record = plan.summary
    if record is None or record.summary is None:
        return None
    text, check = summary_message(record).text, record.summary.check or SummaryCheck()
    marks: dict[str, str] = {}
    # The first mark of a text stays: that no source has it is the worst that can be said.
    writing = record.summary.writing
    # What code chose because the summary failed was never checked.
    is_fallback = writing is not None and bool(writing.instead_of)
    verified = () if is_fallback else (fact.subject for fact in record.summary.ledger)
    for mark, texts in zip(_MARKS, (check.ungrounded, check.appended, verified), strict=True):
        for marked in texts:
            marks.setdefault(marked.strip(), mark)
    return {
        "version": record.version,
        "text": text,
        "tokens": record.tokens_after,
        "stands_for": len(record.span),
        "segments": list(_segments(text, marks)),
        "missing": [fact for fact in check.asked_again if fact not in text],
        "ungrounded": list(check.ungrounded),
        "appended": list(check.appended),
        "required": check.required,
        "writing": writing.to_dict() if writing else None,
        "is_fallback": is_fallback,
    }


def _segments(text: str, marks: dict[str, str]) -> Iterator[dict[str, str]]:
    """Yield the whole text in order, each segment with its mark."""
    place = 0
    for start, end, mark in _marked_spans(text, marks):
        if start > place:
            yield {"text": text[place:start], "mark": "plain"}
        yield {"text": text[start:end], "mark": mark}
        place = end
    if place < len(text):
        yield {"text": text[place:], "mark": "plain"}


def _marked_spans(text: str, marks: dict[str, str]) -> list[tuple[int, int, str]]:
    """Return the marked spans in order; where two overlap, the worse mark stays, then the longer text."""
    found = [(_RANKS[mark], start - end, start, end) for start, end, mark in _occurrences(text, marks)]
    taken = bytearray(len(text))
    spans: list[tuple[int, int, str]] = []
    for rank, _, start, end in sorted(found):
        if not any(taken[start:end]):
            taken[start:end] = b"\1" * (end - start)
            spans.append((start, end, _MARKS[rank]))
    return sorted(spans)


def _occurrences(text: str, marks: dict[str, str]) -> Iterator[tuple[int, int, str]]:
    """Yield every occurrence of a marked text that does not begin or end inside a word."""
    for marked, mark in islice(marks.items(), _MAX_MARKS):
        start = text.find(marked) if len(marked) >= _MIN_CHARS else -1
        while start >= 0:
            end = start + len(marked)
            if not _is_in_word(text, start) and not _is_in_word(text, end):
                yield start, end, mark
            start = text.find(marked, end)


def _is_in_word(text: str, place: int) -> bool:
    """Return True if the characters on both sides belong to one word."""
    return 0 < place < len(text) and text[place - 1].isalnum() and text[place].isalnum()
