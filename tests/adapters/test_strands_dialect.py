"""The messages of Strands, in and out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given

from adapters.dialect_properties import (
    few,
    gives_back_own_objects,
    keeps_what_the_doors_rely_on,
    stays_legal,
    windows,
)
from compact.adapters.strands.messages import StrandsDialect
from compact.dialects.dialect import mark_summary
from compact.dialects.turns import OPENING
from compact.testing import check_dialect
from dialect_conversations import PROTECTED, Step, conversations

PNG = b"\x89PNG\r\n\x1a\n" + b"0" * 40


def user(*blocks: dict[str, Any], protected: bool = False) -> dict[str, Any]:
    """A message of the user's."""
    around = {"metadata": {"custom": {"protected": True}}} if protected else {}
    return {"role": "user", "content": list(blocks), **around}


def assistant(*blocks: dict[str, Any]) -> dict[str, Any]:
    """A message of the model's."""
    return {"role": "assistant", "content": list(blocks)}


def use(call_id: str, **arguments: Any) -> dict[str, Any]:
    """A call."""
    return {"toolUse": {"toolUseId": call_id, "name": "f", "input": arguments}}


def result(call_id: str, *content: dict[str, Any], status: str = "success") -> dict[str, Any]:
    """What a call came to."""
    return {"toolResult": {"toolUseId": call_id, "status": status, "content": list(content)}}


def thought(text: str) -> dict[str, Any]:
    """Reasoning that its provider has signed."""
    return {"reasoningContent": {"reasoningText": {"text": text, "signature": "c2lnbmVk"}}}


SAMPLE = [
    user({"text": "hi"}, {"image": {"format": "png", "source": {"bytes": PNG}}}),
    assistant(thought("hm"), {"text": "ok"}, use("1", a=1), use("2")),
    user(
        result("1", {"text": "r"}),
        result("2", {"json": {"a": [1, 2]}}, {"document": {"name": "d", "source": {"bytes": b"1"}}}, status="error"),
        {"text": "and?"},
    ),
    assistant({"citationsContent": {"citations": [{"title": "t"}], "content": [{"text": "cited"}]}}),
    user({"text": "x"}, {"cachePoint": {"type": "default"}}, {"guardContent": {"text": {"text": "g"}}}),
    assistant({"reasoningContent": {"redactedContent": b"xx"}}, use("1", a="ä"), {"text": "after"}),
    user(result("1")),
]


