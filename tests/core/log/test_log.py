"""Matching: what in a caller's list is new, however it sends it."""

from __future__ import annotations

import copy
import time
from typing import Any

from compact import CompactConfig, CompactManager, Message
from compact.core.engine.events import HistoryBranchedEvent
from compact.testing import RecordingSink, Wire, WordTokenizer, assistant, dialogue, system, tool_exchange, user


def watched(window: int = 100_000, **settings: Any) -> tuple[CompactManager, RecordingSink]:
    sink = RecordingSink()
    config = CompactConfig(max_context_tokens=window, telemetry={"exporter": "none"}, **settings)
    return CompactManager(config, tokenizer=WordTokenizer(), on_event=sink), sink


def log(manager: CompactManager) -> list[object]:
    return [message.original for message in manager.history("s")]


def test_the_full_raw_history_again_and_again() -> None:
    manager, sink = watched()
    history = dialogue(5)
    for end in (1, 4, 4, 10, 10):
        assert manager.preflight("s", history[:end]) == history[:end]
    assert log(manager) == history
    assert sink.of(HistoryBranchedEvent) == []


def test_our_last_output_plus_new_messages() -> None:
    manager, sink = watched()
    history = dialogue(20, words=40)
    out = manager.manual_compact("s", history)
    extended = manager.preflight("s", [*out, user("one more")])
    assert extended == [*out, user("one more")]
    assert log(manager) == [*history, user("one more")]
    raw_again = manager.preflight("s", [*history, user("one more")])
    assert raw_again == extended
    assert sink.of(HistoryBranchedEvent) == []


def test_equal_messages_stay_distinct() -> None:
    manager, _ = watched()
    history = [user("continue"), assistant("ok")] * 5
    manager.preflight("s", history)
    manager.preflight("s", [*history, user("continue")])
    assert log(manager) == [*history, user("continue")]
    assert len({message.id for message in manager.history("s")}) == 11


def test_an_edited_past_is_a_branch_with_an_event() -> None:
    manager, sink = watched()
    history = dialogue(4)
    manager.preflight("s", history)
    edited = [*history[:3], assistant("changed"), *history[4:]]
    assert manager.preflight("s", edited) == edited
    event = sink.of(HistoryBranchedEvent)[0]
    assert (event.left_ids, event.new_ids) == (("m4",), ("m9",))
    assert log(manager) == [*history, assistant("changed")]


def test_taking_back_the_last_turn_is_a_branch_that_keeps_it_in_the_log() -> None:
    manager, sink = watched()
    history = dialogue(4)
    manager.preflight("s", history)
    assert manager.preflight("s", history[:-2]) == history[:-2]
    assert sink.of(HistoryBranchedEvent)[0].left_ids == ("m7", "m8")
    assert log(manager) == history


def test_coming_back_to_what_was_left_doubles_nothing() -> None:
    """Two callers share a session, and one is a little behind."""
    manager, _ = watched()
    history = dialogue(6)
    for end in (8, 6, 8, 4, 12, 12):
        assert manager.preflight("s", history[:end]) == history[:end]
    assert log(manager) == history
    assert manager.status("s").turn_number == 6


def test_going_on_differently_after_taking_back_is_new() -> None:
    manager, _ = watched()
    history = dialogue(3)
    manager.preflight("s", history)
    manager.preflight("s", history[:4])
    other = [*history[:4], user("something else"), *history[5:]]
    assert manager.preflight("s", other) == other
    assert log(manager) == [*history, user("something else")]
    assert [message.id for message in manager.prompt("s").messages][-2:] == ["m7", "m6"]


def test_a_system_prompt_that_changes_at_every_call_does_not_double_the_rest() -> None:
    manager, _ = watched()
    history = dialogue(4)
    for minute in range(5):
        sent = [system(f"it is 12:0{minute}"), *history]
        assert manager.preflight("s", sent) == sent
    assert len(manager.history("s")) == 8 + 1


def test_a_message_changed_in_place_is_noticed_and_the_log_keeps_what_it_was() -> None:
    manager, sink = watched()
    history = dialogue(3)
    manager.preflight("s", history)
    history[2]["content"] = "changed in place"
    assert manager.preflight("s", history)[2]["content"] == "changed in place"
    assert sink.of(HistoryBranchedEvent)
    assert manager.history("s")[2].text == "question-2"


