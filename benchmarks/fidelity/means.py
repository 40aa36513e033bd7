"""The mean of scores over transcripts, then over domains."""

from __future__ import annotations

from collections.abc import Sequence

from compact.measuring.scores import COLUMNS, Scores, mean
from fidelity.transcripts import DOMAINS, domain_of


def mean_scores(scored: Sequence[tuple[str, Scores]]) -> dict[str, dict[str, float | None]]:
    """Percentages per domain over transcripts, and `mean` over the domains, from pairs of source and scores."""
    table: dict[str, dict[str, float | None]] = {}
    for domain in DOMAINS:
        rows = [scores for source, scores in scored if domain_of(source) == domain]
        table[domain] = {column: mean([getattr(row, column) for row in rows]) for column in COLUMNS}
    overall = {column: mean([table[domain][column] for domain in DOMAINS], unit=1) for column in COLUMNS}
    return {"mean": overall, **table}
