"""What must always hold, over random conversations. Numbers refer to "What must always hold" in the design."""

from __future__ import annotations

import copy
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from compact import CompactConfig, CompactManager, InsufficientBudget, StructuredSummary, SummaryRequest
from compact.core.engine.events import CompactionCompletedEvent
from compact.core.facts.ledger import FactKind
from compact.core.facts.text import ENDS_MARK
from compact.core.facts.tool_calls import argument_texts
from compact.core.messages.entries import read_entry
from compact.core.messages.legality import check_chat
from compact.core.messages.message import Message
from compact.core.plan.renderer import PromptRenderer
from compact.summarizers.extractive import extractive_summary
from compact.testing import RecordingSink, WordTokenizer, assistant, system, tool_exchange, user
from conversations import SMALL_STRATEGIES, Wire, histories
from sizes import SCALE

windows = st.sampled_from([400, 700, 1500, 4000])


def manager_for(window: int, **plugs: Any) -> CompactManager:
    config = CompactConfig(
        max_context_tokens=window,
        policy={"hard_cap_buffer": 10, "keep_recent_turns": 3, "keep_tool_io_pairs": 2},
        telemetry={"exporter": "none"},
    )
    return CompactManager(config, **{"tokenizer": WordTokenizer(), "strategies": SMALL_STRATEGIES, **plugs})


def preflight(manager: CompactManager, history: list[Wire], session: str = "s") -> list[Wire]:
    try:
        return manager.preflight(session, history)
    except InsufficientBudget:
        assume(False)
        raise


def read(history: list[Wire]) -> list[Message]:
    return [read_entry(item, f"messages[{place}]") for place, item in enumerate(history)]


def is_pinned(message: Wire) -> bool:
    return message["role"] in ("system", "developer") or bool(message.get("meta", {}).get("protected"))


def as_sent(message: Wire) -> Wire:
    return {key: value for key, value in message.items() if key != "meta"}


@given(histories(), windows)
def test_1_neither_the_log_nor_the_callers_objects_change(history: list[Wire], window: int) -> None:
    before = copy.deepcopy(history)
    manager = manager_for(window)
    preflight(manager, history)
    if not history:
        return
    assert history == before
    assert [message.original for message in manager.history("s")] == before
    preflight(manager, history)
    assert [message.original for message in manager.history("s")] == before


@given(histories(), windows)
def test_2_pinned_messages_come_out_unchanged_and_are_never_summarised(history: list[Wire], window: int) -> None:
    seen: list[Message] = []

    def summarizer(request: SummaryRequest) -> StructuredSummary:
        seen.extend(request.messages)
        return extractive_summary(request)

    out = preflight(manager_for(window, summarizer=summarizer), history)
    pinned = [message for message in history if is_pinned(message) and message["content"] not in (None, [])]
    left = iter(out)
    # In their order, as they came but for our own mark, which no provider may see.
    assert all(any(as_sent(message) == sent for sent in left) for message in pinned)
    assert not [message for message in out if "meta" in message]
    assert not [message for message in seen if is_pinned({"role": message.role, "meta": message.meta})]


@given(histories(), windows)
def test_3_the_output_is_legal(history: list[Wire], window: int) -> None:
    assert check_chat(read(preflight(manager_for(window), history))) == ()


def _with_a_call_that_is_left_out(place: int) -> list[Wire]:
    """A conversation in which so much is pinned that a call is dropped, and the newest message then has no room."""
    calls = [
        {"id": call, "type": "function", "function": {"name": "read_file", "arguments": "{}"}} for call in ("a", "b")
    ]
    pinned = {"protected": True, "label": "keep"}
    history = [
        user("hello") | {"meta": pinned},
        user("word " * 375) | {"meta": pinned},
        user("") | {"meta": pinned},
        user("") | {"meta": pinned},
        user("alpha " * 100),
    ]
    history[place:place] = [
        {"role": "assistant", "content": None, "tool_calls": calls},
        {"role": "tool", "tool_call_id": "a", "content": ""},
        {"role": "tool", "tool_call_id": "b", "content": "alpha " * 12},
    ]
    return history


def _with_a_message_that_is_cut_then_dropped() -> list[Wire]:
    """A conversation in which a prompt that comes back has a text of ours that the plan of now does not have."""
    return [
        system("careful"),
        user("word " * 740),
        *tool_exchange("d", "done", path="x"),
        user("word " * 350, protected=True),
        *tool_exchange("a", "no such file", path="y"),
        user("more", protected=True),
        user("and more"),
    ]


def _with_a_dropped_message_that_is_said_again() -> list[Wire]:
    """A conversation in which a prompt is one protected message, and what follows equals what was dropped before it."""
    said = user("and this")
    return [user("word " * 190), assistant(""), said, user("word " * 380, protected=True), said]


