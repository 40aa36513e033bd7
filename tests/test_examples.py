"""Every example runs as it is: in an empty folder, without keys and without a network, and prints what it should."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
MINIMAL = ROOT / "examples" / "agents_sdk_minimal.py"
# Beyond loopback there is nothing: an example that asks a real provider fails at once.
OFFLINE = """
import runpy, socket, sys

def guarded(connect):
    def only_loopback(self, address):
        if isinstance(address, tuple) and address[0] not in ("127.0.0.1", "::1", "localhost"):
            raise OSError(f"examples run offline, and this one wanted {address}")
        return connect(self, address)
    return only_loopback

socket.socket.connect = guarded(socket.socket.connect)
socket.socket.connect_ex = guarded(socket.socket.connect_ex)
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
# What each of them prints, beside other things; patterns, because figures may move a little.
PRINTED = {
    "adk_agent.py": [
        "All reports are read.",
        "events in the session: 84",
        r"compactions: [2-9]",
        "the rule was in every request: True",
    ],
    "agent_framework_agent.py": [
        "messages in the session: 83",
        r"compactions: [2-9]",
        "messages out of the workflow: 83",
        "the rule was in every request: True",
    ],
    "agents_sdk_minimal.py": [
        "All forty reports are read.",
        "items in the history: 82",
        r"largest request: \d\d,\d{3} ",
    ],
    "anthropic_agent.py": ["40 answers, 0 rejected", "the rule was in every request: True", r"compactions: [2-9]"],
    "autogen_agent.py": ["All reports are read.", "messages in the model context: 82", r"compactions: [2-9]"],
    "coding_session.py": [
        "It said: assert 900 == 250.",
        r"50 items kept, 25 requests, [2-9] compactions",
        "constraints lost: 0",
        "compact view --session coding-session",
    ],
    "deepagents_agent.py": ["Nothing is odd.", r"reports/tools: 61 messages in the log, [2-9] compactions"],
    "langgraph_agent.py": ["messages in the state: 83", r"compactions: [2-9]", "the rule was in every request: True"],
    "llama_index_agent.py": [
        "messages in the memory: 83",
        r"compactions: [2-9]",
        "the rule was in every request: True",
    ],
    "smolagents_agent.py": ["steps in the memory: 42", r"compactions: [2-9]", "the rule was in every request: True"],
    "langchain_agent.py": [
        "All reports are read.",
        "messages in the state: 83",
        r"compactions: [2-9]",
        "the rule was in every request: True",
        "read again, long after it left: True",
    ],
    "litellm_agent.py": ["40 answers, 0 rejected", "messages in the history: 81", r"compactions: [2-9]"],
    "long_research.py": [
        r"round  [5-9]: ",
        "401 messages in the history",
        "the constraint is still there: True",
        "read again, long after it left: True",
        "can no longer be had: 0",
    ],
    "mcp_server.py": [
        "tools: recall, why, status, sessions",
        "recall found it: True",
        "why: not in the newest prompt",
        "session voyage, turn 3, plan version 1",
    ],
    "own_loop.py": [
        "Page 2 was signed by clerk 14.",
        r"largest request: [456],\d{3} tokens",
        "the tool found it: True",
    ],
    "own_store.py": [
        "the store keeps the rules",
        r"121 messages in the log, [2-7],\d{3} tokens in the prompt",
        r"plans in force: \[1, 2",
        "recalled: m3",
        "the store JsonStore cannot return a list of its sessions",
    ],
    "own_strategy.py": ["the strategy keeps the rules", r"'heartbeats': [1-9]", "the error is still there: True"],
    "own_summarizer.py": [
        "the summariser keeps the rules",
        "<COMPACT-SUMMARY v1>",
        "Never book a lorry before noon.",
        "no longer sees: 0",
    ],
    "pydantic_ai_agent.py": [
        "All reports are read.",
        "messages in the history: 82",
        r"compactions: [2-9]",
        "the rule was in every request: True",
        "read again, long after it left: True",
    ],
    "reads_again.py": [
        "keep_longer: True; asked for again: 1",
        "keep_longer: False; asked for again: 2",
        r"v5: .*; kept longer, because it was asked for again after an earlier compaction: 1 of read_file",
    ],
    "strands_agent.py": [
        "messages in agent.messages: 84",
        r"compactions: [2-9]",
        "the rule was in every request: True",
        "read again, long after it left: True",
    ],
    "wrapped_client.py": [
        "40 answers, 0 rejected",
        "the rule was in every request: True",
        "usage was taken in: True",
        r"compactions: [2-9]",
    ],
}


def run(path: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """As a user would, but with a watch on the network."""
    kept = {
        name: value for name, value in os.environ.items() if not re.search(r"API_KEY|^COMPACT_|_proxy$", name, re.I)
    }
    return subprocess.run(
        [sys.executable, "-c", OFFLINE, str(path)],
        cwd=folder,
        env={**kept, "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_example_runs(path: Path, tmp_path: Path) -> None:
    done = run(path, tmp_path)
    assert done.returncode == 0, done.stderr[-3_000:]
    assert done.stdout.strip(), "an example shows something"
    for pattern in PRINTED.get(path.name, ()):
        assert re.search(pattern, done.stdout), (pattern, done.stdout[-3_000:])


def test_what_is_expected_is_there() -> None:
    assert set(PRINTED) <= {path.name for path in EXAMPLES}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_example_says_what_it_shows_and_how_to_start_it(path: Path) -> None:
    """The extras that it names are ours."""
    text = path.read_text(encoding="utf-8")
    opening = text.split('"""')[1]
    assert f"python {path.name}" in opening
    extra = re.search(r'pip install "?compact-context(?:\[([\w-]+)\])?"?', opening)
    assert extra, "it says what to install"
    if extra[1]:
        assert f"\n{extra[1]} = [" in (ROOT / "pyproject.toml").read_text(encoding="utf-8")


def test_enabling_compaction_takes_fewer_than_ten_lines(tmp_path: Path) -> None:
    """Counted in the smallest example: without them it is the same program, whose requests grow without end."""
    text = MINIMAL.read_text(encoding="utf-8")
    block = re.search(r"# compaction begins\n(.*?)# compaction ends\n", text, re.DOTALL)
    assert block
    passed_on = ", run_config=config"
    lines = [line for line in block[1].splitlines() if line.strip()]
    assert len(lines) + text.count(passed_on) < 10
    without = tmp_path / "without.py"
    without.write_text(text.replace(block[0], "").replace(passed_on, ""), encoding="utf-8")

    def largest(path: Path) -> int:
        done = run(path, tmp_path)
        assert done.returncode == 0, done.stderr
        found = re.search(r"largest request: ([\d,]+)", done.stdout)
        assert found
        return int(found[1].replace(",", ""))

    assert largest(without) > 3 * largest(MINIMAL)
