"""What becomes of items when compaction changes what they say: in their own dialect, signatures and marks in place."""

from __future__ import annotations

from typing import Any

import pytest

from compact.core.messages.message import Message
from compact.dialects import DIALECTS
from compact.dialects.dialect import mark_summary
from compact.dialects.responses_items import NO_SCREENSHOT
from compact.dialects.turns import CLOSING, EMPTY_CONTENT, OPENING, arrange
from dialect_conversations import IMAGE

Items = list[dict[str, Any]]
STUB = "[cleared: 1k tokens; recall m3]"
SUMMARY = mark_summary({"role": "assistant", "content": "<COMPACT-SUMMARY v1>\nall that\n</COMPACT-SUMMARY>"})


def entries_of(name: str, items: Items) -> Items:
    return [entry for block in DIALECTS[name].read(items, 0) for entry in block.entries]


def written(name: str, entries: Items) -> Items:
    dialect = DIALECTS[name]
    return [item for block in dialect.join(list(dialect.write(entries))) for item in block.items]


def cleared(name: str, items: Items, *places: int) -> Items:
    """The items after the content of these entries was replaced."""
    entries = entries_of(name, items)
    return written(name, [{**e, "content": STUB} if n in places else e for n, e in enumerate(entries)])


THINKING = {"type": "thinking", "thinking": "hm", "signature": "sig"}
MARK = {"cache_control": {"type": "ephemeral"}}


def test_a_cleared_result_keeps_its_flags_and_its_place_in_the_cache() -> None:
    result = {"type": "tool_result", "tool_use_id": "a", "content": "long", "is_error": True, **MARK}
    other = {"type": "tool_result", "tool_use_id": "b", "content": [{"type": "text", "text": "x"}]}
    out = cleared("anthropic", [{"role": "user", "content": [result, other]}], 0)
    assert out == [{"role": "user", "content": [{**result, "content": STUB}, other]}]
    assert list(out[0]["content"][0]) == list(result), "in the same order, or a provider's cache does not know it"


def test_marked_words_keep_their_mark_when_they_are_replaced() -> None:
    blocks = [{"type": "text", "text": "long"}, {"type": "text", "text": "longer", **MARK}]
    out = cleared("anthropic", [{"role": "user", "content": blocks}], 0)
    assert out == [{"role": "user", "content": [{"type": "text", "text": STUB, **MARK}]}]


def test_thinking_stays_with_its_call_when_the_words_between_are_replaced() -> None:
    use = {"type": "tool_use", "id": "a", "name": "f", "input": {"x": 1}, "caller": {"type": "direct"}}
    words = {"type": "text", "text": "long"}
    second = {**THINKING, "signature": "second"}
    turn = {"role": "assistant", "content": [THINKING, words, second, use]}
    user = {"role": "user", "content": "do"}
    out = cleared("anthropic", [user, turn], 1)
    assert out[1] == {"role": "assistant", "content": [THINKING, {"type": "text", "text": STUB}, second, use]}


def test_shorter_arguments_are_written_as_an_object() -> None:
    use = {"type": "tool_use", "id": "a", "name": "f", "input": {"text": "long" * 100}}
    (entry,) = entries_of("anthropic", [{"role": "assistant", "content": [THINKING, use]}])
    entry["tool_calls"][0]["function"]["arguments"] = '{"text": "…"}'
    out = written("anthropic", [{"role": "user", "content": "do"}, entry])
    assert out[1]["content"] == [THINKING, {**use, "input": {"text": "…"}}]


@pytest.mark.parametrize(("name", "words"), [("anthropic", "content"), ("gemini", "parts")])
def test_the_summary_travels_in_a_turn_of_the_user(name: str, words: str) -> None:
    out = written(name, [SUMMARY, {"role": "user", "content": "next"}, {"role": "assistant", "content": "done"}])
    assert [item["role"] for item in out[:2]] == ["user", "model" if name == "gemini" else "assistant"]
    assert [part["text"] for part in out[0][words]] == [SUMMARY["content"], "next"]
    assert DIALECTS[name].check(out) == ()


