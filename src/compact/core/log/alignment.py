"""The alignment of a caller's list with one it has sent or been given before: what is where it was, and what is not.

The usual changes are found by comparing place by place: an item that was changed where it stands, and a list that has
lost its oldest items. Only what is left is compared item by item with everything.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, takewhile
from typing import Any, cast

from compact.core.log.forms import fingerprint, identity_of
from compact.core.messages.message import Message

# Finding the most that two lists have in common takes time with the square of what they have not. Beyond so many items,
# which take a tenth of a second, less than the most will do. Chosen.
_MAX_DIFFERENCES = 500
# Lists that differ in more are compared piece by piece, each until it differs in so many. Chosen.
_PIECE_DIFFERENCES = 100
# Chosen: what an agent adds to its list before the next call is a small part of it.
_MIN_MATCHED = 0.6
# Chosen: so many in a row are not said again by chance.
_MIN_TRIMMED = 2
# Chosen: how many places are tried where a list that lost its oldest items may go on.
_MAX_STARTS = 8


@dataclass(frozen=True, slots=True)
class Alignment:
    """For each item of a caller's list its place in the known one, or None if it is not there.

    `changed` has places for items that are not there: each stands where the known item stood, and may be a form of it.
    `lost` are the places of the oldest items, if the list has lost these, instructions apart.
    """

    places: list[int | None]
    changed: dict[int, int] = field(default_factory=dict[int, int])
    lost: range = range(0)

    @property
    def matched(self) -> int:
        """How many items are known, as they are or changed."""
        return self.unchanged + len(self.changed)

    @property
    def unchanged(self) -> int:
        """How many items are known as they are."""
        return len(self.places) - self.places.count(None)

    @property
    def known_until(self) -> int:
        """How many items there are up to the last one that is known."""
        last = (n for n in range(len(self.places) - 1, -1, -1) if self.places[n] is not None or n in self.changed)
        return next(last, -1) + 1

    @property
    def missing(self) -> list[int]:
        """The places of known items that are not there, before the last one that is."""
        there = {place for place in (*self.places, *self.changed.values()) if place is not None}
        return [place for place in range(max(there, default=0)) if place not in there]


def _is_not_hidden(_: object) -> bool:
    return False


def align(
    known: Sequence[object], incoming: Sequence[object], is_hidden: Callable[[object], bool] = _is_not_hidden
) -> Alignment:
    """Return where the items of a list are in a known one, in order.

    `is_hidden` says whether a text of ours in the known one stands for what an item says.
    """
    in_place = _in_place(known, incoming)
    if in_place and not _stands_further_behind(known, incoming, is_hidden):
        return in_place
    trimmed = _trimmed(known, incoming)
    is_most = trimmed is not None and trimmed.matched >= _MIN_MATCHED * len(incoming)
    if trimmed is None or not (is_most or trimmed.unchanged >= _MIN_TRIMMED):
        return _anywhere(known, incoming)
    lost = known[trimmed.lost.start : trimmed.lost.stop]
    if is_most and not any(place is None and incoming[n] in lost for n, place in enumerate(trimmed.places)):
        return trimmed
    # Where messages are repeated a list may seem to go on at a later one, or something new equals what seems lost.
    return max(trimmed, _anywhere(known, incoming), key=lambda alignment: alignment.matched)


def _in_place(known: Sequence[object], incoming: Sequence[object], *, skipped: int = 0) -> Alignment | None:
    """Return the alignment of a list that has something else at some places, and more at its end."""
    if not known or len(incoming) < len(known):
        return None
    other = [place for place, item in enumerate(known) if item != incoming[place]]
    # Words that differ at two places in a row are those of a list that was shifted, or of another conversation. So are
    # calls and results whose ids are used again and again.
    if any(after - before == 1 for before, after in pairwise(_without_own_id(known, other))):
        return None
    if not all(_has_same_part(known[place], incoming[place]) for place in other):
        return None
    places: list[int | None] = [*range(skipped, skipped + len(known)), *([None] * (len(incoming) - len(known)))]
    for place in other:
        places[place] = None
    return Alignment(places, {place: skipped + place for place in other})


def _without_own_id(items: Sequence[object], places: Sequence[int]) -> list[int]:
    """Return those of some places whose items have no id that is theirs alone."""
    if len(places) < 2:
        return list(places)
    used = Counter(map(identity_of, items))
    identities = ((place, identity_of(items[place])) for place in places)
    return [place for place, identity in identities if identity is None or used[identity] > 1]


def _stands_further_behind(
    known: Sequence[object], incoming: Sequence[object], is_hidden: Callable[[object], bool]
) -> bool:
    """Return True if something was put before the last item: it was not changed, and is in its turn as before.

    Behind an answer the same words are said again, unless what was put there is hidden in the known list: then this is
    the beginning of a prompt and the end of the caller's own list.
    """
    last = len(known) - 1
    if known[last] == incoming[last] or identity_of(known[last]) is not None:
        return False
    rest = incoming[last:]
    if known[last] not in rest:
        return False
    return known[last] in takewhile(lambda item: _role(item) != "assistant", rest) or is_hidden(incoming[last])


def _has_same_part(known: object, item: object) -> bool:
    return _role(known) == _role(item) and identity_of(known) == identity_of(item)


def _trimmed(known: Sequence[object], incoming: Sequence[object]) -> Alignment | None:
    """Return the alignment of a list that has lost the oldest items, but for its instructions."""
    lead, own_lead = _instructions(known), _instructions(incoming)
    if own_lead >= len(incoming) or (own_lead and own_lead != lead):
        return None
    starts = (place for place in range(lead + 1, len(known)) if known[place] == incoming[own_lead])
    for _, start in zip(range(_MAX_STARTS), starts, strict=False):
        rest = _in_place(known[start:], incoming[own_lead:], skipped=start)
        if rest is None:
            continue
        before = [place if known[place] == incoming[place] else None for place in range(own_lead)]
        changed = {place: place for place, same in enumerate(before) if same is None}
        changed.update({own_lead + place: where for place, where in rest.changed.items()})
        lost = range(lead if own_lead else 0, start)
        return Alignment([*before, *rest.places], changed, lost)
    return None


def _anywhere(known: Sequence[object], incoming: Sequence[object]) -> Alignment:
    start = 0
    while start < min(len(known), len(incoming)) and known[start] == incoming[start]:
        start += 1
    end = 0
    while end < min(len(known), len(incoming)) - start and known[-1 - end] == incoming[-1 - end]:
        end += 1
    places: list[int | None] = [*range(start), *([None] * (len(incoming) - start - end))]
    places.extend(range(len(known) - end, len(known)))
    left = [fingerprint(entry) for entry in known[start : len(known) - end]]
    right = [fingerprint(entry) for entry in incoming[start : len(incoming) - end]]
    for place, n in common_pairs(left, right):
        places[start + n] = start + place
    changed, lost = _changed_between(known, incoming, places), _lost(known, incoming, places)
    if lost:  # instructions are where they were, although what was behind them is gone
        changed |= {n: n for n in range(_instructions(incoming)) if places[n] is None}
    return Alignment(places, changed, lost)


def _lost(known: Sequence[object], incoming: Sequence[object], places: Sequence[int | None]) -> range:
    """Return the places of the oldest known items, instructions apart, if a list begins behind them."""
    lead, own_lead = _instructions(known), _instructions(incoming)
    first = places[own_lead] if own_lead < len(places) else None
    is_known = len(places) - places.count(None) >= own_lead + _MIN_TRIMMED
    if first is None or first <= lead or own_lead not in (0, lead) or not is_known:
        return range(0)
    lost = range(lead if own_lead else 0, first)
    new = {fingerprint(incoming[n]) for n, place in enumerate(places) if place is None}
    return range(0) if any(fingerprint(known[place]) in new for place in lost) else lost


def common_pairs(known: Sequence[Hashable], incoming: Sequence[Hashable]) -> list[tuple[int, int]]:
    """Return the places in both lists of what they have in common in the same order, as much as is quick to find."""
    pairs, x, y = _common_start(known, incoming, _MAX_DIFFERENCES)
    if x == len(known) and y == len(incoming):
        return pairs
    return max(_paired_by_number(known, incoming), _paired_in_pieces(known, incoming), key=len)


def _paired_in_pieces(known: Sequence[Hashable], incoming: Sequence[Hashable]) -> list[tuple[int, int]]:
    pairs: list[tuple[int, int]] = []
    x = y = 0
    while x < len(known) and y < len(incoming):
        # What a piece may reach is no more than what it may differ in and what it has in common: a few times that.
        piece, x_end, y_end = _common_start(known[x:], incoming[y:], _PIECE_DIFFERENCES)
        pairs += [(x + place, y + n) for place, n in piece]
        x, y = x + x_end, y + y_end
    return pairs


def _common_start(
    known: Sequence[Hashable], incoming: Sequence[Hashable], most: int
) -> tuple[list[tuple[int, int]], int, int]:
    """Return the longest common subsequence (Myers, 1986) and how far it goes in both lists.

    It goes to their ends, unless they differ in more than `most` items.
    """
    # By diagonal, how far a path with so many differences comes in the known list.
    furthest, steps = {1: 0}, list[dict[int, int]]()
    for differences in range(most + 1):
        steps.append(dict(furthest))
        for diagonal in range(-differences, differences + 1, 2):
            x, _ = _entered(furthest, diagonal, differences)
            while x < len(known) and x - diagonal < len(incoming) and known[x] == incoming[x - diagonal]:
                x += 1
            furthest[diagonal] = x
            if x >= len(known) and x - diagonal >= len(incoming):
                return _traced(steps, x, x - diagonal), x, x - diagonal
    inside = ((x, x - diagonal) for diagonal, x in furthest.items() if (diagonal - most) % 2 == 0)
    x, y = max((end for end in inside if end[0] <= len(known) and end[1] <= len(incoming)), key=sum)
    return _traced(steps, x, y), x, y


def _entered(furthest: Mapping[int, int], diagonal: int, differences: int) -> tuple[int, bool]:
    """Return where a path enters a diagonal, and whether by a new item rather than by leaving out a known one."""
    above, below = furthest.get(diagonal + 1, -1), furthest.get(diagonal - 1, -1)
    is_new = diagonal == -differences or (diagonal != differences and below < above)
    return (above if is_new else below + 1), is_new


def _traced(steps: Sequence[Mapping[int, int]], x: int, y: int) -> list[tuple[int, int]]:
    """Return the pairs on the path that ended here, in order."""
    pairs: list[tuple[int, int]] = []
    for differences in range(len(steps) - 1, -1, -1):
        start, is_new = _entered(steps[differences], x - y, differences)
        while x > start:
            x, y = x - 1, y - 1
            pairs.append((x, y))
        x, y = (x, y - 1) if is_new else (x - 1, y)
    return pairs[::-1]


def _paired_by_number(known: Sequence[Hashable], incoming: Sequence[Hashable]) -> list[tuple[int, int]]:
    """Return pairs of equal items, the first with the first and so on, as many of them as are in order."""
    places: dict[Hashable, list[int]] = {}
    for place, item in enumerate(known):
        places.setdefault(item, []).append(place)
    seen, pairs = Counter[Hashable](), list[tuple[int, int]]()
    for n, item in enumerate(incoming):
        if seen[item] < len(places.get(item, ())):
            pairs.append((places[item][seen[item]], n))
        seen[item] += 1
    return _rising(pairs)


def _rising(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return as many of the pairs as can be so that the first number of each is larger than that before it."""
    ends, at, before = list[int](), list[int](), list[int]()
    for number, (place, _) in enumerate(pairs):
        length = bisect_left(ends, place)
        before.append(at[length - 1] if length else -1)
        ends[length : length + 1], at[length : length + 1] = [place], [number]
    number, chosen = at[-1] if at else -1, list[tuple[int, int]]()
    while number >= 0:
        chosen.append(pairs[number])
        number = before[number]
    return chosen[::-1]


