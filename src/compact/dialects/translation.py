"""Goes between a caller's list and the log of its session, and remembers what it has read and written.

A caller sends its own list every time, or what it was given last time with new items behind it. Items that are known
are not read again, and whatever nobody has changed is given back as the caller's own object.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import is_
from typing import Any

from compact.core.log.messages import copy_plain
from compact.dialects.dialect import Block, Dialect, Entry, without

META = "meta"
_MOST_MADE = 20_000
_MOST_ALIKE = 50
_MOST_JOINED = 12


@dataclass(frozen=True)
class _Known:
    """A block, and how its items looked when they were last seen; `items` go out."""

    seen: tuple[Any, ...]
    items: tuple[Any, ...]
    entries: tuple[Entry, ...]

    @cached_property
    def has_meta(self) -> bool:
        """True if a caller marked an item of it."""
        return any(isinstance(item, dict) and META in item for item in self.seen)

    @property
    def bare(self) -> _Known:
        """The same block as it goes out, and will look when it comes back."""
        return _Known(tuple(map(copy_plain, self.items)), self.items, self.entries) if self.has_meta else self

    @cached_property
    def look(self) -> str:
        """What the items are recognised by when they come back."""
        return look_of(self.items)


@dataclass(slots=True)
class Translator:
    """One session's list, in one dialect."""

    dialect: Dialect
    _current: list[_Known] = field(default_factory=list[_Known])
    _written: list[_Known] = field(default_factory=list[_Known])
    # Items that we made or changed, by their looks: they may come back anywhere in a list. Several may look the same.
    _made: dict[str, list[_Known]] = field(default_factory=dict[str, list[_Known]])
    # The caller's last list: its own objects, and how they looked, so that a change made in place is seen.
    _given: list[Any] = field(default_factory=list[Any])
    _seen: list[Any] = field(default_factory=list[Any])
    # True once an item had a `meta`: what is given back looks different then, and is known by its place first.
    _has_marks: bool = False

    @property
    def knows_meta(self) -> bool:
        """True if items were seen with a `meta` of ours, which those that come back do not have."""
        return bool(self._made)

    def entries(self, items: Sequence[Any]) -> list[Entry]:
        """A caller's list as entries of the log; only what is new is read."""
        known, place = self._longest_known(items)
        taken = {id(entry) for block in known for entry in block.entries} if self._made else set[int]()
        fresh = list(self._read(items, place, taken))
        self._current, self._given = [*known, *fresh], list(items)
        self._seen = [item for block in self._current for item in block.seen]
        for block in fresh:
            if block.has_meta:
                self._remember_made(block)  # it goes out without its `meta`, and has it again when it comes back
                self._has_marks = True
        return [entry for block in self._current for entry in block.entries]

    def items(self, entries: Sequence[Any]) -> list[Any]:
        """A prompt as the caller's items: its own objects wherever nothing was changed."""
        own = [entry for known in self._current for entry in known.entries]
        if len(own) == len(entries) and all(map(is_, own, entries)):
            if self._has_marks:
                self._written = [known.bare for known in self._current]
            return [item for known in self._current for item in known.items]
        blocks = list(self.dialect.join(list(self._blocks(entries))))
        self._remember_written(blocks)
        return [item for block in blocks for item in block.items]

    def learn(self, entries: Sequence[Any]) -> None:
        """Recognise a prompt that was shown before, perhaps by another process, should it come back.

        Where a dialect puts neighbours together, a caller that adds to its list may have them in pieces.
        """
        if not entries:
            return
        self.items(entries)
        apart = [block for entry in entries for block in self.dialect.write([entry])]
        for start in range(len(apart)):
            for end in range(start + 1, min(start + _MOST_JOINED, len(apart)) + 1):
                joined = self.dialect.join(apart[start:end])
                if len(joined) != 1 or len(joined[0].items) != 1:
                    break
                if self._is_told_by_its_looks(joined[0]):
                    items = joined[0].items
                    self._remember_made(_Known(tuple(map(copy_plain, items)), items, joined[0].entries))

    def _is_told_by_its_looks(self, block: Block) -> bool:
        """True if a block is not what its items would be read as, but for calls that are only told by their place."""
        read = [entry for found in self.dialect.read(block.items, 0) for entry in found.entries]
        ids, own = ([e.get("tool_call_id") for e in both if e.get("role") == "tool"] for both in (read, block.entries))
        return ids == own and read != list(block.entries)

    def _longest_known(self, items: Sequence[Any]) -> tuple[list[_Known], int]:
        """The blocks that a list begins with, of what was read or of what was written last time."""
        # The last block that was read may have been cut short by the end of the list.
        before = self._current[:-1]
        place = len(self._seen) - len(self._current[-1].seen) if self._current else 0
        if 0 < place <= len(items):
            start = items[:place]
            if all(map(is_, self._given, start)) and self._seen[:place] == list(start):
                return before, place  # the very same objects, and nobody has changed them
        return max((_matching(blocks, items) for blocks in (before, self._written)), key=lambda match: match[1])

    def _read(self, items: Sequence[Any], place: int, taken: set[int]) -> Iterator[_Known]:
        """The items from a place on; `taken` are the entries that the list has already."""
        fresh: list[Any] = []
        # Those that still have their marks are known first: others may look the same without them.
        marked = self._marked_again(items, place, taken) if self._made else {}
        # And so are those that never had any: an item that was marked may look the same once it is not.
        unmarked = self._looks_without_marks() if self._has_marks and place < len(self._seen) else Counter[str]()
        for position in range(place, len(items)):
            item = items[position]
            look = look_of((item,)) if unmarked else ""
            made = marked.get(position)
            if made is None and unmarked[look] <= 0 and self._made:
                made = self._made_like(item, taken)
            if made is None:
                unmarked[look] -= 1
                fresh.append(item)
                continue
            yield from self._read_fresh(fresh, position - len(fresh))
            fresh = []
            yield _Known((copy_plain(item),), (_unmarked(item),), made.entries)
        yield from self._read_fresh(fresh, len(items) - len(fresh))

    def _looks_without_marks(self) -> Counter[str]:
        """How the caller's own items of the last list looked that had no `meta`, and how many there were of each."""
        blocks = (block for block in self._current if len(block.items) == 1 and not block.has_meta)
        return Counter(
            block.look
            for block in blocks
            if not any(block.entries is made.entries for made in self._made.get(block.look, ()))
        )

    def _marked_again(self, items: Sequence[Any], place: int, taken: set[int]) -> dict[int, _Known]:
        """What items with a `meta` are that were seen with it before, by their places."""
        found: dict[int, _Known] = {}
        for position in range(place, len(items)):
            item = items[position]
            if isinstance(item, dict) and META in item:
                known = self._made_like(_unmarked(item), taken, item[META])
                found |= {position: known} if known else {}
        return found

    def _made_like(self, item: Any, taken: set[int], meta: Any = None) -> _Known | None:
        """What an item is that we made or changed, unless the list has that already: then it only looks the same."""
        for known in self._made.get(look_of((item,)), ()):
            if meta is not None and any(entry.get(META) != meta for entry in known.entries):
                continue
            if not any(id(entry) in taken for entry in known.entries):
                taken.update(map(id, known.entries))
                return known
        return None

    def _read_fresh(self, items: list[Any], place: int) -> Iterator[_Known]:
        outgoing = [_unmarked(item) for item in items]
        position = 0
        for block in self.dialect.read(outgoing, place) if items else ():
            end = position + len(block.items)
            seen = tuple(copy_plain(item) for item in items[position:end])
            metas = [item[META] for item in seen if isinstance(item, dict) and META in item]
            entries = tuple(_with_meta(entry, metas) for entry in block.entries) if metas else block.entries
            yield _Known(seen, block.items, entries)
            position = end

    def _blocks(self, entries: Sequence[Entry]) -> Iterator[Block]:
        """Blocks that are whole as they came; everything between them is written anew."""
        starts = {id(known.entries[0]): known for known in self._current if known.entries}
        loose: list[Entry] = []
        position = 0
        while position < len(entries):
            known = starts.get(id(entries[position]))
            if known and _is_whole(known, entries, position):
                yield from self.dialect.write(loose) if loose else ()
                loose = []
                yield Block(known.items, known.entries)
                position += len(known.entries)
            else:
                loose.append(entries[position])
                position += 1
        yield from self.dialect.write(loose) if loose else ()

    def _remember_written(self, blocks: Sequence[Block]) -> None:
        own = {id(known.items): known for known in self._current}
        before = dict(enumerate(self._written))
        written: list[_Known] = []
        for position, block in enumerate(blocks):
            known = own.get(id(block.items)) or before.get(position)
            if known is None or known.seen != block.items or known.entries != block.entries:
                known = _Known(tuple(copy_plain(item) for item in block.items), block.items, block.entries)
            if id(block.items) not in own:
                self._remember_made(known)
            written.append(known)
        self._written = written

    def _remember_made(self, known: _Known) -> None:
        if len(known.items) != 1:
            return
        alike = self._made.setdefault(known.look, [])
        if not any(known.entries is other.entries for other in alike):
            alike.append(known)
            del alike[:-_MOST_ALIKE]
        if len(self._made) > _MOST_MADE:
            self._made.pop(next(iter(self._made)))


