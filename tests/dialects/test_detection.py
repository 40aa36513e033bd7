"""How a list tells which dialect it is in, and what is said about lists that are in none or in two."""

from __future__ import annotations

import copy
from typing import Any

import pytest

import dialect_conversations as written
from compact import CompactConfig, CompactionPlan, CompactManager, ConfigError, InvalidHistory
from compact.core.audit.records import Commit, SessionHead
from compact.core.messages.message import Message
from compact.dialects import DIALECTS, detect, get_dialect
from compact.dialects.gateway import Gateway
from compact.stores.memory import InMemoryCompactionStore
from compact.testing import assistant, dialogue, user

CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
USE = {"type": "tool_use", "id": "c", "name": "f", "input": {}}
TOOL_RESULT = {
    "type": "tool-result",
    "toolCallId": "c",
    "toolName": "f",
    "output": {"type": "text", "value": "x"},
}
CERTAIN: list[tuple[str, Any]] = [
    ("chat", {"role": "tool", "tool_call_id": "c", "content": "x"}),
    ("chat", {"role": "assistant", "content": None, "tool_calls": [CALL]}),
    ("chat", {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}),
    ("chat", Message("user", "x")),
    ("responses", {"type": "message", "role": "user", "content": "x"}),
    ("responses", {"role": "user", "content": [{"type": "input_text", "text": "x"}]}),
    ("responses", {"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]}),
    ("responses", {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}),
    ("responses", {"type": "reasoning", "id": "r", "summary": []}),
    ("anthropic", {"role": "assistant", "content": [USE]}),
    ("anthropic", {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c"}]}),
    ("anthropic", {"role": "user", "content": [{"type": "image", "source": {"type": "url", "url": "x"}}]}),
    ("anthropic", {"role": "assistant", "content": [{"type": "web_search_tool_result", "tool_use_id": "c"}]}),
    ("gemini", {"role": "user", "parts": [{"text": "x"}]}),
    ("gemini", {"parts": [{"functionCall": {"name": "f"}}], "role": "model"}),
    ("converse", {"role": "user", "content": [{"text": "x"}]}),
    ("converse", {"role": "assistant", "content": [{"toolUse": {"toolUseId": "c", "name": "f", "input": {}}}]}),
    ("converse", {"role": "user", "content": [{"toolResult": {"toolUseId": "c", "content": []}}]}),
    ("converse", {"role": "user", "content": [{"image": {"format": "png", "source": {"bytes": b"x"}}}]}),
    ("vercel", {"role": "tool", "content": [TOOL_RESULT]}),
    ("vercel", {"role": "tool", "content": [{"type": "tool-approval-response", "approvalId": "a", "approved": True}]}),
    ("vercel", {"role": "assistant", "content": [{"type": "tool-call", "toolCallId": "c", "toolName": "f"}]}),
    ("vercel", {"role": "assistant", "content": [{"type": "reasoning", "text": "x"}]}),
    ("vercel", {"role": "user", "content": [{"type": "image", "image": "x"}]}),
    ("vercel", {"role": "user", "content": [{"type": "file", "data": "x", "mediaType": "application/pdf"}]}),
    ("vercel", {"role": "system", "content": "x", "providerOptions": {}}),
    ("chat", {"role": "user", "content": [{"type": "file", "file": {"file_id": "x"}}]}),
    ("anthropic", {"role": "user", "content": [{"type": "document", "source": {"type": "url", "url": "x"}}]}),
]
PLAIN = {"role": "user", "content": "hello"}


@pytest.mark.parametrize(("name", "item"), CERTAIN)
def test_one_item_of_its_own_tells(name: str, item: Any) -> None:
    assert [dialect.name for dialect in DIALECTS.values() if dialect.recognises(item)] == [name]
    found = detect([item])
    assert found is not None
    assert found.name == name


@pytest.mark.parametrize(
    "item",
    [PLAIN, {"role": "assistant", "content": [{"type": "text", "text": "x"}]}, {"type": "x_unknown", "id": "x"}],
)
def test_what_several_dialects_have_tells_nothing(item: Any) -> None:
    assert detect([item, item]) is None


@pytest.mark.parametrize("role", ["system", "user", "assistant"])
def test_plain_text_is_certain_in_no_dialect(role: str) -> None:
    """So detection need not ask each of them about each message of a long history."""
    item = {"role": role, "content": "hello"}
    assert not any(dialect.recognises(item) for dialect in DIALECTS.values())
    assert detect([item]) is None


@pytest.mark.parametrize("item", ["text", 7, None, {"role": "user", "parts": [{"kind": "text", "text": "x"}]}])
def test_what_nobody_knows_is_nobodys(item: Any) -> None:
    assert not any(dialect.recognises(item) for dialect in DIALECTS.values())


def test_a_list_in_two_dialects_is_an_error_that_names_both_places() -> None:
    with pytest.raises(InvalidHistory) as caught:
        detect([PLAIN, CERTAIN[1][1], PLAIN, CERTAIN[9][1]])
    assert "messages[1] is chat, this is anthropic" in str(caught.value)
    assert "messages[3]" in str(caught.value)
    assert "hint:" in str(caught.value)


@pytest.mark.parametrize("name", DIALECTS)
@pytest.mark.parametrize("stranger", [7, {"x": 1}, {"role": "robot", "content": "x"}, {"role": "robot", "parts": []}])
def test_an_item_that_a_dialect_does_not_know_is_an_error_that_names_the_place(name: str, stranger: object) -> None:
    own: dict[str, dict[str, Any]] = {
        "gemini": {"role": "user", "parts": [{"text": "x"}]},
        "converse": {"role": "user", "content": [{"text": "x"}]},
    }
    plain: dict[str, Any] = own.get(name, PLAIN)
    with CompactManager(CompactConfig(telemetry={"exporter": "none"})) as manager:
        with pytest.raises(InvalidHistory) as caught:
            manager.preflight("s", [plain, stranger], dialect=name)
        assert "messages[1]" in str(caught.value)


def test_a_dialect_that_does_not_exist_is_named_with_those_that_do() -> None:
    with pytest.raises(ConfigError) as caught:
        get_dialect("morse")
    assert "morse" in str(caught.value)
    assert "chat, responses, anthropic, gemini, converse, vercel" in str(caught.value)


def test_the_dialect_is_found_out_when_the_first_telling_item_comes() -> None:
    """Plain words first, then a call: from there on the session is in that dialect."""
    with CompactManager(CompactConfig(telemetry={"exporter": "none"})) as manager:
        assert manager.preflight("s", [PLAIN]) == [PLAIN]
        result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "x"}]}
        whole = [PLAIN, {"role": "assistant", "content": [USE]}, result]
        assert manager.preflight("s", whole) == whole
        assert [message.role for message in manager.history("s")] == ["user", "assistant", "tool"]


@pytest.mark.parametrize("model", ["gpt-4o", "claude-sonnet-4-5"])
def test_of_text_alone_only_what_is_new_is_looked_at(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[object] = []
    for dialect in DIALECTS.values():
        known = type(dialect).recognises
        monkeypatch.setattr(
            type(dialect), "recognises", lambda self, item, known=known: looked.append(item) or known(self, item)
        )
    history = [*dialogue(100), user("go on")]
    with CompactManager(CompactConfig(model=model, telemetry={"exporter": "none"})) as manager:
        manager.preflight("s", history)
        looked.clear()
        for number in range(10):
            history = [*history, assistant(f"answer {number}"), user(f"question {number}")]
            manager.preflight("s", history)
    assert len(looked) <= 10 * 2 * len(DIALECTS)


def test_what_the_likely_dialect_does_not_know_makes_it_chat() -> None:
    gateway = Gateway()
    gateway.select_dialect([PLAIN], None, likely="anthropic")
    assert gateway.dialect.name == "anthropic"
    gateway.to_entries()
    gateway.select_dialect([PLAIN, {"role": "developer", "content": "be brief"}], None, likely="anthropic")
    assert gateway.dialect.name == "chat"
    gateway.to_entries()
    gateway.select_dialect([PLAIN, {"role": "developer", "content": "be brief"}, PLAIN], None, likely="anthropic")
    assert gateway.dialect.name == "chat"
    gateway.to_entries()
    gateway.select_dialect([PLAIN], None, likely="anthropic")
    assert gateway.dialect.name == "anthropic", "as another process would take it"


def test_a_dialect_that_a_plan_names_and_nobody_knows_is_as_if_it_named_none() -> None:
    store = InMemoryCompactionStore()
    with CompactManager(CompactConfig(telemetry={"exporter": "none"}), store=store) as manager:
        manager.preflight("s", [PLAIN])
        plan = CompactionPlan("s", version=1, dialect="of a later version")
        store.commit(Commit(session_id="s", expected=SessionHead(1), plan=plan))
    with CompactManager(CompactConfig(telemetry={"exporter": "none"}), store=store) as manager:
        assert manager.preflight("s", [PLAIN]) == [PLAIN]
        assert manager.current_plan("s").dialect == "of a later version"


@pytest.mark.parametrize(("name", "model"), [("vercel", "gpt-4o"), ("chat", "claude-sonnet-4-5")])
def test_text_alone_is_in_the_dialect_that_the_session_was_in_before_a_restart(name: str, model: str) -> None:
    """A prompt in which a summary stands for all that told the dialect: in some, a summary is said by the user."""
    store, said = InMemoryCompactionStore(), "harbour berth ledger " * 40
    config = CompactConfig(
        model=model,
        max_context_tokens=2_000,
        policy={"hard_cap_buffer": 100, "keep_recent_turns": 1, "keep_tool_io_pairs": 1},
        telemetry={"exporter": "none"},
    )
    call = written.Call("c1", "read_file", {"path": "a.py"}, said)
    turns = [
        (written.Step("user", f"question {n} {said}"), written.Step("model", f"answer {n} {said}")) for n in range(8)
    ]
    steps = [
        written.Step("user", "begin"),
        written.Step("model", "so", (call,)),
        *(step for turn in turns for step in turn),
    ]
    with CompactManager(config, store=store) as manager:
        sent = manager.preflight("s", getattr(written, name)([*steps, written.Step("user", said * 10)]))
        logged = manager.history("s")
    assert "<COMPACT-SUMMARY" in str(sent)
    assert detect(sent) is None, "nothing in it tells the dialect"
    with CompactManager(config, store=store) as manager:
        for _ in range(2):
            assert manager.preflight("s", copy.deepcopy(sent)) == sent
            assert manager.history("s") == logged
        assert manager.current_plan("s").dialect == name
