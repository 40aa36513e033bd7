"""Externalising results and rehydrating them, through the manager; and recall, undo and why on the same session."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from compact import CompactConfig, CompactError, CompactManager, UnknownSession
from compact.core.audit.artifacts import SecurityContext
from compact.core.audit.why import CallRange
from compact.core.engine.events import ContentRehydratedEvent, RehydrationBlockedEvent
from compact.core.messages.entries import read_entry
from compact.core.messages.legality import check_chat
from compact.recall.tool import TOOL_SCHEMA, answer_tool_call
from compact.testing import (
    RecordingSink,
    Wire,
    WordTokenizer,
    assistant,
    dialogue,
    system,
    tool_exchange,
    tool_run,
    user,
)

ANSWER = "the customer said: berth 42, never on a Sunday. " + "detail " * 300


def watched(url: str = "memory:", **settings: Any) -> tuple[CompactManager, RecordingSink]:
    sink = RecordingSink()
    config = CompactConfig(
        max_context_tokens=1_000,
        policy={"hard_cap_buffer": 0, "keep_recent_turns": 2, "keep_tool_io_pairs": 1},
        state={"url": url},
        telemetry={"exporter": "none"},
        **settings,
    )
    return CompactManager(config, tokenizer=WordTokenizer(), on_event=sink), sink


def asked_history() -> list[Wire]:
    """An answer that cannot be had again, then enough work to reach the trigger."""
    asking = tool_exchange("ask-1", ANSWER, tool="ask_user", question="which berth?")
    return [system("be careful"), user("book a berth"), *asking, *tool_run(4, words=150)[1:]]


@pytest.fixture(params=["memory:", "sqlite"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return request.param if request.param == "memory:" else f"sqlite:///{tmp_path}/state.db"


def test_what_cannot_be_had_again_is_externalised_and_rehydrated_when_it_is_named(url: str) -> None:
    manager, sink = watched(url)
    history = asked_history()
    out = manager.preflight("s", history)
    record = manager.current_plan("s").externalizations[0]
    assert out[3]["content"].startswith(f"[moved to artifact {record.artifact_id}")
    named = assistant(f"I need {record.artifact_id} again")
    back = manager.preflight("s", [*history, named])
    assert ANSWER.strip()[:40] in back[-1]["content"]
    assert sink.of(ContentRehydratedEvent)[0].artifact_id == record.artifact_id
    assert manager.status("s").used_tokens <= 1_000
    assert len(manager.history("s")) == len(history) + 1  # what was rehydrated is not in the log


def test_what_was_rehydrated_stays_for_the_turn_and_is_no_message_of_the_callers() -> None:
    manager, _ = watched()
    history = asked_history()
    out = manager.preflight("s", history)
    artifact_id = manager.current_plan("s").externalizations[0].artifact_id
    out = manager.preflight("s", [*out, assistant(f"I need {artifact_id}")])
    assert "retrieved artifact" in out[-1]["content"]
    again = manager.preflight("s", [*out, *tool_exchange("x", "short")])
    assert "retrieved artifact" in again[-1]["content"]
    assert sum("retrieved artifact" in str(m["content"]) for m in again) == 1
    next_turn = manager.preflight("s", [*again, user("thanks, go on")])
    assert not any("retrieved artifact" in str(m["content"]) for m in next_turn)
    assert len(manager.history("s")) == len(history) + 4


def test_confidential_results_are_externalised_without_a_preview_and_not_rehydrated_by_themselves() -> None:
    manager, sink = watched()
    history = asked_history()
    history[3]["meta"] = {"sensitivity": "confidential"}
    out = manager.preflight("s", history)
    assert "berth 42" not in json.dumps(out)
    artifact_id = manager.current_plan("s").externalizations[0].artifact_id
    manager.preflight("s", [*history, assistant(f"show me {artifact_id}")])
    manager.preflight("s", [*history, assistant(f"show me {artifact_id}"), *tool_exchange("x", "y")])
    assert [event.artifact_id for event in sink.of(RehydrationBlockedEvent)] == [artifact_id]


def test_recall_shows_confidential_entries_only_to_who_may_see_them() -> None:
    manager, _ = watched()
    history = asked_history()
    history[3]["meta"] = {"sensitivity": "confidential"}
    manager.preflight("s", history)
    artifact_id = manager.current_plan("s").externalizations[0].artifact_id
    for query in ("m4", artifact_id, "never on a Sunday", "which berth?", f"what is in m4 and {artifact_id}?"):
        shown = {entry.message_id for entry in manager.recall("s", query).entries}
        assert "m4" not in shown, f"{query}: neither as a match nor as a neighbour"
        may = SecurityContext(permissions=frozenset({"read:confidential"}))
        assert "m4" in {entry.message_id for entry in manager.recall("s", query, security=may).entries}, query
    assert manager.recall("s", "m4").found == manager.recall("s", artifact_id).found == ()


def test_a_pointer_stays_beside_a_summary_with_its_call() -> None:
    manager, _ = watched()
    history = asked_history()
    manager.preflight("s", history)
    artifact_id = manager.current_plan("s").externalizations[0].artifact_id
    out = manager.manual_compact("s", [*history, *dialogue(4, words=30)])
    assert manager.current_plan("s").summary is not None
    pointer = next(place for place, m in enumerate(out) if f"[moved to artifact {artifact_id}" in str(m["content"]))
    assert out[pointer - 1]["tool_calls"][0]["id"] == "ask-1"
    assert check_chat([read_entry(m, "x") for m in out]) == ()


def test_a_summary_takes_in_a_pointer_that_has_no_room_and_names_the_artifact(url: str) -> None:
    manager, sink = watched(url)
    history = asked_history()
    manager.preflight("s", history)
    artifact_id = manager.current_plan("s").externalizations[0].artifact_id
    history += dialogue(4, words=30)
    out = manager.manual_compact("s", history, target_tokens=250)
    assert manager.current_plan("s").externalizations == ()
    assert [record.artifact_id for record in manager.current_plan("s").artifacts] == [artifact_id]
    assert artifact_id in next(m["content"] for m in out if "<COMPACT-SUMMARY" in str(m["content"]))
    assert check_chat([read_entry(m, "x") for m in out]) == ()
    assert "berth 42" in str(manager.recall("s", artifact_id))
    # Named again, it is rehydrated: that its pointer is in the summary makes no difference.
    back = manager.preflight("s", [*history, assistant(f"I need {artifact_id} again")])
    assert "berth 42" in back[-1]["content"]
    assert sink.of(ContentRehydratedEvent)[0].artifact_id == artifact_id


def test_recall_by_id_by_artifact_and_by_words(url: str) -> None:
    manager, _ = watched(url)
    history = asked_history()
    manager.preflight("s", history)
    artifact_id = manager.current_plan("s").externalizations[0].artifact_id
    for query in ("m4", artifact_id, "berth Sunday"):
        found = manager.recall("s", query).found
        assert found[0].message_id == "m4", query
        assert len(found) == 1 or query == "berth Sunday", "an id is the id of one entry"
        assert found[0].content == ANSWER.strip() or found[0].content == ANSWER
    assert str(manager.recall("s", "what is nowhere?")).startswith("nothing in this session's log")
    short = manager.recall("s", "m4", max_tokens=20).found[0]
    assert not short.is_whole
    assert WordTokenizer().count_text(short.content) <= 20
    assert manager.recall("another", "berth").found == ()


def test_the_tool_an_agent_calls() -> None:
    manager, _ = watched()
    manager.preflight("s", asked_history())
    assert TOOL_SCHEMA["function"]["name"] == "recall"
    assert "berth 42" in answer_tool_call(lambda query: manager.recall("s", query), '{"query": "m4"}')
    for wrong in ("not json", "{}", '{"query": 7}', "[]"):
        assert "call recall with" in answer_tool_call(lambda query: manager.recall("s", query), wrong)


def test_undo_restores_the_earlier_prompt_exactly_and_holds_it(url: str) -> None:
    manager, _ = watched(url)
    history = dialogue(12, words=30)
    assert manager.preflight("s", history) == history
    compacted = manager.manual_compact("s", history)
    assert compacted != history
    plan = manager.undo("s")
    assert (plan.version, plan.origin, plan.held) == (2, 0, True)
    assert manager.preflight("s", history) == history
    more = [*history, *dialogue(3, words=25)]  # above the trigger, below the ceiling
    assert manager.preflight("s", more) == more
    assert "held, because version 0 was restored" in manager.status("s").decision.reason  # type: ignore[union-attr]
    assert manager.restore("s", 1).records == manager.plans("s")[0].plan.records
    assert len(manager.preflight("s", [*history, *dialogue(40, words=30)])) < 40  # over the ceiling: it must


def test_undo_goes_one_step_further_back_each_time() -> None:
    manager, _ = watched()
    history = dialogue(12, words=30)
    manager.manual_compact("s", history)
    manager.manual_compact("s", [*history, *dialogue(6, words=20)])
    assert manager.undo("s").origin == 1
    back = manager.undo("s")
    assert back.origin == 0
    assert manager.undo("s") == back  # there is nothing further back


def test_what_was_cut_for_others_is_whole_if_it_is_the_newest_when_the_plan_is_restored() -> None:
    config = CompactConfig(max_context_tokens=300, policy={"hard_cap_buffer": 50}, telemetry={"exporter": "none"})
    manager = CompactManager(config, tokenizer=WordTokenizer())
    results = [wire for n in range(3) for wire in tool_exchange(f"c{n}", f"berth {n} " + "free " * 40, path=f"{n}.txt")]
    history = [system("rule " * 120), user("Which ships are late?"), *results]
    manager.preflight("s", [*history, user("final " + " ".join(f"x{n}" for n in range(100)))])
    version, rewound = manager.current_plan("s").version, history[:-2]
    cut = {record.span.first for record in manager.current_plan("s").records}
    assert "m6" in cut, "the second result"
    assert manager.preflight("s", rewound)[-1] == rewound[-1]
    manager.restore("s", version)
    assert manager.preflight("s", rewound)[-1] == rewound[-1]


def test_versions_and_sessions_that_never_were() -> None:
    manager, _ = watched()
    manager.manual_compact("s", dialogue(12, words=30))
    with pytest.raises(CompactError, match="has no plan version 9"):
        manager.restore("s", 9)
    for ask in (manager.undo, lambda s: manager.why(s, "x")):
        with pytest.raises(UnknownSession):
            ask("nobody")
    assert manager.delete("s")
    assert not manager.delete("s")
    assert manager.sessions() == ()


def test_why_tells_where_a_phrase_is_since_when_and_who_went_without(url: str) -> None:
    manager, _ = watched(url)
    history = dialogue(12, words=30)
    manager.preflight("s", history)
    manager.manual_compact("s", history)
    manager.preflight("s", [*history, user("question-2 again")])
    gone, again = manager.why("s", "QUESTION-2 ")
    assert (gone.message_id, gone.state, gone.since_version) == ("m3", "summarised", 1)
    assert (again.state, again.is_visible, again.calls_without) == ("in the prompt", True, ())
    assert gone.strategy == "summarize"
    (answer,) = manager.why("s", "answer-2 ")
    assert not answer.is_visible
    assert answer.calls_without == (CallRange(2, 3, 2),)
    trace = manager.why("s", "question-2 ")
    assert trace.is_in_prompt
    assert (trace.count, trace.newest_call_count) == (1, 1)
    assert not manager.why("s", "never said").is_known


def test_what_an_edit_left_behind_is_said_to_be() -> None:
    manager, _ = watched()
    history = dialogue(3)
    manager.preflight("s", history)
    manager.preflight("s", [*history[:4], user("something else")])
    (left,) = manager.why("s", "question-3")
    assert left.state == "left behind when the past was edited"
    assert not left.is_visible


def test_the_default_sensitivity_of_results_holds_for_recall_too() -> None:
    manager, _ = watched(strategies={"externalize": {"default_sensitivity": "restricted"}})
    manager.preflight("s", asked_history())
    record = manager.current_plan("s").externalizations[0]
    for query in (record.artifact_id, record.span.first, "never on a Sunday"):
        assert not manager.recall("s", query).found, query
        allowed = SecurityContext(permissions=frozenset({"read:restricted"}))
        assert manager.recall("s", query, security=allowed).found, query


def test_any_id_can_be_recalled() -> None:
    """One with a blank in it, and one of an entry without words."""
    manager, _ = watched()
    picture = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}]}
    manager.preflight("s", [{**user("with an id"), "id": "my id 7"}, {**picture, "id": "pic"}])
    assert [found.content for found in manager.recall("s", "my id 7").found] == ["with an id"]
    assert [found.content for found in manager.recall("s", "pic").found] == ["[image_url]"]


def test_arguments_nested_without_end_are_answered_with_a_sentence() -> None:
    assert answer_tool_call(lambda query: "never", "[" * 100_000).startswith("call recall with")


def test_what_the_callers_list_has_is_found_whichever_conversation_said_it_first(url: str) -> None:
    """After an edit of the first words, which is another conversation, the caller goes on with messages of both."""
    manager, _ = watched(url)
    first, other = [system("be brief"), user("about berths")], [system("be brief"), user("about quays"), assistant("x")]
    for history in (first, other, [*first, assistant("y")], [*other, first[-1]]):
        manager.preflight("s", history)
    assert [entry.content for entry in manager.recall("s", "m2").found] == ["about berths"]
    assert [entry.content for entry in manager.recall("s", "m3").found] == ["about quays"]
    assert manager.recall("s", "m5").found == (), "y is of the other conversation alone"
