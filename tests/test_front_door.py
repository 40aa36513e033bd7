"""The front door is light, complete, and honest about what it holds; and S3's functions are thin calls behind it."""

from __future__ import annotations

import subprocess
import sys

import pytest

import compact
from compact import CompactConfig
from compact.testing import (
    RecordingSink,
    WordTokenizer,
    check_tokenizer,
    dialogue,
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


def test_recording_sink_starts_empty() -> None:
    assert RecordingSink().events == []
