"""LangChain's messages as a dialect: nothing is lost on the way, and what goes out is legal."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ChatMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.messages.utils import convert_to_messages

from adapters.langchain_parts import wire
from compact import CompactConfig, CompactManager
from compact.adapters.langchain.messages import MARK, LangChainDialect, protected, without_mark
from compact.config import CompactPolicy
from compact.core.errors import InsufficientBudget, InvalidHistory
from compact.dialects import CHAT, get_dialect
from compact.dialects.dialect import Entry
from compact.dialects.turns import OPENING
from compact.testing import WordTokenizer, check_dialect
from conversations import SMALL_STRATEGIES, Wire, histories

DIALECT = LangChainDialect()

ANTHROPIC: list[BaseMessage] = [
    SystemMessage("Be brief."),
    HumanMessage(
        [{"type": "text", "text": "What is in it?"}, {"type": "image", "base64": "aGk=", "mime_type": "image/png"}]
    ),
    AIMessage(
        [
            {"type": "thinking", "thinking": "A picture.", "signature": "c2ln"},
            "I will look.",
            {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"at": "the left"}},
            {"type": "text", "text": "And look again.", "citations": []},
            {"type": "tool_use", "id": "toolu_2", "name": "look", "input": {"at": "the right"}},
        ],
        tool_calls=[
            {"name": "look", "args": {"at": "the left"}, "id": "toolu_1"},
            {"name": "look", "args": {"at": "the right"}, "id": "toolu_2"},
        ],
        id="lc-1",
        response_metadata={"model_provider": "anthropic"},
    ),
    ToolMessage([{"type": "text", "text": "A bridge"}], tool_call_id="toolu_1", name="look", id="lc-2"),
    ToolMessage("cannot see", tool_call_id="toolu_2", status="error"),
    AIMessage("A bridge.", name="painter"),
]
RESPONSES: list[BaseMessage] = [
    ChatMessage("Answer in rhyme.", role="developer"),
    HumanMessage("Hello", name="Wren", id="lc-3"),
    AIMessage(
        [
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAA"},
            {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "look", "arguments": '{"at":"all"}'},
        ],
        tool_calls=[{"name": "look", "args": {"at": "all"}, "id": "call_1"}],
    ),
    ToolMessage("nothing", tool_call_id="call_1"),
]
CHAT_COMPLETIONS: list[BaseMessage] = [
    HumanMessage("Go on"),
    AIMessage("", tool_calls=[{"name": "look", "args": {}, "id": "call_1"}]),
    ToolMessage("", tool_call_id="call_1"),
    AIMessage(
        "",
        invalid_tool_calls=[
            {"name": "look", "args": '{"at": "the', "id": "call_2", "error": "cut", "type": "invalid_tool_call"}
        ],
    ),
    ToolMessage("your arguments were no JSON", tool_call_id="call_2"),
    AIMessage("Sorry.", additional_kwargs={"refusal": "no"}),
]


@pytest.mark.parametrize("sample", [ANTHROPIC, RESPONSES, CHAT_COMPLETIONS], ids=["anthropic", "responses", "chat"])
def test_it_is_a_dialect(sample: list[BaseMessage]) -> None:
    check_dialect(DIALECT, sample)


def entries_of(messages: list[BaseMessage]) -> list[Entry]:
    return json.loads(json.dumps([entry for block in DIALECT.read(messages, 0) for entry in block.entries]))


def written(*entries: Entry) -> list[BaseMessage]:
    return [item for block in DIALECT.join(list(DIALECT.write(entries))) for item in block.items]


def test_a_call_is_in_an_entry_once() -> None:
    entry = entries_of(ANTHROPIC)[2]
    assert json.dumps(entry).count("the left") == 1
    assert [call["id"] for call in entry["tool_calls"]] == ["toolu_1", "toolu_2"]
    assert [part["type"] for part in entry["content"]] == ["thinking", "text", "text"]


def test_shorter_arguments_reach_every_place_that_has_them() -> None:
    for sample in (ANTHROPIC, RESPONSES):
        entry = entries_of(sample)[2]
        entry["tool_calls"][0]["function"]["arguments"] = '{"at": "…"}'
        (_, message) = written(entry)
        assert isinstance(message, AIMessage)
        assert message.tool_calls[0]["args"] == {"at": "…"}
        blocks = [
            block
            for block in message.content
            if isinstance(block, dict) and block["type"] in ("tool_use", "function_call")
        ]
        assert blocks[0].get("input", blocks[0].get("arguments")) in ({"at": "…"}, '{"at": "…"}')
        assert "the left" not in str(message)


def test_a_stub_takes_the_place_of_any_content() -> None:
    (_, _, call, result, *_) = entries_of(ANTHROPIC)
    (_, said, stub) = written({**call, "content": "[cut]"}, {**result, "content": "[cleared; recall m4]"})
    assert said.content == "[cut]"
    assert isinstance(said, AIMessage)
    assert [each["id"] for each in said.tool_calls] == ["toolu_1", "toolu_2"]
    assert (stub.content, stub.id, stub.tool_call_id) == ("[cleared; recall m4]", "lc-2", "toolu_1")  # type: ignore[attr-defined]


def test_a_prompt_begins_with_the_user_and_has_system_messages_in_front_only() -> None:
    """Anthropic and Gemini want it so; the same list may go to them."""
    summary = {"role": "assistant", "content": "<COMPACT-SUMMARY v1>"}
    reminder = {"role": "system", "content": "Remember the milk."}
    messages = written(
        {"role": "system", "content": "Be brief."}, summary, *entries_of(CHAT_COMPLETIONS[1:3]), reminder
    )
    assert [type(message) for message in messages] == [
        SystemMessage,
        HumanMessage,
        AIMessage,
        ToolMessage,
        HumanMessage,
    ]
    assert [message.content for message in written(*entries_of(CHAT_COMPLETIONS[1:3]))][:1] == [OPENING]
    placeholder = {"role": "tool", "tool_call_id": "x", "content": "[no result]"}
    assert isinstance(written(placeholder)[-1], ToolMessage)


def test_a_mark_is_meta_and_never_leaves() -> None:
    message = protected(HumanMessage("keep me", additional_kwargs={"x": 1}))
    (entry,) = entries_of([message])
    assert entry["meta"] == {"protected": True}
    assert written(entry) == [message]
    assert [violation.rule for violation in DIALECT.check([message])] == ["unknown_key"]
    assert without_mark(message).additional_kwargs == {"x": 1}
    plain = HumanMessage("hello")
    assert without_mark(plain) is plain


def test_what_programs_attach_is_no_hindrance() -> None:
    """Results for programs and data that is no JSON are not for the model: the log can do without."""
    odd = ToolMessage("42", tool_call_id="c", artifact=object(), response_metadata={"raw": b"\x00", "who": object()})
    assert entries_of([odd])[0]["content"] == "42"
    chunk = AIMessageChunk("hi", tool_call_chunks=[{"name": "look", "args": "{}", "id": "c", "index": 0}])
    (_, message) = written(*entries_of([chunk]))
    assert (type(message), message.content) == (AIMessage, "hi")
    assert message.tool_calls[0]["id"] == "c"  # type: ignore[attr-defined]


@pytest.mark.parametrize("item", [{"role": "wizard", "content": "hi"}, RemoveMessage(id="x")])
def test_anything_else_is_an_error_that_names_its_place(item: Any) -> None:
    manager = CompactManager(CompactConfig())
    with pytest.raises(InvalidHistory) as error:
        manager.preflight("s", [HumanMessage("hello"), item], dialect=DIALECT)
    assert error.value.place == "messages[1]"


def test_what_is_left_of_a_thinking_models_history_is_legal_for_anthropic() -> None:
    """As ChatAnthropic itself puts it on the wire: thinking with its call, results behind it, the user first."""
    history: list[BaseMessage] = [SystemMessage("Be brief."), HumanMessage("Look everywhere.")]
    for number in range(60):
        call = {"name": "look", "args": {"at": f"place {number}"}, "id": f"toolu_{number}"}
        said = [
            {"type": "thinking", "thinking": f"Thought {number}.", "signature": f"sig{number}"},
            {"type": "tool_use", "id": call["id"], "name": "look", "input": call["args"]},
        ]
        seen = ToolMessage(f"sight {number} " * 60, tool_call_id=str(call["id"]))
        history += [AIMessage(said, tool_calls=[call]), seen]  # type: ignore[list-item, arg-type]
    manager = CompactManager(CompactConfig(model="claude-sonnet-4-5", max_context_tokens=6_000))
    model = ChatAnthropic(model_name="claude-sonnet-4-5", api_key="none")  # type: ignore[call-arg, arg-type]
    for end in (40, 80, len(history)):
        prompt = manager.preflight("s", history[:end], dialect=DIALECT)
        payload = model._get_request_payload(prompt)
        assert not get_dialect("anthropic").check(payload["messages"])
        newest = next(message for message in reversed(payload["messages"]) if message["role"] == "assistant")
        assert [block["type"] for block in newest["content"]] == ["thinking", "tool_use"]
    assert len(prompt) < len(history) / 2
    assert len(manager.plans("s")) >= 2


def as_messages(history: list[Wire]) -> list[BaseMessage]:
    """A random conversation in LangChain's form; what LangChain itself cannot hold is left out."""
    known = [
        {key: value for key, value in item.items() if key in ("role", "content", "tool_calls", "tool_call_id")}
        for item in history
    ]
    plain = [{**item, "content": str(item.get("content") or "")} for item in known]
    messages = convert_to_messages(plain)
    return [
        protected(message) if item.get("meta") else message for message, item in zip(messages, history, strict=True)
    ]


