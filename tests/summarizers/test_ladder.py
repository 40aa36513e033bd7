"""A summariser that fails, in every way a model can: what is tried next, what is told, and what the agent gets."""

from __future__ import annotations

from typing import Any

import pytest

from compact import CompactConfig, CompactManager, SummaryRequest
from compact.core.engine.events import CompactionCompletedEvent, CompactionErrorEvent, SummaryCreatedEvent
from compact.core.engine.summarization import Attempt
from compact.core.errors import SummaryRefused, SummaryTooLong, SummaryTruncated
from compact.core.messages.entries import read_entry
from compact.core.messages.legality import check_chat
from compact.core.summary.summary import StructuredSummary
from compact.testing import (
    RecordingSink,
    ScriptedModel,
    Wire,
    WordTokenizer,
    assistant,
    cut,
    dialogue,
    echo,
    empty,
    fail,
    malformed,
    overlong,
    refuse,
    say,
    say_json,
    slow,
    system,
    think,
    truncated,
    user,
    wrong_type,
)

TASK = "Cap the retries in src/retry.py. Never touch the migrations."
HISTORY = [
    system("be careful"),
    user(TASK),
    assistant("I cap the retries at three, because the service throttles."),
    *dialogue(10, words=45),
]
GOOD = say_json(
    {"decisions": [{"decision": "cap the retries at three", "source_ids": ["m3"]}], "facts": ["it throttles"]}
)
WINDOW = 1_000


def asking(model: ScriptedModel, **summarizer: Any) -> tuple[CompactManager, RecordingSink]:
    """A manager whose summaries are written by a scripted model."""
    sink = RecordingSink()
    settings = {"model": "gpt-4o-mini", "base_url": model.base_url, "prefetch": "never", "timeout_seconds": 5.0}
    config = CompactConfig(
        max_context_tokens=WINDOW,
        policy={"hard_cap_buffer": 0, "keep_recent_turns": 2},
        telemetry={"exporter": "none"},
        summarizer={**settings, **summarizer},
    )
    return CompactManager(config, tokenizer=WordTokenizer(), on_event=sink), sink


def errors(sink: RecordingSink) -> list[tuple[str, str]]:
    return [(event.error_type, event.fallback) for event in sink.of(CompactionErrorEvent)]


def summary_text(out: list[Wire]) -> str:
    found = [message["content"] for message in out if "<COMPACT-SUMMARY" in str(message["content"])]
    assert len(found) == 1, "exactly one summary"
    return found[0]


def shown(out: list[Wire]) -> str:
    """All that the prompt says, in the summary or beside it."""
    return "\n".join(str(message["content"]) for message in out)


def is_fit_to_send(out: list[Wire]) -> bool:
    read = [read_entry(message, "out") for message in out]
    return not check_chat(read) and sum(map(WordTokenizer().count_message, read)) <= WINDOW


def test_an_answer_in_order_is_used_at_once() -> None:
    with ScriptedModel(GOOD) as model:
        manager, sink = asking(model)
        out = manager.preflight("s", HISTORY)
    assert "- cap the retries at three" in summary_text(out)
    assert TASK in shown(out)
    assert (len(model.requests), model.rejections, errors(sink)) == (1, (), [])


def test_a_summary_that_is_too_long_is_asked_for_again_in_half_and_then_once_more() -> None:
    with ScriptedModel(overlong(2_000), overlong(2_000), GOOD) as model:
        manager, sink = asking(model)
        out = manager.preflight("s", HISTORY)
    assert [kind for kind, _ in errors(sink)] == ["SummaryTooLong", "SummaryTooLong"]
    halves = [int(told.split(" in ")[1].split(" ")[0]) for _, told in errors(sink)]
    assert halves[1] == halves[0] // 2
    asked = [int(request.asked.split("At most ")[1].split(" ")[0]) for request in model.requests]
    assert asked[0] > asked[1] > asked[2]
    assert "cap the retries at three" in summary_text(out)


def test_after_two_halves_that_are_too_long_there_is_no_summary_but_the_facts_stay() -> None:
    with ScriptedModel(overlong(2_000)) as model:
        manager, sink = asking(model)
        out = manager.preflight("s", HISTORY)
    assert len(model.requests) == 3
    assert errors(sink)[-1] == ("SummaryTooLong", "pruning-only")
    assert TASK in shown(out)
    assert summary_text(out).count("word") < 500, "not the long one"
    assert is_fit_to_send(out)
    record = manager.current_plan("s").summary
    assert record is not None
    assert record.reason.endswith("; the summary failed, code chose what stands for them")


