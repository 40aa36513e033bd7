"""The socket for archives: transcripts, summaries and events of sessions, written for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from compact.core.errors import CompactError
from compact.core.log.messages import Message


class ArchiveError(CompactError):
    """Something that could not be archived; `place` is the path or key it was meant for."""

    code = "archive_failed"

    def __init__(self, message: str, *, place: str, hint: str = "") -> None:
        super().__init__(f"cannot write to the archive at {place}: {message}", hint=hint)
        self.place = place


class StorageAdapter(Protocol):
    """Writes what people may want to read later; all of it is redacted before it gets here.

    Calls may come from several threads and may wait. Whatever a call raises is reported, and the turn goes on.
    """

    def save_transcript(self, session_id: str, transcript: Sequence[Message], step: int) -> str:
        """Write the whole history as it was before compaction number `step`; return the path or key that holds it."""
        ...

    def save_summary(self, session_id: str, summary: Message, step: int) -> str:
        """Write the summary that compaction number `step` made; return the path or key that holds it."""
        ...

    def save_event(self, session_id: str, event: Mapping[str, Any]) -> None:
        """Write one event of a session."""
        ...
