"""The scenario itself: a bare loop passes it with compaction, and fails it without."""

from __future__ import annotations

from typing import Any

import pytest

from adapters.scenario import TOOL_SCHEMA, Call, Rejected, Scenario, Watch, fact, look_up
from compact.recall.tool import TOOL_SCHEMA as RECALL_SCHEMA
from compact.tokens import get_tokenizer

TOOLS = [TOOL_SCHEMA, RECALL_SCHEMA]


def run(watch: Watch, before_call: Any, recall: Any) -> list[dict[str, Any]]:
    """An own loop in Chat Completions, the shortest there is."""
    script = watch.scenario
    history: list[dict[str, Any]] = [{"role": "user", "content": script.protected, "meta": {"protected": True}}]
    for prompt in script.prompts:
        history.append({"role": "user", "content": prompt})
        while True:
            step = watch.ask(before_call(history), "chat", tools=TOOLS, instructions=script.instructions)
            if not isinstance(step, Call):
                history.append({"role": "assistant", "content": step.text})
                break
            function = {"name": step.name, "arguments": step.arguments_json}
            call = {"id": step.call_id, "type": "function", "function": function}
            history.append({"role": "assistant", "content": None, "tool_calls": [call]})
            result = look_up(**step.arguments) if step.name == "look_up_depot" else recall(step.arguments["query"])
            history.append({"role": "tool", "tool_call_id": step.call_id, "content": result})
    return history


def test_a_bare_loop_with_compaction_passes() -> None:
    watch = Watch()
    manager = watch.manager()
    history = run(
        watch,
        lambda items: manager.preflight("s", items, tools=TOOLS, instructions=watch.scenario.instructions),
        lambda query: str(manager.recall("s", query)),
    )
    watch.check(manager, "s", stored=[str(message.get("content")) for message in history])


def test_a_bare_loop_without_compaction_is_rejected() -> None:
    watch = Watch()
    with pytest.raises(Rejected, match="tokens, more than the 6,500 there are"):
        run(watch, lambda items: [{k: v for k, v in item.items() if k != "meta"} for item in items], str)


def test_meta_is_rejected_as_a_provider_would() -> None:
    with pytest.raises(Rejected, match="meta"):
        run(Watch(), lambda items: items, str)


def test_it_is_as_large_as_it_says() -> None:
    """Forty calls, three turns, about 600 tokens a result, no line twice."""
    steps = Scenario().steps
    assert (sum(isinstance(step, Call) for step in steps), len(steps)) == (40, 43)
    count = get_tokenizer("gpt-4o").count_text
    assert all(500 <= count(look_up(depot)) <= 720 for depot in Scenario().depots)
    lines = [line for depot in Scenario().depots for line in look_up(depot).splitlines()]
    assert len(set(lines)) == len(lines)
    assert len({fact(depot) for depot in Scenario().depots}) == 39
