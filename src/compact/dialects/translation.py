"""The translation between a caller's list and the log of its session, which remembers what it has read and written.

A caller sends its own list every time, or what it was given last time with new items behind it. Items that are known
are not read again, and whatever nobody has changed is given back as the caller's own object.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import blake2b
from itertools import pairwise
from operator import is_
from typing import Any, cast

from compact.core.log.alignment import common_pairs
from compact.core.log.messages import Message, SettledItems, copy_plain
from compact.core.plan.turn import is_added_text
from compact.dialects.dialect import (
    META,
    Block,
    Dialect,
    Entry,
    fields_of,
    is_summary,
    mark_summary,
    without,
    without_cache_marks,
)

# Chosen: far more than a session writes; what was written longest ago is forgotten first.
_MAX_WRITTEN = 20_000
# Chosen: items of ours that look the same are stubs of equal results; a caller has no more of them in its list.
_MAX_ALIKE = 50
# Chosen: so many items may be others than they were, each where it stood, without a look at other lists.
_MAX_OTHERS = 3
# Chosen: neighbours that a dialect puts together and a caller may have in pieces; the cost grows with its square.
_MAX_JOINED = 12


@dataclass(frozen=True, eq=False)
class _KnownBlock:
    """A block, and how its items looked when they were last seen; `items` are what is sent.

    Blocks are compared by what they are: lists of the same ones in one comparison in C.
    """

    seen: tuple[Any, ...]
    items: tuple[Any, ...]
    entries: tuple[Entry, ...]

    @cached_property
    def has_meta(self) -> bool:
        """True if a caller marked an item of it."""
        return any(map(_has_meta, self.seen))

    @property
    def as_sent(self) -> _KnownBlock:
        """The same block as it is sent, and will look when it comes back."""
        return _KnownBlock(tuple(map(copy_plain, self.items)), self.items, self.entries) if self.has_meta else self

    @property
    def as_marked(self) -> _KnownBlock:
        """The same block as its caller has marked it, if it came back as it was sent."""
        if self.has_meta or not any(META in entry for entry in self.entries):
            return self
        return _KnownBlock(_with_meta_again(Block(self.items, self.entries)), self.items, self.entries)

    @cached_property
    def look(self) -> str:
        """What the items are recognised by when they come back."""
        return _look(self.items)

    @cached_property
    def digests(self) -> tuple[bytes, ...]:
        """What tells the items, as they were seen, from others."""
        return tuple(map(_digest, self.seen))

    def again(self, there: Sequence[Any], *, is_settled: bool) -> _KnownBlock:
        """Return the same block with the caller's items of now."""
        return _KnownBlock(_seen(there, is_settled=is_settled), tuple(map(_without_meta, there)), self.entries)


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
class _BlockParts:
    """All that is in some blocks, one after the other: put together once, and not again at every call."""

    blocks: list[_KnownBlock] = field(default_factory=list[_KnownBlock])
    seen: list[Any] = field(default_factory=list[Any])
    entries: list[Entry] = field(default_factory=list[Entry])

    def of(self, blocks: list[_KnownBlock]) -> _BlockParts:
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
        return _BlockParts(blocks, seen, entries)


