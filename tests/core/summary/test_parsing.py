"""A summary that is read back from its text, for callers that keep nothing but the list of messages."""

from __future__ import annotations

import pytest

from compact.core.facts.ledger import Fact, FactKind, Ledger
from compact.core.summary.parsing import ParsedSummary, parse_summary_text
from compact.core.summary.summary import Excerpt, StructuredSummary, ToolOutcome, render_summary_text

LEDGER = Ledger(
    (
        Fact(FactKind.TASK, "Paint the crane.\n# from its foot\nto its top"),
        Fact(FactKind.CONSTRAINT, "Never on a Friday."),
        Fact(FactKind.CONSTRAINT, "Never in the rain."),
        Fact(FactKind.LATEST_ASK, "- and the quay\n- and the dock"),
        Fact(FactKind.FILE, "src/a.py"),
        Fact(FactKind.MENTION, "BERTH-77"),
        Fact(FactKind.MENTION, "ORD-4711"),
    )
)


def parsed(text: str) -> ParsedSummary:
    found = parse_summary_text(text)
    assert found is not None
    return found


def test_the_facts_of_a_summary_are_read_back_and_the_rest_is_its_narrative() -> None:
    summary = StructuredSummary(
        ledger=LEDGER,
        narrative="We went on.\nAnd on.",
        facts=("It is red.",),
        tool_outcomes=(ToolOutcome("bash", "it ran"),),
    )
    found = parsed(render_summary_text(summary, version=12, messages=30))
    assert found.version == 12
    assert found.summary.ledger == LEDGER
    assert found.summary.narrative == "- bash: it ran\n- It is red.\nWe went on.\nAnd on."


def test_a_summary_that_tells_nothing_is_empty() -> None:
    assert parsed(render_summary_text(StructuredSummary(), version=1, messages=1)) == ParsedSummary(
        1, StructuredSummary()
    )


@pytest.mark.parametrize("around", ["{} and more", "so: {}", "{}\n", "no summary"])
def test_a_text_that_only_has_a_summary_in_it_is_none(around: str) -> None:
    text = render_summary_text(StructuredSummary(ledger=LEDGER), version=1, messages=2)
    assert parse_summary_text(around.format(text)) is None


def test_what_looks_like_a_heading_out_of_its_order_is_content() -> None:
    """So is one that stands there twice; what stands before the first is nobody's."""
    body = "stray\nof nobody\n## Task\nPaint it.\n## Task\nagain\n## Files\n- a.py\nno entry\n"
    body += "## Task\n## Facts\nRed.\n## Colours\n"
    found = parsed(f"<COMPACT-SUMMARY v1>\n(2 earlier messages; recall finds them)\n{body}</COMPACT-SUMMARY>").summary
    assert found.ledger == Ledger((Fact(FactKind.TASK, "Paint it.\n## Task\nagain"), Fact(FactKind.FILE, "a.py")))
    assert found.narrative == "Red.\n## Colours"


def test_a_section_without_words_adds_nothing() -> None:
    text = "<COMPACT-SUMMARY v1>\n(2 earlier messages; recall finds them)\n## Facts\n## What happened\nWe went on.\n"
    assert parsed(f"{text}</COMPACT-SUMMARY>").summary.narrative == "We went on."


def test_a_story_that_was_read_is_told_again_as_it_was() -> None:
    told = StructuredSummary(excerpts=(Excerpt("bash:", "ls"), Excerpt("→", "a.py")))
    again = parsed(render_summary_text(told, version=1, messages=2)).summary
    assert again.narrative == told.story == "bash: ls\n→ a.py"
