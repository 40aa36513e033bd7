"""The interceptor in a manager's service: it remembers, per session, what was brought back when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from compact.core.log.messages import Message
from compact.core.plan.turn import Rehydrated, TurnContext
from compact.recall.rehydration import RehydrationInterceptor, RehydrationState, render_rehydrated


@dataclass(frozen=True, slots=True)
class SessionRehydrator:
    """Looks at what was just said in a session, and has shown what it names."""

    interceptor: RehydrationInterceptor
    states: dict[str, RehydrationState] = field(default_factory=dict[str, RehydrationState])
    refused: dict[str, tuple[int, set[str]]] = field(default_factory=dict[str, tuple[int, set[str]]])

    def __call__(
        self, session_id: str, messages: Sequence[Message], turn: TurnContext, *, budget_tokens: int
    ) -> Rehydrated:
        """What to show at the end of the prompt."""
        state = self.states.get(session_id) or RehydrationState()
        found = self.interceptor.intercept(messages, turn, state, budget_tokens=max(0, budget_tokens))
        self.states[session_id] = found.state
        shown = tuple(render_rehydrated(result) for result in found.results)
        # The same words are read at every step of a turn; a refusal is told once.
        number, told = self.refused.get(session_id, (turn.turn_number, set[str]()))
        told = told if number == turn.turn_number else set[str]()
        fresh = [blocked for blocked in found.blocked if blocked.artifact_id not in told]
        self.refused[session_id] = (turn.turn_number, told | {blocked.artifact_id for blocked in fresh})
        return Rehydrated(shown, found.turn, tuple((blocked.artifact_id, blocked.reason) for blocked in fresh))