def _changed_between(
    known: Sequence[object], incoming: Sequence[object], places: Sequence[int | None]
) -> dict[int, int]:
    """Return the known places of items that are not as they were, between those that are.

    Results and calls are known by their ids, words by being alone where other words of the same role were.
    """
    # Some agents use the same ids again and again: those say nothing, but for what stands behind the same item.
    identities = list(map(identity_of, known))
    seen = Counter(identities)
    known_by = {identity: n for n, identity in enumerate(identities) if identity and seen[identity] == 1}
    following = following_places(places, len(known))
    changed: dict[int, int] = {}
    last, last_known = -1, -1
    for n, at in enumerate(places):
        place = at
        if place is None:
            next_place, identity = last + 1, identity_of(incoming[n])
            is_next = next_place < following[n] and _has_same_part(known[next_place], incoming[n])
            is_only = last_known == n - 1 and following[n] == next_place + 1 and None not in places[n + 1 : n + 2]
            place = next_place if is_next and (identity or is_only) else known_by.get(identity or (), -1)
            if not last < place < following[n]:
                continue
            changed[n] = place
        last, last_known = place, n
    return changed


def following_places(places: Sequence[int | None], end: int) -> list[int]:
    """Return for each item the place of the next known one, itself included; `end` where nothing known follows."""
    following = [end]
    for place in reversed(places):
        following.append(following[-1] if place is None else place)
    return following[:0:-1]


def _instructions(items: Sequence[object]) -> int:
    """Return how many instructions a list begins with."""
    count = 0
    while count < len(items) and _role(items[count]) in ("system", "developer"):
        count += 1
    return count


def _role(item: object) -> object:
    if isinstance(item, Message):
        return item.role
    return cast(Mapping[str, Any], item).get("role") if isinstance(item, Mapping) else None
