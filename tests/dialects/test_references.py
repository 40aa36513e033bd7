"""References of the Responses API: a call or a result that the provider keeps, beside others that are in the list."""

from __future__ import annotations

from typing import Any

import pytest

from compact import CompactConfig, CompactManager
from compact.dialects import DIALECTS
from compact.testing import check_dialect

USER = {"role": "user", "content": "do it"}


def call(number: int) -> dict[str, Any]:
    return {"type": "function_call", "call_id": f"c{number}", "name": "f", "arguments": "{}", "id": f"fc_{number}"}


def output(number: int, text: str = "result") -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": f"c{number}", "output": text}


def reference(name: str) -> dict[str, Any]:
    return {"type": "item_reference", "id": name}


def manager_for(window: int) -> CompactManager:
    policy = {"hard_cap_buffer": 10, "keep_recent_turns": 1, "keep_tool_io_pairs": 1}
    return CompactManager(
        CompactConfig(
            max_context_tokens=window, policy=policy, state={"url": "memory:"}, telemetry={"exporter": "none"}
        )
    )


HISTORIES: dict[str, list[dict[str, Any]]] = {
    "the call in the list comes first": [USER, call(2), reference("fc_1"), output(2), output(1)],
    "the reference comes first": [USER, reference("fc_1"), call(2), output(1), output(2)],
    "results in another order": [USER, call(2), reference("fc_1"), output(1), output(2)],
    "references only": [USER, reference("fc_1"), reference("fc_2"), output(1), output(2)],
    "reasoning and words by reference": [USER, reference("rs_1"), reference("fc_1"), reference("msg_1"), output(1)],
    "two rounds": [USER, reference("rs_1"), reference("fc_1"), output(1), USER, reference("fc_2"), output(2)],
    "the result by reference": [USER, call(1), reference("fco_1"), USER],
}


@pytest.mark.parametrize("name", HISTORIES)
def test_a_list_with_references_comes_back_as_it_is_and_no_result_is_lost(name: str) -> None:
    items = HISTORIES[name]
    check_dialect(DIALECTS["responses"], items)
    manager = manager_for(100_000)
    out = manager.preflight("s", items)
    assert all(a is b for a, b in zip(out, items, strict=True))
    answered = [message.tool_call_id for message in manager.history("s") if message.role == "tool"]
    assert answered == [item["call_id"] for item in items if item.get("type") == "function_call_output"]


def test_a_result_that_comes_later_finds_its_reference() -> None:
    manager = manager_for(100_000)
    first = [USER, call(2), reference("fc_1"), output(2)]
    manager.preflight("s", first)
    assert manager.preflight("s", [*first, output(1)]) == [*first, output(1)]


def test_a_compacted_history_with_references_keeps_pairs_together() -> None:
    items = [USER]
    for number in range(0, 24, 2):
        items += [
            call(number),
            reference(f"fc_{number + 1}"),
            output(number, "a " * 200),
            output(number + 1, "b " * 99),
        ]
    manager = manager_for(1_500)
    out = manager.preflight("s", items)
    assert manager.current_plan("s").version == 1
    assert DIALECTS["responses"].check(out) == ()
    assert out[-1] is items[-1]
    assert manager.preflight("s", out) == out


@pytest.mark.parametrize(
    ("items", "rule"),
    [
        ([USER, reference("fc_1"), output(1), output(2)], "result_without_call"),
        ([USER, reference("fc_1"), call(2)], "call_without_result"),
        ([USER, call(1), reference("x_1"), call(2)], "call_without_result"),
    ],
)
def test_a_reference_stands_for_one_item_only(items: list[Any], rule: str) -> None:
    assert [violation.rule for violation in DIALECTS["responses"].check(items)] == [rule]
