"""What was proposed, done to content, and brought back: the events of single strategies and artifacts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from compact.core.events import CompactionEvent, CompactionEventType


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalGeneratedEvent(CompactionEvent):
    """A strategy proposed something: how many records, and what those that were taken free."""

    type = CompactionEventType.PROPOSAL_GENERATED
    strategy: str
    proposals: int
    tokens_freed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalRejectedEvent(CompactionEvent):
    """Proposals of a strategy were not taken, for a reason."""

    type = CompactionEventType.PROPOSAL_REJECTED
    strategy: str
    proposals: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentChangedEvent(CompactionEvent):
    """Messages that one strategy treated alike in one compaction."""

    strategy: str
    message_ids: tuple[str, ...]
    tokens_before: int
    tokens_after: int

    @property
    def tokens_freed(self) -> int:
        """How much smaller the prompt got by it."""
        return self.tokens_before - self.tokens_after

    def to_dict(self) -> dict[str, Any]:
        """Plain data; how many messages these are stays known where a long list of ids is cut."""
        told = CompactionEvent.to_dict(self)  # a slotted class has no `super()` of its own
        return {**told, "message_count": len(self.message_ids), "tokens_freed": self.tokens_freed}


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentClearedEvent(ContentChangedEvent):
    """The content of messages was replaced by a stub."""

    type = CompactionEventType.CONTENT_CLEARED


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentSummarizedEvent(ContentChangedEvent):
    """A summary stands for messages."""

    type = CompactionEventType.CONTENT_SUMMARIZED


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentExternalizedEvent(ContentChangedEvent):
    """The content of messages was moved into artifacts."""

    type = CompactionEventType.CONTENT_EXTERNALIZED
    artifact_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentDroppedEvent(ContentChangedEvent):
    """Messages were left out of the prompt."""

    type = CompactionEventType.CONTENT_DROPPED


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentRehydratedEvent(CompactionEvent):
    """An artifact is shown again, for this turn."""

    type = CompactionEventType.CONTENT_REHYDRATED
    artifact_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RehydrationBlockedEvent(CompactionEvent):
    """An artifact was asked for and is not shown, for a reason."""

    type = CompactionEventType.REHYDRATION_BLOCKED
    artifact_id: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentRecalledEvent(CompactionEvent):
    """The agent, or somebody, asked for what had left the prompt: a sign that it was missed."""

    type = CompactionEventType.CONTENT_RECALLED
    query: str
    message_ids: tuple[str, ...]
    tokens: int
