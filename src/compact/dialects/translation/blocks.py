"""What a translator remembers: blocks of items with the entries they are, and lists of those."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, cast

from compact.core.messages.message import copy_plain
from compact.dialects.dialect import META, Block, Entry, is_summary, mark_summary
from compact.dialects.translation.looks import digest_of, item_has_meta, look_without_marks


@dataclass(frozen=True, eq=False)
class KnownBlock:
    """A block, and how its items looked when they were last seen; `items` are what is sent.

    Blocks are compared by what they are: lists of the same ones in one comparison in C.
    """

    seen: tuple[Any, ...]
    items: tuple[Any, ...]
    entries: tuple[Entry, ...]

    @cached_property
    def is_marked(self) -> bool:
        """True if an entry of it has a `meta`, whether the caller's item has it or came back without."""
        return any(META in entry for entry in self.entries)

    @cached_property
    def has_meta(self) -> bool:
        """True if a caller marked an item of it."""
        return any(map(item_has_meta, self.seen))

    @property
    def as_sent(self) -> KnownBlock:
        """The same block as it is sent, and will look when it comes back."""
        return KnownBlock(tuple(map(copy_plain, self.items)), self.items, self.entries) if self.has_meta else self

    @property
    def as_marked(self) -> KnownBlock:
        """The same block as its caller has marked it, if it came back as it was sent."""
        if self.has_meta or not self.is_marked:
            return self
        return KnownBlock(with_meta_again(Block(self.items, self.entries)), self.items, self.entries)

    @cached_property
    def look(self) -> str:
        """What the items are recognised by when they come back."""
        return look_without_marks(self.items)

    @cached_property
    def digests(self) -> tuple[bytes, ...]:
        """What tells the items, as they were seen, from others."""
        return tuple(map(digest_of, self.seen))


@dataclass(frozen=True, slots=True)
class ShownList:
    """A list that a session knows, as entries: the caller's own, or what a plan has shown of it.

    `owners` has the id of the log's entry for each of `entries`, "" for text of ours; the caller's own list has none.
    `summary_place` is the place of the session's summary in it.
    """

    entries: Sequence[Any]
    owners: Sequence[str] = ()
    summary_place: int | None = None


@dataclass(frozen=True, slots=True)
class BlockParts:
    """All that is in some blocks, one after the other: put together once, and not again at every call."""

    blocks: list[KnownBlock] = field(default_factory=list[KnownBlock])
    seen: list[Any] = field(default_factory=list[Any])
    entries: list[Entry] = field(default_factory=list[Entry])

    def of(self, blocks: list[KnownBlock]) -> BlockParts:
        """Return what is in other blocks; these are nearly always the same but for the last."""
        same = max(0, min(len(self.blocks), len(blocks)) - 1)
        if self.blocks[:same] != blocks[:same]:
            same = 0
        left, new = self.blocks[same:], blocks[same:]
        seen = self.seen[: len(self.seen) - sum(len(block.seen) for block in left)]
        entries = self.entries[: len(self.entries) - sum(len(block.entries) for block in left)]
        for block in new:
            seen += block.seen
            entries += block.entries
        return BlockParts(blocks, seen, entries)


@dataclass(slots=True)
class Taken:
    """What of ours a list has already: entries, and texts that stand for no entry.

    Each is ours once; another item that looks the same is the caller's.
    """

    _entry_ids: set[int] = field(default_factory=set[int])
    _placeholders: set[str] = field(default_factory=set[str])

    @classmethod
    def of(cls, blocks: Sequence[KnownBlock]) -> Taken:
        """Return what these blocks have."""
        taken = cls()
        for block in blocks:
            taken.add(block)
        return taken

    def add(self, block: KnownBlock) -> None:
        """Note that the list has a block."""
        self._entry_ids.update(map(id, block.entries))
        if not block.entries:
            self._placeholders.add(block.look)

    def has(self, block: KnownBlock) -> bool:
        """Return True if the list has a block, or a part of it."""
        if not block.entries:
            return block.look in self._placeholders
        return any(id(entry) in self._entry_ids for entry in block.entries)


@dataclass(frozen=True, slots=True)
class PlacedSummary:
    """The summary of a prompt, as the session has it; a dialect gets the same entry with a mark."""

    place: int | None
    entry: Entry | None

    @classmethod
    def at(cls, entries: Sequence[Any], place: int | None) -> PlacedSummary:
        """Return the summary at a place of a prompt; a `Message` object has an id of its own and needs no mark."""
        entry: object = entries[place] if place is not None and place < len(entries) else None
        return cls(place, cast(Entry, entry)) if isinstance(entry, dict) else cls(None, None)

    def marked(self, entries: Sequence[Entry], start: int) -> tuple[Entry, ...]:
        """Return entries of the prompt for the dialect, the summary marked; the first is number `start`."""
        return tuple(
            mark_summary(entry) if place == self.place else entry for place, entry in enumerate(entries, start)
        )

    def unmarked(self, block: Block) -> Block:
        """Return a block of the dialect with the session's own entry in place of the marked one."""
        summary = self.entry
        if summary is None or not any(is_summary(entry) for entry in block.entries):
            return block
        return Block(block.items, tuple(summary if is_summary(entry) else entry for entry in block.entries))


def with_meta_again(block: Block) -> tuple[Any, ...]:
    """Return the items of a block as its caller has them: with the marks that their entries have."""
    metas = [entry[META] for entry in block.entries if META in entry]
    items = sent_items(block)
    if not metas or not isinstance(items[0], dict):
        return items
    return {**cast(dict[str, Any], items[0]), META: metas[0]}, *items[1:]


def sent_items(block: Block) -> tuple[Any, ...]:
    return tuple(map(copy_plain, block.items))