@pytest.mark.parametrize("name", ["anthropic", "gemini"])
def test_a_list_that_would_begin_with_the_assistant_gets_an_opening(name: str) -> None:
    out = written(name, [{"role": "assistant", "content": "done"}, {"role": "user", "content": "next"}])
    assert OPENING in str(out[0])
    assert DIALECTS[name].check(out) == ()


def test_a_gemini_list_whose_end_was_summarised_ends_with_the_user() -> None:
    """The model's next calls would otherwise stand right behind its own words, where no call may be."""
    out = written("gemini", [SUMMARY, {"role": "user", "content": "next"}, {"role": "assistant", "content": "done"}])
    assert out[-1] == {"role": "user", "parts": [{"text": CLOSING}]}


def test_an_empty_result_stays_what_it_was() -> None:
    results = [{"type": "tool_result", "tool_use_id": name} for name in "abc"]
    contents: list[dict[str, Any]] = [{}, {"content": []}, {"content": ""}]
    items = [{"role": "user", "content": [{**r, **c} for r, c in zip(results, contents, strict=True)]}]
    entries = entries_of("anthropic", items)
    assert [entry["content"] for entry in entries] == ["", "", ""]
    assert written("anthropic", entries) == items


def test_a_result_whose_call_is_gone_is_told_by_the_user() -> None:
    """An assistant's words at the end would be taken for the beginning of the reply."""
    block = {"type": "tool_result", "tool_use_id": "a", "content": "x"}
    (entry,) = entries_of("anthropic", [{"role": "user", "content": [block]}])
    told = {**entry, "role": "assistant", "content": "[result of a call]\nx"}
    told.pop("tool_call_id")
    assert written("anthropic", [told]) == [{"role": "user", "content": "[result of a call]\nx"}]


def test_a_prefill_stays_last() -> None:
    items: Items = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "{"}]
    out = written("anthropic", [SUMMARY, *entries_of("anthropic", items)])
    assert out[-1] == items[-1]


RUN: Items = [
    {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "e"},
    {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "q"}},
    {
        "type": "message",
        "id": "msg_1",
        "status": "completed",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "long", "annotations": []}],
    },
    {"type": "function_call", "id": "fc_1", "call_id": "a", "name": "f", "arguments": '{"x": 1}'},
    {"type": "custom_tool_call", "call_id": "b", "name": "g", "input": "free"},
]


def test_a_run_of_the_model_is_one_entry() -> None:
    """Reasoning, the work of built-in tools, words and calls of one reply live and die together."""
    (entry,) = entries_of("responses", RUN)
    assert entry["content"] == RUN[2]["content"]
    assert [call["id"] for call in entry["tool_calls"]] == ["a", "b"]
    assert "long" not in str(entry["native"])


def test_words_of_a_run_are_replaced_and_the_rest_stays() -> None:
    out = cleared("responses", RUN, 0)
    replaced = {**RUN[2], "content": [{"type": "output_text", "text": STUB, "annotations": []}]}
    assert out == [*RUN[:2], replaced, *RUN[3:]]


def test_replies_that_follow_each_other_are_entries_of_their_own() -> None:
    """The second may be made in another call; what was read before must not change by that."""
    second = [{**RUN[0], "id": "rs_2"}, {**RUN[2], "id": "msg_2"}]
    assert len(entries_of("responses", [*RUN[:3], *second])) == 2
    interleaved = [RUN[0], RUN[3], {**RUN[0], "id": "rs_2"}, RUN[4]]
    assert len(entries_of("responses", interleaved)) == 1


