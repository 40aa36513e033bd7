"""What is tried next when a summary does not come out: shorter, then simpler, then nothing more."""

from __future__ import annotations

from dataclasses import dataclass, replace

from compact.core.errors import (
    SummaryEchoed,
    SummaryEmpty,
    SummaryRefused,
    SummaryTooLong,
    SummaryTruncated,
    SummaryUnreadable,
)

SIMPLEST = "brief"
_MOST_HALVINGS = 2
_FEWEST_TOKENS = 24
_TOO_MUCH = (SummaryTooLong, SummaryTruncated)
_NO_ANSWER = (SummaryRefused, SummaryEmpty, SummaryEchoed, SummaryUnreadable)


@dataclass(frozen=True, slots=True)
class Rung:
    """How a summary is asked for: in which form, and how long it may be."""

    strategy: str
    max_tokens: int
    halvings: int = 0

    def below(self, error: Exception) -> Rung | None:
        """The next thing to try after a failure.

        Too long, or cut off: half as long, twice at most. Refused, or no answer at all: the simplest form, once. What
        failed for any other reason (no connection, no money) would fail again.
        """
        if isinstance(error, _TOO_MUCH) and self.halvings < _MOST_HALVINGS and self.max_tokens >= 2 * _FEWEST_TOKENS:
            return replace(self, max_tokens=self.max_tokens // 2, halvings=self.halvings + 1)
        if isinstance(error, _NO_ANSWER) and self.strategy != SIMPLEST:
            return replace(self, strategy=SIMPLEST)
        return None

    def __str__(self) -> str:
        return f"{self.strategy} in {self.max_tokens:,} tokens"
