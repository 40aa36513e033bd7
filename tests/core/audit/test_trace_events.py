"""Events as traces: what is known of one from its own event and its spans, and how an update changes an event."""

from __future__ import annotations

import json
from typing import Any

import pytest

from compact.core.audit.trace_events import SpanTotals, StoredEvent, TraceInfo, joined, trace_info, updated

OWN = {"type": "trace", "trace_id": "t", "name": "agent", "group_id": "g", "metadata": {"a": 1}}


def stored(event: dict[str, Any], **fields: Any) -> StoredEvent:
    return StoredEvent(text=json.dumps(event), type=event["type"], trace_id="t", **fields)


def test_a_trace_is_known_from_its_own_event_and_its_spans() -> None:
    totals = SpanTotals(spans=2, errors=1, first_start=3.0, last_end=9.0, updated_at=10.0)
    info = trace_info("t", stored(OWN, started_at=5.0, ended_at=8.0), totals, ["s2", "s1"])
    assert info == TraceInfo(
        trace_id="t",
        name="agent",
        group_id="g",
        metadata={"a": 1},
        started_at=3.0,
        ended_at=8.0,
        updated_at=10.0,
        sessions=("s1", "s2"),
        spans=2,
        errors=1,
    )
    assert info.to_dict()["sessions"] == ["s1", "s2"]


@pytest.mark.parametrize(
    ("totals", "ended_at"),
    [
        (SpanTotals(spans=1, last_end=9.0), 9.0),
        (SpanTotals(spans=2, open_spans=1, last_end=9.0), None),
        (SpanTotals(last_end=9.0), None),
    ],
)
def test_a_trace_that_never_sent_its_end_ended_with_its_last_span(totals: SpanTotals, ended_at: float | None) -> None:
    for own in (None, stored(OWN)):
        assert trace_info("t", own, totals, ()).ended_at == ended_at
    assert trace_info("t", stored(OWN, ended_at=4.0), totals, ()).ended_at == 4.0


def test_a_trace_begins_with_the_first_that_is_known_of_it() -> None:
    assert trace_info("t", None, SpanTotals(), ()) == TraceInfo(trace_id="t")
    assert trace_info("t", stored(OWN, started_at=5.0), SpanTotals(), ()).started_at == 5.0
    assert trace_info("t", None, SpanTotals(first_start=0.0), ()).started_at == 0.0
    odd = trace_info("t", stored({**OWN, "name": 7, "group_id": None, "metadata": None}), SpanTotals(), ())
    assert (odd.name, odd.group_id, odd.metadata) == ("", "", {})


def test_an_update_changes_what_it_names() -> None:
    before = {"type": "span", "trace_id": "t", "name": "a", "data": {"x": 1, "y": 2}}
    after = {"type": "span", "trace_id": "t", "ended_at": 4, "data": {"y": 3}}
    assert updated(before, after) == {**before, "ended_at": 4, "data": {"x": 1, "y": 3}}
    assert updated(before, OWN)["data"] == before["data"]
    assert updated(OWN, before)["data"] == before["data"]


def test_of_each_event_the_last_state_stands_where_it_was_changed() -> None:
    first, second = ({"type": "span", "trace_id": "t", "span_id": one, "data": {"x": one}} for one in "ab")
    change = {"type": "span", "trace_id": "t", "span_id": "a", "data": {"y": 1}}
    assert list(joined([first, second, OWN, change]).items()) == [
        (("span", "t", "b"), second),
        (("trace", "t", ""), OWN),
        (("span", "t", "a"), {**first, "data": {"x": "a", "y": 1}}),
    ]


def test_an_event_is_found_by_its_name_if_it_is_a_span() -> None:
    span = stored({"type": "span", "name": "compact"}, started_at=2.0, received_at=7.0)
    assert span.has_name("compact")
    assert not span.has_name("other")
    assert not stored({"type": "trace", "name": "compact"}).has_name("compact")
    assert span.to_dict() == {"type": "span", "name": "compact", "received_at": 7.0}


def test_an_event_happened_when_it_ended_began_or_came() -> None:
    times = ({"ended_at": 3.0, "started_at": 2.0}, {"started_at": 2.0}, {})
    assert [stored(OWN, received_at=7.0, **one).at for one in times] == [3.0, 2.0, 7.0]
    assert stored(OWN, span_id="a").key == ("trace", "t", "a")
