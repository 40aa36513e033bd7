"""What `why` says is what the prompts say that really went out: over random sessions, against plain counting."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compact import CompactConfig, CompactManager, InsufficientBudget, StructuredSummary, SummaryRequest, UnknownSession
from compact.core.audit.why import CallRange, PhraseTrace, SearchCancelled
from compact.core.messages.turn_order import LEFT_OUT
from compact.injection import InjectionContext, Injector
from compact.recall.phrase_finder import PhraseFinder
from compact.summarizers.extractive import extractive_summary
from compact.testing import WordTokenizer, assistant, dialogue, system, tool_exchange, tool_run, user
from conversations import SMALL_STRATEGIES, Wire, histories
from sizes import SCALE

NOTE = "standing-note-77 beside the log"


@dataclass
class Told:
    """A session, and every prompt that it sent: what the caller got is the truth."""

    manager: CompactManager
    history: list[Wire] = field(default_factory=list[Wire])
    prompts: list[list[Wire]] = field(default_factory=list[list[Wire]])
    fails: bool = False
    kinds: set[str] = field(default_factory=set[str])

    def send(self) -> None:
        try:
            self.prompts.append(self.manager.preflight("s", self.history))
        except InsufficientBudget:
            self.history = self.history[: len(self.history) // 2]

    def compact(self) -> None:
        try:
            self.prompts.append(self.manager.manual_compact("s", self.history))
        except InsufficientBudget:
            return

    @property
    def log(self) -> list[Wire]:
        """Every message that the store has."""
        stored = self.manager.store.load("s")
        assert stored
        return [message.message.original for message in stored.messages]  # type: ignore[misc]

    def why(self, phrase: str) -> PhraseTrace:
        return self.manager.why("s", phrase)


def told_on(url: str, window_tokens: int) -> Told:
    def write(request: SummaryRequest) -> StructuredSummary:
        if told.fails:
            raise RuntimeError("the model answered 500")
        return extractive_summary(request)

    def inject(context: InjectionContext) -> Any:
        return NOTE if len(told.prompts) % 3 == 1 else None

    config = CompactConfig(
        max_context_tokens=window_tokens,
        policy={"hard_cap_buffer": 10, "keep_recent_turns": 3, "keep_tool_io_pairs": 2},
        summarizer={"prefetch": "never"},
        telemetry={"exporter": "none"},
        storage={"adapter": "none"},
        state={"url": url},
    )
    manager = CompactManager(
        config,
        tokenizer=WordTokenizer(),
        strategies=SMALL_STRATEGIES,
        summarizer=write,
        injectors=[Injector("notes", 20, inject)],
    )
    told = Told(manager)
    return told


STEPS = ("say", "say", "say", "say", "send", "send", "compact", "undo", "restore", "edit", "fail", "mend")


def lead(told: Told, steps: list[str], chunks: list[list[Wire]], chance: random.Random) -> None:
    """Do what people do to sessions, in a random order."""
    for number, step in enumerate(steps):
        match step:
            case "say":
                told.history = [*told.history, *chunks[number % len(chunks)], user(f"mark-{number} says hello")]
                told.send()
            case "send" if told.history:
                told.send()
            case "compact" if told.history:
                told.compact()
            case "undo" if told.prompts:
                told.manager.undo("s")
            case "restore" if told.prompts:
                told.manager.restore("s", chance.randint(0, told.manager.current_plan("s").version))
            case "edit" if len(told.history) > 3:
                told.history = [
                    *told.history[: chance.randint(1, len(told.history) - 1)],
                    user(f"edit-{number} instead"),
                ]
                told.send()
            case "fail" | "mend":
                told.fails = step == "fail"
            case _:
                pass


# -- plain counting, written apart from the code -------------------------------------------------------------------


def plain(text: str) -> str:
    return re.sub(r"\s+", " ", text).casefold()


def fields(message: Wire) -> Iterator[str]:
    content = message.get("content")
    if isinstance(content, str):
        yield content
    elif content:
        yield "\n".join(part["text"] for part in content if "text" in part)
    for call in message.get("tool_calls") or ():
        yield call["function"]["name"]
        yield call["function"]["arguments"]


def count(phrase: str, prompt: list[Wire]) -> int:
    wanted = plain(phrase)
    found = 0
    for message in prompt:
        if str(message.get("content")).startswith("<COMPACT-SUMMARY"):
            # Quoted lines begin with a mark; words that go on in the next line are there all the same.
            marked = message["content"]
            found += plain(marked).count(wanted) or plain(re.sub(r"(?m)^\| ", "", marked)).count(wanted)
        else:
            found += sum(plain(text).count(wanted) for text in fields(message))
    return found


def without(totals: list[int], first: int, numbers: list[int]) -> list[int]:
    return [number for place, number in enumerate(numbers) if place >= first and not totals[place]]


def numbers_in(ranges: tuple[CallRange, ...], numbers: list[int]) -> list[int]:
    named = [n for n in numbers if any(found.first <= n <= found.last for found in ranges)]
    assert len(named) == sum(found.calls for found in ranges)
    return named


def phrases_of(texts: list[str], chance: random.Random, most: int) -> list[str]:
    """Pieces of texts: words, words and their neighbours, and pieces that begin and end anywhere."""
    found: list[str] = []
    for text in chance.sample(texts, min(most, len(texts))):
        words = text.split()
        start = chance.randrange(len(words)) if words else 0
        found += [" ".join(words[start : start + size]) for size in (1, 3)]
        cut = chance.randrange(len(text)) if text else 0
        found.append(text[cut : cut + chance.randint(1, 30)])
    return [phrase for phrase in found if phrase.strip()]


def check(told: Told, phrase: str) -> PhraseTrace:
    """Compare everything that is said of one phrase with what plain counting finds."""
    trace = told.why(phrase)
    calls = told.manager.model_calls("s")
    numbers = [call.number for call in calls]
    totals = [count(phrase, prompt) for prompt in told.prompts]
    assert len(numbers) == len(totals) == trace.calls_total
    assert trace.newest_call_count == totals[-1]
    if not trace.is_changed_since_call:
        assert trace.count == totals[-1]
        assert trace.is_in_prompt == bool(totals[-1])
    assert trace.count == sum(place.count for place in trace.places)
    assert trace.last_call_with == next(
        (n for n, total in reversed([*zip(numbers, totals, strict=True)]) if total), None
    )
    having = [seq for seq, message in enumerate(told.log, 1) if count(phrase, [message])]
    assert [sighting.seq for sighting in trace] == having
    firsts = [place for place, total in enumerate(totals) if total][:1]
    firsts += [place for place, call in enumerate(calls) if having and call.last_seq >= having[0]][:1]
    first = min(firsts, default=len(calls))
    assert numbers_in(trace.calls_without, numbers) == without(totals, first, numbers)
    for sighting in trace.sightings[:5]:
        arrived = next((place for place, call in enumerate(calls) if call.last_seq >= sighting.seq), len(calls))
        assert numbers_in(sighting.calls_without, numbers) == without(totals, max(first, arrived), numbers)
        assert not sighting.is_visible or trace.is_in_prompt
    return trace


def check_phrases(told: Told, chance: random.Random, texts: int = 8) -> Counter[str]:
    """Check phrases of the newest prompt, and of the log; return how many of each kind there were."""
    kinds = Counter[str]()
    live = [text for message in told.prompts[-1] for text in fields(message)]
    for phrase in phrases_of(live, chance, texts):
        assert check(told, phrase).newest_call_count, phrase
        kinds["in the prompt"] += 1
    logged = [text for message in told.log for text in fields(message)]
    for phrase in phrases_of(logged, chance, texts):
        trace = check(told, phrase)
        kinds["left out"] += not trace.newest_call_count
        kinds["missing for a while"] += bool(trace.calls_without and trace.newest_call_count)
    ours = ("no result was recorded", "empty message", "tool call that is not in", "recall m", LEFT_OUT)
    for phrase in (NOTE, *ours):
        check(told, phrase)
    return kinds


# -- each way by which words are in a prompt -----------------------------------------------------------------------


ASKED = "which berth? the customer said: berth 42, never on a Sunday. " + "detail " * 200


@pytest.fixture(params=["memory:", "sqlite"])
def told(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Told]:
    """A session in which everything happens that a prompt can be made of."""
    url = request.param if request.param == "memory:" else f"sqlite:///{tmp_path}/state.db"
    told = told_on(url, 900)
    told.history = [
        system("be careful"),
        *dialogue(8, words=25),
        *tool_exchange("ask-1", ASKED, tool="ask_user", question="which berth?"),
        *tool_exchange("read-1", "def charge():\n    return quayside " + "line " * 200, tool="read_file", path="a.py"),
        *tool_run(3, words=120)[1:],
    ]
    told.send()
    artifact_id = told.manager.current_plan("s").externalizations[0].artifact_id
    told.history += [assistant(f"I need {artifact_id}")]
    told.send()
    told.kinds |= {place.kind for place in check(told, "detail").places}
    unanswered = {"id": "call-x", "type": "function", "function": {"name": "bash", "arguments": "{}"}}
    told.history += [{"role": "assistant", "content": None, "tool_calls": [unanswered]}, user("still there?")]
    told.send()
    told.send()
    yield told
    told.manager.close()


def test_every_way_into_a_prompt_is_found(told: Told) -> None:
    """As it came, in a stub, in the summary, injected, rehydrated, and what makes a prompt legal."""
    kinds = told.kinds
    for number in range(4):
        for phrase in ("question-1", "moved to artifact", "still there", NOTE, "detail", "no result was recorded"):
            kinds |= {place.kind for place in check(told, phrase).places}
        told.history += [user(f"and then {number}")]
        told.send()
    assert kinds == {"message", "stub", "summary", "injected", "rehydrated", "repair"}
    reached = check_phrases(told, random.Random(11), texts=40)
    assert min(reached["in the prompt"], reached["left out"], reached["missing for a while"]) > 0, reached


def test_an_answer_tells_who_took_the_words_out_and_why(told: Told) -> None:
    """The words of a message that was cleared are in no prompt since; the record says by whom."""
    told.compact()
    (result,) = (found for found in check(told, "return quayside") if found.role == "tool")
    first = told.manager.plans("s")[0].plan
    record = first.get_action(result.message_id)[1]
    assert record
    assert first.version == 1 < told.manager.current_plan("s").version
    assert (result.strategy, result.reason, result.since_version) == (record.strategy, record.reason, 1)


def test_words_that_are_there_by_another_way_are_not_denied(told: Told) -> None:
    """A message that was taken out does not show them; the prompt does."""
    told.history += [user("once more: question-2 word")]
    told.send()
    trace = check(told, "question-2 ")
    gone, again = trace.sightings[0], trace.sightings[-1]
    assert trace.is_in_prompt
    assert again.is_visible
    assert again.seen_in == "message"
    assert gone.state == "summarised"


def test_an_undo_is_told_apart_from_what_the_newest_call_had(told: Told) -> None:
    """The prompt as it stands has the words again; the newest call went out without them."""
    told.manager.restore("s", 0)
    trace = check(told, "return quayside")
    assert trace.is_changed_since_call
    assert (trace.count, trace.newest_call_count) == (1, 0)
    assert trace.is_in_prompt
    told.manager.undo("s")


def test_a_branch_that_was_left_is_said_to_be(told: Told) -> None:
    """Its words are in the log, in the calls of that time, and in no prompt since."""
    told.history = [*told.history[:3], user("something else entirely")]
    told.send()
    trace = check(told, "still there?")
    assert trace.sightings[0].state == "left behind when the past was edited"
    assert not trace.is_in_prompt
    assert trace.calls_without_total == 1


def test_a_store_that_is_asked_call_by_call_answers_the_same(told: Told) -> None:
    """A store of one's own need not know all calls at once."""
    store: Any = told.manager.store

    class Asked:
        """Hides that the store knows more."""

        def __getattr__(self, name: str) -> Any:
            if name == "call_history":
                raise AttributeError(name)
            return getattr(store, name)

    asked: Any = Asked()
    for phrase in ("question-1", "word", NOTE, "return quayside", "never said"):
        assert PhraseFinder(asked, asked).find("s", phrase) == told.why(phrase)


