"""Moving big results into artifacts: which ones, in which order, under which id, and what stands for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compact.core.audit.artifacts import artifact_id_for
from compact.core.errors import ConfigError
from compact.core.messages.entries import read_entry
from compact.core.messages.message import Message
from compact.core.plan.durability import ToolDurabilityPolicy
from compact.core.plan.layers import KeepRules
from compact.core.plan.plan import CompactionPlan, ExternalizationRecord
from compact.core.plan.renderer import PromptRenderer
from compact.core.plan.strategy import CompactionStrategy, Goal
from compact.core.plan.turn import TurnContext
from compact.core.planning.coordinator import CompactionCoordinator, CompactionResult
from compact.strategies.clear import ClearStrategy
from compact.strategies.externalize import ExternalizeStrategy, preview
from compact.testing import WordTokenizer, check_strategy, dialogue, tool_exchange, tool_run, user
from conversations import Wire, histories, texts

FLOOR = KeepRules(recent_turns=1, tool_io_pairs=1)


def read(history: Sequence[Wire]) -> list[Message]:
    return [
        Message(m.role, m.content, m.tool_calls, m.tool_call_id, m.name, f"m{place}", m.meta)
        for place, m in enumerate((read_entry(item, "x") for item in history), 1)
    ]


def run(
    history: Sequence[Wire], *strategies: CompactionStrategy, turn: TurnContext | None = None, target_tokens: int = 0
) -> CompactionResult:
    messages, count = read(history), WordTokenizer().count_message
    return CompactionCoordinator(strategies).coordinate(
        messages,
        CompactionPlan("t"),
        tokens=[count(message) for message in messages],
        count_message=count,
        rules=FLOOR,
        goal=Goal(target_tokens=target_tokens, settle_tokens=10**9, ceiling_tokens=10**9),
        turn=turn,
    )


def moved(result: CompactionResult) -> list[str]:
    assert not result.failures
    return [record.span.first for record in result.plan.externalizations]


def only(result: CompactionResult) -> ExternalizationRecord:
    (record,) = result.plan.externalizations
    return record


def results(*sizes: int, tool: str = "read_file", **meta: Any) -> list[Wire]:
    """A request and one result of each size, in words; the one kept exchange at the end is not to be touched."""
    history: list[Wire] = [user("go")]
    for number, words in enumerate(sizes):
        exchange = tool_exchange(f"{tool}-{number}", "word " * words, tool=tool)
        exchange[1]["meta"] = meta
        history += exchange
    return [*history, *tool_run(1)]


@given(history=histories(max_size=20))
def test_it_passes_the_suite(history: list[Wire]) -> None:
    check_strategy(ExternalizeStrategy(min_tokens=1, min_tokens_non_replayable=1), read(history))


@given(history=histories(max_size=20))
def test_it_touches_nothing_but_untouched_results_of_the_remainder(history: list[Wire]) -> None:
    result = run(history, ClearStrategy(min_tokens=150), ExternalizeStrategy(min_tokens=1))
    messages = {message.id: index for index, message in enumerate(read(history))}
    for record in result.plan.externalizations:
        assert messages[record.span.first] in result.layers.remainder
        text = read(history)[messages[record.span.first]].text
        assert record.artifact_id == artifact_id_for("t", record.span.first, text)
    assert not result.plan.overlapping_ids()


def test_the_largest_go_first_and_only_as_many_as_needed() -> None:
    history = results(3_000, 2_500, 4_000, 1_999)
    assert moved(run(history, ExternalizeStrategy())) == ["m7", "m3", "m5"]
    assert moved(run(history, ExternalizeStrategy(), target_tokens=8_000)) == ["m7"]


def test_what_cannot_be_had_again_goes_first_and_is_moved_earlier() -> None:
    history = [*results(3_000), *results(250, 199, tool="ask_user")]
    record = run(history, ExternalizeStrategy()).plan.externalizations[0]
    assert moved(run(history, ExternalizeStrategy())) == ["m9", "m3"]
    assert record.reason == "unique ask_user result, 1 turn ago"


def test_what_may_never_be_cleared_may_be_moved() -> None:
    result = run(results(500, tool="ask_user"), ClearStrategy(), ExternalizeStrategy())
    assert moved(result) == ["m3"]


def test_the_pointer_names_the_artifact_its_size_and_shows_a_preview() -> None:
    history = results(3_000)
    result = run(history, ExternalizeStrategy(preview_chars=20))
    shown = PromptRenderer().render(read(history), result.plan).messages[2]
    pointer, start = shown.text.split("\n")
    assert pointer.startswith(
        f"[moved to artifact {artifact_id_for('t', 'm3', 'word ' * 3_000)}: 3.0k tokens; large read_file result, 1"
    )
    assert start == "word word word word"
    assert shown.tool_call_id == "read_file-0"


def test_kept_and_protected_results_stay() -> None:
    history = [user("go"), *tool_exchange("a", "word " * 3_000), *tool_exchange("b", "word " * 3_000)]
    assert moved(run(history, ExternalizeStrategy())) == ["m3"]
    history[2]["meta"] = {"protected": True}
    assert moved(run(history, ExternalizeStrategy())) == []


def test_big_messages_that_are_no_tool_results_stay() -> None:
    assert moved(run(dialogue(5, words=3_000), ExternalizeStrategy())) == []


def test_what_was_cleared_before_is_left_alone() -> None:
    text = "error " * 39 + "\n"  # a stub that keeps lines like this is larger than a pointer would be
    history = [user("go"), *tool_exchange("a", text * 80), *tool_run(1)]
    strategy = ExternalizeStrategy(preview_lines=0)
    assert moved(run(history, strategy)) == ["m3"]
    assert moved(run(history, ClearStrategy(), strategy)) == []


def test_tools_hold_on_to_their_results() -> None:
    policies = {"read*": ToolDurabilityPolicy(keep_last=3), "look*": ToolDurabilityPolicy(keep_turns=2)}
    history = [*results(3_000, 3_000, 3_000), *results(3_000, tool="look")]
    assert moved(run(history, ExternalizeStrategy(policies=policies))) == ["m3", "m5"]
    assert moved(run(history, ExternalizeStrategy(never_evict=("read_file", "look")))) == []


def test_a_turn_that_brought_something_back_moves_nothing() -> None:
    turn = TurnContext(3).with_rehydrated(artifact_id_for("t", "m3", "word " * 3_000))
    assert moved(run(results(3_000, 3_000), ExternalizeStrategy(), turn=turn)) == []
    assert moved(run(results(3_000, 3_000), ExternalizeStrategy(), turn=TurnContext(4))) == ["m3", "m5"]


@pytest.mark.parametrize(
    ("own", "expected"),
    [("public", "public"), ("Restricted", "restricted"), ("secret!", "restricted"), (7, "restricted")],
)
def test_a_message_says_how_sensitive_it_is(own: object, expected: str) -> None:
    assert only(run(results(3_000, sensitivity=own), ExternalizeStrategy())).sensitivity == expected


def test_the_default_sensitivity_can_be_set_and_must_make_sense() -> None:
    strategy = ExternalizeStrategy(default_sensitivity="confidential")
    assert only(run(results(3_000), strategy)).sensitivity == "confidential"
    with pytest.raises(ConfigError, match="use one of public, internal"):
        ExternalizeStrategy(default_sensitivity="top secret")


def test_a_plan_quotes_nothing_confidential() -> None:
    assert only(run(results(3_000, sensitivity="confidential"), ExternalizeStrategy())).preview == ""


def test_images_stay_because_an_artifact_is_text() -> None:
    parts: list[Wire] = [{"type": "text", "text": "word " * 3_000}]
    history = results(1)
    history[2]["content"] = parts
    assert moved(run(history, ExternalizeStrategy())) == ["m3"]
    parts.append({"type": "image_url", "image_url": {"url": "data:"}})
    assert moved(run(history, ExternalizeStrategy())) == []


def test_a_preview_is_the_first_lines_and_how_it_went() -> None:
    text = "$ pytest\n\ncollecting\n" + "dots\n" * 300 + "FAILED tests/test_a.py\nnote\n1 failed, 3 passed\n"
    assert preview(text, 6, 600) == "$ pytest\ncollecting\ndots\ndots\n…\nFAILED tests/test_a.py\n1 failed, 3 passed"
    assert preview("one error\ntwo", 6, 600) == "one error\ntwo"
    assert preview("x" * 1_000, 6, 10) == "x" * 10
    assert preview(text, 6, 40) == "$ pytest\ncollect…\n…\nFAILED tests/test_a…"


@given(text=st.one_of(texts, st.text(max_size=300)), lines=st.integers(0, 8), chars=st.integers(0, 200))
def test_a_preview_is_never_longer_than_asked_and_invents_nothing(text: str, lines: int, chars: int) -> None:
    shown = preview(text, lines, chars)
    assert len(shown) <= chars
    assert all(line.rstrip("…").strip() in text for line in shown.split("\n"))
