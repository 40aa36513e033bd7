"""Counts what summaries cost, session by session, and says when it is enough."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

from compact.core.errors import SpendLimitReached


@dataclass(frozen=True, slots=True)
class Spent:
    """What a session has spent on summaries so far; calls without a known price count as calls alone."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    usd: float = 0.0


class Accounts:
    """One account per session, for as long as the process lives; safe between threads.

    `price` tells dollars for tokens in and out, or None if it does not know the model.
    """

    def __init__(
        self,
        *,
        max_usd: float | None = None,
        max_calls: int | None = None,
        price: Callable[[int, int], float | None] = lambda input_tokens, output_tokens: None,
    ) -> None:
        self._max_usd, self._max_calls, self._price = max_usd, max_calls, price
        self._lock = threading.Lock()
        self._spent: dict[str, Spent] = {}

    def spent(self, session_id: str) -> Spent:
        """What a session has spent."""
        with self._lock:
            return self._spent.get(session_id, Spent())

    def check(self, session_id: str, *, input_tokens: int, output_tokens: int) -> None:
        """Raise SpendLimitReached if a call of this size would go beyond a limit."""
        spent = self.spent(session_id)
        if self._max_calls is not None and spent.calls >= self._max_calls:
            raise SpendLimitReached(
                f"session {session_id!r} has asked the summariser {spent.calls} times, which is its limit",
                hint="raise summarizer.max_calls_per_session",
            )
        if self._max_usd is None:
            return
        next_usd = self._price(input_tokens, output_tokens) or 0.0
        if spent.usd + next_usd > self._max_usd:
            raise SpendLimitReached(
                f"session {session_id!r} has spent ${spent.usd:.4f} on summaries; another of about ${next_usd:.4f} "
                f"would go beyond its limit of ${self._max_usd:.4f}",
                hint="raise summarizer.max_spend_usd_per_session, or name a cheaper summarizer.model",
            )

    def add(self, session_id: str, *, input_tokens: int, output_tokens: int) -> None:
        """Note a call that was made."""
        usd = (self._price(input_tokens, output_tokens) or 0.0) if self._max_usd is not None else 0.0
        with self._lock:
            before = self._spent.get(session_id, Spent())
            self._spent[session_id] = Spent(
                before.calls + 1,
                before.input_tokens + input_tokens,
                before.output_tokens + output_tokens,
                before.usd + usd,
            )
