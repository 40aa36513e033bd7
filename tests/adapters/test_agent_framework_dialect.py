"""The messages of Microsoft Agent Framework, in and out."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from agent_framework import (
    Content,
    Message,
)
from hypothesis import given

from adapters.dialect_properties import (
    few,
    gives_back_own_objects,
    keeps_what_the_doors_rely_on,
    stays_legal,
    windows,
)
from compact.adapters.agent_framework import (
    protected,
)
from compact.adapters.agent_framework.messages import message_data, message_of
from compact.adapters.agent_framework.requests import DIALECT
from compact.adapters.support import PlainItems
from compact.testing import check_dialect
from dialect_conversations import PROTECTED, Step, conversations

PNG = b"\x89PNG\r\n\x1a\n" + b"0" * 40
MESSAGES = [
    Message("system", ["be good"]),
    Message("user", ["hi", Content.from_data(PNG, "image/png")], author_name="Bo"),
    Message(
        "assistant",
        [
            Content.from_text_reasoning(text="hm", protected_data="zz"),
            Content.from_text("ok"),
            Content.from_function_call("1", "f", arguments='{"a": 1}'),
            Content.from_function_call("2", "f", arguments={"b": 2}),
        ],
    ),
    Message(
        "tool",
        [
            Content.from_function_result("1", result="r"),
            Content.from_function_result("2", result=[Content.from_text("a"), Content.from_data(PNG, "image/png")]),
        ],
    ),
    Message("assistant", [Content.from_function_call("3", "f"), Content.from_text("and")]),
    Message("tool", [Content("function_result", call_id="3", result={"x": 1})]),
    Message("assistant", [Content.from_function_call("h", "web", hosted=True), Content.from_text("done")]),
    Message("assistant", [Content.from_text_reasoning(protected_data="enc"), Content.from_text("more")]),
    Message("user", ["x", Content.from_hosted_file("file-1")], additional_properties={"mine": 1}),
]


class TestDialect:
    """Messages, in and out."""

    def test_it_conforms(self) -> None:
        check_dialect(DIALECT, [message_data(message) for message in MESSAGES])

    def test_data_and_messages_are_the_same(self) -> None:
        for message in MESSAGES:
            assert message_data(message_of(message_data(message))) == message_data(message)

    def test_annotations_of_the_framework_are_no_difference(self) -> None:
        one, two = Message("user", ["a"]), Message("user", ["a"], message_id="msg_1")
        two.additional_properties["_group"] = {"id": "g"}
        assert message_data(one) == message_data(two)

    def test_unchanged_messages_are_the_callers_own(self) -> None:
        items = PlainItems[Message].read(MESSAGES, message_data)
        changed = {"role": "user", "contents": [{"type": "text", "text": "new"}]}
        back = items.restore([items.plain[0], changed, items.plain[2]], message_of)
        assert back[0] is MESSAGES[0]
        assert back[1].text == "new"
        assert back[2] is MESSAGES[2]

    def test_a_tag_becomes_meta(self) -> None:
        (block,) = DIALECT.read([message_data(protected(Message("user", ["a"])))], 0)
        assert block.entries[0]["meta"] == {"protected": True}

    def test_stubs_are_honoured(self) -> None:
        """A cleared result is its stub, whatever it was; a shortened call has its shorter arguments."""
        items = [message_data(message) for message in MESSAGES[2:6]]
        call, first, second, third, data = (entry for block in DIALECT.read(items, 0) for entry in block.entries)
        shorter = {**call["tool_calls"][1], "function": {"name": "f", "arguments": '{"b": 0}'}}
        cleared = [{**entry, "content": "[cleared]"} for entry in (first, second, data)]
        entries = [{**call, "tool_calls": [call["tool_calls"][0], shorter]}, *cleared[:2], third, cleared[2]]
        one, two, _, three = (block.items[0] for block in DIALECT.write(entries))
        assert one["contents"][-1]["arguments"] == {"b": 0}
        assert [result["result"] for result in two["contents"]] == ["[cleared]"] * 2
        assert two["contents"][1]["items"] == [{"type": "text", "text": "[cleared]"}]
        assert three["contents"][0]["result"] == "[cleared]"

    def test_a_summary_is_told_as_the_users(self) -> None:
        (block,) = DIALECT.write([{"role": "assistant", "content": "<COMPACT-SUMMARY v1>"}])
        assert block.items[0] == {"role": "user", "contents": [{"type": "text", "text": "<COMPACT-SUMMARY v1>"}]}

    def test_illegal_prompts_are_found(self) -> None:
        call, result = (message_data(message) for message in MESSAGES[4:6])
        assert {violation.rule for violation in DIALECT.check([call])} == {"call_without_result"}
        assert {violation.rule for violation in DIALECT.check([result])} == {"result_without_call"}
        with pytest.raises(ValueError, match=r"messages\[3\].*agent-framework"):
            list(DIALECT.read([{"role": "user", "content": "a"}], 3))


def write(steps: Sequence[Step]) -> list[Any]:
    """A random conversation as data of the framework."""
    return [message_data(message) for step in steps for message in written(step)]


def written(step: Step) -> Iterator[Message]:
    """The messages of one step."""
    tags = {"compact": PROTECTED} if step.is_protected else None
    image = [Content.from_data(PNG, "image/png")]
    if step.role == "user":
        yield Message("user", [step.text, *(image if step.has_image else [])], additional_properties=tags)
        return
    contents = [Content.from_text_reasoning(text=step.thinks, protected_data="e" * 40)] if step.thinks else []
    contents += [Content.from_function_call("own", "web", hosted=True)] if step.serves else []
    contents += [Content.from_text(step.text)] if step.text or not step.calls else []
    for call in step.calls:
        arguments: Any = call.arguments if call.failed else json.dumps(call.arguments)
        contents.append(Content.from_function_call(call.id, call.tool, arguments=arguments))
    yield Message("assistant", contents, additional_properties=tags)
    results = [
        Content.from_function_result(
            call.id, result=[Content.from_text(call.result), *image] if call.has_image else call.result
        )
        for call in step.calls
    ]
    if step.is_odd:  # one message for all results, or one for each
        yield from (Message("tool", [result]) for result in results)
    elif results:
        yield Message("tool", results)


class TestProperties:
    """Over random conversations."""

    @given(steps=conversations())
    @few
    def test_it_conforms(self, steps: list[Step]) -> None:
        keeps_what_the_doors_rely_on(DIALECT, write(steps))

    @given(steps=conversations())
    @few
    def test_own_objects_come_back(self, steps: list[Step]) -> None:
        gives_back_own_objects(DIALECT, write(steps))

    @given(steps=conversations(min_turns=2), window=windows)
    @few
    def test_every_prompt_is_legal_and_fits(self, steps: list[Step], window: int) -> None:
        stays_legal(DIALECT, write, steps, window)
