"""What a message says about constraints is read once, however often the constraints of its history are asked for."""

from __future__ import annotations

import pytest

from compact.constraints import LearnedConstraints, finder
from compact.core.messages.message import Message


def test_a_retraction_is_looked_for_once_in_the_life_of_a_message(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def withdraws(sentence: str) -> bool:
        asked.append(sentence)
        return False

    monkeypatch.setattr(finder, "withdraws", withdraws)
    history = [Message("user", f"Is module {number} fine again?", id=f"m{number}") for number in range(20)]
    constraints = LearnedConstraints()
    constraints.standing(history)
    assert asked
    asked.clear()
    constraints.standing(history)
    assert asked == []


@pytest.mark.parametrize("ordinary", ["Please look at module 3.", "The token of the book is broken."])
def test_words_that_only_hold_one_of_a_retraction_are_not_looked_at(
    ordinary: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(finder, "withdraws", asked.append)
    LearnedConstraints().standing([Message("user", ordinary, id="m1")])
    assert asked == []
