"""The translation of one session's list, there and back.

A caller sends its own list every time, or what it was given last time with new items behind it. Items that are known
are not read again, and whatever nobody has changed is given back as the caller's own object.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from compact.core.errors import InvalidHistory
from compact.core.log.alignment import common_pairs
from compact.core.log.forms import unmarked
from compact.core.messages.legality import EMPTY_CONTENT
from compact.core.messages.message import SettledItems, copy_plain
from compact.dialects.dialect import META, Block, Dialect, Entry, are_same, fields_of, without_cache_marks
from compact.dialects.translation.added import (
    added_entries,
    apart_from_added,
    has_added,
    is_added_entry,
    parts_of,
    without_added_entries,
)
from compact.dialects.translation.blocks import (
    BlockParts,
    KnownBlock,
    PlacedSummary,
    ShownList,
    Taken,
    sent_items,
    with_meta_again,
)
from compact.dialects.translation.looks import (
    digest_of,
    is_same,
    is_same_but_added,
    is_settled_item,
    item_has_meta,
    look_without_marks,
    says_nothing,
    seen_items,
    without_meta,
)
from compact.dialects.translation.sought import SoughtItems

# Chosen: far more than a session writes; what was written longest ago is forgotten first.
_MAX_WRITTEN = 20_000
# Chosen: items of ours that look the same are stubs of equal results; a caller has no more of them in its list.
_MAX_ALIKE = 50
# Chosen: so many items may be others than they were, each where it stood, without a look at other lists.
_MAX_OTHERS = 3
# Chosen: neighbours that a dialect puts together and a caller may have in pieces; the cost grows with its square.
_MAX_JOINED = 12
# Chosen: how many messages may have been added to a prompt behind the caller's last one.
_MAX_ADDED = 32


@dataclass(slots=True)
class Translator:
    """One session's list, in one dialect."""

    dialect: Dialect
    # The blocks of the caller's last list, and those of the last prompt that it was given.
    _current: list[KnownBlock] = field(default_factory=list[KnownBlock])
    _written: list[KnownBlock] = field(default_factory=list[KnownBlock])
    # Items that we made and that are not read as what they are, by their looks: they may come back anywhere in a list.
    # Several may look the same.
    _own: dict[str, list[KnownBlock]] = field(default_factory=dict[str, list[KnownBlock]])
    # The caller's last list, how its items looked, so that a change made in place is seen, and its entries.
    _given: Sequence[Any] = ()
    _seen: list[Any] = field(default_factory=list[Any])
    _entries: list[Entry] = field(default_factory=list[Entry])
    _parts: BlockParts = field(default_factory=BlockParts)
    # The last list of the caller's in which there was nothing to join.
    _apart: list[KnownBlock] = field(default_factory=list[KnownBlock])
    # True if nobody changes the items of the last list.
    _is_settled: bool = False
    # True once an item had a `meta`: what is given back looks different then, and is known by its place first.
    _has_seen_meta: bool = False
    # True once an item said nothing: it may have been filled, and is given back so.
    _has_silence: bool = False

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
        while known and self._is_torn(items, place, known[-1].entries[-1:]):
            known, place = known[:-1], place - len(known[-1].seen)
        if is_whole:
            return self._taken_over(items, known, place, {})
        in_place = self._in_place(items)
        return self._taken_over(items, [], 0, in_place) if in_place else None

    def _taken_over(
        self, items: Sequence[Any], known: list[KnownBlock], place: int, aligned: Mapping[int, KnownBlock]
    ) -> list[Entry]:
        """Take over a caller's list: it begins with what is known, up to a place, and has `aligned` behind that."""
        taken = Taken.of([*known, *aligned.values()]) if self._own else Taken()
        self._is_settled = isinstance(items, SettledItems)
        fresh = self._with_last_known(list(self._read(items, place, taken, aligned)), place)
        self._current, self._given = [*known, *fresh], items if self._is_settled else list(items)
        self._parts = self._parts.of(self._current)
        self._seen = self._parts.seen
        for block in fresh:
            self._has_seen_meta = self._has_seen_meta or block.has_meta
            self._has_silence = self._has_silence or any(map(says_nothing, block.seen))
        self._entries = SettledItems(self._parts.entries) if self._is_settled else list(self._parts.entries)
        return self._entries

    def items(self, entries: Sequence[Any], *, summary_place: int | None = None, joins: bool = False) -> Sequence[Any]:
        """Return a prompt as the caller's items: those of its list wherever nothing was changed, or that list itself.

        `summary_place` is the place of the session's summary in the prompt, which only the plan knows. With `joins`
        neighbours that the dialect wants in one item are joined in the caller's own list, too: they are in a prompt
        that a plan has changed, and the same words are the same items then, whichever list the caller has sent.
        """
        is_own = bool(self._current) and (entries is self._entries or are_same(self._entries, entries))
        blocks = self._joined(summary_place) if is_own and joins else None
        if not is_own:
            blocks = self._prompt_blocks(entries, summary_place)
        if blocks is not None:
            self._remember_written(blocks)
            return [item for block in blocks for item in block.items]
        if not self._has_seen_meta and not self._has_silence:
            return self._given
        self._written = [known.as_sent for known in self._current]
        return [item for block in self._current for item in block.items]

    def _joined(self, summary_place: int | None) -> list[Block] | None:
        """Return what the dialect makes of the caller's own list; None if it leaves it as it is.

        While there is nothing to join, only what is new is looked at.
        """
        same = max(0, min(len(self._apart), len(self._current)) - 1)
        if same > 1 and self._apart[:same] == self._current[:same] and self._is_apart(same - 1):
            self._apart = self._current
            return None
        summary = PlacedSummary.at(self._entries, summary_place)
        blocks, position = list[Block](), 0
        for known in self._current:
            blocks.append(Block(known.items, summary.marked(known.entries, position)))
            position += len(known.entries)
        joined = self.dialect.join(blocks)
        if list(map(_items_id, joined)) != list(map(_items_id, blocks)):
            return [summary.unmarked(block) for block in joined]
        self._apart = self._current
        return None

    def _is_apart(self, start: int) -> bool:
        """Return True if the dialect leaves the end of the caller's list as it is."""
        blocks = [Block(known.items, known.entries) for known in self._current[start:]]
        joined = self.dialect.join(blocks)
        # What a whole list would have to begin with does not matter here.
        ours = 1 if len(joined) > len(blocks) and not joined[0].entries else 0
        return list(map(_items_id, joined[ours:])) == list(map(_items_id, blocks))

    def _prompt_blocks(self, entries: Sequence[Any], summary_place: int | None) -> list[Block]:
        summary = PlacedSummary.at(entries, summary_place)
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
        summary = PlacedSummary.at(shown.entries, shown.summary_place)
        marked = summary.marked(shown.entries, 0)
        apart = [list(self.dialect.write([entry])) for entry in marked]
        ours = [place for place, owner in enumerate(shown.owners) if not owner]
        starts = sorted({place for own in ours for place in range(max(0, own - _MAX_JOINED + 1), own + 1)})
        for start in starts:
            for end in range(start + 1, min(start + _MAX_JOINED, len(apart)) + 1):
                joined = self._as_one([block for blocks in apart[start:end] for block in blocks])
                if joined is None or len(joined.items) != 1:
                    break
                block = summary.unmarked(joined)
                if "" in shown.owners[start:end] and self._is_known_by_looks_alone(block):
                    self._remember_own(KnownBlock(sent_items(block), block.items, block.entries))

    def _is_known_by_looks_alone(self, block: Block) -> bool:
        """Return True if a block is not what its items would be read as, but for calls that are known by their place.

        Such are the summary, and text in place of a result.
        """
        try:
            read = [entry for found in self.dialect.read(block.items, 0) for entry in found.entries]
        except InvalidHistory:  # the session was in another dialect, and this one has no words for what was said there
            return True
        shown = [without_meta(entry) for entry in block.entries]
        ids, own = ([e.get("tool_call_id") for e in both if e.get("role") == "tool"] for both in (read, shown))
        # A mark for a cache is not written again.
        return ids == own and list(map(unmarked, read)) != list(map(unmarked, shown))

    def _longest_known(self, items: Sequence[Any], unchanged: int) -> tuple[list[KnownBlock], int, bool]:
        """Return the blocks that a list begins with, of what was read or of what was written last time.

        The third says that these are all that there are, but for the last one: what follows is new.
        """
        # The last block that was read may have been cut short by the end of the list.
        before = self._current[:-1]
        place = len(self._seen) - len(self._current[-1].seen) if self._current else 0
        # One comparison in C covers the same objects, equal copies, and objects changed in place.
        if 0 < place <= len(items) and (place <= unchanged or self._seen[:place] == list(items[:place])):
            return *self._with_last_sent(before, place, items), True
        found = [self._matching(blocks, items) for blocks in (before, self._written)]
        known, end = max(found, key=lambda match: match[1])
        read, written = (len(blocks) for blocks, _ in found)
        # What was put together with others may be apart now: that is looked for in all lists.
        left = self._written[written:]
        is_sent = written > 0 and (not left or (len(left) == 1 and len(left[0].entries) < 2))
        is_last = read == len(before) > 0 or is_sent
        return known, end, is_last or not (self._current or self._written)

    def _matching(self, blocks: Sequence[KnownBlock], items: Sequence[Any]) -> tuple[list[KnownBlock], int]:
        """Return the first blocks that a list begins with, with the caller's objects of now, and how many items."""
        known: list[KnownBlock] = []
        place = 0
        for block in blocks:
            there = tuple(items[place : place + len(block.seen)])
            if there == block.seen:
                items_now = block.items if block.has_meta else _items_now(block, there)
                known.append(KnownBlock(block.seen, items_now, block.entries))
            elif len(there) == len(block.seen) and all(map(is_same_but_added, block.seen, there)):
                known.append(self._again(block, there, is_settled=False))
            else:
                break
            place += len(there)
        return known, place

    def _again(self, known: KnownBlock, there: Sequence[Any], *, is_settled: bool) -> KnownBlock:
        """Return a block with the caller's items of now."""
        seen = seen_items(there, is_settled=is_settled)
        return KnownBlock(seen, _items_now(known, there), self._entries_of(known, there))

    def _entries_of(self, known: KnownBlock, there: Sequence[Any]) -> tuple[Entry, ...]:
        """Return the entries of a block that is in a list, with what we have added to its last item there."""
        has_nothing_added = not has_added(there[-1]) and not has_added(known.seen[-1])
        if has_nothing_added or all(map(is_same, known.seen, there)):
            return known.entries
        return *without_added_entries(known.entries), *self._added_in(there[-1])

    def _added_in(self, item: Any) -> Iterator[Entry]:
        """Yield what we have added to an item."""
        for block in self.dialect.read([without_meta(item)], 0):
            pieces = (piece for entry in block.entries for piece in apart_from_added(entry))
            for added in filter(is_added_entry, pieces):
                yield from added_entries(parts_of(added))

    def _in_place(self, items: Sequence[Any]) -> dict[int, KnownBlock]:
        """Return the blocks of the last list by their places, if only few items of it are others than they were."""
        if len(items) < len(self._seen):
            return {}
        found, place, others = dict[int, KnownBlock](), 0, 0
        for block in self._current:
            there = items[place : place + len(block.seen)]
            is_there = all(map(is_same_but_added, block.seen, there))
            if not is_there and (block.look in self._own or block.is_marked):
                return {}  # it was ours, or may be elsewhere without its mark: perhaps the list is an earlier prompt
            if block is self._current[-1] and not block.is_marked:
                break  # the end of the list may have cut it short
            if is_there:
                found[place] = block
            elif len(block.seen) > 1 or (others := others + 1) > _MAX_OTHERS:
                return {}
            place += len(block.seen)
        return self._untorn(items, found, self._current)

    def _aligned(self, items: Sequence[Any], lists: Sequence[ShownList]) -> dict[int, KnownBlock]:
        """Return the blocks that are in a list, by their places, of the known list that most of it is in.

        First counts how much of ours is in both, which is in no other list: what users and tools say may be repeated.
        Of two that have as much of it, the one that it begins with for longer: what is new may equal something old.
        """
        best: dict[int, KnownBlock] = {}
        most = (0, 0, 0)
        looks = {digest for alike in self._own.values() for block in alike for digest in block.digests}
        for blocks, places in self._places_in(items, lists):
            whole = self._untorn(items, dict(self._whole_blocks(blocks, places)), blocks)
            ours = sum(not looks.isdisjoint(block.digests) for block in whole.values()) if looks else 0
            start = next((n for n in range(len(places)) if places.get(n) != n), len(places))
            if (ours, len(places), start) > most:
                best, most = whole, (ours, len(places), start)
            if len(places) == len(items):
                break
        return best

    def _places_in(
        self, items: Sequence[Any], lists: Sequence[ShownList]
    ) -> Iterator[tuple[list[KnownBlock], dict[int, int]]]:
        """Yield the known lists as blocks, and where the items of each are in a list.

        Last come those of a list that begins as it was sent, without marks, and goes on as its caller has it.
        """
        first_mark = next((n for n, item in enumerate(items) if item_has_meta(item)), None)
        plain = [digest_of(without_meta(item)) for item in items] if first_mark is not None else []
        digests, tried = list(map(digest_of, items)), dict[tuple[bytes, ...], list[KnownBlock]]()
        sought = SoughtItems(list(zip(digests, plain or digests, strict=True)))
        for blocks in self._known_lists(lists, sought):
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
            yield blocks, {n: at for n, at in pairs if at < first_mark or is_same_but_added(marked[n], items[at])}

    def _whole_blocks(
        self, blocks: Sequence[KnownBlock], places: Mapping[int, int]
    ) -> Iterator[tuple[int, KnownBlock]]:
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

    def _untorn(
        self, items: Sequence[Any], found: Mapping[int, KnownBlock], blocks: Sequence[KnownBlock]
    ) -> dict[int, KnownBlock]:
        """Return blocks of a known list without results that now stand beside others than they did.

        Where calls have no ids a dialect numbers the results behind them: those are read again, together.
        """
        numbers = {id(block): number for number, block in enumerate(blocks)}
        # What is next to each other in both lists.
        stretches: list[deque[tuple[int, KnownBlock]]] = []
        for at in sorted(found):
            before, last = stretches[-1][-1] if stretches else (0, None)
            is_next = last and before + len(last.seen) == at and numbers[id(found[at])] == numbers[id(last)] + 1
            if not is_next:
                stretches.append(deque())
            stretches[-1].append((at, found[at]))
        whole = dict[int, KnownBlock]()
        for stretch in stretches:
            while stretch and self._is_torn(items, stretch[0][0], stretch[0][1].entries[:1]):
                stretch.popleft()
            while stretch:
                at, block = stretch[-1]
                if not self._is_torn(items, at + len(block.seen), block.entries[-1:]):
                    break
                stretch.pop()
            whole.update(stretch)
        return whole

    def _is_torn(self, items: Sequence[Any], at: int, outermost: Sequence[Entry]) -> bool:
        """Return True if a known block that begins or ends at a place of a list does so between results read as one."""
        if not 0 < at < len(items) or not any(entry.get("role") == "tool" for entry in outermost):
            return False
        return len(list(self.dialect.read([without_meta(item) for item in items[at - 1 : at + 1]], at - 1))) == 1

    def _is_read_alone(self, block: KnownBlock) -> bool:
        """Return False for results that are known by their number behind a call: they are read with those before."""
        own = [entry.get("tool_call_id") for entry in block.entries if entry.get("role") == "tool"]
        read = (entry for found in self.dialect.read(block.items, 0) for entry in found.entries) if own else ()
        return own == [entry.get("tool_call_id") for entry in read if entry.get("role") == "tool"]

    def _known_lists(self, lists: Sequence[ShownList], sought: SoughtItems) -> Iterator[list[KnownBlock]]:
        # Of two that fit as well, the one with the caller's marks: an item without is not the one that had them.
        if self._has_seen_meta:
            yield [block.as_marked for block in self._current]
        yield self._current
        yield self._written
        for shown in lists:
            self._remember_pieces(shown)
            yield from self._as_blocks(shown, sent_items if shown.owners else with_meta_again, sought)
        for own in lists:
            # Before there was a plan, what was sent was the caller's own list without its marks.
            if not own.owners and any(META in entry for entry in own.entries):
                yield from self._as_blocks(own, sent_items, sought)

    def _as_blocks(
        self, shown: ShownList, seen_as: Callable[[Block], tuple[Any, ...]], sought: SoughtItems
    ) -> Iterator[list[KnownBlock]]:
        """Yield a list as blocks: what a dialect puts together, a caller may have together or apart."""
        summary = PlacedSummary.at(shown.entries, shown.summary_place)
        apart = list(self._blocks(shown.entries, summary))

        def known(block: Block) -> KnownBlock:
            unmarked = summary.unmarked(block)
            return KnownBlock(seen_as(unmarked), unmarked.items, unmarked.entries)

        joined = self.dialect.join(apart)
        yield list(map(known, joined))
        if list(map(_items_id, joined)) != list(map(_items_id, apart)):
            yield list(map(known, apart))
            yield list(self._joined_as(sought, apart, known))

    def _joined_as(
        self, sought: SoughtItems, apart: Sequence[Block], known: Callable[[Block], KnownBlock]
    ) -> Iterator[KnownBlock]:
        """Yield blocks together with as many neighbours as in the list that is looked for."""
        sought.begin()
        start = 0
        while start < len(apart):
            found, length = self._joined_from(start, sought, apart, known)
            sought.follow(found.digests)
            yield found
            start += length

    def _joined_from(
        self, start: int, sought: SoughtItems, apart: Sequence[Block], known: Callable[[Block], KnownBlock]
    ) -> tuple[KnownBlock, int]:
        """Return the block that begins at a place, and how many it is made of: what the list goes on with, if it does.

        Otherwise it is what the list has anywhere, alone rather than with neighbours.
        """
        alone = known(apart[start])
        if sought.has_next(alone.digests):
            return alone, 1
        found, length = alone, 1
        for end in range(start + 2, min(start + _MAX_JOINED, len(apart)) + 1):
            joined = self._as_one(apart[start:end])
            if joined is None:
                break
            block = known(joined)
            if sought.has_next(block.digests):
                return block, end - start
            if not sought.has(alone.digests) and sought.has(block.digests):
                found, length = block, end - start
        return found, length

    def _as_one(self, blocks: Sequence[Block]) -> Block | None:
        """Return what a dialect makes of some blocks, if that is one; what it puts before them to begin with apart."""
        joined = [block for block in self.dialect.join(list(blocks)) if block.entries]
        return joined[0] if len(joined) == 1 else None

    def _with_last_known(self, fresh: list[KnownBlock], place: int) -> list[KnownBlock]:
        """Return blocks that were just read; if the first is the last one of the list before, with its entries.

        It may have had a mark for a provider's cache then, as the newest message has, and have none now.
        """
        last = self._current[-1] if self._current else None
        if last is None or not fresh or place != len(self._seen) - len(last.seen):
            return fresh
        again = fresh[0]
        is_last = len(again.seen) == len(last.seen) and all(map(is_same_but_added, last.seen, again.seen))
        if not is_last or again.has_meta or (again.seen == last.seen and again.entries != last.entries):
            return fresh
        return [KnownBlock(again.seen, _items_now(last, again.items), self._entries_of(last, again.seen)), *fresh[1:]]

    def _with_last_sent(
        self, before: list[KnownBlock], place: int, items: Sequence[Any]
    ) -> tuple[list[KnownBlock], int]:
        """Return the known blocks with the last one, if it comes back as it was sent: cut, or without its `meta`."""
        if not self._current or not self._written:
            return before, place
        own, last = self._current[-1], self._written[-1]
        said = without_added_entries(own.entries)
        if own.is_marked:
            # What was added for one call stands behind it, in an item of its own or in the same one.
            newest = reversed(self._written[-_MAX_ADDED:])
            last = next((block for block in newest if without_added_entries(block.entries) == said), last)
        there = tuple(items[place : place + len(last.seen)])
        if len(there) != len(last.seen) or not all(map(is_same_but_added, last.seen, there)):
            return before, place
        is_unmarked = own.is_marked and without_added_entries(last.entries) == said
        is_cut = last.entries is not own.entries and self._written[:-1] == before
        if not (is_unmarked or is_cut):
            return before, place
        return [*before, self._again(last, there, is_settled=False)], place + len(there)

    def _read(
        self, items: Sequence[Any], place: int, taken: Taken, aligned: Mapping[int, KnownBlock]
    ) -> Iterator[KnownBlock]:
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
            yield self._again(known, items[position : position + count], is_settled=self._is_settled)
            position += count
        yield from self._read_fresh(fresh, len(items) - len(fresh))

    def _own_like(self, item: Any, taken: Taken) -> KnownBlock | None:
        """Return the block of ours that an item looks like; None if the list has all of those already."""
        for known in self._own.get(look_without_marks((item,)), ()):
            if not taken.has(known):
                taken.add(known)
                return known
        return None

    def _read_fresh(self, items: list[Any], place: int) -> Iterator[KnownBlock]:
        outgoing = [without_meta(item) for item in items]
        position = 0
        for block in self.dialect.read(outgoing, place) if items else ():
            end = position + len(block.items)
            seen = seen_items(items[position:end], is_settled=self._is_settled)
            metas = [fields_of(item)[META] for item in seen if item_has_meta(item)]
            marked = [_with_meta(entry, metas) if metas else entry for entry in block.entries]
            entries = tuple(part for entry in marked for part in apart_from_added(entry))
            if self._is_settled and not all(map(is_settled_item, seen)):
                entries = tuple(map(copy_plain, entries))  # what is read from an object may be a part of it
            yield KnownBlock(seen, block.items, entries)
            position = end

    def _blocks(self, entries: Sequence[Entry], summary: PlacedSummary) -> Iterator[Block]:
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
        """Write entries anew, without marks for a provider's cache: those are where they were when it was read."""
        # What is written may hold parts of what it is written from, and whoever gets it may change it.
        copies = list(map(copy_plain, entries))
        own = {id(one): entry for one, entry in zip(copies, entries, strict=True)}
        for block in self.dialect.write(copies) if entries else ():
            items = tuple(map(without_cache_marks, block.items))
            yield Block(items, tuple(own.get(id(entry), entry) for entry in block.entries))

    def _remember_written(self, blocks: Sequence[Block]) -> None:
        callers = {id(known.items): known for known in self._current}
        before = dict(enumerate(self._written))
        written: list[KnownBlock] = []
        for position, block in enumerate(blocks):
            known = callers.get(id(block.items)) or before.get(position)
            if known is None or known.seen != block.items or known.entries != block.entries:
                known = KnownBlock(tuple(copy_plain(item) for item in block.items), block.items, block.entries)
                if id(block.items) not in callers and self._is_known_by_looks_alone(block):
                    self._remember_own(known)
            written.append(known)
        self._written = written

    def _remember_own(self, known: KnownBlock) -> None:
        if len(known.items) != 1:
            return
        alike = self._own.setdefault(known.look, [])
        if not any(known.entries is other.entries for other in alike):
            alike.append(known)
            del alike[:-_MAX_ALIKE]
        if len(self._own) > _MAX_WRITTEN:
            self._own.pop(next(iter(self._own)))


