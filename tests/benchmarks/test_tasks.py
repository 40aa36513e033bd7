"""Scripted agents reach the end of their tasks in compacted prompts; broken, they do not, and the benchmark says so."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

from tasks import command, results
from tasks.facts import Fact
from tasks.intervals import difference, wilson
from tasks.loop import Run, run_task
from tasks.model_run import measure, read_rows, run_model_task, table_of
from tasks.model_run import policies as model_policies
from tasks.model_tasks import model_tasks
from tasks.policies import REFERENCE, REMINDED, WINDOW_TOKENS, WITH_RECALL, WITHOUT_RECALL, Compacted, Policy, policies
from tasks.prompts import Passage, passages_of
from tasks.steps import Check, Say, Step, Task

from compact.recall import search

# Short ones for CI, in a window that is as much smaller; in both something is needed that only recall brings back.
SMALL, SMALL_WINDOW, FILLERS = ("coding-0", "travel-0"), 4500, 34
# Of ten checks.
LEAST_WITHOUT_RECALL = 6
ALL = [f"{domain}-{seed}" for domain in command.DOMAINS for seed in range(command.TASKS_PER_DOMAIN)]


def outcomes(*chosen: str) -> dict[str, Any]:
    found = command.measure(SMALL, [REFERENCE, *chosen], window_tokens=SMALL_WINDOW, fillers=FILLERS)
    return results.as_data(found, SMALL_WINDOW)


# -- the tasks are what they say they are


def test_every_task_is_long_and_its_facts_can_be_read_in_the_whole_history() -> None:
    """At least 200 tasks of five domains; a reader of everything gets every check right, by the rule alone."""
    assert len(ALL) >= 200
    tasks = [command.task_of(name) for name in ALL[::20]]
    assert len({task.domain for task in tasks}) == 5
    assert tasks[:2] == [command.task_of(name) for name in ALL[:40:20]]
    for task in tasks:
        outcome = run_task(task, policies()[REFERENCE](WINDOW_TOKENS))
        assert outcome.is_success, outcome.checks
        assert outcome.largest_prompt > 1.5 * WINDOW_TOKENS


def test_facts_are_far_from_their_checks_and_come_in_every_form() -> None:
    tasks = [command.task_of(name) for name in ALL[::10]]
    assert {check.kind for task in tasks for check in task.checks} == {
        "arguments of a call",
        "changed by the agent",
        "corrected by a person",
        "decision of the agent",
        "file contents",
        "rule",
        "said in passing",
        "tool result",
    }
    for task in tasks:
        for place, check in ((n, step) for n, step in enumerate(task.steps) if isinstance(step, Check)):
            told = [n for n, step in enumerate(task.steps[:place]) if check.fact.value == _read(check.fact, step)]
            assert told, (task.name, check.ask)
            assert place - told[-1] > 12, (task.name, check.ask)


def _read(fact: Fact, step: Step) -> str | None:
    """Return the value that a step tells by itself."""
    run = Run(Task("t", "d", "s", (step,)), _Shown(None))
    run.finish()
    return fact.read(passages_of(run.history))


def test_neither_the_request_nor_a_question_gives_the_value_away() -> None:
    for name in ALL[::3]:
        for check in command.task_of(name).checks:
            for text in (check.ask, *check.queries):
                assert check.fact.read([Passage((1, 0), text)]) is None, (name, text)
                assert check.fact.value not in text, (name, text)


# -- the reader


def test_a_reader_takes_the_newest_value_beside_its_cues() -> None:
    port = Fact("7002", r"\b\d{4}\b", ("staging", "port"))
    told = ["The staging port is 7001. The live port is 9000.", "From now on the staging port is 7002, not 7001."]
    assert port.read([Passage((n, 0), text) for n, text in enumerate(told)]) == "7002"
    assert port.read([Passage((1, 0), "The staging host is fine. 7002 is the live port.")]) is None


def test_a_reader_sees_calls_and_dates_what_recall_brings_back() -> None:
    call = {
        "id": "c",
        "type": "function",
        "function": {"name": "edit", "arguments": json.dumps({"new": "PORT = 7002"})},
    }
    answer = "[m9, user, entry 9]\nPORT = 7003\n\n[m4, tool, entry 4, cut to fit]\nPORT = 7001"
    prompt = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": answer},
    ]
    port = Fact("7003", r"\d{4}", ("PORT",))
    assert [passage.text.strip().splitlines()[-1] for passage in passages_of(prompt)] == [
        "PORT = 7001",
        "PORT = 7003",
        "new: PORT = 7002",
    ]
    assert port.read(passages_of(prompt)) == "7002"
    assert port.read(passages_of(prompt[1:])) == "7003"


class _Shown:
    """A policy that shows only the newest message, whatever was before, and answers one question."""

    compactions = 0

    def __init__(self, answer: str | None) -> None:
        self.answer, self.asked = answer, list[str]()

    def prompt(self, history: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        return list(history[-1:])

    def recall(self, arguments: str) -> str | None:
        self.asked.append(json.loads(arguments)["query"])
        return self.answer if len(self.asked) == 2 else "nothing" if self.answer else None


def test_an_agent_knows_only_its_prompt_and_asks_at_most_three_times() -> None:
    fact = Fact("A-17", r"A-\d\d", ("badge",))
    check = Check("said in passing", "Which badge?", fact, "use", {"badge": "{}"}, "ok", ("badge number", "badge", "b"))
    task = Task("t", "d", "s", (Say("The badge is A-17.", "Noted."), check))
    without, with_answer, in_vain = _Shown(None), _Shown("[m1, user, entry 1]\nThe badge is A-17."), _Shown("nothing")
    assert not run_task(task, without).is_success
    run = Run(task, with_answer)
    assert run.finish().is_success
    assert with_answer.asked == ["Which badge?", "badge number"]
    assert '"badge": "A-17"' in json.dumps(json.loads(run.history[-3]["tool_calls"][0]["function"]["arguments"]))
    assert run_task(task, in_vain).checks[0].recalls == len(in_vain.asked) == 3


# -- floors


def test_agents_with_recall_reach_the_end_and_others_do_not() -> None:
    """The small version of `make bench-tasks`: with recall all succeed, what others do ends in the middle."""
    data = outcomes(WITH_RECALL, WITHOUT_RECALL, "newest messages that fit")
    rows = data["policies"]
    assert results.missed({**data, "policies": {name: rows[name] for name in (REFERENCE, WITH_RECALL)}}) == []
    assert rows[WITH_RECALL]["success"] == 100
    assert rows[WITH_RECALL]["recalls"] > 0
    assert rows[WITH_RECALL]["largest_prompt"] <= SMALL_WINDOW
    assert rows[WITHOUT_RECALL]["checks_right"]["rule"] == f"{len(SMALL)} of {len(SMALL)}"
    right = {name: _right(row) for name, row in rows.items()}
    assert right["newest messages that fit"] < right[WITHOUT_RECALL] < right[WITH_RECALL] == right[REFERENCE] == 10
    assert right[WITHOUT_RECALL] >= LEAST_WITHOUT_RECALL


def test_a_recall_that_ranks_the_worst_first_misses_the_floor(monkeypatch: pytest.MonkeyPatch) -> None:
    matches = search.RecallSource.matches
    monkeypatch.setattr(search.RecallSource, "matches", lambda self, query: matches(self, query)[::-1][:1])
    missed = results.missed(outcomes(WITH_RECALL))
    assert any("floor 99" in line for line in missed), missed


def test_reminded_agents_reach_the_end_without_asking(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = outcomes(REMINDED)["policies"]
    assert _right(rows[REMINDED]) == _right(rows[REFERENCE]) == 10
    assert rows[REMINDED]["recalls"] == 0
    missing = search.RecallSource.missing
    monkeypatch.setattr(search.RecallSource, "missing", lambda self, question: missing(self, question)[1:])
    assert any("with reminders" in line for line in results.missed(outcomes(REMINDED)))


def _right(row: dict[str, Any]) -> int:
    return sum(int(told.split()[0]) for told in row["checks_right"].values())


def test_the_command_prints_writes_and_fails_below_a_floor(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "DOMAINS", {"travel": command.DOMAINS["travel"]})
    file = tmp_path / "tasks.json"
    options = ["--tasks", "1", "--policies", "newest", "--json", str(file), "--check"]
    assert command.main(options) == 0
    assert json.loads(file.read_text())["policies"]["newest messages that fit"]["failed"] == ["travel-0"]
    assert "| newest messages that fit | 0.0 | 0.0 to 79.3 | -100.0 |" in capsys.readouterr().out
    monkeypatch.setattr(results, "FLOORS", {"newest messages that fit": 50})
    assert command.main(options) == 1
    assert "below the floor: newest messages that fit: 0.0 %" in capsys.readouterr().out
    assert command.main(["--show", "travel-0", "--policies", "newest"]) == 0
    assert re.search(r"WRONG +rule: wanted", capsys.readouterr().out)


def test_intervals_are_those_of_the_papers() -> None:
    """Wilson and Newcombe, with the figures of Newcombe's own example (56 of 70 and 48 of 80, here both of 80)."""
    low, high = wilson(81, 263)
    assert (round(low, 4), round(high, 4)) == (0.2553, 0.3662)
    assert wilson(0, 20)[0] == 0
    assert wilson(20, 20) == (pytest.approx(0.8389, abs=1e-4), 1.0)
    assert wilson(0, 0) == (0, 1)
    change, least, most = difference(10, 10, 10)
    assert (change, round(least, 4), round(most, 4)) == (0, -0.2775, 0.2775)


