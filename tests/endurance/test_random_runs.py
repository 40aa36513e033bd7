"""A thousand random runs: whatever is called, in whatever order, nothing but the documented errors comes out."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compact import CompactConfig, CompactError, CompactManager, InsufficientBudget
from compact.core.engine.events import CompactionErrorEvent
from compact.stores.memory import InMemoryCompactionStore
from compact.testing import RecordingSink, WordTokenizer
from conversations import SMALL_STRATEGIES, Wire, histories
from sizes import SOAK
from stores.worker import violations

BUFFER = 10


class Run:
    """One session, and what may be done with it between two turns."""

    def __init__(self, window: int, chance: random.Random) -> None:
        self.window, self.chance, self.store, self.sink = window, chance, InMemoryCompactionStore(), RecordingSink()
        self.manager = self.open()
        self.refusals: list[CompactError] = []

    def open(self) -> CompactManager:
        config = CompactConfig(
            max_context_tokens=self.window,
            policy={"hard_cap_buffer": BUFFER, "keep_recent_turns": 2, "keep_tool_io_pairs": 1},
            telemetry={"exporter": "none"},
        )
        plugs = {"tokenizer": WordTokenizer(), "strategies": SMALL_STRATEGIES, "store": self.store}
        return CompactManager(config, on_event=self.sink, **plugs)

    def send(self, history: list[Wire], *, by_hand: bool = False) -> None:
        """Make a call; only a budget that cannot be met may be refused."""
        call = self.manager.manual_compact if by_hand else self.manager.preflight
        try:
            prompt = call("s", history)
        except InsufficientBudget:
            return
        assert self.manager.status("s").used_tokens <= self.window - BUFFER
        assert not violations(prompt) or violations(history), "what comes in legal goes out legal"

    def restart(self) -> None:
        self.manager.close()
        self.manager = self.open()

    def ask(self, history: list[Wire]) -> None:
        """Do one of the other things; a session that is not known, or nothing to undo, is said so."""
        manager = self.manager
        calls: list[Callable[[], object]] = [
            lambda: self.send(history, by_hand=True),
            lambda: manager.observe_usage("s", self.chance.choice([0, 7, self.window, 10 * self.window])),
            lambda: manager.plan("s", history),
            lambda: manager.undo("s"),
            lambda: manager.recall("s", self.chance.choice(["alpha id-4711", "m1", "", "漢字 🧠"])),
            lambda: manager.why("s", "src/app/main.py"),
            lambda: manager.report("s"),
            lambda: manager.cost("s"),
            lambda: manager.forget("s"),
            lambda: manager.delete("s"),
            self.restart,
        ]
        try:
            self.chance.choice(calls)()
        except CompactError as error:
            self.refusals.append(error)


@pytest.mark.soak
@settings(max_examples=1_000 if SOAK else 10)
@given(histories(min_size=3, max_size=40), st.sampled_from([260, 600, 2_000]), st.integers(0, 2**32))
def test_no_run_ends_with_an_unexpected_error(history: list[Wire], window: int, seed: int) -> None:
    chance = random.Random(seed)
    run, end = Run(window, chance), 0
    while end < len(history):
        end = min(len(history), end + chance.randint(1, 6))
        run.send(history[:end])
        if chance.random() < 0.5:
            run.ask(history[:end])
    run.manager.close()
    assert all(error.code and str(error) for error in run.refusals)
    told = [event for event in run.sink.of(CompactionErrorEvent) if event.error_type != "InsufficientBudget"]
    assert told == []
