"""The items of a caller's list that are looked for in a known one, and how far that list has been followed."""

from __future__ import annotations

from collections.abc import Collection, Sequence


class SoughtItems:
    """The digests of each item of a list, in order; some look in two ways, with a mark of ours and without."""

    def __init__(self, looks: Sequence[Collection[bytes]]) -> None:
        self._looks = looks
        self._places: dict[bytes, list[int]] = {}
        self._next = 0
        for place, digests in enumerate(looks):
            for digest in digests:
                self._places.setdefault(digest, []).append(place)

    def begin(self) -> None:
        """Follow another known list, from its start."""
        self._next = 0

    def has(self, digests: Sequence[bytes]) -> bool:
        """Return True if the list has these items, somewhere."""
        return all(digest in self._places for digest in digests)

    def has_next(self, digests: Sequence[bytes]) -> bool:
        """Return True if the list goes on with these items."""
        there = self._looks[self._next : self._next + len(digests)]
        return len(there) == len(digests) and all(one in looks for one, looks in zip(digests, there, strict=True))

    def follow(self, digests: Sequence[bytes]) -> None:
        """Go on behind these items, if the list has them: the next that there are, or else the first."""
        places = self._places.get(digests[0], []) if digests else []
        if places:
            self._next = next((place for place in places if place >= self._next), places[0]) + len(digests)
