"""Attachments in a plan: what stands for them, what a summary says of them, and what is cut beside them."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from compact.core.messages.attachments import attachments_of
from compact.core.messages.message import Message
from compact.core.plan.layers import KeepRules
from compact.core.plan.parts import PromptPart
from compact.core.plan.plan import ClearRecord, CompactionPlan, ExternalizationRecord
from compact.core.plan.renderer import PromptRenderer
from compact.core.plan.strategy import CompactionStrategy, Goal
from compact.core.plan.stubs import attachments_record, render_externalized
from compact.core.planning.attachment_moves import beside_attachments
from compact.core.planning.coordinator import CompactionCoordinator, CompactionResult
from compact.strategies import SummarizeStrategy, WindowStrategy
from compact.testing import WordTokenizer


@dataclass(frozen=True)
class FlatRate(WordTokenizer):
    """Counts words, and so many tokens for each attachment."""

    rate: int = 60

    def count_message(self, message: Message) -> int:
        return super().count_message(message) + self.rate * len(attachments_of(message))


def picture(number: int) -> dict[str, Any]:
    data = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes([number]) * 20).decode()
    return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}


def sends(number: int, text: str, **meta: Any) -> Message:
    return Message("user", ({"type": "text", "text": text}, picture(number)), id=f"m{number}", meta=meta)


def replies(number: int, words: int = 50) -> Message:
    return Message("assistant", "word " * words, id=f"m{number}")


STRATEGIES = (WindowStrategy(), SummarizeStrategy())


def coordinated(
    log: list[Message],
    goal: Goal,
    *,
    rate: int = 60,
    strategies: Sequence[CompactionStrategy] = STRATEGIES,
    **rules: Any,
) -> CompactionResult:
    count = FlatRate(rate=rate).count_message
    return CompactionCoordinator(strategies).coordinate(
        log,
        CompactionPlan("s"),
        tokens=[count(message) for message in log],
        count_message=count,
        rules=KeepRules(recent_turns=1, tool_io_pairs=1, **rules),
        goal=goal,
    )


def long_log(turns: int = 10) -> list[Message]:
    log: list[Message] = []
    for turn in range(turns):
        log += [sends(2 * turn + 1, f"picture {turn}"), replies(2 * turn + 2)]
    return [*log, Message("user", "And now?", id="last")]


def test_the_rest_of_the_message_stays_and_the_plan_survives_storing() -> None:
    result = coordinated(long_log(), Goal(target_tokens=900, settle_tokens=1_000, ceiling_tokens=2_000))
    moved = result.plan.get_action("m1")[1]
    assert isinstance(moved, ExternalizationRecord)
    shown = PromptRenderer().render(long_log(), result.plan).messages[0]
    assert shown.text.startswith("picture 0\n[moved to artifact art-")
    assert CompactionPlan.from_dict(result.plan.to_dict()) == result.plan
    assert result.plan.get_action("m19")[1] is None, "it is in use"


def test_a_summary_names_what_was_too_small_to_be_moved() -> None:
    """A pointer would be longer than the picture; what the summary takes in is named in it all the same."""
    goal = Goal(target_tokens=300, settle_tokens=400, ceiling_tokens=600, must_run=frozenset({"summarize"}))
    result = coordinated(long_log(), goal, rate=1)
    assert result.plan.summary is not None
    inside = set(result.plan.summary.span)
    named = {record.span.first for record in result.plan.summary.artifacts}
    assert "m1" in inside
    assert named == {message.id for message in long_log() if message.id in inside and attachments_of(message)}


def test_a_long_text_beside_an_attachment_is_cut_and_the_pointer_stays() -> None:
    log = [sends(1, "word " * 400)]
    result = coordinated(log, Goal(target_tokens=100, settle_tokens=150, ceiling_tokens=200))
    (shown,) = PromptRenderer().render(log, result.plan).messages
    assert "[shortened: " in shown.text
    assert shown.text.endswith("brings it back]")
    assert WordTokenizer().count_message(shown) == result.tokens_after <= 200
    assert CompactionPlan.from_dict(result.plan.to_dict()) == result.plan


def test_the_oldest_attachments_in_use_give_way_first() -> None:
    goal = Goal(target_tokens=200, settle_tokens=250, ceiling_tokens=330)
    result = coordinated(long_log(4), goal, attachment_turns=9)
    shown = {message.id for message in long_log(4) if result.plan.get_action(message.id)[1] is None}
    assert "m7" in shown
    assert "m1" not in shown
    assert result.tokens_after <= 330


def test_a_long_text_beside_an_attachment_in_use_is_not_cut_before_what_was_answered() -> None:
    log = [sends(1, "word " * 150), replies(2, 250), Message("user", "And now?", id="last")]
    goal = Goal(target_tokens=400, settle_tokens=400, ceiling_tokens=400)
    result = coordinated(log, goal, strategies=(), attachment_turns=3)
    assert result.plan.get_action("m1")[1] is None
    assert isinstance(result.plan.get_action("m2")[1], ClearRecord)


def test_an_attachment_stays_where_its_pointer_would_be_as_long() -> None:
    log = long_log()
    goal = Goal(target_tokens=9_000, settle_tokens=9_000, ceiling_tokens=9_000)
    pointer = WordTokenizer().count_message(render_externalized(log[0], attachments_record(log[0], "s", reason="old")))
    rate = pointer - WordTokenizer().count_message(log[0])
    assert coordinated(log, goal, rate=rate).plan.records == ()
    assert coordinated(log, goal, rate=rate + 1).plan.records != ()


def test_what_is_beside_a_large_attachment_has_its_usual_share_of_the_rest() -> None:
    goal = Goal(target_tokens=400, settle_tokens=500, ceiling_tokens=1_000)
    beside = beside_attachments(goal, 600)
    assert (beside.target_tokens, beside.settle_tokens, beside.ceiling_tokens) == (600 + 160, 600 + 200, 1_000)


def test_beside_a_large_attachment_in_use_there_is_room_for_a_summary() -> None:
    log = [m for n in range(10) for m in (Message("user", f"question {n}", id=f"q{n}"), replies(n))]
    log.append(sends(99, "look at this"))
    result = coordinated(log, Goal(target_tokens=400, settle_tokens=500, ceiling_tokens=1_000), rate=600)
    assert result.plan.summary
    assert 700 < result.tokens_after <= 800


@pytest.mark.parametrize("attached", [0, 200, 1_000, 1_200])
def test_a_goal_stays_for_attachments_that_are_small_or_leave_no_rest(attached: int) -> None:
    goal = Goal(target_tokens=400, settle_tokens=500, ceiling_tokens=1_000)
    assert beside_attachments(goal, attached) is goal
    assert beside_attachments(goal, 201) != goal != beside_attachments(goal, 999)


@pytest.mark.parametrize("asked", [{"is_exact": True}, {"part": PromptPart.DIALOGUE}])
def test_a_size_that_is_asked_for_holds_whatever_is_attached(asked: dict[str, Any]) -> None:
    goal = Goal(target_tokens=400, settle_tokens=500, ceiling_tokens=1_000, **asked)
    assert beside_attachments(goal, 600) is goal


def test_a_name_that_is_more_than_internal_is_not_quoted() -> None:
    part = {"type": "document", "title": "merger.txt", "source": {"type": "text", "data": "words"}}
    message = Message("user", (part,), id="m1", meta={"sensitivity": "confidential"})
    record = attachments_record(message, "s", reason="old")
    assert "merger" not in repr(record) + render_externalized(message, record).text
    assert record.sensitivity == "confidential"
