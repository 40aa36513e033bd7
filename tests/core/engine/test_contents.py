"""What fills the window, by role and by tool: in the status, with every call, and as Markdown for a chat."""

from __future__ import annotations

from typing import Any

import pytest

from compact import CompactConfig, CompactManager
from compact.core.audit.call_details import CallDetails
from compact.core.plan.parts import SAID_PARTS
from compact.testing import WordTokenizer, assistant, system, tool_exchange, user


def history(turns: int) -> list[Any]:
    said: list[Any] = [system("Be brief."), user("Always answer in French.", protected=True)]
    for turn in range(turns):
        said.append(user(f"Question {turn}?"))
        said += tool_exchange(f"r{turn}", "word " * 40, tool="read_file")
        said += tool_exchange(f"b{turn}", "word " * 10, tool="bash")
        said.append(assistant(f"Answer {turn}."))
    return said


def manager(**settings: Any) -> CompactManager:
    usual: dict[str, Any] = {"max_context_tokens": 900, "policy": {"hard_cap_buffer": 0}}
    return CompactManager(CompactConfig(**{**usual, **settings}), tokenizer=WordTokenizer())


def test_results_are_told_apart_by_their_tool_and_dialogue_by_its_role() -> None:
    with manager() as agent:
        agent.preflight("s", history(3))
        status = agent.status("s")
        results = {"read_file": 3, "bash": 3}
        assert set(status.contents["tool_results"]) == set(results)
        assert list(status.contents["tool_results"]) == ["read_file", "bash"], "the largest first"
        count = agent._engine.tokenizer.count_message
        for tool, number in results.items():
            one = next(
                m for m in agent.history("s") if m.role == "tool" and (len(m.text) > 100) == (tool == "read_file")
            )
            assert status.contents["tool_results"][tool] == number * count(one)
        assert set(status.contents["dialogue"]) == {"user", "assistant"}
        assert set(status.contents["pinned"]) == {"user"}


@pytest.mark.parametrize("turns", [2, 12, 25])
def test_each_part_is_the_sum_of_what_is_in_it(turns: int) -> None:
    """Also after compactions and an undo, in the status as in the record of every call."""
    with manager() as agent:
        said = history(turns)
        for end in range(4, len(said) + 1, 4):
            agent.preflight("s", said[:end])
        if agent.current_plan("s").version:
            agent.undo("s")
            agent.preflight("s", [*said[:-1], user("And now?")])
        status = agent.status("s")
        assert status.contents
        for part in SAID_PARTS:
            told = sum(status.contents.get(part, {}).values())
            assert told == (status.parts[part].tokens if part in status.parts else 0)
        for call in agent.model_calls("s"):
            contents = CallDetails.from_dict(call.details).contents
            for part in SAID_PARTS:
                assert sum(contents.get(part, {}).values()) == call.parts.get(part, 0)


def test_markdown_has_a_row_for_each_part_and_the_room_that_is_left() -> None:
    with manager() as agent:
        agent.preflight("s", history(3))
        status = agent.status("s")
        text = status.to_markdown()
    for name, part in status.parts.items():
        assert f"| {name.replace('_', ' ')} | {part.tokens:,} |" in text
    tool, tokens = next(iter(status.contents["tool_results"].items()))
    assert f"`{tool}` {tokens:,}" in text
    assert f"| free | {status.max_context_tokens - status.used_tokens:,} |" in text
    assert "not compacted" in text


def test_a_tool_with_an_odd_name_stays_in_its_cell() -> None:
    with manager() as agent:
        agent.preflight("s", [user("go"), *tool_exchange("c", "result", tool="a|b`c\nd")])
        rows = [row for row in agent.status("s").to_markdown().splitlines() if row.startswith("|")]
    assert {row.replace("\\|", "").count("|") for row in rows} == {5}
    assert any("a\\|b'c d" in row for row in rows)
