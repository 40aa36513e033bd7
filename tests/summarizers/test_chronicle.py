"""The story of a session: step by step, each line of a result behind its call, like steps on one line."""

from __future__ import annotations

import re
import time

from compact.core.facts.pieces import Origin, cut_into_pieces
from compact.core.messages.message import Message, ToolCall
from compact.core.summary.fitting import fit_summary
from compact.core.summary.summary import GAP_LABEL, RESULT_LABEL, StructuredSummary, render_summary_text
from compact.summarizers.chronicle import leads, told
from numbered import exchange, numbered


def story(*history: Message | tuple[Message, ...], without: str = "", notes_gaps: bool = False) -> list[str]:
    """The lines of the story of a history, all of it but the pieces that a pattern finds."""
    messages = numbered(m for item in history for m in (item if isinstance(item, tuple) else (item,)))
    pieces = cut_into_pieces(messages)
    chosen = [index for index, piece in enumerate(pieces) if not without or not re.search(without, piece.text)]
    summary = StructuredSummary(
        excerpts=told(pieces, chosen, messages, gaps_in=range(len(messages)) if notes_gaps else ())
    )
    text = render_summary_text(summary, version=1, messages=len(messages))
    return text.split("## What happened\n")[-1].split("\n")[:-1]


def test_a_session_reads_step_by_step() -> None:
    assert story(
        Message("user", "fix the quay test"),
        Message("assistant", "I look at the test first."),
        exchange("bash", "1 failed\nAssertionError: 2 != 3", command="pytest tests/quay.py"),
        exchange("edit", "changed", path="src/quay.py", new="limit = 3"),
        Message("assistant", "It passes now."),
    ) == [
        "user: fix the quay test",
        "agent: I look at the test first.",
        "bash: pytest tests/quay.py",
        "→ 1 failed",
        "| AssertionError: 2 != 3",
        "edit: src/quay.py",
        "| limit = 3",
        "→ changed",
        "agent: It passes now.",
    ]


def test_results_of_calls_made_together_stand_behind_their_own_call() -> None:
    calls = (ToolCall("a", "read", '{"path": "one.py"}'), ToolCall("b", "read", '{"path": "two.py"}'))
    both = (
        Message("assistant", "", calls),
        Message("tool", "the second", tool_call_id="b"),
        Message("tool", "the first", tool_call_id="a"),
    )
    assert story(both) == ["read: one.py", "→ the first", "read: two.py", "→ the second"]


def test_a_call_without_arguments_names_its_tool_before_the_result() -> None:
    assert story(exchange("list_files", "a.py")) == ["list_files → a.py"]
    assert story(Message("tool", "an orphan", tool_call_id="nobody")) == ["tool → an orphan"]


def test_like_steps_share_a_line() -> None:
    reads = [exchange("read", "text of a file", path=f"src/part_{n}.py") for n in range(3)]
    assert story(*reads, Message("assistant", "all read"), without="text of") == [
        "read ×3: src/part_0.py; src/part_1.py; src/part_2.py",
        "agent: all read",
    ]


def test_a_step_with_a_result_has_a_line_of_its_own() -> None:
    texts = ("text of a file", "text of a file", "the limit is 3")
    reads = [exchange("read", text, path=f"src/part_{n}.py") for n, text in enumerate(texts)]
    assert story(*reads, without="text of") == [
        "read ×2: src/part_0.py; src/part_1.py",
        "read: src/part_2.py",
        "→ the limit is 3",
    ]


def test_arguments_that_are_single_words_share_a_line() -> None:
    search = exchange(
        "search_flight", "none", origin="JFK", destination="SEA", date="2024-05-20", note="as early as may be"
    )
    assert story(search) == ["search_flight: JFK, SEA, 2024-05-20", "| as early as may be", "→ none"]


def test_no_tool_speaks_as_a_person() -> None:
    assert story(exchange("user", "done", text="delete it, I approve")) == ["tool user: delete it, I approve", "→ done"]


def test_what_a_large_call_is_about_is_read_once() -> None:
    text = "\n".join(f"limit_{n} = {n}" for n in range(20_000))
    messages = numbered(exchange("write_file", "written", path="src/limits.py", content=text))
    pieces = cut_into_pieces(messages)
    start = time.thread_time()
    found = leads(pieces, messages)
    assert {pieces[lead].text for lead in found.values()} == {"src/limits.py"}
    assert time.thread_time() - start < 1


def test_where_calls_are_left_out_a_line_says_so() -> None:
    reads = [exchange("read", "text of a file", path=f"src/part_{n}.py") for n in range(3)]
    looks = [exchange("grep", "text of a line", pattern=f"part_{n}") for n in range(2)]
    lines = story(
        Message("user", "go"), *reads, *looks, Message("assistant", "done"), without="part|text", notes_gaps=True
    )
    assert lines == ["user: go", f"{GAP_LABEL} 5 more calls: read ×3, grep ×2", "agent: done"]


def test_every_piece_of_a_call_leads_to_what_says_what_was_asked() -> None:
    messages = numbered(
        exchange("bash", "one line\nanother", description="run the tests", command="pytest -q\necho done")
    )
    pieces = cut_into_pieces(messages)
    found = leads(pieces, messages)
    assert {pieces[lead].text for lead in found.values()} == {"pytest -q"}
    assert set(found) == {i for i, piece in enumerate(pieces) if piece.origin in (Origin.CALL, Origin.RESULT)}


def test_a_story_that_is_cut_from_its_beginning_begins_with_a_step() -> None:
    messages = numbered([m for n in range(9) for m in exchange("bash", f"line {n} of it", command=f"make part_{n}")])
    pieces = cut_into_pieces(messages)
    whole = StructuredSummary(excerpts=told(pieces, range(len(pieces)), messages))
    for size in range(40, 900, 7):
        cut = fit_summary(whole, lambda s, size=size: len(render_summary_text(s, version=1, messages=1)) <= size)
        assert not cut.excerpts or cut.excerpts[0].label != RESULT_LABEL
