"""Asks a model until it answers: patiently, but never beyond a deadline."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from compact.core.errors import SummarizerUnavailable
from compact.summarizers.model_client import ModelAnswer, ModelBusy, ModelClient, ModelRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long to wait for a model: `total_seconds` for everything that one summary needs.

    A server that asks for more than `longest_pause_seconds` is not waited for. One try may take half of the total,
    so that a request that hangs can be made again.
    """

    total_seconds: float = 180.0
    tries: int = 5
    first_pause_seconds: float = 0.5
    longest_pause_seconds: float = 20.0
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    chance: Callable[[], float] = field(default=random.random, repr=False)

    def started(self) -> Deadline:
        """The clock runs from now on."""
        return Deadline(self, self.clock() + self.total_seconds)


@dataclass(frozen=True, slots=True)
class Deadline:
    """The moment by which an answer must be there."""

    patience: Patience
    ends_at: float

    @property
    def remaining_seconds(self) -> float:
        """What is left."""
        return self.ends_at - self.patience.clock()

    def ask(self, client: ModelClient, request: ModelRequest) -> ModelAnswer:
        """The answer, however often it has to be asked for within the time that is left."""
        patience = self.patience
        for number in range(1, patience.tries + 1):
            if self.remaining_seconds <= 0:
                break
            most = min(self.remaining_seconds, patience.total_seconds / 2)
            try:
                return client(replace(request, timeout_seconds=most))
            except ModelBusy as busy:
                self._pause(busy, number)
        raise SummarizerUnavailable(
            f"no answer within {patience.total_seconds:,.0f} seconds", hint="raise summarizer.timeout_seconds"
        )

    def _pause(self, busy: ModelBusy, number: int) -> None:
        patience = self.patience
        pause = busy.retry_after_seconds
        if pause is None:
            # A little chance keeps many agents that failed together from coming back together.
            pause = patience.first_pause_seconds * 2 ** (number - 1) * (1 + patience.chance() / 4)
            pause = min(pause, patience.longest_pause_seconds)
        if number == patience.tries or pause > patience.longest_pause_seconds or pause >= self.remaining_seconds:
            raise busy
        patience.sleep(pause)
