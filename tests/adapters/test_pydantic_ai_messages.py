"""pydantic-ai's messages as a dialect: nothing is lost on the way, and what goes out is legal."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, settings
from pydantic_ai.messages import (
    BinaryContent,
    CachePoint,
    DocumentUrl,
    ImageUrl,
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    NativeToolCallPart,
    NativeToolReturnPart,
    RetryFeedbackPart,
    RetryInfo,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from compact import CompactConfig, CompactManager
from compact.adapters.pydantic_ai.messages import MARK, PydanticAIDialect, protected
from compact.config import CompactPolicy
from compact.core.errors import InsufficientBudget, InvalidHistory
from compact.dialects.dialect import Entry
from compact.dialects.turns import OPENING
from compact.testing import WordTokenizer, check_dialect
from conversations import SMALL_STRATEGIES, Wire, histories

DIALECT = PydanticAIDialect()

SAMPLE: list[ModelMessage] = [
    ModelRequest(
        [
            SystemPromptPart("Be brief."),
            UserPromptPart(
                [
                    "What is in these?",
                    protected("Never guess."),
                    ImageUrl("https://example.com/a.png", force_download=True),
                    BinaryContent(b"\x89PNG", media_type="image/png", identifier="b"),
                    DocumentUrl("https://example.com/c.pdf"),
                    CachePoint(),
                ]
            ),
        ]
    ),
    ModelResponse(
        [
            ThinkingPart("Pictures.", signature="c2ln", provider_name="anthropic"),
            TextPart("I will look."),
            ToolCallPart("look", {"at": "the left"}, "c1"),
            ToolCallPart("look", '{"at":  "the right"}', "c2", provider_name="openai", id="fc_1"),
            ToolCallPart("look", None, "c3"),
        ],
        model_name="claude",
        provider_name="anthropic",
        provider_details={"x": 1},
        finish_reason="tool_call",
    ),
    ModelRequest(
        [
            ToolReturnPart("look", "A bridge", "c1"),
            ToolReturnPart("look", {"error": None, "where": ["Bern", 3]}, "c2", outcome="failed"),
            ToolReturnPart("look", ["see", BinaryContent(b"\xff\xd8", media_type="image/jpeg")], "c3"),
            UserPromptPart("And?"),
        ]
    ),
    ModelResponse(
        [
            NativeToolCallPart("web_search", {"query": "bridges"}, "n1", provider_name="openai"),
            NativeToolReturnPart("web_search", {"found": 2}, "n1", provider_name="openai"),
            TextPart("A bridge.", id="msg_1", provider_name="openai"),
        ]
    ),
    ModelRequest([RetryFeedbackPart("Answer in one word.", retry=RetryInfo("model_retry"))]),
    ModelResponse([TextPart("Bridge.")]),
]


# As they are loaded: a picture is more special then than it was when it was made.
SAMPLE = ModelMessagesTypeAdapter.validate_json(ModelMessagesTypeAdapter.dump_json(SAMPLE))


def test_it_is_a_dialect() -> None:
    check_dialect(DIALECT, SAMPLE)


def entries_of(messages: list[ModelMessage]) -> list[Entry]:
    return json.loads(json.dumps([entry for block in DIALECT.read(messages, 0) for entry in block.entries]))


def written(*entries: Entry) -> list[Any]:
    return [item for block in DIALECT.join(list(DIALECT.write(entries))) for item in block.items]


def test_a_text_is_in_an_entry_once() -> None:
    entries = entries_of(SAMPLE)
    for text in ("Never guess.", "the left", "A bridge", "Pictures.", "iVBO"):
        assert sum(json.dumps(entry).count(f'{text}"') for entry in entries[:4]) <= 1
    roles = ["system", "user", "assistant", "tool", "tool", "tool", "user", "assistant", "user", "assistant"]
    assert [entry["role"] for entry in entries] == roles
    assert entries[4]["content"] == '{"error":null,"where":["Bern",3]}', "what the model reads"


def test_shorter_arguments_are_honoured() -> None:
    _, _, said, *_ = entries_of(SAMPLE)
    for call in said["tool_calls"]:
        call["function"]["arguments"] = '{"at": "…"}'
    _, message = written(said)
    assert [part.args for part in message.tool_calls] == [{"at": "…"}, '{"at": "…"}', '{"at": "…"}']
    assert message.parts[0] == SAMPLE[1].parts[0], "thinking stays with its call"


def test_a_stub_takes_the_place_of_any_content() -> None:
    entries = entries_of(SAMPLE)
    for entry in entries[1:9]:
        entry["content"] = f"[cleared {entry['role']}]"
    (request, said, results, searched, feedback, _) = written(*entries)
    assert [part.content for part in request.parts] == ["Be brief.", "[cleared user]"]
    assert [part.content for part in said.parts if isinstance(part, TextPart)] == ["[cleared assistant]"]
    assert [part.tool_call_id for part in said.tool_calls] == ["c1", "c2", "c3"]
    assert [part.content for part in results.parts] == ["[cleared tool]"] * 3 + ["[cleared user]"]
    assert [part.content for part in searched.parts] == ["[cleared assistant]"]
    assert isinstance(feedback.parts[0], UserPromptPart)


def test_a_prompt_begins_with_the_user_and_what_we_made_has_no_time() -> None:
    """Anthropic and Gemini want it so; the same list may go to them."""
    summary = {"role": "assistant", "content": "<COMPACT-SUMMARY v1>"}
    prompt = [{"role": "system", "content": "Be brief."}, summary, *entries_of(SAMPLE)[2:6]]
    first, said, results = written(*prompt)
    assert [type(part) for part in first.parts] == [SystemPromptPart, UserPromptPart]
    assert (said, results.parts) == (SAMPLE[1], SAMPLE[2].parts[:3])
    assert written(*prompt)[0] == first, "the same, every time"
    assert written(*entries_of(SAMPLE)[2:6])[0].parts[0].content == OPENING
    assert DIALECT.check(SAMPLE[1:])[0].rule == "first_is_user"


def test_a_result_that_was_never_recorded_is_named_after_its_call() -> None:
    manager = CompactManager(CompactConfig())
    history = [ModelRequest([UserPromptPart("go")]), ModelResponse([ToolCallPart("look", {}, "c1")])]
    asked = ModelRequest([UserPromptPart("well?")])
    *own, placeholder, last = manager.preflight("s", [*history, asked], dialect=DIALECT)
    assert own == history
    assert last is asked
    assert [(part.tool_name, part.tool_call_id) for part in placeholder.parts] == [("look", "c1")]


def test_marks_and_what_reveals_tools_are_protected() -> None:
    marked = ToolReturnPart("look", "keep", "c1", metadata={MARK: {"protected": True, "label": "x"}})
    plain = ToolReturnPart("look", "no", "c2", metadata=["anything"])
    entries = entries_of([ModelRequest([marked, plain, UserPromptPart([protected("rule"), "task"])])])
    assert [entry.get("meta") for entry in entries] == [{"protected": True, "label": "x"}, None, {"protected": True}]
    found = ToolReturnPart("search_tools", {"discovered_tools": []}, "c3", tool_kind="tool-search")
    (entry,) = next(PydanticAIDialect("keep").read([ModelRequest([found])], 0)).entries
    assert entry["meta"] == {"keep": True}


def test_anything_else_is_an_error_that_names_its_place() -> None:
    manager = CompactManager(CompactConfig())
    with pytest.raises(InvalidHistory) as error:
        manager.preflight("s", [*SAMPLE[:1], {"role": "user", "content": "hi"}], dialect=DIALECT)
    assert error.value.place == "messages[1]"


def as_messages(history: list[Wire]) -> list[ModelMessage]:
    """A random conversation in pydantic-ai's form."""
    messages: list[ModelMessage] = []
    for item in history:
        text = str(item.get("content") or "")
        if item["role"] == "assistant":
            calls = [
                ToolCallPart(call["function"]["name"], call["function"]["arguments"], call["id"])
                for call in item.get("tool_calls", ())
            ]
            messages.append(ModelResponse([*([TextPart(text)] if text else []), *calls]))
            continue
        part: Any = SystemPromptPart(text)
        if item["role"] == "tool":
            part = ToolReturnPart("tool", text, item["tool_call_id"])
        elif item["role"] == "user":
            part = UserPromptPart([protected(text)] if item.get("meta") else text)
        if messages and isinstance(messages[-1], ModelRequest):
            messages[-1] = ModelRequest([*messages[-1].parts, part])
        else:
            messages.append(ModelRequest([part]))
    return messages