@pytest.mark.parametrize("way", ["field", "filter", "text"])
def test_a_refusal_is_answered_with_the_brief_form(way: Any) -> None:
    with ScriptedModel(refuse(by=way), GOOD) as model:
        manager, sink = asking(model)
        out = manager.preflight("s", HISTORY)
    assert [kind for kind, _ in errors(sink)] == ["SummaryRefused"]
    assert "asked again: brief" in errors(sink)[0][1]
    assert "Write a short summary" in model.requests[1].asked
    assert "Write a short summary" not in model.requests[0].asked
    assert "cap the retries at three" in summary_text(out)
    assert sink.of(SummaryCreatedEvent)[0].strategy == "brief"


def test_a_model_that_refuses_twice_leaves_pruning_only_and_the_whole_story_in_the_event() -> None:
    with ScriptedModel(refuse()) as model:
        manager, sink = asking(model)
        out = manager.preflight("s", HISTORY)
    assert len(model.requests) == 2
    assert errors(sink)[-1] == ("SummaryRefused", "pruning-only")
    told = sink.of(CompactionErrorEvent)[-1].message
    assert "task_state in" in told
    assert "brief in" in told
    assert "messages (SummaryRefused)" in told
    assert TASK in shown(out)
    assert is_fit_to_send(out)
    assert len(sink.of(CompactionCompletedEvent)) == 1


SICK = {
    "refuses": refuse(),
    "refuses in words": refuse(by="text"),
    "429 and asks to wait": fail(429, retry_after=3600),
    "429": fail(429),
    "500": fail(500),
    "401": fail(401),
    "slow": slow(30, GOOD),
    "cut": cut(),
    "empty": empty(),
    "null": empty(null=True),
    "over-long": overlong(5_000),
    "malformed": malformed(),
    "a page for people": wrong_type(),
    "echo": echo(),
    "truncated": truncated('{"decisions": [{"decision": "cap the'),
    "half a JSON": say('{"decisions": [{"decision": "cap the retries at three"'),
    "nothing to tell": say_json({}),
    "an empty form": say_json({"decisions": [], "facts": ["none"], "narrative": "n/a"}),
}


@pytest.mark.parametrize("script", SICK.values(), ids=SICK)
def test_whatever_the_model_does_the_agent_gets_a_prompt_that_can_be_sent(script: Any) -> None:
    with ScriptedModel(script) as model:
        manager, sink = asking(model, timeout_seconds=1.0)
        out = manager.preflight("s", HISTORY)
        assert model.requests, "the model was asked"
    assert errors(sink)[-1][1] == "pruning-only"
    assert is_fit_to_send(out)
    assert TASK in shown(out)
    assert out[-1] == HISTORY[-1]


@pytest.mark.parametrize(
    ("script", "kind"),
    [
        (empty(), "SummaryEmpty"),
        (echo(), "SummaryEchoed"),
        (refuse(), "SummaryRefused"),
        (truncated("{"), "SummaryTruncated"),
        (say('{"decisions": oops}'), "SummaryUnreadable"),
        (fail(401), "SummarizerUnavailable"),
    ],
)
def test_each_failure_has_its_name(script: Any, kind: str) -> None:
    with ScriptedModel(script) as model:
        manager, sink = asking(model)
        manager.preflight("s", HISTORY)
    assert errors(sink)[0][0] == kind


def test_a_window_that_turns_out_smaller_is_asked_in_smaller_parts() -> None:
    long = [*HISTORY[:3], *dialogue(30, words=150), *HISTORY[3:]]
    with ScriptedModel(GOOD, window_tokens=4_000) as model:
        manager, sink = asking(model, max_context_tokens=16_000)
        out = manager.preflight("s", long)
        assert model.rejections, "the first question was too long"
        taken = [request for request in model.requests if request.prompt_tokens <= 4_000]
        assert len(taken) > 1
    assert errors(sink) == []
    assert "cap the retries at three" in summary_text(out)
    assert is_fit_to_send(out)


def test_a_thinking_model_is_not_silenced_by_a_limit() -> None:
    with ScriptedModel(think(3_000, GOOD.text or "")) as model:
        manager, sink = asking(model)
        assert "cap the retries at three" in summary_text(manager.preflight("s", HISTORY))
        assert not {"max_tokens", "max_completion_tokens"} & set(model.requests[0].body)
    assert errors(sink) == []