def _items_now(known: KnownBlock, there: Sequence[Any]) -> tuple[Any, ...]:
    """Return the items of a block as they are sent now: the caller's, but what its session has filled stays filled."""
    said = [fields_of(entry).get("content") for entry in known.entries]
    if len(known.items) != len(there) or not (EMPTY_CONTENT in said or "" in said):
        return tuple(map(without_meta, there))

    def stays(item: Any) -> bool:
        # An empty text is an answer in Chat Completions, and nothing at all is not.
        is_none = "content" in fields_of(item) and fields_of(item)["content"] is None
        return says_nothing(item) and (EMPTY_CONTENT in said or is_none)

    return tuple(old if stays(item) else without_meta(item) for old, item in zip(known.items, there, strict=True))


def _is_whole(known: KnownBlock, entries: Sequence[Entry], position: int) -> bool:
    there = entries[position : position + len(known.entries)]
    return len(there) == len(known.entries) and all(a is b for a, b in zip(known.entries, there, strict=True))


def _with_meta(entry: Entry, metas: Sequence[Any]) -> Entry:
    if not all(isinstance(meta, dict) for meta in metas):
        return {**entry, META: metas[0]}  # not for us to judge: whoever reads the entry says what is wrong with it
    return {**entry, META: {key: value for meta in metas for key, value in meta.items()}}


def _items_id(block: Block) -> int:
    return id(block.items)