@settings(max_examples=40)
@given(histories(legal=True, min_size=4, max_size=40))
def test_whatever_was_said_a_compacted_prompt_is_legal(history: list[Wire]) -> None:
    """And the protected messages are in it, the agent's own are untouched, and the same again gives the same."""
    messages = as_messages(history)
    before = [message.model_copy(deep=True) for message in messages]
    config = CompactConfig(
        max_context_tokens=600,
        policy=CompactPolicy(hard_cap_buffer=0, keep_recent_turns=2, keep_tool_io_pairs=1),
    )
    manager = CompactManager(config, tokenizer=WordTokenizer(), strategies=SMALL_STRATEGIES)
    try:
        prompts = [
            manager.preflight("s", messages[:end], dialect=DIALECT) for end in (len(messages) // 2, len(messages))
        ]
    except InsufficientBudget:
        return
    for prompt in (*prompts, manager.manual_compact("s", messages, dialect=DIALECT)):
        sent = [without_mark(message) for message in prompt]
        assert not DIALECT.check(sent)
        assert not CHAT.check(wire(sent))
    assert [m.content for m in messages if MARK in m.additional_kwargs] == [
        m.content for m in prompt if MARK in m.additional_kwargs
    ]
    assert messages == before
    assert manager.preflight("s", messages, dialect=DIALECT) == prompt
