"""Ask a model again while it is busy, but never beyond a deadline."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from compact.core.errors import SummarizerUnavailable
from compact.summarizers.clients.model_client import CompletionRequest, ModelAnswer, ModelBusy


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How often and how long to try: `total_seconds` is for everything that one summary needs.

    A server that asks for more than `longest_pause_seconds` is not waited for. One try may take half of the total,
    so that a request that hangs can be made again. The defaults are chosen.
    """

    total_seconds: float = 180.0
    tries: int = 5
    first_pause_seconds: float = 0.5
    longest_pause_seconds: float = 20.0
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    jitter: Callable[[], float] = field(default=random.random, repr=False)

    def start(self) -> Deadline:
        """Return the deadline of a summary that begins now."""
        return Deadline(self, self.clock() + self.total_seconds)


@dataclass(frozen=True, slots=True)
class Deadline:
    """The moment by which an answer must be there."""

    policy: RetryPolicy
    ends_at: float

    @property
    def remaining_seconds(self) -> float:
        """The seconds that are left."""
        return self.ends_at - self.policy.clock()

    def ask(self, call: Callable[[CompletionRequest], ModelAnswer], request: CompletionRequest) -> ModelAnswer:
        """Return the answer, however often it has to be asked for within the time that is left."""
        policy = self.policy
        for number in range(1, policy.tries + 1):
            if self.remaining_seconds <= 0:
                break
            timeout = min(self.remaining_seconds, policy.total_seconds / 2)
            try:
                return call(replace(request, timeout_seconds=timeout))
            except ModelBusy as busy:
                self._pause(busy, number)
        raise SummarizerUnavailable(
            f"no answer within {policy.total_seconds:,.0f} seconds", hint="raise summarizer.timeout_seconds"
        )

    def _pause(self, busy: ModelBusy, number: int) -> None:
        policy = self.policy
        pause = busy.retry_after_seconds
        if pause is None:
            # A random share keeps many agents that failed together from coming back together.
            pause = policy.first_pause_seconds * 2 ** (number - 1) * (1 + policy.jitter() / 4)
            pause = min(pause, policy.longest_pause_seconds)
        if number == policy.tries or pause > policy.longest_pause_seconds or pause >= self.remaining_seconds:
            raise busy
        policy.sleep(pause)
