"""The turn in hand: what is shown again in it, what is remembered of that, and how it is told from what people say."""

from __future__ import annotations

from compact.core.messages.message import Message
from compact.core.plan.turn import (
    Fence,
    Rehydration,
    RehydrationBlocked,
    RehydrationResult,
    RehydrationState,
    TurnContext,
    added_by,
    added_label,
    is_added,
    render_rehydrated,
)

ARTIFACT = "art-0123456789abcdef"


def test_what_is_added_behind_the_log_is_known_by_its_label() -> None:
    named = Message("user", f"{added_label('docs')}\nsome text")
    shown = render_rehydrated(RehydrationResult(ARTIFACT, "content", 9))
    assert (is_added(named), added_by(named)) == (True, "docs")
    assert (is_added(shown), added_by(shown)) == (True, "")
    for other in (Message("tool", named.text), Message("user", f"see {named.text}")):
        assert not is_added(other)
    assert added_by(Message("user", f"see {named.text}")) == ""


def test_an_artifact_is_shown_for_this_call_only_and_as_data() -> None:
    text = render_rehydrated(RehydrationResult(ARTIFACT, "the content", 9))
    assert (text.role, text.id) == ("user", f"compact-rehydrated-{ARTIFACT}")
    assert text.meta == {"ephemeral": True, "artifact_id": ARTIFACT}
    assert text.text.endswith(f"\n<{ARTIFACT}>\nthe content\n</{ARTIFACT}>")
    part = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
    attachment = render_rehydrated(RehydrationResult(ARTIFACT, "photo.png", 9, part=part))
    assert attachment.content is not None
    assert attachment.content[1] == part
    assert "the attachment photo.png, which was sent earlier" in attachment.text


def test_a_fence_is_in_no_content() -> None:
    assert str(Fence.around("a\nb", "x")) == "<x>\na\nb\n</x>"
    assert Fence.around("tag", "tag").tag == "tag-2"
    assert Fence.around("tag tag-2", "tag").tag == "tag-3"


def test_only_a_refused_attachment_is_told_in_the_prompt() -> None:
    blocked = (
        RehydrationBlocked(ARTIFACT, "there is no room", is_attachment=True, tokens=9),
        RehydrationBlocked("art-2", "it is not there"),
    )
    (message,) = Rehydration((), blocked, TurnContext(), RehydrationState()).refusals
    assert message.text == f"[artifact {ARTIFACT} is not shown: there is no room]"
    assert message.meta == {"ephemeral": True, "artifact_id": ARTIFACT}


STATE = RehydrationState({"a": 4, "b": 5, "c": 7, "d": 8}, 7, 30, frozenset({"e"}))


def test_in_a_turn_only_what_was_shown_lately_counts_and_nothing_of_turns_that_were_undone() -> None:
    assert STATE.in_turn(7, cooldown_turns=2) == RehydrationState({"b": 5, "c": 7}, 7, 30, frozenset({"e"}))
    assert STATE.in_turn(8, cooldown_turns=3) == RehydrationState({"b": 5, "c": 7, "d": 8}, 8)


def test_a_turn_is_forgotten_with_what_was_spent_in_it() -> None:
    assert STATE.without_turn(7) == RehydrationState({"a": 4, "b": 5, "d": 8}, 7, 0, frozenset({"e"}))
    assert STATE.without_turn(5) == RehydrationState({"a": 4, "c": 7, "d": 8}, 7, 30, frozenset({"e"}))


def test_what_is_shown_adds_up() -> None:
    shown = STATE.with_rehydrated("a", 12)
    assert shown == RehydrationState({"a": 7, "b": 5, "c": 7, "d": 8}, 7, 42, frozenset({"e"}))
    assert RehydrationState.from_dict(shown.to_dict()) == shown
    turn = TurnContext(3).with_rehydrated("a").with_rehydrated("b")
    assert turn.rehydrated_ids == ("a", "b")
    assert turn.should_skip_aggressive_compaction()
    assert not TurnContext(3).should_skip_aggressive_compaction()
