"""Limits on what the summaries of a session may cost."""

from __future__ import annotations

import threading
from collections.abc import Callable

from compact.core.errors import SpendLimitReached
from compact.core.plurals import quantity
from compact.core.summary.summarizer import SummaryRequest


def _unknown_price(input_tokens: int, output_tokens: int) -> float | None:
    return None


class SpendLimits:
    """The most that each session may spend; safe between threads.

    `price` returns dollars for tokens in and out, or None if it does not know the model.
    """

    def __init__(
        self,
        *,
        max_usd: float | None = None,
        max_calls: int | None = None,
        price: Callable[[int, int], float | None] = _unknown_price,
    ) -> None:
        self._max_usd, self._max_calls, self._price = max_usd, max_calls, price
        self._lock = threading.Lock()

    def count_call(self, request: SummaryRequest, *, input_tokens: int, output_tokens: int) -> None:
        """Count a call that is about to be made, whether it will fail or not; raise if it would go beyond a limit."""
        with self._lock:
            self._check(request, input_tokens, output_tokens)
            request.spending.calls += 1
            request.tally.calls += 1

    def _check(self, request: SummaryRequest, input_tokens: int, output_tokens: int) -> None:
        spent, session_id = request.spending, request.session_id
        if self._max_calls is not None and spent.calls >= self._max_calls:
            raise SpendLimitReached(
                f"session {session_id!r} has asked the summariser {quantity(spent.calls, 'time')}, which is its limit",
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

    def add(self, request: SummaryRequest, *, input_tokens: int, output_tokens: int) -> None:
        """Add the tokens of a call that was answered to what its session has spent."""
        usd = (self._price(input_tokens, output_tokens) or 0.0) if self._max_usd is not None else 0.0
        with self._lock:
            for spent in (request.spending, request.tally):
                spent.input_tokens += input_tokens
                spent.output_tokens += output_tokens
                spent.usd += usd
