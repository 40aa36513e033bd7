"""Entries that the caller has left, and may return to."""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterable, Mapping, Sequence

from compact.core.log.forms import what_is_said
from compact.core.messages.message import Message


class LeftEntries:
    """Entries by what they say, those that came first in front; it is begun with some in the order of the log."""

    def __init__(self, entries: Iterable[Message] = ()) -> None:
        self._by_said: dict[str, list[Message]] = {}
        for entry in entries:
            self._saying(entry).append(entry)

    def copy(self) -> LeftEntries:
        """Return the same entries, to take others from."""
        twin = LeftEntries()
        twin._by_said = {said: list(entries) for said, entries in self._by_said.items()}
        return twin

    def add(self, entries: Iterable[Message], places: Mapping[str, int]) -> None:
        """Take in more entries; `places` says where each stands in the log."""
        for entry in entries:
            insort(self._saying(entry), entry, key=lambda one: places[one.id])

    def _saying(self, entry: Message) -> list[Message]:
        return self._by_said.setdefault(what_is_said(entry.original), [])

    def saying_what(self, item: object) -> Sequence[Message]:
        """Return the entries that say what an item says."""
        return self._by_said.get(what_is_said(item), ()) if self._by_said else ()

    def take(self, item: object, *conditions: Callable[[Message], bool]) -> Message | None:
        """Take out the first entry that says what an item says and meets the first condition; or else the next one."""
        said = what_is_said(item) if self._by_said else ""
        entries = self._by_said.get(said, [])
        found = (next((n for n, entry in enumerate(entries) if is_met(entry)), None) for is_met in conditions)
        place = next((n for n in found if n is not None), None)
        if place is None:
            return None
        entry = entries.pop(place)
        if not entries:
            del self._by_said[said]
        return entry