@dataclass(slots=True)
class Translator:
    """One session's list, in one dialect."""

    dialect: Dialect
    # The blocks of the caller's last list, and those of the last prompt that it was given.
    _current: list[_KnownBlock] = field(default_factory=list[_KnownBlock])
    _written: list[_KnownBlock] = field(default_factory=list[_KnownBlock])
    # Items that we made and that are not read as what they are, by their looks: they may come back anywhere in a list.
    # Several may look the same.
    _own: dict[str, list[_KnownBlock]] = field(default_factory=dict[str, list[_KnownBlock]])
    # The caller's last list, how its items looked, so that a change made in place is seen, and its entries.
    _given: Sequence[Any] = ()
    _seen: list[Any] = field(default_factory=list[Any])
    _entries: list[Entry] = field(default_factory=list[Entry])
    _parts: _BlockParts = field(default_factory=_BlockParts)
    # True once a caller had a mark for a provider's cache on another item than before.
    _moves_marks: bool = False
    # True if nobody changes the items of the last list.
    _is_settled: bool = False
    # True once an item had a `meta`: what is given back looks different then, and is known by its place first.
    _has_seen_meta: bool = False

    def fork(self) -> Translator:
        """Return a copy that goes its own way; blocks are never changed."""
        return replace(
            self,
            _current=list(self._current),
            _written=list(self._written),
            _own={look: list(blocks) for look, blocks in self._own.items()},
            _seen=list(self._seen),
        )

    @property
    def knows_meta(self) -> bool:
        """True if items were seen with a `meta` of ours, which those that come back do not have."""
        return self._has_seen_meta or bool(self._own)

    def entries(self, items: Sequence[Any], lists: Sequence[ShownList] = ()) -> list[Entry]:
        """Return a caller's list as entries of the log; only what is new is read.

        A list that does not begin with the last one is compared with all `lists` that the session knows.
        """
        at_hand = self.entries_at_hand(items)
        return self._taken_over(items, [], 0, self._aligned(items, lists)) if at_hand is None else at_hand

    def entries_at_hand(self, items: Sequence[Any], *, unchanged: int = 0) -> list[Entry] | None:
        """Return a caller's list as entries, if these can be told from what was read and written last; else None.

        `unchanged` is how many of its first items are known to be as they were in the list before.
        """
        if self._current and unchanged == len(items) == len(self._seen):
            return self._entries
        known, place, is_whole = self._longest_known(items, unchanged)
        if is_whole:
            return self._taken_over(items, known, place, {})
        in_place = self._in_place(items)
        return self._taken_over(items, [], 0, in_place) if in_place else None

    def _taken_over(
        self, items: Sequence[Any], known: list[_KnownBlock], place: int, aligned: Mapping[int, _KnownBlock]
    ) -> list[Entry]:
        """Take over a caller's list: it begins with what is known, up to a place, and has `aligned` behind that."""
        taken = _Taken.of([*known, *aligned.values()]) if self._own else _Taken()
        self._is_settled = isinstance(items, SettledItems)
        fresh = self._with_last_known(list(self._read(items, place, taken, aligned)), place)
        self._current, self._given = [*known, *fresh], items if self._is_settled else list(items)
        self._parts = self._parts.of(self._current)
        self._seen = self._parts.seen
        for block in fresh:
            self._has_seen_meta = self._has_seen_meta or block.has_meta
        self._entries = SettledItems(self._parts.entries) if self._is_settled else list(self._parts.entries)
        return self._entries

    def items(self, entries: Sequence[Any], *, summary_place: int | None = None) -> Sequence[Any]:
        """Return a prompt as the caller's items: those of its list wherever nothing was changed, or that list itself.

        `summary_place` is the place of the session's summary in the prompt, which only the plan knows.
        """
        is_same = bool(self._current) and (entries is self._entries or _are_same(self._entries, entries))
        if is_same and not self._has_seen_meta:
            return self._given
        if is_same:
            self._written = [known.as_sent for known in self._current]
            return [item for block in self._current for item in block.items]
        blocks = self._prompt_blocks(entries, summary_place)
        self._remember_written(blocks)
        return [item for block in blocks for item in block.items]

    def _prompt_blocks(self, entries: Sequence[Any], summary_place: int | None) -> list[Block]:
        summary = _PlacedSummary.at(entries, summary_place)
        joined = self.dialect.join(list(self._blocks(entries, summary)))
        return [summary.unmarked(block) for block in joined]

    def learn(self, shown: ShownList) -> None:
        """Recognise a prompt that was shown before, perhaps by another process, should it come back."""
        if not shown.entries:
            return
        # Another process has gone on since: what was read and written here before is not the last any more.
        self._current, self._given, self._seen, self._entries, self._written = [], (), [], [], []
        self._has_seen_meta = self._has_seen_meta or any(META in entry for entry in shown.entries)
        self._remember_written(self._prompt_blocks(shown.entries, shown.summary_place))
        self._remember_pieces(shown)

    def _remember_pieces(self, shown: ShownList) -> None:
        """Recognise what is ours in a prompt also where it is joined with fewer neighbours than there are now."""
        summary = _PlacedSummary.at(shown.entries, shown.summary_place)
        marked = summary.marked(shown.entries, 0)
        apart = [list(self.dialect.write([entry])) for entry in marked]
        ours = [place for place, owner in enumerate(shown.owners) if not owner]
        starts = sorted({place for own in ours for place in range(max(0, own - _MAX_JOINED + 1), own + 1)})
        for start in starts:
            for end in range(start + 1, min(start + _MAX_JOINED, len(apart)) + 1):
                joined = self.dialect.join([block for blocks in apart[start:end] for block in blocks])
                if len(joined) != 1 or len(joined[0].items) != 1:
                    break
                block = summary.unmarked(joined[0])
                if "" in shown.owners[start:end] and self._is_known_by_looks_alone(block):
                    self._remember_own(_KnownBlock(_as_sent(block), block.items, block.entries))

    def _is_known_by_looks_alone(self, block: Block) -> bool:
        """Return True if a block is not what its items would be read as, but for calls that are known by their place.

        Such are the summary, and text in place of a result.
        """
        read = [entry for found in self.dialect.read(block.items, 0) for entry in found.entries]
        shown = [_without_meta(entry) for entry in block.entries]
        ids, own = ([e.get("tool_call_id") for e in both if e.get("role") == "tool"] for both in (read, shown))
        return ids == own and read != shown

    def _longest_known(self, items: Sequence[Any], unchanged: int) -> tuple[list[_KnownBlock], int, bool]:
        """Return the blocks that a list begins with, of what was read or of what was written last time.

        The third says that these are all that there are, but for the last one: what follows is new.
        """
        # The last block that was read may have been cut short by the end of the list.
        before = self._current[:-1]
        place = len(self._seen) - len(self._current[-1].seen) if self._current else 0
        # One comparison in C covers the same objects, equal copies, and objects changed in place.
        if 0 < place <= len(items) and (place <= unchanged or self._seen[:place] == list(items[:place])):
            return *self._with_last_sent(before, place, items), True
        found = [_matching(blocks, items) for blocks in (before, self._written)]
        known, end, has_moved = max(found, key=lambda match: match[1])
        self._moves_marks = self._moves_marks or has_moved
        read, written = (len(blocks) for blocks, _, _ in found)
        is_last = read == len(before) > 0 or 0 < written >= len(self._written) - 1
        return known, end, is_last or not (self._current or self._written)

    def _in_place(self, items: Sequence[Any]) -> dict[int, _KnownBlock]:
        """Return the blocks of the last list by their places, if only few items of it are others than they were."""
        if len(items) < len(self._seen):
            return {}
        found, place, others = dict[int, _KnownBlock](), 0, 0
        for block in self._current[:-1]:
            there = items[place : place + len(block.seen)]
            if all(map(_is_same, block.seen, there)):
                self._moves_marks = self._moves_marks or tuple(there) != block.seen
                found[place] = block
            elif len(block.seen) > 1 or (others := others + 1) > _MAX_OTHERS:
                return {}
            elif block.has_meta and all(map(_is_same, block.items, there)):
                return {}  # as it was sent: perhaps the list is an earlier prompt
            place += len(block.seen)
        return found

    def _aligned(self, items: Sequence[Any], lists: Sequence[ShownList]) -> dict[int, _KnownBlock]:
        """Return the blocks that are in a list, by their places, of the known list that most of it is in."""
        best: dict[int, _KnownBlock] = {}
        most = 0
        for blocks, places in self._places_in(items, lists):
            if len(places) > most:
                best, most = dict(self._whole_blocks(blocks, places)), len(places)
            if most == len(items):
                break
        for place, block in best.items():
            self._moves_marks = self._moves_marks or tuple(items[place : place + len(block.seen)]) != block.seen
        return best

    def _places_in(
        self, items: Sequence[Any], lists: Sequence[ShownList]
    ) -> Iterator[tuple[list[_KnownBlock], dict[int, int]]]:
        """Yield the known lists as blocks, and where the items of each are in a list.

        Last come those of a list that begins as it was sent, without marks, and goes on as its caller has it.
        """
        first_mark = next((n for n, item in enumerate(items) if _has_meta(item)), None)
        plain = [_digest(_without_meta(item)) for item in items] if first_mark is not None else []
        digests, tried = list(map(_digest, items)), dict[tuple[bytes, ...], list[_KnownBlock]]()
        for blocks in self._known_lists(lists, frozenset((*digests, *plain))):
            known = tuple(digest for block in blocks for digest in block.digests)
            if known not in tried:
                tried[known] = blocks
                yield blocks, dict(common_pairs(known, digests))
        if first_mark is None:
            return
        for blocks in tried.values():
            sent = [digest for block in blocks for digest in block.as_sent.digests]
            marked = [item for block in blocks for item in block.as_marked.seen]
            pairs = common_pairs(sent, plain)
            yield blocks, {n: at for n, at in pairs if at < first_mark or _is_same(marked[n], items[at])}

    def _whole_blocks(
        self, blocks: Sequence[_KnownBlock], places: Mapping[int, int]
    ) -> Iterator[tuple[int, _KnownBlock]]:
        """Yield blocks all items of which are in a list, next to each other, with their places there."""
        start, end = 0, None
        for block in blocks:
            first, count = places.get(start), len(block.seen)
            is_there = first is not None and all(places.get(start + n) == first + n for n in range(count))
            if first is not None and is_there and (first == end or self._is_read_alone(block)):
                yield first, block
                end = first + count
            else:
                end = None
            start += count

    def _is_read_alone(self, block: _KnownBlock) -> bool:
        """Return False for results that are known by their number behind a call: they are read with those before."""
        own = [entry.get("tool_call_id") for entry in block.entries if entry.get("role") == "tool"]
        read = (entry for found in self.dialect.read(block.items, 0) for entry in found.entries) if own else ()
        return own == [entry.get("tool_call_id") for entry in read if entry.get("role") == "tool"]

    def _known_lists(self, lists: Sequence[ShownList], looked_for: frozenset[bytes]) -> Iterator[list[_KnownBlock]]:
        # Of two that fit as well, the one with the caller's marks: an item without is not the one that had them.
        if self._has_seen_meta:
            yield [block.as_marked for block in self._current]
        yield self._current
        yield self._written
        for shown in lists:
            self._remember_pieces(shown)
            yield from self._as_blocks(shown, _as_sent if shown.owners else _with_meta_again, looked_for)
        for own in lists:
            # Before there was a plan, what was sent was the caller's own list without its marks.
            if not own.owners and any(META in entry for entry in own.entries):
                yield from self._as_blocks(own, _as_sent, looked_for)

    def _as_blocks(
        self, shown: ShownList, seen_as: Callable[[Block], tuple[Any, ...]], looked_for: frozenset[bytes]
    ) -> Iterator[list[_KnownBlock]]:
        """Yield a list as blocks: what a dialect puts together, a caller may have together or apart."""
        summary = _PlacedSummary.at(shown.entries, shown.summary_place)
        apart = list(self._blocks(shown.entries, summary))

        def known(block: Block) -> _KnownBlock:
            unmarked = summary.unmarked(block)
            return _KnownBlock(seen_as(unmarked), unmarked.items, unmarked.entries)

        joined = self.dialect.join(apart)
        yield list(map(known, joined))
        if len(joined) < len(apart):
            yield list(map(known, apart))
            yield list(self._joined_as(looked_for, apart, known))

    def _joined_as(
        self, looked_for: frozenset[bytes], apart: Sequence[Block], known: Callable[[Block], _KnownBlock]
    ) -> Iterator[_KnownBlock]:
        """Yield blocks that are looked for, and the others together with as many neighbours as such an item has."""
        start = 0
        while start < len(apart):
            found, length = known(apart[start]), 1
            is_found = looked_for.issuperset(found.digests)
            for end in range(start + 2, min(start + _MAX_JOINED, len(apart)) + 1) if not is_found else ():
                joined = self.dialect.join(list(apart[start:end]))
                if len(joined) != 1:
                    break
                if looked_for.issuperset((block := known(joined[0])).digests):
                    found, length = block, end - start
            yield found
            start += length

    def _with_last_known(self, fresh: list[_KnownBlock], place: int) -> list[_KnownBlock]:
        """Return blocks that were just read; if the first is the last one of the list before, with its entries.

        It may have had a mark for a provider's cache then, as the newest message has, and have none now.
        """
        last = self._current[-1] if self._current else None
        if last is None or not fresh or place != len(self._seen) - len(last.seen):
            return fresh
        again = fresh[0]
        is_last = len(again.seen) == len(last.seen) and all(map(_is_same, last.seen, again.seen))
        is_unchanged = again.seen == last.seen
        if not is_last or again.has_meta or (is_unchanged and again.entries != last.entries):
            return fresh
        self._moves_marks = self._moves_marks or not is_unchanged
        return [_KnownBlock(again.seen, again.items, last.entries), *fresh[1:]]

    def _with_last_sent(
        self, before: list[_KnownBlock], place: int, items: Sequence[Any]
    ) -> tuple[list[_KnownBlock], int]:
        """Return the known blocks with the last one, if it comes back as it was sent: without its `meta`."""
        last = self._written[-1] if self._has_seen_meta and self._written else None
        if last is None or last.entries is not self._current[-1].entries:
            return before, place
        end = place + len(last.seen)
        is_as_sent = any(META in entry for entry in last.entries) and tuple(items[place:end]) == last.seen
        return ([*before, last], end) if is_as_sent else (before, place)

    def _read(
        self, items: Sequence[Any], place: int, taken: _Taken, aligned: Mapping[int, _KnownBlock]
    ) -> Iterator[_KnownBlock]:
        """Read the items from a place on but for those that are known, `aligned`; `taken` is what there is of ours."""
        fresh: list[Any] = []
        position = place
        while position < len(items):
            known = aligned.get(position) or (self._own_like(items[position], taken) if self._own else None)
            if known is None:
                fresh.append(items[position])
                position += 1
                continue
            yield from self._read_fresh(fresh, position - len(fresh))
            fresh = []
            count = len(known.seen)
            yield known.again(items[position : position + count], is_settled=self._is_settled)
            position += count
        yield from self._read_fresh(fresh, len(items) - len(fresh))

    def _own_like(self, item: Any, taken: _Taken) -> _KnownBlock | None:
        """Return the block of ours that an item looks like; None if the list has all of those already."""
        for known in self._own.get(_look((item,)), ()):
            if not taken.has(known):
                taken.add(known)
                return known
        return None

    def _read_fresh(self, items: list[Any], place: int) -> Iterator[_KnownBlock]:
        outgoing = [_without_meta(item) for item in items]
        position = 0
        for block in self.dialect.read(outgoing, place) if items else ():
            end = position + len(block.items)
            seen = _seen(items[position:end], is_settled=self._is_settled)
            metas = [fields_of(item)[META] for item in seen if _has_meta(item)]
            marked = [_with_meta(entry, metas) if metas else entry for entry in block.entries]
            entries = tuple(part for entry in marked for part in _apart_from_added(entry))
            if self._is_settled and not all(map(_is_settled_item, seen)):
                entries = tuple(map(copy_plain, entries))  # what is read from an object may be a part of it
            yield _KnownBlock(seen, block.items, entries)
            position = end

    def _blocks(self, entries: Sequence[Entry], summary: _PlacedSummary) -> Iterator[Block]:
        """Yield blocks that are whole as they came; everything between them is written anew."""
        starts = {id(known.entries[0]): known for known in self._current if known.entries}
        loose: list[Entry] = []
        position = 0
        while position < len(entries):
            known = starts.get(id(entries[position]))
            if known and _is_whole(known, entries, position):
                yield from self._write(loose)
                loose = []
                yield Block(known.items, summary.marked(known.entries, position))
                position += len(known.entries)
            else:
                loose += summary.marked([entries[position]], position)
                position += 1
        yield from self._write(loose)

    def _write(self, entries: Sequence[Entry]) -> Iterator[Block]:
        """Write entries anew; a mark that an entry was read with is not where its caller has its marks now."""
        # What is written may hold parts of what it is written from, and whoever gets it may change it.
        copies = list(map(copy_plain, entries))
        own = {id(one): entry for one, entry in zip(copies, entries, strict=True)}
        for block in self.dialect.write(copies) if entries else ():
            items = tuple(map(without_cache_marks, block.items)) if self._moves_marks else block.items
            yield Block(items, tuple(own.get(id(entry), entry) for entry in block.entries))

    def _remember_written(self, blocks: Sequence[Block]) -> None:
        callers = {id(known.items): known for known in self._current}
        before = dict(enumerate(self._written))
        written: list[_KnownBlock] = []
        for position, block in enumerate(blocks):
            known = callers.get(id(block.items)) or before.get(position)
            if known is None or known.seen != block.items or known.entries != block.entries:
                known = _KnownBlock(tuple(copy_plain(item) for item in block.items), block.items, block.entries)
                if id(block.items) not in callers and self._is_known_by_looks_alone(block):
                    self._remember_own(known)
            written.append(known)
        self._written = written

    def _remember_own(self, known: _KnownBlock) -> None:
        if len(known.items) != 1:
            return
        alike = self._own.setdefault(known.look, [])
        if not any(known.entries is other.entries for other in alike):
            alike.append(known)
            del alike[:-_MAX_ALIKE]
        if len(self._own) > _MAX_WRITTEN:
            self._own.pop(next(iter(self._own)))


