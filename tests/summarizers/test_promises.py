"""What a summary must not break: results that may never be cleared, artifacts, and that it is worth its while."""

from __future__ import annotations

from typing import Any

import pytest

from compact import CompactConfig, CompactManager, StructuredSummary, SummaryRequest
from compact.core.facts.ledger import FactKind
from compact.testing import Wire, WordTokenizer, dialogue, tool_exchange, user


def manager_with(window: int, summarizer: Any = None, **strategies: Any) -> CompactManager:
    config = CompactConfig(
        max_context_tokens=window,
        policy={"hard_cap_buffer": 0, "keep_recent_turns": 2, "keep_tool_io_pairs": 1},
        telemetry={"exporter": "none"},
        strategies=strategies,
        summarizer={"prefetch": "never"},
    )
    return CompactManager(config, tokenizer=WordTokenizer(), summarizer=summarizer)


def failing(request: SummaryRequest) -> StructuredSummary:
    raise ConnectionError("the model is away")


@pytest.mark.parametrize("summarizer", [None, failing], ids=["by code", "by a model that fails"])
@pytest.mark.parametrize("tool", ["customer_record", "ask_user"])
def test_results_that_may_never_be_cleared_stay_under_a_summary(summarizer: Any, tool: str) -> None:
    """By the setting `never_evict`, and because an answer of a person cannot be had again."""
    rows = [f"row {number}: customer C-{number} pays on day {number}" for number in range(60)]
    history: list[Wire] = [user("Go through the customers.")]
    for number, row in enumerate(rows):
        history += tool_exchange(f"c{number}", row, tool=tool, number=number)
        history += dialogue(1, words=15)
    manager = manager_with(3_000, summarizer, clear={"never_evict": ["customer_record"]})
    prompt = manager.manual_compact("s", history, target_tokens=1_500)
    assert manager.current_plan("s").summary is not None
    assert [row for row in rows if row not in str(prompt)] == []


def test_artifacts_stay_in_the_ledger_from_round_to_round() -> None:
    manager = manager_with(4_000, externalize={"min_tokens": 100}, enabled=["externalize", "summarize"])
    history: list[Wire] = [user("Read the files.")]
    ids: set[str] = set()
    for round_ in range(3):
        for number in range(6):
            history += tool_exchange(f"c{round_}-{number}", "word " * 500, path=f"src/f{round_}{number}.py")
            history += dialogue(1, words=20)
        manager.preflight("s", history)
        ids |= {record.artifact_id for record in manager.current_plan("s").externalizations}
        manager.manual_compact("s", history, target_tokens=1_200)
    summary = manager.current_plan("s").summary
    assert summary is not None
    assert summary.summary is not None
    kept = {fact.subject for fact in summary.summary.ledger.of(FactKind.ARTIFACT)}
    still = {record.artifact_id for record in manager.current_plan("s").externalizations}
    assert len(ids) >= 6
    assert ids <= kept | still


def test_a_summary_that_would_free_next_to_nothing_is_not_written() -> None:
    manager = manager_with(10_000)
    history = [*dialogue(6, words=6), *dialogue(3, words=20)]
    manager.manual_compact("s", history)
    assert manager.current_plan("s").summary is None
