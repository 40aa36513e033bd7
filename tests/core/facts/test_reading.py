"""What code reads in a message is read once in its life, changes nothing, takes little room, and goes with it."""

from __future__ import annotations

import gc
import tracemalloc
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

from compact import CompactConfig, CompactManager
from compact.constraints import LearnedConstraints
from compact.core.facts import entities, pieces, tool_calls
from compact.core.facts.extraction import find_facts
from compact.core.facts.open_items import TodoList
from compact.core.facts.outcomes import failure_of
from compact.core.facts.pieces import cut_into_pieces
from compact.core.messages.message import Message, ToolCall
from compact.testing import WordTokenizer, assistant, system, tool_exchange, user
from conversations import SMALL_STRATEGIES, Wire, histories
from numbered import call, exchange, numbered

CONSTRAINTS = LearnedConstraints()
IN_MEMORY: dict[str, Any] = {
    "policy": {"hard_cap_buffer": 0},
    "state": {"url": "memory:"},
    "storage": {"adapter": "none"},
    "telemetry": {"exporter": "none"},
}


def everything_read(messages: Sequence[Message]) -> tuple[object, ...]:
    found = find_facts(messages, constraints=CONSTRAINTS)
    return found, cut_into_pieces(messages), TodoList.of(messages).items(), CONSTRAINTS.standing(messages)


def read_anew(message: Message, read: Callable[[Message], Any]) -> Any:
    return read(message)


@given(histories(max_size=14))
def test_a_history_reads_the_same_whatever_was_read_before(history: list[Wire]) -> None:
    messages = numbered(history)
    for end in range(0, len(messages) + 1, 3):
        everything_read(messages[:end])
    assert everything_read(messages) == everything_read(tuple(map(replace, messages)))


@given(histories(max_size=30))
def test_a_session_has_the_same_prompts_with_and_without_what_was_read_before(history: list[Wire]) -> None:
    def prompts() -> list[list[Wire]]:
        config = CompactConfig(max_context_tokens=300, **IN_MEMORY)
        found: list[list[Wire]] = []
        with CompactManager(config, tokenizer=WordTokenizer(), strategies=SMALL_STRATEGIES) as manager:
            for end in range(1, len(history) + 1):
                try:
                    found.append(manager.preflight("s", history[:end]))
                except Exception as error:  # noqa: BLE001 - what fails must fail both times
                    found.append([{"error": str(error)}])
        return found

    remembered = prompts()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Message, "read_once", read_anew)
        assert prompts() == remembered


def test_a_result_is_read_as_its_call_demands() -> None:
    result = Message("tool", "1\tAlice\n2\tBob", tool_call_id="c")
    listed = [Message("assistant", None, (call("query", q="names"),)), result]
    read = [Message("assistant", None, (call("read_file", path="a.txt"),)), result]
    assert [piece.text for piece in cut_into_pieces(listed)] == ["names", "1\tAlice", "2\tBob"]
    assert [piece.text for piece in cut_into_pieces(read)] == ["a.txt", "Alice", "Bob"]
    long_result = Message("tool", "error: it broke\n" + "line of a file\n" * 60)
    for name in ("bash", "read_file", "bash"):
        assert failure_of(long_result, call(name)) == failure_of(replace(long_result), call(name))


# -- how often ---------------------------------------------------------------------------------------------------------


def grown(rounds: int, *, exchanges: int = 14) -> list[list[Wire]]:
    """What each of so many rounds adds to a session."""
    return [
        [
            user(f"Look at part {number}. Never delete file_{number}.py. " + "please " * 20),
            *(
                message
                for step in range(exchanges)
                for message in tool_exchange(
                    f"call-{number}-{step}",
                    f"line {step} of file_{number}.py says total_{step} = {step * 731}\n" * 4,
                    tool="bash",
                    command=f"cat file_{number}.py | head -{step + 4}",
                )
            ),
            assistant(f"Part {number} is done, we decided to go with plan_{number}. " + "word " * 40),
        ]
        for number in range(rounds)
    ]