@dataclass(slots=True)
class _Taken:
    """What of ours a list has already: entries, and texts that stand for no entry.

    Each is ours once; another item that looks the same is the caller's.
    """

    _entry_ids: set[int] = field(default_factory=set[int])
    _placeholders: set[str] = field(default_factory=set[str])

    @classmethod
    def of(cls, blocks: Sequence[_KnownBlock]) -> _Taken:
        """Return what these blocks have."""
        taken = cls()
        for block in blocks:
            taken.add(block)
        return taken

    def add(self, block: _KnownBlock) -> None:
        """Note that the list has a block."""
        self._entry_ids.update(map(id, block.entries))
        if not block.entries:
            self._placeholders.add(block.look)

    def has(self, block: _KnownBlock) -> bool:
        """Return True if the list has a block, or a part of it."""
        if not block.entries:
            return block.look in self._placeholders
        return any(id(entry) in self._entry_ids for entry in block.entries)


@dataclass(frozen=True, slots=True)
class _PlacedSummary:
    """The summary of a prompt, as the session has it; a dialect gets the same entry with a mark."""

    place: int | None
    entry: Entry | None

    @classmethod
    def at(cls, entries: Sequence[Any], place: int | None) -> _PlacedSummary:
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


def _matching(blocks: Sequence[_KnownBlock], items: Sequence[Any]) -> tuple[list[_KnownBlock], int, bool]:
    """Return the first blocks that a list begins with, with the caller's objects of now, and how many items it is.

    The third says that marks for a provider's cache are elsewhere than they were.
    """
    known: list[_KnownBlock] = []
    place, has_moved = 0, False
    for block in blocks:
        there = tuple(items[place : place + len(block.seen)])
        if there == block.seen:
            known.append(_KnownBlock(block.seen, block.items if block.has_meta else there, block.entries))
        elif len(there) == len(block.seen) and all(map(_is_same, block.seen, there)):
            seen = tuple(map(copy_plain, there))
            known.append(_KnownBlock(seen, tuple(map(_without_meta, there)), block.entries))
            has_moved = True
        else:
            break
        place += len(there)
    return known, place, has_moved