@given(histories(legal=True, min_size=6, max_size=40), windows)
@example(_with_a_message_that_is_cut_then_dropped(), 400)
@example(_with_a_dropped_message_that_is_said_again(), 400)
@example(_with_a_call_that_is_left_out(2), 400)
@example(_with_a_call_that_is_left_out(0), 400)
def test_5_a_step_that_is_tried_again_changes_nothing(history: list[Wire], window: int) -> None:
    """A caller that goes on with what it was given, and sends a list once more because its step failed."""
    manager = manager_for(window)
    carried: list[Wire] = []
    starts = [place for place, message in enumerate(history) if message["role"] != "tool"]  # a step is whole
    for start, end in pairwise([*starts[::2], len(history)]):
        whole = carried + history[start:end]
        carried = preflight(manager, whole)
        version = manager.current_plan("s").version
        assert preflight(manager, copy.deepcopy(whole)) == carried
        assert manager.current_plan("s").version == version
    assert [message.original for message in manager.history("s")] == history


@given(histories(), windows, st.booleans())
def test_4_the_output_fits_the_budget_or_the_error_says_why(history: list[Wire], window: int, words: bool) -> None:
    tokenizer = {"tokenizer": WordTokenizer()} if words else {"tokenizer": None}
    manager = manager_for(window, **tokenizer)
    error = _refusal(manager, history)
    if error:
        assert error.needed_tokens > error.budget_tokens == window - 10
        assert sum(error.parts.values()) == error.needed_tokens > error.budget_tokens
        assert error.parts.keys() & {"system", "developer", "pinned", "dialogue", "tool_results"}
        assert "hint:" in str(error)
    elif history:
        assert manager.status("s").used_tokens <= window - 10


def _refusal(manager: CompactManager, history: list[Wire]) -> InsufficientBudget | None:
    try:
        manager.preflight("s", history)
    except InsufficientBudget as error:
        return error
    return None


@given(histories(min_size=4), windows, st.integers(1, 200))
def test_4_a_manual_target_is_met_by_the_whole_list(history: list[Wire], window: int, target: int) -> None:
    manager = manager_for(window)
    try:
        out = manager.manual_compact("s", history, target_tokens=target)
    except InsufficientBudget:
        return
    assert sum(map(WordTokenizer().count_message, read(out))) <= target


@given(histories(), windows)
def test_5_same_input_same_output_and_twice_is_once(history: list[Wire], window: int) -> None:
    manager = manager_for(window)
    first = preflight(manager, history)
    assert preflight(manager, history) == first
    assert preflight(manager_for(window), copy.deepcopy(history)) == first
    assert preflight(manager, first) == first


@given(histories(legal=True, min_size=6, max_size=40), windows)
def test_5_between_compactions_each_prompt_extends_the_last(history: list[Wire], window: int) -> None:
    manager = manager_for(window)
    previous: list[Wire] = []
    version = 0
    for end in range(1, len(history) + 1):
        if end < len(history) and history[end]["role"] == "tool":
            continue  # a model is called when all results are there
        out = preflight(manager, history[:end])
        if manager.current_plan("s").version == version:
            assert out[: len(previous)] == previous
        previous, version = out, manager.current_plan("s").version


@given(histories(min_size=3), windows)
def test_5_the_prompt_that_grew_is_the_prompt_rendered_anew(history: list[Wire], window: int) -> None:
    grown, whole = manager_for(window), manager_for(window)
    for end in range(1, len(history) + 1):
        preflight(grown, history[:end])
    plan = grown.current_plan("s")
    assume(plan.version == 0)
    assert preflight(grown, history) == preflight(whole, history) or whole.current_plan("s").version > 0


@given(histories(min_size=5, max_size=40), windows)
def test_6_every_message_is_accounted_for_once_and_can_be_fetched_back(history: list[Wire], window: int) -> None:
    manager = manager_for(window)
    preflight(manager, history)
    assume(history)
    prompt, log = manager.prompt("s"), manager.history("s")
    accounted = [message_id for slot in prompt.slots for message_id in slot.ids] + list(prompt.hidden)
    assert sorted(accounted) == sorted(message.id for message in log)
    assert [message.original for message in log] == history
    assert sum(prompt.actions.values()) == len(log)


@given(st.lists(histories(legal=True, min_size=6, max_size=15), min_size=2, max_size=4))
def test_7_there_is_exactly_one_summary_and_it_carries_the_task_from_round_to_round(chunks: list[list[Wire]]) -> None:
    manager, history, task = manager_for(3000), list[Wire](), ""
    for chunk in chunks:
        history += chunk
        try:
            out = manager.manual_compact("s", history)
        except InsufficientBudget:
            assume(False)
            raise
        record = manager.current_plan("s").summary
        texts = [m["content"] for m in out if str(m.get("content")).startswith("<COMPACT-SUMMARY v")]
        assert len(texts) == (1 if record else 0)
        if record and record.summary:
            told = record.summary.ledger.subject_of(FactKind.TASK)
            assert told in texts[0]
            # The same task from round to round; where there is no room for all of it, how it begins and ends.
            begins, known = (text.partition(ENDS_MARK)[0] for text in (told, task))
            assert begins.startswith(known) or known.startswith(begins)
            task = max(task, told, key=len)


