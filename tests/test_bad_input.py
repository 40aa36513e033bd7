"""Whatever comes in: a clear error that names the place, or a stated repair; never a lost message, never a hang."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest
from anthropic import Anthropic
from langchain_core.messages import HumanMessage, SystemMessage
from openai import OpenAI

from compact import CompactConfig, CompactError, CompactManager, ConfigError, InvalidHistory, Message, compact, wrap
from compact.core.engine.events import HistoryRepairedEvent
from compact.dialects import DIALECTS
from compact.testing import RecordingSink, dialogue, tool_exchange, user


def watched(window: int = 4_000) -> tuple[CompactManager, RecordingSink]:
    sink = RecordingSink()
    return CompactManager(CompactConfig(max_context_tokens=window, telemetry={"exporter": "none"}), on_event=sink), sink


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [{"type": "x", "content": value}]
    return value


@pytest.mark.parametrize(
    ("messages", "place", "words"),
    [
        ("not a list", "messages", "expected a list, got str"),
        (None, "messages", "expected a list, got NoneType"),
        ([user("a"), "text"], "messages[1]", "expected a message, got str"),
        ([{"content": "x"}], "messages[0]", "the message has no role"),
        ([{"role": "wizard", "content": "x"}], "messages[0].role", "unknown role 'wizard'"),
        ([Message("wizard", "x")], "messages[0].role", "unknown role 'wizard'"),
        ([{"role": "user", "content": 7}], "messages[0].content", "unexpected int"),
        ([{"role": "user", "content": [7]}], "messages[0].content[0]", "unexpected int"),
        ([{"role": "assistant", "tool_calls": "x"}], "messages[0].tool_calls", "unexpected str"),
        ([{"role": "assistant", "tool_calls": ["x"]}], "messages[0].tool_calls[0]", "unexpected str"),
        ([{"role": "tool", "tool_call_id": 5, "content": ""}], "messages[0].tool_call_id", "expected text"),
        ([{"role": "user", "content": "x", "meta": []}], "messages[0].meta", "expected an object"),
        ([{"role": "user", "content": nested(3_000)}], "messages[0]", "nested too deeply"),
    ],
)
def test_what_cannot_be_read_is_named(messages: Any, place: str, words: str) -> None:
    manager, _ = watched()
    with pytest.raises(InvalidHistory) as caught:
        manager.preflight("s", messages)
    assert caught.value.place == place
    assert words in str(caught.value)


@pytest.mark.parametrize("session_id", ["", None, 7])
def test_a_session_needs_a_name(session_id: Any) -> None:
    with pytest.raises(InvalidHistory, match="session_id"):
        watched()[0].preflight(session_id, [user("hi")])


def test_arguments_in_the_wrong_order_are_not_printed() -> None:
    """A history in the place of the id may be long; the hint says the order."""
    with pytest.raises(InvalidHistory) as caught:
        watched()[0].preflight([user("hi")], "s")  # type: ignore[arg-type]
    assert str(caught.value) == (
        "session_id: expected a text, got list\n"
        "hint: pass the id of the conversation, a text, first: preflight(session_id, messages)"
    )


@pytest.mark.parametrize("config", [{"model": "gpt-4o"}, "compact.yaml"])
def test_a_configuration_is_no_mapping_and_no_path(config: Any) -> None:
    with pytest.raises(ConfigError, match=r"must be a CompactConfig, not (dict|str)\nhint: .*CompactConfig\.load"):
        CompactManager(config)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            {"model": "gpt-4o"},
            "no argument 'model'\nhint: it is a setting: CompactManager(CompactConfig(model='gpt-4o'))",
        ),
        ({"telemetry": {"ariadne_token": "s3cret"}}, "CompactManager(CompactConfig(telemetry=…))"),
        ({"on_events": print}, "no argument 'on_events'\nhint: did you mean on_event?"),
        ({"zebra": 1}, "no argument 'zebra'\nhint: it has config, tokenizer, "),
        ({"store": "postgresql://me:s3cret@host/db"}, "got str\nhint: pass an object with `commit`, or set it: "),
        ({"tokenizer": "simple"}, 'CompactManager(CompactConfig(tokenizer="simple"))'),
        ({"archive": "./archive"}, 'CompactManager(CompactConfig(storage={"path": "…"}))'),
    ],
)
def test_an_argument_that_is_a_setting_says_where_it_goes(arguments: dict[str, Any], said: str) -> None:
    """What a new user tries first; nobody reads a bare TypeError for a hint."""
    with pytest.raises(ConfigError, match=re.escape(said)) as caught:
        CompactManager(**arguments)
    assert caught.value.field == next(iter(arguments))
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize("setting", ["gpt-4o", {"model": "gpt-4o"}])
def test_settings_have_names(setting: Any) -> None:
    with pytest.raises(ConfigError, match=r"settings by their names\nhint: name each: CompactConfig\(model=…\); "):
        CompactConfig(setting)


@pytest.mark.parametrize("client_class", [OpenAI, Anthropic])
def test_a_configuration_is_no_manager(client_class: Any) -> None:
    with pytest.raises(ConfigError, match=r"expected a CompactManager, got CompactConfig\nhint: pass CompactManager\("):
        wrap(client_class(api_key="x"), CompactConfig())  # type: ignore[arg-type]


def test_a_bad_entry_leaves_nothing_half_done() -> None:
    manager, _ = watched()
    manager.preflight("s", [user("a")])
    with pytest.raises(InvalidHistory):
        manager.preflight("s", [user("a"), user("b"), {"role": "wizard"}])
    assert [m.text for m in manager.history("s")] == ["a"]
    manager.preflight("s", [user("a"), user("b")])
    assert [m.text for m in manager.history("s")] == ["a", "b"]


@pytest.mark.parametrize(
    ("history", "repair"),
    [
        ([user("a"), {"role": "assistant", "content": None}], "empty_content"),
        ([user("a"), {"role": "tool", "tool_call_id": "x", "content": "lost"}], "result_without_call"),
        ([user("a"), tool_exchange("c", "r")[0]], "call_without_result"),
        ([*tool_exchange("c", "r")[:1], user("a"), *tool_exchange("c", "late")[1:]], "moved_result"),
    ],
)
def test_what_can_be_repaired_is_and_it_is_said(history: list[Any], repair: str) -> None:
    manager, sink = watched()
    manager.preflight("s", history)
    assert repair in sink.of(HistoryRepairedEvent)[0].repairs[0]
    assert len(manager.history("s")) == len(history)


def test_lone_surrogates_and_special_tokens_are_text() -> None:
    manager, _ = watched()
    history = [user("half a pair \ud83d and <|endoftext|> and \x00")]
    assert manager.preflight("s", history)[0] is history[0]


@pytest.mark.parametrize("character", ["a", " ", "\n", "漢", "🧠"])
def test_ten_megabytes_of_one_character_are_cut_and_quickly(character: str) -> None:
    manager, _ = watched()
    start = time.perf_counter()
    out = manager.preflight("s", [user(character * 10_000_000)])
    assert time.perf_counter() - start < 20
    assert len(out[0]["content"]) < 1_000_000
    assert manager.status("s").used_tokens <= 2_500
    assert manager.history("s")[0].text == character * 10_000_000


def test_nested_parts_are_read_and_returned_untouched() -> None:
    manager, _ = watched()
    content = [{"type": "custom_result", "content": [{"type": "text", "text": "deep"}]}, "bare text", {"type": "odd"}]
    history = [{"role": "user", "content": content}]
    assert manager.preflight("s", history) == history
    assert manager.history("s")[0].text == "deep\nbare text"


def test_session_ids_are_only_names() -> None:
    manager, _ = watched()
    for session_id in ("../../x", "a/b", "日本", "x" * 10_000, "\x00"):
        manager.preflight(session_id, dialogue(2))
        assert manager.status(session_id).messages_in_log == 4


def test_a_version_that_is_not_there_is_answered_with_those_that_are() -> None:
    manager, _ = watched()
    manager.preflight("s", dialogue(2))
    with pytest.raises(CompactError, match=r"no plan version 7\nhint: it was never compacted: there is only version 0"):
        manager.restore("s", 7)
    manager.manual_compact("s", dialogue(40, words=60))
    with pytest.raises(CompactError, match=r"no plan version 7\nhint: its versions are 0 to 2"):
        manager.restore("s", 7)


def called_with(options: dict[str, Any], call: str, manager: CompactManager) -> object:
    messages = [user("hi")]
    match call:
        case "compact":
            return compact(messages, **options)
        case "recall":
            return manager.recall("s", options.get("query", "hi"), max_tokens=options.get("max_tokens", 10))
        case "why":
            return manager.why("s", **options)
        case _:
            return getattr(manager, call)("s", messages, **options)


@pytest.mark.parametrize(
    ("calls", "option", "value", "words"),
    [
        ("preflight manual_compact plan", "tools", 1, "tools: expected a list of tool schemas, got int"),
        ("preflight manual_compact plan", "tools", [{}, "x"], "tools[1]: expected a tool schema, got str"),
        ("preflight manual_compact plan", "instructions", [{"text": "x"}], "instructions: expected a text, got list"),
        ("preflight manual_compact plan", "model", 4, "model: expected a text, got int"),
        ("preflight plan", "output_tokens", "1k", "output_tokens: expected a number of tokens, got str"),
        ("preflight plan", "output_tokens", -1, "output_tokens: expected at least 0, got -1"),
        ("manual_compact plan compact", "target_tokens", "2000", "target_tokens: expected a number of tokens, got str"),
        ("manual_compact plan compact", "target_tokens", -5_000, "target_tokens: expected at least 1, got -5,000"),
        ("manual_compact plan compact", "target_tokens", 0, "target_tokens: expected at least 1, got 0"),
        ("manual_compact plan compact", "focus", 7, "focus: expected a text, got int"),
        ("manual_compact", "note", 7, "note: expected a text, got int"),
        ("recall", "query", None, "query: expected a text, got NoneType"),
        ("recall", "max_tokens", -1, "max_tokens: expected at least 0, got -1"),
        ("why", "phrase", None, "phrase: expected a text, got NoneType"),
    ],
)
def test_an_argument_that_is_not_what_it_must_be_is_named(calls: str, option: str, value: Any, words: str) -> None:
    for call in calls.split():
        manager, _ = watched()
        manager.preflight("s", [user("hi")])
        with pytest.raises(InvalidHistory) as caught:
            called_with({option: value}, call, manager)
        assert str(caught.value) == words
        assert len(manager.preflight("s", [user("hi"), user("again")])) == 2, "the session goes on"


def test_nothing_for_an_argument_is_none() -> None:
    """Frameworks pass on what they were given, which may be nothing."""
    manager, _ = watched()
    nothing: Any = None
    assert manager.preflight("s", [user("hi")], tools=nothing, instructions=nothing, model=nothing) == [user("hi")]
    assert manager.manual_compact("s", [user("hi")], note=None, target_tokens=None, focus=None) == [user("hi")]


@pytest.mark.parametrize("call", ["status", "history", "current_plan", "undo", "prompt", "is_busy", "forget", "delete"])
@pytest.mark.parametrize("session_id", [7, None, "", ["s"]])
def test_the_id_of_a_session_is_a_text(call: str, session_id: Any) -> None:
    with pytest.raises(InvalidHistory, match="session_id: expected a text"):
        getattr(watched()[0], call)(session_id)


@pytest.mark.parametrize("dialect", ["gemini", "anthropic", "responses", "converse", "vercel", "latin", 7, ["chat"]])
@pytest.mark.parametrize("before", [0, 2])
def test_a_dialect_that_a_list_is_not_in_is_forgotten_with_the_call(dialect: Any, before: int) -> None:
    """The caller's mistake is the caller's: the next call is made as if there had been none."""
    manager, _ = watched()
    history = [user("do it"), *tool_exchange("c", "done"), *dialogue(2)]
    if before:
        manager.preflight("s", history[:before])
    with pytest.raises(CompactError):
        manager.preflight("s", history, dialect=dialect)
    assert manager.preflight("s", history) == history
    assert len(manager.history("s")) == len(history)


ANTHROPIC_CALL = [
    {"role": "user", "content": [{"type": "text", "text": "do it"}]},
    {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "read", "input": {}}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "done"}]},
]
RESPONSES_CALL = [
    {"role": "user", "content": "do it"},
    {"type": "function_call", "call_id": "c", "name": "read", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "c", "output": "done"},
]
OTHERS: dict[str, list[Any]] = {
    "objects": [SystemMessage("be brief"), HumanMessage("do it")],
    "objects and a protected dict": [SystemMessage("be brief"), user("do it", protected=True)],
    "anthropic": ANTHROPIC_CALL,
    "responses": RESPONSES_CALL,
}


@pytest.mark.parametrize("calls_before", [0, 1])
@pytest.mark.parametrize(
    ("name", "dialect"),
    [(name, dialect) for name in OTHERS for dialect in DIALECTS if dialect != name],
)
def test_a_list_that_was_named_wrong_is_read_without_the_name(name: str, dialect: str, calls_before: int) -> None:
    manager, _ = watched()
    for _ in range(calls_before):
        manager.preflight("s", OTHERS[name])
    with pytest.raises(InvalidHistory):
        manager.preflight("s", OTHERS[name], dialect=dialect)
    manager.preflight("s", OTHERS[name])
    assert len(manager.history("s")) == len(OTHERS[name])


def test_a_list_that_cannot_be_read_decides_no_dialect() -> None:
    manager, _ = watched()
    call: dict[str, Any] = {"type": "tool_use", "id": "t", "name": "read", "input": {}}
    with pytest.raises(InvalidHistory):
        manager.preflight("s", [user("do it"), {"role": "assistant", "content": [call]}, {"role": "wizard"}])
    history = [user("do it"), *tool_exchange("c", "done")]
    assert manager.preflight("s", history) == history