def _is_same(known: Any, item: Any) -> bool:
    """Return True if items are the same but for marks for a provider's cache."""
    return known == item or _without_marks_or_list(known) == _without_marks_or_list(item)


def _without_marks_or_list(item: Any) -> Any:
    """Return an item without marks for a cache; a plain text that was put into a list to be marked is plain again."""
    plain = without_cache_marks(item)
    content = fields_of(plain).get("content")
    if isinstance(content, list) and len(parts := cast(list[Any], content)) == 1:
        part = fields_of(parts[0])
        if part.get("type") == "text" and len(part) == 2 and "text" in part:
            return {**plain, "content": part["text"]}
    return plain


def _with_meta_again(block: Block) -> tuple[Any, ...]:
    """Return the items of a block as its caller has them: with the marks that their entries have."""
    metas = [entry[META] for entry in block.entries if META in entry]
    items = _as_sent(block)
    if not metas or not isinstance(items[0], dict):
        return items
    return {**cast(dict[str, Any], items[0]), META: metas[0]}, *items[1:]


def _as_sent(block: Block) -> tuple[Any, ...]:
    return tuple(map(copy_plain, block.items))


def _seen(items: Sequence[Any], *, is_settled: bool) -> tuple[Any, ...]:
    """Return how items look: copies of all that somebody may change, which objects are even in a settled list."""
    return tuple(item if is_settled and _is_settled_item(item) else copy_plain(item) for item in items)


