"""Chat Completions' rules, and the nearest legal prompt."""

from __future__ import annotations

from hypothesis import given

from compact.core.messages.entries import read_entry
from compact.core.messages.legality import EMPTY_CONTENT, MISSING_RESULT, check_chat, repair_chat
from compact.core.messages.message import Message, Slot, ToolCall
from compact.dialects.chat import ChatDialect
from compact.testing import assistant, check_dialect, dialogue, system, tool_exchange, user
from conversations import Wire, histories


def slots(*messages: Message) -> list[Slot]:
    return [Slot(message, (f"m{place}",)) for place, message in enumerate(messages)]


def call(*ids: str) -> Message:
    return Message("assistant", None, tuple(ToolCall(i, "read", "{}") for i in ids))


def result(call_id: str, text: str = "ok") -> Message:
    return Message("tool", text, tool_call_id=call_id)


def rules(*messages: Message) -> list[str]:
    return [violation.rule for violation in check_chat(messages)]


def test_what_is_illegal() -> None:
    assert rules(call("a"), result("a")) == []
    assert rules(call("a", "b"), result("b"), result("a")) == []
    assert rules(call("a"), Message("user", "hi")) == ["call_without_result"]
    assert rules(call("a")) == ["call_without_result"]
    assert rules(result("a")) == ["result_without_call"]
    assert rules(call("a"), result("a"), result("a")) == ["result_without_call"]
    assert rules(call("a"), Message("user", "hi"), result("a")) == ["call_without_result", "result_without_call"]
    assert rules(call("a", "a"), result("a")) == ["duplicate_call_id"]
    assert rules(Message("assistant", None)) == ["empty_content"]
    assert rules(Message("tool", "", tool_call_id="x"), Message("user", "")) == ["result_without_call"]


def test_a_legal_prompt_is_left_alone() -> None:
    given_slots = slots(call("a"), result("a"))
    assert repair_chat(given_slots) == (tuple(given_slots), ())


def test_a_missing_result_gets_a_placeholder() -> None:
    repaired, repairs = repair_chat(slots(call("a", "b"), result("b"), Message("user", "hi")))
    assert [slot.message.text for slot in repaired] == ["", "ok", MISSING_RESULT, "hi"]
    assert [repair.rule for repair in repairs] == ["call_without_result"]


def test_a_late_result_is_brought_behind_its_call() -> None:
    repaired, repairs = repair_chat(slots(call("a"), Message("user", "hi"), result("a", "late")))
    assert [slot.message.text for slot in repaired] == ["", "late", "hi"]
    assert [repair.rule for repair in repairs] == ["moved_result"]


def test_an_orphan_stays_as_text() -> None:
    repaired, repairs = repair_chat(slots(result("nobody", "precious"), Message("user", "hi")))
    assert [slot.message.role for slot in repaired] == ["assistant", "user"]
    assert "precious" in repaired[0].message.text
    assert [repair.rule for repair in repairs] == ["result_without_call"]


def test_ids_used_twice_in_one_message_are_numbered_with_their_results() -> None:
    results = [result("a", text) for text in ("first", "second", "third")]
    repaired, repairs = repair_chat(slots(call("a", "a", "a"), *results))
    assert [c.id for c in repaired[0].message.tool_calls] == ["a", "a-2", "a-3"]
    assert [slot.message.tool_call_id for slot in repaired[1:]] == ["a", "a-2", "a-3"]
    assert [slot.message.text for slot in repaired[1:]] == ["first", "second", "third"]
    assert [repair.rule for repair in repairs] == ["duplicate_call_id"]


def test_ids_used_again_in_a_later_message_are_fine() -> None:
    assert rules(call("a"), result("a"), call("a"), result("a")) == []


def test_nothing_at_all_becomes_a_word() -> None:
    repaired, repairs = repair_chat(slots(Message("user", None)))
    assert repaired[0].message.text == EMPTY_CONTENT
    assert [repair.rule for repair in repairs] == ["empty_content"]


@given(histories())
def test_whatever_comes_in_goes_out_legal_and_whole(history: list[Wire]) -> None:
    messages = [read_entry(item, "x") for item in history]
    given_slots = [Slot(message, (f"m{place}",)) for place, message in enumerate(messages)]
    repaired, repairs = repair_chat(given_slots)
    assert check_chat([slot.message for slot in repaired]) == ()
    assert sorted(i for slot in repaired for i in slot.ids) == sorted(i for slot in given_slots for i in slot.ids)
    assert bool(repairs) == bool(check_chat(messages))
    assert repair_chat(repaired) == (repaired, ())


def test_the_chat_dialect_passes_the_suite() -> None:
    custom = {"id": "c9", "type": "custom", "custom": {"name": "shell", "input": "ls -la"}}
    sample: list[Wire] = [
        {**system("be careful"), "x_unknown": [1]},
        *dialogue(2),
        *tool_exchange("c1", "result"),
        {"role": "assistant", "content": "", "tool_calls": [custom], "refusal": None},
        {"role": "tool", "tool_call_id": "c9", "content": [{"type": "text", "text": "files"}]},
        {**user("hi"), "name": "ada", "id": "u-1"},
        assistant("bye"),
    ]
    check_dialect(ChatDialect(), sample)
