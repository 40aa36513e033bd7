"""What is known about the turn in hand."""

from __future__ import annotations

from dataclasses import dataclass, replace

from compact.core.log.messages import Message


@dataclass(frozen=True, slots=True)
class TurnContext:
    """The number of the turn, and what was brought back in it.

    Content that was just rehydrated must not be pushed out again in the same turn, or the two would chase each other.
    """

    turn_number: int = 0
    rehydrated_ids: tuple[str, ...] = ()

    def with_rehydrated(self, artifact_id: str) -> TurnContext:
        """The same turn, one artifact richer."""
        return replace(self, rehydrated_ids=(*self.rehydrated_ids, artifact_id))

    def should_skip_aggressive_compaction(self) -> bool:
        """True if something was brought back this turn."""
        return bool(self.rehydrated_ids)


@dataclass(frozen=True, slots=True)
class Rehydrated:
    """What was brought back for one call: messages to show at its end, and what could not be shown, with the reason."""

    messages: tuple[Message, ...]
    turn: TurnContext
    blocked: tuple[tuple[str, str], ...] = ()
