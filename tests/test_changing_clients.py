"""Clients that change their own past: what that costs, beside one that only appends to its list.

Each client sends the same session. The measure is what the changes cost: calls of a summariser and the tokens it reads,
plans, log, store, and time; and what recall finds. The prompts of every call are made again from the store.
"""

from __future__ import annotations

import copy
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from compact import CompactConfig, CompactManager, StructuredSummary, SummaryRequest
from compact.core.engine.events import HistoryBranchedEvent
from compact.core.log.legality import check_chat
from compact.testing import RecordingSink, WordTokenizer, as_log, assistant, system, tool_exchange, user

Items = list[dict[str, Any]]
# A caller's list as it sends it: from the whole session so far, and the number of the call.
Client = Callable[[Items, int], Items]

_WORDS = "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu omicron rho sigma tau".split()


def session(steps: int = 120) -> Items:
    """Return a session of an agent with tools: a task with a constraint, then steps with a result each."""
    dice = random.Random(7)
    items: Items = [
        system("You are a careful engineer. It is 2026-03-01 09:00:00 UTC. " + "Keep to the rules. " * 40),
        user("Port the billing service to the new API. Never touch the migrations."),
    ]
    for step in range(steps):
        text = " ".join(dice.choices(_WORDS, k=dice.randint(20, 90)))
        items += tool_exchange(f"c{step}", f"result-{step} {text}", tool="read", arguments=f'{{"path": "f{step}.py"}}')
        items.append(assistant(f"Step {step} is done: {' '.join(dice.choices(_WORDS, k=8))}."))
        if step % 6 == 5:
            items.append(user(f"Go on with part {step}, and keep f{step}.py short."))
    return items


def append_only(items: Items, call: int) -> Items:
    return items


def own_clearing(items: Items, call: int) -> Items:
    """Clear all results but the newest four, as coding agents do."""
    results = [n for n, item in enumerate(items) if item["role"] == "tool"]
    cleared = {n: {**items[n], "content": "[Old tool result content cleared]"} for n in results[:-4]}
    return [cleared.get(n, item) for n, item in enumerate(items)]


def own_cutting(items: Items, call: int) -> Items:
    """Cut old results short."""
    results = [n for n, item in enumerate(items) if item["role"] == "tool"]
    cut = {n: {**items[n], "content": items[n]["content"][:60] + "… [truncated]"} for n in results[:-4]}
    return [cut.get(n, item) for n, item in enumerate(items)]


def clock(items: Items, call: int) -> Items:
    now = f"2026-03-01 {9 + call // 60:02}:{call % 60:02}:{call * 7 % 60:02} UTC"
    return [{**items[0], "content": items[0]["content"].replace("2026-03-01 09:00:00 UTC", now)}, *items[1:]]


def clock_in_first_question(items: Items, call: int) -> Items:
    now = f"(Today is Sunday, March 1, 2026, {1 + call // 60}:{call % 60:02} pm.)"
    return [items[0], {**items[1], "content": f"{items[1]['content']} {now}"}, *items[2:]]


def trimming(items: Items, call: int) -> Items:
    """Keep the instructions and the newest messages, as many as a middleware allows."""
    total, start = 0, len(items)
    while start > 1 and total + len(str(items[start - 1])) < 24_000:
        start -= 1
        total += len(str(items[start]))
    while start < len(items) - 1 and items[start]["role"] == "tool":
        start += 1
    return [items[0], *items[max(1, start) :]]


def edit_far_back(items: Items, call: int) -> Items:
    """Rewrite one old message at every thirtieth call."""
    edited = list(items)
    for at in range(30, call + 1, 30):
        place = 4 + at // 3
        if edited[place]["role"] != "tool" and not edited[place].get("tool_calls"):
            edited[place] = {**edited[place], "content": f"Rewritten at call {at}: use the new endpoint {at}."}
        else:
            edited[place + 1] = {**edited[place + 1], "content": f"Rewritten at call {at}: endpoint {at} it is."}
    return edited


