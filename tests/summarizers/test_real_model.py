"""The whole trip with a real model: prepared in the background, merged in a second round, resumed by another process.

The session is played again from the beginning, and must come out the same each time. The model is small and
invents freely, which is what verification and ledger are for; its prompts are short, so that two busy cores suffice.
"""

from __future__ import annotations

import json
import os
import pickle
import re
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from compact import CompactConfig, CompactManager
from compact.core.engine.events import CompactionErrorEvent, SummaryCreatedEvent
from compact.core.messages.entries import read_entry
from compact.core.messages.legality import check_chat
from compact.core.plan.plan import SummarizationRecord
from compact.strategies import ClearStrategy, DeduplicateStrategy, ExternalizeStrategy, SummarizeStrategy
from compact.testing import (
    RecordingSink,
    ScriptedModel,
    Wire,
    WordTokenizer,
    assistant,
    say,
    say_json,
    system,
    tool_exchange,
    user,
)
from made_once import made_once
from real_model import RealModel
from sizes import SOAK

pytest.importorskip("openai", reason="pip install 'compact-context[openai]'")
pytestmark = pytest.mark.timeout(900)  # several sessions with a real model, on cores that others use too

HERE = Path(__file__).parent
GOLDEN = HERE / "golden" / "booking.json"
WINDOW = 660  # in words, as everything here
# So small a model does not know when to stop: a grammar of llama.cpp's own gives its answer a form and an end.
TWO_SENTENCES = 'root ::= "The user asked to " [^\\n]{20,80} ". The assistant " [^\\n]{20,110} "."'
# Chosen: a run takes most of a minute.
RUNS = 3 if SOAK else 2
NOWHERE = "http://127.0.0.1:9/v1"  # nobody listens there

TASK = "Split confirm() in src/booking.py into reserve() and charge(). Never touch the migrations."
CONSTRAINT = "Always name the file you changed."
BOOKING = """def confirm(booking):
    take_seat(booking)
    pay_with_card(booking)
    send_mail(booking)
    return booking"""
TESTS = "\n".join(
    f"tests/test_booking.py: {what} - passed"
    for what in (
        "a booking takes a seat",
        "a booking of two takes two seats",
        "a seat is taken once",
        "a seat that was given back can be taken again",
        "a card is charged once",
        "a card is charged the whole price",
        "a booking that was paid is sent by mail",
        "the mail names the seat and the price",
        "the mail is sent once",
    )
)