# -- a real model, without one


def _reading_model(task: Any) -> Any:
    """A model that reads its whole prompt, and asks for what is not in it."""

    def ask(messages: Sequence[dict[str, Any]]) -> str:
        text = "\n".join(message["content"] for message in messages)
        return task.value if task.value in text else "RECALL: " + task.ask.split("?")[0]

    return ask


def test_a_model_that_reads_gets_what_its_prompt_lacks_by_recall() -> None:
    tasks = model_tasks(list(command.DOMAINS.values()), 2)
    assert [task.kind for task in tasks] == ["needle", "rule", "lookup"] * 2
    for task in tasks:
        for name, make in model_policies().items():
            policy: Policy = make()
            found = run_model_task(task, policy, _reading_model(task), has_recall=name == WITH_RECALL)
            if name in (REFERENCE, WITH_RECALL):
                assert found["is_right"], (task.name, name, found)
            if isinstance(policy, Compacted):
                assert found["compactions"] >= 1
    assert not tasks[2].is_right("X0000")
    assert not tasks[2].is_right(f"{tasks[2].value} or X0000")


def test_a_run_with_a_model_continues_where_it_was(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, asked = tmp_path / "answers.jsonl", list[str]()
    tasks = model_tasks(list(command.DOMAINS.values()), 1)[:1]

    def ask(messages: Sequence[dict[str, Any]]) -> str:
        asked.append(messages[-1]["content"])
        return tasks[0].value

    measure(tasks, "m", ask, file)
    measure(tasks, "m", ask, file)
    assert len(asked) == len(read_rows(file)) == len(model_policies())
    assert "0 minutes left" in capsys.readouterr().err
    assert f"| m | {REFERENCE} | 1 | 100.0 |" in table_of(read_rows(file))
