"""The plans and lines before: which are kept, what all of them show, and whose prompts are tried for a list."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from compact.core.log.known_list import KnownList, LeftLine
from compact.core.log.log import Log
from compact.core.messages.entries import read_entry
from compact.core.messages.message import Message
from compact.core.plan.plan import CompactionPlan, DropRecord, SpanReference
from compact.core.session.past_plans import PastPlans, PlannedLine
from compact.core.session.prompt import CurrentPrompt
from compact.testing import Wire, assistant, dialogue, tool_exchange, user


def plan(version: int, *hidden: str) -> CompactionPlan:
    """A plan that leaves out these messages."""
    records = (DropRecord(span=SpanReference(hidden), strategy="window", reason="old"),) if hidden else ()
    return CompactionPlan("s", version=version, records=records)


def log_of(items: Sequence[Wire]) -> Log:
    log = Log()
    log.match(items, output=KnownList(), read=read_entry)
    return log


def tried(past: PastPlans, now: CompactionPlan, log: Log) -> list[tuple[int, LeftLine | None]]:
    """The versions of the plans whose prompts are made, in this order, and the line that each is of if it was left."""
    made: list[int] = []

    def prompt_of(of: CompactionPlan, view: Sequence[Message]) -> CurrentPrompt:
        made.append(of.version)
        return CurrentPrompt()

    prompts = past.prompts(now, log, prompt_of)
    assert prompts is not None
    return [(made[-1], prompt.items.left) for prompt in prompts]


def left_lines(lines: Iterable[PlannedLine]) -> tuple[PlannedLine, ...]:
    """What is kept of lines that were left one after the other."""
    past = PastPlans().with_lines(list(lines), ["here"])
    assert past.lines is not None
    return past.lines


DIALOGUE = log_of(dialogue(3))
WHOLE = tuple(DIALOGUE.view_ids)


def test_an_entry_was_always_shown_if_no_plan_has_touched_it() -> None:
    past = PastPlans((plan(1, "m1"), plan(2)))
    assert not past.always_show("m1", plan(3))
    assert not past.always_show("m2", plan(3, "m2"))
    assert past.always_show("m3", plan(3, "m2"))


@pytest.mark.parametrize(("version", "has_branches", "knows"), [(1, False, True), (1, True, True), (2, False, False)])
def test_of_a_session_that_was_read_it_is_known_if_there_was_no_plan_before(
    version: int, has_branches: bool, knows: bool
) -> None:
    """Lines that were left have nothing to say on that."""
    past = PastPlans.in_store(plan(version), has_branches=has_branches)
    assert past.always_show("m1", plan(version)) is knows


@pytest.mark.parametrize(("version", "has_branches"), [(2, False), (1, True)])
def test_prompts_of_a_session_that_was_read_wait_for_what_the_store_has(version: int, has_branches: bool) -> None:
    past = PastPlans.in_store(plan(version), has_branches=has_branches)
    for one, is_known in (
        (past, False),
        (past.with_plans(()), False),
        (past.with_plans(()).with_lines(None, ()), True),
    ):
        assert one.are_known is is_known
        assert (one.prompts(plan(version), DIALOGUE, lambda of, view: CurrentPrompt()) is not None) is is_known


def test_a_session_that_has_read_its_lines_may_still_have_plans_to_read() -> None:
    assert not PastPlans.in_store(plan(2), has_branches=False).with_lines((), ()).are_known


def test_plans_that_come_before_the_older_ones_are_read_leave_these_to_be_read() -> None:
    past = PastPlans.in_store(plan(4), has_branches=False).with_plan(plan(4), plan(5))
    assert past.plans is None
    assert past.with_line_left(DIALOGUE.view, 4, 6).lines is None


def test_a_session_of_one_plan_has_shown_all_before_it() -> None:
    """A line that it leaves has been in prompts without any plan."""
    past = PastPlans.in_store(plan(1, "m2"), has_branches=False).with_line_left(DIALOGUE.view, 1, 2)
    assert past.lines == (PlannedLine(WHOLE, (1, 0)),)


def test_32_earlier_plans_are_kept_each_once_and_eight_versions_of_the_line() -> None:
    past, now = PastPlans(), plan(0)
    for version in range(1, 35):
        past = past.with_plan(now, plan(version)).with_plan(plan(version), plan(version, "m1"))
        now = plan(version, "m1")
    assert [one.version for one in past.plans or ()] == list(range(2, 34))
    assert past.versions_here == tuple(range(34, 26, -1))
    assert past.plan_on(LeftLine(WHOLE, 34), now) == now
    assert past.plan_on(LeftLine(WHOLE, 2), now) == plan(2, "m1")
    assert past.plan_on(LeftLine(WHOLE, 1), now) is None
    assert past.plan_on(LeftLine(WHOLE, 0), now) == plan(0)


def test_of_the_lines_that_were_left_the_newest_eight_are_kept() -> None:
    lines = [PlannedLine((f"m{number}",), (number,)) for number in range(11)]
    assert left_lines(lines) == tuple(lines[3:])


def test_a_line_that_another_one_goes_on_from_is_known_by_that_if_it_had_the_same_plans() -> None:
    long, short = PlannedLine(("m1", "m2"), (2, 1)), PlannedLine(("m1",), (1,))
    others = [PlannedLine(("m2",), (1,)), PlannedLine(("m1",), (3, 1))]
    assert left_lines([short, long]) == left_lines([long, short]) == (long,)
    assert left_lines([*others, long]) == (*others, long)
    assert left_lines([long, *others]) == (long, *others)
    assert left_lines([long, long]) == (long,)


@pytest.mark.parametrize(
    ("items", "is_tried"),
    [
        (dialogue(3), False),
        ([user("look"), *tool_exchange("c1", "one"), *tool_exchange("c2", "two")], True),
        ([user("a"), assistant("b"), assistant("c"), user("d")], True),
        ([user("a"), {**assistant("b"), "meta": {"protected": True}}, user("c")], True),
    ],
    ids=["as the caller has it", "calls in a row", "neighbours of one role", "with marks of ours"],
)
def test_a_line_that_was_left_is_tried_as_it_was_sent_if_that_differs_from_the_log(
    items: list[Wire], is_tried: bool
) -> None:
    """Some dialects have neighbours in one item, and no mark of ours is sent: else the entries themselves tell."""
    log = log_of(items)
    line = PlannedLine(tuple(log.view_ids), (0,))
    found = tried(PastPlans(lines=(line,)), plan(1), log)
    assert found == ([(0, LeftLine(line.ids, 0))] if is_tried else [])


def test_results_of_one_call_are_no_neighbours() -> None:
    call = {**tool_exchange("c1", "one")[0]}
    call["tool_calls"] = [*call["tool_calls"], *tool_exchange("c2", "two")[0]["tool_calls"]]
    results: list[Any] = [tool_exchange(f"c{number}", "one")[1] for number in (1, 2)]
    log = log_of([user("look"), call, *results])
    assert tried(PastPlans(lines=(PlannedLine(tuple(log.view_ids), (0,)),)), plan(1), log) == []


def test_lines_that_were_left_are_tried_after_the_line_of_now_the_newest_first() -> None:
    lines = (PlannedLine(WHOLE[:2], (3, 1)), PlannedLine(WHOLE[:4], (4, 77)))
    past = PastPlans((plan(1, "m1"), plan(2), plan(3, "m2"), plan(4, "m4")), lines)
    assert tried(past, plan(5, "m1"), DIALOGUE) == [
        *((version, None) for version in (4, 3, 1)),
        (4, LeftLine(WHOLE[:4], 4)),
        *((version, LeftLine(WHOLE[:2], version)) for version in (3, 1)),
    ]


def test_no_more_than_eight_prompts_of_lines_that_were_left_are_made() -> None:
    lines = tuple(PlannedLine((f"m{number}",), (2, 1)) for number in range(1, 7))
    past = PastPlans((plan(1, "m1"),), lines)
    found = [left for _, left in tried(past, plan(2, "m2"), DIALOGUE) if left]
    assert found == [LeftLine((f"m{number}",), version) for number in (6, 5, 4, 3) for version in (2, 1)]


def test_a_prompt_that_was_repaired_before_the_first_plan_is_tried_though_nothing_was_left_out() -> None:
    broken = log_of([user("look"), tool_exchange("c1", "gone")[0]])
    assert tried(PastPlans(), plan(1, "m1"), broken) == [(0, None)]
    assert tried(PastPlans(), plan(0), broken) == []
    assert tried(PastPlans(), plan(1, "m1"), DIALOGUE) == []


def test_lines_of_other_processes_add_the_plans_of_the_line_of_now() -> None:
    here = PlannedLine(WHOLE[:3], (2, 5))
    past = PastPlans(versions_here=(6,)).with_lines([here, PlannedLine(("x",), (1,))], WHOLE)
    assert (past.versions_here, past.lines) == ((6, 5, 2), (PlannedLine(("x",), (1,)),))
    many = PlannedLine(WHOLE[:3], tuple(range(20)))
    assert PastPlans().with_lines([many], WHOLE).versions_here == tuple(range(19, 11, -1))
    assert PastPlans(lines=None).with_lines(None, WHOLE).lines == ()
    assert past.with_lines(None, WHOLE).lines == past.lines