@settings(max_examples=40)
@given(histories(legal=True, min_size=4, max_size=40))
def test_whatever_was_said_a_compacted_prompt_is_legal(history: list[Wire]) -> None:
    """And the protected texts are in it, the agent's own messages are untouched, and the same again gives the same."""
    messages = as_messages([{"role": "user", "content": "begin"}, *history])
    before = deepcopy(messages)
    config = CompactConfig(
        max_context_tokens=600,
        policy=CompactPolicy(hard_cap_buffer=0, keep_recent_turns=2, keep_tool_io_pairs=1),
    )
    manager = CompactManager(config, tokenizer=WordTokenizer(), strategies=SMALL_STRATEGIES)
    half = len(messages) // 2
    try:
        prompts = [manager.preflight("s", messages[:end], dialect=DIALECT) for end in (half, len(messages))]
    except InsufficientBudget:
        return
    prompt = manager.manual_compact("s", messages, dialect=DIALECT)
    assert not any(DIALECT.check(each) for each in (*prompts, prompt))
    assert texts_of(messages) == texts_of(prompt)
    assert messages == before
    assert manager.preflight("s", messages, dialect=DIALECT) == prompt


def texts_of(messages: list[ModelMessage]) -> list[str]:
    """The protected texts."""
    return [
        item.content
        for message in messages
        for part in message.parts
        if isinstance(part, UserPromptPart) and not isinstance(part.content, str)
        for item in part.content
        if not isinstance(item, str)
    ]