def test_each_message_is_read_once_however_many_rounds_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    reads: Counter[str] = Counter()
    read_message, read_finder = pieces._cut_message, LearnedConstraints._read

    def counted_cut(message: Message, numbers: Any) -> Any:
        reads[f"pieces of {message.id}"] += 1
        return read_message(message, numbers)

    def counted_constraints(self: LearnedConstraints, message: Message) -> Any:
        reads[f"constraints of {message.id}"] += 1
        return read_finder(self, message)

    monkeypatch.setattr(pieces, "_cut_message", counted_cut)
    monkeypatch.setattr(LearnedConstraints, "_read", counted_constraints)
    config = CompactConfig(max_context_tokens=1_500, summarizer={"prefetch": "never"}, **IN_MEMORY)
    history: list[Wire] = [system("be careful")]
    per_round: list[int] = []
    with CompactManager(config, tokenizer=WordTokenizer()) as manager:
        for added in grown(12):
            before = sum(reads.values())
            history = [*manager.preflight("s", [*history, *added])]
            per_round.append(sum(reads.values()) - before)
        summary = manager.current_plan("s").summary
    assert summary is not None
    assert summary.version >= 5
    assert reads
    assert max(reads.values()) == 1, reads.most_common(3)
    # A compaction reads what came since the one before, which may be a few rounds: it never starts from the beginning.
    assert max(per_round[6:]) <= 3 * len(grown(1)[0]), per_round


@pytest.mark.parametrize("arguments", [{"rows": [{"id": n, "note": "x y"} for n in range(9_000)]}, {"path": "a.py"}])
def test_arguments_are_parsed_a_few_times_in_all(arguments: dict[str, object], monkeypatch: pytest.MonkeyPatch) -> None:
    made = call("insert", text="word " * 1_000, **arguments)
    messages = numbered([Message("assistant", None, (made,)), Message("tool", "ok", tool_call_id="c")])
    parses: list[str] = []
    parse = tool_calls._parse
    monkeypatch.setattr(tool_calls, "_parse", lambda text: parses.append(text) or parse(text))
    for _ in range(5):
        everything_read(messages)
    assert len(parses) <= 3, "once for what they are about, once for what they note, once for their texts"


@pytest.mark.parametrize(
    "text",
    ["word_one two\n" * 200_000, "ab1\n" * 500_000, "x" * 2_000_000, "no end of words " * 120_000],
    ids=["lines", "short lines", "one word", "one line"],
)
@pytest.mark.parametrize("where", ["typed", "agent", "argument", "result"])
def test_of_a_message_of_megabytes_only_the_ends_are_read(
    text: str, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = Counter[str]()

    def counted(part: str) -> dict[str, entities.EntityKind]:
        read["chars"] += len(part)
        return entities.entity_kinds(part)

    monkeypatch.setattr("compact.core.facts.pieces.entity_kinds", counted)
    monkeypatch.setattr("compact.core.facts.extraction.entity_kinds", counted)
    histories: dict[str, tuple[Message, ...]] = {
        "typed": (Message("user", text),),
        "agent": (Message("assistant", text),),
        "argument": exchange("write", "ok", content=text),
        "result": exchange("bash", text, command="cat it"),
    }
    messages = numbered([Message("user", "go"), *histories[where]])
    find_facts(messages, constraints=CONSTRAINTS)
    cut = cut_into_pieces(messages)
    assert 1_000 < read["chars"] < 600_000
    assert 1_000 < len(cut) < 10_100
    large = [piece for piece in cut if piece.place == (2 if where == "result" else 1)]
    source = "".join(f"{text}\n" for text in [text] if where == "argument") or text
    assert all(piece.text == source[piece.start : piece.end] for piece in large)
    assert large[0].start < 10
    assert large[-1].end >= len(text) - 10


# -- how much room -----------------------------------------------------------------------------------------------------


def test_what_is_kept_of_a_message_is_of_its_own_size_and_goes_with_it() -> None:
    lines = [
        f"    total_{n % 700} = load_order(order_id={n % 900}, retries=3)  # see src/part_{n % 50}/a.py"
        for n in range(9_000)
    ]

    def read() -> tuple[Message, ...]:
        messages = numbered([Message("user", "go"), *exchange("bash", "\n".join(lines), command="cat it")])
        everything_read(messages)
        return messages

    read()  # what is kept in any case: patterns, and which short runs of characters were seen
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        messages = read()
        gc.collect()
        kept = tracemalloc.get_traced_memory()[0] - before
        size = len(messages[-1].text)
        assert size < kept < 3.5 * size, "the text itself, and about as much again for what was read in it"
        del messages
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] - before < 0.2 * size
    finally:
        tracemalloc.stop()


def test_a_copy_with_another_content_is_read_anew() -> None:
    message = Message("assistant", "See total_one.", (ToolCall("c", "bash", '{"command": "ls"}'),))
    assert find_facts([message], constraints=CONSTRAINTS)
    changed = replace(message, content="See total_two.")
    texts = [fact.subject for fact in find_facts([changed], constraints=CONSTRAINTS)]
    assert "total_two" in texts
    assert "total_one" not in texts