BELOW_TRIGGER = [
    system("You are a careful coding agent."),
    user(TASK),
    *tool_exchange("call-1", BOOKING, path="src/booking.py"),
    assistant(
        "src/booking.py has one function confirm() which takes the seat, pays with the card and sends the mail. I moved"
        " the payment into a new function charge() and the seat into a new function reserve(), and confirm() now calls"
        " both of them. The function reserve() is small: it takes the seat and returns the booking. The function"
        " charge() pays with the card and returns the booking too, so that both can be called one after the other. The"
        " mail is sent by confirm() as before, when reserve() and charge() are done. I did not change what the mail"
        " says. I did not touch any other file, and the names of the other functions are the same as before. The tests"
        " come next, because I want to see that a booking still works as it did before I go on."
    ),
    *tool_exchange("call-2", TESTS, tool="run", command="pytest tests/test_booking.py"),
    assistant(
        "All the tests pass with reserve() and charge(). One thing is left in src/booking.py: the function charge() has"
        " no timeout, and waits for the bank as long as the bank wants. With one function that was hard to see, because"
        " the seat and the payment were done in the same place. Now it is easy to add, because charge() is the only"
        " function that speaks with the bank. I would add a timeout to charge() and run the tests again. If the bank"
        " does not answer in time, the seat is given back by reserve(), and the user can try again with the same card."
        " Please tell me how long charge() shall wait."
    ),
    user("Set the timeout to 30 seconds."),
    assistant(
        "src/booking.py: I set the timeout of charge() to 30 seconds, and then I ran the tests again. All the tests"
        " pass. The functions reserve() and charge() have a line of documentation each, which says what they take and"
        " what they return. If the bank does not answer in 30 seconds, charge() stops, and the seat is given back. I"
        " wrote a test for that: it uses a bank that never answers, and it sees that the seat is free again. The test"
        " does not wait 30 seconds, because it sets a shorter timeout for itself."
    ),
    user("What is left to do?"),
]
ABOVE_TRIGGER = [
    *BELOW_TRIGGER,
    assistant(
        "src/booking.py is done. The old name confirm() is still used in api/routes.py and in jobs/nightly.py. I would"
        " keep it for one release, so that nothing breaks for them, and write a line into the changelog which says that"
        " it goes away. After that the two callers can move to reserve() and charge() whenever they have the time."
    ),
    user("Write the changelog. " + CONSTRAINT),
]
SECOND_ROUND = [
    *ABOVE_TRIGGER,
    *tool_exchange("call-3", "written", tool="write_file", path="CHANGELOG.md"),
    assistant(
        "CHANGELOG.md: I wrote that confirm() is deprecated since 4.2.0 and goes away with 5.0.0. Callers use reserve()"
        " and then charge(), which stops after 30 seconds. Nothing changes in the database, and there is no new"
        " migration. The two callers of confirm() see a line in their own logs, once a day, until they have moved. The"
        " line names the function to call, and the release in which the old one goes away. I read the changelog of the"
        " last two releases, and I kept the same form: what changed, who has to do something, and until when. The"
        " entry stands at the top of the file, under the heading of the next release. I would tell the teams of"
        " api/routes.py and jobs/nightly.py about it in a short message each, with the two functions they need and the"
        " release in which confirm() goes away, and I would wait for their answer before anything else happens."
    ),
    user("Good. Tell the two teams, and open the pull request when they have answered."),
    assistant(
        "CHANGELOG.md is as it was. I told the teams of api/routes.py and jobs/nightly.py that confirm() goes away with"
        " 5.0.0. The team of api/routes.py has moved to reserve() and charge() already, and its tests pass. The team of"
        " jobs/nightly.py needs one more week, because the job runs at night and they want to see it run three times."
        " Until then confirm() stays as it is, and the pull request waits for them. I have the text of it ready: what"
        " reserve() and charge() do, why there are two of them now, how long charge() waits for the bank, and when"
        " confirm() goes away."
    ),
    user(
        "Then we wait. In the meantime, look at the text of the pull request once more: it should begin with what the"
        " two teams have to do, and come to the reasons after that. Show it to me before you open it, please."
    ),
]


@dataclass(frozen=True, slots=True)
class Played:
    """One session from beginning to end."""

    prompts: tuple[list[Wire], ...]
    resumed: list[Wire]
    records: tuple[SummarizationRecord, ...]
    errors: tuple[str, ...]
    waited_for_none: bool
    log: tuple[object, ...]

    @property
    def summaries(self) -> list[str]:
        """The one summary of each round."""
        return [summary_of(prompt) for prompt in self.prompts]


def summary_of(prompt: list[Wire]) -> str:
    found = [message["content"] for message in prompt if "<COMPACT-SUMMARY" in str(message["content"])]
    assert len(found) == 1, f"exactly one summary, not {len(found)}"
    return found[0]


def manager_on(
    store: str, base_url: str, *, form: str = "task_state", **more: Any
) -> tuple[CompactManager, RecordingSink]:
    sink = RecordingSink()
    config = CompactConfig(
        max_context_tokens=WINDOW,
        policy={
            "hard_cap_buffer": 0,
            "trigger_pct": 0.8,
            "target_pct": 0.38,  # so low that hardly anything old stays as a message
            "keep_recent_turns": 1,
            "keep_tool_io_pairs": 1,
            "summary_form": form,
        },
        telemetry={"exporter": "none"},
        state={"url": store},
        summarizer={
            "kind": "llm",
            "model": "smollm2",
            "base_url": base_url,
            "max_context_tokens": 8192,
            "max_tokens": 160,
            "prompts_dir": str(HERE / "small_model"),
            "options": {"grammar": TWO_SENTENCES, "response_format": {"type": "text"}},
            **more,
        },
    )
    summarize = SummarizeStrategy(max_tokens=160, target_token_ratio=0.8)
    strategies = (DeduplicateStrategy(), ClearStrategy(), ExternalizeStrategy(), summarize)
    return CompactManager(config, tokenizer=WordTokenizer(), strategies=strategies, on_event=sink), sink


def current(manager: CompactManager) -> SummarizationRecord:
    record = manager.current_plan("s").summary
    assert record is not None
    return record


