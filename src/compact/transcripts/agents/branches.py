"""The branch that a session ended with, in logs whose lines name their parent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

T = TypeVar("T")


def last_branch(lines: Sequence[T], ids: Sequence[str], parents: Mapping[str, str]) -> list[T]:
    """Return the lines from the first one to the last, along the parents; a parent that is missing ends the way."""
    by_id = dict(zip(ids, lines, strict=True))
    way: list[T] = []
    passed: set[str] = set()
    current = ids[-1] if ids else ""
    while current in by_id and current not in passed:
        passed.add(current)
        way.append(by_id[current])
        current = parents.get(current, "")
    return way[::-1]
