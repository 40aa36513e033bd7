"""What an adapter does when compaction fails: the request goes out as it is, and an event says so."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from compact.core.engine.events import CompactionErrorEvent, CompactionEvent, NoticeEvent
from compact.core.errors import InsufficientBudget
from compact.dialects.dialect import without
from compact.dialects.translation import META
from compact.manager import CompactManager

AS_IT_IS = "the request goes out as it is"


def tell(manager: CompactManager, event: CompactionEvent) -> None:
    """Have the manager's sinks hear of something that happened in an adapter."""
    manager.emit(event)


def tell_failure(manager: CompactManager, session_id: str, error: Exception, fallback: str = AS_IT_IS) -> None:
    """Report what failed and what is done instead; a request that does not fit is told loudly."""
    if isinstance(error, InsufficientBudget):
        # That it failed was told by whoever tried; not that the request goes out all the same.
        warning = f"{fallback}, though it cannot be made to fit, and may be rejected: {error.message}"
        tell(manager, NoticeEvent(session_id=session_id, message=warning, severity="high"))
        return
    kind = type(error).__name__
    tell(
        manager,
        CompactionErrorEvent(session_id=session_id, error_type=kind, message=str(error), fallback=fallback),
    )


def without_marks(items: Sequence[Any]) -> list[Any]:
    """The caller's own list, without our `meta`, which every provider rejects."""
    return [
        without(cast(dict[str, Any], item), META) if isinstance(item, dict) and META in item else item for item in items
    ]
