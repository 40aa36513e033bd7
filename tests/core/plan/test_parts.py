"""The division of a prompt: what each message counts as, whom it is from, and in which order parts are named."""

from __future__ import annotations

import pytest

from compact.core.facts.ledger import Fact, FactKind, Ledger
from compact.core.messages.message import Message
from compact.core.plan.layers import KeepRules
from compact.core.plan.parts import PromptPart, contents_in_order, in_order, ledger_share, part_of, source_of
from compact.core.plan.plan import (
    AttachmentPointer,
    ClearRecord,
    ExternalizationRecord,
    Record,
    SpanReference,
    SummarizationRecord,
)
from compact.core.plan.stubs import SHORTEN
from compact.core.summary.summary import Decision, Excerpt, OpenItem, StructuredSummary, ToolOutcome

SPAN = SpanReference(("m1",))
MARKED = {"protected": True}
MOVED = ExternalizationRecord(span=SPAN, strategy="externalize", reason="", artifact_id="art-1")
BESIDE = ExternalizationRecord(
    span=SPAN,
    strategy="externalize",
    reason="",
    artifact_id="art-1",
    attachments=(AttachmentPointer("art-1", "photo.png", "photo.png, 3 KB"),),
)


@pytest.mark.parametrize(
    ("message", "record", "part"),
    [
        (Message("user", "x"), None, PromptPart.DIALOGUE),
        (Message("assistant", "x"), None, PromptPart.DIALOGUE),
        (Message("tool", "x"), None, PromptPart.TOOL_RESULTS),
        (Message("system", "x"), None, PromptPart.SYSTEM),
        (Message("developer", "x", meta=MARKED), None, PromptPart.DEVELOPER),
        (Message("tool", "x", meta=MARKED), None, PromptPart.PINNED),
        (Message("tool", "x"), ClearRecord(span=SPAN, strategy="clear", reason=""), PromptPart.STUBS),
        (Message("tool", "x"), ClearRecord(span=SPAN, strategy=SHORTEN, reason=""), PromptPart.TOOL_RESULTS),
        (Message("tool", "x"), MOVED, PromptPart.STUBS),
        (Message("user", "x"), BESIDE, PromptPart.DIALOGUE),
        (Message("user", "x"), SummarizationRecord(span=SPAN, strategy="s", reason=""), PromptPart.SUMMARY),
    ],
)
def test_each_message_belongs_to_one_part(message: Message, record: Record | None, part: PromptPart) -> None:
    assert part_of(message, record, KeepRules()) is part


def test_a_result_is_from_its_tool_and_all_else_from_its_role() -> None:
    tools = {"c1": "bash", "": "nobody's"}
    assert source_of(Message("user", "x", tool_call_id="c1"), tools) == "user"
    assert source_of(Message("tool", "x", tool_call_id="c1", name="named"), tools) == "bash"
    assert source_of(Message("tool", "x", tool_call_id="c2", name="named"), tools) == "named"
    assert source_of(Message("tool", "x", tool_call_id="c2"), tools) == "tool"
    assert source_of(Message("tool", "x", name="named"), {"c1": "bash"}) == "named"


def test_parts_are_named_in_the_order_of_a_prompt_and_what_is_in_them_by_size() -> None:
    results, said = PromptPart.TOOL_RESULTS, PromptPart.DIALOGUE
    tokens = {
        (results, "read"): 5,
        (results, "grep"): 9,
        (results, "bash"): 5,
        (results, "nothing"): 0,
        (said, "user"): 1,
        (PromptPart.STUBS, "tool"): 0,
    }
    found = contents_in_order(tokens)
    assert list(found) == ["dialogue", "tool_results"]
    assert list(found["tool_results"].items()) == [("grep", 9), ("bash", 5), ("read", 5)]
    parts = in_order({results: 3, PromptPart.SYSTEM: 2, said: 0})
    assert list(parts.items()) == [("system", 2), ("tool_results", 3)]


def test_the_ledger_has_its_share_of_a_summary_by_characters() -> None:
    ledger = Ledger((Fact(FactKind.FILE, "a" * 30, "b" * 10),))

    def share(**parts: object) -> float:
        summary = StructuredSummary(ledger=ledger, **parts)  # type: ignore[arg-type]
        return ledger_share(SummarizationRecord(span=SPAN, strategy="s", reason="", summary=summary))

    told = {
        "narrative": "n" * 20,
        "excerpts": (Excerpt("tool", "e" * 40, "m1"),),
        "tool_outcomes": (ToolOutcome("bash", "o" * 5),),
        "facts": ("f" * 15,),
        "decisions": (Decision("d" * 30, "r" * 10),),
        "open_items": (OpenItem("i" * 40),),
    }
    assert share() == 1.0
    assert share(narrative="n" * 40) == 0.5
    assert share(**told) == 40 / 200
    assert [share(**{name: part}) for name, part in told.items()] == [40 / 60, 0.5, 40 / 45, 40 / 55, 0.5, 0.5]
    unwritten = SummarizationRecord(span=SPAN, strategy="s", reason="")
    assert ledger_share(unwritten) == 0.0
    without = SummarizationRecord(span=SPAN, strategy="s", reason="", summary=StructuredSummary())
    assert ledger_share(without) == 0.0
