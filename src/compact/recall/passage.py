"""Choose the passage of a long text that says most about a query."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from compact.core.search.search_terms import line_terms

CUT = "…"
# Chosen: a line that is longer (JSON, minified code) is looked at in pieces of this size.
_MAX_LINE_CHARS = 400
# Chosen: what is looked for lies within so much of the passage; the rest of it is what follows.
_WINDOW_SHARE = 0.6
# Chosen: of a larger text, the beginning is looked through; it takes some ten milliseconds.
_SEARCHED_CHARS = 200_000


def fitting(text: str, max_tokens: int, count_text: Callable[[str], int]) -> str:
    """Return the text, or as much of its beginning as fits."""
    while text and (tokens := count_text(text)) > max_tokens:
        keep = int(len(text) * max_tokens / tokens * 0.95)
        text = text[: min(keep, len(text) - 1)] if max_tokens > 0 else ""
    return text


def best_passage(text: str, terms: Sequence[str], max_tokens: int, count_text: Callable[[str], int]) -> str:
    """Return the text if it fits, else the passage of it that holds most of what is looked for."""
    tokens = count_text(text)
    if tokens <= max_tokens:
        return text
    chars = int(len(text) * max_tokens / max(tokens, 1))
    lines = list(_lines(text[:_SEARCHED_CHARS]))
    start = _best_start(lines, frozenset(terms), int(chars * _WINDOW_SHARE))
    if start == 0:
        return fitting(text, max_tokens, count_text)
    return fitting(f"{CUT}\n{text[sum(map(len, lines[:start])) :]}", max_tokens, count_text)


def _lines(text: str) -> Iterator[str]:
    for line in text.splitlines(keepends=True):
        for place in range(0, len(line), _MAX_LINE_CHARS):
            yield line[place : place + _MAX_LINE_CHARS]


def _best_start(lines: Sequence[str], terms: frozenset[str], chars: int) -> int:
    """Return the line at which a window of so many characters begins that holds most; of equals, the first."""
    held = [terms & found for found in line_terms(lines)]
    holders = Counter(term for found in held for term in found)
    weights = {term: math.log(1 + len(lines) / count) for term, count in holders.items()}
    inside: Counter[str] = Counter()
    best, best_score, size, end = 0, 0.0, 0, 0
    for start, line in enumerate(lines):
        while end < len(lines) and (size + len(lines[end]) <= chars or end == start):
            size += len(lines[end])
            inside.update(held[end])
            end += 1
        score = sum(weights[term] for term in sorted(weights) if inside[term])
        # Rounded, so that sums in another order do not decide.
        if score > best_score + 1e-9:
            best, best_score = start, score
        size -= len(line)
        inside.subtract(held[start])
    return best
