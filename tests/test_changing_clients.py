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
from compact.core.engine.events import HistoryBranchedEvent, NoticeEvent
from compact.core.messages.legality import check_chat
from compact.dialects import get_dialect
from compact.testing import RecordingSink, WordTokenizer, as_log, assistant, system, tool_exchange, user
from compact.viewer.source import DataSource

Items = list[dict[str, Any]]
# A caller's list as it sends it: from the whole session so far, and the number of the call.
Client = Callable[[Items, int], Items]

_WORDS = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa", "mu", "nu", "rho"]


def session(steps: int = 90) -> Items:
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
    """Keep the instructions and the newest messages, as many as a middleware allows, from a question on."""
    total, start = 0, len(items)
    while start > 1 and total + len(str(items[start - 1])) < 24_000:
        start -= 1
        total += len(str(items[start]))
    questions = (n for n in range(max(1, start), len(items)) if items[n]["role"] == "user")
    return [items[0], *items[next(questions, 1) :]]


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
    found = len(manager.recall("s", "result-3").entries)
    manager.close()
    manager = CompactManager(config, tokenizer=WordTokenizer(), summarizer=summarize, on_event=sink)
    return manager, Run(
        summaries=len(requests),
        summary_tokens=tokens,
        plans=len(manager.plans("s")),
        log=len(manager.history("s")),
        store_bytes=(folder / "compact.db").stat().st_size,
        seconds=seconds,
        found=found,
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
        check_again(manager, changed)


def check_again(manager: CompactManager, result: Run) -> None:
    """Make prompts again from the store, and have a new process send the same list."""
    source = DataSource(manager.config)
    infos = {info.session_id: info for info in source.store.sessions()}
    for number, prompt in [*enumerate(result.prompts, 1)][3::4]:
        again = source.prompt(infos["s"], number)
        assert [(e["role"], e.get("content")) for e in again.entries] == [
            (item["role"], item.get("content")) for item in prompt
        ], f"call {number}"
    source.close()
    # `manager` has read the session from the store: the same list gives the same prompt.
    log = len(manager.history("s"))
    assert manager.preflight("s", result.lists[-1]) == result.prompts[-1]
    assert len(manager.history("s")) == log


def small_manager(sink: RecordingSink | None = None) -> CompactManager:
    config = CompactConfig(max_context_tokens=3_000, policy={"hard_cap_buffer": 0}, telemetry={"exporter": "none"})
    return CompactManager(config, tokenizer=WordTokenizer(), on_event=sink)


def test_a_cleared_result_goes_out_cleared_and_is_recalled_whole() -> None:
    items = session(8)
    with small_manager() as manager:
        manager.preflight("s", items)
        cleared = own_clearing(items, 0)
        assert manager.preflight("s", cleared) == cleared
        assert manager.preflight("s", [*cleared, user("What did f1.py say?")])[:-1] == cleared
        assert "Old tool result" not in str(manager.history("s"))
        answer = manager.recall("s", "result-1")
        assert items[6]["content"].startswith("result-1 ")
        assert items[6]["content"] in str(answer)
        # Should the caller have the whole result back, that is what goes out.
        assert manager.preflight("s", items) == items
        assert len(manager.history("s")) == len(items) + 1


def test_a_result_that_says_something_new_is_a_new_message() -> None:
    items = session(8)
    with small_manager() as manager:
        manager.preflight("s", items)
        changed = copy.deepcopy(items)
        changed[3]["content"] = "The file is another one now. " + "It has new lines. " * 40
        assert manager.preflight("s", changed) == changed
        assert len(manager.history("s")) == len(items) + 1


def test_an_edit_of_a_summarised_question_is_seen_and_the_old_words_are_not() -> None:
    items = session(100)
    with small_manager() as manager:
        before = manager.manual_compact("s", items, target_tokens=700)
        assert manager.current_plan("s").summary
        place = next(n for n, item in enumerate(items) if item["role"] == "user" and n > 1 and item not in before)
        edited = copy.deepcopy(items)
        edited[place]["content"] = "From now on only ever write to staging."
        prompt = manager.preflight("s", edited)
        assert edited[place] in prompt
        assert items[place]["content"] not in str(prompt)
        assert manager.current_plan("s").summary, "the rest is still summarised"
        assert not check_chat(as_log(prompt))


def test_a_time_in_a_message_that_is_summarised_is_no_clock() -> None:
    items = session(100)
    questions = [n for n, item in enumerate(items) if item["role"] == "user" and n > 1]
    for n in questions:
        items[n]["content"] = f"Deploy part {n} at 19:00."
    with small_manager() as manager:
        before = manager.manual_compact("s", items, target_tokens=700)
        place = next(n for n in questions if items[n] not in before)
        edited = copy.deepcopy(items)
        edited[place]["content"] = f"Deploy part {place} at 21:30."
        assert edited[place] in manager.preflight("s", edited)


def test_deleting_old_messages_before_any_compaction_leaves_them_out() -> None:
    items = session(6)
    with small_manager() as manager:
        manager.preflight("s", items)
        shorter = [items[0], *items[8:]]
        assert manager.preflight("s", shorter) == shorter


def test_a_trimmed_list_that_is_whole_again_doubles_nothing() -> None:
    items = session(60)
    with small_manager() as manager:
        before = manager.preflight("s", items)
        assert manager.preflight("s", trimming(items, 0)) == before
        assert manager.preflight("s", items) == before
        more = [*items, user("And now?")]
        assert manager.preflight("s", trimming(more, 0)) == [*before, more[-1]]
        assert len(manager.history("s")) == len(more)


def test_a_rewind_into_the_summarised_past_drops_the_summary() -> None:
    items = session(60)
    with small_manager() as manager:
        manager.preflight("s", items)
        rewound = [*items[:20], user("Let us do it another way.")]
        assert manager.preflight("s", rewound) == rewound


@pytest.mark.parametrize("dialect", ["anthropic", "responses", "gemini"])
@pytest.mark.parametrize(
    "client", [own_clearing, clock_in_first_question, trimming], ids=lambda client: client.__name__
)
def test_other_dialects_too(client: Client, dialect: str, tmp_path: Path) -> None:
    items = session(60)
    form = get_dialect(dialect)

    def written(entries: Items) -> list[Any]:
        blocks = form.join(list(form.write([entry for entry in entries if entry["role"] != "system"])))
        return [item for block in blocks for item in block.items]

    sent, kept = [0, 0], [0, 0]
    for which, each in enumerate((append_only, client)):
        with small_manager() as manager:
            for call, end in enumerate(n + 1 for n, item in enumerate(items) if item["role"] == "user" and n > 1):
                prompt = manager.preflight("s", written(each(items[:end], call)), dialect=dialect)
                assert not form.check(prompt)
            sent[which], kept[which] = len(manager.history("s")), len(manager.plans("s"))
    assert sent[1] <= sent[0] + kept[0]
    assert kept[1] <= kept[0] + 1


OWN_SUMMARY = (
    "This session is being continued from a previous conversation that ran out of context. " + "It was long. " * 40
)


def own_compactions(sink: RecordingSink) -> list[str]:
    return [event.message for event in sink.of(NoticeEvent) if "compacted its own history" in event.message]


@pytest.mark.parametrize("kept", [0, 10], ids=["starts anew", "keeps the newest"])
def test_an_agent_that_compacts_itself_is_told_once(kept: int) -> None:
    items, sink = session(30), RecordingSink()
    with small_manager(sink) as manager:
        manager.preflight("s", items)
        own = [items[0], user(OWN_SUMMARY), *items[len(items) - kept :]]
        assert manager.preflight("s", own) == own
        manager.preflight("s", [*own, assistant("I go on."), user("Good.")])
        (told,) = own_compactions(sink)
        assert "switch off the agent's own compaction" in told


def test_a_session_that_begins_with_an_agents_own_summary_is_told() -> None:
    sink = RecordingSink()
    with small_manager(sink) as manager:
        manager.preflight("s", [system("Be brief."), user(OWN_SUMMARY), user("Go on.")])
        assert own_compactions(sink)


def test_people_may_speak_of_summaries() -> None:
    items, sink = session(10), RecordingSink()
    with small_manager(sink) as manager:
        manager.preflight("s", items)
        manager.preflight("s", [*items, user("Write a summary of the conversation. " + "Keep it short. " * 40)])
        assert not own_compactions(sink)