def test_a_search_that_nobody_waits_for_ends(told: Told) -> None:
    """It ends while it reads, and what it read serves the next one."""
    finder = PhraseFinder(told.manager.store, told.manager.store)  # type: ignore[arg-type]
    for patience in range(3):
        asked = iter([False] * patience)
        with pytest.raises(SearchCancelled):
            finder.find("s", "word", should_stop=lambda asked=asked: next(asked, True))
    assert finder.find("s", "word") == told.why("word")


def test_a_session_that_was_deleted_is_read_anew(told: Told) -> None:
    """Nothing of the former one is told of a new one with its name."""
    assert told.why("question-1 ").sightings_total
    finder = PhraseFinder(told.manager.store, told.manager.store)  # type: ignore[arg-type]
    assert finder.find("s", "question-1 ").sightings_total
    told.manager.delete("s")
    with pytest.raises(UnknownSession):
        finder.find("s", "question-1 ")
    told.manager.preflight("s", [user("a new beginning")])
    assert not finder.find("s", "question-1 ").is_known
    assert finder.find("s", "new beginning").is_in_prompt


def test_pages_of_sightings_say_how_many_there_are(told: Told) -> None:
    """A page has what was asked for; the totals have all."""
    whole = told.why("word")
    finder = PhraseFinder(told.manager.store, told.manager.store)  # type: ignore[arg-type]
    page = finder.find("s", "word", offset=2, limit=3)
    assert page.sightings == whole.sightings[2:5]
    assert page.sightings_total == len(whole) > 5
    assert (page.count, page.places_total) == (whole.count, whole.places_total)
    assert len(page.places) <= 3


