"""The socket for archives: transcripts, summaries and events of sessions, written for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from compact.core.errors import CompactError
from compact.core.messages.message import Message


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
        """Write what the history had before compaction number `step` and not before the last one that was archived.

        All transcripts of a session, one after the other, are its history. Return the path or key that holds it.
        """
        ...

    def save_summary(self, session_id: str, summary: Message, step: int) -> str:
        """Write the summary that compaction number `step` made; return the path or key that holds it."""
        ...

    def save_event(self, session_id: str, event: Mapping[str, Any]) -> None:
        """Write one event of a session."""
        ...


@runtime_checkable
class PrunedArchive(Protocol):
    """An archive that keeps things for a limited time, or up to a limited size."""

    def prune(self) -> int:
        """Remove what is too old or too much, and return how many files that were; called after each compaction."""
        ...