def wait_until(prepared: RecordingSink, manager: CompactManager) -> None:
    preparer: Any = manager._prefetcher
    deadline = time.monotonic() + 300
    while preparer._unfinished and time.monotonic() < deadline:
        time.sleep(0.05)
    assert len(prepared.of(SummaryCreatedEvent)) == 1, "the summary was written ahead"


def play(store: str, base_url: str) -> Played:
    """Prepare in the background, compact, compact again while the agent waits, stop, and go on elsewhere."""
    manager, sink = manager_on(store, base_url)
    with manager:
        assert manager.preflight("s", BELOW_TRIGGER) == BELOW_TRIGGER
        waited_for_none = not sink.of(SummaryCreatedEvent)
        wait_until(sink, manager)
        prompts = [manager.preflight("s", ABOVE_TRIGGER)]
        records = [current(manager)]
        prompts.append(manager.preflight("s", SECOND_ROUND))
        records.append(current(manager))
        log = tuple(manager.history("s"))
    errors = [f"{event.error_type}: {event.message}" for event in sink.of(CompactionErrorEvent)]
    other, other_sink = manager_on(store, NOWHERE)
    with other:
        resumed = other.preflight("s", SECOND_ROUND)
    errors += [f"resumed: {event.error_type}" for event in other_sink.of(CompactionErrorEvent)]
    return Played(tuple(prompts), resumed, tuple(records), tuple(errors), waited_for_none, log)


@pytest.fixture(scope="module")
def runs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[Played]:
    """The same session several times, each in a database of its own."""

    def play_all(folder: Path) -> None:
        real_model: RealModel = request.getfixturevalue("real_model")
        with pytest.MonkeyPatch.context() as environment:
            environment.setenv("COMPACT_STORAGE__ADAPTER", "none")
            played = [play(f"sqlite:///{folder}/{number}.db", real_model.base_url) for number in range(RUNS)]
        (folder / "played.pickle").write_bytes(pickle.dumps(played))

    return pickle.loads((made_once(tmp_path_factory, "real-model", play_all) / "played.pickle").read_bytes())


def test_every_run_gives_the_same_bytes(runs: list[Played]) -> None:
    """Seed 42, temperature 0: not a letter differs between the sessions, prompts and plans included."""
    first, *others = [json.dumps(run.prompts) for run in runs]
    assert others == [first] * (RUNS - 1)
    assert [run.records for run in runs[1:]] == [runs[0].records] * (RUNS - 1)


def held_against(recorded: Mapping[str, Any], made: Mapping[str, Any]) -> str:
    """Fail if the recording says otherwise; if it was made on another kind of machine, say so instead."""
    if recorded["fingerprint"] != made["fingerprint"]:
        return f"recorded on {recorded['fingerprint']}, this is {made['fingerprint']}: not compared"
    assert made["summaries"] == recorded["summaries"], "if that is what was meant: COMPACT_REWRITE_GOLDEN=1"
    return ""


