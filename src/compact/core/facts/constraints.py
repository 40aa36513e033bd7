"""The socket for finding constraints: what users asked to hold for the rest of a session."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from compact.core.log.messages import Message


@dataclass(frozen=True, slots=True)
class Constraint:
    """Something a user asked to hold, word for word, and where it was said.

    `weight` is how sure the finder is, on its own scale: constraints of less weight give way first.
    """

    text: str
    source_id: str
    start: int = 0
    weight: float = 0.0


class ConstraintFinder(Protocol):
    """Finds constraints in what people wrote."""

    def find(self, text: str) -> tuple[tuple[int, int], ...]:
        """Return the ranges of a text in which a constraint stands."""
        ...

    def standing(self, messages: Sequence[Message]) -> tuple[Constraint, ...]:
        """Return the constraints that hold at the end of a history: said, and not taken back or replaced since."""
        ...


class NoConstraints:
    """Finds none: for agents whose users never set any, and for tests of other things."""

    def find(self, text: str) -> tuple[tuple[int, int], ...]:
        """Return nothing."""
        return ()

    def standing(self, messages: Sequence[Message]) -> tuple[Constraint, ...]:
        """Return nothing."""
        return ()
