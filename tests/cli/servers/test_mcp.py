"""`compact mcp` as an agent uses it: started as a process, spoken to by the client of the `mcp` package."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

from compact import CompactConfig, CompactManager
from compact.testing import dialogue, tool_run, user

SECRET = "the harbour master is called Ilvany"


@pytest.fixture
def store(tmp_path: Path) -> str:
    """A store in which an agent has written two sessions; the newer one was compacted."""
    url = f"sqlite:///{tmp_path / 'agent.db'}"
    config = CompactConfig(state={"url": url}, max_context_tokens=8_000, telemetry={"exporter": "none"})
    with CompactManager(config) as manager:
        manager.preflight("older", dialogue(2))
        history = [user(f"Note that {SECRET}."), *tool_run(40, words=300), user("Go on.")]
        manager.preflight("voyage", history)
        assert manager.plans("voyage"), "everything fitted"
    return url


def ask(work: Callable[[Client], Awaitable[Any]], *options: str) -> Any:
    """Start the command, let a client work with it, and return what that came to."""

    async def main() -> Any:
        arguments = ["-m", "compact.cli.main", "mcp", *options]
        server = StdioServerParameters(command=sys.executable, args=arguments, env=dict(os.environ))
        async with Client(server) as client:
            return await work(client)

    return asyncio.run(asyncio.wait_for(main(), 60))


def answers_to(calls: Sequence[tuple[str, dict[str, Any]]], *options: str) -> list[tuple[str, bool]]:
    """Return what tools answer, called one after the other in one connection, and whether it is an error."""

    async def work(client: Client) -> list[tuple[str, bool]]:
        results: list[Any] = [await client.call_tool(tool, arguments) for tool, arguments in calls]
        return [(result.content[0].text, bool(result.is_error)) for result in results]

    return ask(work, *options)


def test_what_an_agent_is_told(store: str) -> None:
    """Four tools that only read, each with a description and with described arguments."""

    async def work(client: Client) -> Any:
        return (await client.list_tools()).tools, client.instructions

    tools, instructions = ask(work, "--store", store)
    assert [tool.name for tool in tools] == ["recall", "why", "status", "sessions"]
    assert "log" in instructions
    for tool in tools:
        assert tool.annotations.read_only_hint
        assert len(tool.description) > 50
        for argument in tool.input_schema.get("properties", {}).values():
            assert argument["description"]
    assert tools[0].input_schema["required"] == ["query"]


def test_each_tool(store: str) -> None:
    """About the newest session unless another is named; the answers are those of the commands."""
    calls: list[tuple[str, dict[str, Any]]] = [
        ("recall", {"query": "Who is the harbour master?"}),
        ("why", {"phrase": "Ilvany"}),
        ("why", {"phrase": "Ilvanyi"}),
        ("status", {}),
        ("status", {"session": "older"}),
        ("sessions", {}),
    ]
    found = answers_to(calls, "--store", store)
    assert not any(is_error for _, is_error in found)
    recalled, why, never, status, older, sessions = (text for text, _ in found)
    assert SECRET in recalled
    assert "prompt" in why.splitlines()[0]
    assert "m1" in why
    assert never.startswith("not found")
    assert status.startswith("session voyage, turn ")
    assert "of 8,000 tokens" in status
    assert older.startswith("session older")
    assert [line.partition(":")[0] for line in sessions.splitlines()] == ["voyage", "older"]


WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("recall", {"query": "x", "session": "voyag"}, "did you mean 'voyage'?"),
    ("status", {"session": "voyag"}, "did you mean 'voyage'?"),
    ("recall", {"query": "  "}, "the query is empty"),
    ("why", {"phrase": ""}, "the phrase is empty"),
    ("recall", {}, "query"),
]


def test_a_wrong_question_is_answered(store: str) -> None:
    """As an error that the model can read, with what to do; the server goes on."""
    calls = [*((tool, arguments) for tool, arguments, _ in WRONG), ("sessions", {})]
    *wrong, (_, is_error) = answers_to(calls, "--store", store)
    assert not is_error
    for (text, is_error), (_, _, words) in zip(wrong, WRONG, strict=True):
        assert is_error
        assert words in text


def test_one_session_alone(store: str) -> None:
    calls: list[tuple[str, dict[str, Any]]] = [
        ("status", {}),
        ("sessions", {}),
        ("recall", {"query": "harbour", "session": "voyage"}),
    ]
    (status, _), (sessions, _), (refused, is_error) = answers_to(calls, "--store", store, "--session", "older")
    assert status.startswith("session older")
    assert sessions.startswith("older: ")
    assert "voyage" not in sessions
    assert is_error
    assert "reads the session 'older' alone" in refused


def test_a_store_that_comes_later(tmp_path: Path) -> None:
    """An agent starts its servers before it has said a word: there is no store yet, and then there is."""
    url = f"sqlite:///{tmp_path / 'later.db'}"

    async def work(client: Client) -> Any:
        early: Any = await client.call_tool("status", {})
        with CompactManager(CompactConfig(state={"url": url}, telemetry={"exporter": "none"})) as manager:
            manager.preflight("first", dialogue(1))
        return early, await client.call_tool("status", {})

    early, later = ask(work, "--store", url)
    assert early.is_error
    assert "there is no store" in early.content[0].text
    assert later.content[0].text.startswith("session first")


def test_nothing_is_written(store: str, tmp_path: Path) -> None:
    before = (tmp_path / "agent.db").read_bytes()
    found = answers_to(
        [("recall", {"query": "Ilvany"}), ("why", {"phrase": "Ilvany"}), ("status", {})], "--store", store
    )
    assert not any(is_error for _, is_error in found)
    assert (tmp_path / "agent.db").read_bytes() == before


def test_a_misspelt_store_is_named() -> None:
    """What is wrong with the options is told by the tools, since nobody sees the terminal of a server."""
    ((text, is_error),) = answers_to([("status", {})], "--store", "mysql://x")
    assert is_error
    assert "is not the URL of a store" in text
