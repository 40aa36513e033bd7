"""Vercel AI SDK: what is particular to it."""

from __future__ import annotations

from typing import Any

import pytest

from compact import CompactConfig, CompactManager
from compact.dialects import DIALECTS
from compact.dialects.vercel import check_vercel
from compact.testing import check_dialect

VERCEL = DIALECTS["vercel"]
USER = {"role": "user", "content": "do it"}


def call(number: int, key: str = "input", **extra: Any) -> dict[str, Any]:
    return {"type": "tool-call", "toolCallId": f"c{number}", "toolName": "f", key: {"n": number, "x": None}, **extra}


def output(number: int, kind: str, value: Any, **extra: Any) -> dict[str, Any]:
    return result(number, output={"type": kind, "value": value}, **extra)


def result(number: int, **given: Any) -> dict[str, Any]:
    return {"type": "tool-result", "toolCallId": f"c{number}", "toolName": "f", **given}


def assistant(*parts: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(parts)}


def tool(*parts: Any, **fields: Any) -> dict[str, Any]:
    return {"role": "tool", "content": list(parts), **fields}


ASKED = {"type": "tool-approval-request", "approvalId": "a1", "toolCallId": "c1"}
APPROVED = {"type": "tool-approval-response", "approvalId": "a1", "approved": True}
PNG = {"type": "media", "data": "aGk=", "mediaType": "image/png"}
OPTIONS = {"anthropic": {"cacheControl": {"type": "ephemeral"}}}
SAMPLES: dict[str, list[Any]] = {
    "every output": [
        {"role": "system", "content": "s", "providerOptions": OPTIONS},
        USER,
        assistant({"type": "reasoning", "text": "hm"}, {"type": "text", "text": "so"}, *map(call, range(7))),
        tool(
            output(0, "text", "a"),
            output(1, "json", {"rows": [1, None]}, providerOptions=OPTIONS),
            output(2, "error-text", "no"),
            output(3, "error-json", ["no"]),
            output(4, "content", [{"type": "text", "text": "see"}, PNG]),
            result(5, output={"type": "execution-denied", "reason": "too dear"}),
            output(6, "json", None),
            providerOptions=OPTIONS,
        ),
        assistant({"type": "text", "text": "done"}),
    ],
    "version 4": [
        USER,
        assistant(call(1, "args"), call(2, "args"), call(3, "args")),
        tool(result(1, result="text"), result(2, result={"a": [1]}, isError=True)),
        tool(result(3, result=None)),
        {"role": "assistant", "content": "done", "id": "msg-1"},
    ],
    "tools of the provider": [
        USER,
        assistant(call(1, providerExecuted=True), output(1, "json", []), {"type": "text", "text": "found"}, call(2)),
        tool(output(2, "text", "")),
    ],
    "approved, not run yet": [USER, assistant(call(1), ASKED), tool(APPROVED)],
    "approved and run": [USER, assistant(call(1), ASKED), tool(APPROVED), tool(output(1, "text", "x"))],
    "approved and run in one message": [
        USER,
        assistant(call(1), call(2), ASKED),
        tool(APPROVED, output(1, "text", "x"), output(2, "text", "y")),
    ],
    "files": [
        {
            "role": "user",
            "content": [{"type": "file", "data": "aGk=", "mediaType": "application/pdf", "filename": "a"}],
        },
        assistant({"type": "file", "data": "aGk=", "mediaType": "image/png"}, {"type": "x_new", "y": 1}),
    ],
}


@pytest.mark.parametrize("name", SAMPLES)
def test_messages_are_made_from_their_entries_alone(name: str) -> None:
    check_dialect(VERCEL, SAMPLES[name])


@pytest.mark.parametrize("name", SAMPLES)
def test_a_list_comes_back_as_it_is(name: str) -> None:
    with CompactManager(CompactConfig(state={"url": "memory:"}, telemetry={"exporter": "none"})) as manager:
        out = manager.preflight("s", SAMPLES[name])
    assert all(a is b for a, b in zip(out, SAMPLES[name], strict=True))


@pytest.mark.parametrize("keys", [("input", "output"), ("args", "result")])
def test_results_are_cleared_and_none_is_lost(keys: tuple[str, str]) -> None:
    """Every call in a compacted prompt has its result, and what was said in results is in the log."""
    items: list[Any] = [USER]
    for number in range(12):
        said = f"result {number} " * 60
        given = {"output": {"type": "text", "value": said}} if keys[1] == "output" else {"result": said}
        items += [assistant({"type": "text", "text": "next"}, call(number, keys[0])), tool(result(number, **given))]
    policy = {"hard_cap_buffer": 10, "keep_recent_turns": 1, "keep_tool_io_pairs": 1}
    manager = CompactManager(CompactConfig(max_context_tokens=1_500, policy=policy, telemetry={"exporter": "none"}))
    out = manager.preflight("s", items)
    assert manager.current_plan("s").version == 1
    assert check_vercel(out, known_only=True) == ()
    assert out[-1] is items[-1]
    assert [message.text for message in manager.history("s") if message.role == "tool"][3] == "result 3 " * 60
    assert manager.preflight("s", out) == out


def test_a_result_that_was_replaced_is_a_text_of_the_same_outcome() -> None:
    entries = [entry for block in VERCEL.read(SAMPLES["every output"], 0) for entry in block.entries]
    results = [{**entry, "content": "[cleared]"} for entry in entries if entry["role"] == "tool"]
    parts = [block.items[0]["content"][0] for block in VERCEL.write(results)]
    kinds = ["text", "text", "error-text", "error-text", "text", "error-text", "text"]
    assert [part["output"]["type"] for part in parts] == kinds
    assert {part["output"]["value"] for part in parts} == {"[cleared]"}


def test_a_result_that_was_made_up_names_its_tool() -> None:
    with CompactManager(CompactConfig(state={"url": "memory:"}, telemetry={"exporter": "none"})) as manager:
        out = manager.preflight("s", [USER, assistant(call(1)), {"role": "user", "content": "stop"}])
    assert check_vercel(out) == ()
    assert out[2]["content"][0]["toolName"] == "f"


@pytest.mark.parametrize(
    ("items", "rule"),
    [
        ([], "no_messages"),
        ([7], "not_a_message"),
        ([{"role": "developer", "content": "x"}], "unknown_role"),
        ([{"role": "system", "content": [{"type": "text", "text": "x"}]}], "wrong_content"),
        ([{"role": "tool", "content": "x"}], "wrong_content"),
        ([{"role": "user", "content": []}], "empty_content"),
        ([{"role": "user", "content": [call(1)]}], "wrong_part"),
        ([{"role": "user", "content": [{"text": "x"}]}], "wrong_part"),
        ([{"role": "user", "content": [{"type": "file", "data": "x"}]}], "incomplete_part"),
        ([USER, assistant(call(1)), tool({**result(1), "output": "bare"})], "wrong_output"),
        ([USER, assistant(call(1)), tool(output(1, "text", {}))], "wrong_output"),
        ([USER, assistant(call(1))], "call_without_result"),
        ([USER, assistant(call(1)), USER, tool(output(1, "text", "x"))], "call_without_result"),
        ([USER, tool(output(1, "text", "x"))], "result_without_call"),
        ([USER, assistant(call(1), call(1)), tool(output(1, "text", "x"))], "duplicate_call_id"),
        ([USER, tool(APPROVED)], "unknown_approval"),
        ([{**USER, "meta": {}}], "unknown_key"),
    ],
)
def test_what_the_sdk_rejects_is_known(items: list[Any], rule: str) -> None:
    assert rule in {violation.rule for violation in check_vercel(items)}
