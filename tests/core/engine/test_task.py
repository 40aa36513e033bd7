"""The task and what redirects it are in every prompt, however often a session is compacted."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compact import CompactConfig, CompactManager, StructuredSummary, SummaryRequest
from compact.core.facts.extraction import find_asks
from compact.core.facts.ledger import Fact, FactKind, Ledger
from compact.testing import WordTokenizer, as_log, assistant, user
from dialect_conversations import WRITERS, Call, Step

ROUNDS = 6
_WORDS = ("berth", "crane", "harbour", "pilot", "quay", "tide", "crate", "ledger", "anchor", "winch")
REDIRECTIONS = (
    "Actually, forget that. Write the harbour report for inspector Quendt instead.",
    "Now a new task: port the tariff module of pier Vellamo to Rust.",
    "Change of plans: build the customs form for Port Istrana.",
    "Stop working on that, we have to repair the tide gauge at Brennholm first.",
)


def words(chance: Random, count: int) -> str:
    return " ".join(f"{chance.choice(_WORDS)}{chance.randrange(1000)}" for _ in range(count))


def task_of(chance: Random, count: int) -> str:
    """A task that says at its beginning and at its end what is wanted; in between is what was pasted."""
    pasted = "".join(f"\n{words(chance, 12)}." for _ in range(max(0, count - 12) // 12))
    return f"Renumber all berths of harbour Ystwick.{pasted}\nSend the list to warden Okonjo."


def work(chance: Random, number: int) -> list[Step]:
    """What an agent does in a while, with small talk of the user, after which the task is not the newest ask."""
    calls = [
        Call(
            f"c{number}-{n}", "read_file", {"path": f"src/quay_{number}_{n}.py"}, words(chance, chance.randrange(5, 90))
        )
        for n in range(4)
    ]
    steps = [Step("assistant", f"I read part {number}.{n}.", (call,)) for n, call in enumerate(calls)]
    asks = chance.choice(("Where are we?", "And the crate 4471?", "ok, go on", f"Look at quay {number} as well."))
    return [*steps, Step("assistant", f"Part {number} is done: {words(chance, 8)}."), Step("user", asks)]


def told_nothing(request: SummaryRequest) -> StructuredSummary:
    return StructuredSummary(narrative="All is well.")


def told_too_much(request: SummaryRequest) -> StructuredSummary:
    return StructuredSummary(narrative=" ".join(["and then more was done"] * (request.max_tokens // 6)))


def chose_other_facts(request: SummaryRequest) -> StructuredSummary:
    return StructuredSummary(ledger=Ledger((Fact(FactKind.FILE, "src/quay_0_0.py", "read"),)), narrative="On it.")


def fails(request: SummaryRequest) -> StructuredSummary:
    raise RuntimeError("no connection")


SUMMARIZERS = (None, told_nothing, told_too_much, chose_other_facts, fails)
Summarize = Callable[[SummaryRequest], StructuredSummary]


def new_manager(window: int, summarizer: Summarize | None = None, **more: Any) -> CompactManager:
    config = CompactConfig(
        max_context_tokens=window,
        policy={"hard_cap_buffer": 0},
        summarizer={"prefetch": "never"},
        state={"url": "memory:"},
        telemetry={"exporter": "none"},
        **more,
    )
    return CompactManager(config, tokenizer=WordTokenizer(), summarizer=summarizer)


def shown(prompt: Sequence[object]) -> str:
    return json.dumps(prompt).replace("\\n", "\n")


def assert_tells(prompt: Sequence[object], task: str, *, whole: bool) -> None:
    assert (task if whole else task.splitlines()[0]) in shown(prompt)


# -- any number of rounds -------------------------------------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 10**6),
    st.sampled_from([12, 60, 150, 600]),
    st.sampled_from(SUMMARIZERS),
    st.sampled_from(["chat", "anthropic", "responses"]),
    st.booleans(),
)
def test_after_each_round_the_prompt_tells_the_task_and_what_redirected_it(
    seed: int, task_words: int, summarizer: Summarize | None, dialect: str, by_hand: bool
) -> None:
    """The largest task takes 60 % of the window. One of 15 % is there word for word, but it is cut where a summariser
    fills the summary with something else, or where somebody has it shortened again and again.
    """
    chance, window = Random(seed), 1_000
    task, redirection = task_of(chance, task_words), chance.choice(REDIRECTIONS)
    redirected = chance.randrange(1, ROUNDS - 1)
    steps = [Step("user", task)]
    with new_manager(window, summarizer) as manager:
        for number in range(ROUNDS):
            steps += work(chance, number)
            if number == redirected:
                steps[-1] = Step("user", redirection)
            history = WRITERS[dialect](steps)
            compact = manager.manual_compact if by_hand else manager.preflight
            prompt = compact("s", history, dialect=dialect)
            assert_tells(prompt, task, whole=task_words <= (12 if summarizer or by_hand else 150))
            if number >= redirected:
                assert redirection in shown(prompt)
        assert manager.status("s").plan_version > 0


def test_of_a_huge_task_both_ends_stay() -> None:
    chance = Random(3)
    task = task_of(chance, 600)
    steps = [Step("user", task)]
    with new_manager(1_000) as manager:
        for number in range(ROUNDS):
            steps += work(chance, number)
            prompt = manager.preflight("s", WRITERS["chat"](steps))
            assert_tells(prompt, task, whole=False)
            assert task.splitlines()[-1] in shown(prompt)
            assert task not in shown(prompt) or number < ROUNDS - 1, "there is no room for all of it"


@pytest.mark.parametrize("target", [150, 250, 400])
@pytest.mark.parametrize("seed", range(4))
def test_where_a_size_was_asked_for_the_least_valuable_goes_first(seed: int, target: int) -> None:
    chance = Random(seed)
    task = task_of(chance, 40)
    steps = [Step("user", task)]
    with new_manager(100_000) as manager:
        for number in range(ROUNDS):
            steps += work(chance, number)
            prompt = manager.manual_compact("s", WRITERS["chat"](steps), target_tokens=target)
            assert_tells(prompt, task, whole=target > 150)


def test_a_window_of_dialogue_leaves_the_task() -> None:
    strategies = {"enabled": ["clear", "window", "drop"], "window": {"max_turns": 2}}
    chance = Random(1)
    steps = [Step("user", task_of(chance, 12))]
    with new_manager(300, strategies=strategies) as manager:
        for number in range(ROUNDS):
            steps += work(chance, number)
            assert_tells(manager.preflight("s", WRITERS["chat"](steps)), steps[0].text, whole=True)
        assert manager.current_plan("s").drops


# -- which words redirect -------------------------------------------------------------------------------------------


def tasks_of(said: str) -> list[str]:
    log = as_log([user("Port the parser."), assistant("yes"), user(said), assistant("ok"), user("Where are we?")])
    return [fact.subject for fact in find_asks(log, ()) if fact.kind is FactKind.TASK]


@pytest.mark.parametrize(
    "said",
    [
        *REDIRECTIONS,
        "No, instead do the lexer.",
        "Let's switch to the billing bug.",
        "Never mind. Do the docs.",
        "Okay, now let's build the importer.",
        "Scrap that, the plan has changed: we ship on Friday.",
        "Vergiss das, schreib stattdessen den Bericht.",
        "换成写报告吧",
        "pasted line\n" * 500 + "Forget all of this and fix the build.",
    ],
)
def test_words_that_put_another_task_in_its_place_are_part_of_the_task(said: str) -> None:
    assert tasks_of(said) == ["Port the parser.", said]


@pytest.mark.parametrize(
    "said",
    ["Use tabs instead of blanks.", "Thanks!", "Drop the table berths.", "Run the next test.", "Cancel order 4471."],
)
def test_words_about_the_same_task_are_not(said: str) -> None:
    assert tasks_of(said) == ["Port the parser."]
