"""Ranges of characters or lines."""

from __future__ import annotations

from collections.abc import Iterable

_REACH_CHARS = 400


def joined_ranges(ranges: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Ranges in order, those that touch or overlap made one."""
    joined: list[tuple[int, int]] = []
    for start, end in sorted(ranges):
        if joined and start <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return tuple(joined)


def line_around(text: str, place: int) -> tuple[int, int]:
    """Where the line around a place begins and ends; of one without end, as much as is near, cut between words.

    Looking no further keeps it cheap to ask for every place in a text that is one line.
    """
    nearest, farthest = max(0, place - _REACH_CHARS), place + _REACH_CHARS
    start = text.rfind("\n", nearest, place) + 1
    if not start and nearest:
        start = text.find(" ", nearest, place) + 1 or nearest
    end = text.find("\n", place, farthest)
    if end < 0 and farthest < len(text):
        end = text.rfind(" ", place + 1, farthest)
    return start, end if end >= 0 else min(farthest, len(text))
