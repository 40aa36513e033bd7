"""The turn in hand, and what a session remembers of artifacts that were rehydrated: shown again for a turn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from compact.core.log.messages import Message


@dataclass(frozen=True, slots=True)
class TurnContext:
    """The number of the turn, and the artifacts that were rehydrated in it.

    What was just rehydrated must not be externalised again in the same turn, or the two would chase each other.
    """

    turn_number: int = 0
    rehydrated_ids: tuple[str, ...] = ()

    def with_rehydrated(self, artifact_id: str) -> TurnContext:
        """Return the same turn with one more artifact."""
        return replace(self, rehydrated_ids=(*self.rehydrated_ids, artifact_id))

    def should_skip_aggressive_compaction(self) -> bool:
        """Return True if something was rehydrated this turn."""
        return bool(self.rehydrated_ids)


@dataclass(frozen=True, slots=True)
class RehydrationState:
    """What a session remembers from turn to turn: when each artifact was last shown, and the newest turn's use.

    `blocked_ids` are the artifacts whose refusal was reported in that turn: the same words are read at every step of
    it, and a refusal is reported once.
    """

    last_turns: Mapping[str, int] = field(default_factory=dict[str, int])
    spent_turn: int = 0
    spent_tokens: int = 0
    blocked_ids: frozenset[str] = frozenset()

    def in_turn(self, turn_number: int, *, cooldown_turns: int) -> RehydrationState:
        """Return the part that still matters in a turn; turns that lie in the future were undone."""
        kept = {i: turn for i, turn in self.last_turns.items() if 0 <= turn_number - turn <= cooldown_turns}
        if self.spent_turn != turn_number:
            return RehydrationState(kept, turn_number)
        return replace(self, last_turns=kept)

    def with_rehydrated(self, artifact_id: str, tokens: int) -> RehydrationState:
        """Return the state after one more artifact was shown."""
        last_turns = {**self.last_turns, artifact_id: self.spent_turn}
        return replace(self, last_turns=last_turns, spent_tokens=self.spent_tokens + tokens)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data; `from_dict` gives back an equal state."""
        return {
            "last_turns": dict(self.last_turns),
            "spent_turn": self.spent_turn,
            "spent_tokens": self.spent_tokens,
            "blocked_ids": sorted(self.blocked_ids),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> RehydrationState:
        """Return the state that `to_dict` wrote."""
        blocked = frozenset(data.get("blocked_ids", ()))
        return cls(dict(data["last_turns"]), data["spent_turn"], data["spent_tokens"], blocked)


@dataclass(frozen=True, slots=True)
class RehydrationBlocked:
    """An artifact that was named and is not shown; what one may not see has the same reason as what is not there."""

    artifact_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class Rehydrated:
    """What was rehydrated for one call: messages to show at its end, refusals, and the turn and state to go on with."""

    messages: tuple[Message, ...]
    turn: TurnContext
    state: RehydrationState = field(default_factory=RehydrationState)
    blocked: tuple[RehydrationBlocked, ...] = ()


# Looks at the messages of a prompt and shows artifacts that the newest ones name, within so many tokens.
Rehydrate: TypeAlias = Callable[[Sequence[Message], TurnContext, RehydrationState, int], Rehydrated]
