"""How far back code reads when it chooses the lines of a summary.

All of a history that is read again for each summary makes a session slower the longer it lasts. What a summary had no
room for, the next one has none for either: it has more to choose from. So of a very long history the newest part is
read, and of the rest what the summary before shows and what people wrote.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from compact.core.facts.tool_calls import is_typed
from compact.core.log.groups import Group, group_messages
from compact.core.log.messages import Message, text_chars
from compact.core.summary.summary import StructuredSummary

# Chosen: about 250,000 tokens, which take some seconds to read; nearly every session is shorter. Of a longer one whose
# older part is summarised already, less is read.
MAX_CHARS = 1_000_000
MAX_CHARS_WITH_SUMMARY = 400_000
# Chosen: of what people wrote before that.
MAX_TYPED_CHARS = 100_000


def places_to_read(
    history: Sequence[Message], previous: StructuredSummary | None, groups: Sequence[Group] = ()
) -> frozenset[int] | None:
    """Return the places of a history that lines are chosen from; None for all of it.

    A call and its results are read together; `groups` are those of the history, if they are known.
    """
    # As soon as it is too much, the rest is not measured.
    if all(chars <= MAX_CHARS for chars in accumulate(map(text_chars, reversed(history)))):
        return None
    quoted = {excerpt.source_id for excerpt in previous.excerpts} if previous else set[str]()
    room, typed_room = MAX_CHARS_WITH_SUMMARY if quoted else MAX_CHARS, MAX_TYPED_CHARS
    groups = groups or group_messages(history)
    quoted_places = {place for place, message in enumerate(history) if message.id in quoted}
    first_ask = next((group.indices for group in groups if is_typed(history[group.indices[0]])), ())
    found = set(first_ask)
    for group in reversed(groups):
        is_ask = not group.is_tool and is_typed(history[group.indices[0]])
        size = sum(text_chars(history[place]) for place in group.indices) if room >= 0 or is_ask else 0
        room -= size
        if room >= 0 or not quoted_places.isdisjoint(group.indices):
            found.update(group.indices)
        elif is_ask and size <= typed_room:
            typed_room -= size
            found.update(group.indices)
    return frozenset(found)