def test_the_line_for_a_turn_that_was_left_out_is_found() -> None:
    """Also once the past was edited, and no plan in force has such a line."""
    told = told_on("memory:", 300)
    function = {"name": "read_file", "arguments": '{"path": ""}'}
    call = {"role": "assistant", "content": None, "tool_calls": [{"id": "a", "type": "function", "function": function}]}
    for number in range(6):
        told.history = [*told.history, call, call, user(f"mark-{number} says hello")]
        told.send()
    told.compact()
    assert told.prompts[-1][0] == user(LEFT_OUT)
    assert check(told, LEFT_OUT).last_call_with == 7
    told.history = [user("another beginning"), *told.history[9:]]
    told.send()
    assert check(told, LEFT_OUT).last_call_with == 7


# -- random sessions -----------------------------------------------------------------------------------------------


@given(
    steps=st.lists(st.sampled_from(STEPS), min_size=4, max_size=24),
    chunks=st.lists(histories(max_size=5), min_size=1, max_size=6),
    window_tokens=st.sampled_from([300, 500, 900]),
    seed=st.integers(0, 2**32),
)
@settings(max_examples=40 * SCALE, deadline=None)
def test_what_is_said_of_a_phrase_is_what_went_out(
    steps: list[str], chunks: list[list[Wire]], window_tokens: int, seed: int
) -> None:
    told, chance = told_on("memory:", window_tokens), random.Random(seed)
    lead(told, steps, chunks, chance)
    if not told.prompts:
        return
    check_phrases(told, chance)
    # The session goes on, and what was read of it is read on from there.
    lead(told, ["say", "compact", "say", "edit"], chunks, chance)
    check_phrases(told, chance)
