"""Regret in a session: found as the agent goes on, kept with the plan, and what was missed is kept longer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from compact import CompactConfig, CompactManager
from compact.core.audit.records import Commit, SessionHead
from compact.core.audit.regret_finder import read_regrets
from compact.core.audit.store import VersionConflict
from compact.core.engine.events import RegretEvent
from compact.core.plan.plan import CompactionAction
from compact.stores.memory import InMemoryCompactionStore
from compact.testing import RecordingSink, as_log, tool_exchange, user

S = "the agent"
Wire = dict[str, Any]


def manager(url: str = "memory:", *, keep_longer: bool = True, share: float = 0.2, **plugs: Any) -> CompactManager:
    return CompactManager(
        CompactConfig(
            max_context_tokens=9_000,
            tokenizer="simple",
            policy={"hard_cap_buffer": 200, "keep_tool_io_pairs": 2},
            regret={"keep_longer": keep_longer, "max_share": share},
            state={"url": url},
            storage={"adapter": "none"},
            telemetry={"exporter": "none"},
        ),
        **plugs,
    )


def listing(path: str) -> str:
    return "\n".join(f"{number}: value_{number} of {path}" for number in range(40))


def reads(*paths: str, start: int = 0) -> list[Wire]:
    """An agent that reads one file after the other."""
    calls = enumerate(paths, start)
    return [m for number, path in calls for m in tool_exchange(f"c{number}", listing(path), path=path)]


FIRST = [user("please look at all of them"), *reads(*(f"src/{number}.py" for number in range(22)))]
AGAIN = reads("src/0.py", start=100)
LATER = reads(*(f"lib/{number}.py" for number in range(14)), start=200)
BROUGHT_BACK = f"m{len(FIRST) + 2}"


def run(agent: CompactManager, history: list[Wire], *, start: int = 2) -> None:
    """Make a call before each reply."""
    for end in range(start, len(history) + 1):
        if end == len(history) or history[end]["role"] == "assistant":
            agent.preflight(S, history[:end])


def is_shown(agent: CompactManager, message_id: str) -> bool:
    return agent.current_plan(S).get_action(message_id)[0] is CompactionAction.INCLUDE


def test_what_was_missed_is_kept_longer_and_the_plan_says_so() -> None:
    """The same agent without it loses the file again; with it, the file is still in the prompt."""
    with manager() as on, manager(keep_longer=False) as off:
        for agent in (on, off):
            run(agent, [*FIRST, *AGAIN])
            assert is_shown(agent, BROUGHT_BACK)
            versions = len(agent.plans(S))
            assert versions
            run(agent, [*FIRST, *AGAIN, *LATER], start=len(FIRST) + 3)
            assert len(agent.plans(S)) > versions
        assert is_shown(on, BROUGHT_BACK)
        assert not is_shown(off, BROUGHT_BACK)
        assert on.current_plan(S).reason.endswith(
            "; kept longer, because it was asked for again after an earlier compaction: 1 of read_file"
        )
        assert "kept longer" not in off.current_plan(S).reason
        assert [count.total for count in off.status(S).regrets] == [1]  # counted in any case
        assert "regret  1 removed message asked for again" in str(on.status(S))


def test_the_file_that_is_still_there_is_not_missed_a_second_time() -> None:
    once_more = reads("src/0.py", start=300)
    counted: dict[bool, int] = {}
    for keeps in (True, False):
        with manager(keep_longer=keeps) as agent:
            run(agent, [*FIRST, *AGAIN, *LATER[:24], *once_more])
            counted[keeps] = sum(count.total for count in agent.status(S).regrets)
    assert counted == {True: 1, False: 2}


def test_without_a_regret_nothing_changes() -> None:
    """Plans and prompts are the same, byte for byte, whether the switch is on or off."""
    prompts: dict[bool, list[object]] = {}
    for keeps in (True, False):
        with manager(keep_longer=keeps) as agent:
            run(agent, [*FIRST, *LATER])
            plans = [entry.plan for entry in agent.plans(S)]
            prompts[keeps] = [plans, agent.prompt(S).messages]
    assert len(prompts[True][0]) > 1  # type: ignore[arg-type]
    assert prompts[True] == prompts[False]


def test_what_takes_too_much_is_not_kept() -> None:
    with manager(share=0.01) as agent:
        run(agent, [*FIRST, *AGAIN, *LATER])
        assert not is_shown(agent, BROUGHT_BACK)
        assert "kept longer" not in agent.current_plan(S).reason


def test_it_gives_way_where_there_is_no_room() -> None:
    """A target that is named is met, whatever was missed."""
    with manager(share=1.0) as agent:
        run(agent, [*FIRST, *AGAIN, *LATER])
        assert is_shown(agent, BROUGHT_BACK)
        agent.manual_compact(S, [*FIRST, *AGAIN, *LATER], target_tokens=900)
        assert agent.current_plan(S).tokens_after <= 900
        assert not is_shown(agent, BROUGHT_BACK)


def test_an_event_tells_of_it_once() -> None:
    sink = RecordingSink()
    with manager(on_event=sink) as agent:
        run(agent, [*FIRST, *AGAIN])
        agent.preflight(S, [*FIRST, *AGAIN])  # the caller tries again
        run(agent, [*FIRST, *AGAIN, *LATER], start=len(FIRST) + 3)
    (event,) = sink.of(RegretEvent)
    assert (event.message_id, event.found_in, event.tool, event.how) == ("m3", BROUGHT_BACK, "read_file", "reread")
    assert event.action in ("clear", "summarize")
    assert event.tokens > 100


class Contested(InMemoryCompactionStore):
    """A store in which another process is quicker, once."""

    is_contested = False

    def commit(self, commit: Commit) -> SessionHead:
        """Raise the first time that something is contested."""
        if self.is_contested:
            self.is_contested = False
            raise VersionConflict("somebody was quicker")
        return super().commit(commit)


def test_a_call_that_is_made_again_tells_of_it_once() -> None:
    sink, store = RecordingSink(), Contested()
    with manager(on_event=sink, store=store) as agent:
        run(agent, FIRST)
        store.is_contested = True
        agent.preflight(S, [*FIRST, *AGAIN])
        assert not store.is_contested
        assert len(sink.of(RegretEvent)) == 1
        assert len(agent.status(S).regrets) == 1


def test_a_dry_run_counts_nothing() -> None:
    sink = RecordingSink()
    with manager(on_event=sink) as agent:
        run(agent, FIRST)
        agent.plan(S, [*FIRST, *AGAIN], now=True)
        assert agent.status(S).regrets == ()
        assert sink.of(RegretEvent) == []
        agent.preflight(S, [*FIRST, *AGAIN])
        assert len(agent.status(S).regrets) == 1


@pytest.mark.parametrize("stops_after", ["the regret", "the next compaction"])
def test_another_process_goes_on_with_it(tmp_path: Path, stops_after: str) -> None:
    """Resumed at any point, the session has the same regrets and makes the same plans."""
    history, end = [*FIRST, *AGAIN, *LATER], len(FIRST) + 2
    if stops_after == "the next compaction":
        end = len(history) - 4
    with manager() as whole:
        run(whole, history)
        wanted = [entry.plan for entry in whole.plans(S)]
    url = f"sqlite:///{tmp_path / 'state.db'}"
    with manager(url) as first:
        run(first, history[:end])
        counted = first.status(S).regrets
        assert counted
    with manager(url) as second:
        assert second.status(S).regrets == counted
        run(second, history, start=end + 1)
        assert [entry.plan for entry in second.plans(S)] == wanted


def test_undoing_a_compaction_forgets_no_regret() -> None:
    with manager() as agent:
        run(agent, [*FIRST, *AGAIN])
        before = agent.status(S).regrets
        plan = agent.undo(S)
        assert [regret.found_in for regret in plan.regrets.found] == [BROUGHT_BACK]
        assert agent.status(S).regrets == before


def test_an_edited_past_keeps_what_was_found_before_the_plan() -> None:
    with manager() as agent:
        run(agent, [*FIRST, *AGAIN, *LATER])
        edited = [*FIRST, *AGAIN, user("something else"), *LATER[2:]]
        agent.preflight(S, edited)
        assert sum(count.total for count in agent.status(S).regrets) == 1


def test_a_plan_that_was_stored_before_regrets_were_counted_is_read() -> None:
    with manager() as agent:
        run(agent, FIRST)
        plan = agent.current_plan(S)
    data = plan.to_dict()
    del data["regrets"]
    read = type(plan).from_dict(data)
    assert read.records == plan.records
    log = as_log([*FIRST, *AGAIN])
    assert read_regrets(plan, log, log, lambda _: 7).found  # what came after it counts
    assert read_regrets(read, log, log, lambda _: 7).found == []  # here nobody knows what did


def test_the_report_of_the_compaction_that_removed_it_has_the_regret() -> None:
    with manager() as agent:
        run(agent, [*FIRST, *AGAIN, *LATER])
        reports = agent.report(S)
        (blamed,) = [report for report in reports if report.regrets]
        (regret,) = blamed.regrets
        assert regret.message_id in blamed.removed_ids
        assert blamed.version <= regret.plan_version
        assert blamed.to_dict()["regrets"] == [regret.to_dict()]