class TestDialect:
    """Bedrock's messages, in and out."""

    def test_it_conforms(self) -> None:
        check_dialect(StrandsDialect(), SAMPLE)

    def test_pins_of_strands_protect(self) -> None:
        pinned = {**user({"text": "a"}), "metadata": {"custom": {"pinned": True}}}
        (block,) = StrandsDialect("keep").read([pinned], 0)
        assert block.entries[0]["meta"] == {"pinned": True, "keep": True}

    def test_a_summary_travels_in_the_users_turn(self) -> None:
        """It never stands before the reasoning of an open tool loop, and never opens as an assistant."""
        dialect = StrandsDialect()
        tail = [entry for block in dialect.read(SAMPLE[1:], 0) for entry in block.entries]
        summary = mark_summary({"role": "assistant", "content": "<COMPACT-SUMMARY v1>"})
        items = [item for block in dialect.join(list(dialect.write([summary, *tail]))) for item in block.items]
        assert items[0] == user({"text": "<COMPACT-SUMMARY v1>"})
        assert items[1:] == SAMPLE[1:]
        assert not dialect.check(items)

    def test_neighbours_are_merged(self) -> None:
        dialect = StrandsDialect()
        entries = [entry for block in dialect.read([*SAMPLE[:1], *SAMPLE[4:]], 0) for entry in block.entries]
        items = [item for block in dialect.join(list(dialect.write(entries))) for item in block.items]
        assert not dialect.check(items)
        assert items[0]["content"] == SAMPLE[0]["content"] + SAMPLE[4]["content"]

    def test_an_assistant_never_begins(self) -> None:
        dialect = StrandsDialect()
        entries = [entry for block in dialect.read(SAMPLE[3:4], 0) for entry in block.entries]
        items = [item for block in dialect.join(list(dialect.write(entries))) for item in block.items]
        assert items == [user({"text": OPENING}), SAMPLE[3]]

    def test_stubs_are_honoured(self) -> None:
        """A cleared result is its stub, a shortened call its shorter arguments; the rest stays."""
        dialect = StrandsDialect()
        call, first, *_ = (entry for block in dialect.read(SAMPLE[1:3], 0) for entry in block.entries)
        call = {**call, "tool_calls": [{**call["tool_calls"][0], "function": {"name": "f", "arguments": '{"a": 0}'}}]}
        one, two = (block.items[0] for block in dialect.write([call, {**first, "content": "[cleared]"}]))
        assert one == assistant(thought("hm"), {"text": "ok"}, use("1", a=0))
        assert two == user(result("1", {"text": "[cleared]"}))

    @pytest.mark.parametrize(
        ("items", "rule"),
        [
            ([assistant({"text": "a"})], "roles_alternate"),
            ([user({"text": "a"}), user({"text": "b"})], "roles_alternate"),
            ([user()], "empty_content"),
            ([user({"text": " "})], "empty_content"),
            ([user({"text": "a"}), assistant(use("1"))], "call_without_result"),
            ([user(result("1"))], "result_without_call"),
            ([user({"text": "a"}), assistant(use("1"), use("1")), user(result("1"))], "duplicate_call_id"),
            ([user({"text": "a"}), assistant(use("1")), user({"text": "b"}, result("1"))], "result_not_first"),
            ([user(use("1"))], "wrong_role"),
            ([{**user({"text": "a"}), "meta": {}}], "unknown_key"),
            ([user({"text": "a"}), assistant({"text": "b"}, thought("t"), use("1"))], "reasoning_not_first"),
        ],
    )
    def test_what_bedrock_rejects(self, items: list[Any], rule: str) -> None:
        assert rule in {violation.rule for violation in StrandsDialect().check(items)}

    def test_foreign_messages_are_named(self) -> None:
        with pytest.raises(ValueError, match=r"messages\[4\].*strands"):
            list(StrandsDialect().read([{"role": "user", "content": "plain"}], 4))


def write(steps: Sequence[Step]) -> list[Any]:
    """A random conversation as Strands has it: results and the user's next words are one turn."""
    items: list[Any] = []
    for step in steps:
        for item in written(step):
            if items and items[-1]["role"] == item["role"]:
                items[-1] = {**items[-1], "content": items[-1]["content"] + item["content"]}
            else:
                items.append(item)
    return items


def written(step: Step) -> Iterator[dict[str, Any]]:
    """The messages of one step."""
    marked = {"metadata": {"custom": PROTECTED}} if step.is_protected else {}
    image = [{"image": {"format": "png", "source": {"bytes": PNG}}}]
    if step.role == "user":
        cache = [{"cachePoint": {"type": "default"}}] if step.is_marked else []
        yield {**user({"text": step.text}, *(image if step.has_image else []), *cache), **marked}
        return
    blocks = [thought(step.thinks)] if step.thinks else []
    blocks += [{"text": step.text}] if step.text else []
    blocks += [{"x_unknown": {"deep": [step.number]}}] if step.is_odd else []
    yield {**assistant(*blocks, *(use(call.id, **call.arguments) for call in step.calls)), **marked}
    if step.calls:
        yield user(
            *(
                result(
                    call.id,
                    *([{"text": call.result}] if call.result and not call.has_image else []),
                    *([{"json": {"said": call.result}}, *image] if call.has_image else []),
                    status="error" if call.failed and (call.result or call.has_image) else "success",
                )
                for call in step.calls
            )
        )


class TestProperties:
    """Over random conversations."""

    @given(steps=conversations())
    @few
    def test_it_conforms(self, steps: list[Step]) -> None:
        bare = [{"role": item["role"], "content": item["content"]} for item in write(steps)]
        keeps_what_the_doors_rely_on(StrandsDialect(), bare)

    @given(steps=conversations())
    @few
    def test_own_objects_come_back(self, steps: list[Step]) -> None:
        gives_back_own_objects(StrandsDialect(), write(steps))

    @given(steps=conversations(min_turns=2), window=windows)
    @few
    def test_every_prompt_is_legal_and_fits(self, steps: list[Step], window: int) -> None:
        stays_legal(StrandsDialect(), write, steps, window)
