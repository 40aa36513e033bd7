"""The front door is light, complete, and honest about what it holds; and S3's functions are thin calls behind it."""

from __future__ import annotations

import subprocess
import sys

import pytest

import compact
from compact import CompactConfig, CompactManager, Message
from compact.testing import (
    RecordingSink,
    WordTokenizer,
    check_tokenizer,
    dialogue,
    system,
    tool_exchange,
    tool_run,
    user,
)
from compact.tokens import SimpleTokenizer, get_tokenizer


def test_import_compact_loads_nothing_heavy() -> None:
    heavy = ("pydantic", "yaml", "rich", "typer", "toktok", "genai_prices", "asyncio")
    code = f"import sys, compact; print([m for m in {heavy!r} if m in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"


def test_every_name_at_the_door_opens() -> None:
    for name in compact.__all__:
        assert getattr(compact, name) is not None
    assert set(dir(compact)) == set(compact.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        compact.nonsense  # type: ignore[attr-defined]  # noqa: B018


def test_tokenizers_pass_the_suite() -> None:
    for tokenizer in (WordTokenizer(), SimpleTokenizer(), get_tokenizer("gpt-4o"), get_tokenizer("gpt-4")):
        check_tokenizer(tokenizer)


def test_estimates() -> None:
    assert compact.estimate_tokens("hello") == 1
    assert compact.estimate_tokens("") == 0
    assert compact.estimate_messages_tokens([user("hello")]) > 1


def test_should_compact() -> None:
    config = CompactConfig(max_context_tokens=2_000)
    assert not compact.should_compact(dialogue(3), config)
    assert compact.should_compact(dialogue(60, words=30), config)


def test_selection_parts_no_call_from_its_result() -> None:
    history = [system("s"), *tool_run(20)]
    selection = compact.select_messages_to_compact(history, keep_last=5)
    assert selection.messages_to_keep == [history[0], *history[-6:]]
    assert len(selection.messages_to_compact) == len(history) - 7
    assert selection.previous_summary is None
    assert compact.select_messages_to_compact(history[:4]).messages_to_compact == []


def test_selection_knows_the_previous_summary_by_its_id() -> None:
    manager = CompactManager(CompactConfig(max_context_tokens=2_000), tokenizer=WordTokenizer())
    out = manager.manual_compact("s", [Message(m["role"], m["content"]) for m in dialogue(20, words=40)])
    assert (compact.select_messages_to_compact(out).previous_summary or "").startswith("<COMPACT-SUMMARY v1>")


def test_compact_counts_its_rounds() -> None:
    manager = CompactManager(CompactConfig(max_context_tokens=20_000), tokenizer=WordTokenizer())
    nothing = compact.compact(dialogue(2), "s", manager=manager)
    assert (nothing.round, nothing.compacted_messages) == (0, dialogue(2))
    first = compact.compact(dialogue(20, words=40), "s", manager=manager)
    assert first.round == 1
    assert first.tokens_after < first.tokens_before
    assert first.summary_content.startswith("<COMPACT-SUMMARY v1>")
    assert len(first.compacted_message_ids) == 28
    second = compact.compact([*first.compacted_messages, *dialogue(20, words=41)], "s", manager=manager)
    assert (second.round, second.summary_content[:20]) == (2, "<COMPACT-SUMMARY v2>")
    assert compact.compact(dialogue(30, words=60), "fresh").tokens_after > 0


def test_safe_compact_leaves_the_history_as_it_is_when_it_fails(caplog: pytest.LogCaptureFixture) -> None:
    bad = [{"role": "wizard"}]
    assert compact.safe_compact(bad, "t") == bad
    assert "going on without it" in caplog.text
    assert len(compact.safe_compact(tool_exchange("c", "x"), "u")) == 2


def test_recording_sink_starts_empty() -> None:
    assert RecordingSink().events == []
