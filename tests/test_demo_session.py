"""The demo session: what is shipped is what the tool writes, and it is a session worth compacting."""

from __future__ import annotations

import gzip
import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest
import toktok

ROOT = Path(__file__).parents[1]
SHIPPED = ROOT / "src/compact/cli/demo/session.jsonl.gz"


def load_tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_demo_session", ROOT / "tools/make_demo_session.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def messages() -> list[dict]:
    return [json.loads(line) for line in gzip.decompress(SHIPPED.read_bytes()).decode().splitlines()]


def calls_of(message: dict) -> list[dict]:
    return message.get("tool_calls", [])


def test_tool_writes_the_shipped_file():
    """Regenerating gives the committed text, byte for byte."""
    tool = load_tool()
    assert tool.serialise(tool.generate()) == gzip.decompress(SHIPPED.read_bytes())


def test_shipped_file_stays_small():
    """The package does not grow by more than 600 kB for its demo."""
    assert SHIPPED.stat().st_size < 600_000


def test_every_call_is_answered_directly(messages):
    """Results follow their assistant message in the order of its calls, and nothing else answers."""
    position = 0
    while position < len(messages):
        assert messages[position]["role"] != "tool"
        calls = calls_of(messages[position])
        answers = messages[position + 1 : position + 1 + len(calls)]
        assert [answer.get("tool_call_id") for answer in answers] == [call["id"] for call in calls]
        position += 1 + len(calls)


def test_messages_are_well_formed(messages):
    """Ids are unique, arguments are JSON, only a message that calls tools may have no content."""
    ids = [call["id"] for message in messages for call in calls_of(message)]
    assert len(ids) == len(set(ids))
    assert messages[0]["role"] == "system"
    for message in messages:
        assert message["content"] or calls_of(message)
        for call in calls_of(message):
            assert isinstance(json.loads(call["function"]["arguments"]), dict)


def test_acceptance_criteria_are_protected(messages):
    """Exactly one message carries the mark that the library never compacts."""
    marked = [message for message in messages if message.get("meta", {}).get("protected")]
    assert [(message["role"], message["meta"]["label"]) for message in marked] == [("user", "acceptance criteria")]


def test_edits_show_in_later_reads(messages):
    """A successful edit is visible the next time the same file is read, so that the story holds together."""
    answers = {message["tool_call_id"]: message["content"] for message in messages if message["role"] == "tool"}
    edited: dict[str, str] = {}
    seen = 0
    for call in (call for message in messages for call in calls_of(message)):
        arguments, answer = json.loads(call["function"]["arguments"]), answers[call["id"]]
        if call["function"]["name"] == "edit_file" and answer.startswith("Edited"):
            edited[arguments["path"]] = arguments["new"]
        elif call["function"]["name"] == "read_file" and arguments["path"] in edited:
            assert edited.pop(arguments["path"]) in answer
            seen += 1
    assert seen >= 20


def test_session_is_long_enough(messages):
    """Three windows of 128,000 tokens, at least 300 tool calls and 20 turns."""
    calls = [call for message in messages for call in calls_of(message)]
    texts = [message["content"] or "" for message in messages] + [call["function"]["arguments"] for call in calls]
    assert 385_000 <= sum(toktok.batch_count(texts, "o200k_base", threads=1)) <= 400_000
    assert len(calls) >= 300
    assert sum(message["role"] == "user" for message in messages) >= 20