def _matching(blocks: Sequence[_Known], items: Sequence[Any]) -> tuple[list[_Known], int]:
    """The first blocks that a list begins with, with the caller's objects of now, and how many items that is."""
    known: list[_Known] = []
    place = 0
    for block in blocks:
        end = place + len(block.seen)
        if len(items) < end or any(a != b for a, b in zip(block.seen, items[place:end], strict=True)):
            break
        own = block.items if block.has_meta else tuple(items[place:end])
        known.append(_Known(block.seen, own, block.entries))
        place = end
    return known, place


def _unmarked(item: Any) -> Any:
    return without(item, META) if isinstance(item, dict) and META in item else item


def _is_whole(known: _Known, entries: Sequence[Entry], position: int) -> bool:
    there = entries[position : position + len(known.entries)]
    return len(there) == len(known.entries) and all(a is b for a, b in zip(known.entries, there, strict=True))


def _with_meta(entry: Entry, metas: Sequence[Any]) -> Entry:
    if not all(isinstance(meta, dict) for meta in metas):
        return {**entry, META: metas[0]}  # not for us to judge: whoever reads the entry says what is wrong with it
    return {**entry, META: {key: value for meta in metas for key, value in meta.items()}}


def look_of(items: Sequence[Any]) -> str:
    """A text that is the same for items that look the same."""
    return json.dumps(items, sort_keys=True, default=repr)
