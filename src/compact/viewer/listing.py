"""The sessions as a list: searched, filtered, sorted, a page at a time."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from compact.core.audit.records import ModelCall, SessionInfo
from compact.viewer.losses import Losses
from compact.viewer.source import Source

STATES = ("all", "compacted", "never", "loss", "errors")
_SPARK = 40
_LIVE_SECONDS = 30.0
_SORTS: dict[str, Callable[[SessionInfo], Any]] = {
    "updated": lambda info: -info.updated_at,
    "tokens": lambda info: -info.last_tokens,
    "messages": lambda info: -info.messages,
}
SORTS = tuple(_SORTS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What somebody wants to see of the list."""

    words: str = ""
    state: str = "all"
    sort: str = "updated"
    offset: int = 0
    limit: int = 50


def list_sessions(source: Source, losses: Losses, in_error: set[str], wanted: Wanted) -> dict[str, Any]:
    """A page of the list; what is lost is worked out in the background, `pending` tells of how many not yet."""
    found = [info for info in _matching(source, wanted.words) if _is_in(info, wanted.state, losses, in_error)]
    found.sort(key=lambda info: (_SORTS[wanted.sort](info), info.session_id))
    page = found[wanted.offset : wanted.offset + wanted.limit]
    losses.work_out(page)
    calls = source.store.recent_calls([info.session_id for info in page], _SPARK)
    now = time.time()
    return {
        "total": len(found),
        "pending": losses.pending,
        "sessions": [_row(source, info, calls[info.session_id], losses, in_error, now) for info in page],
    }


def _matching(source: Source, words: str) -> Sequence[SessionInfo]:
    """The sessions whose id or log holds the words."""
    infos = source.sessions()
    if not words.strip():
        return infos
    wanted, with_words = words.strip().casefold(), source.store.sessions_with(words)
    return [info for info in infos if wanted in info.session_id.casefold() or info.session_id in with_words]


def _is_in(info: SessionInfo, state: str, losses: Losses, in_error: set[str]) -> bool:
    match state:
        case "compacted":
            return info.plan_version > 0
        case "never":
            return info.plan_version == 0
        case "loss":
            losses.work_out([info])
            return losses.has_loss(info)
        case "errors":
            return info.session_id in in_error
        case _:
            return True


def _row(
    source: Source, info: SessionInfo, calls: Sequence[ModelCall], losses: Losses, in_error: set[str], now: float
) -> dict[str, Any]:
    limits = calls[-1].limits if calls and calls[-1].limits else limits_here(source)
    return {
        "id": info.session_id,
        "messages": info.messages,
        "calls": info.model_calls,
        "plan_version": info.plan_version,
        "compactions": info.plan_version,
        "last_tokens": info.last_tokens,
        "window_tokens": limits["window"],
        "trigger_tokens": limits["trigger"],
        "created_at": info.created_at,
        "updated_at": info.updated_at,
        "spark": [call.tokens_estimated for call in calls],
        "has_loss": losses.has_loss(info),
        "has_error": info.session_id in in_error,
        "is_live": now - info.updated_at < _LIVE_SECONDS,
    }


def limits_here(source: Source) -> dict[str, int]:
    """The thresholds as they are set here."""
    budget = source.budget
    return {
        "window": budget.max_context_tokens,
        "ceiling": budget.ceiling_tokens,
        "trigger": budget.trigger_tokens,
        "prefetch": budget.prefetch_tokens,
        "target": budget.target_tokens,
    }