def _is_settled_item(item: object) -> bool:
    return isinstance(item, dict | Message)


def _digest(item: Any) -> bytes:
    """Return what tells an item from others, marks for a provider's cache apart."""
    return blake2b(look_of([_without_marks_or_list(item)]).encode(errors="surrogatepass"), digest_size=16).digest()


def _look(items: Sequence[Any]) -> str:
    return look_of([without_cache_marks(item) for item in items])


def _has_meta(item: object) -> bool:
    return isinstance(item, dict) and META in item


def _without_meta(item: Any) -> Any:
    return without(item, META) if _has_meta(item) else item


def _is_whole(known: _KnownBlock, entries: Sequence[Entry], position: int) -> bool:
    there = entries[position : position + len(known.entries)]
    return len(there) == len(known.entries) and all(a is b for a, b in zip(known.entries, there, strict=True))


def _with_meta(entry: Entry, metas: Sequence[Any]) -> Entry:
    if not all(isinstance(meta, dict) for meta in metas):
        return {**entry, META: metas[0]}  # not for us to judge: whoever reads the entry says what is wrong with it
    return {**entry, META: {key: value for meta in metas for key, value in meta.items()}}


def _apart_from_added(entry: Entry) -> Iterator[Entry]:
    """Yield what a user said, and what we have added behind it: a dialect puts both into one item.

    What was added is a text with a label, and perhaps an attachment behind it.
    """
    content = entry.get("content")
    parts = cast(list[Any], content) if entry.get("role") == "user" and isinstance(content, list) else []
    labels = [n for n, part in enumerate(parts) if is_added_text(str(fields_of(part).get("text", "")))]
    is_own = [n for n, part in enumerate(parts) if labels and n > labels[0] and n not in labels and _is_text(part)]
    if not labels or labels[0] == 0 or is_own:
        yield entry
        return
    yield {**entry, "content": _plain_content(parts[: labels[0]])}
    for start, end in pairwise([*labels, len(parts)]):
        yield {"role": "user", "content": _plain_content(parts[start:end])}


def _is_text(part: object) -> bool:
    return "text" in fields_of(part)


def _plain_content(parts: list[Any]) -> object:
    """Return parts of a message; one plain text as that."""
    only = fields_of(parts[0])
    return only["text"] if len(parts) == 1 and set(only) == {"type", "text"} else parts


def _are_same(some: Sequence[Any], others: Sequence[Any]) -> bool:
    return len(some) == len(others) and all(map(is_, some, others))


def look_of(items: Sequence[Any]) -> str:
    """Return a text that is the same for items that look the same."""
    return json.dumps(items, sort_keys=True, default=repr)