@given(histories(min_size=4, max_size=40), windows)
def test_8_code_made_text_says_nothing_its_sources_do_not(history: list[Wire], window: int) -> None:
    manager = manager_for(window)
    preflight(manager, history)
    plan = manager.current_plan("s")
    assume(plan.summary is not None and plan.summary.summary is not None)
    assert plan.summary is not None
    assert plan.summary.summary is not None
    summary = plan.summary.summary
    log = manager.history("s")
    arguments = [text for m in log for call in m.tool_calls for text in argument_texts(call)]
    source = " ".join("\n".join([*(m.text for m in log), *arguments]).split())
    for fact in summary.ledger.of(FactKind.TASK) + summary.ledger.of(FactKind.CONSTRAINT):
        for said in fact.subject.split(ENDS_MARK):  # of a long one, how it begins and how it ends
            assert " ".join(said.split()) in source
    for excerpt in summary.excerpts:
        for line in excerpt.text.splitlines():
            # Arguments that are single words share a line, with a comma of ours between them.
            for said in line.split(", "):
                assert " ".join(said.split()) in source


@given(histories(min_size=4, max_size=40), windows)
def test_9_a_compaction_shrinks_or_is_not_done_and_not_tried_again(history: list[Wire], window: int) -> None:
    sink = RecordingSink()
    manager = manager_for(window, on_event=sink)
    preflight(manager, history)
    for event in sink.of(CompactionCompletedEvent):
        assert event.tokens_after < event.tokens_before
    done = len(sink.of(CompactionCompletedEvent))
    preflight(manager, history)
    assert len(sink.of(CompactionCompletedEvent)) == done


@given(histories(min_size=4, max_size=40), windows, st.sampled_from(["raises", "too long", "nonsense"]))
def test_11_no_failure_of_the_summariser_leaves_preflight(history: list[Wire], window: int, how: str) -> None:
    def summarizer(request: SummaryRequest) -> Any:
        if how == "raises":
            raise ConnectionError("the model is away")
        return StructuredSummary(narrative="word " * 5000) if how == "too long" else "not a summary"

    out = preflight(manager_for(window, summarizer=summarizer), history)
    assert check_chat(read(out)) == ()


@given(st.data(), histories(legal=True, min_size=2, max_size=30), windows)
@settings(max_examples=75 * SCALE)
def test_matching_loses_and_doubles_nothing_however_the_caller_sends(
    data: st.DataObject, history: list[Wire], window: int
) -> None:
    manager = manager_for(window)
    carried: list[Wire] = []
    sent = 0
    while sent < len(history):
        step = data.draw(st.integers(0, 4), label="new messages")
        new, sent = history[sent : sent + step], sent + step
        mode = data.draw(st.sampled_from(["raw", "copies", "carried"]), label="how")
        whole = {"raw": history[:sent], "copies": copy.deepcopy(history[:sent]), "carried": carried + new}[mode]
        carried = preflight(manager, whole)
        if history[:sent]:
            assert [message.original for message in manager.history("s")] == history[:sent]


def test_a_new_message_that_equals_a_marked_one_keeps_both_marks() -> None:
    """The caller goes on with the prompt, in which the first has lost its mark, and appends the same once more."""
    manager, marked = manager_for(400), {"role": "user", "content": "keep me", "meta": {"protected": True}}
    prompt = preflight(manager, [{"role": "user", "content": "begin"}, marked])
    preflight(manager, [*prompt, dict(marked)])
    assert [message.meta for message in manager.history("s")] == [{}, marked["meta"], marked["meta"]]


@given(histories(min_size=2, max_size=20), st.data(), windows)
def test_an_edited_past_starts_a_branch_and_loses_nothing(
    history: list[Wire], data: st.DataObject, window: int
) -> None:
    assume(history)
    manager = manager_for(window)
    preflight(manager, history)
    place = data.draw(st.integers(0, len(history) - 1))
    edited = [*history[:place], {"role": "user", "content": "edited"}, *history[place + 1 :]]
    out = preflight(manager, edited)
    log = [message.original for message in manager.history("s")]
    assert log[: len(history)] == history
    assert log[len(history) :] in ([{"role": "user", "content": "edited"}], [])
    assert check_chat(read(out)) == ()
    back = preflight(manager, history)
    assert check_chat(read(back)) == ()


@given(histories(max_size=30))
def test_rendering_without_a_plan_gives_back_the_same_messages(history: list[Wire]) -> None:
    from compact.core.plan.plan import CompactionPlan

    messages = read(history)
    assert PromptRenderer().render(messages, CompactionPlan("s")).messages == tuple(messages)


def test_the_properties_reach_compaction() -> None:
    """The generator is worth nothing if no drawn history is ever compacted."""
    versions = []

    @given(histories(min_size=10, max_size=40))
    @settings(max_examples=50, database=None)
    def run(history: list[Wire]) -> None:
        manager = manager_for(600)
        preflight(manager, history)
        versions.append(manager.current_plan("s").version)

    run()
    assert sum(versions) >= 10


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COMPACT_MODEL", raising=False)
