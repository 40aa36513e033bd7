"""Lists that a caller may send back: the one it has of its own, and the prompts it was given."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from compact.core.messages.message import Message, SettledItems, list_start


@dataclass(frozen=True, slots=True)
class LeftLine:
    """A line that the caller has left by an edit of the past, and the plan that a prompt of it was made with."""

    ids: tuple[str, ...]
    plan_version: int


@dataclass(frozen=True, slots=True)
class KnownList:
    """A list that the caller may send back: its items, and the log entries each item stands for.

    `owners` has the id of the entry where an item is that entry unchanged, and "" where the text is ours; `ours` are
    the places of those. `left` is the line that it is of, if that is not the line of now.
    """

    originals: list[object] = field(default_factory=list[object])
    ids: list[tuple[str, ...]] = field(default_factory=list[tuple[str, ...]])
    owners: list[str] = field(default_factory=list[str])
    ours: list[int] = field(default_factory=list[int])
    left: LeftLine | None = None

    def copy(self) -> KnownList:
        """Return a list of its own with the same items."""
        return KnownList(list(self.originals), list(self.ids), list(self.owners), list(self.ours), self.left)

    def is_start_of(self, incoming: Sequence[object]) -> bool:
        """Return True if a caller's list begins with this one: the same objects, or equal ones."""
        known = len(self.originals)
        # One comparison in C covers the same objects, equal copies, and objects changed in place.
        return known <= len(incoming) and list_start(incoming, known) == self.originals

    def take_objects(self, incoming: Sequence[object]) -> None:
        """Hold a caller's objects in place of the equal ones here, if nobody changes them any more.

        The caller's list begins with this one. Next time its items are the same objects, which is quick to see.
        """
        known = len(self.originals)
        if known and isinstance(incoming, SettledItems) and self.originals[0] is not incoming[0]:
            self.originals[:] = list_start(incoming, known)

    def add(self, original: object, ids: tuple[str, ...], owner: str) -> None:
        """Append one item."""
        if not owner:
            self.ours.append(len(self.owners))
        self.originals.append(original)
        self.ids.append(ids)
        self.owners.append(owner)

    def take_owner(self, entry: Message) -> None:
        """Note that an item is an entry unchanged: it is shown in the form that the caller has."""
        places = [n for n in self.ours if self.ids[n] == (entry.id,) and self.originals[n] == entry.original]
        for place in places:
            self.owners[place] = entry.id
            self.ours.remove(place)

    def add_entries(self, entries: Iterable[Message]) -> None:
        """Append log entries that are shown unchanged."""
        for entry in entries:
            self.add(entry.original, (entry.id,), entry.id)