@pytest.mark.parametrize(
    ("output", "wanted"),
    [
        ({"type": "function_call_output", "output": "long"}, STUB),
        ({"type": "function_call_output", "output": [{"type": "input_text", "text": "long"}]}, STUB),
        ({"type": "custom_tool_call_output", "output": "long"}, STUB),
        (
            {"type": "shell_call_output", "output": [{"stdout": "long", "stderr": "", "outcome": {"type": "timeout"}}]},
            [{"stdout": STUB, "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}],
        ),
        ({"type": "apply_patch_call_output", "status": "completed", "output": "long"}, STUB),
    ],
)
def test_a_result_is_cleared_in_the_form_its_kind_has(output: dict[str, Any], wanted: Any) -> None:
    item = {**output, "call_id": "a"}
    assert cleared("responses", [item], 0) == [{**item, "output": wanted}]


def test_a_screenshot_stays_one_and_the_stub_stands_behind_it() -> None:
    screen = {"type": "computer_screenshot", "image_url": f"data:image/png;base64,{IMAGE}"}
    item = {"type": "computer_call_output", "call_id": "a", "output": screen}
    screenshot, words = cleared("responses", [item], 0)
    assert screenshot == {**item, "output": {"type": "computer_screenshot", "image_url": NO_SCREENSHOT}}
    assert words == {"role": "user", "content": STUB}


def test_a_result_that_was_made_up_is_of_the_kind_its_call_wants() -> None:
    call = {"type": "custom_tool_call", "call_id": "b", "name": "g", "input": "free"}
    placeholder = {"role": "tool", "tool_call_id": "b", "content": "[no result was recorded for this call]"}
    out = written("responses", [*entries_of("responses", [call]), placeholder])
    assert DIALECTS["responses"].check(out) == ()
    assert out[1]["type"] == "custom_tool_call_output"


@pytest.mark.parametrize("kind", ["compaction", "additional_tools", "configuration_update"])
def test_what_the_application_says_in_items_of_its_own_is_pinned(kind: str) -> None:
    item = {"type": kind, "x": 1}
    (entry,) = entries_of("responses", [item])
    assert entry["role"] == "developer"
    assert written("responses", [entry]) == [item]


def test_a_result_stays_with_the_reference_that_stands_for_its_call() -> None:
    items: Items = [
        {"type": "item_reference", "id": "fc_7"},
        {"type": "function_call_output", "call_id": "c7", "output": "x"},
        {"role": "user", "content": "next"},
    ]
    entries = entries_of("responses", items)
    assert [entry["role"] for entry in entries] == ["assistant", "tool", "user"]
    assert written("responses", entries) == items


def test_what_a_program_does_stays_in_one_piece() -> None:
    by_program = {"type": "program", "caller_id": "p"}
    items: Items = [
        {"type": "program", "id": "p1", "call_id": "p", "code": "f()", "fingerprint": "x"},
        {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}", "caller": by_program},
        {"type": "function_call_output", "call_id": "a", "output": "1"},
        {"type": "function_call", "call_id": "b", "name": "f", "arguments": "{}", "caller": by_program},
        {"type": "function_call_output", "call_id": "b", "output": "2"},
        {"type": "program_output", "id": "po", "call_id": "p", "result": "3", "status": "completed"},
    ]
    (entry,) = entries_of("responses", items)
    assert "tool_calls" not in entry
    assert written("responses", [entry]) == items


@pytest.mark.parametrize(
    ("response", "text", "wanted"),
    [
        ({"result": "long"}, "long", {"result": STUB}),
        ({"error": "long"}, "long", {"error": STUB}),
        ({"stdout": "long\nlines", "code": 0}, "long\nlines", {"stdout": STUB}),
        ({"rows": [1, 2]}, '{"rows": [1, 2]}', {"result": STUB}),
        ({"shortened": [1, 2]}, '{"shortened": [1, 2]}', {"result": STUB}),
    ],
)
def test_the_text_of_a_gemini_response_is_found_and_replaced(response: Any, text: str, wanted: Any) -> None:
    items = [{"role": "user", "parts": [{"functionResponse": {"name": "f", "id": "a", "response": response}}]}]
    (entry,) = entries_of("gemini", items)
    assert text in str(Message("tool", entry["content"]).text)
    assert written("gemini", [entry]) == items
    replaced = {"functionResponse": {"name": "f", "id": "a", "response": wanted}}
    assert cleared("gemini", items, 0) == [{"role": "user", "parts": [replaced]}]


def test_calls_without_ids_are_paired_by_name_and_order() -> None:
    calls = [{"functionCall": {"name": name, "args": {}}} for name in ("f", "g", "f")]
    answers = [{"functionResponse": {"name": name, "response": {"result": name}}} for name in ("f", "f", "g")]
    entries = entries_of("gemini", [{"role": "model", "parts": calls}, {"role": "user", "parts": answers}])
    assert [call["id"] for call in entries[0]["tool_calls"]] == ["f#1", "g#1", "f#2"]
    assert [entry["tool_call_id"] for entry in entries[1:]] == ["f#1", "f#2", "g#1"]


def test_a_signature_stays_on_its_call_when_arguments_get_shorter() -> None:
    part = {"functionCall": {"name": "f", "args": {"text": "long" * 50}}, "thoughtSignature": "c2ln"}
    user = {"role": "user", "parts": [{"text": "do"}]}
    entries = entries_of("gemini", [user, {"role": "model", "parts": [part]}])
    entries[1]["tool_calls"][0]["function"]["arguments"] = '{"text": "…"}'
    out = written("gemini", entries)
    assert out[1]["parts"] == [{"functionCall": {"name": "f", "args": {"text": "…"}}, "thoughtSignature": "c2ln"}]


def test_a_made_up_response_has_the_name_of_its_call() -> None:
    calls = {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]}
    user = {"role": "user", "parts": [{"text": "do"}]}
    placeholder = {"role": "tool", "tool_call_id": "f#1", "content": "[no result was recorded for this call]"}
    out = written("gemini", [*entries_of("gemini", [user, calls]), placeholder])
    assert DIALECTS["gemini"].check(out) == ()


@pytest.mark.parametrize(
    ("order", "parts", "wanted"),
    [
        ("", "p", "bbpc"),
        ("bpbc", "p", "bpbc"),
        ("bcb", "p", "bpcb"),
        ("bb", "p", "bbpc"),
        ("ppbbc", "p", "pbbc"),
        ("ppbbc", "", "bbc"),
    ],
)
def test_pieces_are_laid_out_in_their_order(order: str, parts: str, wanted: str) -> None:
    assert "".join(arrange(order, list(parts), ["c"], ["b", "b"])) == wanted


@pytest.mark.parametrize(
    ("name", "field", "text"),
    [("anthropic", "content", {"type": "text"}), ("gemini", "parts", {}), ("converse", "content", {})],
)
def test_a_prompt_has_no_empty_text(name: str, field: str, text: dict[str, str]) -> None:
    """A provider refuses one, alone, beside others and in a turn that was put together."""
    dialect = DIALECTS[name]

    def joined(*texts: str) -> list[list[Any]]:
        items = [{"role": "user", field: [{**text, "text": words} for words in turn.split("|")]} for turn in texts]
        blocks = dialect.join(list(dialect.read(items, 0)))
        assert not dialect.check([item for block in blocks for item in block.items])
        return [[part["text"] for part in item[field]] for block in blocks for item in block.items]

    assert joined("") == joined("|") == [[EMPTY_CONTENT]]
    assert joined("go|") == joined("|go") == [["go"]]
    assert joined("go", "") == [["go", EMPTY_CONTENT]]
    assert joined("", "go") == [[EMPTY_CONTENT, "go"]]


@pytest.mark.parametrize("content", ["", " ", []])
def test_a_turn_of_anthropics_without_content_is_written_as_it_is_filled(content: object) -> None:
    """Whichever list a caller sends, its own or what it was given, it says the same."""
    dialect, ask = DIALECTS["anthropic"], {"role": "user", "content": "go"}
    read = list(dialect.read([ask, {"role": "assistant", "content": content}, ask], 0))
    own, written = (
        [item for block in dialect.join(blocks) for item in block.items]
        for blocks in (read, list(dialect.write([entry for block in read for entry in block.entries])))
    )
    assert own == written == [ask, {"role": "assistant", "content": EMPTY_CONTENT}, ask]


@pytest.mark.parametrize("name", ["anthropic", "converse"])
@pytest.mark.parametrize(
    ("texts", "said"), [([""], [EMPTY_CONTENT]), (["", "found"], ["found"]), (["a", "b"], ["a", "b"])]
)
def test_a_result_has_no_empty_texts(name: str, texts: list[str], said: list[str]) -> None:
    """Providers reject these in results, too."""
    if name == "anthropic":
        parts = [{"type": "text", "text": text} for text in texts]
        call: dict[str, Any] = {"type": "tool_use", "id": "c1", "name": "look", "input": {}}
        result: dict[str, Any] = {"type": "tool_result", "tool_use_id": "c1", "content": parts}
        ask: dict[str, Any] = {"type": "text", "text": "go"}
    else:
        call = {"toolUse": {"toolUseId": "c1", "name": "look", "input": {}}}
        result = {"toolResult": {"toolUseId": "c1", "content": [{"text": text} for text in texts]}}
        ask = {"text": "go"}
    turns = [("user", [ask]), ("assistant", [call]), ("user", [result])]
    items = [{"role": role, "content": content} for role, content in turns]
    dialect = DIALECTS[name]
    joined = [item for block in dialect.join(list(dialect.read(items, 0))) for item in block.items]
    assert not dialect.check(joined)
    [answer] = joined[-1]["content"]
    assert [part["text"] for part in answer.get("toolResult", answer)["content"]] == said
    assert (answer is result) == (texts == said)


@pytest.mark.parametrize("content", ["", []])
def test_a_message_of_vercels_without_content_says_so(content: object) -> None:
    dialect = DIALECTS["vercel"]
    items = [{"role": "user", "content": "go"}, *({"role": role, "content": content} for role in ("assistant", "user"))]
    joined = [item for block in dialect.join(list(dialect.read(items, 0))) for item in block.items]
    assert [item["content"] for item in joined] == ["go", EMPTY_CONTENT, EMPTY_CONTENT]
    assert not dialect.check(joined)


def test_an_empty_text_with_a_signature_stays() -> None:
    """Gemini wants it back as it was."""
    signed = {"role": "model", "parts": [{"text": "", "thoughtSignature": "c2ln"}]}
    ask = {"role": "user", "parts": [{"text": "go"}]}
    dialect = DIALECTS["gemini"]
    blocks = dialect.join(list(dialect.read([ask, signed, ask], 0)))
    assert [item for block in blocks for item in block.items] == [ask, signed, ask]


def test_an_empty_answer_is_written_to_responses_as_it_came() -> None:
    """The API takes it, and a caller that sends its own list has it."""
    dialect, answer = DIALECTS["responses"], {"role": "assistant", "content": ""}
    [block] = dialect.read([answer], 0)
    assert [item for written in dialect.write(block.entries) for item in written.items] == [answer]


def test_an_empty_turn_at_the_end_is_where_a_reply_begins_unless_it_is_joined() -> None:
    dialect, ask, empty = DIALECTS["anthropic"], {"role": "user", "content": "go"}, {"role": "assistant", "content": ""}
    [_, last] = dialect.join(list(dialect.read([ask, empty], 0)))
    assert last.items == (empty,)
    [_, last] = dialect.join(list(dialect.read([ask, {"role": "assistant", "content": "x"}, empty], 0)))
    assert [part["text"] for part in last.items[0]["content"]] == ["x", EMPTY_CONTENT]


@pytest.mark.parametrize(
    ("name", "parts", "filled"),
    [
        ("anthropic", [{"type": "text", "text": "", "citations": None}], {"citations": None, "text": EMPTY_CONTENT}),
        ("converse", [{"text": ""}, {"cachePoint": {"type": "default"}}], {"text": EMPTY_CONTENT}),
    ],
)
def test_what_says_nothing_beside_an_empty_text_does_not_make_it_say_more(
    name: str, parts: list[Any], filled: dict[str, Any]
) -> None:
    """Fields of an SDK that are not set, and a mark for the cache."""
    dialect = DIALECTS[name]
    [block] = dialect.join(list(dialect.read([{"role": "user", "content": parts}], 0)))
    first, *others = block.items[0]["content"]
    assert {**first, "type": "text"} == {**filled, "type": "text"}
    assert others == parts[1:]