def test_a_limit_that_silences_it_is_not_sent_again() -> None:
    with ScriptedModel(think(3_000, GOOD.text or "")) as model:
        manager, sink = asking(model, options={"max_completion_tokens": 500})
        assert "cap the retries at three" in summary_text(manager.preflight("s", HISTORY))
        assert [request.body.get("max_completion_tokens") for request in model.requests] == [500, None]
    assert errors(sink) == []


def test_after_a_failure_what_was_told_before_stays() -> None:
    with ScriptedModel(GOOD, fail(400)) as model:
        manager, sink = asking(model)
        manager.preflight("s", HISTORY)
        out = manager.preflight("s", [*HISTORY, *dialogue(12, words=46)])
    assert errors(sink)[-1][1] == "pruning-only"
    assert "- cap the retries at three" in summary_text(out)
    assert summary_text(out).startswith("<COMPACT-SUMMARY v2>")


def test_on_failure_keep_and_raise_hold_for_a_model_too() -> None:
    history = HISTORY  # 921 of 1,000: still fits
    with ScriptedModel(refuse()) as model:
        manager, sink = asking(model, on_failure="keep")
        assert manager.preflight("s", history) == history
        assert errors(sink)[-1] == ("SummaryRefused", "keep")
        manager, _ = asking(model, on_failure="raise")
        with pytest.raises(SummaryRefused, match="tried: task_state"):
            manager.preflight("s", history)


def test_a_summariser_of_ones_own_climbs_down_the_same_ladder() -> None:
    asked: list[tuple[str, int]] = []

    def wordy(request: SummaryRequest) -> StructuredSummary:
        asked.append((request.form, request.max_tokens))
        if len(asked) == 1:
            raise SummaryRefused("not this")
        return StructuredSummary(narrative="word " * (2_000 if len(asked) == 2 else 10))

    config = CompactConfig(max_context_tokens=WINDOW, policy={"hard_cap_buffer": 0}, telemetry={"exporter": "none"})
    manager = CompactManager(config, tokenizer=WordTokenizer(), summarizer=wordy)
    text = summary_text(manager.preflight("s", dialogue(20, words=45)))
    assert [form for form, _ in asked] == ["task_state", "brief", "brief"]
    assert asked[2][1] == asked[1][1] // 2
    assert "word word" in text


def test_the_ladder_ends() -> None:
    long, gone = SummaryTooLong(tokens=2, max_tokens=1), SummaryRefused("no")
    rung: Attempt | None = Attempt("task_state", 4_096)
    seen: list[str] = []
    for error in (long, gone, SummaryTruncated("cut"), long, gone):
        assert rung is not None
        seen.append(str(rung))
        rung = rung.next_after(error)
        if rung is None:
            break
    assert rung is None
    assert seen == [
        "task_state in 4,096 tokens",
        "task_state in 2,048 tokens",
        "brief in 2,048 tokens",
        "brief in 1,024 tokens",
    ]
    assert Attempt("task_state", 4_096).next_after(TimeoutError()) is None


# -- without a model -------------------------------------------------------------------------------------------------


def booking_history() -> list[Wire]:
    history: list[Wire] = [user("Book the berths and write down every booking id.")]
    for number in range(40):
        done = f"The berth is booked as BKG-{4000 + number}, quay {number}."
        history += [user(f"Next is ship {number}, which stays for two nights."), assistant(done)]
    return history


@pytest.mark.parametrize("way", ["fails", "refuses", "is empty", "is cut off"])
def test_what_a_failing_model_leaves_out_code_chooses(way: str) -> None:
    """As many ids stay as without any model."""
    answers = {"fails": fail(500, "busy"), "refuses": refuse(), "is empty": empty(), "is cut off": truncated("The")}
    kept: dict[str, int] = {}
    with ScriptedModel(answers[way]) as model:
        asked, sink = asking(model, timeout_seconds=1.0)
        unasked = CompactManager(asked.config.model_copy(update={"summarizer": CompactConfig().summarizer}))
        for name, manager in (("model", asked), ("code", unasked)):
            prompt = str(manager.manual_compact("s", booking_history(), target_tokens=500))
            kept[name] = sum(f"BKG-{4000 + number}" in prompt for number in range(40))
    assert errors(sink)[-1][1] == "pruning-only"
    assert kept["model"] >= 0.8 * kept["code"] > 8
