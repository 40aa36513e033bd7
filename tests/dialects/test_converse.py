"""Bedrock Converse: what is particular to it."""

from __future__ import annotations

from typing import Any

import boto3
import pytest
from botocore.validate import ParamValidator

from compact import CompactConfig, CompactManager
from compact.dialects import DIALECTS
from compact.dialects.converse import check_converse
from compact.testing import check_dialect

CONVERSE = DIALECTS["converse"]
MARK = {"cachePoint": {"type": "default"}}
PNG = b"\x89PNG"


def user(*blocks: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


def use(call_id: str, **given: Any) -> dict[str, Any]:
    return {"toolUse": {"toolUseId": call_id, "name": "f", "input": given}}


def result(call_id: str, *content: Any, **fields: Any) -> dict[str, Any]:
    return {"toolResult": {"toolUseId": call_id, "content": list(content), **fields}}


THOUGHT = {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "sig"}}}
HIDDEN = {"reasoningContent": {"redactedContent": b"\x00\xff"}}
IMAGE = {"image": {"format": "png", "source": {"bytes": PNG}}}
DOCUMENT = {"document": {"format": "pdf", "name": "report", "source": {"bytes": b"%PDF"}}}
STORED = {"image": {"format": "png", "source": {"s3Location": {"uri": "s3://a/b.png"}}}}
SAMPLES: dict[str, list[Any]] = {
    "attachments": [user({"text": "look"}, IMAGE, DOCUMENT, STORED)],
    "reasoning": [user({"text": "a"}), assistant(THOUGHT, HIDDEN, {"text": "b"}, use("1")), user(result("1"))],
    "marks": [
        user({"text": "a"}, MARK, {"text": "b"}),
        assistant({"text": "c"}, use("1"), use("2"), MARK),
        user(result("1", {"text": "r"}), MARK, result("2", {"json": {"a": [None, 1]}}), MARK, {"text": "go on"}),
    ],
    "results": [
        user({"text": "a"}),
        assistant(use("1", deep={"x": None}), use("2")),
        user(result("1", {"text": "no"}, IMAGE, status="error"), result("2", status="success")),
        assistant({"text": "b"}),
        user({"guardContent": {"text": {"text": "check me"}}}, {"x_new": {"data": b"1"}}),
    ],
}


@pytest.mark.parametrize("name", SAMPLES)
def test_messages_are_made_from_their_entries_alone(name: str) -> None:
    check_dialect(CONVERSE, SAMPLES[name])


def long_history() -> list[Any]:
    items: list[Any] = [user({"text": "do it"}, IMAGE)]
    for number in range(12):
        mark = [MARK] if number % 4 == 0 else []
        items.append(assistant(THOUGHT, {"text": f"step {number}"}, use(f"a{number}"), use(f"b{number}", n=number)))
        said = result(f"a{number}", {"text": f"result {number} " * 60}, status="success")
        items.append(user(said, *mark, result(f"b{number}", {"json": {"rows": [number] * 40}})))
    return items


def test_boto_takes_what_was_compacted() -> None:
    """The client checks every request against the model of the API before it leaves."""
    client = boto3.client("bedrock-runtime", region_name="eu-west-1")
    shape = client.meta.service_model.operation_model("Converse").input_shape
    policy = {"hard_cap_buffer": 10, "keep_recent_turns": 1, "keep_tool_io_pairs": 1}
    config = CompactConfig(max_context_tokens=4_500, policy=policy, telemetry={"exporter": "none"})
    manager = CompactManager(config)
    items = long_history()
    out = manager.preflight("s", items)
    assert manager.current_plan("s").version == 1
    assert check_converse(out, known_only=True) == ()
    assert not ParamValidator().validate({"modelId": "m", "messages": out}, shape).has_errors()
    assert out[-1] is items[-1]
    assert "<COMPACT-SUMMARY" in str(out[0])
    assert manager.preflight("s", out) == out


def test_a_cleared_result_keeps_its_place_its_status_and_its_mark() -> None:
    _, failed, _ = (entry for block in CONVERSE.read(SAMPLES["results"][1:3], 0) for entry in block.entries)
    (block,) = CONVERSE.write([{**failed, "content": "[cleared]"}])
    assert block.items[0] == user(result("1", {"text": "[cleared]"}, status="error"))
    marked = next(e for b in CONVERSE.read(SAMPLES["marks"][2:], 0) for e in b.entries)
    (block,) = CONVERSE.write([{**marked, "content": "[cleared]"}])
    assert block.items[0] == user(result("1", {"text": "[cleared]"}), MARK)


def test_a_message_that_says_nothing_is_made_to_say_so() -> None:
    """Neither a mark nor reasoning can stand alone, and a failed call must say something."""
    entries = [entry for block in CONVERSE.read(SAMPLES["marks"][:1], 0) for entry in block.entries]
    (block,) = CONVERSE.write([{**entries[0], "content": ""}])
    assert CONVERSE.check([*block.items]) == ()
    assert block.items[0]["content"][-1] == MARK
    made_up = {"role": "tool", "tool_call_id": "1", "content": "", "native": {"result": {"status": "error"}}}
    (block,) = CONVERSE.write([made_up])
    assert CONVERSE.check([user({"text": "a"}), assistant(use("1")), *block.items]) == ()


@pytest.mark.parametrize(
    ("items", "rule"),
    [
        ([], "no_messages"),
        (["x"], "not_a_message"),
        ([{"role": "system", "content": [{"text": "x"}]}], "unknown_role"),
        ([{"role": "user", "content": "x"}], "empty_content"),
        ([assistant({"text": "x"})], "roles_alternate"),
        ([user({"text": "x"}), user({"text": "y"})], "roles_alternate"),
        ([user({"text": " "})], "empty_content"),
        ([user({"text": "x", "image": {}})], "not_a_block"),
        ([user({"text": "x"}), assistant(use("1"))], "call_without_result"),
        ([user({"text": "x"}), assistant(use("1")), user({"text": "y"})], "call_without_result"),
        ([user(result("1"))], "result_without_call"),
        ([user({"text": "x"}), assistant(use("1")), user(result("1", status="error"))], "empty_content"),
        ([user({"text": "x"}), assistant(use("1")), user({"text": "y"}, result("1"))], "result_not_first"),
        ([user({"text": "x"}), assistant(use("1"), use("1")), user(result("1"))], "duplicate_call_id"),
        ([user({"text": "x"}), assistant({"toolUse": {"toolUseId": "1"}}), user(result("1"))], "incomplete_call"),
        ([user(THOUGHT, {"text": "x"})], "wrong_role"),
        ([user(DOCUMENT)], "document_alone"),
        ([user(MARK, {"text": "x"})], "mark_without_content"),
        ([user({"text": "x"}), assistant(THOUGHT, MARK, {"text": "y"})], "mark_without_content"),
        ([user({"text": "x"}, *[MARK] * 5)], "too_many_marks"),
        ([{**user({"text": "x"}), "meta": {}}], "unknown_key"),
    ],
)
def test_what_converse_rejects_is_known(items: list[Any], rule: str) -> None:
    assert rule in {violation.rule for violation in check_converse(items)}


def test_results_stand_first_in_a_message_that_was_put_together() -> None:
    answer = {"role": "tool", "tool_call_id": "1", "content": "r", "native": {"result": {}, "marks": [MARK]}}
    (block,) = CONVERSE.join(list(CONVERSE.write([{"role": "user", "content": "wait"}, answer])))
    assert block.items[0] == user(result("1", {"text": "r"}), MARK, {"text": "wait"})
