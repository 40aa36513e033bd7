"""Where what stands in the history of a summary."""

from __future__ import annotations

from compact.core.summary.span_index import SpanIndex
from numbered import numbered


def test_the_span_is_known_by_its_places() -> None:
    messages = numbered([{"role": "user", "content": text} for text in ("one", "two", "three")])
    index = SpanIndex.of(messages, messages[1:])
    assert (list(index.span), list(index.asks), index.places[messages[2].id]) == ([1, 2], [0, 1, 2], 2)
