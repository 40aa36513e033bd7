"""Rank log entries for a query by BM25: one function for every store, so that all of them give the same answer.

A store's index tells which entries hold a term and has the terms of an entry; what that comes to is counted here.
(Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009.)
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Protocol

from compact.core.search.search_terms import EntryTerms, SearchQuery

# The usual values of BM25: how soon more occurrences of a term stop to count, and how much a long entry counts less.
_SATURATION, _LENGTH_SHARE = 1.2, 0.75
# Words of an entry of usual length; fixed, since the mean of a session changes with every entry.
# Measured: the mean of the transcripts of docs/measurements.md.
_USUAL_LENGTH = 250
# Chosen: a term that more entries hold tells them apart too little to be looked up entry by entry.
MAX_HOLDERS = 1000
# Chosen: so many entries are compared in some ten milliseconds.
_MAX_COMPARED = 1000
# Chosen: what matches so much less than the best entry is noise.
_MIN_SHARE = 0.3


class TermIndex(Protocol):
    """What ranking asks of the index of one session; entries are named by their place in the log."""

    @property
    def size(self) -> int:
        """How many entries the session has."""
        ...

    def holders(self, term: str, limit: int) -> Sequence[int]:
        """Return the entries that hold a term; `limit` of them, any, if there are more."""
        ...

    def newest_holders(self, terms: Sequence[str], limit: int) -> Sequence[int]:
        """Return the newest entries that hold one of the terms at least."""
        ...

    def terms_of(self, seqs: Sequence[int]) -> Mapping[int, EntryTerms]:
        """Return the terms of entries."""
        ...


def rank(query: SearchQuery, index: TermIndex, limit: int) -> list[int]:
    """Return the entries that match a query best, the best first; of equals, the newest.

    Entries that hold a name exactly as the query has it come before all others.
    """
    if not query.terms or limit <= 0:
        return []
    size = index.size
    holders = {term: set(index.holders(term, MAX_HOLDERS + 1)) for term in query.terms}
    weights = {term: _weight(len(found), size) for term, found in holders.items() if found}
    if not weights:
        return []
    compared = _compared(holders, index)
    scores: list[tuple[float, float, int]] = []
    for seq, terms in index.terms_of(sorted(compared)).items():
        score = sum(weight * _saturated(terms.frequency(term), terms.length) for term, weight in weights.items())
        named = sum(weights[name] for name in query.names if name in weights and terms.frequency(name))
        scores.append((-named, -score, -seq))
    scores.sort()
    floor = _MIN_SHARE * max((-score for _, score, _ in scores), default=0.0)
    return [-seq for named, score, seq in scores if named or -score >= floor][:limit]


def _weight(holders: int, size: int) -> float:
    """Return what a term counts: the more, the fewer entries hold it."""
    if holders > MAX_HOLDERS:
        # How many hold it is not known exactly; it counts as if half of all did.
        holders = max(holders, size // 2)
    return math.log(1 + (max(size, holders) - holders + 0.5) / (holders + 0.5))


def _saturated(frequency: int, length: int) -> float:
    """Return what the occurrences of a term count, up to 1; scores are only compared, so nothing makes it more."""
    norm = _SATURATION * (1 - _LENGTH_SHARE + _LENGTH_SHARE * length / _USUAL_LENGTH)
    return frequency / (frequency + norm)


def _compared(holders: Mapping[str, set[int]], index: TermIndex) -> set[int]:
    """Return the entries to compare: those that hold the rarest terms, as many as it takes."""
    selective = sorted((len(found), term) for term, found in holders.items() if 0 < len(found) <= MAX_HOLDERS)
    if not selective:
        common = [term for term, found in holders.items() if found]
        return set(index.newest_holders(common, MAX_HOLDERS))
    compared: set[int] = set()
    for _, term in selective:
        if compared and len(compared | holders[term]) > _MAX_COMPARED:
            break
        compared |= holders[term]
    return compared


class MemoryIndex:
    """The terms of a session's entries in dictionaries."""

    __slots__ = ("_entries", "_holders")

    def __init__(self) -> None:
        self._entries: dict[int, EntryTerms] = {}
        self._holders: dict[str, list[int]] = {}

    @property
    def size(self) -> int:
        """How many entries it has."""
        return len(self._entries)

    def add(self, seq: int, terms: EntryTerms) -> None:
        """Add the next entry of the log."""
        self._entries[seq] = terms
        for term in set(terms.words.split()):
            self._holders.setdefault(term, []).append(seq)

    def has_entry_with(self, terms: Sequence[str]) -> bool:
        """Return True if an entry holds all the terms."""
        return bool(set[int].intersection(*(set(self._holders.get(term, ())) for term in terms)))

    def holders(self, term: str, limit: int) -> Sequence[int]:
        """Return the entries that hold a term."""
        return self._holders.get(term, [])[:limit]

    def newest_holders(self, terms: Sequence[str], limit: int) -> Sequence[int]:
        """Return the newest entries that hold one of the terms at least."""
        found = {seq for term in terms for seq in self._holders.get(term, ())}
        return sorted(found, reverse=True)[:limit]

    def terms_of(self, seqs: Sequence[int]) -> Mapping[int, EntryTerms]:
        """Return the terms of entries."""
        return {seq: self._entries[seq] for seq in seqs}
