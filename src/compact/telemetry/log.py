"""Events as lines of the standard `logging` module, under the logger `compact`."""

from __future__ import annotations

import logging

from compact.core.events import (
    CompactionCompletedEvent,
    CompactionErrorEvent,
    CompactionEvent,
    HistoryBranchedEvent,
    HistoryRepairedEvent,
    NoticeEvent,
)

_log = logging.getLogger("compact")


class LoggingEventEmitter:
    """Errors are warnings, what changed a prompt is info, everything else is debug."""

    def __call__(self, event: CompactionEvent) -> None:
        match event:
            case CompactionErrorEvent():
                text = f"{event.error_type}: {event.message} (fallback: {event.fallback})"
                _log.warning("[%s] %s", event.thread_id, text)
            case CompactionCompletedEvent():
                freed = f"{event.tokens_before:,} → {event.tokens_after:,} tokens"
                _log.info("[%s] compacted, plan v%d: %s (%s)", event.thread_id, event.plan_version, freed, event.reason)
            case HistoryBranchedEvent():
                _log.info("[%s] the past was edited: %d left", event.thread_id, len(event.left_ids))
            case HistoryRepairedEvent():
                _log.info("[%s] repaired: %s", event.thread_id, "; ".join(event.repairs))
            case NoticeEvent():
                _log.warning("%s", event.message)
            case _:
                if _log.isEnabledFor(logging.DEBUG):
                    _log.debug("[%s] %s", event.thread_id, event.to_dict())
