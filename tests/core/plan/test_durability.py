"""How long a tool's result matters: which policy it has, what its message says itself, and which fields stay."""

from __future__ import annotations

import json

import pytest

from compact.core.messages.message import Message
from compact.core.plan.durability import (
    DeterminismMetadata,
    ToolDurability,
    ToolDurabilityPolicy,
    ToolResultEnvelope,
    envelope,
    policy_for,
    tool_policies,
)


def wrapped(text: str = "", *, tool: str = "read_file", **meta: object) -> ToolResultEnvelope:
    return envelope(Message("tool", text, meta=meta), tool_name=tool, arguments="{}", policies={})


def test_the_first_pattern_that_fits_decides_before_the_defaults() -> None:
    own = {"Deploy_*": ToolDurabilityPolicy(keep_last=2), "*": ToolDurabilityPolicy(keep_last=9)}
    assert policy_for("deploy_STAGING", own).keep_last == 2
    assert policy_for("anything", own).keep_last == 9
    assert policy_for("anything", {"other": ToolDurabilityPolicy(keep_last=9)}) == ToolDurabilityPolicy()
    assert policy_for("Ask_human", {}).durability is ToolDurability.NON_REPLAYABLE
    assert policy_for("todo_write", {}).durability is ToolDurability.EPHEMERAL
    assert policy_for("create_order", {}).durability is ToolDurability.ANCHORING


def test_tools_that_are_never_evicted_go_before_their_policies() -> None:
    policies = tool_policies(["pay*"], {"*": ToolDurabilityPolicy(keep_last=3)})
    assert policy_for("pay_invoice", policies) == ToolDurabilityPolicy(never_evict=True)
    assert policy_for("read_file", policies).keep_last == 3
    assert tool_policies(["*"], {"*": ToolDurabilityPolicy(keep_last=3)})["*"].keep_last == 3


def test_what_nobody_can_get_again_is_never_cleared() -> None:
    assert wrapped().may_clear
    assert not wrapped(tool="ask_user").may_clear
    assert not wrapped(durability="non_replayable").may_clear
    kept = ToolDurabilityPolicy(never_evict=True)
    assert not envelope(Message("tool", ""), tool_name="x", arguments="", policies={"x": kept}).may_clear


@pytest.mark.parametrize("durability", ["for ever", None, 3, ["ephemeral"], {"ephemeral": True}])
def test_a_word_on_the_message_overrules_the_tool_if_it_is_one(durability: object) -> None:
    assert wrapped(durability="ephemeral").policy.durability is ToolDurability.EPHEMERAL
    assert wrapped(durability=durability).policy == ToolDurabilityPolicy()


def test_what_a_message_anchors_keeps_its_key_fields() -> None:
    text = json.dumps({"id": 7, "status": "ok", "path": None, "list": [1], "note": "x"})
    assert wrapped(text).preserved_fields() == {}
    assert wrapped(text, durability="anchoring").preserved_fields() == {"id": "7", "status": "ok"}
    assert wrapped(text, tool="create_order").preserved_fields() == {"id": "7", "status": "ok"}
    own = {"create_order": ToolDurabilityPolicy(preserve_fields=("list", "note"))}
    for meta in ({}, {"durability": "anchoring"}):
        found = envelope(Message("tool", text, meta=meta), tool_name="create_order", arguments="", policies=own)
        assert found.preserved_fields() == {"list": "[1]", "note": "x"}


def test_a_kept_field_reads_as_it_was_written() -> None:
    text = json.dumps({"name": {"de": "Löschwasser"}})
    assert wrapped(text, tool="create_order").preserved_fields() == {"name": '{"de": "Löschwasser"}'}


@pytest.mark.parametrize("text", ["not json", "[1, 2]", '"id"', "[" * 100_000])
def test_what_is_no_json_object_has_no_fields_to_keep(text: str) -> None:
    assert wrapped(text, tool="create_order").preserved_fields() == {}


def test_a_call_is_verifiable_by_any_proof() -> None:
    assert not wrapped().determinism.is_verifiable
    assert not wrapped(determinism="yes").determinism.is_verifiable
    found = wrapped(determinism={"etag": "abc", "unknown": 1}).determinism
    assert found == DeterminismMetadata(etag="abc")
    assert found.is_verifiable