CLIENTS: dict[str, Client] = {
    "own clearing": own_clearing,
    "own cutting": own_cutting,
    "clock": clock,
    "clock in the first question": clock_in_first_question,
    "trimming": trimming,
    "edit far back": edit_far_back,
}


@dataclass
class Run:
    """What one client's session cost."""

    summaries: int
    summary_tokens: int
    plans: int
    log: int
    store_bytes: int
    seconds: float
    found: int
    branches: int
    prompts: list[Items]
    lists: list[Items]


def run(client: Client, folder: Path, *, dialect: str | None = None) -> tuple[CompactManager, Run]:
    requests: list[SummaryRequest] = []

    def summarize(request: SummaryRequest) -> StructuredSummary:
        requests.append(request)
        return StructuredSummary(narrative=f"The parts so far were ported, version {request.version}.")

    folder.mkdir()
    sink = RecordingSink()
    config = CompactConfig(
        max_context_tokens=3_000,
        policy={"hard_cap_buffer": 0},
        state={"url": f"sqlite:///{folder / 'compact.db'}"},
        storage={"path": str(folder / "archive")},
        telemetry={"exporter": "none"},
    )
    manager = CompactManager(config, tokenizer=WordTokenizer(), summarizer=summarize, on_event=sink)
    items, prompts, lists, seconds = session(), list[Items](), list[Items](), 0.0
    ends = [n + 1 for n, item in enumerate(items) if item["role"] in ("tool", "user")]
    for call, end in enumerate(ends):
        sent = copy.deepcopy(client(items[:end], call))
        began = time.perf_counter()
        prompts.append(manager.preflight("s", sent, dialect=dialect))
        seconds += time.perf_counter() - began
        lists.append(sent)
    tokens = sum(len(message.text.split()) for request in requests for message in request.messages)
    return manager, Run(
        summaries=len(requests),
        summary_tokens=tokens,
        plans=len(manager.plans("s")),
        log=len(manager.history("s")),
        store_bytes=(folder / "compact.db").stat().st_size,
        seconds=seconds,
        found=len(manager.recall("s", "result-3").entries),
        branches=len(sink.of(HistoryBranchedEvent)),
        prompts=prompts,
        lists=lists,
    )


@pytest.fixture(scope="module")
def still(tmp_path_factory: pytest.TempPathFactory) -> Run:
    manager, result = run(append_only, tmp_path_factory.mktemp("still") / "s")
    manager.close()
    assert result.summaries >= 3, "the session is long enough to be summarised more than once"
    return result


@pytest.mark.parametrize("client", CLIENTS.values(), ids=CLIENTS.keys())
def test_a_client_that_changes_its_past_costs_what_one_does_that_appends(
    client: Client, still: Run, tmp_path: Path
) -> None:
    manager, changed = run(client, tmp_path / "s")
    with manager:
        rows = {name: (getattr(changed, name), getattr(still, name)) for name in ("summaries", "summary_tokens", "log")}
        print({**rows, "store": changed.store_bytes / still.store_bytes, "time": changed.seconds / still.seconds})
        assert changed.summaries <= still.summaries + 1
        assert changed.summary_tokens <= 1.2 * still.summary_tokens
        assert changed.plans <= 1.2 * still.plans + 4
        assert changed.log <= 1.05 * still.log
        assert changed.store_bytes <= 1.2 * still.store_bytes
        assert changed.found <= still.found
        # Generous: single preflights are milliseconds, and other work runs on the same machine.
        assert changed.seconds <= 4 * still.seconds + 1
        for prompt, sent in zip(changed.prompts, changed.lists, strict=True):
            assert not check_chat(as_log(prompt))
            assert prompt[-1] is sent[-1], "the newest message goes out as it is"
            assert "Never touch the migrations." in str(prompt)
