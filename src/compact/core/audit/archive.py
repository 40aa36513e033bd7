"""The socket for archives: transcripts, summaries and events of sessions, written for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from compact.core.log.messages import Message


class StorageAdapter(Protocol):
    """Keeps transcripts, summaries and events of sessions; a save returns the path or key that holds it."""

    def save_transcript(self, session_id: str, transcript: Sequence[Message], step: int) -> str:
        """Keep the whole history as it was before compaction number `step`."""
        ...

    def save_summary(self, session_id: str, summary: Message, step: int) -> str:
        """Keep the summary that compaction number `step` made."""
        ...

    def save_event(self, session_id: str, event: Mapping[str, Any]) -> None:
        """Keep one event."""
        ...
