"""Where what stands in the history of a summary."""

from __future__ import annotations

from hypothesis import given

from compact.core.log.groups import group_messages
from compact.core.summary.span_index import SpanIndex, group_at
from conversations import Wire, histories
from numbered import numbered


@given(histories(max_size=30))
def test_the_group_of_a_message_is_found_wherever_its_results_stand(history: list[Wire]) -> None:
    messages = numbered(history)
    groups = group_messages(messages)
    for place in range(len(messages)):
        assert place in groups[group_at(groups, place)].indices


def test_the_span_is_known_by_its_places() -> None:
    messages = numbered([{"role": "user", "content": text} for text in ("one", "two", "three")])
    index = SpanIndex.of(messages, messages[1:])
    assert (list(index.span), list(index.asks), index.places[messages[2].id]) == ([1, 2], [0, 1, 2], 2)
