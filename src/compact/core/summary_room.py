"""The room a planned summary has, and how much of it something takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from compact.core.messages import Message
from compact.core.plan import SummarizationRecord
from compact.core.renderer import summary_message
from compact.core.summary import StructuredSummary


@dataclass(frozen=True, slots=True)
class SummaryRoom:
    """What is weighed is the message that will stand in the prompt, as it will stand there."""

    pending: SummarizationRecord
    count_message: Callable[[Message], int]

    @property
    def max_tokens(self) -> int:
        """The most that the summary may take."""
        return self.pending.max_tokens

    def text(self, summary: StructuredSummary) -> str:
        """The summary as it will be read."""
        return summary_message(replace(self.pending, summary=summary)).text

    def tokens(self, summary: StructuredSummary) -> int:
        """What a summary takes."""
        return self.count_message(summary_message(replace(self.pending, summary=summary)))

    def fits(self, summary: StructuredSummary) -> bool:
        """True if there is room for it."""
        return self.tokens(summary) <= self.max_tokens

    def fits_half(self, summary: StructuredSummary) -> bool:
        """True if it leaves half of the room."""
        return self.tokens(summary) <= self.max_tokens // 2

    def record(self, summary: StructuredSummary) -> SummarizationRecord:
        """The record with its summary, weighed."""
        return replace(self.pending, summary=summary, tokens_after=self.tokens(summary))
