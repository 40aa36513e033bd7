"""How far back code reads for a summary: all of an ordinary history, and of a very long one what may still count."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from compact import Message, StructuredSummary
from compact.core.summary.span_index import SpanIndex
from compact.core.summary.summary import Excerpt
from compact.summarizers import reach
from compact.testing import as_log, tool_run, user

# The tokens of a summary that is large enough to be chosen from all that is ever read.
ROOM = 10_000


def places_to_read(
    log: Sequence[Message], previous: StructuredSummary | None, max_tokens: int
) -> frozenset[int] | None:
    return reach.places_to_read(log, previous, max_tokens, SpanIndex.of(log, log))


def quoting(*source_ids: str) -> StructuredSummary:
    return StructuredSummary(excerpts=tuple(Excerpt("agent:", "a line", source_id) for source_id in source_ids))


@pytest.fixture
def small_reach(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reach, "MAX_CHARS", 4_000)
    monkeypatch.setattr(reach, "SHARE_WITH_SUMMARY", 0.5)
    monkeypatch.setattr(reach, "TYPED_SHARE", 0.025)


def test_an_ordinary_history_is_read_whole() -> None:
    assert places_to_read(as_log(tool_run(60, words=100)), quoting("m3"), ROOM) is None


@pytest.mark.usefixtures("small_reach")
def test_of_a_long_one_the_newest_part_is_read_and_less_behind_a_summary() -> None:
    log = as_log(tool_run(200))
    read = places_to_read(log, None, ROOM)
    assert read is not None
    assert {0, len(log) - 1} <= read, "the task, and what came last"
    assert sum(len(log[place].text) for place in read) <= 4_000 + len(log[0].text)
    behind_a_summary = places_to_read(log, quoting("m400"), ROOM)
    assert behind_a_summary is not None
    assert len(behind_a_summary) < len(read)


@pytest.mark.usefixtures("small_reach")
def test_what_the_summary_before_shows_is_read_again_with_its_call() -> None:
    read = places_to_read(as_log(tool_run(200)), quoting("m5"), ROOM)
    assert read is not None
    assert {3, 4} <= read, "the result, and the call that it answers"
    assert 6 not in read


@pytest.mark.usefixtures("small_reach")
def test_what_people_wrote_long_ago_is_read() -> None:
    history = tool_run(200)
    history[11:11] = [user("Never touch the invoices of closed years.")]
    history[21:21] = [user("a pasted file " * 40)]
    read = places_to_read(as_log(history), None, ROOM)
    assert read is not None
    assert 11 in read
    assert 21 not in read, "longer than there is room for"


def test_a_small_summary_is_chosen_from_less() -> None:
    log = as_log(tool_run(400, words=100))
    assert places_to_read(log, None, ROOM) is None
    read = places_to_read(log, None, 100)
    assert read is not None
    chars = sum(len(log[place].text) for place in read)
    assert 0.9 * 100 * reach.CHARS_PER_TOKEN < chars <= 100 * reach.CHARS_PER_TOKEN + len(log[0].text)
