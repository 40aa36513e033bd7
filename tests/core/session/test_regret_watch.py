"""Regrets call by call: which ones a list brought, across plans and edits, with each entry of the log read once."""

from __future__ import annotations

from typing import Any

import pytest

from compact.core.audit.regret_finder import RegretFinder
from compact.core.messages.message import Message
from compact.core.plan.plan import ClearRecord, CompactionPlan, SpanReference
from compact.core.session.session import Session
from compact.testing import WordTokenizer, tool_exchange, user

COUNT = WordTokenizer().count_message


def read(call_id: str, path: str) -> list[dict[str, Any]]:
    text = "\n".join(f"{number}: value_{number} of {path}" for number in range(30))
    return tool_exchange(call_id, text, tool="read_file", path=path)


FIRST = [user("look"), *read("c1", "a.py"), *read("c2", "b.py")]  # m1, and the results m3 and m5
A_AGAIN, B_AGAIN = read("c3", "a.py"), read("c4", "b.py")


def clearing(version: int, *message_ids: str) -> CompactionPlan:
    records = (ClearRecord(span=SpanReference((i,)), strategy="clear", reason="old") for i in message_ids)
    return CompactionPlan("s", version, tuple(records))


def send(session: Session, items: list[dict[str, Any]]) -> list[str]:
    """Send a list; return what was removed and is asked for again in what is new of it."""
    match = session.ingest(items, COUNT)
    assert match is not None
    session.find_regrets(match)
    return [regret.message_id for regret in session.new_regrets]


def compacted(*message_ids: str, version: int = 1) -> Session:
    session = Session("s")
    assert send(session, FIRST) == []
    session.adopt(clearing(version, *message_ids))
    return session


def test_each_list_tells_of_the_regrets_that_it_brought_oldest_first() -> None:
    session = compacted("m3", "m5")
    assert send(session, [*FIRST, *A_AGAIN]) == ["m3"]
    assert send(session, [*FIRST, *A_AGAIN, *B_AGAIN]) == ["m5"]
    assert send(session, [*FIRST, *A_AGAIN, *B_AGAIN]) == []
    assert [regret.message_id for regret in session.regrets] == ["m3", "m5"]
    assert send(compacted("m3", "m5"), [*FIRST, *B_AGAIN, *A_AGAIN]) == ["m5", "m3"]


def test_a_regret_costs_what_the_result_takes_that_brought_it_back() -> None:
    session = compacted("m3")
    assert send(session, [*FIRST, user("go on")]) == []
    send(session, [*FIRST, user("go on"), *A_AGAIN])
    (regret,) = session.regrets
    assert regret.tokens == COUNT(session.log.view[-1]) > 0


def test_what_came_before_the_next_compaction_is_counted_under_the_plan_of_then() -> None:
    session = compacted("m3", "m5")
    send(session, [*FIRST, *A_AGAIN])
    session.adopt(clearing(2, "m3", "m5"))
    assert [regret.plan_version for regret in session.regrets] == [1]
    assert send(session, [*FIRST, *A_AGAIN, *B_AGAIN]) == ["m5"]
    assert [regret.plan_version for regret in session.regrets] == [1, 2]


@pytest.mark.parametrize("is_asked_between", [False, True])
def test_an_entry_is_read_once_however_many_compactions_there_are(
    monkeypatch: pytest.MonkeyPatch, is_asked_between: bool
) -> None:
    """At the thousandth call, too, only what is new is looked at."""
    seen: list[str] = []
    add = RegretFinder.add

    def counting(finder: RegretFinder, message: Message, **more: Any) -> None:
        seen.append(message.id)
        add(finder, message, **more)

    monkeypatch.setattr(RegretFinder, "add", counting)
    session, items = compacted("m3"), FIRST
    for number in range(2, 7):
        items = [*items, *read(f"d{number}", f"{number}.py")]
        send(session, items)
        if number % 2:
            session.adopt(clearing(number, "m3"))
            if is_asked_between:
                assert session.regrets == ()
    assert seen == session.log.view_ids


def test_after_an_edit_of_the_past_only_the_line_of_now_counts() -> None:
    session = compacted("m3", "m5")
    send(session, [*FIRST, *A_AGAIN])
    assert send(session, [*FIRST, user("something else")]) == []
    assert session.regrets == (), "the agent has not asked for it on this line"
    assert send(session, [*FIRST, user("something else"), *A_AGAIN]) == ["m3"]


def test_a_return_to_what_was_left_tells_of_its_regret_again() -> None:
    session = compacted("m3")
    send(session, [*FIRST, *A_AGAIN])
    send(session, FIRST)
    assert session.regrets == ()
    assert send(session, [*FIRST, *A_AGAIN]) == ["m3"]


def test_a_result_that_the_caller_has_cleared_since_is_not_there_to_be_read() -> None:
    """Only under the next plan: until then the finder goes on from what it has read."""
    twice = [*FIRST, *A_AGAIN]
    session = Session("s")
    send(session, twice)
    session.adopt(clearing(1, "m3"))
    assert session.regrets == ()
    session.adopt(clearing(2, "m3"))
    cleared = [*FIRST, A_AGAIN[0], {**A_AGAIN[1], "content": "[Old tool result content cleared]"}]
    assert send(session, [*cleared, *read("c9", "a.py")]) == ["m3"]


def test_nothing_is_missed_under_a_plan_that_removes_nothing() -> None:
    """As another process sees it, which reads no history for such a plan."""
    session = compacted("m3")
    send(session, [*FIRST, *A_AGAIN])
    assert list(session.missed_ids()) == ["m7"]
    session.adopt(clearing(2))
    assert len(session.regrets) == 1, "what was counted stays"
    assert list(session.missed_ids()) == []
    assert send(session, [*FIRST, *A_AGAIN, *B_AGAIN]) == []
    session.adopt(clearing(3, "m5"))
    assert list(session.missed_ids()) == ["m7"]