def test_they_are_what_was_recorded(
    runs: list[Played], real_model: RealModel, capsys: pytest.CaptureFixture[str]
) -> None:
    """Rounding differs between processors, so the recording counts where it was made; the rest holds everywhere."""
    made = {"fingerprint": real_model.fingerprint, "summaries": runs[0].summaries}
    if os.environ.get("COMPACT_REWRITE_GOLDEN"):
        GOLDEN.write_text(json.dumps(made, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    note = held_against(json.loads(GOLDEN.read_text(encoding="utf-8")), made)
    with capsys.disabled():
        sys.stdout.write(f"\n{note}\n" if note else "")
    assert [text.split(">")[0] for text in made["summaries"]] == ["<COMPACT-SUMMARY v1", "<COMPACT-SUMMARY v2"]


def test_a_recording_counts_only_where_it_was_made() -> None:
    """Another processor is told, not failed; another text on the same one is failed."""
    recorded = {"fingerprint": "this kind", "summaries": ["as it was"]}
    assert held_against(recorded, recorded) == ""
    assert "not compared" in held_against(recorded, {"fingerprint": "another kind", "summaries": ["different"]})
    with pytest.raises(AssertionError, match="COMPACT_REWRITE_GOLDEN"):
        held_against(recorded, {**recorded, "summaries": ["different"]})


def test_the_agent_does_not_wait_for_what_is_prepared(runs: list[Played]) -> None:
    """The call above the soft threshold returns before the model has answered, and the trigger finds its summary."""
    assert all(run.waited_for_none for run in runs)
    assert ", prefetched" in runs[0].records[0].reason
    assert ", prefetched" not in runs[0].records[1].reason


def test_the_model_told_the_story_and_no_rung_was_missed(runs: list[Played]) -> None:
    """Both summaries have a narrative by the model; nothing failed on the way, nothing fell back."""
    assert runs[0].errors == ()
    narratives = [record.summary.narrative for record in runs[0].records if record.summary]
    assert len(narratives) == 2
    assert all(len(narrative.split()) >= 5 for narrative in narratives)
    assert not any("the summary failed" in record.reason for record in runs[0].records)


def test_task_and_constraints_stay_word_for_word_over_both_rounds(runs: list[Played]) -> None:
    """What the user said must hold is in every prompt, whatever the model makes of the story."""
    for prompt in (*runs[0].prompts, runs[0].resumed):
        text = json.dumps(prompt, ensure_ascii=False)
        assert TASK in text
        assert CONSTRAINT in text
    first, second = (record.summary for record in runs[0].records)
    assert first is not None
    assert second is not None
    constraints = {fact.text for fact in first.ledger if fact.kind.value == "constraint"}
    assert constraints <= {fact.text for fact in second.ledger}, "the ledger only grows"


def test_every_prompt_is_legal_and_fits(runs: list[Played]) -> None:
    """Calls keep their results, and the window is kept."""
    for prompt in (*runs[0].prompts, runs[0].resumed):
        messages = [read_entry(message, "prompt") for message in prompt]
        assert not check_chat(messages)
        assert sum(map(WordTokenizer().count_message, messages)) < WINDOW * 0.7


def specific_words(text: str) -> set[str]:
    """Words with a digit, a slash or an underscore in them, without what stands around them."""
    return {word.strip(".,;:()'\"`{}") for word in text.split() if re.search(r"[\d/_]", word)}


def test_no_path_and_no_number_is_invented(runs: list[Played]) -> None:
    """Every specific word in a summary is one of the session, whatever the model makes of the rest."""
    said = specific_words(" ".join(f"{message.get('content')} {message.get('tool_calls')}" for message in SECOND_ROUND))
    # Behind the tag and the count of messages.
    bodies = [text.split("\n", 2)[2].removesuffix("</COMPACT-SUMMARY>") for text in runs[0].summaries]
    assert any(map(specific_words, bodies)), "there is something to check"
    for told in bodies:
        assert specific_words(told) <= said


def test_another_process_goes_on_with_the_same_bytes_and_asks_nobody(runs: list[Played]) -> None:
    """A new manager on the same file, with a model that is gone: the same prompt, and no error."""
    assert json.dumps(runs[0].resumed) == json.dumps(runs[0].prompts[1])
    assert [message.original for message in runs[0].log] == SECOND_ROUND  # type: ignore[attr-defined]
    assert not [error for run in runs for error in run.errors if error.startswith("resumed")]


# What this model answers to the prompt `brief`, which is too long for it: it copies the example, or the last line.
COPIES = (
    say("The record ends here. Answer with the JSON object."),
    say_json({"narrative": "The record ends here. Answer with JSON object."}),
    say_json(
        {
            "narrative": "The user compares two vendors for 300 seats. The price of vendor A is known.",
            "facts": ["vendor A: 7.50 per seat from 250 seats (x3)", "vendor B: 7.50 per seat from 250 seats (x3)"],
            "open_items": [{"item": "vendor A: 7.50 per seat from 250 seats (x3)"}],
        }
    ),
)


@pytest.mark.parametrize("answer", COPIES, ids=["last line", "last line as JSON", "example"])
def test_answers_that_a_small_model_copies_from_the_question_are_not_believed(answer: Any) -> None:
    """Nothing of the instructions gets into a prompt; the facts that code keeps are there all the same."""
    with ScriptedModel(answer) as model:
        manager, _ = manager_on("memory:", model.base_url, prompts_dir="", options={}, prefetch="never", form="brief")
        with manager:
            prompt = manager.preflight("s", ABOVE_TRIGGER)
        assert model.requests
        assert model.rejections == ()
    assert not re.search(r"vendor|300 seats|7\.50|record ends", summary_of(prompt))
    assert any(TASK in str(message["content"]) for message in prompt)
