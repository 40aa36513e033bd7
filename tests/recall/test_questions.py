"""Questions that an agent asks: what is shown for them, what beside it, and how much of it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compact import CompactConfig, CompactManager
from compact.core.audit.artifacts import SecurityContext
from compact.core.engine.events import ContentRecalledEvent
from compact.recall.passage import best_passage
from compact.recall.search import Recall
from compact.recall.tool import answer_tool_call
from compact.testing import RecordingSink, Wire, WordTokenizer, assistant, dialogue, tool_exchange, user

count_words = WordTokenizer().count_text


def manager_with(*messages: Wire, sink: RecordingSink | None = None, **settings: Any) -> CompactManager:
    config = CompactConfig(max_context_tokens=100_000, telemetry={"exporter": "none"}, **settings)
    manager = CompactManager(config, tokenizer=WordTokenizer(), on_event=sink or RecordingSink())
    manager.preflight("s", list(messages))
    return manager


def session() -> list[Wire]:
    return [
        user("We sell books. Keep an eye on the shipping costs."),
        assistant("Understood."),
        *tool_exchange("c1", "Refunds: up to 50 euros without asking, above it ask Ada.", path="policy/refunds.md"),
        *tool_exchange("c2", "Shipping is free above 30 euros.", path="policy/shipping.md"),
        user("Which customers complained?"),
        assistant("Only Mr Brown, about error E4711."),
        *dialogue(5),
    ]


def shown(manager: CompactManager, query: str) -> list[tuple[str, ...]]:
    """Return the ids of what is found, each with its neighbours."""
    found = manager.recall("s", query).found
    return [(entry.message_id, *(near.message_id for near in entry.neighbours)) for entry in found]


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("what was the refund limit", ("m4", "m3")),
        ("refunds", ("m4", "m3")),
        ("policy/shipping.md", ("m5", "m6")),
        ("Who complained?", ("m7", "m8")),
        ("E4711", ("m8", "m7")),
        ("what did m2 say", ("m2", "m1")),
        ("why did c2 fail?", ("m6", "m5")),
    ],
)
def test_the_best_match_comes_first_with_what_belongs_to_it(query: str, first: tuple[str, ...]) -> None:
    assert set(shown(manager_with(*session()), query)[0]) == set(first), "either of a call and its result may be first"


def test_what_is_shown_as_a_neighbour_is_not_shown_again() -> None:
    manager = manager_with(*session())
    answer = manager.recall("s", "what do the policies say about refunds and shipping euros")
    ids = [entry.message_id for entry in answer.entries]
    assert len(ids) == len(set(ids)) >= 4
    assert str(answer).count("Refunds: up to 50 euros") == 1
    assert "[m3, assistant, entry 3, with m4]" in str(answer) or "[m4, tool, entry 4, with m3]" in str(answer)


def test_the_event_names_everything_that_was_shown() -> None:
    sink = RecordingSink()
    answer = manager_with(*session(), sink=sink).recall("s", "refund limit")
    (event,) = sink.of(ContentRecalledEvent)
    assert event.message_ids == tuple(entry.message_id for entry in answer.entries) != ()
    assert event.tokens == sum(count_words(entry.content) for entry in answer.entries)


def test_a_neighbour_that_may_not_be_read_is_not_shown() -> None:
    messages = session()
    messages[3]["meta"] = {"sensitivity": "restricted"}
    manager = manager_with(*messages)
    assert shown(manager, "policy/refunds.md")[0] == ("m3",)
    assert "50 euros" not in str(manager.recall("s", "what is the limit of refunds without asking Ada, in euros?"))
    may = SecurityContext(permissions=frozenset({"read:restricted"}))
    assert "50 euros" in str(manager.recall("s", "policy/refunds.md", security=may))


def test_what_may_not_be_read_takes_no_place_of_what_may() -> None:
    secrets = [{**message, "meta": {"sensitivity": "restricted"}} for message in [user("the refund code")] * 12]
    manager = manager_with(*secrets, user("a refund and a much longer sentence about it"), *dialogue(3))
    assert shown(manager, "refund code")[0][0] == "m13"


def test_our_own_answers_and_questions_are_not_found() -> None:
    manager = manager_with(*session())
    answer = answer_tool_call(lambda query: manager.recall("s", query), '{"query": "refund limit"}')
    asking = tool_exchange("r1", answer, tool="recall", query="refund limit")
    manager.preflight("s", [*session(), *asking])
    assert set(shown(manager, "refund limit")[0]) == {"m3", "m4"}
    assert not {"m19", "m20"} & {i for ids in shown(manager, "refund limit") for i in ids}
    assert len(manager.history("s")) == 20
    assert shown(manager, "m20") == [("m20",)], "by its id everything can be read"


@pytest.mark.parametrize("tool", ["mcp__compact__recall", "compact_recall", "compact.recall", "Recall"])
def test_our_own_answers_and_questions_are_not_found_behind_a_prefix(tool: str) -> None:
    manager = manager_with(*session())
    answer = str(manager.recall("s", "refund limit"))
    wrapped = json.dumps([{"type": "text", "text": answer}])
    nothing = str(Recall("refund limit", ()))
    asking = [
        message
        for number, text in enumerate((answer, wrapped, nothing))
        for message in tool_exchange(f"r{number}", text, tool=tool, query="refund limit")
    ]
    manager.preflight("s", [*session(), *asking])
    assert len(manager.history("s")) == 24
    found = [i for ids in shown(manager, "refund limit") for i in ids]
    assert {"m3", "m4"} <= set(found)
    assert not {f"m{number}" for number in range(19, 25)} & set(found)


def test_a_tool_that_only_sounds_like_ours_is_found() -> None:
    asking = tool_exchange("r1", "nine cars of zebra make", tool="product_recall", query="zebra cars")
    manager = manager_with(*session(), *asking)
    assert set(shown(manager, "zebra")[0]) == {"m19", "m20"}


def test_what_left_the_prompt_comes_before_what_is_still_in_it() -> None:
    """The question itself is in the log, too, and matches itself best."""
    config = CompactConfig(
        max_context_tokens=1_000,
        policy={"hard_cap_buffer": 0, "keep_recent_turns": 2, "keep_tool_io_pairs": 1},
        telemetry={"exporter": "none"},
    )
    manager = CompactManager(config, tokenizer=WordTokenizer())
    asked = user("What was the limit of our refunds?")
    messages = [*session(), *dialogue(12, words=60), asked]
    manager.manual_compact("s", messages)
    assert manager.current_plan("s").version == 1
    found = shown(manager, "what was the limit of our refunds")
    assert set(found[0]) == {"m3", "m4"}
    assert found[-1][0] == f"m{len(messages)}"


def test_of_a_long_entry_the_passage_in_question_is_shown() -> None:
    lines = [f"line {number}: nothing of note happens here" for number in range(2_000)]
    lines[1500] = "line 1500: the refund limit is fifty euros"
    manager = manager_with(*tool_exchange("c1", "\n".join(lines), path="log.txt"), *dialogue(3))
    found = manager.recall("s", "what was the refund limit?", max_tokens=200).found[0]
    assert "the refund limit is fifty euros" in found.content
    assert not found.is_whole
    assert found.content.startswith("…\n")
    assert count_words(found.content) <= 200


def test_what_is_left_of_the_tokens_shows_no_scraps() -> None:
    """A message that is cut to a word or to nothing but the mark of the cut tells an agent nothing."""
    lines = [f"line {number}: nothing of note happens here" for number in range(80)]
    results = ["\n".join([*lines, f"line 80: the refund limit is {number} euros"]) for number in range(8)]
    pairs = (tool_exchange(f"c{number}", text, path="log.txt") for number, text in enumerate(results))
    manager = manager_with(*(message for pair in pairs for message in pair), *dialogue(3))
    found = manager.recall("s", "refund limit", max_tokens=100).found
    cut = [entry.content for one in found for entry in (one, *one.neighbours) if not entry.is_whole]
    assert [count_words(text) for text in cut if count_words(text) < 5] == []
    assert "refund limit is" in cut[0]


def test_no_match_takes_all_the_tokens() -> None:
    texts = ["refund " + f"word{n} " * 900 for n in range(4)]
    found = manager_with(*map(user, texts)).recall("s", "refund", max_tokens=1_000).found
    assert len(found) == 4
    assert sum(count_words(entry.content) for entry in found) <= 1_000


TEXTS = st.text(max_size=40) | st.sampled_from(["m1", "art-0123456789abcdef", "refund [m4]", "'", '"', "\0", "\ud800"])


@given(st.lists(TEXTS, min_size=1, max_size=3), st.integers(min_value=0, max_value=50))
def test_no_query_raises_and_the_answer_fits(pieces: list[str], max_tokens: int) -> None:
    answer = QUESTIONED.recall("s", " ".join(pieces), max_tokens=max_tokens)
    assert sum(count_words(entry.content) for entry in answer.entries) <= max_tokens
    assert isinstance(answer_tool_call(lambda q: QUESTIONED.recall("s", q), json.dumps({"query": pieces[0]})), str)


QUESTIONED = manager_with(*session(), storage={"adapter": "none"}, state={"url": "memory:"})


@given(st.text(max_size=300), st.lists(st.text(max_size=5), max_size=4), st.integers(min_value=0, max_value=40))
def test_a_passage_is_part_of_its_text_and_fits(text: str, terms: list[str], max_tokens: int) -> None:
    passage = best_passage(text, terms, max_tokens, len)
    assert len(passage) <= max_tokens or passage == text == ""
    assert passage.removeprefix("…\n") in text or passage in "…\n"
