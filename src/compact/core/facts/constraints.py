"""The socket for finding constraints: what users asked to hold for the rest of a session."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from compact.core.messages.message import Message, list_start


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


class ConstraintReader(Protocol):
    """Reads a history message by message."""

    def add(self, message: Message) -> None:
        """Read the next message."""
        ...

    def standing(self) -> tuple[Constraint, ...]:
        """Return the constraints that hold at the end of what was read."""
        ...


@runtime_checkable
class ReadingFinder(ConstraintFinder, Protocol):
    """A finder that can go on where it was in a history; one that cannot reads all of it each time."""

    def reader(self) -> ConstraintReader:
        """Return what has read nothing yet."""
        ...


class ConstraintReading:
    """How far a session's history was read for constraints: who asks next goes on from there. Forks share it."""

    def __init__(self) -> None:
        # Whoever reads takes it out, and another fork meanwhile reads all anew.
        self._kept: list[tuple[ConstraintReader, list[Message]]] = []

    def of(self, finder: ConstraintFinder) -> ConstraintFinder:
        """Return the finder as one that reads no message of the session twice."""
        return _ContinuedFinder(finder, self._kept) if isinstance(finder, ReadingFinder) else finder


@dataclass(frozen=True, slots=True)
class _ContinuedFinder:
    """Goes on where a history was read to, if it still begins with that."""

    finder: ReadingFinder
    kept: list[tuple[ConstraintReader, list[Message]]]

    def find(self, text: str) -> tuple[tuple[int, int], ...]:
        return self.finder.find(text)

    def standing(self, messages: Sequence[Message]) -> tuple[Constraint, ...]:
        try:
            reader, known = self.kept.pop()
        except IndexError:
            reader, known = self.finder.reader(), list[Message]()
        if list_start(messages, len(known)) != known:
            reader, known = self.finder.reader(), []
        new = messages[len(known) :]
        for message in new:
            reader.add(message)
        known.extend(new)
        self.kept[:] = [(reader, known)]
        return reader.standing()


class NoConstraints:
    """Finds none: for agents whose users never set any, and for tests of other things."""

    def find(self, text: str) -> tuple[tuple[int, int], ...]:
        """Return nothing."""
        return ()

    def standing(self, messages: Sequence[Message]) -> tuple[Constraint, ...]:
        """Return nothing."""
        return ()
