"""What a summary must not break: results that may never be cleared, artifacts, and that it is worth its while."""

from __future__ import annotations

from typing import Any

import pytest

from compact import CompactConfig, CompactManager, StructuredSummary, SummaryRequest
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


@pytest.mark.parametrize("summarizer", [None, failing], ids=["by code", "by a model that fails"])
def test_pointers_outlive_five_rounds(summarizer: Any) -> None:
    """The newest as messages, older ones in the summary; each of them can be recalled."""
    manager = manager_with(4_000, summarizer, externalize={"min_tokens": 100}, enabled=["externalize", "summarize"])
    history: list[Wire] = [user("Read the files.")]
    contents: dict[str, str] = {}
    for round_ in range(5):
        for number in range(6):
            text = f"file {round_}{number} " + "word " * 500
            history += tool_exchange(f"c{round_}-{number}", text, path=f"src/f{round_}{number}.py")
            history += dialogue(1, words=20)
        manager.preflight("s", history)
        contents |= {r.artifact_id: r.span.first for r in manager.current_plan("s").externalizations}
        prompt = str(manager.manual_compact("s", history, target_tokens=2_000))
        plan = manager.current_plan("s")
        assert plan.externalizations, "the newest pointers stand as messages"
        assert set(contents) <= {record.artifact_id for record in plan.artifacts}
        missing = [artifact_id for artifact_id in contents if artifact_id not in prompt]
        assert missing == [], (round_, len(contents))
    assert len(contents) >= 12
    for artifact_id, message_id in contents.items():
        (found,) = manager.recall("s", artifact_id).found
        assert (found.message_id, found.content[:5]) == (message_id, "file ")


def test_an_artifact_in_a_summary_says_what_it_is() -> None:
    manager = manager_with(4_000, externalize={"min_tokens": 100}, enabled=["externalize", "summarize"])
    history = [user("Read it."), *tool_exchange("c1", "word " * 600, path="src/tax.py"), *dialogue(8, words=60)]
    prompt = str(manager.manual_compact("s", history, target_tokens=300))
    (record,) = manager.current_plan("s").artifacts
    assert f"- {record.artifact_id} (read_file src/tax.py)" in prompt.replace("\\n", "\n")


def test_hundreds_of_pointers_leave_room_for_the_rest() -> None:
    manager = manager_with(6_000, externalize={"min_tokens": 50}, enabled=["externalize", "summarize"])
    history: list[Wire] = [user("Read the files.")]
    for number in range(300):
        history += tool_exchange(f"c{number}", f"file {number} " + "word " * 200, path=f"src/f{number}.py")
    history += [user("What did we find?")]
    prompt = manager.manual_compact("s", history, target_tokens=2_000)
    plan = manager.current_plan("s")
    assert 0 < sum(record.tokens_after for record in plan.externalizations) <= 1_000
    assert plan.externalizations[-1].span.first > plan.artifacts[0].span.first
    assert len(plan.artifacts) > 200
    assert prompt[-1] == history[-1]


def test_an_answer_that_is_moved_and_summarised_at_once_is_in_its_artifact() -> None:
    """A pointer that never stood in a prompt has no room in this one: the artifact is stored all the same."""
    answer = "the customer said: berth 42. " + "detail " * 400
    asked = tool_exchange("c1", answer, tool="ask_user", question="which berth?")
    manager = manager_with(4_000)
    prompt = str(manager.manual_compact("s", [user("Book."), *asked, *dialogue(9, words=60)], target_tokens=300))
    (record,) = manager.current_plan("s").artifacts
    assert manager.current_plan("s").externalizations == ()
    assert record.artifact_id in prompt
    assert "berth 42" in str(manager.recall("s", record.artifact_id))


def test_a_summary_that_would_free_next_to_nothing_is_not_written() -> None:
    manager = manager_with(10_000)
    history = [*dialogue(6, words=6), *dialogue(3, words=20)]
    manager.manual_compact("s", history)
    assert manager.current_plan("s").summary is None