def test_an_edit_inside_the_summarised_past_leaves_the_summary_of_the_rest() -> None:
    manager, _ = watched()
    history = dialogue(20, words=40)
    before = manager.manual_compact("s", history)
    record = manager.current_plan("s").summary
    assert record
    assert "question-1 " in str(before)
    edited = [user("another beginning"), *history[1:]]
    out = manager.preflight("s", edited)
    left = manager.current_plan("s").summary
    assert left
    assert set(left.span) == set(record.span) - {"m1"}
    assert out[0] == edited[0], "what is new there stands where it stood"
    assert "question-1 " not in str(out), "and what was said on its word alone is gone"
    assert out[2:] == before[2:]


def test_a_past_that_is_another_one_undoes_the_summary() -> None:
    manager, _ = watched()
    history = dialogue(20, words=40)
    manager.manual_compact("s", history)
    edited = [user("one"), assistant("two"), *history[14:]]
    assert manager.preflight("s", edited) == edited
    assert manager.current_plan("s").summary is None


def test_an_edit_behind_the_summary_keeps_it() -> None:
    manager, _ = watched()
    history = dialogue(20, words=40)
    out = manager.manual_compact("s", history)
    edited = manager.preflight("s", [*out[:-1], assistant("another end")])
    assert edited == [*out[:-1], assistant("another end")]
    assert manager.current_plan("s").summary is not None
    assert len(manager.history("s")) == 41


def test_an_empty_list_changes_nothing() -> None:
    manager, _ = watched()
    history = dialogue(2)
    manager.preflight("s", history)
    assert manager.preflight("s", []) == []
    assert log(manager) == history
    assert manager.preflight("s", history) == history


def test_one_message() -> None:
    manager, _ = watched()
    only = [user("hello")]
    assert manager.preflight("s", only)[0] is only[0]
    assert log(manager) == only


def test_equal_copies_come_back_as_the_callers_newest_objects() -> None:
    manager, _ = watched()
    history = dialogue(20, words=40)
    manager.manual_compact("s", history)
    copies = copy.deepcopy(history)
    out = manager.preflight("s", copies)
    assert out[-1] is copies[-1]


def test_an_output_changed_by_the_caller_does_not_change_the_next_one() -> None:
    manager, _ = watched()
    history = dialogue(20, words=40)
    out = manager.manual_compact("s", history)
    out[0]["cache_control"] = {"type": "ephemeral"}
    assert "cache_control" not in manager.preflight("s", history)[0]


def test_message_objects_come_back_as_message_objects() -> None:
    manager, _ = watched()
    history = [Message(wire["role"], wire["content"]) for wire in dialogue(20, words=40)]
    out = manager.manual_compact("s", history)
    assert all(isinstance(message, Message) for message in out)
    assert out[-1] is history[-1]
    assert manager.preflight("s", [*out, Message("user", "more")])[:-1] == out


def test_ids_of_the_caller_are_kept_and_repeated_ones_made_unique() -> None:
    manager, _ = watched()
    manager.preflight("s", [{**user("a"), "id": "x"}, {**user("b"), "id": "x"}, user("c")])
    assert [message.id for message in manager.history("s")] == ["x", "x-2", "m3"]


def test_unknown_fields_survive_a_stub() -> None:
    manager, _ = watched(strategies={"clear": {"min_tokens": 1}})
    exchange = tool_exchange("c1", "word " * 500)
    exchange[1]["x_trace"] = {"span": 7}
    history: list[Wire] = [user("go"), *exchange, *(m for n in range(6) for m in tool_exchange(f"d{n}", "short"))]
    out = manager.preflight("s", history)
    assert out == history
    small = CompactManager(
        CompactConfig(max_context_tokens=600, policy={"hard_cap_buffer": 0}, telemetry={"exporter": "none"}),
        tokenizer=WordTokenizer(),
    ).preflight("s", history)
    assert small[2]["x_trace"] == {"span": 7}
    assert small[2]["content"].startswith("[cleared: 0.5k tokens; read_file was called again, see m15; recall m3]")


def test_long_repetitive_edited_pasts_do_not_hang() -> None:
    manager, _ = watched(window=1_000_000)
    history = [user("continue"), assistant("ok")] * 3_000
    manager.preflight("s", history)
    start = time.perf_counter()
    manager.preflight("s", [system("new"), *history[:-500], user("other"), *history[1:400]])
    assert time.perf_counter() - start < 20
