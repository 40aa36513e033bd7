"""Keep every event of a session beside its archived transcripts, redacted: the audit of everything that happened."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from compact.core.engine.events import CompactionEvent
from compact.telemetry.worker import OutgoingEvent

_log = logging.getLogger("compact")


class EventArchive(Protocol):
    """Where events of a session are appended."""

    def save_event(self, session_id: str, event: Mapping[str, Any]) -> None:
        """Append one event."""
        ...


@runtime_checkable
class BatchEventArchive(Protocol):
    """An archive that takes several events at once."""

    def save_events(self, session_id: str, events: Sequence[Mapping[str, Any]]) -> None:
        """Append events, in this order."""
        ...


class ArchiveExporter:
    """Appends every event to the archive of its session; what happens outside of sessions has none.

    An archive that fails is not tried again for the same events: the log of the program says what is missing.
    """

    name = "archive"

    def __init__(self, archive: EventArchive) -> None:
        self._archive = archive
        self._pending: dict[str, list[Mapping[str, Any]]] = {}

    def capture_context(self, event: CompactionEvent) -> object:
        """Return nothing: the event is all that is needed."""
        return None

    def add(self, batch: Sequence[OutgoingEvent]) -> None:
        """Read the events, each session's in their order."""
        for outgoing in batch:
            event = outgoing.event
            if event.session_id:
                line = {"at": round(event.timestamp or time.time(), 3), **outgoing.data}
                self._pending.setdefault(event.session_id, []).append(line)

    def send(self) -> int:
        """Write what was read; return how many events could not be written."""
        pending, self._pending = self._pending, {}
        return sum(self._save(session_id, events) for session_id, events in pending.items())

    def _save(self, session_id: str, events: Sequence[Mapping[str, Any]]) -> int:
        """Write the events of a session, at once if the archive can; return how many it refused."""
        archive = self._archive
        if isinstance(archive, BatchEventArchive):
            return self._try(lambda: archive.save_events(session_id, events), events)
        return sum(self._try(lambda event=event: archive.save_event(session_id, event), [event]) for event in events)

    def _try(self, save: Callable[[], None], events: Sequence[Mapping[str, Any]]) -> int:
        try:
            save()
        except Exception as error:  # noqa: BLE001 - an archive may be anybody's code
            self.warn(f"{', '.join(str(event['event']) for event in events)} could not be archived: {error}")
            return len(events)
        return 0

    def warn(self, text: str) -> None:
        """Write it into the log."""
        _log.warning("%s", text)

    def reset_after_fork(self) -> None:
        """Drop what waits: the original process writes it."""
        self._pending = {}

    def close(self) -> None:
        """Do nothing: the archive belongs to who made it."""
