"""Events as lines of the standard `logging` module, under the logger `compact`."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from compact.core.engine.events import (
    CompactionCompletedEvent,
    CompactionErrorEvent,
    CompactionEvent,
    HistoryBranchedEvent,
    HistoryRepairedEvent,
    NoticeEvent,
)
from compact.telemetry.fitting import one_line

_log = logging.getLogger("compact")


def line_of(event: CompactionEvent) -> tuple[int, str]:
    """The level of an event, and what it says in one line; what nobody has to read has a level and no line."""
    match event:
        case CompactionErrorEvent():
            return logging.WARNING, f"{event.error_type}: {event.message} (fallback: {event.fallback})"
        case CompactionCompletedEvent():
            freed = f"{event.tokens_before:,} → {event.tokens_after:,} tokens"
            return logging.INFO, f"compacted, plan v{event.plan_version}: {freed} ({event.reason})"
        case HistoryBranchedEvent():
            return logging.INFO, f"the past was edited: {len(event.left_ids)} left"
        case HistoryRepairedEvent():
            return logging.INFO, f"repaired: {'; '.join(event.repairs)}"
        case NoticeEvent():
            return logging.WARNING, event.message
        case _:
            return logging.DEBUG, ""


class LoggingEventEmitter:
    """Errors are warnings, what changed a prompt is info, everything else is debug; secrets are taken out of each."""

    def __init__(self, redact: Callable[[Any], Any] = lambda value: value, *, log: logging.Logger = _log) -> None:
        self._redact, self._log = redact, log

    def __call__(self, event: CompactionEvent) -> None:
        level, line = line_of(event)
        if not self._log.isEnabledFor(level):
            return
        text = one_line(str(self._redact(line))) if line else self._redact(event.to_dict())
        if event.session_id:
            self._log.log(level, "[%s] %s", one_line(event.session_id), text)
        else:
            self._log.log(level, "%s", text)

    def emit(self, event: CompactionEvent) -> None:
        """The same, by its other name."""
        self(event)
