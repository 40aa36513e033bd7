"""What must hold in the dialect of a framework, over random conversations; each framework brings a writer."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import HealthCheck, Phase, assume, settings
from hypothesis import strategies as st

from compact import CompactConfig, CompactManager, InsufficientBudget
from compact.dialects import Dialect
from compact.dialects.translation import Translator
from compact.testing import WordTokenizer, check_dialect
from conversations import SMALL_STRATEGIES
from dialect_conversations import Step
from sizes import SCALE

Writer = Callable[[Sequence[Step]], list[Any]]
windows = st.sampled_from([260, 500, 1200])
few = settings(
    max_examples=15 * SCALE,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


def manager_for(window: int) -> CompactManager:
    """A manager that compacts early and often."""
    config = CompactConfig(
        max_context_tokens=window,
        policy={"hard_cap_buffer": 10, "keep_recent_turns": 2, "keep_tool_io_pairs": 2},
        telemetry={"exporter": "none"},
    )
    return CompactManager(config, tokenizer=WordTokenizer(), strategies=SMALL_STRATEGIES)


def keeps_what_the_doors_rely_on(dialect: Dialect, items: list[Any]) -> None:
    """Items, entries, stored entries, items: the identity."""
    assume(not dialect.check(items))
    check_dialect(dialect, items)


def gives_back_own_objects(dialect: Dialect, items: list[Any]) -> None:
    """A list that fits is the same list, object by object, and is not touched."""
    before = copy.deepcopy(items)
    manager = manager_for(1_000_000)
    for _ in range(2):
        out = manager.preflight("s", items, dialect=dialect)
        assert all(a is b for a, b in zip(out, items, strict=True))
    assert items == before


def stays_legal(dialect: Dialect, write: Writer, steps: list[Step], window: int) -> None:
    """Several rounds: legal, within the budget, protected entries there, nothing lost, nothing changed under us."""
    manager = manager_for(window)
    for end in range(1, len(steps) + 1):
        if steps[end - 1].role != "user" and not steps[end - 1].calls:
            continue  # nobody calls a model there
        items = write(steps[:end])
        before = copy.deepcopy(items)
        try:
            out = manager.preflight("s", items, dialect=dialect)
        except InsufficientBudget:
            assume(False)
            raise
        assert not dialect.check(out)
        assert manager.status("s").used_tokens <= window - 10
        text = json.dumps(out, default=repr)
        assert text.count("<COMPACT-SUMMARY v") == (manager.current_plan("s").summary is not None)
        assert '"native"' not in text
        pinned = [message for message in manager.history("s") if message.meta.get("protected")]
        shown = {id(slot.message) for slot in manager.prompt("s").slots}
        assert all(id(message) in shown for message in pinned)
        assert [message.original for message in manager.history("s")] == Translator(dialect).entries(before)
        assert items == before
