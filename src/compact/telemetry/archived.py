"""Events kept beside the archived transcripts, redacted: the audit of everything that was written."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from compact.core.events import CompactionEvent, TokenEstimateEvent, TriggerDecisionEvent


class EventArchive(Protocol):
    """Where events of a session are appended."""

    def save_event(self, session_id: str, event: Mapping[str, Any]) -> None:
        """Append one event."""
        ...


class ArchivedEvents:
    """Appends every event of a session but the two that each call sends when nothing happened."""

    def __init__(self, archive: EventArchive, redact: Callable[[Any], Any]) -> None:
        self._archive, self._redact = archive, redact

    def __call__(self, event: CompactionEvent) -> None:
        if not event.thread_id or isinstance(event, TokenEstimateEvent):
            return
        if isinstance(event, TriggerDecisionEvent) and not event.triggered:
            return
        data = {"at": round(time.time(), 3), **event.to_dict()}
        self._archive.save_event(event.thread_id, self._redact(data))
