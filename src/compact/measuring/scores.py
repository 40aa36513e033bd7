"""Scores what a system kept: five shares, and their mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

from compact.measuring.needs import Need, SessionNeeds, Words, plain_words
from compact.measuring.specifics import find_bounded

LINKED_SHARE = 0.4
# In what was kept, neighbours may stand further off: a summary says the same with other words between.
NEAR, MOST_PLACES_KEPT = 6, 200


@dataclass(frozen=True, slots=True)
class Scores:
    """Shares from 0 to 1; None where a transcript has nothing of the kind to keep."""

    recall: float | None
    linked: float | None
    user_text: float | None
    rare_words: float | None
    lines: float | None


COLUMNS = tuple(field.name for field in fields(Scores))


def score(facts: SessionNeeds, kept: str) -> Scores:
    """How much of what a transcript's future needed is in a text."""
    words = Words(kept)
    found = [need for need in facts.needs if find_bounded(need.string, kept) >= 0]
    linked = sum(is_linked(need, words) for need in found)
    return Scores(
        recall=_share(len(found), len(facts.needs)),
        linked=_share(linked, len(facts.needs)),
        user_text=_share(
            sum(len(line) for line in facts.typed_lines if line in kept), sum(map(len, facts.typed_lines))
        ),
        rare_words=_share(len(facts.rare_words & plain_words(kept)), len(facts.rare_words)),
        lines=_share(sum(line in kept for line in facts.lines), len(facts.lines)),
    )


def missed(facts: SessionNeeds, kept: str) -> list[Need]:
    """The needs that a text does not hold."""
    return [need for need in facts.needs if find_bounded(need.string, kept) < 0]


def is_linked(need: Need, kept: Words) -> bool:
    """Whether a string still stands beside enough of the words of one of its places."""
    now = kept.beside(need.string, NEAR, MOST_PLACES_KEPT)
    return any(len(then & near) >= LINKED_SHARE * len(then) for then in need.neighbours for near in now)


def mean(values: Sequence[float | None], unit: float = 100) -> float | None:
    """The mean of the values there are."""
    there = [value for value in values if value is not None]
    return unit * sum(there) / len(there) if there else None


def _share(part: float, whole: float) -> float | None:
    return part / whole if whole else None
