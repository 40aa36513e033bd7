"""How far back code reads when it chooses the lines of a summary.

All of a history that is read again for each summary makes a session slower the longer it lasts. What a summary had no
room for, the next one has none for either: it has more to choose from. So of a history that is very long for its
summary the newest part is read, and of the rest what the summary before shows and what people wrote.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate, chain

from compact.core.messages.groups import Group, group_at
from compact.core.messages.message import Message, text_chars
from compact.core.summary.span_index import SpanIndex
from compact.core.summary.summary import StructuredSummary

# Chosen: a summary is chosen from a hundred times as much as it has room for, at four characters a token, and from no
# more than about 250,000 tokens, which take some seconds to read.
CHARS_PER_TOKEN = 400
MAX_CHARS = 1_000_000
# Of a history whose older part is summarised already less is read, and of what people wrote before that less again.
SHARE_WITH_SUMMARY = 0.4
TYPED_SHARE = 0.1
# Less room than this is not filled: it would take a walk through all that people wrote.
_SHORT_ASK_CHARS = 20


def places_to_read(
    history: Sequence[Message], previous: StructuredSummary | None, max_tokens: int, index: SpanIndex
) -> frozenset[int] | None:
    """Return the places of a history that the lines of a summary of so many tokens are chosen from; None for all of it.

    A call and its results are read together.
    """
    max_chars = min(MAX_CHARS, CHARS_PER_TOKEN * max_tokens)
    # As soon as it is too much, the rest is not measured.
    if all(chars <= max_chars for chars in accumulate(map(text_chars, reversed(history)))):
        return None
    groups = index.groups
    quoted = {excerpt.source_id for excerpt in previous.excerpts} if previous else set[str]()
    first_newest = _first_of_newest(history, groups, max_chars * SHARE_WITH_SUMMARY if quoted else max_chars)
    numbers = {group_at(groups, index.places[one]) for one in quoted if one in index.places}
    read_again = [groups[number].indices for number in numbers if number < first_newest]
    first_place = groups[first_newest].indices[0] if first_newest < len(groups) else len(history)
    # What a person typed is a group by itself.
    asks = index.asks[: bisect_left(index.asks, first_place)]
    return frozenset(
        (
            *asks[:1],
            *(place for group in groups[first_newest:] for place in group.indices),
            *chain.from_iterable(read_again),
            *_newest_asks(asks, index.ask_chars[: len(asks)], max_chars * TYPED_SHARE),
        )
    )


def _first_of_newest(history: Sequence[Message], groups: Sequence[Group], max_chars: float) -> int:
    """Return which is the first of the newest groups that have so many characters."""
    for number in reversed(range(len(groups))):
        max_chars -= sum(text_chars(history[place]) for place in groups[number].indices)
        if max_chars < 0:
            return number + 1
    return 0


def _newest_asks(asks: Sequence[int], sizes: Sequence[int], max_chars: float) -> Iterator[int]:
    """Yield the places of what people wrote last, as much as there is room for."""
    for place, size in zip(reversed(asks), reversed(sizes), strict=True):
        if size <= max_chars:
            max_chars -= size
            yield place
        if max_chars < _SHORT_ASK_CHARS:
            break
