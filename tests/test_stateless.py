"""The plain functions: nothing is remembered, nothing is written, and rounds build on each other all the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import compact
from compact import CompactConfig, CompactManager, Message
from compact.core.facts.ledger import Fact, FactKind, Ledger
from compact.core.messages.entries import read_entry
from compact.core.messages.legality import check_chat
from compact.core.summary.parsing import parse_summary_text
from compact.core.summary.summary import StructuredSummary, render_summary_text
from compact.testing import WordTokenizer, dialogue, system, tool_exchange, tool_run, user

CONFIG = CompactConfig(max_context_tokens=2_000, policy={"hard_cap_buffer": 0})
TASK = "Move the bookings of pier 9. Never touch the migrations."


def history(words: int = 30) -> list[Any]:
    return [system("be kind"), user(TASK), *dialogue(40, words=words)]


def summaries_in(messages: list[Any]) -> list[str]:
    return [str(m["content"]) for m in messages if str(m["content"]).startswith("<COMPACT-SUMMARY")]


def test_rounds_build_on_the_summary_in_the_list_itself() -> None:
    messages: list[Any] = history()
    for round_ in (1, 2, 3, 4):
        result = compact.compact(json.loads(json.dumps(messages)), config=CONFIG, tokenizer=WordTokenizer())
        assert (result.round, result.tokens_after < result.tokens_before) == (round_, True)
        assert summaries_in(result.compacted_messages) == [result.summary_content], "there is exactly one"
        parsed = parse_summary_text(result.summary_content)
        assert parsed is not None
        assert parsed.version == round_
        ledger = {fact.kind.value: fact.subject for fact in parsed.summary.ledger}
        assert ledger["task"] == TASK, "the task of the first round is the task of all"
        assert "Never touch the migrations." in ledger["constraint"]
        assert result.compacted_messages[0] == system("be kind")
        assert check_chat([read_entry(message, "out") for message in result.compacted_messages]) == ()
        messages = [*result.compacted_messages, *dialogue(40, words=30 + round_)]


def test_nothing_is_shared_between_two_histories() -> None:
    first = compact.compact(history(), config=CONFIG, tokenizer=WordTokenizer())
    other = compact.compact(dialogue(60, words=25), config=CONFIG, tokenizer=WordTokenizer())
    again = compact.compact(history(), config=CONFIG, tokenizer=WordTokenizer())
    assert (first.round, other.round, again.round) == (1, 1, 1)
    assert "pier 9" not in other.summary_content
    assert again == first


def test_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    compact.compact(history(), config=CompactConfig(max_context_tokens=2_000))
    compact.safe_compact(history())
    compact.should_compact(history())
    assert list(tmp_path.iterdir()) == []


def test_messages_that_stay_are_the_callers_own() -> None:
    messages = history()
    result = compact.compact(messages, config=CONFIG, tokenizer=WordTokenizer())
    assert result.compacted_messages[0] is messages[0]
    assert result.compacted_messages[-1] is messages[-1]


def test_what_is_small_already_stays_as_it_is() -> None:
    nothing = compact.compact(dialogue(2), config=CONFIG)
    assert (nothing.round, nothing.compacted_messages, nothing.summary_content) == (0, dialogue(2), "")


def test_a_target_is_met() -> None:
    result = compact.compact(history(), config=CONFIG, tokenizer=WordTokenizer(), target_tokens=300)
    assert result.tokens_after <= 300


def test_only_a_whole_summary_in_its_place_is_one() -> None:
    summary = compact.compact(history(), config=CONFIG, tokenizer=WordTokenizer()).summary_content
    for text in (f"{summary} and more", f"see {summary}", summary.replace("</COMPACT-SUMMARY>", ""), summary[:40]):
        assert parse_summary_text(text) is None
    quoted = [system("s"), user("look at this"), {"role": "assistant", "content": summary}, *dialogue(30, words=40)]
    assert compact.select_messages_to_compact(quoted).previous_summary is None, "it does not stand where ours does"
    assert compact.compact(quoted, config=CONFIG, tokenizer=WordTokenizer()).round == 1


def test_headings_inside_a_task_are_part_of_it() -> None:
    task = "Write the page.\n## Task\n- not a section\n## Nonsense\nEnd."
    summary = StructuredSummary(ledger=Ledger((Fact(FactKind.TASK, task),)))
    parsed = parse_summary_text(render_summary_text(summary, version=1, messages=9))
    assert parsed is not None
    assert [fact.subject for fact in parsed.summary.ledger if fact.kind.value == "task"] == [task]


@pytest.mark.parametrize("as_messages", [True, False])
def test_selection_knows_the_previous_summary(as_messages: bool) -> None:
    manager = CompactManager(
        CompactConfig(max_context_tokens=2_000, state={"url": "memory:"}, storage={"adapter": "none"}),
        tokenizer=WordTokenizer(),
    )
    given = dialogue(20, words=40)
    out = manager.manual_compact("s", [Message(m["role"], m["content"]) for m in given] if as_messages else given)
    assert (compact.select_messages_to_compact(out).previous_summary or "").startswith("<COMPACT-SUMMARY v1>")


def test_selection_parts_no_call_from_its_result() -> None:
    history = [system("s"), *tool_run(20)]
    selection = compact.select_messages_to_compact(history, keep_last=5)
    assert selection.messages_to_keep == [history[0], *history[-6:]]
    assert len(selection.messages_to_compact) == len(history) - 7
    assert selection.previous_summary is None
    assert compact.select_messages_to_compact(history[:4]).messages_to_compact == []


def test_a_manager_may_still_be_passed() -> None:
    manager = CompactManager(
        CompactConfig(max_context_tokens=20_000, state={"url": "memory:"}), tokenizer=WordTokenizer()
    )
    with pytest.warns(DeprecationWarning, match="manual_compact"):
        first = compact.compact(dialogue(20, words=40), "s", manager=manager)
    assert (first.round, first.summary_content[:20]) == (1, "<COMPACT-SUMMARY v1>")
    with pytest.warns(DeprecationWarning, match="manual_compact"):
        second = compact.compact([*first.compacted_messages, *dialogue(20, words=41)], "s", manager=manager)
    assert (second.round, second.summary_content[:20]) == (2, "<COMPACT-SUMMARY v2>")


def test_safe_compact_leaves_the_history_as_it_is_when_it_fails(caplog: pytest.LogCaptureFixture) -> None:
    bad = [{"role": "wizard"}]
    assert compact.safe_compact(bad) == bad
    assert "continuing without it" in caplog.text
    assert len(compact.safe_compact(tool_exchange("c", "x"))) == 2


def test_a_line_between_turns_is_only_taken_off_before_a_summary() -> None:
    """Elsewhere it may be the user's own words, and holds the turns apart."""
    history = [user("[...]"), *dialogue(30, words=40)]
    config = CompactConfig(max_context_tokens=100_000, state={"url": "memory:"}, storage={"adapter": "none"})
    first = compact.compact(history, config=config, tokenizer=WordTokenizer(), target_tokens=600)
    assert history[0]["content"] in [message["content"] for message in first.compacted_messages[:1]]
    second = compact.compact([*first.compacted_messages, user("[...]")], config=config, tokenizer=WordTokenizer())
    assert second.compacted_messages[-1]["content"] == "[...]"
    assert second.compacted_messages[0]["content"] == "[...]"
    assert second.compacted_messages[1]["content"].startswith("<COMPACT-SUMMARY v2>")
